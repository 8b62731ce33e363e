//! The JSON contract, and its n-grams against brute force.

mod support;

use std::collections::BTreeMap;
use std::io::{self, Write};

use borescope_profile::Profile;
use borescope_report::{Error, JsonOptions, MethodGlob, json};
use proptest::prelude::*;
use serde_json::Value;
use support::*;

fn text_of(profile: &Profile, options: &JsonOptions) -> String {
    let mut out = Vec::new();
    json(profile, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn value(profile: &Profile, options: &JsonOptions) -> Value {
    serde_json::from_str(&text_of(profile, options)).unwrap()
}

fn everything() -> JsonOptions {
    JsonOptions::default()
}

/// What a field must be.
#[derive(Clone, Copy)]
enum Is {
    Str,
    StrOrNull,
    UInt,
    UIntOrNull,
    Bool,
    Share,
    List(fn(&Value)),
    Object(fn(&Value)),
}

/// Checks that an object has all of these fields and each is what it must be.
fn has(object: &Value, fields: &[(&str, Is)]) {
    let map = object
        .as_object()
        .unwrap_or_else(|| panic!("no object: {object}"));
    for &(name, is) in fields {
        let v = map
            .get(name)
            .unwrap_or_else(|| panic!("no field {name} in {object}"));
        let fits = match is {
            Is::Str => v.is_string(),
            Is::StrOrNull => v.is_string() || v.is_null(),
            Is::UInt => v.is_u64(),
            Is::UIntOrNull => v.is_u64() || v.is_null(),
            Is::Bool => v.is_boolean(),
            Is::Share => v.as_f64().is_some_and(|f| (0.0..=1.0).contains(&f)),
            Is::List(each) => v
                .as_array()
                .map(|list| list.iter().for_each(each))
                .is_some(),
            Is::Object(check) => {
                check(v);
                true
            }
        };
        assert!(fits, "{name} is {v}");
    }
}

fn id(v: &Value) {
    let text = v.as_str().unwrap();
    assert_eq!(
        text.parse::<u64>().unwrap().to_string(),
        text,
        "an ID is a decimal string"
    );
}

fn uint(v: &Value) {
    assert!(v.is_u64(), "{v}");
}

fn range(v: &Value) {
    let [start, end] = v.as_array().unwrap().as_slice() else {
        panic!("{v}")
    };
    assert!(
        start.as_u64().unwrap() < end.as_u64().unwrap(),
        "half-open: {v}"
    );
}

/// The contract: every field that it names, where it names it.
fn contract(v: &Value) {
    use Is::*;
    has(
        v,
        &[
            ("borescope", Str),
            ("schema", UInt),
            (
                "target",
                Object(|t| {
                    has(
                        t,
                        &[
                            ("pid", UInt),
                            ("jdk", Str),
                            ("collector", Str),
                            ("command", Str),
                            ("started", UInt),
                            ("ended", UIntOrNull),
                            ("sealed_after_crash", Bool),
                        ],
                    )
                }),
            ),
            (
                "skipped",
                List(|s| {
                    has(
                        s,
                        &[
                            ("class", Str),
                            ("method", Str),
                            ("descriptor", Str),
                            ("lens", Str),
                            ("reason", Str),
                        ],
                    )
                }),
            ),
            (
                "paths",
                Object(|p| {
                    has(
                        p,
                        &[
                            ("k", UInt),
                            ("engine", Str),
                            ("branches", Str),
                            ("straight_line", Bool),
                            ("totals", Object(|t| has(t, &[("straight_line", UInt)]))),
                            ("methods", List(method)),
                        ],
                    )
                }),
            ),
        ],
    );
}

fn method(m: &Value) {
    use Is::*;
    has(
        m,
        &[
            ("class", Str),
            ("method", Str),
            ("descriptor", Str),
            ("source_file", StrOrNull),
            ("num_paths", Str),
            ("activations", UInt),
            ("unfinished", UIntOrNull),
            (
                "merged",
                List(|b| {
                    range(&b["head"]);
                    range(&b["join"]);
                    has(b, &[("arms", List(range)), ("lines", List(uint))]);
                }),
            ),
            ("exact", Bool),
            ("paths_exact", Bool),
            (
                "paths",
                List(|p| {
                    id(&p["id"]);
                    has(
                        p,
                        &[
                            ("count", UInt),
                            ("lines", List(uint)),
                            ("bcis", List(range)),
                        ],
                    );
                }),
            ),
            (
                "ngrams",
                List(|g| {
                    has(
                        g,
                        &[
                            ("ids", List(id)),
                            ("count", UInt),
                            ("lo", UInt),
                            ("hi", UIntOrNull),
                        ],
                    )
                }),
            ),
            (
                "chains",
                List(|c| {
                    has(
                        c,
                        &[
                            ("ids", List(id)),
                            ("count", UInt),
                            ("share", Share),
                            ("repeats", Bool),
                        ],
                    )
                }),
            ),
        ],
    );
    assert!(
        !m["class"].as_str().unwrap().contains('/'),
        "class names as in Java source"
    );
    assert!(
        m["num_paths"]
            .as_str()
            .unwrap()
            .bytes()
            .all(|b| b.is_ascii_digit())
    );
}

fn all() -> Profile {
    let samples = [
        leaf(),
        one_way(),
        worked_example(),
        figure_four(),
        handler_loop(),
    ];
    rebuilt(&profile(4, &samples), |m, methods, skips| {
        m.notices
            .push("\"quoted\", \u{1b}[31m and \u{2028}".to_owned());
        m.target.ended = None;
        m.target.sealed_after_crash = true;
        methods[0].class = "com/acme/Plain$Inner".to_owned();
        skips.push(skipped("demo/Big", "run", "(I)V", "too large"));
        skips.push(skipped("demo/Hidden", "", "", "hidden class"));
    })
}

#[test]
fn the_contract_holds() {
    for options in [
        everything(),
        JsonOptions {
            top: Some(2),
            ..everything()
        },
        JsonOptions {
            top: Some(0),
            ..everything()
        },
    ] {
        contract(&value(&all(), &options));
    }
    let v = value(&all(), &everything());
    assert_eq!(v["schema"], 1);
    assert_eq!(v["target"]["jdk"], "21.0.8");
    assert_eq!(v["target"]["ended"], Value::Null);
    assert_eq!(v["skipped"][0]["class"], "demo.Big");
    assert_eq!(
        v["paths"]["notices"][0],
        "\"quoted\", \u{1b}[31m and \u{2028}"
    );
    let names: Vec<&str> = v["paths"]["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["class"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "org.eclipse.jdt.internal.compiler.parser.Scanner",
            "demo.Parse",
            "demo.Sum",
            "com.acme.Plain$Inner",
            "demo.Worked"
        ],
        "the hottest first"
    );
    assert_eq!(
        v["paths"]["methods"][2]["num_paths"], "170141183460469231731687303715884105728",
        "beyond 2^127"
    );
}

#[test]
fn worked_example_of_the_seed() {
    let v = value(&profile(4, &[worked_example()]), &everything());
    let m = &v["paths"]["methods"][0];
    let grams = m["ngrams"].as_array().unwrap();
    let gram = grams
        .iter()
        .find(|g| g["ids"] == serde_json::json!(["2", "0", "0", "2"]))
        .unwrap();
    assert_eq!(
        (&gram["count"], &gram["lo"], &gram["hi"]),
        (&3.into(), &3.into(), &3.into())
    );
    let level1: BTreeMap<&str, u64> = m["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p["id"].as_str().unwrap(), p["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        level1,
        BTreeMap::from([("0", 6), ("2", 6), ("3", 1), ("6", 1)])
    );
    assert_eq!(m["paths"][0]["bcis"], serde_json::json!([[2, 6], [10, 16]]));
    assert_eq!(m["paths"][0]["starts"], serde_json::json!(["loop"]));
    assert_eq!(m["paths"][0]["ends"], "back");
}

#[test]
fn what_is_not_told_apart_and_not_counted() {
    let v = value(&profile(4, &[clamp(), leaf()]), &everything());
    contract(&v);
    assert_eq!(v["paths"]["branches"], "merge");
    let [leaf, clamp] = v["paths"]["methods"].as_array().unwrap().as_slice() else {
        panic!("two methods")
    };
    let branch =
        serde_json::json!({"head": [6, 12], "arms": [[12, 16]], "join": [16, 24], "lines": [52]});
    assert_eq!(clamp["merged"][0], branch);
    assert_eq!(
        clamp["merged"][1]["arms"],
        serde_json::json!([[24, 28], [28, 32]])
    );
    assert_eq!(clamp["unfinished"], 0);
    assert_eq!(
        (&leaf["unfinished"], &leaf["merged"]),
        (&Value::Null, &serde_json::json!([]))
    );
}

#[test]
fn only_methods_that_ran_and_that_are_meant() {
    let mut idle = leaf();
    idle.activations.clear();
    let both = profile(4, &[idle, worked_example()]);
    let classes = |options: &JsonOptions| -> Vec<String> {
        let v = value(&both, options);
        contract(&v);
        v["paths"]["methods"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["class"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        classes(&everything()),
        ["demo.Worked"],
        "a method that never ran is in totals only"
    );
    assert_eq!(
        classes(&JsonOptions {
            method: Some(MethodGlob::new("Worked.ex*")),
            top: None
        }),
        ["demo.Worked"]
    );
    assert_eq!(
        classes(&JsonOptions {
            method: Some(MethodGlob::new("Other")),
            top: None
        }),
        Vec::<String>::new()
    );
}

#[test]
fn top_limits_every_list_to_the_hottest() {
    let v = value(
        &profile(4, &[worked_example(), figure_four()]),
        &JsonOptions {
            top: Some(3),
            method: None,
        },
    );
    let m = &v["paths"]["methods"][0];
    for list in ["paths", "ngrams"] {
        assert_eq!(m[list].as_array().unwrap().len(), 3, "{list}");
    }
    let sample = figure_four();
    let mut counts: Vec<u64> = ngrams(&sample.activations, 4)
        .into_iter()
        .filter(|g| g.0.len() > 1)
        .map(|g| g.1)
        .collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let got: Vec<u64> = m["ngrams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| g["count"].as_u64().unwrap())
        .collect();
    assert_eq!(got, counts[..3]);
}

#[test]
fn lower_bounds_have_the_upper_one_that_is_known() {
    let mut sample = worked_example();
    sample.exact = false;
    let short = profile(4, &[sample]);
    let bounds = |change: &dyn Fn(&mut borescope_profile::Manifest)| {
        let v = value(&rebuilt(&short, |m, _, _| change(m)), &everything());
        contract(&v);
        let m = &v["paths"]["methods"][0];
        assert_eq!(m["exact"], false);
        let grams = m["ngrams"].as_array().unwrap().clone();
        assert!(!grams.is_empty());
        grams
            .into_iter()
            .map(|g| {
                (
                    g["count"].as_u64().unwrap(),
                    g["lo"].as_u64().unwrap(),
                    g["hi"].as_u64(),
                )
            })
            .collect::<Vec<_>>()
    };
    for (count, lo, hi) in bounds(&|m| m.lost = 7) {
        assert_eq!((lo, hi), (count, Some(count + 7)));
    }
    for (count, lo, hi) in bounds(&|m| m.counters_torn = Some("cut".into())) {
        assert_eq!(
            (lo, hi),
            (count, None),
            "nobody knows what a missing part held"
        );
    }
}

#[test]
fn an_empty_profile_is_an_object_too() {
    let v = value(&profile(4, &[]), &everything());
    contract(&v);
    assert_eq!(v["paths"]["methods"], serde_json::json!([]));
}

/// Takes `left` bytes, then fails as told.
struct Closing {
    left: usize,
    kind: io::ErrorKind,
}

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(self.kind.into());
        }
        let n = bytes.len().min(self.left);
        self.left -= n;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
    for left in [0, 10, 5_000] {
        let mut out = Closing {
            left,
            kind: io::ErrorKind::BrokenPipe,
        };
        json(&all(), &everything(), &mut out).unwrap();
        let mut out = Closing {
            left,
            kind: io::ErrorKind::StorageFull,
        };
        let error = json(&all(), &everything(), &mut out).unwrap_err();
        assert!(
            matches!(&error, Error::Write(e) if e.kind() == io::ErrorKind::StorageFull),
            "{error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every n-gram of 2..=k IDs of every activation is there once with its count, and nothing else.
    #[test]
    fn ngrams_are_those_of_brute_force(
        k in 1u32..7,
        activations in prop::collection::vec((prop::collection::vec(0u32..5, 0..12), 1u64..4), 0..6),
    ) {
        let paths = (0..5).map(|id| path((id, &[10, 11], &[(0, 3 + id)], 'l', borescope_profile::model::EdgeKind::Back)));
        let sample = Sample { activations: activations.clone(), paths: paths.collect(), ..leaf() };
        let v = value(&profile(k, &[sample]), &everything());
        contract(&v);
        let mut got: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        for m in v["paths"]["methods"].as_array().unwrap() {
            for p in m["paths"].as_array().unwrap() {
                prop_assert!(got.insert(vec![p["id"].as_str().unwrap().parse().unwrap()], p["count"].as_u64().unwrap()).is_none());
            }
            for g in m["ngrams"].as_array().unwrap() {
                let ids: Vec<u32> = g["ids"].as_array().unwrap().iter().map(|i| i.as_str().unwrap().parse().unwrap()).collect();
                prop_assert!(ids.len() > 1);
                prop_assert!(got.insert(ids, g["count"].as_u64().unwrap()).is_none(), "an n-gram twice");
            }
        }
        prop_assert_eq!(got, ngrams(&activations, k as usize));
    }
}
