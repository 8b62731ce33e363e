//! Attaching to real JVMs: an agent that comes and goes marks exactly what is allocated between, and the program does not notice; what cannot be attached to goes
//! on as it was.

use borescope_e2e::sites::{Log, spool};
use borescope_e2e::{JDKS, agent, borescope, borescope_report, java, javac, root, sources};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

/// The programs, compiled once a process.
fn classes() -> &'static Path {
    static CLASSES: OnceLock<TempDir> = OnceLock::new();
    let dir = CLASSES.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a temporary folder");
        javac(&sources(&root().join("tests/attach")), dir.path(), &[]);
        dir
    });
    dir.path()
}

/// Line of a program's source file that ends with a comment.
fn line_of(program: &str, comment: &str) -> u64 {
    let source = root().join(format!("tests/attach/{program}.java"));
    let text = std::fs::read_to_string(source).unwrap();
    let marked = |line: &str| line.trim_end().ends_with(&format!("// {comment}"));
    1 + text.lines().position(marked).expect("the comment") as u64
}

/// A program that runs.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    said: String,
}

impl Program {
    /// A command that says `ready`.
    fn start(command: &mut Command) -> Self {
        let mut program = Self::begin(command);
        assert_eq!(program.line(), "ready\n");
        program
    }

    fn begin(command: &mut Command) -> Self {
        let piped = command
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            said: String::new(),
        }
    }

    fn java(jdk: u32, options: &[&str], main: &str) -> Self {
        Self::start(&mut jvm(jdk, options, main))
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        self.said += &line;
        line
    }

    /// A step of `Steps`.
    fn step(&mut self, step: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{step}").unwrap();
        while self.line() != format!("{step}: done\n") {
            assert!(self.child.try_wait().unwrap().is_none(), "{step}");
        }
    }

    fn steps(&mut self, steps: &[&str]) {
        steps.iter().for_each(|step| self.step(step));
    }

    /// Lets it end in order; what it wrote to its two streams.
    fn end(mut self) -> (String, String) {
        drop(self.stdin.take());
        self.stdout.read_to_string(&mut self.said).unwrap();
        let ended = self.child.wait_with_output().unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.success(), "{}: {err}", ended.status);
        (self.said, err)
    }
}

fn jvm(jdk: u32, options: &[&str], main: &str) -> Command {
    let mut command = Command::new(java(jdk));
    command
        .args(["-Xverify:all", "-Xmx256m"])
        .args(options)
        .arg("-cp")
        .arg(classes())
        .arg(main);
    command
}

/// `borescope` with arguments: code and streams.
fn ask(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(borescope())
        .args(arguments)
        .output()
        .expect("borescope runs");
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn does(arguments: &[&str]) -> String {
    let (code, out, err) = ask(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
    out + &err
}

fn refuses(arguments: &[&str], words: &[&str]) {
    let (code, out, err) = ask(arguments);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    for word in words {
        assert!(err.contains(word), "{err:?} does not say {word:?}");
    }
}

/// Live objects of a type in a snapshot of a report whose application line ends with a comment.
fn live(report: &Value, snapshot: usize, ty: &str, comment: &str) -> u64 {
    live_in("Steps", "Steps", report, snapshot, ty, comment)
}

/// The same of a class of a program.
fn live_in(
    program: &str,
    class: &str,
    report: &Value,
    snapshot: usize,
    ty: &str,
    comment: &str,
) -> u64 {
    let line = line_of(program, comment);
    let sites = report["sites"]["snapshots"][snapshot]["sites"].as_array();
    let sites = sites.unwrap_or_else(|| panic!("no snapshot {snapshot}: {report}"));
    let found = sites.iter().filter(|s| {
        let own = s["class"] == class && s["line"] == line;
        let led = s["app_class"] == class && s["app_line"] == line;
        s["type"] == ty && (own || led)
    });
    found.map(|s| s["live_objects"].as_u64().unwrap()).sum()
}

/// What the JVM itself says of agents that are attached (JEP 451); nothing of ours.
fn only_the_jvms_warning(jdk: u32, err: &str) {
    assert!(
        err.lines().all(|line| line.starts_with("WARNING: ")),
        "{err}"
    );
    assert_eq!(err.lines().count(), if jdk < 21 { 0 } else { 3 }, "{err}");
}

const STEPS: [&str; 14] = [
    "members",
    "first 1000",
    "hash",
    "here 10",
    "second 500",
    "map 300",
    "here 20",
    "check",
    "members",
    "third 700",
    "members",
    "fourth 200",
    "hash",
    "check",
];

/// Options for headers that have no room but in the hash.
const COMPACT: [&str; 2] = [
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:+UseCompactObjectHeaders",
];

#[test]
fn comes_and_goes_and_comes_again() {
    let in_spare_bits = JDKS.map(|jdk| (jdk, &[][..]));
    for (jdk, options) in in_spare_bits.into_iter().chain([(25, &COMPACT[..])]) {
        let mut plain = Program::java(jdk, options, "Steps");
        plain.steps(&STEPS);
        let (expected, _) = plain.end();

        let dir = tempfile::tempdir().unwrap();
        let out = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let mut program = Program::java(jdk, options, "Steps");
        let pid = program.pid();
        program.steps(&STEPS[..4]);
        let said = does(&["attach", &pid, "-o", &out("one")]);
        assert!(
            said.contains(&format!("attached to JVM {pid} (java ")),
            "{said}"
        );
        refuses(
            &["attach", &pid, "-o", &out("two")],
            &["at work in JVM", "snapshot", "detach"],
        );
        program.steps(&STEPS[4..9]);
        assert!(does(&["snapshot", &pid]).contains("snapshot 1 of JVM"));
        assert!(does(&["detach", &pid]).contains("detached"));
        refuses(&["snapshot", &pid], &["does not run under"]);
        program.steps(&STEPS[9..11]);
        let report = borescope_report(Path::new(&out("one")));
        for snapshot in [0, 1] {
            let count = |ty, comment| live(&report, snapshot, ty, comment);
            assert_eq!(count("Steps$Kept", "second"), 500, "JDK {jdk}");
            assert_eq!(count("Steps$Kept", "first"), 0, "JDK {jdk}: from before");
            assert_eq!(count("java.util.HashMap$Node", "map"), 300, "JDK {jdk}");
        }
        assert_eq!(report["sites"]["snapshots"].as_array().unwrap().len(), 2);

        // Once more, to the end of the program.
        does(&["attach", &pid, "-o", &out("two")]);
        program.steps(&STEPS[11..]);
        let (said, err) = program.end();
        assert_eq!(said, expected, "JDK {jdk}");
        only_the_jvms_warning(jdk, &err);
        let report = borescope_report(Path::new(&out("two")));
        for (comment, expected) in [("first", 0), ("second", 0), ("third", 0), ("fourth", 200)] {
            let count = live(&report, 0, "Steps$Kept", comment);
            assert_eq!(count, expected, "JDK {jdk}: {comment}");
        }
    }
}

/// Where numbers stand in identity hashes: objects that the JVM has hashed at random while no agent was there, before the first one and between two, pass for
/// none of a line's. If they could, each of the lines would have some dozen too many.
#[test]
fn hashes_from_before_are_no_numbers() {
    for (jdk, options, how) in [(25, &COMPACT[..], "auto"), (21, &[][..], "dynamic")] {
        let dir = tempfile::tempdir().unwrap();
        let out = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let mut program = Program::java(jdk, options, "Hashed");
        let pid = program.pid();
        program.step("hash");
        does(&["attach", &pid, "--mode", how, "-o", &out("one")]);
        program.step("make");
        does(&["snapshot", &pid]);
        does(&["detach", &pid]);
        program.step("hash");
        does(&["attach", &pid, "--mode", how, "-o", &out("two")]);
        program.step("make");
        let (_, err) = program.end();
        only_the_jvms_warning(jdk, &err);
        for name in ["one", "two"] {
            let report = borescope_report(Path::new(&out(name)));
            assert_eq!(report["sites"]["mode"], "dynamic");
            let count =
                |comment: &str| live_in("Hashed", "Hashed", &report, 0, "Hashed$Item", comment);
            for line in 0..24 {
                assert_eq!(
                    count(&format!("line {line}")),
                    100,
                    "JDK {jdk}, {name}: {line}"
                );
            }
            assert_eq!(count("hashed"), 0, "JDK {jdk}, {name}");
        }
    }
}

#[test]
fn stays_for_a_time() {
    for jdk in JDKS {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let mut program = Program::java(jdk, &[], "Steps");
        let mut attach = Command::new(borescope());
        attach
            .args(["attach", &program.pid(), "--for", "1h", "-o"])
            .arg(&out);
        let attached = attach
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = attached.id().to_string();
        // Its first line on standard error: the agent is there.
        let mut attached = attached;
        let mut err = BufReader::new(attached.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        assert!(line.contains("for 3600 s"), "{line}");
        program.step("second 500");
        // Ctrl-C ends it early, in order.
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        let mut rest = String::new();
        err.read_to_string(&mut rest).unwrap();
        let ended = attached.wait_with_output().unwrap();
        assert!(ended.status.success(), "{rest}");
        let text = String::from_utf8(ended.stdout).unwrap();
        let line = line_of("Steps", "second");
        assert!(
            text.contains(&format!("Steps.step (Steps.java:{line})")),
            "{text}"
        );
        assert_eq!(
            live(&borescope_report(&out), 0, "Steps$Kept", "second"),
            500
        );
        // Its JVM is as before.
        program.step("third 10");
        only_the_jvms_warning(jdk, &program.end().1);
    }
}

/// `--every`: the program waits until the JVM has taken as many snapshots as it is asked for.
#[test]
fn by_the_clock() {
    for jdk in JDKS {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let mut program = Program::java(jdk, &[], "Steps");
        let at = out.to_str().unwrap();
        does(&["attach", &program.pid(), "--every", "1s", "-o", at]);
        program.step("second 500");
        let taken = loop {
            let taken = Log::read(&spool(&out)).snapshots().len();
            if taken > 2 {
                break taken;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        program.end();
        let report = borescope_report(&out);
        let snapshots = report["sites"]["snapshots"].as_array().unwrap();
        assert!(snapshots.len() > taken, "JDK {jdk}");
        let (last, clock) = snapshots.split_last().unwrap();
        assert_eq!(last["cause"], "exit", "JDK {jdk}");
        for (number, snapshot) in clock.iter().enumerate() {
            assert_eq!(snapshot["cause"], "interval", "JDK {jdk}: {number}");
        }
        assert_eq!(
            live(&report, taken, "Steps$Kept", "second"),
            500,
            "JDK {jdk}"
        );
    }
}

#[test]
fn under_load() {
    for jdk in JDKS {
        for collector in ["Serial", "Parallel", "G1", "Z", "Shenandoah"] {
            let dir = tempfile::tempdir().unwrap();
            let program = Program::java(jdk, &[&format!("-XX:+Use{collector}GC")], "Churn");
            let pid = program.pid();
            for turn in 0..3 {
                let out = dir.path().join(turn.to_string());
                does(&["attach", &pid, "-o", out.to_str().unwrap()]);
                does(&["detach", &pid]);
                let report = borescope_report(&out);
                assert!(report["sites"]["snapshots"][0].is_object(), "{report}");
            }
            let (said, err) = program.end();
            assert_eq!(said, "ready\nright\n", "JDK {jdk}, {collector}: {err}");
            only_the_jvms_warning(jdk, &err);
        }
    }
}

/// The agent comes before the JVM is ready, or just then.
#[test]
fn jvms_that_are_starting() {
    let dir = tempfile::tempdir().unwrap();
    for jdk in JDKS {
        for turn in 0..8 {
            let mut program = Program::begin(&mut jvm(jdk, &[], "Steps"));
            let out: PathBuf = dir.path().join(format!("{jdk}-{turn}"));
            // Until it is a JVM at all.
            let maps = format!("/proc/{}/maps", program.pid());
            while !std::fs::read_to_string(&maps)
                .unwrap()
                .contains("libjvm.so")
            {
                std::thread::yield_now();
            }
            does(&[
                "attach",
                &program.pid(),
                "--timeout",
                "100",
                "-o",
                out.to_str().unwrap(),
            ]);
            assert_eq!(program.line(), "ready\n");
            // The class may have been in the middle of being loaded: see `classes_that_are_being_loaded`.
            does(&["snapshot", &program.pid()]);
            program.step("second 50");
            only_the_jvms_warning(jdk, &program.end().1);
            let report = borescope_report(&out);
            assert_eq!(live(&report, 1, "Steps$Kept", "second"), 50, "JDK {jdk}");
        }
    }
}

/// A class whose bytes the JVM has read, but that it has not loaded yet.
#[test]
fn classes_that_are_being_loaded() {
    let dir = tempfile::tempdir().unwrap();
    for jdk in JDKS {
        let out = dir.path().join(jdk.to_string());
        let mut program = Program::java(jdk, &[], "Half");
        does(&["attach", &program.pid(), "-o", out.to_str().unwrap()]);
        program.step("go");
        // The thread that takes snapshots instruments such classes first.
        does(&["snapshot", &program.pid()]);
        program.step("on");
        only_the_jvms_warning(jdk, &program.end().1);
        let report = borescope_report(&out);
        let (class, ty) = ("Half$Below", "int[]");
        let objects = live_in("Half", class, &report, 1, ty, "half");
        assert_eq!(objects, 60, "JDK {jdk}");
    }
}

#[test]
fn jvms_that_refuse() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let out = out.to_str().unwrap();
    for jdk in JDKS {
        let refusals: [(&[&str], &str); 3] = [
            (
                &["-XX:+DisableAttachMechanism"],
                "-XX:+DisableAttachMechanism",
            ),
            (
                &["-XX:+DisableAttachMechanism", "-XX:-UsePerfData"],
                "-XX:+DisableAttachMechanism",
            ),
            (
                &["-XX:-EnableDynamicAgentLoading"],
                "-XX:-EnableDynamicAgentLoading",
            ),
        ];
        for (options, words) in refusals {
            let mut program = Program::java(jdk, options, "Steps");
            refuses(&["attach", &program.pid(), "-o", out], &[words]);
            program.step("first 10");
            let (said, err) = program.end();
            // No thread dump.
            assert_eq!(
                (said.as_str(), err.as_str()),
                ("ready\nfirst 10: done\n", "")
            );
        }
        // Without signals it listens from its start.
        for options in ["-Xrs", "-XX:+StartAttachListener", "-XX:-UsePerfData"] {
            let mut program = Program::java(jdk, &[options], "Steps");
            let out = dir.path().join(format!("{jdk}{options}"));
            does(&["attach", &program.pid(), "-o", out.to_str().unwrap()]);
            program.step("second 10");
            program.end();
            assert_eq!(live(&borescope_report(&out), 0, "Steps$Kept", "second"), 10);
        }
    }
    assert!(!Path::new(out).exists(), "nothing is left behind");
}

#[test]
fn what_cannot_be_attached_to_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let out = out.to_str().unwrap();
    // No JVM: SIGQUIT would end it.
    let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = sleep.id().to_string();
    while std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() != "sleep\n" {
        std::thread::yield_now();
    }
    refuses(&["attach", &pid, "-o", out], &["is not a Java process"]);
    refuses(&["detach", &pid], &["is no JVM"]);
    assert!(sleep.try_wait().unwrap().is_none());
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    refuses(&["attach", &pid, "-o", out], &["no process"]);

    let mut program = Program::java(21, &[], "Steps");
    let pid = program.pid();
    refuses(
        &["attach", &pid, "--lens", "paths"],
        &["borescope paths -- java"],
    );
    assert!(
        Command::new("kill")
            .args(["-STOP", &pid])
            .status()
            .unwrap()
            .success()
    );
    while !std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .unwrap()
        .contains(") T ")
    {
        std::thread::yield_now();
    }
    refuses(&["attach", &pid, "-o", out], &["is stopped", "kill -CONT"]);
    assert!(
        Command::new("kill")
            .args(["-CONT", &pid])
            .status()
            .unwrap()
            .success()
    );
    program.step("first 1");
    assert_eq!(
        program.end(),
        ("ready\nfirst 1: done\n".into(), String::new())
    );

    // The agent says why, and the program hears nothing of it.
    let program = Program::java(
        25,
        &[
            "-XX:+UnlockExperimentalVMOptions",
            "-XX:+UseCompactObjectHeaders",
            "-XX:+EnableDynamicAgentLoading",
        ],
        "Steps",
    );
    refuses(
        &["attach", &program.pid(), "-o", out, "--mode", "spare"],
        &["compact object headers"],
    );
    assert_eq!(program.end(), ("ready\n".into(), String::new()));
    assert!(!Path::new(out).exists(), "nothing is left behind");
}

/// More options than the attach protocol carries.
#[test]
fn many_options() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut program = Program::java(25, &[], "Steps");
    let pid = program.pid();
    let mut arguments = vec!["attach", &pid, "-o", out.to_str().unwrap()];
    let globs: Vec<String> = (0..200)
        .map(|n| format!("com.acme.some.package{n}.*"))
        .collect();
    for glob in &globs {
        arguments.extend(["--exclude", glob]);
    }
    does(&arguments);
    program.step("second 10");
    program.end();
    assert_eq!(live(&borescope_report(&out), 0, "Steps$Kept", "second"), 10);
}

/// Process id, `/tmp` and root of its own, as in a container.
#[test]
fn containers() {
    let mut may = Command::new("unshare");
    if !is_root() {
        may.args(["--user", "--map-root-user"]);
    }
    let may = may.args(["--mount", "--pid", "--fork", "true"]).output();
    if !may.as_ref().is_ok_and(|may| may.status.success()) {
        println!(
            "NOT RUN: this machine allows no namespaces, so there is no container to attach to: {may:?}"
        );
        return;
    }
    for jdk in JDKS {
        // What lies below /tmp it does not see.
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        let out = dir.path().join("out");
        let library = dir.path().join("libborescope.so");
        std::fs::copy(agent(), &library).unwrap();
        let mut java = jvm(jdk, &[], "Steps");
        let java_program = java.get_program().to_owned();
        let java_arguments: Vec<_> = java.get_args().map(ToOwned::to_owned).collect();
        java = Command::new("unshare");
        if !is_root() {
            java.args(["--user", "--map-root-user"]);
        }
        // The classes and the JDK must not lie below /tmp, which becomes another one: bound to where they are seen.
        let script = r#"
            mkdir -p "$1/classes" "$1/jdk" && mount --bind "$2" "$1/classes" && mount --bind "$3" "$1/jdk" || exit 98
            mount -t tmpfs none /tmp && cd / || exit 99
            shift 3; exec "$@""#;
        let home = std::fs::canonicalize(&java_program).unwrap();
        let home = home.ancestors().nth(2).unwrap().to_owned();
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        java.args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            script,
            "sh",
        ])
        .arg(place.path())
        .arg(classes())
        .arg(&home)
        .arg(place.path().join("jdk/bin/java"));
        let seen = place.path().join("classes");
        for argument in &java_arguments {
            java.arg(if Path::new(argument) == classes() {
                seen.as_os_str()
            } else {
                argument.as_os_str()
            });
        }
        let mut program = Program::start(&mut java);
        let children = format!("/proc/{0}/task/{0}/children", program.pid());
        let pid = std::fs::read_to_string(&children)
            .unwrap()
            .trim()
            .to_owned();
        let out = out.to_str().unwrap();
        refuses(&["attach", &pid, "-o", out], &["does not see", "--for"]);
        let attach = Command::new(borescope())
            .env("BORESCOPE_AGENT", &library)
            .args(["attach", &pid, "--for", "1h", "-o", out])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut attach = attach.unwrap();
        let mut err = BufReader::new(attach.stderr.take().unwrap());
        let mut lines = String::new();
        while !lines.contains("for 3600 s") {
            assert_ne!(err.read_line(&mut lines).unwrap(), 0, "{lines}");
        }
        assert!(lines.contains("a file system of its own"), "{lines}");
        program.step("second 500");
        let interrupt = attach.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &interrupt])
                .status()
                .unwrap()
                .success()
        );
        err.read_to_string(&mut lines).unwrap();
        assert!(attach.wait().unwrap().success(), "{lines}");
        assert_eq!(
            live(&borescope_report(Path::new(out)), 0, "Steps$Kept", "second"),
            500
        );
        let inside = std::fs::read_dir(format!("/proc/{pid}/root/tmp")).unwrap();
        let ours: Vec<_> = inside
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("borescope") || name.contains("attach"))
            .collect();
        assert!(ours.is_empty(), "left behind: {ours:?}");
        program.end();
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}
