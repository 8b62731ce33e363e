//! What a person reads, as whole texts: see golden/. `UPDATE_GOLDEN=1 cargo test -p borescope-report` writes them anew, to be read.

mod support;

use borescope_profile::Profile;
use borescope_report::{MethodGlob, Sources, TextOptions, text};
use support::*;

fn rendered(profile: &Profile, options: &TextOptions) -> String {
    let mut out = Vec::new();
    text(profile, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn golden(name: &str, profile: &Profile, options: &TextOptions) {
    let got = rendered(profile, options);
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &got).unwrap();
    }
    let want = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(got == want, "{name} differs:\n{got}");
}

fn all() -> Profile {
    let samples = [
        leaf(),
        one_way(),
        worked_example(),
        figure_four(),
        handler_loop(),
        fixed_trips(),
        clamp(),
    ];
    rebuilt(&profile(11, &samples), |manifest, _, skipped_list| {
        manifest.totals.methods += 2;
        manifest.totals.straight_line = 2_311;
        let reason = "method would grow past 8,000 bytes (never compiled)";
        for n in 0..5 {
            skipped_list.push(skipped(&format!("demo.Big{n}"), "run", "(I)V", reason));
        }
        skipped_list.push(skipped(
            "demo.Main$$Lambda/0x00007f",
            "",
            "",
            "hidden class: not visible to agents",
        ));
        manifest.totals.skipped = 6;
    })
}

/// No number of an estimated method stands without its mark.
#[test]
fn estimates() {
    golden("burst.txt", &burst(), &TextOptions::default());
}

#[test]
fn everything() {
    golden("all.txt", &all(), &TextOptions::default());
}

#[test]
fn worked_example_of_the_seed() {
    golden(
        "worked.txt",
        &profile(4, &[worked_example()]),
        &TextOptions::default(),
    );
}

/// Options for reading a part of the text.
fn wide() -> TextOptions {
    TextOptions {
        width: 500,
        ..TextOptions::default()
    }
}

fn with_manifest(change: impl FnOnce(&mut borescope_profile::Manifest)) -> String {
    let changed = rebuilt(&profile(4, &[worked_example()]), |manifest, _, _| {
        change(manifest)
    });
    rendered(&changed, &wide())
}

#[test]
fn every_doubt_is_in_the_first_lines() {
    let has = |text: &str, words: &str| {
        let head: String = text.lines().take(6).collect::<Vec<_>>().join("\n");
        assert!(head.contains(words), "{words:?} not in {head}");
        assert!(!head.contains("Exact:"), "{head}");
    };
    has(
        &with_manifest(|m| (m.stopped, m.lost) = (Some("memory limit reached".into()), 14)),
        "memory limit reached, so sequences not seen before then are missing: 14 iterations (50 %) could not be counted.",
    );
    has(
        &with_manifest(|m| m.lost = 1_234),
        "1,234 iterations (99 %) could not be counted.",
    );
    has(
        &with_manifest(|m| m.counters_torn = Some("cut at 99".into())),
        "a part of the counters could not be read (cut at 99)",
    );
    has(
        &with_manifest(|m| m.log_torn = Some("cut at 7".into())),
        "the end of the list of classes could not be read (cut at 7)",
    );
    let exact = with_manifest(|m| m.target.ended = None);
    assert!(exact.contains("did not end in order"), "{exact}");
    assert!(
        exact.contains("\nExact: each path"),
        "a killed JVM's counts are exact: {exact}"
    );
}

#[test]
fn lower_bounds_are_marked() {
    let mut sample = worked_example();
    sample.exact = false;
    let got = rendered(&profile(4, &[sample]), &wide());
    for words in [
        ">= 14 ",
        ">= 6 ",
        "50 % of those counted take path 0",
        "of the method's counted iterations",
        "Lower bounds: ",
    ] {
        assert!(got.contains(words), "{words:?} not in {got}");
    }
}

/// Too many sequences for their rows: paths are exact all the same, and said to be.
#[test]
fn bounded_sequences_are_told_from_exact_paths() {
    let bounded = rebuilt(&profile(4, &[worked_example(), leaf()]), |_, methods, _| {
        methods[0].exact = false;
    });
    let got = rendered(&bounded, &wide());
    for words in [
        "\nExact: each path",
        "\nBounded: 1 method had more sequences than are kept",
        "Paths are exact; counts of sequences are lower bounds.",
        "50 % of those counted take path 0",
        "covers at least 85 % of the method's iterations",
    ] {
        assert!(got.contains(words), "{words:?} not in {got}");
    }
    for words in [">= ", "Lower bounds", "counted iterations"] {
        assert!(!got.contains(words), "{words:?} in {got}");
    }
}

#[test]
fn nothing_to_show_says_why_and_what_to_do() {
    let empty = rebuilt(&profile(4, &[]), |manifest, _, skips| {
        manifest.target.include = vec!["com.acme.*".into()];
        skips.push(skipped("com.acme.Odd", "", "", "class file of the future"));
    });
    let got = rendered(&empty, &wide());
    assert!(got.contains("Nothing was instrumented. Include globs: com.acme.*; exclude globs: (default); 1 class or method stayed plain"), "{got}");
    assert!(
        got.contains("class file of the future: com.acme.Odd"),
        "{got}"
    );

    let mut idle = leaf();
    idle.activations.clear();
    let got = rendered(&profile(4, &[idle]), &wide());
    assert!(
        got.contains("None of the 1 instrumented method ran."),
        "{got}"
    );

    let other = TextOptions {
        method: Some(MethodGlob::new("Nope.*")),
        ..wide()
    };
    let got = rendered(&all(), &other);
    assert!(
        got.contains("No method that ran matches Nope.*. The hottest that ran: org.eclipse"),
        "{got}"
    );
}

#[test]
fn filter_top_and_skipped() {
    let only = TextOptions {
        method: Some(MethodGlob::new("demo.*")),
        top: 1,
        skipped: true,
        ..wide()
    };
    let got = rendered(&all(), &only);
    assert!(
        got.contains("1. demo.Parse.numbers(List, String[])"),
        "{got}"
    );
    assert!(!got.contains("Scanner.checkTaskTag("), "{got}");
    assert!(
        got.contains("... and 4 more methods (--top N shows more)"),
        "{got}"
    );
    for n in 0..5 {
        assert!(
            got.contains(&format!("\n      demo.Big{n}.run(int)\n")),
            "{got}"
        );
    }
}

#[test]
fn findings_come_from_methods_that_are_not_shown_too() {
    let got = rendered(&all(), &TextOptions { top: 1, ..wide() });
    let first = got.split("HOTTEST METHODS").next().unwrap();
    assert!(
        first.contains(
            "Scanner.checkTaskTag (method 1, 94 % of all iterations): a pattern of 5 paths"
        ),
        "{first}"
    );
    assert!(
        first.contains(
            "Parse.numbers (--method 'Parse.numbers', 2 % of all iterations): a pattern of 3 paths"
        ),
        "{first}"
    );
    assert!(
        !first.contains("Worked"),
        "14 iterations are nothing: {first}"
    );
}

#[test]
fn branches_that_are_not_told_apart_are_named() {
    let got = rendered(&profile(4, &[clamp()]), &wide());
    let line =
        "Not told apart (short branches): lines 52, 77-79 (--branches split tells them apart)";
    assert_eq!(got.matches(line).count(), 1, "{got}");
    assert!(
        !got.contains("inside it never ran"),
        "the arms may have run: {got}"
    );
    // The same loop with all branches told apart: then what no path names never ran.
    let mut split = clamp();
    split.merged.clear();
    let got = rendered(&profile(4, &[split]), &wide());
    assert!(
        got.contains("bytecode 12-15, 24-31 inside it never ran"),
        "{got}"
    );
    assert!(!got.contains("Not told apart"), "{got}");
    let mut bare = clamp();
    bare.merged
        .iter_mut()
        .for_each(|branch| branch.lines.clear());
    let got = rendered(&profile(4, &[bare]), &wide());
    assert!(
        got.contains("(short branches): bytecode 12-15, 24-27, 28-31 ("),
        "{got}"
    );
}

/// Where the paths that exceptions interrupt are not counted, nothing is said of them, nor what they could contradict.
#[test]
fn unknown_unfinished_paths() {
    let with = |unfinished| {
        let sample = Sample {
            unfinished,
            ..one_way()
        };
        rendered(&profile(1, &[sample]), &wide())
    };
    assert!(with(Some(3)).contains("3 unfinished paths"));
    assert!(with(Some(3)).contains("3 paths were cut short"));
    assert!(with(Some(0)).contains("inside it never ran"));
    for text in [with(None), with(Some(3))] {
        assert!(!text.contains("inside it never ran"), "{text}");
    }
    for words in ["unfinished", "cut short"] {
        assert!(!with(None).contains(words), "{}", with(None));
    }
}

#[test]
fn straight_line_methods_are_told_once() {
    let with = |n| with_manifest(|m| m.totals.straight_line = n);
    let line = "2,311 methods with a single path and no loop are not counted (--straight-line counts them).";
    assert_eq!(with(2_311).matches(line).count(), 1);
    assert!(with(1).contains("\n1 method with a single path and no loop is not counted"));
    assert!(!with(0).contains("straight-line"));
}

#[test]
fn k_1_says_what_more_k_shows() {
    let got = rendered(&profile(1, &[worked_example()]), &wide());
    assert!(got.contains("k = 1 counts single paths only"), "{got}");
    assert!(got.contains("shows with -k 4"), "{got}");
    assert!(!got.contains("What follows what"), "{got}");
}

#[test]
fn source_text_of_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("demo/Worked.java");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let lines: Vec<String> = (1..=20)
        .map(|n| format!("        code of line {n};\u{1b}[2J"))
        .collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let options = TextOptions {
        source: Sources::open(&[dir.path().to_owned()]).unwrap(),
        ..TextOptions::default()
    };
    golden("source.txt", &profile(4, &[worked_example()]), &options);
}

#[test]
fn any_width_and_no_control_characters() {
    let hostile = rebuilt(&all(), |manifest, methods, skips| {
        manifest.target.command = "evil \u{1b}]0;title\u{7}".to_owned();
        manifest.notices.push("\u{1b}[2J".to_owned());
        methods[1].class = "\u{1b}[31mRed".to_owned();
        methods[1].descriptor = "not a descriptor \u{9b}".to_owned();
        methods[2].source_file = Some("\r\n".to_owned());
        skips.push(skipped("\u{1b}c", "\n", "\u{8}", "\u{1b}[5m"));
    });
    for width in [0, 1, 20, 21, 33, 40, 57, 80, 1_000] {
        let got = rendered(
            &hostile,
            &TextOptions {
                width,
                skipped: true,
                ..TextOptions::default()
            },
        );
        assert!(
            !got.contains(|c: char| c.is_control() && c != '\n'),
            "width {width}"
        );
    }
    // Words that must not be broken aside, a line is never longer than the page.
    for width in [60, 80, 100] {
        let got = rendered(
            &all(),
            &TextOptions {
                width,
                ..TextOptions::default()
            },
        );
        let longest = got.lines().map(|l| l.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} > {width} in {got}");
    }
}

#[test]
fn colour_only_if_asked_for() {
    let plain = rendered(&all(), &TextOptions::default());
    let colored = rendered(
        &all(),
        &TextOptions {
            color: true,
            ..TextOptions::default()
        },
    );
    assert!(!plain.contains('\u{1b}'));
    let mut stripped = String::new();
    for (i, part) in colored.split("\u{1b}[").enumerate() {
        stripped.push_str(if i == 0 {
            part
        } else {
            part.split_once('m').unwrap().1
        });
    }
    assert_eq!(stripped, plain, "colour changes nothing else");
    assert!(colored.contains("\u{1b}[1mHOTTEST METHODS\u{1b}[0m"));
}
