//! `scan_jars DIRECTORY JAR...`: instruments every class of the jars, writes them and jobs for tests/programs/Link.java to the directory, and prints what was
//! found and what was left alone.

#[path = "../tests/support/mod.rs"]
mod support;

use borescope_allocations::Settings;
use std::path::Path;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, jars @ ..] = &args[..] else {
        panic!("usage: scan_jars DIRECTORY JAR...")
    };
    let dir = Path::new(dir);
    let mut tally = support::Tally::default();
    for (i, jar) in jars.iter().enumerate() {
        let jar = Path::new(jar);
        let modules = jar.ends_with("modules.jar");
        let path = if modules { String::new() } else { support::class_path(jar) };
        support::instrument_jar(
            jar,
            |_| Settings {
                jdk: modules,
                ..Settings::default()
            },
            &support::Unknown,
            &dir.join(format!("{i}.jar")),
            &path,
            &dir.join(format!("{i}.job")),
            &mut tally,
        );
    }
    println!("{tally:#?}");
}
