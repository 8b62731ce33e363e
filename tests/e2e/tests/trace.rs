//! Traces of the sites lens: of a program that says what happens, each allocation and each first reference of an identity hash, by object; `borescope
//! simulate` reads them; and of programs, disks and JVMs that end too early.

use borescope_e2e::programs::{exit_code, kill};
use borescope_e2e::sites::programs;
use borescope_e2e::{borescope, java, output, root, run, with_mounts};
use borescope_sites::trace::{Step, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Which of a line's objects are hashed: the first of each so many; 0 = none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    objects: u64,
    every: u64,
}

type Lines = BTreeMap<(u32, String), Line>;

/// The comments of the program.
fn expected() -> Lines {
    let source = fs::read_to_string(root().join("tests/sites/programs/Traced.java"));
    let mut lines = Lines::new();
    for (at, line) in (1..).zip(source.expect("the program").lines()) {
        let Some((_, comment)) = line.split_once("// trace: ") else {
            continue;
        };
        for part in comment.split("; ") {
            let words: Vec<&str> = part.split(' ').collect();
            let every = match words[2..] {
                ["none"] => 0,
                ["all"] => 1,
                ["every", n] => n.parse().expect("a number"),
                _ => panic!("line {at}: {part}"),
            };
            let objects = words[1].parse().expect("a number");
            let line = Line { objects, every };
            assert!(lines.insert((at, words[0].into()), line).is_none());
        }
    }
    assert!(lines.len() > 20);
    lines
}

/// What a trace says of the program's own lines.
fn observed(trace: &Trace) -> Lines {
    let mut objects = vec![0; trace.sites.len()];
    let mut hashed: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); trace.sites.len()];
    for step in &trace.steps {
        match *step {
            Step::Allocate { site, count } => objects[site as usize] += count,
            // `Trace::read` has checked that the object was there by then.
            Step::Hash { site, nth } => {
                let new = hashed[site as usize].insert(nth);
                assert!(new, "object {nth} of site {site} twice");
            }
        }
    }
    let mut lines = Lines::new();
    for (at, site) in trace.sites.iter().enumerate() {
        let own = ["Traced.", "Traced$"]
            .iter()
            .any(|p| site.label.starts_with(p));
        if !own || objects[at] == 0 {
            continue;
        }
        let (_, line) = site.label.rsplit_once(':').expect("a line");
        let key = (
            line.parse().expect("a line"),
            trace.classes[site.class as usize].clone(),
        );
        let nths = &hashed[at];
        let every = match nths.len() as u64 {
            0 => 0,
            n => objects[at].div_ceil(n),
        };
        // Just the first of each so many.
        let exact = nths.iter().zip(0..).all(|(&nth, i)| nth == i * every)
            && (every == 0 || nths.len() as u64 == objects[at].div_ceil(every));
        assert!(exact, "{} hashed {nths:?}", site.label);
        let line = Line {
            objects: objects[at],
            every,
        };
        assert!(lines.insert(key, line).is_none(), "{} twice", site.label);
    }
    lines
}

fn traced(jdk: u32, options: &[&str], file: &Path) -> Trace {
    let program = |command: &mut Command| {
        command
            .args(options)
            .args(["-Xverify:all", "-Xmx600m", "-cp"])
            .args([programs(), "Traced"])
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS");
        run(command)
    };
    let plain = program(&mut Command::new(java(jdk)));
    let with = program(
        Command::new(borescope())
            .args(["sites", "--trace"])
            .arg(file)
            .arg("--")
            .arg(java(jdk)),
    );
    let said = String::from_utf8_lossy(&with.stderr);
    assert_eq!(with.stdout, plain.stdout, "JDK {jdk}: {said}");
    assert!(
        said.contains("borescope: trace in ") && !said.contains("no room"),
        "{said}"
    );
    // Those whose line holds the lock.
    assert!(said.contains("30,000 times of locked objects"), "{said}");
    read(file)
}

fn read(file: &Path) -> Trace {
    let open = File::open(file).expect("a trace");
    Trace::read(BufReader::new(open)).expect("a whole trace")
}

/// Nothing but these is in a folder.
fn only(folder: &Path, names: &[&str]) {
    let all = fs::read_dir(folder).expect("a folder");
    let mut found: Vec<_> = all.map(|e| e.expect("an entry").file_name()).collect();
    found.sort();
    assert_eq!(found, names);
}

/// A trace has each object and each first reference.
fn exact(jdk: u32) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut failures = String::new();
    for collector in ["Serial", "Parallel", "G1", "Z", "Shenandoah"] {
        let option = format!("-XX:+Use{collector}GC");
        let file = folder.path().join(collector);
        let trace = traced(jdk, &[&option], &file);
        let (expected, observed) = (expected(), observed(&trace));
        let keys: BTreeSet<_> = expected.keys().chain(observed.keys()).collect();
        for key in keys {
            let (e, o) = (expected.get(key), observed.get(key));
            if e != o {
                failures +=
                    &format!("JDK {jdk} {collector} {key:?}: expected {e:?}, found {o:?}\n");
            }
        }
        fs::remove_file(&file).expect("the trace");
        only(folder.path(), &[]);
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn exact_on_17() {
    exact(17);
}

#[test]
fn exact_on_21() {
    exact(21);
}

#[test]
fn exact_on_25() {
    exact(25);
}

#[test]
fn the_simulator_reads_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("t");
    let trace = traced(17, &[], &file);
    let simulated = run(Command::new(borescope())
        .args(["simulate", "--width", "15", "--format", "json"])
        .arg(&file));
    let json: serde_json::Value = serde_json::from_slice(&simulated.stdout).expect("JSON");
    let classes = json["simulate"]["sites_per_class"].as_array();
    let classes = classes.expect("classes");
    let plain = classes.iter().find(|c| c["class"] == "Traced$Plain");
    let plain = plain.expect("the class");
    // Five lines of 30,000 and one of 120,000.
    assert_eq!(plain["objects"], 30_000 * 5 + 120_000);
    assert_eq!(plain["hashed"], 10_000 + 30_000 + 3_750 + 120_000);
    assert_eq!(classes.len(), trace.classes.len());
    only(folder.path(), &["t"]);
    // A second recording does not take the first one's place.
    let again = output(
        Command::new(borescope())
            .args(["sites", "--trace"])
            .arg(&file)
            .args(["--", "true"]),
    );
    assert_eq!(again.status.code(), Some(2));
    only(folder.path(), &["t"]);
}

/// `TracedEnd` under the agent, on standard input and output of ours.
fn ending(jdk: u32, file: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(borescope());
    command.args(["sites", "--trace"]).arg(file).arg("--");
    command.arg(java(jdk)).args(["-Xverify:all", "-cp"]);
    command.args([programs(), "TracedEnd"]).args(arguments);
    command.env_remove("JAVA_TOOL_OPTIONS");
    command.env_remove("JDK_JAVA_OPTIONS");
    command
}

/// Objects and hashed objects of `TracedEnd`'s own line.
fn things(trace: &Trace) -> (u64, u64) {
    let site = trace
        .sites
        .iter()
        .position(|s| trace.classes[s.class as usize] == "TracedEnd$Thing");
    let own = site.expect("the program's site") as u32;
    let of = |step: &Step| match *step {
        Step::Allocate { site, count } if site == own => (count, 0),
        Step::Hash { site, .. } if site == own => (0, 1),
        _ => (0, 0),
    };
    let steps = trace.steps.iter().map(of);
    steps.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
}

/// A run that waits after it has said `done`.
struct Run {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Run {
    fn start(command: &mut Command) -> Self {
        let command = command.process_group(0).stdin(Stdio::piped());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("borescope starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe was asked for"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("standard output");
        assert_eq!(line, "done\n");
        Self { child, stdout }
    }

    /// The end: exit code, what it printed from then on, and what was said.
    fn end(mut self) -> (i32, String, String) {
        let (mut printed, mut said) = (String::new(), String::new());
        self.stdout.read_to_string(&mut printed).expect("text");
        let mut stderr = self.child.stderr.take().expect("a pipe was asked for");
        stderr.read_to_string(&mut said).expect("text");
        let status = self.child.wait().expect("a child");
        (exit_code(status), printed, said)
    }
}

/// The only spool in a recording.
fn spool(recording: &Path) -> PathBuf {
    let mut spools = fs::read_dir(recording.join(".spool")).expect("spools");
    let spool = spools.next().expect("a spool").expect("an entry").path();
    assert!(spools.next().is_none());
    spool
}

#[test]
fn a_program_that_is_ended_leaves_all_that_it_did() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (jdk, end) in [(17, "-KILL"), (25, "-KILL"), (17, "-INT"), (21, "-INT")] {
        let file = folder.path().join("t");
        let started = Run::start(&mut ending(jdk, &file, &["100000", "wait"]));
        if end == "-KILL" {
            // The JVM alone.
            let spool = spool(&folder.path().join("t.recording"));
            kill(&spool.file_name().expect("a name").to_string_lossy());
        } else {
            // As a terminal does it with Ctrl-C.
            let group = format!("-{}", started.child.id());
            run(Command::new("sh").args(["-c", "kill \"$0\" \"$1\"", end, &group]));
        }
        let (code, _, said) = started.end();
        assert_eq!(code, if end == "-KILL" { 137 } else { 130 }, "{said}");
        assert!(said.contains("borescope: trace in "), "{said}");
        assert_eq!(things(&read(&file)), (100_000, 100), "JDK {jdk} {end}");
        only(folder.path(), &["t"]);
        fs::remove_file(&file).expect("the trace");
    }
}

/// A JVM that goes on when the program of the command line has ended.
#[test]
fn a_recording_can_be_read_while_the_program_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, fifo) = (folder.path().join("t"), folder.path().join("fifo"));
    let script =
        "mkfifo \"$0\"; exec 3<&0; \"$@\" <&3 >\"$0\" 3<&- & read line <\"$0\"; echo \"$line\"";
    let mut command = Command::new(borescope());
    command.args(["sites", "--trace"]).arg(&file).arg("--");
    command.args(["sh", "-c", script]).arg(&fifo).arg(java(21));
    command.args(["-cp", programs(), "TracedEnd", "100000", "wait"]);
    let mut started = Run::start(&mut command);
    let stdin = started.child.stdin.take();
    let code = exit_code(started.child.wait().expect("a child"));
    // The JVM has our standard error, too, so that does not end.
    let mut stderr = BufReader::new(started.child.stderr.take().expect("a pipe was asked for"));
    let mut said = String::new();
    while !said.contains(" still runs: `borescope simulate ") {
        let read = stderr.read_line(&mut said).expect("text");
        assert!(read > 0, "{said}");
    }
    assert_eq!(code, 0, "{said}");
    let recording = folder.path().join("t.recording");
    for named in [spool(&recording), recording.clone()] {
        let simulated = run_simulator(&named);
        assert!(simulated.contains("TracedEnd$Thing"), "{simulated}");
        assert!(simulated.contains(" 100,000 "), "{simulated}");
    }
    drop(stdin);
    assert!(!file.exists());
}

fn run_simulator(of: &Path) -> String {
    let simulated = run(Command::new(borescope())
        .args(["simulate", "--width", "15", "--top", "1000"])
        .arg(of));
    String::from_utf8(simulated.stdout).expect("text")
}

/// Runs in a file system of so many bytes, on `$1`; then says what is left there, and what the simulator makes of a recording.
fn on_disk(size: &str, folder: &Path, objects: &str) -> (i32, String, String) {
    let script = format!(
        "mount -t tmpfs -o size={size} none \"$1\" || exit 99\n\
         here=$1\nshift 1\n\"$@\"\ncode=$?\n\
         ls \"$here\" >&2\n\
         [ ! -e \"$here/t\" ] || \"$BORESCOPE\" simulate --top 1000 \"$here/t\"\n\
         [ ! -e \"$here/t.recording\" ] || \"$BORESCOPE\" simulate --top 1000 \"$here/t.recording\"\n\
         exit $code"
    );
    let asked = ending(17, &folder.join("t"), &[objects]);
    let mut command = with_mounts(&script, &[folder, borescope()]);
    command.args(asked.get_args()).env("BORESCOPE", borescope());
    let done = output(&mut command);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (exit_code(done.status), text(done.stdout), text(done.stderr))
}

#[test]
fn a_full_disk_ends_the_trace_and_not_the_program() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // No room for the first events.
    let (code, printed, said) = on_disk("20m", folder.path(), "1000");
    assert_eq!((code, printed.as_str()), (0, "done\n"), "{said}");
    let [why, nothing] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("{said}")
    };
    assert!(why.contains("cannot make a trace in ") && why.contains("No space left"));
    assert!(nothing.contains("nothing was recorded"), "{said}");

    // For 8 M events.
    let (code, printed, said) = on_disk("100m", folder.path(), "9000000");
    assert_eq!(code, 0, "{said}");
    assert!(printed.starts_with("done\nAllocation sites: "));
    assert!(said.contains("it ends early: there was no room for "));
    assert!(said.ends_with("\nt\n"), "{said}");
    let line = printed.lines().find(|l| l.ends_with(" TracedEnd$Thing"));
    let objects = line.and_then(|l| l.split_whitespace().nth(2));
    let objects = objects.expect("the program's class").replace(',', "");
    let objects: u64 = objects.parse().expect("a number");
    assert!((8_000_000..8_388_600).contains(&objects), "{objects}");

    // For the events, but not for the trace beside them, with the names of all sites.
    let (code, printed, said) = on_disk("66000k", folder.path(), "100000");
    assert_eq!(code, 0, "{said}");
    assert!(printed.contains(" TracedEnd$Thing\n"), "{printed}{said}");
    assert!(said.contains("; what was recorded is kept: "), "{said}");
    assert!(said.ends_with("\nt.recording\n"), "{said}");
}

#[test]
fn compact_headers_have_no_room_for_a_trace() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("t");
    let mut command = Command::new(borescope());
    command.args(["sites", "--trace"]).arg(&file).arg("--");
    command.arg(java(25)).arg("-XX:+UseCompactObjectHeaders");
    command.args(["-cp", programs(), "TracedEnd", "1000"]);
    let done = run(&mut command);
    assert_eq!(done.stdout, b"done\n");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("-XX:-UseCompactObjectHeaders"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    only(folder.path(), &[]);
}
