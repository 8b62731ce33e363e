//! `borescope demo`: a bundled program, profiled, with its report on the screen and beside the profile.

use crate::args::{Color, DemoArgs, DemoLens, SiteOptions};
use crate::failure::{Result, cannot, damaged, usage};
use crate::jdk;
use crate::output::Output;
use crate::{agent, control, page, say, session, show};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ExitCode};

/// The compiled programs (javac --release 17 -g; a test compiles them again and compares) and their sources.
const FILES: [(&str, &[u8]); 5] = [
    (
        "Settings.java",
        include_bytes!("../../../../java/demo/Settings.java"),
    ),
    (
        "Settings.class",
        include_bytes!("../../../../java/demo/Settings.class"),
    ),
    (
        "Shop.java",
        include_bytes!("../../../../java/demo/Shop.java"),
    ),
    (
        "Shop.class",
        include_bytes!("../../../../java/demo/Shop.class"),
    ),
    (
        "Shop$Entry.class",
        include_bytes!("../../../../java/demo/Shop$Entry.class"),
    ),
];
/// The program for paths.
pub const SETTINGS: &str = "demo.Settings";
/// The program for sites.
const SHOP: &str = "demo.Shop";
/// Rounds that the shop runs, and those after which a snapshot is taken; one more is taken at its end.
const ROUNDS: u32 = 9;
const SNAPSHOTS: [u32; 3] = [3, 5, 7];
/// Requests a round, as its source says.
const REQUESTS: u32 = 4000;
/// Methods or lines that are shown on the screen: those that the program is about. The file has all.
const ON_SCREEN: usize = 5;

/// Runs it.
pub fn run(args: &DemoArgs) -> Result<ExitCode> {
    let java = jdk::default_java()?;
    if args.lens == DemoLens::Sites && args.k.is_some() {
        return Err(usage!("-k is for `borescope demo paths`"));
    }
    let output = Output::prepare(args.output.as_deref())?;
    let usable = jdk::Identity::of(&java).and_then(|jdk| match jdk.unsupported() {
        Some(why) => Err(cannot!(
            "{}: {why}, or set JAVA_HOME to one",
            java.display()
        )),
        None => Ok(()),
    });
    if let Err(e) = usable {
        output.discard_if_empty();
        return Err(e);
    }
    let program = unpack()?;
    let code = match args.lens {
        DemoLens::Paths => paths(&java, program.path(), &output, args.k.unwrap_or(4)),
        DemoLens::Sites => sites(&java, program.path(), &output),
    }?;
    if code != 0 {
        output.discard_if_empty();
        return Err(cannot!(
            "{} failed with exit code {code}: `borescope doctor` checks the JDKs here",
            java.display()
        ));
    }
    let profiles = session::seal(&output)?;
    let [profile] = profiles.as_slice() else {
        return Err(damaged!(
            "the demo left {} profiles in {}",
            profiles.len(),
            output.dir.display()
        ));
    };
    let opened = show::open(profile)?;
    show::not_empty(&opened)?;
    let mut screen = std::io::stdout().lock();
    let mut options = show::options(&screen, Color::Auto);
    options.source = show::sources(&[program.path().to_owned()])?;
    let all = options.top;
    options.top = ON_SCREEN;
    show::text(&opened, &options, &mut screen)?;
    options.color = false;
    options.top = all;
    let file = profile.join("report.txt");
    page::to_file(&file, |file| show::text(&opened, &options, file))?;
    let (lens, other) = match args.lens {
        DemoLens::Paths => ("paths", "sites"),
        DemoLens::Sites => ("sites", "paths"),
    };
    say::result(format_args!(
        "\nThe whole report is in {}\nNext: borescope report {} --format json, or a program of yours: borescope {lens} -- java ..., or borescope demo {other}\n",
        file.display(),
        profile.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Loops over tokens, by the paths that they take.
fn paths(java: &Path, class_path: &Path, output: &Output, k: u8) -> Result<u8> {
    say::note(format_args!(
        "profiling the bundled program {SETTINGS} with k = {k} on {}",
        java.display()
    ));
    let options = agent::Paths::of(k, &output.dir);
    session::run(
        &command(java, class_path, SETTINGS, &[]),
        output,
        &options.encode(),
    )
}

/// A shop with a leak, by snapshots.
fn sites(java: &Path, class_path: &Path, output: &Output) -> Result<u8> {
    say::note(format_args!(
        "profiling the bundled program {SHOP} on {}",
        java.display()
    ));
    let words = command(java, class_path, SHOP, &[&ROUNDS.to_string()]);
    let options = agent::sites(&output.dir, &SiteOptions::default());
    session::converse(&words, output, &options, lead)
}

/// Lets the shop do its rounds; it says when each is done, and waits. One that ends too early is seen by its exit code.
fn lead(shop: &mut Child) -> Result<()> {
    let pid = shop.id();
    let (Some(out), Some(input)) = (&mut shop.stdout, &mut shop.stdin) else {
        return Ok(());
    };
    let done = BufReader::new(out).lines().map_while(std::io::Result::ok);
    for (round, _) in (1..=ROUNDS).zip(done) {
        if SNAPSHOTS.contains(&round) {
            let number = control::find(pid)?.snapshot()?;
            say::note(format_args!(
                "snapshot {number}, after {} requests",
                borescope_report::thousands((round * REQUESTS).into())
            ));
        }
        if input.write_all(b"\n").is_err() {
            break;
        }
    }
    Ok(())
}

/// The programs and their sources in a directory of their own, as a class path and a source path.
pub fn unpack() -> Result<tempfile::TempDir> {
    let unwritable = |e: std::io::Error| {
        cannot!(
            "cannot unpack the bundled program: {e}; set TMPDIR to a directory that can be written"
        )
    };
    let dir = tempfile::Builder::new()
        .prefix("borescope-demo-")
        .tempdir()
        .map_err(unwritable)?;
    let package = dir.path().join("demo");
    fs::create_dir(&package).map_err(unwritable)?;
    for (name, bytes) in FILES {
        fs::write(package.join(name), bytes).map_err(unwritable)?;
    }
    Ok(dir)
}

/// The command that runs one of them; an argument is the number of rounds.
pub fn command(java: &Path, class_path: &Path, main: &str, arguments: &[&str]) -> Vec<OsString> {
    let mut words = vec![java.into(), "-cp".into(), class_path.into(), main.into()];
    words.extend(arguments.iter().map(OsString::from));
    words
}
