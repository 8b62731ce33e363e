//! The class-file corpus: every class of the jars that `.cache/corpus.txt` names, some 58,000 by all of Java's compilers and obfuscators.

use crate::root;
use borescope::instrument::{Instrumenter, Settings, numbered};
use borescope_classfile::{ClassFile, Splicer};
use borescope_spool::layout::Engine;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// All engines.
pub const ENGINES: [Engine; 5] = [
    Engine::Automaton,
    Engine::Ksf,
    Engine::KsfMtf,
    Engine::BlppHash,
    Engine::BlppDense,
];

/// The jars of the corpus.
pub fn jars() -> Vec<PathBuf> {
    let list = root().join(".cache/corpus.txt");
    let names = fs::read_to_string(&list)
        .unwrap_or_else(|e| panic!("{}: {e}: run tests/fetch", list.display()));
    names
        .lines()
        .map(|name| root().join(".cache/jars").join(name))
        .collect()
}

/// Calls `each` with the entry name and bytes of every class file in a jar, those for later JDKs (`META-INF/versions`) included.
/// Module descriptors hold no code and cannot be linked.
pub fn classes(jar: &Path, mut each: impl FnMut(&str, &[u8])) {
    let file = File::open(jar).unwrap_or_else(|e| panic!("{}: {e}", jar.display()));
    let mut zip = zip::ZipArchive::new(BufReader::new(file))
        .unwrap_or_else(|e| panic!("{}: {e}", jar.display()));
    let mut bytes = Vec::new();
    for i in 0..zip.len() {
        let mut entry = zip
            .by_index(i)
            .unwrap_or_else(|e| panic!("{}: {e}", jar.display()));
        if entry.name().ends_with(".class") && !entry.name().ends_with("module-info.class") {
            bytes.clear();
            entry
                .read_to_end(&mut bytes)
                .unwrap_or_else(|e| panic!("{}: {}: {e}", jar.display(), entry.name()));
            each(entry.name(), &bytes);
        }
    }
}

/// What instrumenting a jar came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// Class files.
    pub classes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the instrumented ones.
    pub grown: u64,
    /// Classes that cannot be read, with the reason.
    pub unreadable: Vec<String>,
    /// Classes that a splice without any edit changed.
    pub changed: Vec<String>,
    /// Instrumented methods.
    pub methods: u64,
    /// Methods that stay plain, by reason.
    pub plain: BTreeMap<String, u64>,
}

impl Tally {
    /// Adds another's numbers.
    pub fn add(&mut self, other: Self) {
        self.classes += other.classes;
        self.bytes += other.bytes;
        self.grown += other.grown;
        self.unreadable.extend(other.unreadable);
        self.changed.extend(other.changed);
        self.methods += other.methods;
        for (reason, count) in other.plain {
            *self.plain.entry(reason).or_default() += count;
        }
    }
}

/// Splices and instruments every class of `jar`, engines and burst mode by turns from `first` on, and writes the instrumented classes to a jar `out` and a
/// job for the `Link` driver to `job`.
pub fn instrument(jar: &Path, first: usize, out: &Path, class_path: &str, job: &Path) -> Tally {
    let mut tally = Tally::default();
    let mut instrumenter = Instrumenter::default();
    let mut zip = zip::ZipWriter::new(BufWriter::new(File::create(out).expect("output jar")));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut entries: Vec<String> = Vec::new();
    classes(jar, |entry, bytes| {
        tally.classes += 1;
        tally.bytes += bytes.len() as u64;
        let class = match ClassFile::parse(bytes) {
            Ok(class) => class,
            Err(error) => return tally.unreadable.push(format!("{entry}: {error}")),
        };
        if Splicer::new(&class).finish() != bytes {
            tally.changed.push(entry.to_owned());
        }
        entries.push(entry.to_owned());
        if let Some(reason) = borescope::instrument::refuse(&class) {
            *tally.plain.entry(reason).or_default() += class
                .methods()
                .iter()
                .filter(|m| m.code().is_some())
                .count() as u64;
            return;
        }
        // After the engines comes burst mode, twice: seven turns, so that each meets all that goes by twos and threes below.
        let turn = (first + entries.len()) % (ENGINES.len() + 2);
        let engine = ENGINES.get(turn).copied().unwrap_or(Engine::Automaton);
        // Every other class with all its methods and all its branches.
        let whole = entries.len().is_multiple_of(2);
        let settings = Settings {
            engine,
            k: if entries.len().is_multiple_of(3) {
                1
            } else {
                4
            },
            merge: !whole,
            straight_line: whole,
            burst: turn >= ENGINES.len(),
        };
        let done = instrumenter
            .instrument(&class, settings, numbered)
            .expect("slots without end");
        tally.methods += done.methods.len() as u64;
        for skipped in done.skipped {
            *tally.plain.entry(skipped.reason).or_default() += 1;
        }
        if let Some(new) = done.bytes {
            tally.grown += new.len() as u64;
            zip.start_file(entry, stored)
                .and_then(|()| Ok(zip.write_all(&new)?))
                .expect("output jar");
        } else {
            tally.grown += bytes.len() as u64;
        }
    });
    zip.finish()
        .and_then(|mut file| Ok(file.flush()?))
        .expect("output jar");
    // One group of versions after another, as the driver wants it.
    entries.sort_by_key(|e| e.starts_with("META-INF/versions/"));
    let head = [
        jar.display().to_string(),
        out.display().to_string(),
        class_path.to_owned(),
    ];
    fs::write(
        job,
        head.into_iter()
            .chain(entries)
            .collect::<Vec<_>>()
            .join("\n"),
    )
    .expect("job");
    tally
}
