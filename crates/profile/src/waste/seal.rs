//! Seals a spool of the waste lens.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use borescope_spool::waste::{FILE, Read, read};
use borescope_waste::analysis::accounts::Accounts;
use borescope_waste::handler::watches::Shape;
use borescope_waste::{Counter, Waste};

use super::log::Log;
use super::tables::{self, CONTEXTS, PAIRS};
use super::{Context, Kind, LENS, Manifest, Pair, Totals, What};
use crate::seal::{Existing, directory, write_manifest};
use crate::table::TableWriter;
use crate::tables::{SKIPPED, write_skipped};
use crate::{Error, SCHEMA};

/// Seals the spool `spool` (which is only read, and may still be written by a JVM) into the profile directory `out`. Nothing appears under that
/// name until the profile is complete and on the disk.
pub fn seal(spool: &Path, out: &Path, existing: Existing) -> Result<Manifest, Error> {
    let open = || {
        let path = spool.join(FILE);
        // The table first: what it names is in a log that is read later.
        let bytes = fs::read(&path).map_err(Error::io(&path))?;
        let table = read(&bytes).map_err(|error| Error::damaged(&path, error))?;
        Ok((Log::read(&spool.join("meta.log"))?, table))
    };
    directory(out, existing, open, |(log, table), dir| {
        write(log, table, dir)
    })
}

fn write(log: &Log, table: &Read, dir: &Path) -> Result<Manifest, Error> {
    let mut tree = Tree::of(log, table);
    let pairs = pairs(log, table, &mut tree);
    let contexts = tree.contexts;
    let create = |name: &str, schema| TableWriter::create(dir.join(name), schema);
    let mut of_contexts = create("contexts.parquet", CONTEXTS)?;
    for (number, context) in (1..).zip(&contexts) {
        of_contexts.row(|columns| tables::write_context(columns, number, context))?;
    }
    let mut of_pairs = create("pairs.parquet", PAIRS)?;
    for (number, pair) in (1..).zip(&pairs) {
        of_pairs.row(|columns| tables::write_pair(columns, number, pair))?;
    }
    let mut skipped = create("skipped.parquet", SKIPPED)?;
    for row in &log.skipped {
        skipped.row(|columns| write_skipped(columns, row))?;
    }
    let mut files = BTreeMap::new();
    for (name, table) in [
        ("contexts.parquet", of_contexts),
        ("pairs.parquet", of_pairs),
        ("skipped.parquet", skipped),
    ] {
        files.insert(name.to_owned(), table.finish()?);
    }
    let manifest = manifest(log, table, (&contexts, &pairs), files);
    write_manifest(dir, &manifest)?;
    Ok(manifest)
}

/// The contexts by name. Several nodes of the table's tree may be one: methods of classes of one name.
struct Tree {
    contexts: Vec<Context>,
    known: HashMap<(Option<u32>, What), u32>,
    /// For each node of the table's tree, its context.
    number_of: Vec<Option<u32>>,
}

impl Tree {
    fn of(log: &Log, table: &Read) -> Tree {
        let nodes = &table.profile.contexts;
        let mut tree = Tree {
            contexts: Vec::new(),
            known: HashMap::new(),
            number_of: vec![None; nodes.len()],
        };
        for node in 1..nodes.len() {
            // A caller's node is below.
            let Some((parent, frame)) = u32::try_from(node).ok().and_then(|node| nodes.node(node))
            else {
                continue;
            };
            let caller = tree.number(parent);
            tree.number_of[node] = Some(tree.intern(caller, log.what(frame)));
        }
        tree
    }

    fn number(&self, node: u32) -> Option<u32> {
        self.number_of.get(node as usize).copied().flatten()
    }

    fn intern(&mut self, caller: Option<u32>, what: What) -> u32 {
        let next = self.contexts.len() as u32 + 1;
        let number = *self.known.entry((caller, what.clone())).or_insert(next);
        if number == next {
            self.contexts.push(Context { caller, what });
        }
        number
    }
}

/// A side of a pair: its context, type of the value, and whether the line is doubtful.
fn side(
    log: &Log,
    table: &Read,
    tree: &mut Tree,
    node: u32,
    shape: &Shape,
) -> (u32, Option<String>, Option<bool>) {
    let Some((parent, leaf)) = table.profile.contexts.node(node) else {
        return (0, None, None);
    };
    let better = log.refined(leaf, shape);
    let number = match better == leaf {
        true => tree.number(node).unwrap_or(0),
        false => {
            let caller = tree.number(parent);
            tree.intern(caller, log.what(better))
        }
    };
    let (ty, doubtful) = log.access(better, shape);
    (number, ty, doubtful)
}

fn pairs(log: &Log, table: &Read, tree: &mut Tree) -> Vec<Pair> {
    let mut sums: BTreeMap<borescope_waste::Pair, Pair> = BTreeMap::new();
    for (pair, &count) in &table.profile.pairs {
        let detail = &pair.detail;
        let first = side(log, table, tree, pair.first, &detail.first);
        // There is none where it is no waste.
        let second = side(log, table, tree, pair.second, &detail.second);
        let key = borescope_waste::Pair {
            first: first.0,
            second: second.0,
            ..*pair
        };
        let row = sums.entry(key).or_insert(Pair {
            pair: key,
            count: 0,
            types: [first.1, second.1],
            doubtful: [first.2, second.2],
        });
        row.count = row.count.saturating_add(count);
    }
    sums.into_values().collect()
}

fn manifest(
    log: &Log,
    table: &Read,
    (contexts, pairs): (&[Context], &[Pair]),
    files: BTreeMap<String, crate::Checksum>,
) -> Manifest {
    let profile = &table.profile;
    let accounts = &profile.accounts;
    let mut notices = log.notices.clone();
    if log.set_up.source != profile.source {
        notices.push(format!(
            "the log says that samples come from {}, the table from {}: the table is believed",
            log.set_up.source.name(),
            profile.source.name()
        ));
    }
    if let Err(wrong) = accounts.check(false) {
        notices.push(format!("the counters do not come out: {wrong}"));
    }
    Manifest {
        borescope: env!("CARGO_PKG_VERSION").into(),
        schema: SCHEMA,
        lens: LENS.into(),
        target: log.target.clone(),
        source: profile.source.name().into(),
        weight: profile.source.weight().name().into(),
        rate: log.set_up.rate,
        tolerance_ppm: log.set_up.tolerance_ppm,
        watches: log.set_up.watches,
        attached: log.set_up.attached,
        samples: accounts
            .samples()
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
        kinds: kinds(accounts),
        totals: Totals {
            contexts: contexts.len() as u64,
            pairs: pairs.len() as u64,
            methods: log.methods(),
            unfinished: profile.unfinished,
        },
        notices,
        log_torn: log.torn.clone(),
        table_torn: (table.missing > 0).then(|| {
            format!(
                "{} bytes are missing at the end of {FILE}: pairs that stood there are lost",
                table.missing
            )
        }),
        files,
    }
}

fn kinds(accounts: &Accounts) -> BTreeMap<String, Kind> {
    let of = |waste: Waste| Kind {
        asked: accounts.get(Counter::Asked(waste)),
        wasteful: accounts.get(Counter::Wasteful(waste)),
        useful: accounts.get(Counter::Useful(waste)),
        unanswered: accounts.get(Counter::Unanswered(waste)),
    };
    let all = Waste::ALL.into_iter();
    all.map(|waste| (waste.name().to_owned(), of(waste)))
        .collect()
}
