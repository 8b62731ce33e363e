//! `borescope demo`: the bundled program, profiled, with its report on the screen and beside the profile.

use crate::args::{Color, DemoArgs, Engine};
use crate::failure::{Result, cannot, damaged};
use crate::jdk;
use crate::output::Output;
use crate::{agent, say, session, show};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// The compiled program (javac --release 17 -g; a test compiles it again and compares).
const CLASS: &[u8] = include_bytes!("../../../../java/demo/Settings.class");
/// Its source.
const SOURCE: &str = include_str!("../../../../java/demo/Settings.java");
/// Its main class.
const MAIN: &str = "demo.Settings";
/// Methods that are shown on the screen: those that the program is about. The file has all.
const ON_SCREEN: usize = 5;

/// Runs it.
pub fn run(args: &DemoArgs) -> Result<ExitCode> {
    let java = jdk::default_java()?;
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
    say::note(format_args!(
        "profiling the bundled program {MAIN} with k = {} on {}",
        args.k,
        java.display()
    ));
    let options = agent::Paths {
        k: args.k,
        engine: Engine::Automaton.name(),
        out: &output.dir,
        include: &[],
        exclude: &[],
        split: false,
        straight_line: false,
        one_in: None,
        memory: None,
        rows: None,
    };
    let words = command(&java, program.path(), &[]);
    let code = session::run(&words, &output, &options.encode())?;
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
    options.source = vec![program.path().to_owned()];
    let all = options.top;
    options.top = ON_SCREEN;
    show::text(&opened, &options, &mut screen)?;
    options.color = false;
    options.top = all;
    let file = profile.join("report.txt");
    let mut created =
        fs::File::create(&file).map_err(|e| cannot!("cannot create {}: {e}", file.display()))?;
    show::text(&opened, &options, &mut created)?;
    say::result(format_args!(
        "\nThe whole report is in {}\nNext: borescope report {} --format json, or a program of yours: borescope paths -- java ...\n",
        file.display(),
        profile.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The program and its source in a directory of their own, as a class path and a source path.
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
    fs::create_dir(&package)
        .and_then(|()| fs::write(package.join("Settings.class"), CLASS))
        .and_then(|()| fs::write(package.join("Settings.java"), SOURCE))
        .map_err(unwritable)?;
    Ok(dir)
}

/// The command that runs it; an argument is the number of rounds.
pub fn command(java: &Path, class_path: &Path, arguments: &[&str]) -> Vec<OsString> {
    let mut words = vec![java.into(), "-cp".into(), class_path.into(), MAIN.into()];
    words.extend(arguments.iter().map(OsString::from));
    words
}
