//! The protocol against a fake JVM: a `/proc` made of files, a function that does what HotSpot's signal dispatcher does, and a thread that answers
//! like its attach listener. That real JVMs answer like it is shown in tests/e2e.

use crate::*;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

const LIBRARY: &str = "/opt/agent.so";
const SHORT: Patience = Patience {
    answer: Duration::from_millis(300),
    load: Duration::from_millis(300),
};
const LONG: Patience = Patience {
    answer: Duration::from_secs(30),
    load: Duration::from_secs(30),
};

/// What has happened to the fake JVM.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self, what: &str) {
        self.0.lock().unwrap().push(what.to_owned());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

struct Fake {
    home: TempDir,
    pid: u32,
    own_pid: u32,
    seen: Seen,
}

impl Fake {
    /// A JVM with our process id and user, as its listener will be.
    fn new(own_pid: u32) -> Self {
        let fake = Self {
            home: tempfile::tempdir().unwrap(),
            pid: std::process::id(),
            own_pid,
            seen: Seen::default(),
        };
        for dir in ["root/tmp", "cwd", "proc"] {
            fs::create_dir_all(fake.home.path().join(dir)).unwrap();
        }
        let proc = fake.proc();
        fs::create_dir(&proc).unwrap();
        symlink(fake.home.path().join("root"), proc.join("root")).unwrap();
        symlink(fake.home.path().join("cwd"), proc.join("cwd")).unwrap();
        fake.status("S (sleeping)", "0000000000000004", "0000000000000000");
        fake.write("cmdline", b"/jdk/bin/java\0-cp\0a b\0Main\0");
        fake.write("environ", b"");
        fake.write("maps", b"7f00-7f01 r-xp 00000000 08:01 42      /jdk/lib/server/libjvm.so\n7f02-7f03 rw-p 00000000 00:00 0\n");
        fake
    }

    fn proc(&self) -> PathBuf {
        self.home.path().join("proc").join(self.pid.to_string())
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.proc().join(name), bytes).unwrap();
    }

    fn status(&self, state: &str, caught: &str, pending: &str) {
        let (uid, gid) = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        self.status_of(state, caught, pending, uid, gid);
    }

    fn status_of(&self, state: &str, caught: &str, pending: &str, uid: u32, gid: u32) {
        let (pid, own) = (self.pid, self.own_pid);
        let text = format!(
            "Name:\tjava\nState:\t{state}\nTgid:\t{pid}\nPid:\t{pid}\nUid:\t7\t{uid}\t7\t7\nGid:\t7\t{gid}\t7\t7\nNSpid:\t{pid}\t9\t{own}\n\
             SigPnd:\t0000000000000000\nShdPnd:\t{pending}\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000000002\nSigCgt:\t{caught}\n"
        );
        self.write("status", text.as_bytes());
    }

    fn tmp(&self, name: &str) -> PathBuf {
        self.home.path().join("root/tmp").join(name)
    }

    fn socket(&self) -> PathBuf {
        self.tmp(&format!(".java_pid{}", self.own_pid))
    }

    fn trigger(&self) -> String {
        format!(".attach_pid{}", self.own_pid)
    }

    fn find(&self) -> Result<Target> {
        Target::find(&Proc(self.home.path().join("proc")), self.pid)
    }

    /// A target whose SIGQUIT does what HotSpot's does; its listener gives this answer.
    fn target(&self, answer: &'static [u8]) -> Target {
        let mut target = self.find().unwrap();
        let (seen, socket) = (self.seen.clone(), self.socket());
        let (cwd, tmp) = (
            self.home.path().join("cwd").join(self.trigger()),
            self.tmp(&self.trigger()),
        );
        target.quit = Box::new(move || {
            if socket.exists() || !(cwd.exists() || tmp.exists()) {
                seen.note("thread dump");
            } else {
                seen.note("asked to listen");
                listen(&socket, seen.clone(), answer);
            }
            Ok(())
        });
        target
    }

    /// Nothing of ours is left in its directories, but what is named.
    fn left(&self, names: &[&str]) {
        let mut left = Vec::new();
        for dir in ["root/tmp", "cwd"] {
            for entry in fs::read_dir(self.home.path().join(dir)).unwrap() {
                left.push(entry.unwrap().file_name().into_string().unwrap());
            }
        }
        left.retain(|name| !name.starts_with(".java_pid"));
        assert_eq!(left, names);
    }
}

/// A JVM's attach listener: one request, read as attachListener_linux.cpp does, one answer.
fn listen(socket: &Path, seen: Seen, answer: &'static [u8]) {
    // Bound under another name and renamed once it listens, as HotSpot does.
    let early = socket.with_extension("tmp");
    let listener = UnixListener::bind(&early).unwrap();
    fs::rename(&early, socket).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while request.iter().filter(|b| **b == 0).count() < 5 {
            let mut part = [0; 7];
            match stream.read(&mut part).unwrap() {
                0 => return seen.note("incomplete"),
                n => request.extend(&part[..n]),
            }
        }
        let request = String::from_utf8(request).unwrap().replace('\0', "|");
        seen.note(&request);
        stream.write_all(answer).unwrap();
    });
}

fn message(result: Result<impl Sized>) -> String {
    let message = result.err().expect("refused").to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

fn loads(fake: &Fake, target: &Target, patience: Patience) -> Result<()> {
    let done = load(target, Path::new(LIBRARY), "lens=sites,out=/o", patience);
    assert!(!fake.seen.all().contains(&"thread dump".to_owned()));
    done
}

#[test]
fn asks_to_listen_then_loads() {
    let fake = Fake::new(17);
    let target = fake.target(b"0\nreturn code: 0\n");
    assert_eq!(
        (target.own_pid, target.command()),
        (17, "java -cp a b Main".into())
    );
    loads(&fake, &target, LONG).unwrap();
    let request = format!("1|load|{LIBRARY}|true|lens=sites,out=/o|");
    assert_eq!(fake.seen.all(), ["asked to listen", &request]);
    fake.left(&[]);
}

#[test]
fn a_jvm_that_listens_gets_no_signal() {
    let fake = Fake::new(17);
    let target = fake.target(b"");
    listen(&fake.socket(), fake.seen.clone(), b"0\nreturn code: 0\n");
    loads(&fake, &target, LONG).unwrap();
    assert_eq!(fake.seen.all().len(), 1, "the request only");
}

#[test]
fn what_answers_mean() {
    for (answer, expected) in [
        (&b"0\nreturn code: 1\n"[..], "the agent refused to start in process PID (code 1)"),
        (b"0\nreturn code: -1", "(code -1)"),
        (b"0\nDynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch target VM.\n", "-XX:-EnableDynamicAgentLoading"),
        (b"-1\nDynamic agent loading is not enabled.\n", "-XX:-EnableDynamicAgentLoading"),
        (b"0\n/opt/agent.so was not loaded.\n/opt/agent.so: cannot open\n  shared object file\n", "cannot load the agent: /opt/agent.so was not loaded. /opt/agent.so: cannot open shared object file"),
        (b"101\n", "another version of the attach protocol"),
        (b"1\n", "status 1"),
        (b"no status", "cannot load the agent: no status"),
        (b"", "closed the connection without a word"),
    ] {
        let fake = Fake::new(17);
        let said = message(loads(&fake, &fake.target(answer), LONG));
        let expected = expected.replace("PID", &fake.pid.to_string());
        assert!(said.contains(&expected), "{said}");
        fake.left(&[]);
    }
}

#[test]
fn processes_that_must_not_get_a_signal() {
    let fake = Fake::new(17);
    let refused = |what: &str| {
        let said = message(fake.find());
        assert!(said.contains(what), "{said}");
    };
    for maps in [
        &b""[..],
        b"7f00-7f01 r-xp 00000000 08:01 42  /lib/libc.so.6\n",
        b"7f00-7f01 r-xp 00000000 08:01 42  /home/libjvm.so/other\n",
        b"7f00-7f01 r-xp 00000000 08:01 42  /jdk/libjvm.so.txt\n",
    ] {
        fake.write("maps", maps);
        refused("is not a Java process");
    }
    fake.write("maps", b"1-2 r-xp 0 08:01 42 /jdk/lib/server/libjvm.so\n1-2 r-xp 0 08:01 42 /jdk/lib/default/libj9vm29.so\n");
    refused("OpenJ9");
    fake.write(
        "maps",
        b"1-2 r-xp 0 08:01 42 /jdk 17/lib/server/libjvm.so (deleted)\n",
    );
    assert!(fake.find().is_ok(), "its JDK was updated");

    fake.status("T (stopped)", "0000000000000004", "0000000000000000");
    refused("is stopped");
    fake.status("t (tracing stop)", "0000000000000004", "0000000000000000");
    refused("is stopped");
    fake.status("Z (zombie)", "0000000000000004", "0000000000000000");
    refused("no process");
    fs::remove_file(fake.proc().join("status")).unwrap();
    refused("no process");
    fake.write("status", b"garbage");
    refused("cannot look into process");
    assert!(message(Target::find(&Proc::default(), 0)).contains("no process 0"));
    assert!(message(Target::find(&Proc::default(), u32::MAX)).contains("no process"));
    assert_eq!(fake.seen.all(), [""; 0]);
}

#[test]
fn other_users_and_groups() {
    let fake = Fake::new(17);
    fake.status_of("S (sleeping)", "4", "0", 12_345, 12_345);
    // Root may; whether this test runs as root is the machine's choice, and both answers are checked.
    let found = fake.find();
    if rustix::process::geteuid().is_root() {
        assert_eq!(found.unwrap().user, 12_345);
    } else {
        assert!(message(found).contains("belongs to user 12345"));
    }
}

#[test]
fn attaching_switched_off() {
    let fake = Fake::new(17);
    let off = || {
        fake.find()
            .err()
            .is_some_and(|e| matches!(e, Error::Disabled(_)))
    };
    assert!(!off());
    fake.write("cmdline", b"java\0-XX:+DisableAttachMechanism\0Main\0");
    assert!(off());
    fake.write(
        "cmdline",
        b"java\0-XX:+DisableAttachMechanism\0-XX:-DisableAttachMechanism\0Main\0",
    );
    assert!(!off());
    fake.write("cmdline", b"java\0Main\0");
    fake.write(
        "environ",
        b"A=b\0JAVA_TOOL_OPTIONS=-Xmx1g -XX:+DisableAttachMechanism\0C=d\0",
    );
    assert!(off());
    fake.write("cmdline", b"java\0-XX:-DisableAttachMechanism\0Main\0");
    assert!(!off(), "the command has the last word");

    // Performance data know better than words.
    let perf = |value| {
        let file = perf::tests::file(&[("sun.rt.jvmCapabilities", value)]);
        fs::create_dir_all(fake.tmp("hsperfdata_me")).unwrap();
        fs::write(fake.tmp("hsperfdata_me/17"), file).unwrap();
    };
    fake.write(
        "maps",
        b"1-2 r-xp 0 08:01 42 /jdk/libjvm.so\n3-4 rw-s 0 08:01 43 /tmp/hsperfdata_me/17\n",
    );
    perf("0");
    assert!(off());
    perf("1");
    fake.write("cmdline", b"java\0-XX:+DisableAttachMechanism\0Main\0");
    assert!(!off());
}

#[test]
fn a_jvm_that_is_still_starting_is_left_alone() {
    let fake = Fake::new(17);
    fake.status("S (sleeping)", "0000000000000000", "0000000000000000");
    let target = fake.target(b"");
    assert!(message(loads(&fake, &target, SHORT)).contains("is not ready"));
    assert_eq!(fake.seen.all(), [""; 0]);
    fake.left(&[]);
}

#[test]
fn without_signals_it_may_begin_to_listen_by_itself() {
    let fake = Fake::new(17);
    fake.status("S (sleeping)", "0000000000000000", "0000000000000000");
    let target = fake.target(b"");
    listen(&fake.socket(), fake.seen.clone(), b"0\nreturn code: 0\n");
    loads(&fake, &target, LONG).unwrap();
}

#[test]
fn no_answer_leaves_the_file_for_a_late_one() {
    let fake = Fake::new(17);
    let mut target = fake.target(b"0\nreturn code: 0\n");
    let hotspot = std::mem::replace(&mut target.quit, Box::new(|| Ok(())));
    let said = message(loads(&fake, &target, SHORT));
    assert!(said.contains("does not answer within 0.3 s"), "{said}");
    assert!(said.contains(&fake.trigger()), "{said}");
    fake.left(&[&fake.trigger()]);
    // Asked again while the first signal is still on its way: no second one.
    fake.status("S (sleeping)", "0000000000000004", "0000000000000004");
    assert!(message(loads(&fake, &target, SHORT)).contains("does not answer"));
    // It comes to itself: the late answer is no thread dump, and the next attempt takes the file away.
    hotspot().unwrap();
    loads(&fake, &target, LONG).unwrap();
    assert_eq!(fake.seen.all()[0], "asked to listen");
}

#[test]
fn a_signal_that_is_on_its_way_is_not_repeated() {
    let fake = Fake::new(17);
    let mut target = fake.target(b"");
    fake.status("S (sleeping)", "0000000000000004", "0000000000000004");
    target.quit = Box::new(|| panic!("a second signal"));
    assert!(message(loads(&fake, &target, SHORT)).contains("does not answer"));
}

#[test]
fn another_client_that_is_faster() {
    let fake = Fake::new(17);
    let mut target = fake.target(b"");
    target.quit = Box::new(|| panic!("a second signal"));
    target.others_turn = LONG.answer;
    fs::write(fake.tmp(&fake.trigger()), "").unwrap();
    let (socket, seen) = (fake.socket(), fake.seen.clone());
    // Its signal makes the JVM listen while we wait for our turn.
    let other = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        listen(&socket, seen, b"0\nreturn code: 0\n");
    });
    loads(&fake, &target, LONG).unwrap();
    other.join().unwrap();
}

#[test]
fn where_the_file_is_made() {
    let fake = Fake::new(17);
    let target = fake.target(b"");
    let (tmp, cwd) = (
        fake.tmp(&fake.trigger()),
        fake.home.path().join("cwd").join(fake.trigger()),
    );
    let trigger = listener::Trigger::set(&target).unwrap();
    assert!(tmp.is_file() && !cwd.exists());
    drop(trigger);
    assert!(!tmp.exists());
    // Something is in the way in /tmp.
    fs::create_dir(&tmp).unwrap();
    let trigger = listener::Trigger::set(&target).unwrap();
    assert!(cwd.is_file());
    drop(trigger);
    assert!(!cwd.exists() && tmp.is_dir());
    fs::create_dir(&cwd).unwrap();
    assert!(message(listener::Trigger::set(&target)).contains("of another kind or owner"));
    fs::remove_dir(&cwd).unwrap();
    fs::remove_dir(&tmp).unwrap();
    // One in the working directory is what the JVM takes, whoever made it.
    fs::write(&cwd, "").unwrap();
    let trigger = listener::Trigger::set(&target).unwrap();
    assert!(!tmp.exists());
    drop(trigger);
    assert!(!cwd.exists());
}

#[test]
fn an_agent_that_does_not_come_back() {
    let fake = Fake::new(17);
    let target = fake.target(b"");
    let listener = UnixListener::bind(fake.socket()).unwrap();
    assert!(message(loads(&fake, &target, SHORT)).contains("has not started within 0.3 s"));
    drop(listener);
    assert!(message(loads(&fake, &target, SHORT)).contains("left over from another JVM"));
}

/// What HotSpot does with a client whose user or group it does not like: it reads nothing.
#[test]
fn a_jvm_that_hangs_up() {
    let fake = Fake::new(17);
    let target = fake.target(b"");
    let listener = UnixListener::bind(fake.socket()).unwrap();
    let jvm = thread::spawn(move || drop(listener.accept().unwrap()));
    let said = message(loads(&fake, &target, LONG));
    jvm.join().unwrap();
    assert!(
        said.contains("closed the connection without a word"),
        "{said}"
    );
}

#[test]
fn a_signal_that_may_not_be_sent() {
    let fake = Fake::new(17);
    for (errno, expected) in [
        (rustix::io::Errno::SRCH, "has ended meanwhile"),
        (rustix::io::Errno::PERM, "Operation not permitted"),
    ] {
        let mut target = fake.target(b"");
        target.quit = Box::new(move || Err(errno.into()));
        let said = message(loads(&fake, &target, LONG));
        assert!(said.contains(expected), "{said}");
        fake.left(&[]);
    }
}

#[test]
fn a_full_queue_is_no_answer() {
    let fake = Fake::new(17);
    let target = fake.target(b"");
    let _listener = UnixListener::bind(fake.socket()).unwrap();
    // More connections than any backlog; the rest would block.
    let mut connections = Vec::new();
    loop {
        use rustix::net::{AddressFamily, SocketFlags, SocketType};
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let address = rustix::net::SocketAddrUnix::new(fake.socket()).unwrap();
        if rustix::net::connect(&socket, &address).is_err() {
            break;
        }
        connections.push(socket);
    }
    assert!(message(loads(&fake, &target, SHORT)).contains("does not answer"));
}

#[test]
fn someone_elses_socket() {
    let mut child = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let mut fake = Fake::new(17);
    // The JVM is another process than the one that listens.
    let mine = fake.proc();
    fake.pid = child.id();
    fs::rename(mine, fake.proc()).unwrap();
    fake.status("S (sleeping)", "4", "0");
    let target = fake.target(b"");
    listen(&fake.socket(), fake.seen.clone(), b"0\nreturn code: 0\n");
    let said = message(loads(&fake, &target, LONG));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("is not the socket of process"), "{said}");
    assert!(
        fake.seen.all().iter().all(|what| what == "incomplete"),
        "it was told nothing"
    );
}

#[test]
fn a_real_process_that_is_no_jvm_goes_on() {
    let mut child = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    // Between fork and exec it is this program; no JVM either.
    let said = message(Target::find(&Proc::default(), child.id()));
    assert!(said.contains("is not a Java process"), "{said}");
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn arguments_that_do_not_fit() {
    let fits = "o".repeat(LONGEST_ARGUMENT);
    let request = |path: &str, options: &str| listener::load_request(Path::new(path), options);
    assert!(request(LIBRARY, &fits).is_ok());
    assert!(message(request(LIBRARY, &(fits.clone() + "o"))).contains("the agent's options"));
    assert!(message(request(&(fits + "/"), "")).contains("the path of the agent library"));
    assert!(message(request(LIBRARY, "a\0b")).contains("the agent's options"));
}

#[test]
fn a_library_that_the_jvm_does_not_see_is_copied() {
    let fake = Fake::new(17);
    let target = fake.target(b"");
    let library = fake.home.path().join("agent.so");
    fs::write(&library, "ELF").unwrap();
    let placed = place(&target, &library).unwrap();
    assert!(placed.copied());
    let inside = target.reach(&placed.path);
    assert!(target.reach(Path::new("/tmp")).exists());
    assert_eq!(fs::read(&inside).unwrap(), b"ELF");
    drop(placed);
    assert!(!inside.exists());

    // The same path is not the same file.
    let there = fake
        .home
        .path()
        .join("root")
        .join(library.strip_prefix("/").unwrap());
    fs::create_dir_all(there.parent().unwrap()).unwrap();
    fs::write(&there, "ELF").unwrap();
    assert!(!target.sees(&library));
    fs::remove_file(&there).unwrap();
    fs::hard_link(&library, &there).unwrap();
    let placed = place(&target, &library).unwrap();
    assert_eq!((placed.copied(), &placed.path), (false, &library));
    drop(placed);
    assert!(library.exists() && there.exists());
}

#[test]
fn links_do_not_lead_out_of_the_container() {
    let fake = Fake::new(17);
    let target = fake.target(b"");
    let outside = fake.home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_dir_all(fake.tmp("")).unwrap();
    symlink(&outside, fake.home.path().join("root/tmp")).unwrap();
    let library = fake.home.path().join("agent.so");
    fs::write(&library, "ELF").unwrap();
    assert!(place(&target, &library).is_err());
    assert!(loads(&fake, &target, SHORT).is_err());
    assert_eq!(fs::read_dir(outside).unwrap().count(), 0);
}
