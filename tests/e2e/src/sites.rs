//! The targets of the sites lens (`tests/sites`): compiled once a process and run under the agent; what their comments say of live objects, compared with
//! what the agent's spool or a report says.
//!
//! A comment is `// key: N type, N type; key: ...`, types as in Java source:
//!
//! - `live`: so many objects of that type that the line's own bytecode allocated are alive at the end.
//! - `jdk`: likewise for what the JDK allocated for that line; not compared when the JDK's classes are not instrumented.
//! - `upto`: at most so many; `least`: at least so many, where the JDK keeps some of its own (compared only with its classes).
//! - `unknown`: so many objects of the type have no site, anywhere in the program. Of a type of the targets that no such comment names, none has.
//! - `either`: so many objects of the type are alive, whether they have a site or not.
//!
//! Nothing else that the targets' own bytecode allocates may be alive.

use crate::{javac, root, sources};
use borescope_spool::log::LogReader;
use borescope_spool::meta::Record;
use borescope_spool::sites::{Call, Owner, SiteClass};
use borescope_spool::snapshot::{self, Origin};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;

/// Live objects of one type and one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// As in Java source.
    pub ty: String,
    /// Where they were allocated.
    pub place: Place,
    /// How many.
    pub objects: u64,
    /// Their sizes.
    pub bytes: u64,
}

/// Where objects were allocated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Not known, and why.
    Unknown(String),
    /// At a site: class and line, and those of the application that called the JDK, if it is in the JDK and that is known.
    Site {
        /// Class of the site.
        class: String,
        /// Its line.
        line: u16,
        /// Class and line of the application.
        app: Option<(String, u16)>,
    },
}

impl Row {
    /// The line of the application.
    fn app(&self) -> Option<(&str, u16)> {
        match &self.place {
            Place::Unknown(_) => None,
            Place::Site {
                app: Some((class, line)),
                ..
            } => Some((class, *line)),
            Place::Site {
                class,
                line,
                app: None,
            } => Some((class, *line)),
        }
    }

    /// Whether the targets' own bytecode allocated it.
    fn own(&self) -> bool {
        matches!(&self.place, Place::Site { class, app: None, .. } if class.starts_with("sites."))
    }
}

/// `Ljava/util/HashMap$Node;` as `java.util.HashMap$Node`, `[[I` as `int[][]`; lambda classes without what makes their names unique.
pub fn java_type(signature: &str) -> String {
    let element = signature.trim_start_matches('[');
    let name = match element {
        "Z" => "boolean".into(),
        "B" => "byte".into(),
        "C" => "char".into(),
        "S" => "short".into(),
        "I" => "int".into(),
        "J" => "long".into(),
        "F" => "float".into(),
        "D" => "double".into(),
        class => {
            let name = class.strip_prefix('L').and_then(|c| c.strip_suffix(';'));
            short_lambda(&name.unwrap_or(class).replace('/', "."))
        }
    };
    name + &"[]".repeat(signature.len() - element.len())
}

fn short_lambda(name: &str) -> String {
    const LAMBDA: &str = "$$Lambda";
    let end = name.find(LAMBDA).map(|at| at + LAMBDA.len());
    // Other hidden classes have an address behind their name, which JVMTI and the histogram set apart by another character.
    let end = end.or_else(|| name.find(".0x").or_else(|| name.find("/0x")));
    name[..end.unwrap_or(name.len())].to_owned()
}

/// What `meta.log` of a spool says.
#[derive(Debug, Default)]
pub struct Log {
    /// All records, in order.
    pub records: Vec<Record>,
}

impl Log {
    /// Reads it; a torn end is an error.
    pub fn read(spool: &Path) -> Log {
        let path = spool.join("meta.log");
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut reader = LogReader::new(&bytes);
        let records = reader.by_ref().collect();
        assert_eq!((reader.torn(), reader.damaged()), (None, &[][..]));
        Log { records }
    }

    /// The snapshots, in order.
    pub fn snapshots<'a>(&'a self) -> Vec<&'a borescope_spool::sites::Snapshot> {
        let of = |r: &'a Record| match r {
            Record::Snapshot(s) => Some(s),
            _ => None,
        };
        self.records.iter().filter_map(of).collect()
    }

    /// What the agent had to say.
    pub fn notices<'a>(&'a self) -> Vec<&'a str> {
        let of = |r: &'a Record| match r {
            Record::Notice(n) => Some(n.as_str()),
            _ => None,
        };
        self.records.iter().filter_map(of).collect()
    }
}

/// A snapshot of a spool, each row with its place. Reads records and files itself: the sealer is not asked.
pub fn rows(spool: &Path, log: &Log, number: u32) -> Vec<Row> {
    let mut sites: BTreeMap<u32, (&SiteClass, usize)> = BTreeMap::new();
    let mut jdk_sites: BTreeMap<u32, (&SiteClass, usize)> = BTreeMap::new();
    let mut calls: HashMap<u32, (&SiteClass, &Call)> = HashMap::new();
    let mut owners: HashMap<u32, &Owner> = HashMap::new();
    for record in &log.records {
        match record {
            Record::SiteClass(class) => {
                let of = if class.jdk {
                    &mut jdk_sites
                } else {
                    &mut sites
                };
                for nth in 0..class.sites.len() {
                    let number = class.first_site + nth as u32;
                    assert!(
                        of.insert(number, (class, nth)).is_none(),
                        "site {number} twice"
                    );
                }
                for (nth, call) in class.calls.iter().enumerate() {
                    let number = class.first_call + nth as u32;
                    assert!(
                        calls.insert(number, (class, call)).is_none(),
                        "call {number} twice"
                    );
                }
            }
            Record::Owners(batch) => owners.extend(batch.iter().map(|o| (o.owner, o))),
            _ => {}
        }
    }
    let java = |class: &SiteClass| class.name.replace('/', ".");
    let place = |origin| match origin {
        Origin::Owner(number) => match (sites.get(&number), owners.get(&number)) {
            (Some((class, nth)), None) => Place::Site {
                class: java(class),
                line: class.sites[*nth].line,
                app: None,
            },
            (None, Some(owner)) => {
                let (class, nth) = jdk_sites[&owner.site];
                let app = (owner.call != 0).then(|| calls[&owner.call]);
                Place::Site {
                    class: java(class),
                    line: class.sites[nth].line,
                    app: app.map(|(class, call)| (java(class), call.line)),
                }
            }
            found => panic!("owner {number} is {found:?}"),
        },
        unknown => Place::Unknown(format!("{unknown:?}")),
    };
    let file = spool.join(snapshot::file_name(number));
    let bytes = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let snapshot = snapshot::Snapshot::read(&bytes).expect("a whole snapshot");
    let mut sums: BTreeMap<(String, Place), (u64, u64)> = BTreeMap::new();
    for row in &snapshot.rows {
        let ty = java_type(&snapshot.classes[row.class as usize]);
        let sum = sums.entry((ty, place(row.origin))).or_default();
        *sum = (sum.0 + row.objects, sum.1 + row.bytes);
    }
    let row = |((ty, place), (objects, bytes))| Row {
        ty,
        place,
        objects,
        bytes,
    };
    sums.into_iter().map(row).collect()
}

/// A snapshot of a JSON report. What has no site is summed by reason, without types.
pub fn report_rows(report: &Value, nth: usize) -> Vec<Row> {
    let text = |v: &Value| {
        v.as_str()
            .unwrap_or_else(|| panic!("{v} is no text"))
            .to_owned()
    };
    let number = |v: &Value| v.as_u64().unwrap_or_else(|| panic!("{v} is no number"));
    let line = |v: &Value| u16::try_from(number(v)).expect("a line");
    let sites = report["sites"]["snapshots"][nth]["sites"].as_array();
    let mut sums: BTreeMap<(String, Place), (u64, u64)> = BTreeMap::new();
    for site in sites.expect("sites of a snapshot") {
        let class = text(&site["class"]);
        let app = match &site["app_class"] {
            Value::Null => None,
            app => Some((text(app), line(&site["app_line"]))),
        };
        // Of a site of the application, the report may name the line twice.
        let app = app.filter(|(app, _)| !class.starts_with("sites.") || *app != class);
        let place = Place::Site {
            class,
            line: line(&site["line"]),
            app,
        };
        let ty = short_lambda_type(&text(&site["type"]));
        let sum = sums.entry((ty, place)).or_default();
        sum.0 += number(&site["live_objects"]);
        sum.1 += number(&site["live_bytes"]);
    }
    let row = |((ty, place), (objects, bytes))| Row {
        ty,
        place,
        objects,
        bytes,
    };
    sums.into_iter().map(row).collect()
}

fn short_lambda_type(ty: &str) -> String {
    let element = ty.trim_end_matches("[]");
    short_lambda(element) + &ty[element.len()..]
}

/// What a key says: count and type.
type Counts = Vec<(u64, String)>;

/// The comments of a target.
#[derive(Clone, Debug)]
pub struct Target {
    /// `Forms.java`.
    pub file: String,
    /// By line and key.
    pub lines: BTreeMap<(u16, String), Counts>,
}

impl Target {
    /// Reads a source file.
    pub fn read(path: &Path) -> Target {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        let mut lines: BTreeMap<(u16, String), Counts> = BTreeMap::new();
        for (at, line) in (1..).zip(text.lines()) {
            let Some((_, comment)) = line.split_once("// ") else {
                continue;
            };
            for part in comment.split("; ") {
                let keyed = part.split_once(": ").filter(|(key, _)| KEYS.contains(key));
                let Some((key, counts)) = keyed else { continue };
                for count in counts.split(", ") {
                    let parsed = count
                        .split_once(' ')
                        .and_then(|(n, ty)| Some((n.parse().ok()?, ty.trim().to_owned())));
                    let parsed =
                        parsed.unwrap_or_else(|| panic!("{file}:{at}: {count:?} is not `N type`"));
                    lines.entry((at, key.to_owned())).or_default().push(parsed);
                }
            }
        }
        Target { file, lines }
    }

    fn of(&self, class: &str) -> bool {
        let name = class.strip_prefix("sites.").unwrap_or_default();
        name.split('$').next() == self.file.strip_suffix(".java")
    }
}

const KEYS: [&str; 6] = ["live", "jdk", "upto", "least", "unknown", "either"];

/// The compiled targets.
pub struct Suite {
    /// Where the classes are.
    pub classes: PathBuf,
    /// Their comments.
    pub targets: Vec<Target>,
    _folder: tempfile::TempDir,
}

/// Programs with a leak, and others for the sites lens, compiled once a process; and the class path that they need.
pub fn programs() -> &'static str {
    static PROGRAMS: OnceLock<(String, tempfile::TempDir)> = OnceLock::new();
    let (path, _) = PROGRAMS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut path = folder.path().to_str().expect("an UTF-8 path").to_owned();
        for jar in ["h2-2.3.232", "lucene-core-9.12.0", "ecj-3.38.0"] {
            path = format!("{path}:{}", crate::programs::jars(jar)[0].display());
        }
        let files = sources(&root().join("tests/sites/programs"));
        javac(&files, folder.path(), &["-cp", &path]);
        (path, folder)
    });
    path
}

/// A JVM that waits for a line of input at some point.
pub struct Waiting {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Waiting {
    /// Starts it and reads what it prints up to that line.
    pub fn start(command: &mut Command, line: &str) -> Waiting {
        let piped = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe was asked for"));
        let mut read = String::new();
        while read.trim_end() != line {
            read.clear();
            if stdout.read_line(&mut read).expect("standard output") == 0 {
                let output = child.wait_with_output().expect("it ends");
                panic!(
                    "{command:?} ended: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
        Waiting {
            stdin: child.stdin.take(),
            child,
            stdout,
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go on; its output from there, when it has ended.
    pub fn finish(mut self) -> (Output, String) {
        let mut stdin = self.stdin.take().expect("it waits");
        stdin.write_all(b"\n").expect("it reads");
        drop(stdin);
        let mut rest = String::new();
        self.stdout
            .read_to_string(&mut rest)
            .expect("standard output");
        (self.child.wait_with_output().expect("it ends"), rest)
    }
}

/// The suite, compiled once a process.
pub fn suite() -> &'static Suite {
    static SUITE: OnceLock<Suite> = OnceLock::new();
    SUITE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let classes = folder.path().join("classes");
        std::fs::create_dir(&classes).expect("a folder for classes");
        let folder_of_targets = root().join("tests/sites/sites");
        let files = sources(&folder_of_targets);
        javac(&files, &classes, &[]);
        Suite {
            targets: Suite::read(&folder_of_targets),
            classes,
            _folder: folder,
        }
    })
}

impl Suite {
    /// The comments of the targets in a folder.
    pub fn read(folder: &Path) -> Vec<Target> {
        sources(folder)
            .iter()
            .map(|file| Target::read(file))
            .collect()
    }

    /// Compares a snapshot at the end of some targets with their comments: differences, and how many numbers were compared. `jdk`: its classes were
    /// instrumented. `typed`: rows without a site have types.
    pub fn check(
        &self,
        names: &[&str],
        rows: &[Row],
        jdk: bool,
        typed: bool,
    ) -> (Vec<String>, usize) {
        Self::compare(&self.targets, names, rows, jdk, typed)
    }

    /// As [`Suite::check`], with the comments of `targets`.
    pub fn compare(
        targets: &[Target],
        names: &[&str],
        rows: &[Row],
        jdk: bool,
        typed: bool,
    ) -> (Vec<String>, usize) {
        // Other files of the package are there in every run.
        let present = |t: &&Target| {
            let name = t.file.trim_end_matches(".java");
            let name = if name == "Loaded" { "Loaders" } else { name };
            names.contains(&name) || !ALL.contains(&name)
        };
        let mut wrong = Vec::new();
        let mut compared = 0;
        let mut explained: BTreeSet<&str> = BTreeSet::new();
        for target in targets.iter().filter(present) {
            let file = &target.file;
            let mine: Vec<&Row> = rows
                .iter()
                .filter(|r| r.app().is_some_and(|(class, _)| target.of(class)))
                .collect();
            let mut listed: BTreeSet<(u16, &str)> = BTreeSet::new();
            for ((line, key), counts) in &target.lines {
                for (n, ty) in counts {
                    match key.as_str() {
                        "unknown" | "either" => _ = explained.insert(ty),
                        _ => _ = listed.insert((*line, ty)),
                    }

                    let all = || rows.iter().filter(|r| r.ty == *ty);
                    let here = mine
                        .iter()
                        .filter(|r| r.ty == *ty && r.app().map(|a| a.1) == Some(*line));
                    let here: u64 = here.map(|r| r.objects).sum();
                    let unknown: u64 = all()
                        .filter(|r| matches!(r.place, Place::Unknown(_)))
                        .map(|r| r.objects)
                        .sum();
                    let whole: u64 = all().map(|r| r.objects).sum();
                    let (good, is) = match key.as_str() {
                        "jdk" | "least" if !jdk => continue,
                        "unknown" | "either" if !typed => continue,
                        "live" | "jdk" => (here == *n, here),
                        "upto" => (here <= *n, here),
                        "least" => (here >= *n, here),
                        "unknown" => (unknown == *n, unknown),
                        _ => (whole == *n, whole),
                    };
                    compared += 1;
                    if !good {
                        wrong.push(format!(
                            "{file}:{line}: {key} {n} {ty}, but it is {is}{}",
                            told(rows, ty, is)
                        ));
                    }
                }
            }
            for row in mine.iter().filter(|r| r.own()) {
                let line = row.app().map_or(0, |a| a.1);
                if !listed.contains(&(line, row.ty.as_str())) {
                    wrong.push(format!(
                        "{file}:{line}: {} {} that nobody expects",
                        row.objects, row.ty
                    ));
                }
            }
        }
        for row in rows {
            if let Place::Unknown(why) = &row.place
                && row.ty.starts_with("sites.")
                && !explained.contains(row.ty.as_str())
            {
                wrong.push(format!("{} {} have no site: {why}", row.objects, row.ty));
            }
        }
        (wrong, compared)
    }
}

/// Where all objects of a type are, to tell what went wrong; nothing for types that are everywhere.
fn told(rows: &[Row], ty: &str, here: u64) -> String {
    let of: Vec<&Row> = rows.iter().filter(|r| r.ty == ty).collect();
    if of.len() > 8 {
        return String::new();
    }
    let places: Vec<String> = of
        .iter()
        .filter(|r| r.objects != here)
        .map(|r| format!("{} {:?}", r.objects, r.place))
        .collect();
    format!(" (others: {})", places.join(", "))
}

/// The targets that run one after another in one JVM.
pub const ALL: [&str; 16] = [
    "Forms",
    "Inherited",
    "Leaks",
    "Used",
    "Clones",
    "Reflections",
    "Lambdas",
    "Strings",
    "Collected",
    "Callbacks",
    "Threaded",
    "Virtual",
    "Thrown",
    "Hot",
    "Loaders",
    "Drawn",
];

/// Objects and bytes by type, as `jcmd PID GC.class_histogram` prints them.
pub fn histogram(printed: &str) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in printed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, objects, bytes, class, ..] = words[..] else {
            continue;
        };
        let (Ok(objects), Ok(bytes)) = (objects.parse::<u64>(), bytes.parse::<u64>()) else {
            continue;
        };
        let sum = sums.entry(java_type(class)).or_default();
        *sum = (sum.0 + objects, sum.1 + bytes);
    }
    sums
}

/// Objects and bytes by type of a snapshot.
pub fn by_type(rows: &[Row]) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(row.ty.clone()).or_default();
        *sum = (sum.0 + row.objects, sum.1 + row.bytes);
    }
    sums
}

/// The collectors of a JDK, as options.
pub fn collectors(jdk: u32) -> Vec<&'static str> {
    let mut all = vec![
        "-XX:+UseSerialGC",
        "-XX:+UseParallelGC",
        "-XX:+UseG1GC",
        "-XX:+UseShenandoahGC",
        "-XX:+UseZGC",
    ];
    if jdk == 21 {
        all.push("-XX:+UseZGC -XX:+ZGenerational");
    }
    all
}

/// Options for headers of JDK 25 that have no room beside the identity hash.
pub const COMPACT: &str = "-XX:+UnlockExperimentalVMOptions -XX:+UseCompactObjectHeaders";

/// The one spool in an output directory.
pub fn spool(out: &Path) -> PathBuf {
    let dir = out.join(".spool");
    let mut found: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert_eq!(found.len(), 1, "spools: {found:?}");
    found.remove(0)
}
