//! The commands of the sites lens, without a JVM: a script leaves a spool as an agent would, and the test itself plays the JVM that is asked for a
//! snapshot.

mod common;

use borescope_spool::meta::Record;
use borescope_spool::sites::Cause;
use borescope_spool::testing::sites::{Heap, shop, shop_heap};
use common::{Ran, World};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;

/// A world whose agent leaves the spool of a shop with these snapshots.
fn world(snapshots: &[(Cause, usize)]) -> World {
    let w = World::new();
    fs::remove_file(w.path("template/counters.bin")).unwrap();
    taken(&mut shop(&w.path("template")), snapshots).record(&Record::Ended {
        at_ms: 1_764_457_300_000,
    });
    w
}

fn taken<'a>(heap: &'a mut Heap, snapshots: &[(Cause, usize)]) -> &'a mut Heap {
    for &(cause, requests) in snapshots {
        heap.snapshot(cause, &shop_heap(requests), false);
    }
    heap
}

const LEAK: [(Cause, usize); 3] = [
    (Cause::Interval, 10),
    (Cause::Interval, 40),
    (Cause::Exit, 90),
];

#[test]
fn the_program_runs_and_the_answer_is_shown() {
    let w = world(&LEAK);
    w.script(
        "java",
        r#"agent "$1"; printf '%s\0' "$@"; echo "out of the program" >&2; exit 7"#,
    );
    let arguments = [
        &[
            "sites",
            "--objects",
            "--no-gc",
            "--every",
            "5m",
            "-o",
            "out",
        ][..],
        &[
            "--include",
            "com.acme.*",
            "--exclude",
            "*Test",
            "--",
            "java",
            "-jar",
            "a b",
        ],
    ];
    let ran = w.run(&arguments.concat());
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let agent = format!(
        "-agentpath:{}=lens=sites,out={},include=com.acme.*,exclude=*Test,jdk=1,attribute=1,objects=1,gc=0,every=300,mode=auto",
        w.path("agent.so").display(),
        w.path("out").display()
    );
    let words: Vec<&str> = ran.stdout.split_terminator('\0').collect();
    assert_eq!(words, [&agent, "-jar", "a b"]);
    let said: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(said[0], "out of the program");
    assert!(said[1].contains("profile in ") && said[1].contains("`borescope report "));
    assert!(
        ran.stderr
            .contains("acme.Cache.load (Cache.java:42) grew by"),
        "{ran:?}"
    );
    assert_eq!(
        w.list("out"),
        [
            "live.parquet",
            "manifest.json",
            "sites.parquet",
            "skipped.parquet"
        ]
    );
}

#[test]
fn without_the_jdk_nothing_is_attributed() {
    let w = world(&LEAK);
    w.script(
        "mvn",
        r#"printf '%s' "$JAVA_TOOL_OPTIONS"; agent "$JAVA_TOOL_OPTIONS,""#,
    );
    let ran = w.run(&[
        "sites", "-q", "--jdk", "no", "-o", "out", "--mode", "spare", "--", "mvn",
    ]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stdout
            .ends_with("out,jdk=0,attribute=0,objects=0,gc=1,mode=spare"),
        "{ran:?}"
    );
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
}

#[test]
fn reports_and_differences() {
    let w = world(&LEAK);
    w.java(0);
    w.run(&["sites", "-q", "-o", "one", "--", "java"]);
    let report = w.run(&["report", "one"]);
    assert_eq!((report.code, report.stderr.as_str()), (Some(0), ""));
    assert!(report.stdout.contains("WHAT GREW, from snapshot 1 to 3"));
    let json = w.run(&["report", "one", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["sites"]["snapshots"].as_array().unwrap().len(), 3);

    let part = w.run(&["diff", "one", "--from", "2", "--top", "1"]);
    assert!(part.stdout.contains("from snapshot 2 to 3") && part.stdout.contains("+50"));
    assert!(part.stdout.contains("more lines that grew"), "{part:?}");
    // Of two profiles the last ones.
    let other = world(&[(Cause::Exit, 20)]);
    other.java(0);
    other.run(&["sites", "-q", "-o", "two", "--", "java"]);
    let two = other.path("two").display().to_string();
    let json = w.run(&[
        "diff",
        &two,
        "one",
        "--format",
        "json",
        "--method",
        "Cache.load",
    ]);
    assert_eq!((json.code, json.stderr.as_str()), (Some(0), ""));
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let lines = json["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(
        (&lines[0]["before_objects"], &lines[0]["after_objects"]),
        (&20.into(), &90.into())
    );

    w.run(&["diff", &two])
        .fails(1, &["two profiles", "--every"]);
    w.run(&["diff", "one", "--to", "1"])
        .fails(1, &["no snapshot before number 1"]);
    w.run(&["diff", "one", "--to", "9"])
        .fails(1, &["no snapshot 9", "1, 2, 3"]);
    w.run(&["diff", "nowhere"])
        .fails(1, &["no directory nowhere"]);
    let paths = World::new();
    paths.java(0);
    paths.run(&["paths", "-q", "-o", "p", "--", "java"]);
    paths
        .run(&["diff", "p"])
        .fails(1, &["profile of paths", "borescope sites"]);
    paths.run(&["sites"]).fails(1, &["after `--`"]);
    paths
        .run(&["sites", "--every", "0", "--", "java"])
        .fails(1, &["such as 90s, 10m or 2h"]);
    paths
        .run(&["sites", "--jdk", "1", "--", "java"])
        .fails(1, &["--jdk"]);
    paths.run(&["snapshot", "0"]).fails(1, &["PID"]);
}

#[test]
fn a_killed_jvm_without_a_snapshot_has_an_empty_profile() {
    let w = World::new();
    fs::remove_file(w.path("template/counters.bin")).unwrap();
    shop(&w.path("template"));
    w.java(0);
    let ran = w.run(&["sites", "-o", "out", "--", "java"]);
    assert!(ran.stderr.contains("no snapshot was taken"), "{ran:?}");
    let report = w.run(&["report", "out"]);
    assert_eq!(report.code, Some(3));
    assert!(
        report
            .stdout
            .contains("No snapshot was taken: the JVM was killed"),
        "{report:?}"
    );
    w.run(&["diff", "out"]).fails(3, &["no snapshot in out"]);
}

/// This process plays the JVM: it has the log open and serves the socket, once with each of these answers.
fn served(w: &World, answers: &'static [&'static str]) -> (File, std::thread::JoinHandle<()>) {
    let spool = w.path("out/.spool").join(std::process::id().to_string());
    shop(&spool).snapshot(Cause::Request, &shop_heap(3), false);
    let log = File::open(spool.join("meta.log")).unwrap();
    let listener = UnixListener::bind(spool.join("control")).unwrap();
    let server = std::thread::spawn(move || {
        for answer in answers {
            let (mut client, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&client).read_line(&mut line).unwrap();
            assert_eq!(line, "snapshot\n");
            client.write_all(answer.as_bytes()).unwrap();
        }
    });
    (log, server)
}

/// One test, as it is one process that has a log open or not.
#[test]
fn snapshots_of_a_running_jvm() {
    let pid = std::process::id().to_string();
    let none = World::new();
    let ask = |w: &World| w.run(&["snapshot", &pid]);
    ask(&none).fails(2, &["is no JVM"]);
    // More than any process id (proc(5): at most 2^22).
    none.run(&["snapshot", "4294967295"])
        .fails(2, &["no process 4294967295"]);

    let paths = World::new();
    let spool = paths.path("out/.spool").join(&pid);
    fs::create_dir_all(&spool).unwrap();
    fs::write(spool.join("meta.log"), "").unwrap();
    let log = File::open(spool.join("meta.log")).unwrap();
    ask(&paths).fails(2, &["takes no snapshots now", "borescope paths"]);
    drop(log);

    let w = World::new();
    let answers = &["ok snapshot-1\n", "error the disk is full\n", ""];
    let (log, server) = served(&w, answers);
    let ran = ask(&w);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let out = w.path("out");
    assert_eq!(
        ran.stdout,
        format!(
            "snapshot 1 of JVM {pid} taken; `borescope report {}` shows it\n",
            out.display()
        )
    );
    ask(&w).fails(2, &["takes no snapshot: the disk is full"]);
    ask(&w).fails(2, &["ended before the snapshot was whole"]);
    server.join().unwrap();
    // The socket is still there, but nobody listens.
    ask(&w).fails(2, &["ended, or no longer takes snapshots"]);

    // The report of what still runs shows what there is, and leaves the spool alone.
    let report = w.run(&["report", "out"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    assert!(
        report.stderr.contains(&format!("JVM {pid} still runs")),
        "{report:?}"
    );
    assert!(
        report.stdout.contains("MOST LIVE BYTES, snapshot 1"),
        "{report:?}"
    );
    assert_eq!(w.list("out/.spool"), [pid.as_str()]);
    drop(log);
    let report = w.run(&["report", "out"]);
    assert_eq!((report.code, report.stderr.as_str()), (Some(0), ""));
    assert!(Path::new(&w.path("out/manifest.json")).exists());
}

/// unix(7): a socket's path has at most 107 bytes; directories may be deeper.
#[test]
fn deep_directories_have_sockets_too() {
    let w = World::new();
    let deep = w.path(&"d".repeat(120)).join(".spool/1");
    fs::create_dir_all(&deep).unwrap();
    let ran = Ran::new(
        w.command("sh")
            .args(["-c", "exec 3>>meta.log; exec borescope snapshot $$"])
            .current_dir(&deep)
            .env(
                "PATH",
                format!(
                    "{}:/usr/bin:/bin",
                    Path::new(env!("CARGO_BIN_EXE_borescope"))
                        .parent()
                        .unwrap()
                        .display()
                ),
            )
            .output()
            .unwrap(),
    );
    ran.fails(2, &["takes no snapshots now"]);
}
