//! Real programs behave under `borescope paths` as without it: same standard streams, files and exit code, always with `-Xverify:all`.
//! Each test runs a program on every JDK; all tests together use every engine with every k and every collector (the whole product:
//! `cargo run --release -p borescope-e2e --bin programs_full`). The counts of classes whose work does not depend on time or hash seeds
//! must be the same in all these runs.

use borescope_e2e::programs::{Counts, counts_difference, covering, program};
use borescope_e2e::workloads::TASK_TAGS;
use borescope_e2e::{borescope_paths, borescope_report, java, output};
use std::collections::BTreeMap;

fn run(name: &str) {
    let program = program(name);
    let mut plain = BTreeMap::new();
    let mut first: Option<Counts> = None;
    for variant in covering(program) {
        let counts = program
            .check(&variant, &mut plain)
            .unwrap_or_else(|error| panic!("{name}, {variant}: {error}"));
        println!("{name}, {variant}: as the plain run");
        if let Some(difference) = first
            .as_ref()
            .and_then(|first| counts_difference(first, &counts))
        {
            panic!("{name}, {variant}: counts differ from those of the first run:\n{difference}");
        }
        first.get_or_insert(counts);
    }
    assert!(first.is_some(), "{name} ran on no JDK");
}

/// The source document's figure 4: the paths of `Scanner.checkTaskTag` follow one another in one pattern for most of its iterations.
#[test]
fn ecj_scanner_repeats_a_pattern_of_paths() {
    for branches in ["merge", "split"] {
        let folder = tempfile::tempdir().unwrap();
        let profile = folder.path().join("profile");
        let options = ["--branches", branches];
        let scanner = "org.eclipse.jdt.internal.compiler.parser.Scanner";
        let mut command = borescope_paths(11, "automaton", &options, &[scanner], &profile);
        command
            .arg(java(17))
            .args(TASK_TAGS.arguments(folder.path()));
        let ran = output(&mut command);
        assert!(ran.status.success(), "{ran:?}");
        let report = borescope_report(&profile);
        let methods = report["paths"]["methods"].as_array().unwrap();
        let tags = methods.iter().find(|m| m["method"] == "checkTaskTag");
        let tags = tags.expect("checkTaskTag ran");
        let chain = &tags["chains"][0];
        println!("{branches}: {} covers {}", chain["ids"], chain["share"]);
        assert_eq!(
            (&tags["exact"], &chain["repeats"]),
            (&true.into(), &true.into())
        );
        assert!(chain["ids"].as_array().unwrap().len() >= 3, "{chain}");
        assert!(chain["share"].as_f64().unwrap() > 0.5, "{chain}");
        assert!(chain["then"][0]["share"].as_f64().unwrap() > 0.5, "{chain}");
    }
}

macro_rules! programs {
    ($($test:ident = $name:literal),* $(,)?) => {
        $(#[test] fn $test() { run($name); })*

        #[test]
        fn every_program_has_a_test() {
            let here = [$($name),*];
            assert!(borescope_e2e::programs::ALL.iter().all(|p| here.contains(&p.name)));
        }
    };
}

programs! {
    ecj = "ecj",
    h2 = "h2",
    h2_on_virtual_threads = "h2-virtual",
    hsqldb = "hsqldb",
    derby = "derby",
    xalan = "xalan",
    xalan_with_subroutines = "xalan-old",
    fop = "fop",
    lucene = "lucene",
    jython = "jython",
    scala_compiler = "scala",
    kotlin = "kotlin",
    clojure = "clojure",
    groovy = "groovy",
    scimark_fft = "fft",
    scimark_sor = "sor",
    scimark_montecarlo = "montecarlo",
    scimark_sparse = "sparse",
    scimark_lu = "lu",
    system_exit = "exit",
    uncaught_exception = "throw",
    halt = "halt",
    shutdown_hook = "hook",
}

/// Each pair of engine and k, and each pair of engine and collector, occurs in what the tests above run.
#[test]
fn variants_cover() {
    use borescope_e2e::programs::{ALL, COLLECTORS, ENGINES, collectors};
    let variants: Vec<_> = ALL.iter().flat_map(covering).collect();
    for (engine, k) in ENGINES {
        assert!(
            variants.iter().any(|v| v.engine == engine && v.k == k),
            "{engine} k={k}"
        );
        for collector in COLLECTORS.into_iter().filter(|c| {
            borescope_e2e::JDKS
                .iter()
                .any(|j| collectors(*j).contains(c))
        }) {
            assert!(
                variants
                    .iter()
                    .any(|v| v.engine == engine && v.collector == collector),
                "{engine} with {collector}"
            );
        }
    }
}
