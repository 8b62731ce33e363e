//! `borescope top` on a terminal of its own.

mod common;

use common::World;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

#[test]
fn it_shows_what_a_running_jvm_has_counted_and_leaves_the_spool_alone() {
    let w = World::new();
    // This process stands for the JVM: it has the spool's number and log.
    let spool = w.path(&format!("run/.spool/{}", std::process::id()));
    std::fs::create_dir_all(&spool).unwrap();
    for name in ["meta.log", "counters.bin"] {
        std::fs::copy(w.path("template").join(name), spool.join(name)).unwrap();
    }
    let _log = File::open(spool.join("meta.log")).unwrap();
    let before = common::names(&spool);

    let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&pty).unwrap();
    unlockpt(&pty).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&pty, size).unwrap();
    let name = ptsname(&pty, Vec::new()).unwrap();
    let side = || -> Stdio {
        open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())
            .unwrap()
            .into()
    };
    let mut child = w
        .borescope(&["top", "run"])
        .env("TERM", "xterm")
        .stdin(side())
        .stdout(side())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut terminal = File::from(pty);
    let mut seen = Vec::new();
    let mut until = |terminal: &mut File, words: &str| {
        let mut some = [0; 4096];
        while !String::from_utf8_lossy(&seen).contains(words) {
            let read = terminal.read(&mut some).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&seen));
            seen.extend(&some[..read]);
        }
        seen.clear();
    };
    until(&mut terminal, "q quit");
    terminal.write_all(b"\r").unwrap();
    until(&mut terminal, "Esc back");
    terminal.write_all(b"qq").unwrap();
    let ended = child.wait().unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!((ended.code(), said.as_str()), (Some(0), ""));
    assert_eq!(common::names(&spool), before);
    assert_eq!(w.list("run"), [".spool"]);
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let w = World::new();
    w.run(&["top", "."])
        .fails(1, &["needs a terminal", "borescope report"]);
    w.run(&["top"]).fails(1, &["DIR|PID"]);
}
