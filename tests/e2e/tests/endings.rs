//! Runs that do not end well: a JVM that is killed at any moment, a full disk, a place that cannot be written, nothing to profile, no JDK
//! or the wrong one. Nothing that was counted is lost, the program never suffers, and the user gets one clear line.

use borescope_e2e::programs::{drivers, exit_code, feed, kill, program};
use borescope_e2e::{borescope, borescope_report, java, output, root, with_mounts};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// `borescope paths` of the `Busy` driver, started, in a process group of its own.
struct Busy {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    profile: PathBuf,
    _dir: tempfile::TempDir,
}

const THREADS: u64 = 3;
/// Loop rounds of the driver's `step` before it prints a line.
const ROUNDS: u64 = 1_000_000;
/// Calls of the driver's `leaf`, which has no loop and so is counted at fixed places, before it prints a line.
const LEAVES: u64 = 100_000;

impl Busy {
    fn start(engine: &str, k: &str, jdk: u32) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let profile = dir.path().join("profile");
        let mut child = Command::new(borescope())
            .args(["paths", "--quiet", "--engine", engine, "-k", k, "-o"])
            .arg(&profile)
            .arg("--")
            .arg(java(jdk))
            .arg("-cp")
            .arg(drivers())
            .args(["Busy", &THREADS.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("borescope starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe was asked for"));
        Self {
            child,
            stdout,
            profile,
            _dir: dir,
        }
    }

    /// Reads lines until one begins so; gives how many began so.
    fn read_until(&mut self, start: &str, times: u64) -> u64 {
        let mut seen = 0;
        let mut line = String::new();
        while seen < times {
            line.clear();
            let read = self.stdout.read_line(&mut line).expect("standard output");
            assert!(
                read > 0,
                "the program ended before {start:?}: {}",
                self.stderr()
            );
            seen += u64::from(line.starts_with(start));
        }
        seen
    }

    /// The process id of the JVM, from its spool directory, as soon as that holds `file`.
    fn jvm(&mut self, file: &str) -> String {
        loop {
            let spools = std::fs::read_dir(self.profile.join(".spool"))
                .into_iter()
                .flatten()
                .flatten();
            if let Some(spool) = spools.map(|e| e.path()).find(|p| p.join(file).exists()) {
                return spool
                    .file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned();
            }
            if let Some(status) = self.child.try_wait().expect("a child") {
                panic!(
                    "borescope ended with {status} before there was a spool: {}",
                    self.stderr()
                );
            }
            std::thread::yield_now();
        }
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut text).expect("standard error");
        }
        text
    }

    /// Waits for the end; exit code and standard error.
    fn end(&mut self) -> (i32, String) {
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).expect("standard output");
        let stderr = self.stderr();
        (exit_code(self.child.wait().expect("a child")), stderr)
    }

    /// How many paths of a method the report counts; checks that it says the JVM was killed.
    fn counted(&self, method: &str) -> u64 {
        self.counted_that_end(method, "")
    }

    /// The same of paths that end in one way; "" = any.
    fn counted_that_end(&self, method: &str, end: &str) -> u64 {
        let report = borescope_report(&self.profile);
        assert_eq!(report["target"]["sealed_after_crash"], true);
        let methods = report["paths"]["methods"].as_array().expect("methods");
        let named = methods
            .iter()
            .filter(|m| m["class"] == "Busy" && m["method"] == method);
        named
            .flat_map(|m| m["paths"].as_array().expect("paths"))
            .filter(|p| p["ends"].as_str().expect("ends").starts_with(end))
            .map(|p| p["count"].as_u64().expect("count"))
            .sum()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // A failed assertion must not leave the driver running for ever.
        if matches!(self.child.try_wait(), Ok(None)) {
            kill(&format!("-{}", self.child.id()));
            let _ = self.child.wait();
        }
    }
}

#[test]
fn jvm_killed_while_it_counts() {
    for (engine, k, jdk) in [
        ("automaton", "4", 17),
        ("ksf", "4", 21),
        ("ksf-mtf", "4", 25),
        ("blpp-hash", "1", 25),
        ("automaton", "16", 25),
    ] {
        for (moment, rounds) in [("ready", 1), ("round", 1), ("round", 7)] {
            let mut busy = Busy::start(engine, k, jdk);
            let seen = busy.read_until(moment, rounds);
            let jvm = busy.jvm("meta.log");
            kill(&jvm);
            let (code, said) = busy.end();
            assert_eq!(code, 137, "128 + SIGKILL; {said}");
            // Each line of a round says that a call of `step` went that often round its loop, each time along one path, and that `leaf` was
            // called that often.
            for (method, round) in [("step", ROUNDS), ("leaf", LEAVES)] {
                let due = THREADS * 1000 + if moment == "round" { seen * round } else { 0 };
                let counted = busy.counted(method);
                assert!(
                    counted >= due,
                    "{engine}, {moment} {seen}: {counted} of at least {due} paths of {method}\n{said}"
                );
            }
            // Fixed counters and those of the loop around the calls were stopped at the same moment. The compiler may fold the
            // counts of rounds that it unrolls.
            let leaves = busy.counted("leaf");
            let rounds = busy.counted_that_end("leaves", "back");
            assert!(
                leaves.abs_diff(rounds) <= THREADS * 64,
                "{leaves} calls in {rounds} rounds"
            );
        }
    }
}

#[test]
fn everything_killed_while_it_counts() {
    let mut busy = Busy::start("automaton", "4", 25);
    let seen = busy.read_until("round", 4);
    kill(&format!("-{}", busy.child.id()));
    assert_eq!(busy.end().0, 137);
    assert!(busy.counted("step") >= seen * ROUNDS);
    assert!(busy.counted("leaf") >= seen * LEAVES);
}

/// From the first moment that there is something on disk: whatever is there, the report shows it or says in one line that it is empty.
#[test]
fn jvm_killed_at_its_start() {
    for file in ["meta.log", "counters.bin"] {
        for jdk in [17, 25] {
            let mut busy = Busy::start("automaton", "4", jdk);
            let jvm = busy.jvm(file);
            kill(&jvm);
            let (code, said) = busy.end();
            assert_eq!(code, 137, "{said}");
            let report = output(Command::new(borescope()).arg("report").arg(&busy.profile));
            match report.status.code() {
                Some(0) => assert_eq!(
                    borescope_report(&busy.profile)["target"]["sealed_after_crash"],
                    true
                ),
                Some(3) => assert_eq!(lines(&report).len(), 1, "{report:?}"),
                _ => panic!("{report:?}"),
            }
        }
    }
}

#[test]
fn signals_reach_the_program() {
    let mut busy = Busy::start("automaton", "4", 21);
    busy.read_until("ready", 1);
    let pid = busy.child.id().to_string();
    assert!(
        Command::new("sh")
            .args(["-c", "kill -TERM \"$0\"", &pid])
            .status()
            .expect("sh")
            .success()
    );
    let (code, said) = busy.end();
    assert_eq!(code, 143, "128 + SIGTERM; {said}");
    assert_eq!(
        borescope_report(&busy.profile)["target"]["sealed_after_crash"],
        false
    );
}

/// The lines that borescope said.
fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines()
        .filter(|l| l.starts_with("borescope: "))
        .map(str::to_owned)
        .collect()
}

/// Exactly one line, with this in it, all other standard error being empty; and nothing on standard output.
fn one_line(output: &Output, code: i32, part: &str) {
    assert_eq!(exit_code(output.status), code, "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    let all: Vec<&str> = text.lines().collect();
    assert!(
        all.len() == 1 && all[0].starts_with("borescope: ") && all[0].contains(part),
        "{text}"
    );
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn full_disk() {
    let kotlin = program("kotlin");
    for (size, jdk) in [("256k", 17), ("4m", 25)] {
        let dir = tempfile::tempdir().expect("temporary directory");
        let plain = kotlin.plain(jdk, &[]);
        // What the report says is read in there too: the mount goes with the script.
        let script = format!(
            "mount -t tmpfs -o size={size} none \"$1\" || exit 99\n\
             dd if=/dev/zero of=\"$1/filler\" bs=1k count=$(($(df -k --output=avail \"$1\" | tail -n 1) - 100)) 2>/dev/null || exit 98\n\
             shift 1\n\
             \"$@\"\n\
             code=$?\n\
             echo \"report:\" >&2\n\
             \"$BORESCOPE\" report \"$PROFILE\" >/dev/null\n\
             echo \"report exit $?\" >&2\n\
             exit $code"
        );
        let out = tempfile::tempdir().expect("temporary directory");
        let profile = dir.path().join("profile");
        let mut command = with_mounts(&script, &[dir.path(), borescope()]);
        command
            .env("BORESCOPE", borescope())
            .env("PROFILE", &profile)
            .args(["paths", "--quiet", "-o"])
            .arg(&profile)
            .arg("--")
            .arg(java(jdk))
            .args(kotlin.arguments(out.path()));
        let result = feed(&mut command, 0);
        let text = String::from_utf8_lossy(&result.stderr).into_owned();
        assert_eq!(exit_code(result.status), 0, "{text}");
        assert_eq!(
            String::from_utf8_lossy(&result.stdout),
            String::from_utf8_lossy(&plain.stdout),
            "{text}"
        );
        let (said, report) = text.split_once("report:\n").expect("the script's mark");
        let about_disk = |l: &&str| {
            ["No space left", "disk", "full"]
                .iter()
                .any(|word| l.contains(word))
        };
        assert!(
            said.lines()
                .any(|l| l.starts_with("borescope: ") && about_disk(&l)),
            "{text}"
        );
        assert!(said.lines().all(|l| l.starts_with("borescope: ")), "{text}");
        // Either what was counted, or one line that says why it cannot be shown.
        let code = report.lines().last().expect("the script's mark");
        match code {
            "report exit 0" => {}
            "report exit 2" | "report exit 3" => assert_eq!(report.lines().count(), 2, "{text}"),
            _ => panic!("{text}"),
        }
    }
}

#[test]
fn unwritable_directory() {
    let dir = tempfile::tempdir().expect("temporary directory");
    // Read-only for root as well.
    let mut command = with_mounts(
        "mount -t tmpfs -o ro none \"$1\" || exit 99\nshift 1\nexec \"$@\"",
        &[dir.path(), borescope()],
    );
    command
        .args(["paths", "-o"])
        .arg(dir.path().join("profile"))
        .arg("--")
        .arg(java(17))
        .arg("-version");
    one_line(&output(&mut command), 2, "Read-only file system");

    let file = dir.path().join("file");
    std::fs::write(&file, "text").expect("a file");
    let mut command = Command::new(borescope());
    command
        .args(["paths", "-o"])
        .arg(&file)
        .arg("--")
        .arg(java(17))
        .arg("-version");
    one_line(&output(&mut command), 2, "file");
    assert_eq!(
        std::fs::read_to_string(&file).expect("the file is left alone"),
        "text"
    );
}

#[test]
fn include_that_matches_nothing() {
    let program = program("exit");
    let dir = tempfile::tempdir().expect("temporary directory");
    let profile = dir.path().join("profile");
    let mut command = Command::new(borescope());
    command
        .args(["paths", "--include", "no.such.package.*", "-o"])
        .arg(&profile)
        .arg("--")
        .arg(java(17))
        .args(program.arguments(dir.path()));
    let result = feed(&mut command, 10);
    assert_eq!(exit_code(result.status), program.exit);
    assert!(
        String::from_utf8_lossy(&result.stdout).starts_with("lines 10, sum "),
        "{result:?}"
    );
    let said = lines(&result);
    assert!(
        said.iter().any(|l| l.contains("no.such.package.*")),
        "{said:#?}"
    );
    assert!(said.len() <= 2, "{said:#?}");
}

#[test]
fn no_jdk() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let bare = |args: &[&str]| {
        let mut command = Command::new(borescope());
        command
            .env_remove("JAVA_HOME")
            .env("PATH", dir.path())
            .current_dir(dir.path())
            .args(args);
        output(&mut command)
    };
    one_line(
        &bare(&["paths", "--", "java", "-version"]),
        2,
        "install a JDK 17",
    );
    one_line(
        &bare(&["paths", "--", "/no/such/bin/java", "-version"]),
        2,
        "/no/such/bin/java",
    );
    one_line(&bare(&["demo"]), 2, "install a JDK 17");
    assert_eq!(
        std::fs::read_dir(dir.path()).expect("directory").count(),
        0,
        "something was left behind"
    );
}

#[test]
fn jdk_too_old() {
    let old = root().join(".cache/jdks/11");
    assert!(
        old.join("bin/java").exists(),
        "no JDK 11 in .cache/jdks: run tests/fetch"
    );
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut command = Command::new(borescope());
    command
        .args(["paths", "-o"])
        .arg(dir.path().join("profile"))
        .arg("--")
        .arg(old.join("bin/java"))
        .arg("-version");
    let result = output(&mut command);
    let said = lines(&result);
    // Whether the program then runs plain or not at all, the line must say what to use instead.
    assert!(said.iter().any(|l| l.contains("17")), "{result:?}");
    let mut command = Command::new(borescope());
    command
        .env("JAVA_HOME", &old)
        .current_dir(dir.path())
        .arg("demo");
    one_line(&output(&mut command), 2, "too old");
}
