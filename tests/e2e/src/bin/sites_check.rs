//! `sites_check OUT TARGET...`: compares the last snapshot in the output directory of a run of `sites.All TARGET...` with the comments of the targets. For
//! work on one of them by hand; `jdk=0` as the last word leaves out what the JDK allocated.

use borescope_e2e::root;
use borescope_e2e::sites::{Log, Suite, rows, spool};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let jdk = words.last().is_none_or(|w| w != "jdk=0");
    words.retain(|w| w != "jdk=0");
    let Some((out, targets)) = words.split_first() else {
        eprintln!("sites_check OUT TARGET... [jdk=0]");
        return ExitCode::FAILURE;
    };
    let spool = spool(Path::new(out));
    let log = Log::read(&spool);
    for notice in log.notices() {
        println!("the agent: {notice}");
    }
    let Some(last) = log.snapshots().last().map(|s| s.number) else {
        println!("no snapshot");
        return ExitCode::FAILURE;
    };
    let names: Vec<&str> = targets.iter().map(String::as_str).collect();
    let targets = Suite::read(&root().join("tests/sites/sites"));
    let (wrong, compared) = Suite::compare(&targets, &names, &rows(&spool, &log, last), jdk, true);
    wrong.iter().for_each(|w| println!("{w}"));
    println!("{compared} numbers compared, {} wrong", wrong.len());
    ExitCode::from(u8::from(!wrong.is_empty()))
}
