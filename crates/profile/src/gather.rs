//! From a spool to what each method did: the log says what a method is, the rows of the counters what it counted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use borescope_cfg::flow::{EdgeKind, Flow};
use borescope_paths::{KIpf, kipf};
use borescope_spool::counters::{Counters, Damage, Header};
use borescope_spool::layout::{Engine, Stop};
use borescope_spool::log::LogReader;
use borescope_spool::meta::{self, Record};
use borescope_spool::source::FileSource;

use crate::Error;
use crate::model::{Method, MethodDetail, PathRow, Skipped, Target};

/// Bytes of counters.bin that are kept in memory at once.
const CACHE_BYTES: usize = 256 << 20;

/// A spool, indexed by method.
pub(crate) struct Spool {
    path: PathBuf,
    counters: Counters<FileSource>,
    /// File offsets of the rows of each method, ascending.
    rows: BTreeMap<u32, Vec<u64>>,
    rows_damage: Damage,
    pub(crate) log: Log,
}

/// What `meta.log` says.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) target: Target,
    pub(crate) classes: u64,
    pub(crate) methods: BTreeMap<u32, LoggedMethod>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) notices: Vec<String>,
    /// What is missing.
    pub(crate) torn: Option<String>,
}

/// A method with what its class record says of it.
pub(crate) struct LoggedMethod {
    class: ClassOf,
    method: meta::Method,
}

#[derive(Clone)]
struct ClassOf {
    name: String,
    loader: String,
    hash: u64,
    source_file: Option<String>,
    instances: u32,
}

/// `java/util/HashMap$Node` as in Java source: `java.util.HashMap$Node`.
fn source_form(class: &str) -> String {
    class.replace('/', ".")
}

impl Log {
    fn read(path: &Path) -> Result<Log, Error> {
        let bytes = fs::read(path).map_err(not_a_spool(path))?;
        let mut log = Log::default();
        let mut first = true;
        let mut instances: BTreeMap<(String, u64), u32> = BTreeMap::new();
        let mut reader = LogReader::new(&bytes);
        for record in reader.by_ref() {
            if std::mem::take(&mut first) != matches!(record, Record::Target(_)) {
                log.notices
                    .push("the log of the spool does not name its JVM first and once".into());
            }
            match record {
                Record::Target(target) => log.target = of_target(target),
                Record::Class(class) => {
                    log.classes += 1;
                    *instances
                        .entry((class.name.clone(), class.hash))
                        .or_default() += 1;
                    log.class(class);
                }
                Record::Skipped(skipped) => log.skipped.push(Skipped {
                    class: source_form(&skipped.class),
                    method: skipped.method,
                    descriptor: skipped.descriptor,
                    lens: "paths".into(),
                    reason: skipped.reason,
                }),
                Record::Notice(text) => log.notices.push(text),
            }
        }
        for method in log.methods.values_mut() {
            let class = (method.class.name.clone(), method.class.hash);
            method.class.instances = instances.get(&class).copied().unwrap_or(1);
        }
        if let Some(torn) = reader.torn() {
            log.torn = Some(format!(
                "ends within a record: {} bytes from offset {} are lost, and classes and notices with them",
                torn.bytes, torn.offset
            ));
        }
        if let [first, ..] = reader.damaged() {
            let text = format!(
                "{} record(s) left out, the first at offset {}: {}",
                reader.damaged().len(),
                first.offset,
                first.reason
            );
            log.torn = Some(
                log.torn
                    .map_or(text.clone(), |torn| format!("{torn}; {text}")),
            );
        }
        Ok(log)
    }

    fn class(&mut self, class: meta::Class) {
        let of = ClassOf {
            name: source_form(&class.name),
            loader: source_form(&class.loader),
            hash: class.hash,
            source_file: class.source_file,
            instances: 1,
        };
        for method in class.methods {
            // The agent gives each method an index of its own; the tables' column is a signed 32-bit integer.
            if self.methods.contains_key(&method.index) || i32::try_from(method.index).is_err() {
                self.notices.push(format!(
                    "{}.{}{}: method index {} is not its own: left out",
                    of.name, method.name, method.descriptor, method.index
                ));
                continue;
            }
            self.methods.insert(
                method.index,
                LoggedMethod {
                    class: of.clone(),
                    method,
                },
            );
        }
    }
}

fn of_target(target: meta::Target) -> Target {
    let meta::Target {
        pid,
        jdk,
        vm,
        collector,
        command,
        started,
        include,
        exclude,
    } = target;
    Target {
        pid,
        jdk,
        vm,
        collector,
        command,
        started,
        include,
        exclude,
        ended: None,
        sealed_after_crash: true,
    }
}

fn not_a_spool(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |error| match error.kind() {
        io::ErrorKind::NotFound => Error::NotASpool {
            path: path.to_owned(),
            reason: "no such file".into(),
        },
        _ => Error::io(path)(error),
    }
}

/// What the counters say of one method.
#[derive(Default)]
struct Counted {
    activations: u64,
    caught: u64,
    damage: Damage,
}

impl Spool {
    /// Opens a spool and indexes its rows.
    pub(crate) fn open(dir: &Path) -> Result<Spool, Error> {
        let path = dir.join("counters.bin");
        // The counters come first: what they name was written to the log before, if the JVM is still running.
        let file = File::open(&path).map_err(not_a_spool(&path))?;
        let source = FileSource::new(file, CACHE_BYTES).map_err(Error::io(&path))?;
        let counters = Counters::new(source).map_err(|error| Error::NotASpool {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        let mut rows: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut walk = counters.rows();
        for row in walk.by_ref() {
            rows.entry(row.method).or_default().push(row.offset);
        }
        let rows_damage = walk.damage().clone();
        let mut log = Log::read(&dir.join("meta.log"))?;
        let header = counters.header();
        log.target.ended = (header.ended && header.ended_at != 0).then_some(header.ended_at);
        log.target.sealed_after_crash = !header.ended;
        let spool = Spool {
            path,
            counters,
            rows,
            rows_damage,
            log,
        };
        spool.check_io()?;
        Ok(spool)
    }

    pub(crate) fn header(&self) -> &Header {
        self.counters.header()
    }

    pub(crate) fn rows_damage(&self) -> &Damage {
        &self.rows_damage
    }

    /// The k that the engine really counted with.
    pub(crate) fn k(&self) -> u32 {
        match self.header().engine {
            Engine::Automaton | Engine::Ksf => self.header().k,
            Engine::BlppHash | Engine::BlppDense => 1,
        }
    }

    /// Methods that have rows but no description, and the number of those rows.
    pub(crate) fn unknown(&self) -> (usize, usize) {
        let unknown = self
            .rows
            .iter()
            .filter(|(method, _)| !self.log.methods.contains_key(method));
        unknown.fold((0, 0), |(methods, rows), (_, of)| {
            (methods + 1, rows + of.len())
        })
    }

    fn check_io(&self) -> Result<(), Error> {
        self.counters
            .source()
            .take_error()
            .map_or(Ok(()), |error| Err(Error::io(&self.path)(error)))
    }

    /// What a method did, and how many occurrences of each of its sequences may be missing at most (`None` = unknown). `damage` gets
    /// what is left out.
    pub(crate) fn method(
        &self,
        index: u32,
        damage: &mut Damage,
    ) -> Result<(Method, MethodDetail, Option<u64>), Error> {
        let LoggedMethod { class, method } =
            self.log.methods.get(&index).ok_or(Error::NoMethod(index))?;
        let (counted, kipf) = self.count(index, &method.flow)?;
        let mut paths = Vec::new();
        let mut left = 0u64;
        for node in kipf.roots() {
            let (id, count) = (kipf.id(node), kipf.node_count(node));
            // A node may be there only as part of a longer sequence whose window was cut by damage.
            let Some(row) = path_row(method, id, count).filter(|_| count > 0) else {
                continue;
            };
            if matches!(row.ends, EdgeKind::Return | EdgeKind::Throw) {
                left = left.saturating_add(count);
            }
            paths.push(row);
        }
        let header = self.header();
        let whole = self.rows_damage.places == 0 && counted.damage.places == 0;
        let exact = whole && header.stop == Stop::No && header.lost == 0;
        // A lost item ends an activation's counting, and an item ends at most one occurrence of a sequence.
        let missing = whole.then_some(header.lost);
        damage.places += counted.damage.places;
        damage.first = damage.first.or(counted.damage.first);
        let lines = method
            .lines
            .iter()
            .map(|&(_, line)| line)
            .filter(|&line| line != 0);
        let row = Method {
            index,
            class: class.name.clone(),
            method: method.name.clone(),
            descriptor: method.descriptor.clone(),
            source_file: class.source_file.clone(),
            loader: class.loader.clone(),
            class_hash: class.hash,
            instances: class.instances,
            num_paths: method.flow.uncut_paths.clone(),
            numbered_paths: method.flow.num_paths,
            activations: counted.activations,
            // Each activation and each entry of a handler starts a path that nothing but an exception keeps from ending with a
            // return, an athrow, or in the next path.
            unfinished: counted
                .activations
                .saturating_add(counted.caught)
                .saturating_sub(left),
            ids: kipf.total(),
            paths: paths.len() as u64,
            kipf_nodes: kipf.len() as u64,
            exact,
            lines: lines.clone().min().zip(lines.max()),
        };
        Ok((row, MethodDetail { paths, kipf }, missing))
    }

    fn count(&self, index: u32, flow: &Flow) -> Result<(Counted, KIpf), Error> {
        let mut counted = Counted::default();
        let k = self.k();
        let mut forest =
            kipf::Builder::new(k).map_err(|error| Error::damaged(&self.path, error))?;
        for &offset in self.rows.get(&index).into_iter().flatten() {
            let Some(row) = self.counters.row(offset).filter(|row| row.method == index) else {
                counted
                    .damage
                    .add(offset, "a row changed while it was read");
                continue;
            };
            if row.id.is_none() {
                counted.activations = counted.activations.saturating_add(row.enters);
            }
            counted.caught = counted.caught.saturating_add(row.caught);
            if self.header().engine == Engine::Ksf {
                self.count_ksf(&row, flow, &mut forest, &mut counted.damage);
            } else {
                self.count_row(&row, k, flow, &mut forest, &mut counted.damage);
            }
        }
        self.check_io()?;
        Ok((counted, forest.finish()))
    }

    /// An edge (window, ID) counts for every suffix of window and ID: `kipf::Builder` does that.
    fn count_row(
        &self,
        row: &borescope_spool::counters::Row,
        k: u32,
        flow: &Flow,
        forest: &mut kipf::Builder,
        damage: &mut Damage,
    ) {
        let window = if k == 1 {
            None
        } else {
            Some(self.counters.window(row))
        };
        if window.as_ref().is_some_and(|window| !window.whole) {
            damage.add(row.offset, "the window of a row is not whole");
        }
        let window = window.map_or(Vec::new(), |window| window.ids);
        if window.iter().any(|&id| id >= flow.num_paths) {
            return damage.add(row.offset, "a path ID that the method does not have");
        }
        match self.counters.edges(row) {
            Err(reason) => damage.add(row.offset, reason),
            Ok(edges) => {
                for edge in edges {
                    match edge.id < flow.num_paths {
                        true => forest.edge(&window, edge.id, edge.count),
                        false => damage.add(row.offset, "a path ID that the method does not have"),
                    }
                }
            }
        }
    }

    /// Each item of a k-SF counts at one node, whose path from the root ends with the item's last min(n + 1, k) IDs (seed 000): so a node
    /// is the edge (its path without itself, its ID), and make_k_ipf is what `kipf::Builder` does with edges.
    fn count_ksf(
        &self,
        row: &borescope_spool::counters::Row,
        flow: &Flow,
        forest: &mut kipf::Builder,
        damage: &mut Damage,
    ) {
        let mut foreign = 0;
        self.counters
            .ksf(row, damage, |path, count| match path.split_last() {
                Some((&id, window)) if path.iter().all(|&id| id < flow.num_paths) => {
                    forest.edge(window, id, count)
                }
                _ => foreign += 1,
            });
        if foreign > 0 {
            damage.add(row.offset, "a path ID that the method does not have");
        }
    }
}

/// The executed path `id` in words of the class file.
fn path_row(method: &meta::Method, id: u32, count: u64) -> Option<PathRow> {
    let path = method.flow.decode(id)?;
    Some(PathRow {
        id,
        count,
        lines: method.flow.path_lines(&path.blocks, &method.lines),
        bcis: method
            .flow
            .path_bcis(&path.blocks)
            .iter()
            .map(|&(start, end)| (start.into(), end.into()))
            .collect(),
        starts: path.start,
        ends: path.end,
    })
}
