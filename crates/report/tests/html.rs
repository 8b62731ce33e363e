//! The page for a browser: its data against the other reports', its size, and that nothing in a profile becomes markup.

mod support;

use std::collections::BTreeMap;

use borescope_paths::KIpf;
use borescope_profile::model::EdgeKind;
use borescope_profile::{MethodDetail, Profile};
use borescope_report::{
    HtmlOptions, JsonOptions, MOST_BYTES, Sources, TextOptions, html, json, text,
};
use serde_json::Value;
use support::*;

fn page_of(profile: &Profile, options: &HtmlOptions) -> String {
    let mut out = Vec::new();
    html(profile, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn page(profile: &Profile) -> String {
    page_of(profile, &HtmlOptions::default())
}

fn samples() -> Profile {
    let all = [
        leaf(),
        one_way(),
        worked_example(),
        figure_four(),
        handler_loop(),
        fixed_trips(),
        clamp(),
    ];
    profile(11, &all)
}

fn json_of(profile: &Profile) -> Value {
    let mut out = Vec::new();
    json(profile, &JsonOptions::default(), &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("no list: {value}"))
}

fn id(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

/// Every number of the page is one of the JSON report, or a sum of such.
fn agree(profile: &Profile) {
    let (data, report) = (page_data(&page(profile)), json_of(profile));
    let methods = list(&report["paths"]["methods"]);
    assert_eq!(list(&data["methods"]).len(), methods.len());
    assert_eq!(list(&data["details"]).len(), methods.len());
    assert_eq!(data["iterations"], report["paths"]["totals"]["ids"]);
    for (at, method) in methods.iter().enumerate() {
        let (row, detail) = (&data["methods"][at], &data["details"][at]);
        assert_eq!(detail["number"], at + 1);
        for field in [
            "class",
            "method",
            "descriptor",
            "source_file",
            "lines",
            "num_paths",
            "activations",
            "iterations",
            "unfinished",
            "exact",
            "paths_exact",
            "iterations_interval",
        ] {
            assert_eq!(row[field], method[field], "{field}");
        }
        assert_eq!(detail["paths"], method["paths"]);
        for chain in list(&detail["chains"]) {
            assert!(list(&method["chains"]).contains(chain), "{chain}");
        }
        sequences(detail, method);
        flow(detail, method);
        let mut lines: BTreeMap<u64, u64> = BTreeMap::new();
        for path in list(&method["paths"]) {
            let mut of: Vec<u64> = list(&path["lines"])
                .iter()
                .filter_map(Value::as_u64)
                .collect();
            of.sort_unstable();
            of.dedup();
            of.iter().for_each(|&line| {
                *lines.entry(line).or_default() += path["count"].as_u64().unwrap()
            });
        }
        let lines: Vec<(u64, u64)> = lines.into_iter().collect();
        assert_eq!(detail["lines"], serde_json::to_value(lines).unwrap());
    }
}

/// The trees' nodes are the JSON report's sequences.
fn sequences(detail: &Value, method: &Value) {
    let mut counted: BTreeMap<Vec<u64>, (u64, u64, Option<u64>)> = BTreeMap::new();
    for gram in list(&method["ngrams"]) {
        let ids = list(&gram["ids"]).iter().map(id).collect();
        let number = |name: &str| gram[name].as_u64().unwrap();
        counted.insert(ids, (number("count"), number("lo"), gram["hi"].as_u64()));
    }
    let exact = method["exact"] == true;
    for tree in list(&detail["trees"]) {
        let floor = tree["floor"].as_u64().unwrap();
        let mut known: Vec<Vec<u64>> = Vec::new();
        for node in list(&tree["nodes"]) {
            let parent = node[0].as_i64().unwrap();
            let mut ids = usize::try_from(parent).map_or(Vec::new(), |at| known[at].clone());
            ids.push(node[1].as_u64().unwrap());
            let count = node[2].as_u64().unwrap();
            match ids.as_slice() {
                [root] => {
                    let path = list(&method["paths"])
                        .iter()
                        .find(|p| id(&p["id"]) == *root);
                    assert_eq!(path.unwrap()["count"], count);
                }
                _ => {
                    let (all, lo, hi) = counted[&ids];
                    assert_eq!(count, all, "{ids:?}");
                    match exact {
                        true => assert_eq!(list(node).len(), 3),
                        false => assert_eq!((node[3].as_u64(), node[4].as_u64()), (Some(lo), hi)),
                    }
                }
            }
            known.push(ids);
        }
        // Nothing above the floor is missing.
        for (ids, &(count, ..)) in &counted {
            assert!(
                ids[0] != known[0][0] || count <= floor || known.contains(ids),
                "{ids:?}"
            );
        }
    }
}

/// The picture adds up: what leads into a stretch of code or begins there is what runs it, and so is what leads out or ends there.
fn flow(detail: &Value, method: &Value) {
    let blocks = list(&detail["flow"]["blocks"]);
    let number = |value: &Value| value.as_u64().unwrap();
    let paths = list(&method["paths"]);
    let inside = |path: &Value, block: &Value| {
        list(&path["bcis"]).iter().any(|r| {
            number(&r[0]) <= number(&block["bcis"][0]) && number(&block["bcis"][1]) <= number(&r[1])
        })
    };
    let total = |of: &dyn Fn(&Value) -> bool| -> u64 {
        paths
            .iter()
            .filter(|p| of(p))
            .map(|p| number(&p["count"]))
            .sum()
    };
    for (at, block) in blocks.iter().enumerate() {
        assert_eq!(block["count"], total(&|p| inside(p, block)), "{block}");
        let edges = |end: &str, forward: bool| -> u64 {
            let with = |e: &&Value| e[end] == at && (e["kind"] == "forward") == forward;
            list(&detail["flow"]["edges"])
                .iter()
                .filter(with)
                .map(|e| number(&e["count"]))
                .sum()
        };
        // Its lines are those that run whenever it does, and never else.
        let mut same: Vec<u64> = paths
            .iter()
            .flat_map(|p| list(&p["lines"]))
            .map(number)
            .collect();
        same.sort_unstable();
        same.dedup();
        same.retain(|line| {
            paths
                .iter()
                .all(|p| inside(p, block) == list(&p["lines"]).iter().any(|l| number(l) == *line))
        });
        assert_eq!(block["lines"], serde_json::to_value(same).unwrap());
        let starts = total(&|p| p["bcis"][0][0] == block["bcis"][0]);
        let ends = total(&|p| {
            list(&p["bcis"])
                .last()
                .is_some_and(|r| r[1] == block["bcis"][1])
        });
        assert_eq!(
            edges("to", true) + starts,
            number(&block["count"]),
            "{block}"
        );
        assert_eq!(
            edges("from", true) + ends,
            number(&block["count"]),
            "{block}"
        );
        let left = number(&block["returns"]) + number(&block["throws"]) + number(&block["turns"]);
        assert!(edges("from", false) + left <= ends, "{block}");
    }
}

#[test]
fn the_page_says_what_the_json_report_says() {
    agree(&samples());
    // Bounds instead of counts.
    agree(&rebuilt(&samples(), |manifest, methods, _| {
        manifest.lost = 7;
        methods
            .iter_mut()
            .for_each(|m| (m.exact, m.paths_exact) = (false, false));
    }));
    agree(&profile(1, &[worked_example(), handler_loop()]));
}

#[test]
fn the_page_uses_the_sentences_of_the_text_report() {
    let profile = samples();
    let mut out = Vec::new();
    let wide = TextOptions {
        width: 10_000,
        ..TextOptions::default()
    };
    text(&profile, &wide, &mut out).unwrap();
    let said = String::from_utf8(out).unwrap();
    let data = page_data(&page(&profile));
    let plain = |value: &Value| value.as_str().unwrap().replace('\u{a0}', " ");
    let leads = said.split_once("LOOK HERE FIRST\n").unwrap().1;
    let leads: Vec<&str> = leads
        .lines()
        .map_while(|line| line.strip_prefix("  - "))
        .collect();
    assert!(!leads.is_empty());
    let mine: Vec<String> = list(&data["first"])
        .iter()
        .map(|one| plain(&one["text"]))
        .collect();
    assert_eq!(mine, leads);
    for text in list(&data["about"]).iter().chain(list(&data["notes"])) {
        assert!(said.contains(&plain(text)), "{text}");
    }
    for detail in list(&data["details"]) {
        let words = &detail["words"];
        let stories = list(&words["chains"]).iter().flat_map(list);
        let texts = list(&words["findings"])
            .iter()
            .chain(stories)
            .chain([&words["facts"]]);
        for text in texts {
            assert!(said.contains(&plain(text)), "{text}");
        }
    }
}

#[test]
fn estimates_and_lower_bounds_are_labelled() {
    let lower = rebuilt(&samples(), |manifest, methods, _| {
        manifest.lost = 7;
        methods
            .iter_mut()
            .for_each(|m| (m.exact, m.paths_exact) = (false, false));
    });
    let data = page_data(&page(&lower));
    assert!(data["about"].to_string().contains("Lower bounds: "));
    let row = &data["methods"][0];
    assert!(
        row["words"]["iterations"]
            .as_str()
            .unwrap()
            .starts_with(">= ")
    );
    let detail = &data["details"][0]["words"];
    assert!(detail["doubt"].as_str().unwrap().contains("lower bounds"));
    assert!(detail["paths"][0][0].as_str().unwrap().starts_with(">= "));

    let estimated = burst();
    agree(&estimated);
    let data = page_data(&page(&estimated));
    assert!(
        data["about"]
            .to_string()
            .contains("Estimates: one in 64 calls")
    );
    let of = |estimated: bool| {
        let methods = list(&data["methods"]);
        let at = methods
            .iter()
            .position(|m| m["estimated"] == estimated)
            .unwrap();
        (&data["methods"][at], &data["details"][at])
    };
    let (row, detail) = of(true);
    assert!(
        row["words"]["iterations"]
            .as_str()
            .unwrap()
            .starts_with('~')
    );
    assert!(
        detail["words"]["paths"][0][0]
            .as_str()
            .unwrap()
            .contains(" to")
            || detail["words"]["paths"][0][0]
                .as_str()
                .unwrap()
                .contains("\u{a0}to")
    );
    assert!(
        !of(false).0["words"]["iterations"]
            .as_str()
            .unwrap()
            .contains('~')
    );
}

/// Class, method and file names, the command and source text are untrusted.
#[test]
fn names_stay_text() {
    let evil = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>{{data}}&amp;\"'";
    let dir = tempfile::tempdir().unwrap();
    let options = HtmlOptions {
        source: Sources::open(&[dir.path().to_owned()]).unwrap(),
        ..HtmlOptions::default()
    };
    let clean = samples();
    std::fs::write(dir.path().join("Worked.java"), "harmless\n".repeat(40)).unwrap();
    let harmless = page_of(&clean, &options);
    let changed = rebuilt(&clean, |manifest, methods, list| {
        manifest.target.command = evil.to_owned();
        manifest.notices = vec![evil.to_owned()];
        for m in methods.iter_mut() {
            m.class = format!("demo.{evil}");
            m.method = evil.to_owned();
            m.descriptor = evil.to_owned();
        }
        list.push(skipped(evil, evil, evil, evil));
    });
    std::fs::write(
        dir.path().join("Worked.java"),
        format!("{evil}\n").repeat(40),
    )
    .unwrap();
    let page = page_of(&changed, &options);
    stays_text(&page, &harmless);
    assert!(page.contains("<title>&lt;/script&gt;"));
    let data = page_data(&page);
    assert_eq!(data["methods"][0]["method"], evil);
    assert_eq!(data["command"], evil);
    assert!(data["notes"].to_string().contains("onerror"));
    let source = list(&data["details"])
        .iter()
        .find(|d| !d["source"].is_null())
        .unwrap();
    assert_eq!(source["source"]["lines"][0], evil);
}

#[test]
fn source_text_is_that_of_the_method() {
    let dir = tempfile::tempdir().unwrap();
    let file: String = (1..60).map(|line| format!("\tline {line}\n")).collect();
    std::fs::write(dir.path().join("Worked.java"), file).unwrap();
    let options = HtmlOptions {
        source: Sources::open(&[dir.path().to_owned()]).unwrap(),
        ..HtmlOptions::default()
    };
    let data = page_data(&page_of(&profile(4, &[worked_example()]), &options));
    let source = &data["details"][0]["source"];
    assert_eq!(source["from"], 7);
    let lines = list(&source["lines"]);
    assert_eq!(lines.len(), 17);
    assert_eq!(lines[0], "    line 7");
}

#[test]
fn the_same_profile_gives_the_same_page() {
    assert_eq!(page(&samples()), page(&samples()));
}

/// Many methods with long names, and one with as many sequences as there are.
fn huge() -> Profile {
    let leafs: Vec<Sample> = (0..20_000).map(|_| leaf()).collect();
    let small = profile(2, &leafs);
    let mut details: BTreeMap<u32, MethodDetail> = BTreeMap::new();
    let mut methods = small.methods().to_vec();
    let paths: Vec<_> = (0..1_200u32)
        .map(|id| {
            let bcis = [(0, 4), (4 + id * 4, 8 + id * 4), (40_000, 40_004)];
            let lines: Vec<u16> = (0..40).map(|n| n + id as u16).collect();
            let mut path = path((id, &lines, &bcis, 'l', EdgeKind::Back));
            path.count = 1_000_000 - u64::from(id);
            path
        })
        .collect();
    let mut kipf = KIpf::new(2).unwrap();
    for path in &paths {
        kipf.add_ngram(&[path.id], path.count).unwrap();
        for next in 0..8 {
            kipf.add_ngram(&[path.id, (path.id + next) % 1_200], 40_000)
                .unwrap();
        }
    }
    for m in &mut methods {
        m.class = format!("{}.Class{}", "verylongpackage".repeat(30), m.index);
        let big = m.index < 60;
        if big {
            m.ids = paths.iter().map(|p| p.count).sum::<u64>() + 1_000 - u64::from(m.index);
            m.paths = paths.len() as u64;
        }
        let detail = match big {
            true => MethodDetail {
                paths: paths.clone(),
                kipf: kipf.clone(),
                merged: Vec::new(),
            },
            false => small.detail(m.index).unwrap(),
        };
        details.insert(m.index, detail);
    }
    let notices = vec!["long ".repeat(20_000); 20];
    let mut manifest = small.manifest().clone();
    manifest.notices = notices;
    manifest.target.command = "argument ".repeat(10_000);
    Profile::from_parts(manifest, methods, Vec::new(), details)
}

#[test]
fn a_page_has_at_most_five_megabytes() {
    let page = page(&huge());
    assert!(page.len() <= MOST_BYTES, "{}", page.len());
    let data = page_data(&page);
    let (rows, details) = (list(&data["methods"]).len(), list(&data["details"]).len());
    assert!(
        rows > 500 && rows < 20_000 && details > 5 && details < 200,
        "{rows} {details}"
    );
    let folded = data["folded"].to_string();
    assert!(
        folded.contains(&format!("the {details}\u{a0}hottest methods of 20,000")),
        "{folded}"
    );
    assert!(
        folded.contains("hottest methods of 20,000 that ran; the others have"),
        "{folded}"
    );
    let detail = &data["details"][0];
    assert!(
        detail["words"]["folded"]
            .to_string()
            .contains("1,100\u{a0}more paths")
    );
    assert!(detail["flow"]["paths"].as_u64().unwrap() < 1_200);
}

#[test]
fn nothing_to_show() {
    let data = page_data(&page(&profile(4, &[])));
    assert!(
        data["nothing"]
            .to_string()
            .contains("Nothing was instrumented")
    );
    assert_eq!(list(&data["methods"]).len(), 0);
    let options = HtmlOptions {
        method: Some(borescope_report::MethodGlob::new("nowhere.*")),
        ..HtmlOptions::default()
    };
    let data = page_data(&page_of(&samples(), &options));
    assert!(
        data["nothing"]
            .to_string()
            .contains("No method that ran matches")
    );
    let options = HtmlOptions {
        top: Some(2),
        ..HtmlOptions::default()
    };
    let data = page_data(&page_of(&samples(), &options));
    assert_eq!(
        (list(&data["details"]).len(), list(&data["methods"]).len()),
        (2, 7)
    );
}
