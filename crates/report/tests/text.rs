//! What a person reads, as whole texts: see golden/. `UPDATE_GOLDEN=1 cargo test -p borescope-report` writes them anew, to be read.

mod support;

use borescope_profile::Profile;
use borescope_report::{TextOptions, text};
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
    ];
    rebuilt(&profile(11, &samples), |manifest, _, skipped_list| {
        manifest.totals.methods += 2;
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
