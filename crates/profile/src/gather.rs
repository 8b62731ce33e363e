//! From a spool to what each method did: the log says what a method is, the rows of the counters what it counted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use borescope_cfg::flow::{self, EdgeKind, Flow};
use borescope_paths::{KIpf, kipf};
use borescope_spool::counters::{Counters, Damage, Header, Row, Run, Slots, Window};
use borescope_spool::layout::{self, Engine};
use borescope_spool::log::LogReader;
use borescope_spool::meta::{self, Counting, Record};
use borescope_spool::source::FileSource;

use crate::Error;
use crate::burst::{Chosen, Estimator};
use crate::loops;
use crate::model::{Code, Interval, Merged, Method, MethodDetail, PathRow, Skipped, Target};

/// Bytes of counters.bin that are kept in memory at once.
const CACHE_BYTES: usize = 256 << 20;

/// A spool, indexed by method.
pub(crate) struct Spool {
    path: PathBuf,
    counters: Counters<FileSource>,
    /// File offsets of the rows of each method, or of their run slots, ascending.
    rows: BTreeMap<u32, Vec<u64>>,
    slots: Slots,
    rows_damage: Damage,
    pub(crate) log: Log,
}

/// What `meta.log` says.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) target: Target,
    pub(crate) merge: bool,
    pub(crate) straight_line: bool,
    /// Burst mode: one in so many activations is chosen; 0 = all count.
    pub(crate) one_in: u32,
    pub(crate) classes: u64,
    /// Methods without probes because they have a single path and no loop.
    pub(crate) straight_lines: u64,
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
pub(crate) fn source_form(class: &str) -> String {
    class.replace('/', ".")
}

/// What of a log could not be read.
pub(crate) fn torn(reader: &LogReader) -> Option<String> {
    let end = reader.torn().map(|torn| {
        format!(
            "ends within a record: {} bytes from offset {} are lost, and classes and notices with them",
            torn.bytes, torn.offset
        )
    });
    let damaged = reader.damaged().first().map(|first| {
        format!(
            "{} record(s) left out, the first at offset {}: {}",
            reader.damaged().len(),
            first.offset,
            first.reason
        )
    });
    match (end, damaged) {
        (Some(end), Some(damaged)) => Some(format!("{end}; {damaged}")),
        (end, damaged) => end.or(damaged),
    }
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
                Record::Target(target) => {
                    (log.merge, log.straight_line) = (target.merge, target.straight_line);
                    log.one_in = target.one_in;
                    log.target = of_target(target);
                }
                Record::Class(class) => {
                    log.classes += 1;
                    log.straight_lines += u64::from(class.straight_line);
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
                // A log with these has no counters beside it and is sealed elsewhere (`sites`).
                Record::Sites(_)
                | Record::SiteClass(_)
                | Record::Owners(_)
                | Record::Numbered(_)
                | Record::Snapshot(_)
                | Record::Waste(_)
                | Record::Compiled(_)
                | Record::Ended { .. } => {}
            }
        }
        for method in log.methods.values_mut() {
            let class = (method.class.name.clone(), method.class.hash);
            method.class.instances = instances.get(&class).copied().unwrap_or(1);
        }
        log.torn = torn(&reader);
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
            // The agent gives each method slots of its own, the first is its index; the tables' column is a signed 32-bit integer.
            let before = self.methods.range(..=method.index).next_back();
            let after = self.methods.range(method.index..).next();
            if before.is_some_and(|(_, before)| end_of(&before.method) > u64::from(method.index))
                || after.is_some_and(|(&after, _)| end_of(&method) > u64::from(after))
                || i32::try_from(method.index).is_err()
            {
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

/// The slot after a method's.
fn end_of(method: &meta::Method) -> u64 {
    u64::from(method.index) + u64::from(method.counting.slots(method.flow.num_paths))
}

pub(crate) fn of_target(target: meta::Target) -> Target {
    let meta::Target {
        pid,
        jdk,
        vm,
        collector,
        command,
        started,
        include,
        exclude,
        merge: _,
        straight_line: _,
        one_in: _,
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

pub(crate) fn not_a_spool(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |error| match error.kind() {
        io::ErrorKind::NotFound => Error::NotASpool {
            path: path.to_owned(),
            reason: "no such file".into(),
        },
        _ => Error::io(path)(error),
    }
}

/// What the counters say of one method, or of one of its groups.
struct Part {
    activations: u64,
    caught: u64,
    kipf: KIpf,
    damage: Damage,
}

/// What a method did.
pub(crate) struct Gathered {
    pub(crate) method: Method,
    pub(crate) detail: MethodDetail,
    pub(crate) code: Code,
    /// How many occurrences of each of its sequences may be missing at most; `None` = unknown.
    pub(crate) missing: Option<u64>,
    /// Burst mode: what its chosen activations counted.
    pub(crate) chosen: Option<Chosen>,
}

/// How often a method was left by a return or an athrow.
fn left(method: &meta::Method, kipf: &KIpf) -> u64 {
    let ends = |id| method.flow.decode(id).map(|path| path.end);
    let leaves = |id| matches!(ends(id), Some(EdgeKind::Return | EdgeKind::Throw));
    let roots = kipf.roots().into_iter();
    let left = roots.filter(|&node| leaves(kipf.id(node)));
    left.fold(0, |sum, node| sum.saturating_add(kipf.node_count(node)))
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
            rows.entry(row.method).or_default().push(row.record());
        }
        let mut rows_damage = walk.damage().clone();
        let slots = counters.slots();
        rows_damage.places += slots.damage().places;
        rows_damage.first = rows_damage.first.or(slots.damage().first);
        let mut log = Log::read(&dir.join("meta.log"))?;
        let header = counters.header();
        log.target.ended = (header.ended && header.ended_at != 0).then_some(header.ended_at);
        log.target.sealed_after_crash = !header.ended;
        let spool = Spool {
            path,
            counters,
            rows,
            slots,
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
            Engine::Automaton | Engine::Ksf | Engine::KsfMtf => self.header().k,
            Engine::BlppHash | Engine::BlppDense => 1,
        }
    }

    /// Methods that have rows but no description, and the number of those rows.
    pub(crate) fn unknown(&self) -> (usize, usize) {
        let described = |index: u32| {
            let before = self.log.methods.range(..=index).next_back();
            before.is_some_and(
                |(&first, LoggedMethod { method, .. })| match method.counting {
                    Counting::Groups => u64::from(index) < end_of(method),
                    Counting::Rows | Counting::Slots => index == first,
                },
            )
        };
        let unknown = self.rows.iter().filter(|(index, _)| !described(**index));
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

    /// What a method did. `damage` gets what is left out.
    pub(crate) fn method(&self, index: u32, damage: &mut Damage) -> Result<Gathered, Error> {
        let LoggedMethod { class, method } =
            self.log.methods.get(&index).ok_or(Error::NoMethod(index))?;
        let in_slots = method.counting == Counting::Slots;
        let header = self.header();
        let mut parts = self.parts(method, true)?;
        let torn = |parts: &[Part]| parts.iter().any(|part| part.damage.places > 0);
        let whole = self.rows_damage.places == 0 && !torn(&parts);
        let bounded = parts.iter().any(|part| !part.kipf.is_exact());
        if bounded && !(whole && header.lost == 0) {
            // What is lost may lie anywhere, so nothing follows from upper bounds: the plain sums are lower bounds all the same.
            parts = self.parts(method, false)?;
        }
        for part in &parts {
            damage.places += part.damage.places;
            damage.first = damage.first.or(part.damage.first);
        }
        // Where memory ended rows have windows cut short, and slots were there before any probe. So only what is lost is missing: a
        // lost item ends an activation's counting, and an item ends at most one occurrence of a sequence.
        let lost = match method.counting {
            Counting::Slots => 0,
            Counting::Rows => header.lost,
            Counting::Groups => header.lost.saturating_mul(self.log.one_in.into()),
        };
        let dropped = bounded && parts.iter().all(|part| part.kipf.is_exact());
        let missing = (whole && !dropped).then_some(lost);
        // Each activation and each entry of a handler starts a path that nothing but an exception keeps from ending with a
        // return, an athrow, or in the next path.
        let unfinished = |part: &Part| {
            let begun = part.activations.saturating_add(part.caught);
            begun.saturating_sub(left(method, &part.kipf))
        };
        let mut chosen = None;
        let mut estimate = None;
        let (activations, unfinished, kipf) = if method.counting == Counting::Groups {
            let mut counted = Chosen::default();
            for (group, part) in parts.iter().enumerate() {
                counted.activations[group] = part.activations;
                counted.unfinished[group] = unfinished(part);
                counted.ids[group] = part.kipf.total();
            }
            let estimator = self.estimator(missing);
            let ([activations, unfinished, _], intervals) = estimator.method(&counted);
            estimate = Some(intervals);
            let groups: Vec<KIpf> = parts.into_iter().map(|part| part.kipf).collect();
            let forest = estimator.forest(self.k(), &groups, &counted);
            chosen = Some(counted);
            let forest = forest.map_err(|error| Error::damaged(&self.path, error))?;
            (activations, Some(unfinished), forest)
        } else {
            let part = parts.pop().ok_or(Error::NoMethod(index))?;
            match in_slots {
                true => (left(method, &part.kipf), None, part.kipf),
                false => (part.activations, Some(unfinished(&part)), part.kipf),
            }
        };
        let mut paths = Vec::new();
        for node in kipf.roots() {
            // A node may be there only as part of a longer sequence whose window was cut by damage.
            let count = kipf.node_count(node);
            if let Some(row) = path_row(method, kipf.id(node), count).filter(|_| count > 0) {
                let interval = estimate.map(|_| Interval {
                    lo: kipf.lower(node),
                    hi: missing.map(|missing| kipf.upper(node).saturating_add(missing)),
                });
                paths.push(PathRow { interval, ..row });
            }
        }
        let paths_exact = whole && lost == 0 && estimate.is_none();
        let lines = method
            .lines
            .iter()
            .map(|&(_, line)| line)
            .filter(|&line| line != 0);
        let merged: Vec<Merged> = method
            .flow
            .merged
            .iter()
            .filter_map(|one| merged_row(method, one))
            .collect();
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
            activations,
            unfinished,
            ids: kipf.total(),
            paths: paths.len() as u64,
            kipf_nodes: kipf.len() as u64,
            merged: merged.len() as u64,
            exact: paths_exact && !bounded,
            paths_exact,
            estimate,
            lines: lines.clone().min().zip(lines.max()),
        };
        let detail = MethodDetail {
            paths,
            kipf,
            merged,
        };
        Ok(Gathered {
            code: code(method, &row, &detail.kipf),
            method: row,
            detail,
            missing,
            chosen,
        })
    }

    /// How counts of a spool in burst mode are estimated.
    pub(crate) fn estimator(&self, missing: Option<u64>) -> Estimator {
        Estimator {
            one_in: self.log.one_in,
            missing,
        }
    }

    /// What a method counted; in burst mode what each of its groups did.
    fn parts(&self, method: &meta::Method, bounds: bool) -> Result<Vec<Part>, Error> {
        let groups = match method.counting {
            Counting::Groups => layout::GROUPS,
            Counting::Rows | Counting::Slots => 1,
        };
        (0..groups)
            .map(|group| self.count(method, method.index + group, bounds))
            .collect()
    }

    /// `bounds`: whether edges of truncated rows are told apart, which gives the k-IPF upper bounds.
    fn count(&self, method: &meta::Method, index: u32, bounds: bool) -> Result<Part, Error> {
        let flow = &method.flow;
        let k = self.k();
        let mut counted = Part {
            activations: 0,
            caught: 0,
            kipf: KIpf::new(k).map_err(|error| Error::damaged(&self.path, error))?,
            damage: Damage::default(),
        };
        let mut forest =
            kipf::Builder::new(k).map_err(|error| Error::damaged(&self.path, error))?;
        for &offset in self.rows.get(&index).into_iter().flatten() {
            let Some(row) = self.counters.row(offset).filter(|row| row.method == index) else {
                counted
                    .damage
                    .add(offset, "a row changed while it was read");
                continue;
            };
            if method.counting == Counting::Slots {
                let reason = "a row of a method that is counted in slots";
                counted.damage.add(offset, reason);
                continue;
            }
            if row.id.is_none() {
                counted.activations = counted.activations.saturating_add(row.enters);
            }
            counted.caught = counted.caught.saturating_add(row.caught);
            if self.header().engine.is_ksf() {
                self.count_ksf(&row, flow, &mut forest, &mut counted.damage);
            } else {
                self.count_row(&row, k, flow, bounds, &mut forest, &mut counted.damage);
            }
        }
        if method.counting == Counting::Slots {
            match self.slots.counts(index, flow.num_paths) {
                Ok(counts) => (0..)
                    .zip(counts)
                    .for_each(|(id, &count)| forest.edge(&[], id, count)),
                Err(reason) => counted.damage.add(0, reason),
            }
        }
        self.check_io()?;
        counted.kipf = forest.finish();
        Ok(counted)
    }

    /// An edge (window, ID) counts for every suffix of window and ID: `kipf::Builder` does that.
    fn count_row(
        &self,
        row: &Row,
        k: u32,
        flow: &Flow,
        bounds: bool,
        forest: &mut kipf::Builder,
        damage: &mut Damage,
    ) {
        // At k = 1 no window counts, and no row is truncated.
        let window = match k {
            1 => Window::default(),
            _ => self.counters.window(row),
        };
        if k > 1 && !window.whole {
            damage.add(row.offset, "the window of a row is not whole");
        }
        if window.ids.iter().any(|&id| id >= flow.num_paths) {
            return damage.add(row.offset, "a path ID that the method does not have");
        }
        let truncated = bounds && window.truncated;
        let mut add = |window: &[u32], id, count| match truncated {
            true => forest.truncated_edge(window, id, count),
            false => forest.edge(window, id, count),
        };
        if let Some(run) = row.run {
            match run.beyond(k).filter(|_| run.id < flow.num_paths) {
                Some(beyond) => count_run(window.ids.clone(), k, run, beyond, &mut add),
                None => damage.add(row.record(), "a run slot contradicts itself"),
            }
        }
        match self.counters.edges(row) {
            Err(reason) => damage.add(row.offset, reason),
            Ok(edges) => {
                for edge in edges {
                    match short_run(flow, k, row, edge.id) {
                        _ if edge.id < flow.num_paths => add(&window.ids, edge.id, edge.count),
                        Some((id, n)) => {
                            count_turns(&mut window.ids.clone(), id, n, edge.count, &mut add);
                        }
                        None => damage.add(row.offset, "a path ID that the method does not have"),
                    }
                }
            }
        }
    }

    /// Each item of a k-SF counts at one node, whose path from the root ends with the item's last min(n + 1, k) IDs (seed 000): so a node
    /// is the edge (its path without itself, its ID), and make_k_ipf is what `kipf::Builder` does with edges.
    fn count_ksf(&self, row: &Row, flow: &Flow, forest: &mut kipf::Builder, damage: &mut Damage) {
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

/// What a run slot stands for (`borescope_spool::layout::run`): the edges that the first k - 1 IDs of each run take, from its row's window
/// on, and the edge from k - 1 times the ID to itself.
fn count_run(
    mut window: Vec<u32>,
    k: u32,
    run: Run,
    beyond: u64,
    add: &mut impl FnMut(&[u32], u32, u64),
) {
    count_turns(&mut window, run.id, k - 1, run.count, add);
    add(&window, run.id, beyond);
}

/// The edges that `turns` times an ID take, one after another, from a window on.
fn count_turns(
    window: &mut Vec<u32>,
    id: u32,
    turns: u32,
    count: u64,
    add: &mut impl FnMut(&[u32], u32, u64),
) {
    for _ in 0..turns {
        add(window, id, count);
        window.push(id);
    }
}

/// What an edge beyond the paths of a method stands for (`borescope_spool::layout::short_runs`): an ID and how many times it. The ID is that of
/// a whole turn of the loop to which the path leads that the row's window ends with: the start value of the loop's head.
fn short_run(flow: &Flow, k: u32, row: &Row, edge: u32) -> Option<(u32, u32)> {
    let turns = edge.checked_sub(flow.num_paths)?.checked_add(1)?;
    if !row.has_run_slot() || turns > layout::short_runs(k) {
        return None;
    }
    let head = flow.decode(row.id?)?.next?;
    Some((flow.start_at(head)?.value, turns))
}

/// The lines and loops of a method.
fn code(method: &meta::Method, row: &Method, kipf: &KIpf) -> Code {
    let flow = &method.flow;
    let of = |block: u32| flow.path_lines(&[block], &method.lines);
    let blocks = (0..).zip(&flow.blocks).map(|(at, _)| at);
    let mut lines: Vec<u16> = blocks.flat_map(of).filter(|&line| line != 0).collect();
    lines.sort_unstable();
    lines.dedup();
    let counts = loops::Counts {
        kipf,
        activations: row.activations,
        exact: row.exact,
    };
    let loops = loops::loops(flow, &counts, |head| of(head).first().copied());
    Code { lines, loops }
}

/// A short branch in words of the class file.
fn merged_row(method: &meta::Method, merged: &flow::Merged) -> Option<Merged> {
    let block = |&at: &u32| method.flow.blocks.get(at as usize);
    let range = |block: &flow::Block| (u32::from(block.start), u32::from(block.end));
    let head = block(&merged.head)?;
    let arms: Vec<&flow::Block> = merged.arms.iter().map(block).collect::<Option<_>>()?;
    // A conditional branch has three bytes (JVMS 6.5: if<cond>, if_icmp<cond>, ifnull, ...): what comes before it runs either way.
    let branch = (head.end.saturating_sub(3).max(head.start), head.end);
    let mut lines: Vec<u16> = std::iter::once(branch)
        .chain(arms.iter().map(|arm| (arm.start, arm.end)))
        .flat_map(|(start, end)| {
            let next = method.lines.partition_point(|line| line.0 <= start);
            let inside = method.lines.iter().skip(next.saturating_sub(1));
            inside.take_while(move |line| line.0 < end)
        })
        .map(|&(_, line)| line)
        .filter(|&line| line != 0)
        .collect();
    lines.sort_unstable();
    lines.dedup();
    Some(Merged {
        head: range(head),
        arms: arms.into_iter().map(range).collect(),
        join: range(block(&merged.join)?),
        lines,
    })
}

/// The executed path `id` in words of the class file.
fn path_row(method: &meta::Method, id: u32, count: u64) -> Option<PathRow> {
    let path = method.flow.decode(id)?;
    Some(PathRow {
        id,
        count,
        interval: None,
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
