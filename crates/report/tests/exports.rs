//! Exports against the profiles they are made of. `exports.py` has other programs read them.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use borescope_profile::{Existing, Profile, seal, sites};
use borescope_report::export::lcov::{self, LcovError};
use borescope_report::export::{ExportOptions, collapsed, csv, pprof, sarif};
use borescope_report::sites::At;
use borescope_report::{Error, MethodGlob, Sources};
use borescope_spool::layout::Engine;
use borescope_spool::meta::{Class, Counting, Method, Record, Target};
use borescope_spool::sites::Cause;
use borescope_spool::testing::sites::{shop, shop_heap};
use borescope_spool::testing::{Builder, merged_example, worked_example};
use serde_json::Value;
use support::{burst, figure_four, fixed_trips, handler_loop, leaf, profile};

fn bytes<E: std::fmt::Debug, T>(write: impl FnOnce(&mut dyn Write) -> Result<T, E>) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    out
}

fn text<E: std::fmt::Debug, T>(write: impl FnOnce(&mut dyn Write) -> Result<T, E>) -> String {
    String::from_utf8(bytes(write)).unwrap()
}

fn of(glob: &str) -> ExportOptions {
    ExportOptions {
        method: Some(MethodGlob::new(glob)),
        ..ExportOptions::default()
    }
}

/// A profile as sealed: the worked example, and the one whose short branch is merged.
fn sealed(dir: &Path, k: u32) -> Profile {
    let spool = dir.join("spool");
    fs::create_dir(&spool).unwrap();
    let mut builder = Builder::new(Engine::Automaton, k);
    builder
        .method(4, 8)
        .method(12, 4)
        .run(0, 4, &[vec![0, 4, 6, 5], vec![0, 5], vec![1], vec![1]])
        .run(0, 12, &[vec![0, 2, 3]]);
    fs::write(
        spool.join("counters.bin"),
        builder.finish(Some(1_764_457_012_000)),
    )
    .unwrap();
    let method = |index, name: &str, flow, line| Method {
        index,
        counting: Counting::Rows,
        name: name.into(),
        descriptor: "(I)V".into(),
        lines: (0..6u16).map(|block| (block * 3, line + block)).collect(),
        flow,
    };
    let class = |name: &str, hash, file: Option<&str>, methods| Class {
        name: name.into(),
        loader: "app".into(),
        hash,
        source_file: file.map(str::to_owned),
        methods,
        straight_line: 0,
    };
    let records = [
        Record::Target(Target {
            started: 1_764_457_000_000,
            merge: true,
            ..Target::default()
        }),
        Record::Class(class(
            "acme/Main",
            1,
            Some("Main.java"),
            vec![
                method(4, "example", worked_example(), 10),
                method(12, "merged", merged_example(), 30),
            ],
        )),
        Record::Class(class(
            "acme/Main$Idle",
            2,
            Some("Main.java"),
            vec![method(20, "idle", worked_example(), 50)],
        )),
        Record::Class(class(
            "acme/NoFile",
            3,
            None,
            vec![method(30, "none", worked_example(), 1)],
        )),
    ];
    let log: Vec<u8> = records.iter().flat_map(Record::encode).collect();
    fs::write(spool.join("meta.log"), log).unwrap();
    seal(&spool, &dir.join("p"), Existing::Refuse, &mut |_| ()).unwrap();
    Profile::open(dir.join("p")).unwrap()
}

fn shop_at(requests: &[usize], dir: &Path) -> sites::Profile {
    let mut heap = shop(&dir.join("spool"));
    for &requests in requests {
        heap.snapshot(Cause::Interval, &shop_heap(requests), false);
    }
    heap.record(&Record::Ended {
        at_ms: 1_764_457_200_000,
    });
    sites::seal(&dir.join("spool"), &dir.join("p"), Existing::Refuse).unwrap();
    sites::Profile::open(dir.join("p")).unwrap()
}

/// The fields of a message of protocol buffers: number, and value or content.
fn fields(mut message: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    fn varint(from: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = from.split_first().unwrap();
            *from = rest;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let value = varint(&mut message);
        let content = match key & 7 {
            0 => Vec::new(),
            2 => {
                let (content, rest) = message.split_at(value as usize);
                message = rest;
                content.to_vec()
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value, content));
    }
    fields
}

/// The stacks of a profile of pprof, the leaf first, with their values.
fn stacks(gzip: &[u8]) -> Vec<(Vec<String>, Vec<u64>)> {
    let mut raw = Vec::new();
    flate2::read::GzDecoder::new(gzip)
        .read_to_end(&mut raw)
        .unwrap();
    let all = fields(&raw);
    let parts = |number: u64| all.iter().filter(move |one| one.0 == number);
    let strings: Vec<String> = parts(6)
        .map(|s| String::from_utf8(s.2.clone()).unwrap())
        .collect();
    assert_eq!(strings[0], "");
    let value = |message: &[(u64, u64, Vec<u8>)], number| {
        message
            .iter()
            .find(|one| one.0 == number)
            .map_or(0, |one| one.1)
    };
    let functions: BTreeMap<u64, String> = parts(5)
        .map(|one| fields(&one.2))
        .map(|one| (value(&one, 1), strings[value(&one, 2) as usize].clone()))
        .collect();
    let locations: BTreeMap<u64, String> = parts(4)
        .map(|one| fields(&one.2))
        .map(|one| {
            let line = fields(&one.iter().find(|field| field.0 == 4).unwrap().2);
            let name = &functions[&value(&line, 1)];
            (value(&one, 1), format!("{name}:{}", value(&line, 2)))
        })
        .collect();
    let packed = |content: &[u8]| {
        let mut values = Vec::new();
        let mut value = (0u64, 0);
        for &byte in content {
            value = (value.0 | u64::from(byte & 0x7f) << value.1, value.1 + 7);
            if byte < 0x80 {
                values.push(value.0);
                value = (0, 0);
            }
        }
        values
    };
    let sample = |one: &(u64, u64, Vec<u8>)| {
        let one = fields(&one.2);
        let of = |number| packed(&one.iter().find(|field| field.0 == number).unwrap().2);
        let names = of(1).iter().map(|id| locations[id].clone()).collect();
        (names, of(2))
    };
    parts(2).map(sample).collect()
}

#[test]
fn stacks_of_paths() {
    let profile = profile(4, &[figure_four(), handler_loop(), leaf()]);
    let options = ExportOptions::default();
    let lines = text(|out| collapsed::paths(&profile, &options, out));
    let expected: u64 = profile.methods().iter().map(|method| method.ids).sum();
    let count = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    assert_eq!(lines.lines().map(count).sum::<u64>(), expected);
    assert!(
        lines.contains("Plain.get;path 0 (line 5) 7000\n")
            && lines.contains(
                "demo.Parse.numbers;path 3 (lines 35-36, from an exception handler) 18000\n"
            ),
        "{lines}"
    );
    let stacks = stacks(&bytes(|out| pprof::paths(&profile, &options, out)));
    assert_eq!(stacks.iter().map(|one| one.1[0]).sum::<u64>(), expected);
    let leaf = ["Plain.get path 0 (line 5):5", "Plain.get:5"].map(str::to_owned);
    assert!(stacks.contains(&(leaf.to_vec(), vec![7_000])), "{stacks:?}");
    assert_eq!(stacks.len(), lines.lines().count());
    let one = text(|out| collapsed::paths(&profile, &of("Parse.*"), out));
    assert_eq!(one.lines().count(), 4);
}

#[test]
fn estimates_are_marked() {
    let options = ExportOptions::default();
    let lines = text(|out| collapsed::paths(&burst(), &options, out));
    assert!(
        lines.contains("demo.Settings.readName [estimate];"),
        "{lines}"
    );
    assert!(lines.contains("Plain.get;"), "{lines}");
    let table = text(|out| csv::paths(&burst(), &options, out));
    let row = table.lines().find(|row| row.contains("readName")).unwrap();
    assert!(row.contains(",12000,10800,13500,1,"), "{row}");
    let refused = lcov::paths(&burst(), &options, &mut io::sink()).unwrap_err();
    assert!(matches!(refused, LcovError::Burst));
    let results = sarif_results(&text(|out| sarif::paths(&burst(), &options, out)));
    assert!(!results.is_empty());
}

#[test]
fn tables() {
    let mut sample = fixed_trips();
    (sample.class, sample.method) = ("demo.A,\"B\"", "a\nb");
    let table = bytes(|out| csv::paths(&profile(4, &[sample]), &ExportOptions::default(), out));
    let mut rows = ::csv::Reader::from_reader(table.as_slice());
    let header = rows.headers().unwrap().clone();
    let rows: Vec<_> = rows.records().map(Result::unwrap).collect();
    let column = |name: &str| header.iter().position(|one| one == name).unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(
        (&rows[0][column("class")], &rows[0][column("method")]),
        ("demo.A,\"B\"", "a\nb")
    );
    for name in ["count", "lo", "hi"] {
        assert_eq!(&rows[0][column(name)], "12000");
    }
    assert_eq!(
        (&rows[0][column("starts")], &rows[0][column("ends")]),
        ("loop", "back")
    );
    assert_eq!(
        (&rows[0][column("lines")], &rows[0][column("bytecode")]),
        ("74 75", "2-20")
    );
    assert!(table.ends_with(b"\r\n"));
}

#[test]
fn sites_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let profile = shop_at(&[10, 400], dir.path());
    let options = ExportOptions::default();
    let at = At::last(&profile).unwrap();
    let live = at.snapshot.live;
    let lines = text(|out| collapsed::sites(at, &options, out));
    let count = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    assert_eq!(lines.lines().map(count).sum::<u64>(), live.bytes, "{lines}");
    let stacks = stacks(&bytes(|out| pprof::sites(at, &options, out)));
    let sum = |at: usize| stacks.iter().map(|one| one.1[at]).sum::<u64>();
    assert_eq!((sum(0), sum(1)), (live.objects, live.bytes));
    // The type, the line of the JDK, the line of the application.
    let deep = stacks.iter().find(|one| one.0.len() == 3).unwrap();
    assert!(
        deep.0[0].ends_with(":0") && deep.0[1].starts_with("java.util."),
        "{deep:?}"
    );
    assert!(deep.0[2].starts_with("acme."), "{deep:?}");
    assert!(lines.contains("acme.Cache.load:42;byte[] "), "{lines}");

    let rows = |table: String| {
        ::csv::Reader::from_reader(table.as_bytes())
            .records()
            .count()
    };
    let all = rows(text(|out| csv::sites(&profile, None, &options, out)));
    let last = rows(text(|out| csv::sites(&profile, Some(2), &options, out)));
    assert_eq!(last, lines.lines().count());
    assert!(all > last);

    let results = sarif_results(&text(|out| sarif::sites(&profile, &options, out)));
    assert_eq!(results[0]["ruleId"], "growing-line");
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "acme/Cache.java");
    assert_eq!(place["region"]["startLine"], 42);
}

fn sarif_results(log: &str) -> Vec<Value> {
    let log: Value = serde_json::from_str(log).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    for result in results {
        let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
    }
    results.clone()
}

#[test]
fn findings_are_those_of_the_report() {
    let profile = profile(4, &[handler_loop(), leaf()]);
    let results = sarif_results(&text(|out| {
        sarif::paths(&profile, &ExportOptions::default(), out)
    }));
    let is_handler = |result: &&Value| result["ruleId"] == "exceptions-as-control-flow";
    let result = results.iter().find(is_handler).unwrap();
    assert_eq!(result["level"], "note");
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!(
        (&region["startLine"], &region["endLine"]),
        (&35.into(), &36.into())
    );
    let said = result["message"]["text"].as_str().unwrap();
    assert!(said.starts_with("Parse.numbers ("), "{said}");
    let nothing = sarif_results(&text(|out| sarif::paths(&profile, &of("Plain.*"), out)));
    assert!(nothing.is_empty());
}

#[test]
fn coverage() {
    let dir = tempfile::tempdir().unwrap();
    let profile = sealed(dir.path(), 4);
    let info = text(|out| lcov::paths(&profile, &ExportOptions::default(), out));
    let lines: Vec<&str> = info.lines().collect();
    let has = |line: &str| assert!(lines.contains(&line), "no {line} in\n{info}");
    has("SF:acme/Main.java");
    has("FN:10,acme.Main.example(I)V");
    has("FNDA:4,acme.Main.example(I)V");
    has("FNDA:0,acme.Main$Idle.idle(I)V");
    has("FNF:3");
    has("FNH:2");
    // Blocks A to F at lines 10 to 15; C and D are lines 12 and 13.
    for line in [
        "DA:10,4", "DA:11,8", "DA:12,7", "DA:13,1", "DA:15,4", "DA:50,0", "DA:55,0",
    ] {
        has(line);
    }
    // Paths of the method: 0, 1, 4, 5, 6 ran.
    for line in [
        "BRDA:10,0,0,2",
        "BRDA:10,0,1,2",
        "BRDA:10,0,2,0",
        "BRDA:10,0,6,1",
        "BRDA:10,0,7,0",
    ] {
        has(line);
    }
    // The loop at line 11: not turned twice, once, and more often once.
    for line in ["BRDA:11,1,0,2", "BRDA:11,1,1,1", "BRDA:11,1,2,1"] {
        has(line);
    }
    // A method that never ran has branches that could not be taken.
    has("BRDA:50,4,0,-");
    has("BRDA:51,5,2,-");
    // The arms of the merged branch are not known to have run or not.
    assert!(
        !info.contains("DA:32,") && !info.contains("DA:33,"),
        "{info}"
    );
    has(
        "# acme.Main.merged(I)V: lines 32-33 left out: of short branches that were not told apart (--branches split)",
    );
    has("# 1 method left out: without source lines");
    assert_eq!(
        lines
            .iter()
            .filter(|line| **line == "end_of_record")
            .count(),
        1
    );

    // Where sequences are too short, turns are not known, and not reported as none.
    let dir = tempfile::tempdir().unwrap();
    let short = sealed(dir.path(), 1);
    let info = text(|out| lcov::paths(&short, &of("Main.example"), out));
    assert!(
        info.contains("BRDA:11,1,0,2\n") && !info.contains("BRDA:11,1,1,"),
        "{info}"
    );
    assert!(
        info.contains("of 2 entries of the loop at line 11 the turns are not known"),
        "{info}"
    );

    // Names files as they are found.
    let root = dir.path().join("src/acme");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("Main.java"), "").unwrap();
    let options = ExportOptions {
        source: Sources::open(&[dir.path().join("src")]).unwrap(),
        ..ExportOptions::default()
    };
    let info = text(|out| lcov::paths(&short, &options, out));
    assert!(
        info.contains(&format!("SF:{}\n", root.join("Main.java").display())),
        "{info}"
    );
}

#[test]
fn a_profile_that_kept_no_code_is_refused() {
    let profile = profile(4, &[fixed_trips()]);
    let refused = lcov::paths(&profile, &ExportOptions::default(), &mut io::sink()).unwrap_err();
    assert!(matches!(refused, LcovError::Earlier));
}

/// Fails after so many bytes.
struct Full(usize, io::ErrorKind);

impl Write for Full {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self.0 {
            0 => Err(self.1.into()),
            left => {
                let n = buf.len().min(left);
                self.0 -= n;
                Ok(n)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn closed_pipes_end_an_export_and_full_disks_are_errors() {
    let profile = profile(4, &[figure_four(), handler_loop()]);
    let options = ExportOptions::default();
    type Export = fn(&Profile, &ExportOptions, &mut dyn Write) -> Result<(), Error>;
    let exports: [Export; 4] = [pprof::paths, collapsed::paths, csv::paths, sarif::paths];
    for export in exports {
        for room in [0, 5] {
            let mut closed = Full(room, io::ErrorKind::BrokenPipe);
            export(&profile, &options, &mut closed).unwrap();
            let mut full = Full(room, io::ErrorKind::StorageFull);
            assert!(matches!(
                export(&profile, &options, &mut full),
                Err(Error::Write(_))
            ));
        }
    }
}
