//! What the tests and the example share: class files out of jars, instrumenting them all, and the tally.
#![allow(dead_code, missing_docs)] // each user takes a part

use borescope_allocations::{Constructors, Instrumented, Kind, Settings, instrument};
use borescope_classfile::ClassFile;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Nothing is known of any constructor.
pub struct Unknown;

impl Constructors for Unknown {
    fn leaks(&self, _: &str, _: &str) -> bool {
        true
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The jars of the corpus.
pub fn jars() -> Vec<PathBuf> {
    let list = root().join(".cache/corpus.txt");
    let names = std::fs::read_to_string(&list)
        .unwrap_or_else(|e| panic!("{}: {e}: run tests/fetch", list.display()));
    names
        .lines()
        .map(|name| root().join(".cache/jars").join(name))
        .collect()
}

/// Calls `each` with the entry name and bytes of every class file in a jar.
pub fn classes(jar: &Path, mut each: impl FnMut(&str, &[u8])) {
    let file = File::open(jar).unwrap_or_else(|e| panic!("{}: {e}", jar.display()));
    let mut zip = zip::ZipArchive::new(BufReader::new(file)).expect("a jar");
    let mut bytes = Vec::new();
    for i in 0..zip.len() {
        let mut entry = zip.by_index(i).expect("an entry");
        if entry.name().ends_with(".class") && !entry.name().ends_with("module-info.class") {
            bytes.clear();
            entry.read_to_end(&mut bytes).expect("an entry");
            each(entry.name(), &bytes);
        }
    }
}

/// What instrumenting came to.
#[derive(Debug, Default)]
pub struct Tally {
    pub classes: u64,
    pub bytes: u64,
    pub grown: u64,
    pub sites: BTreeMap<Kind, u64>,
    pub plain_new: u64,
    pub calls: u64,
    pub skipped: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub fn add(&mut self, done: &Instrumented) {
        for site in &done.sites {
            *self.sites.entry(site.kind).or_default() += 1;
            self.plain_new += u64::from(site.kind == Kind::New && site.plain);
        }
        self.calls += done.calls.len() as u64;
        for skip in &done.skipped {
            *self.skipped.entry(skip.reason).or_default() += 1;
        }
    }
}

/// Instruments every class of a jar, writes the new ones to a jar `out` and a job for the `Link` driver to `job`.
pub fn instrument_jar(
    jar: &Path,
    settings: impl Fn(u64) -> Settings,
    constructors: &dyn Constructors,
    out: &Path,
    class_path: &str,
    job: &Path,
    tally: &mut Tally,
) {
    let mut zip = zip::ZipWriter::new(BufWriter::new(File::create(out).expect("output jar")));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut entries: Vec<String> = Vec::new();
    classes(jar, |entry, bytes| {
        tally.classes += 1;
        tally.bytes += bytes.len() as u64;
        entries.push(entry.to_owned());
        let class = ClassFile::parse(bytes).unwrap_or_else(|e| panic!("{entry}: {e}"));
        let settings = settings(tally.classes);
        // Numbers above and below the limits of the instructions that push them.
        let first = [1, 100, 32_700, 1_000_000][tally.classes as usize % 4];
        let done = instrument(&class, &settings, constructors, |_, _| Some((first, first)))
            .expect("numbers without end");
        tally.add(&done);
        tally.grown += done.bytes.as_ref().map_or(bytes.len(), Vec::len) as u64;
        if let Some(new) = done.bytes {
            zip.start_file(entry, stored).expect("output jar");
            zip.write_all(&new).expect("output jar");
        }
    });
    let mut file = zip.finish().expect("output jar");
    file.flush().expect("output jar");
    entries.sort_by_key(|e| e.starts_with("META-INF/versions/"));
    let head = [
        jar.display().to_string(),
        out.display().to_string(),
        class_path.to_owned(),
    ];
    let lines: Vec<String> = head.into_iter().chain(entries).collect();
    std::fs::write(job, lines.join("\n")).expect("job");
}

/// Everything that can be a dependency of `jar`: all jars but other versions of the same artifact.
pub fn class_path(jar: &Path) -> String {
    let artifact = |p: &Path| {
        let name = p
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let end = name
            .match_indices('-')
            .find(|(i, _)| name[i + 1..].starts_with(|c: char| c.is_ascii_digit()))
            .map_or(name.len(), |(i, _)| i);
        name[..end].to_owned()
    };
    let mut others: Vec<String> = std::fs::read_dir(root().join(".cache/jars"))
        .expect("run tests/fetch")
        .map(|e| e.expect("directory entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "jar") && artifact(p) != artifact(jar))
        .map(|p| p.display().to_string())
        .collect();
    others.sort();
    others.join(":")
}

/// Summaries of all classes of some jars, as if one loader had seen them all.
#[derive(Default)]
pub struct All(
    std::collections::HashMap<String, std::sync::Arc<borescope_allocations::ClassSummary>>,
);

impl All {
    pub fn add(&mut self, jar: &Path) {
        classes(jar, |_, bytes| self.add_class(bytes));
    }

    pub fn add_class(&mut self, bytes: &[u8]) {
        let class = ClassFile::parse(bytes).expect("a class file");
        let summary = borescope_allocations::summarize(&class);
        self.0.insert(summary.name().to_owned(), summary.into());
    }
}

impl borescope_allocations::Summaries for All {
    fn summary(&self, class: &str) -> Option<std::sync::Arc<borescope_allocations::ClassSummary>> {
        self.0.get(class).cloned()
    }
}
