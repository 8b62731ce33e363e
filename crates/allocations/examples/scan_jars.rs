//! `scan_jars DIRECTORY JAR...`: instruments every class of the jars, writes them and jobs for tests/programs/Link.java to the directory, and prints what was
//! found and what was left alone. A jar named modules.jar holds the JDK's own classes; constructors are judged by those of all the jars.

#[path = "../tests/support/mod.rs"]
mod support;

use borescope_allocations::{Resolver, Settings};
use std::path::Path;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, jars @ ..] = &args[..] else {
        panic!("usage: scan_jars DIRECTORY JAR...")
    };
    let dir = Path::new(dir);
    let mut all = support::All::default();
    let begun = Instant::now();
    for jar in jars {
        all.add(Path::new(jar));
    }
    println!("summarized in {:?}", begun.elapsed());
    let mut tally = support::Tally::default();
    let begun = Instant::now();
    for (i, jar) in jars.iter().enumerate() {
        let jar = Path::new(jar);
        let modules = jar.ends_with("modules.jar");
        let path = if modules {
            String::new()
        } else {
            support::class_path(jar)
        };
        support::instrument_jar(
            jar,
            |_| Settings {
                jdk: modules,
                ..Settings::default()
            },
            &Resolver(&all),
            &dir.join(format!("{i}.jar")),
            &path,
            &dir.join(format!("{i}.job")),
            &mut tally,
        );
    }
    println!("instrumented in {:?}\n{tally:#?}", begun.elapsed());
}
