//! From a spool as the agent's engines leave it, through the sealed files, to both reports.

mod support;

use std::collections::BTreeMap;
use std::fs;

use borescope_profile::{Existing, Profile, seal};
use borescope_report::{JsonOptions, TextOptions, json, text};
use borescope_spool::layout::{Engine, Stop};
use borescope_spool::meta::{Class, Counting, Method, Record, Target};
use borescope_spool::testing::{Builder, worked_example};
use serde_json::Value;
use support::ngrams;

const K: u32 = 4;
/// The seed's stream <6 2 0 0 2 2 0 0 2 2 0 0 2 3> in the IDs of [`worked_example`].
const STREAM: [u32; 14] = [0, 4, 6, 6, 4, 4, 6, 6, 4, 4, 6, 6, 4, 5];

fn log() -> Vec<u8> {
    let lines = (0..6u16).map(|block| (block * 3, 10 + 2 * block)).collect();
    let target = Target {
        pid: 42,
        jdk: "25.0.2".into(),
        vm: "OpenJDK 64-Bit Server VM".into(),
        collector: "Z".into(),
        command: "acme.Main".into(),
        started: 1_764_457_000_000,
        include: vec!["acme.*".into()],
        merge: true,
        ..Target::default()
    };
    let method = Method {
        index: 4,
        counting: Counting::Rows,
        name: "example".into(),
        descriptor: "(I)V".into(),
        lines,
        flow: worked_example(),
    };
    let class = Class {
        name: "acme/Main$Loop".into(),
        loader: "boot".into(),
        hash: 1,
        source_file: Some("Main.java".into()),
        methods: vec![method],
        straight_line: 7,
    };
    [Record::Target(target), Record::Class(class)]
        .iter()
        .flat_map(Record::encode)
        .collect()
}

fn sealed(engine: Engine, k: u32, stop: Option<(Stop, u64)>) -> (tempfile::TempDir, Profile) {
    let dir = tempfile::tempdir().unwrap();
    let (spool, out) = (dir.path().join("spool"), dir.path().join("profile"));
    fs::create_dir(&spool).unwrap();
    let mut builder = Builder::new(engine, k);
    builder
        .method(4, 8)
        .run(0, 4, &[STREAM.to_vec()])
        .run(1, 4, &[STREAM.to_vec(), vec![1]]);
    if let Some((why, lost)) = stop {
        builder.stop(why, lost);
    }
    fs::write(
        spool.join("counters.bin"),
        builder.finish(Some(1_764_457_012_000)),
    )
    .unwrap();
    fs::write(spool.join("meta.log"), log()).unwrap();
    seal(&spool, &out, Existing::Refuse, &mut |_| ()).unwrap();
    let profile = Profile::open(&out).unwrap();
    (dir, profile)
}

fn reports(profile: &Profile) -> (Value, String) {
    let (mut j, mut t) = (Vec::new(), Vec::new());
    json(profile, &JsonOptions::default(), &mut j).unwrap();
    text(profile, &TextOptions::default(), &mut t).unwrap();
    (
        serde_json::from_slice(&j).unwrap(),
        String::from_utf8(t).unwrap(),
    )
}

#[test]
fn every_engine_gives_the_same_report() {
    for (engine, name, k) in [
        (Engine::Automaton, "automaton", K),
        (Engine::Ksf, "ksf", K),
        (Engine::KsfMtf, "ksf-mtf", K),
        (Engine::BlppHash, "blpp-hash", 1),
        (Engine::BlppDense, "blpp-dense", 1),
    ] {
        let (_dir, profile) = sealed(engine, k, None);
        let (json, text) = reports(&profile);
        assert_eq!(json["paths"]["engine"], name);
        assert_eq!(json["target"]["jdk"], "25.0.2");
        let m = &json["paths"]["methods"][0];
        assert_eq!(
            (
                m["class"].as_str(),
                m["activations"].as_u64(),
                m["exact"].as_bool()
            ),
            (Some("acme.Main$Loop"), Some(3), Some(true))
        );
        let number = |v: &Value| v.as_str().unwrap().parse::<u32>().unwrap();
        let mut got: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        for p in m["paths"].as_array().unwrap() {
            got.insert(vec![number(&p["id"])], p["count"].as_u64().unwrap());
        }
        for g in m["ngrams"].as_array().unwrap() {
            let ids = g["ids"].as_array().unwrap().iter().map(number).collect();
            assert!(got.insert(ids, g["count"].as_u64().unwrap()).is_none());
            assert_eq!((&g["lo"], &g["hi"]), (&g["count"], &g["count"]));
        }
        assert_eq!(
            got,
            ngrams(&[(STREAM.to_vec(), 2), (vec![1], 1)], k as usize),
            "{name}"
        );
        if k > 1 {
            assert_eq!(
                got[&vec![4, 6, 6, 4]],
                6,
                "the seed's <2, 0, 0, 2>, twice three times"
            );
            assert!(text.contains("50 % take path 6"), "{text}");
        }
        assert!(
            text.starts_with("acme.Main\nJDK 25.0.2, Z collector, ran 12.0 s; k = "),
            "{text}"
        );
        assert!(text.contains("Exact: "), "{text}");
        assert!(text.contains("1. acme.Main$Loop.example(int)"), "{text}");
    }
}

#[test]
fn a_full_disk_is_told_and_bounds_are_known() {
    let (_dir, profile) = sealed(Engine::Automaton, K, Some((Stop::DiskFull, 29)));
    let (json, text) = reports(&profile);
    let m = &json["paths"]["methods"][0];
    assert_eq!(
        (&m["exact"], &json["paths"]["lost"]),
        (&false.into(), &29.into())
    );
    for g in m["ngrams"].as_array().unwrap() {
        assert_eq!(g["hi"].as_u64().unwrap(), g["count"].as_u64().unwrap() + 29);
    }
    let head: Vec<&str> = text.lines().take(7).collect();
    let head = head
        .join(" ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        head.contains("Lower bounds: the disk that held the spool was full"),
        "{head}"
    );
    assert!(
        head.contains("29 iterations (50 %) could not be counted"),
        "{head}"
    );
}
