//! The program under `borescope paths` cannot tell: arguments, environment, streams, exit codes and signals are what they would be
//! without us, but for the agent.

mod common;

use common::{Ran, World};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};

#[test]
fn agent_goes_right_behind_java_and_every_argument_arrives() {
    let w = World::new();
    w.script(
        "java",
        r#"printf '%s\0' "$@"; printf '%s' "${JAVA_TOOL_OPTIONS-unset}""#,
    );
    let include = [
        "--include",
        "com.acme.*",
        "--include",
        "org.x.Y$Z",
        "--exclude",
        "*Test",
    ];
    let ran = w.run(
        &[
            &[
                "paths",
                "-k",
                "7",
                "--engine",
                "ksf",
                "--branches",
                "split",
                "--straight-line",
                "--memory",
                "64M",
                "-o",
                "out dir",
            ],
            &include[..],
            &["--", "java", "-cp", "a b", "", "--", "-k", "x\ny"],
        ]
        .concat(),
    );
    let words: Vec<&str> = ran.stdout.split('\0').collect();
    let out = w.path("out%20dir");
    let agent = format!(
        "-agentpath:{}=lens=paths,k=7,engine=ksf,out={},include=com.acme.*;org.x.Y$Z,exclude=*Test,branches=split,straight=1,memory=67108864",
        w.path("agent.so").display(),
        out.display()
    );
    assert_eq!(
        words,
        [&agent, "-cp", "a b", "", "--", "-k", "x\ny", "unset"]
    );
}

#[test]
fn anything_else_gets_the_agent_through_the_environment() {
    let w = World::new();
    w.script("mvn", r#"printf '%s|%s' "$JAVA_TOOL_OPTIONS" "$*""#);
    let mut command = w.borescope(&["paths", "-o", "out", "--", "mvn", "test"]);
    let ran = Ran::new(command.env("JAVA_TOOL_OPTIONS", "-Xmx1g").output().unwrap());
    let (options, arguments) = ran.stdout.split_once('|').unwrap();
    assert_eq!(arguments, "test");
    assert_eq!(
        options,
        format!(
            "-Xmx1g -agentpath:{}=lens=paths,k=4,engine=automaton,out={}",
            w.path("agent.so").display(),
            w.path("out").display()
        )
    );
}

#[test]
fn the_default_directory_is_new_and_named() {
    let w = World::new();
    w.java(0);
    let ran = w.run(&["paths", "-q", "--", "java"]);
    let made: Vec<String> = w
        .list(".")
        .into_iter()
        .filter(|n| n.ends_with(".borescope"))
        .collect();
    let [dir] = made.as_slice() else {
        panic!("{made:?}")
    };
    assert!(
        ran.stderr.contains(&w.path(dir).display().to_string()),
        "{ran:?}"
    );
}

#[test]
fn streams_pass_through() {
    let w = World::new();
    w.script("java", "agent \"$1\"; cat; echo problem >&2");
    let mut child = w
        .borescope(&["paths", "-o", "out", "--", "java"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(output.stdout, bytes);
    assert!(
        output
            .stderr
            .starts_with(b"problem\nborescope: profile in "),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn exit_codes_pass_through() {
    let w = World::new();
    for code in [0, 1, 2, 3, 77, 255] {
        w.java(code);
        let ran = w.run(&["paths", "-o", &format!("out{code}"), "--", "java"]);
        assert_eq!(ran.code, Some(i32::from(code)), "{ran:?}");
        assert!(w.path(&format!("out{code}/manifest.json")).is_file());
    }
    w.script("java", "agent \"$1\"; kill -9 $$");
    assert_eq!(
        w.run(&["paths", "-o", "killed", "--", "java"]).code,
        Some(128 + 9)
    );
    assert!(
        w.path("killed/manifest.json").is_file(),
        "what was counted before the kill is kept"
    );
}

#[test]
fn a_failure_of_ours_does_not_change_the_exit_code() {
    let w = World::new();
    w.script(
        "java",
        "agent \"$1\"; echo broken > \"$spool/counters.bin\"; exit 5",
    );
    let ran = w.run(&["paths", "-o", "out", "--", "java"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.stderr.contains("cannot complete the profile"),
        "{ran:?}"
    );
    w.script("java", "exit 6");
    let ran = w.run(&["paths", "-o", "none", "--", "java"]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.stderr.contains("nothing was profiled"), "{ran:?}");
    assert!(
        !w.path("none").exists(),
        "an empty directory is not left behind"
    );
}

/// Starts a `java` that ends with `code` at `signal`, and returns once it is ready for it.
fn waiting(w: &World, signal: &str, code: u8) -> (Child, BufReader<std::process::ChildStdout>) {
    w.script(
        "java",
        &format!("agent \"$1\"; sleep 600 >&- 2>&- & trap 'kill $!; echo got; exit {code}' {signal}; echo ready; while :; do wait; done"),
    );
    let mut child = w
        .borescope(&["paths", "-q", "-o", signal, "--", "java"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, stdout)
}

#[test]
fn signals_sent_to_us_reach_the_program() {
    let w = World::new();
    let signals = [
        ("TERM", Signal::TERM),
        ("HUP", Signal::HUP),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
    ];
    for (code, (name, signal)) in (40..).zip(signals) {
        let (mut child, mut stdout) = waiting(&w, name, code);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "got\n", "{name}");
        assert_eq!(child.wait().unwrap().code(), Some(code.into()), "{name}");
        assert!(
            w.path(name).join("manifest.json").is_file(),
            "{name}: sealed after the signal"
        );
    }
}

#[test]
fn ctrl_c_on_a_terminal_reaches_the_program_once_and_the_profile_is_sealed() {
    let w = World::new();
    // After the first SIGINT the program waits for a line; a second SIGINT would show in the count.
    w.script(
        "java",
        r#"agent "$1"; n=0; trap 'n=$((n+1))' INT; sleep 600 >&- 2>&- <&- & echo ready; while [ $n = 0 ]; do wait $!; done
kill $!; echo interrupted; read line; echo "$line after $n"; exit 9"#,
    );
    // `exec`: a shell that stays (dash) would die of the SIGINT itself, and `script` would report that.
    let cli = format!(
        "exec {} paths -q -o out -- java",
        env!("CARGO_BIN_EXE_borescope")
    );
    let mut terminal = w
        .command("script")
        .args(["-q", "-e", "-c", &cli, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    let mut lines = BufReader::new(terminal.stdout.take().unwrap())
        .lines()
        .map(|l| l.unwrap());
    assert!(lines.by_ref().any(|l| l.contains("ready")));
    keys.write_all(b"\x03").unwrap();
    assert!(lines.by_ref().any(|l| l.contains("interrupted")));
    keys.write_all(b"line\n").unwrap();
    assert!(
        lines.by_ref().any(|l| l.contains("line after 1")),
        "one SIGINT, not two"
    );
    assert!(lines.by_ref().any(|l| l.contains("profile in")));
    assert_eq!(terminal.wait().unwrap().code(), Some(9));
    assert!(w.path("out/manifest.json").is_file());
}

#[test]
fn ignored_and_default_signals_are_inherited_as_they_are() {
    let w = World::new();
    w.script("java", "grep SigIgn /proc/$$/status");
    for ignore in ["", "trap '' HUP INT; "] {
        let mask = |command: &str| {
            let ran = Ran::new(
                w.command("sh")
                    .args(["-c", &format!("{ignore}exec {command}")])
                    .output()
                    .unwrap(),
            );
            let mask = u64::from_str_radix(
                ran.stdout.strip_prefix("SigIgn:\t").expect("a mask").trim(),
                16,
            )
            .unwrap();
            mask & 0x7fff_ffff // 32 and 33 belong to glibc, whose posix_spawn ignores them in every child
        };
        let ours = mask(&format!(
            "{} paths -o out -- java",
            env!("CARGO_BIN_EXE_borescope")
        ));
        assert_eq!(ours, mask("java"), "with {ignore:?}");
        assert!(
            ignore.is_empty() || ours & 0b11 == 0b11,
            "SIGHUP and SIGINT stay ignored: {ours:b}"
        );
    }
}

#[test]
fn closed_standard_error_costs_neither_exit_code_nor_profile() {
    let w = World::new();
    w.java(4);
    // `head` is gone before we say anything.
    let line = format!(
        "({} paths -o out -- java; echo $? > code) 2>&1 >/dev/null | head -c 0; wait",
        env!("CARGO_BIN_EXE_borescope")
    );
    assert!(
        w.command("sh")
            .args(["-c", &line])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(std::fs::read_to_string(w.path("code")).unwrap(), "4\n");
    assert!(w.path("out/manifest.json").is_file());
}

#[test]
fn the_page_is_made_and_opened_when_asked_for() {
    let w = World::new();
    w.java(7);
    w.script("xdg-open", r#"echo "$1" > seen; mv seen opened"#);
    let opened = || {
        let seen = w.path("opened");
        while !seen.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5)); // it is not waited for
        }
        let text = std::fs::read_to_string(&seen).unwrap();
        std::fs::remove_file(&seen).unwrap();
        std::path::PathBuf::from(text.trim_end())
    };
    let ran = w.run(&["paths", "--open", "-q", "-o", "run", "--", "java"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(opened().ends_with("run/report.html"), "{ran:?}");
    let page = std::fs::read_to_string(w.path("run/report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>"));

    let report = [
        "report", "run", "--format", "html", "--out", "of.html", "--open",
    ];
    assert_eq!(w.run(&report).code, Some(0));
    assert!(opened().ends_with("of.html"));

    // A server has no desktop.
    let bare = w
        .borescope(&report)
        .env("PATH", w.path("template"))
        .output();
    let ran = Ran::new(bare.unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("nothing here opens of.html"), "{ran:?}");
    let ran = w.run(&["report", "run", "--format", "html", "--open"]);
    ran.fails(1, &["--out"]);
}

#[test]
fn the_option_alone_does_what_the_command_does() {
    let w = World::new();
    let java = w.java(0);
    for lens in ["paths", "sites", "waste"] {
        let printed = w.run(&[lens, "--print-agent", "-o", lens]);
        assert_eq!(printed.code, Some(0), "{printed:?}");
        let option = printed.stdout.strip_suffix('\n').unwrap();
        let start = format!("-agentpath:{}=lens={lens},", w.path("agent.so").display());
        assert!(option.starts_with(&start), "{option}");
        assert!(w.list(lens).is_empty());
        let ran = w.command(&java).arg(option).status().unwrap();
        assert!(ran.success());
        assert_eq!(w.run(&["report", lens]).code, Some(0));
    }
    let both = w.run(&["paths", "--print-agent", "-o", "x", "--", "java"]);
    both.fails(1, &["--print-agent"]);
}
