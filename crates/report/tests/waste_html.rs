//! The page of a profile of wasteful memory operations: its data against the JSON report, its size, that names stay text, and the spool that tests/browser uses.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use borescope_profile::Existing;
use borescope_profile::waste::{Profile, seal};
use borescope_report::waste::{html, json, text};
use borescope_report::{HtmlOptions, JsonOptions, MOST_BYTES, MethodGlob, Sources, TextOptions};
use borescope_spool::meta::Record;
use borescope_spool::testing::sites::target;
use borescope_spool::testing::waste::{
    Ended, Sample, Samples, frames, ledger, ledger_methods, sample, software, spool,
};
use borescope_spool::waste::{Compiled, Method};
use borescope_waste::handler::table::Capacity;
use borescope_waste::{Frame, Miss, Source, Waste};
use serde_json::Value;
use support::{page_data, stays_text};

/// Seals the spool `from`.
fn sealed(from: &Path, tmp: &Path) -> Profile {
    let out = tmp.join("p");
    seal(from, &out, Existing::Replace).unwrap();
    Profile::open(&out).unwrap()
}

/// The spool that tests/browser uses, and its source files.
fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/waste")
}

fn page_of(profile: &Profile, options: &HtmlOptions) -> String {
    let mut out = Vec::new();
    html(profile, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("no list: {value}"))
}

fn number(value: &Value) -> usize {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no number: {value}")) as usize
}

const fn frame(method: u64, bci: i32) -> Frame {
    Frame {
        method: Frame::FIRST_METHOD + method,
        bci,
    }
}

/// A method whose bytecode has a line every ten instructions.
fn method(number: u64, name: &str, lines: &[u16]) -> Method {
    Method {
        number: Frame::FIRST_METHOD + number,
        name: name.into(),
        descriptor: "()V".into(),
        lines: (0..).step_by(10).zip(lines.iter().copied()).collect(),
        accesses: None,
    }
}

/// The ledger, whose sums are called by reports, the parts of reports by themselves; and one pair with more contexts than a page has of a pair.
fn bookkeeping(dir: &Path) {
    const PRINT: Frame = frame(4, 0);
    const PART: Frame = frame(5, 0);
    const AUDIT: Frame = frame(6, 0);
    let mut samples = Samples::new(Capacity::new(512, 256).unwrap(), Source::Software);
    samples.missed(Miss::NotCompiled, 100);
    let mut add = |times: usize, of: Sample| (0..times).for_each(|_| samples.add(&of));
    let below = |callers: &[Frame], of: Sample| {
        let leaf = |frames: &[Frame]| [callers, &frames[frames.len() - 1..]].concat();
        Sample {
            first: leaf(&of.first),
            second: leaf(&of.second),
            ..of
        }
    };
    use frames::{LOAD, MAIN, RUN, STORE, STORE_AGAIN, UNNAMED};
    let dead = || sample(Waste::DeadStore, STORE, STORE_AGAIN);
    let silent = || sample(Waste::SilentLoad, LOAD, LOAD);
    add(40, dead());
    add(
        10,
        Sample {
            ended: Ended::Useful,
            ..dead()
        },
    );
    add(9, below(&[MAIN, AUDIT], dead()));
    add(60, silent());
    add(
        50,
        Sample {
            ended: Ended::Useful,
            ..silent()
        },
    );
    for depth in 1..=14 {
        let callers = [vec![MAIN, PRINT], vec![PART; depth]].concat();
        add(15 - depth, below(&callers, silent()));
    }
    // The two accesses have other callers.
    let of = silent();
    add(
        8,
        Sample {
            first: vec![MAIN, RUN, LOAD],
            second: vec![MAIN, PRINT, PART, LOAD],
            ..of
        },
    );
    add(2, sample(Waste::SilentLoad, LOAD, UNNAMED));
    add(6, sample(Waste::SilentStore, STORE_AGAIN, STORE_AGAIN));
    add(
        5,
        Sample {
            initialising: true,
            ..sample(Waste::SilentStore, STORE, STORE)
        },
    );
    let mut records = ledger_methods();
    records.push(Record::Compiled(Compiled {
        class: "acme/Report".into(),
        source_file: Some("Report.java".into()),
        methods: vec![
            method(4, "print", &[11]),
            method(5, "part", &[17]),
            method(6, "audit", &[25]),
        ],
    }));
    records.push(Record::Ended {
        at_ms: target().started + 12_345,
    });
    spool(dir, software(), &records, &samples);
}

/// `UPDATE_GOLDEN=1` writes it anew.
#[test]
fn the_recorded_spool_is_what_an_agent_would_leave_now() {
    let tmp = tempfile::tempdir().unwrap();
    bookkeeping(tmp.path());
    for name in ["meta.log", "waste.bin"] {
        let file = recorded().join(name);
        let now = std::fs::read(tmp.path().join(name)).unwrap();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &now).unwrap();
        }
        assert!(std::fs::read(&file).unwrap() == now, "{name} differs");
    }
}

/// Frames of a context in the page, the innermost first, as class, method and line.
fn chain(data: &Value, context: &Value) -> Vec<Value> {
    let mut names = Vec::new();
    let mut at = context.as_i64().unwrap();
    while at >= 0 {
        let row = &data["contexts"][at as usize];
        let frame = &data["frames"][number(&row[1])];
        let line = frame["line"].as_u64().unwrap_or(0);
        names.push(serde_json::json!([frame["class"], frame["method"], line]));
        at = row[0].as_i64().unwrap();
    }
    names
}

#[test]
fn the_page_says_what_the_other_reports_say() {
    let tmp = tempfile::tempdir().unwrap();
    let profile = sealed(&recorded(), tmp.path());
    let data = page_data(&page_of(&profile, &HtmlOptions::default()));
    let (mut report, mut said) = (Vec::new(), Vec::new());
    json(&profile, &JsonOptions::default(), &mut report).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let theirs = list(&report["waste"]["pairs"]);
    let pairs = list(&data["pairs"]);
    assert_eq!(pairs.len(), number(&theirs.last().unwrap()["rank"]));
    for pair in pairs {
        let same: Vec<&Value> = theirs
            .iter()
            .filter(|one| one["rank"] == pair["rank"])
            .collect();
        for (mine, field) in [
            ("kind", "kind"),
            ("type", "type"),
            ("count", "lines_count"),
            ("share", "lines_share"),
            ("share_lo", "lines_share_lo"),
            ("share_hi", "lines_share_hi"),
            ("initialising", "initialising"),
            ("first_instruction", "first_instruction"),
            ("second_instruction", "second_instruction"),
        ] {
            assert_eq!(pair[mine], same[0][field], "{mine}");
        }
        let hint = pair["words"]["hint"].as_str().unwrap().to_lowercase();
        let their = same[0]["hint"].as_str().unwrap().to_lowercase();
        assert_eq!(hint, format!("{their}."));
        // The contexts are those of the report, or counted as left out.
        let contexts = list(&pair["contexts"]);
        let mut sum = 0;
        for context in contexts {
            sum += number(&context[2]);
            let sides = ["first", "second"];
            let found = same.iter().any(|one| {
                let same_side = |(at, side): (usize, &str)| {
                    let frames = list(&one[side]).iter();
                    let frames =
                        frames.map(|f| serde_json::json!([f["class"], f["method"], f["line"]]));
                    frames.collect::<Vec<_>>() == chain(&data, &context[at])
                };
                one["count"] == context[2] && sides.into_iter().enumerate().all(same_side)
            });
            assert!(found, "{context} of {pair}");
        }
        if pair["more"] != Value::Null {
            sum += number(&pair["more"][1]);
        }
        assert_eq!(sum, number(&pair["count"]));
        let left_out = pair["more"][0].as_u64().unwrap_or(0) as usize;
        assert_eq!(contexts.len() + left_out, same.len());
    }
    assert!(pairs.iter().any(|pair| pair["more"] != Value::Null));
    // Both reports say the same first, and that shares are estimates.
    let wide = TextOptions {
        width: 10_000,
        ..TextOptions::default()
    };
    text(&profile, &wide, &mut said).unwrap();
    let said = String::from_utf8(said).unwrap();
    for lead in list(&data["leads"]).iter().take(3) {
        let lead = lead["text"].as_str().unwrap().replace('\u{a0}', " ");
        assert!(said.contains(&format!("\n  - {lead}\n")), "{lead}");
    }
    assert_eq!(data["leads"][0]["pair"], 0);
    let estimates = data["estimates"].as_str().unwrap();
    assert!(estimates.contains("All shares are estimates.") && said.contains(estimates));
    assert!(said.contains(&data["new_objects"].as_str().unwrap().replace('\u{a0}', " ")));
    assert_eq!(list(&data["kinds"]).len(), 3);
    assert_eq!(list(&data["samples"]).len(), 3);
    assert_eq!(list(&data["folded"]).len(), 0);
}

#[test]
fn flame_graphs_have_all_samples_of_their_kind() {
    let tmp = tempfile::tempdir().unwrap();
    let data = page_data(&page_of(
        &sealed(&recorded(), tmp.path()),
        &HtmlOptions::default(),
    ));
    let mut of_kind: BTreeMap<&str, usize> = BTreeMap::new();
    for pair in list(&data["pairs"]) {
        if pair["initialising"] == false {
            *of_kind.entry(pair["kind"].as_str().unwrap()).or_default() += number(&pair["count"]);
        }
    }
    for flame in list(&data["flames"]) {
        let kind = flame["kind"].as_str().unwrap();
        let nodes = list(&flame["nodes"]);
        assert_eq!(
            (nodes[0][0].as_i64(), nodes[0][1].as_i64()),
            (Some(-1), Some(-1))
        );
        assert_eq!(number(&nodes[0][2]), of_kind[kind], "{kind}");
        let mut callees = vec![0; nodes.len()];
        for (at, node) in nodes.iter().enumerate().skip(1) {
            let caller = number(&node[0]);
            assert!(caller < at && number(&node[1]) < list(&data["frames"]).len());
            callees[caller] += number(&node[2]);
        }
        for (node, sum) in nodes.iter().zip(&callees) {
            assert!(number(&node[2]) >= *sum);
        }
        assert_eq!(
            callees[0], of_kind[kind],
            "{kind}: all is called by something"
        );
        assert_eq!(flame["folded"], 0);
    }
    // `post` was reached on two ways: 40 times in run, 9 times in audit.
    let dead = &data["flames"][0]["nodes"];
    let name = |at: usize| {
        let frame = &data["frames"][number(&dead[at][1])];
        format!("{} {}", frame["method"].as_str().unwrap(), dead[at][2])
    };
    let names: Vec<String> = (1..list(dead).len()).map(name).collect();
    assert_eq!(names, ["main 49", "run 40", "post 40", "audit 9", "post 9"]);
}

#[test]
fn source_text_parts_and_pairs_left_out() {
    let tmp = tempfile::tempdir().unwrap();
    let profile = sealed(&recorded(), tmp.path());
    let options = HtmlOptions {
        source: Sources::open(&[recorded()]).unwrap(),
        top: Some(1),
        ..HtmlOptions::default()
    };
    let data = page_data(&page_of(&profile, &options));
    assert_eq!(list(&data["pairs"]).len(), 1);
    assert!(
        data["folded"]
            .to_string()
            .contains("The table has 1\u{a0}pair of lines of 5.")
    );
    let frame = &data["frames"][number(&data["pairs"][0]["first"])];
    let at = number(&frame["line"]) - number(&frame["source"]["from"]);
    let line = frame["source"]["lines"][at].as_str().unwrap();
    assert!(
        line.contains("balance = 0;") || line.contains("sum += values[i];"),
        "{line}"
    );

    let options = HtmlOptions {
        method: Some(MethodGlob::new("*.sum")),
        ..HtmlOptions::default()
    };
    let data = page_data(&page_of(&profile, &options));
    let silent = |pair: &&Value| pair["kind"] == "silent_load";
    assert_eq!(list(&data["pairs"]).iter().filter(silent).count(), 2);
    assert_eq!(list(&data["pairs"]).len(), 2);
    assert_eq!(list(&data["flames"][0]["nodes"]).len(), 1);
    assert!(
        list(&data["frames"])
            .iter()
            .all(|frame| frame["source"].is_null())
    );

    let options = HtmlOptions {
        method: Some(MethodGlob::new("Nobody")),
        ..HtmlOptions::default()
    };
    let data = page_data(&page_of(&profile, &options));
    let none = data["none"].as_str().unwrap();
    assert_eq!(none, "No wasteful pair has a line that matches Nobody.");
}

#[test]
fn nothing_completed_is_explained() {
    let tmp = tempfile::tempdir().unwrap();
    let mut samples = Samples::new(Capacity::new(16, 8).unwrap(), Source::Software);
    samples.missed(Miss::NotCompiled, 50);
    spool(
        &tmp.path().join("s"),
        software(),
        &ledger_methods(),
        &samples,
    );
    let profile = sealed(&tmp.path().join("s"), tmp.path());
    let data = page_data(&page_of(&profile, &HtmlOptions::default()));
    assert!(data["nothing"].to_string().contains("-Xint"), "{data}");
    assert_eq!(data["pairs"], Value::Null);
}

/// A program of this many pairs of lines below as many callers, with names made of `name`.
fn wide(dir: &Path, pairs: u64, name: &str) -> Profile {
    let capacity = Capacity::new(1 << 17, 1 << 15).unwrap();
    let mut samples = Samples::new(capacity, Source::Software);
    let mut methods = Vec::new();
    for at in 0..pairs {
        for (number, what) in [(2 * at, "caller"), (2 * at + 1, "callee")] {
            let name = format!("{name}{what}{at}");
            methods.push(method(number, &name, &[1, 2, 3]));
        }
        let stack = |bci| vec![frame(0, 0), frame(2 * at, 0), frame(2 * at + 1, bci)];
        let sample = Sample::new(Waste::DeadStore, stack(0), stack(10));
        (0..1 + at % 3).for_each(|_| samples.add(&sample));
    }
    let class = |methods: &[Method]| {
        Record::Compiled(Compiled {
            class: format!("acme/{name}"),
            source_file: Some("Wide.java".into()),
            methods: methods.to_vec(),
        })
    };
    let records: Vec<Record> = methods.chunks(100).map(class).collect();
    spool(&dir.join("s"), software(), &records, &samples);
    sealed(&dir.join("s"), dir)
}

#[test]
fn a_page_has_at_most_five_megabytes() {
    let tmp = tempfile::tempdir().unwrap();
    let profile = wide(tmp.path(), 6_000, &"Long".repeat(30));
    let all = HtmlOptions {
        top: Some(usize::MAX),
        ..HtmlOptions::default()
    };
    for options in [HtmlOptions::default(), all] {
        let page = page_of(&profile, &options);
        assert!(page.len() <= MOST_BYTES, "{}", page.len());
        let data = page_data(&page);
        let pairs = list(&data["pairs"]);
        assert_eq!(profile.pairs().len(), 6_000);
        assert!(pairs.len() > 100 && pairs.len() < 6_000, "{}", pairs.len());
        let folded = data["folded"].to_string();
        assert!(folded.contains(" of 6,000."), "{folded}");
        let flame = &data["flames"][0];
        assert!(
            folded.contains("The flame graph of dead stores is without"),
            "{folded}"
        );
        // All frames are there or said not to be: the first, and of each pair a caller and what it calls.
        assert!(list(&flame["nodes"]).len() > 1_000);
        let there = list(&flame["nodes"]).len() - 1 + number(&flame["folded"]);
        assert_eq!(there, 1 + 2 * 6_000);
        for pair in pairs {
            assert_ne!(pair["first"], pair["second"]);
        }
    }
    let again = HtmlOptions::default();
    assert_eq!(page_of(&profile, &again), page_of(&profile, &again));
}

#[test]
fn names_stay_text() {
    let evil = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>";
    let tmp = tempfile::tempdir().unwrap();
    let page = page_of(&wide(tmp.path(), 3, evil), &HtmlOptions::default());
    let tmp = tempfile::tempdir().unwrap();
    let harmless = page_of(&wide(tmp.path(), 3, "Fine"), &HtmlOptions::default());
    stays_text(&page, &harmless);
    let data = page_data(&page);
    assert!(
        data["frames"]
            .to_string()
            .contains("<img src=x onerror=alert(1)>")
    );
}

#[test]
fn the_same_spool_gives_the_same_page() {
    let tmp = tempfile::tempdir().unwrap();
    ledger(&tmp.path().join("s"), 40);
    let page = || {
        page_of(
            &sealed(&tmp.path().join("s"), tmp.path()),
            &HtmlOptions::default(),
        )
    };
    assert_eq!(page(), page());
}
