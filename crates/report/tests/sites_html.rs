//! The page of a profile of allocation sites: its data against the JSON report, its size, and that names stay text.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use borescope_profile::Existing;
use borescope_profile::sites::{Profile, seal};
use borescope_report::sites::{html, json, text};
use borescope_report::{HtmlOptions, JsonOptions, MOST_BYTES, Sources, TextOptions};
use borescope_spool::meta::Record;
use borescope_spool::sites::{Cause, MethodName, Site, SiteClass, SiteKind};
use borescope_spool::snapshot::Origin;
use borescope_spool::testing::sites::{Heap, Live, shop, shop_heap, spare, target};
use serde_json::Value;
use support::{page_data, stays_text};

fn sealed(dir: &Path) -> Profile {
    let out = dir.join("p");
    seal(&dir.join("spool"), &out, Existing::Replace).unwrap();
    Profile::open(&out).unwrap()
}

/// A shop of this many cached requests at each snapshot.
fn shop_at(requests: &[usize], causes: &[Cause]) -> (tempfile::TempDir, Profile) {
    let tmp = tempfile::tempdir().unwrap();
    let mut heap = shop(&tmp.path().join("spool"));
    for (&requests, &cause) in requests.iter().zip(causes) {
        heap.snapshot(cause, &shop_heap(requests), false);
    }
    let profile = sealed(tmp.path());
    (tmp, profile)
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

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Objects and bytes by line of the application (else of the site), type and allocation site.
type Sums = BTreeMap<(String, u64, String), (u64, u64)>;

/// Of a snapshot in the JSON report.
fn of_json(snapshot: &Value) -> Sums {
    let mut sums = Sums::new();
    for site in list(&snapshot["sites"]) {
        let app = |own: &str, app: &str| match &site[app] {
            Value::Null => site[own].clone(),
            found => found.clone(),
        };
        let class = app("class", "app_class").as_str().unwrap().to_owned();
        let ty = site["type"].as_str().unwrap().to_owned();
        let sum = sums
            .entry((class, number(&app("line", "app_line")), ty))
            .or_default();
        sum.0 += number(&site["live_objects"]);
        sum.1 += number(&site["live_bytes"]);
    }
    sums
}

/// Of a snapshot in the page, by its place in the list.
fn of_page(data: &Value, at: usize) -> Sums {
    let mut sums = Sums::new();
    for line in list(&data["lines"]) {
        for part in list(&line["parts"]) {
            let class = line["class"].as_str().unwrap().to_owned();
            let ty = part["type"].as_str().unwrap().to_owned();
            let sum = sums.entry((class, number(&line["line"]), ty)).or_default();
            sum.0 += number(&part["objects"][at]);
            sum.1 += number(&part["bytes"][at]);
        }
    }
    sums.retain(|_, sum| *sum != (0, 0));
    sums
}

#[test]
fn the_page_says_what_the_other_reports_say() {
    let causes = [
        Cause::Interval,
        Cause::Interval,
        Cause::OutOfMemory,
        Cause::Exit,
    ];
    let (_tmp, profile) = shop_at(&[10, 400, 1000, 2], &causes);
    let data = page_data(&page_of(&profile, &HtmlOptions::default()));
    let (mut report, mut said) = (Vec::new(), Vec::new());
    json(&profile, &JsonOptions::default(), &mut report).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let snapshots = list(&report["sites"]["snapshots"]);
    assert_eq!(list(&data["snapshots"]).len(), 4);
    for (at, (mine, theirs)) in list(&data["snapshots"]).iter().zip(snapshots).enumerate() {
        for field in [
            "number",
            "took_ms",
            "live_only",
            "live_objects",
            "live_bytes",
            "with_site_bytes",
            "with_app_bytes",
        ] {
            assert_eq!(mine[field], theirs[field], "{field}");
        }
        for unknown in list(&mine["unknown"]) {
            let reason = unknown["reason"].as_str().unwrap();
            assert_eq!(unknown["objects"], theirs["unknown_reasons"][reason]);
            assert_eq!(unknown["bytes"], theirs["unknown_reason_bytes"][reason]);
        }
        assert_eq!(of_page(&data, at), of_json(theirs));
    }
    // The report is about the snapshot at the OutOfMemoryError and the growth since the first.
    assert_eq!((&data["first"], &data["last"]), (&0.into(), &2.into()));
    let wide = TextOptions {
        width: 10_000,
        ..TextOptions::default()
    };
    text(&profile, &wide, &mut said).unwrap();
    let said = String::from_utf8(said).unwrap();
    let lead = data["leads"][0]["text"]
        .as_str()
        .unwrap()
        .replace('\u{a0}', " ");
    assert!(
        said.contains(&format!("LOOK HERE FIRST\n  - {lead}\n")),
        "{lead}"
    );
    let line = number(&data["leads"][0]["line"]) as usize;
    assert_eq!(
        data["lines"][line]["name"],
        "acme.Cache.load (Cache.java:42)"
    );
    assert_eq!(data["rest"], Value::Null);
}

#[test]
fn one_snapshot_none_and_many() {
    let (_tmp, profile) = shop_at(&[100], &[Cause::Exit]);
    let data = page_data(&page_of(&profile, &HtmlOptions::default()));
    assert_eq!((&data["first"], &data["last"]), (&Value::Null, &0.into()));
    assert!(
        data["leads"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("acme.Cache.load (Cache.java:42) allocated ")
    );

    let (_tmp, profile) = shop_at(&[], &[]);
    let data = page_data(&page_of(&profile, &HtmlOptions::default()));
    assert!(
        data["nothing"]
            .to_string()
            .contains("No snapshot was taken")
    );

    let many: Vec<usize> = (1..=60).collect();
    let (_tmp, profile) = shop_at(&many, &[Cause::Interval; 60]);
    let data = page_data(&page_of(&profile, &HtmlOptions::default()));
    let numbers: Vec<u64> = list(&data["snapshots"])
        .iter()
        .map(|s| number(&s["number"]))
        .collect();
    assert!(
        numbers.len() <= 24 && numbers[0] == 1 && numbers.ends_with(&[60]),
        "{numbers:?}"
    );
    assert!(
        data["folded"]
            .to_string()
            .contains("of 60 snapshots are here")
    );
}

#[test]
fn source_text_and_lines_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let file: String = (1..60).map(|line| format!("\tcode of {line}\n")).collect();
    std::fs::create_dir(dir.path().join("acme")).unwrap();
    std::fs::write(dir.path().join("acme/Cache.java"), file).unwrap();
    let (_tmp, profile) = shop_at(&[10, 20], &[Cause::Request, Cause::Exit]);
    let options = HtmlOptions {
        source: Sources::open(&[dir.path().to_owned()]).unwrap(),
        top: Some(1),
        ..HtmlOptions::default()
    };
    let data = page_data(&page_of(&profile, &options));
    let lines = list(&data["lines"]);
    assert_eq!((lines.len(), &lines[0]["line"]), (1, &42.into()));
    assert_eq!(lines[0]["source"]["from"], 38);
    assert_eq!(lines[0]["source"]["lines"][4], "    code of 42");
    let rest = &data["rest"];
    let listed: u64 = list(&lines[0]["parts"])
        .iter()
        .map(|p| number(&p["bytes"][1]))
        .sum();
    let with_site = number(&data["snapshots"][1]["with_site_bytes"]);
    assert_eq!(listed + number(&rest["bytes"][1]), with_site);
    assert!(
        data["folded"]
            .to_string()
            .contains("The table has 1\u{a0}line of 5")
    );
}

/// A heap of this many sites of a class each, whose names are made of `name`.
fn wide_heap(dir: &Path, sites: u16, name: &str) -> Profile {
    let mut heap = Heap::new(&dir.join("spool"), target(), spare());
    let site = |n: u16| Site {
        method: 0,
        bci: n,
        line: n + 1,
        kind: SiteKind::New,
        ty: format!("acme/{name}{n}"),
    };
    heap.record(&Record::SiteClass(SiteClass {
        name: format!("acme/{name}"),
        loader: "boot".into(),
        hash: 1,
        source_file: Some(format!("{name}.java")),
        jdk: false,
        first_site: 1,
        first_call: 0,
        methods: vec![MethodName {
            name: name.into(),
            descriptor: "()V".into(),
        }],
        sites: (0..sites).map(site).collect(),
        calls: vec![],
        skipped: vec![],
    }));
    let types: Vec<String> = (0..sites).map(|n| format!("Lacme/{name}{n};")).collect();
    let live: Vec<Live> = (1u32..)
        .zip(&types)
        .map(|(owner, ty)| (ty.as_str(), 16 + u64::from(owner), Origin::Owner(owner)))
        .collect();
    for _ in 0..6 {
        heap.snapshot(Cause::Interval, &live, false);
    }
    sealed(dir)
}

#[test]
fn a_page_has_at_most_five_megabytes() {
    let tmp = tempfile::tempdir().unwrap();
    let profile = wide_heap(tmp.path(), 9_000, &"Long".repeat(60));
    let all = HtmlOptions {
        top: Some(usize::MAX),
        ..HtmlOptions::default()
    };
    for options in [HtmlOptions::default(), all] {
        let page = page_of(&profile, &options);
        assert!(page.len() <= MOST_BYTES, "{}", page.len());
        let data = page_data(&page);
        let rest = number(&data["rest"]["count"]);
        assert_eq!(list(&data["lines"]).len() as u64 + rest, 9_000);
        assert!(rest > 0);
    }
    let again = HtmlOptions::default();
    assert_eq!(page_of(&profile, &again), page_of(&profile, &again));
}

#[test]
fn names_stay_text() {
    let evil = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>";
    let tmp = tempfile::tempdir().unwrap();
    let page = page_of(&wide_heap(tmp.path(), 3, evil), &HtmlOptions::default());
    let tmp = tempfile::tempdir().unwrap();
    let harmless = page_of(&wide_heap(tmp.path(), 3, "Fine"), &HtmlOptions::default());
    stays_text(&page, &harmless);
    let data = page_data(&page);
    assert!(
        data["lines"][0]["name"]
            .as_str()
            .unwrap()
            .contains("<img src=x onerror=alert(1)>")
    );
}
