//! What a variant counted: figures 9 and 11 to 14 of the seed, from the spool and the profile of one run. `page.rs` says in words how.

use crate::replay;
use crate::results::{OK, Profile, Replay};
use anyhow::{Result, ensure};
use borescope_profile::{Existing, seal};
use borescope_spool::counters::{Counters, Damage};
use borescope_spool::layout::{Engine, HEADER_BYTES, Stop};
use borescope_spool::log::LogReader;
use borescope_spool::meta::{Counting, Record};
use borescope_spool::source::FileSource;
use std::fs::File;
use std::path::Path;

/// Number of nodes and what they look like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forest {
    /// Nodes.
    pub nodes: u64,
    /// Nodes with children.
    inner: u64,
    /// Nodes that are children.
    children: u64,
    /// Sum of the depths of all leaves; a root has depth 1.
    leaf_depths: u64,
}

impl Forest {
    /// Adds a tree or forest: for each node its parent's place and its depth, from 1.
    pub fn add(&mut self, nodes: &[(Option<u32>, u32)]) {
        let mut inner = vec![false; nodes.len()];
        for parent in nodes.iter().filter_map(|n| n.0) {
            self.children += 1;
            if let Some(place) = inner.get_mut(parent as usize) {
                *place = true;
            }
        }
        self.nodes += nodes.len() as u64;
        for (&inner, &(_, depth)) in inner.iter().zip(nodes) {
            match inner {
                true => self.inner += 1,
                false => self.leaf_depths += u64::from(depth),
            }
        }
    }

    /// Average number of children of inner nodes.
    pub fn degree(&self) -> Option<f64> {
        (self.inner > 0).then(|| self.children as f64 / self.inner as f64)
    }

    /// Average depth of leaves.
    pub fn leaf_depth(&self) -> Option<f64> {
        let leaves = self.nodes - self.inner;
        (leaves > 0).then(|| self.leaf_depths as f64 / leaves as f64)
    }
}

/// Reads a spool. `forest` = also the k-IPF of all methods (which takes a while where there are many); `replay` = the k with which engines
/// run by themselves on streams like the program's.
pub fn read(spool: &Path, forest: bool, replay: &[u32]) -> Result<(Profile, Vec<Replay>)> {
    let counters = Counters::new(FileSource::new(
        File::open(spool.join("counters.bin"))?,
        256 << 20,
    )?)?;
    let header = *counters.header();
    let mut out = Profile {
        status: match header.stop {
            Stop::No if header.lost == 0 => OK.to_owned(),
            Stop::No => format!("{} items lost", header.lost),
            Stop::Memory => "memory limit reached".to_owned(),
            Stop::DiskFull => "disk full".to_owned(),
        },
        counter_bytes: header.allocated.saturating_sub(HEADER_BYTES),
        ..Profile::default()
    };
    let (mut rows, mut edges, mut runs, mut items, mut looked_up) = (0, 0, 0, 0, 0);
    let mut ksf = Forest::default();
    let mut damage = Damage::default();
    let mut walk = counters.rows();
    for row in walk.by_ref() {
        rows += 1;
        runs += u64::from(row.run.is_some());
        if header.engine.is_ksf() {
            let mut nodes: Vec<(Option<u32>, u32)> = Vec::new();
            // Places of the nodes on the way to the last one.
            let mut way: Vec<u32> = Vec::new();
            counters.ksf(&row, &mut damage, |path, count| {
                items += count;
                let depth = path.len() as u32;
                // A node of depth d (1 = root) counts items with n = d - 1 in the first slab and those with n mod (k-1) = d - k in
                // the others: the roots and the nodes of depth k count all items with n mod (k-1) = 0, for which R is asked.
                if depth == 1 || depth == header.k {
                    looked_up += count;
                }
                way.truncate(path.len() - 1);
                let parent = way.last().copied();
                way.push(nodes.len() as u32);
                nodes.push((parent, depth));
            });
            ksf.add(&nodes);
            continue;
        }
        for edge in counters.edges(&row).map_err(anyhow::Error::msg)? {
            edges += 1;
            items += edge.count;
            if row.is_hash() {
                looked_up += edge.count;
            }
        }
    }
    for damage in [walk.damage(), &damage] {
        ensure!(damage.places == 0, "the counters are damaged: {damage}");
    }
    out.hash_operations = Some(looked_up);
    match header.engine {
        Engine::Ksf | Engine::KsfMtf => {
            out.items = Some(items);
            out.ksf_nodes = Some(ksf.nodes);
            out.ksf_degree = ksf.degree();
            return Ok((out, Vec::new()));
        }
        Engine::Automaton => {
            out.rows = Some(rows);
            out.run_slots = Some(runs);
            out.fixed_counters = Some(fixed_counters(spool, &counters)?);
            // Each edge is made once, and then its target is sought by a hash of its window.
            out.hash_operations = Some(looked_up + edges);
        }
        Engine::BlppHash | Engine::BlppDense => {}
    }
    out.edges = Some(edges);
    let dir = tempfile::tempdir()?;
    let sealed = dir.path().join("profile");
    let manifest = seal(spool, &sealed, Existing::Refuse, &mut |_| {})?;
    out.items = Some(manifest.totals.ids);
    let profile = borescope_profile::Profile::open(&sealed)?;
    let bounded = profile.methods().iter().filter(|m| !m.exact).count();
    if bounded > 0 && out.status == OK {
        out.status = format!("{bounded} methods have bounds instead of counts");
    }
    let mut replays = Vec::new();
    if forest {
        let mut all = Forest::default();
        for method in profile.methods().iter().filter(|m| m.kipf_nodes > 0) {
            let nodes = profile.detail(method.index)?.kipf;
            let nodes: Vec<_> = nodes.nodes().map(|n| (n.parent, n.depth)).collect();
            all.add(&nodes);
        }
        out.kipf_nodes = Some(all.nodes);
        out.kipf_degree = all.degree();
        out.kipf_leaf_depth = all.leaf_depth();
        if !replay.is_empty() {
            replays = replay::run(&profile, replay)?;
        }
    }
    Ok((out, replays))
}

/// Paths that ran of methods whose counts are at fixed offsets.
fn fixed_counters(spool: &Path, counters: &Counters<FileSource>) -> Result<u64> {
    let log = std::fs::read(spool.join("meta.log"))?;
    let slots = counters.slots();
    let mut used = 0;
    for record in LogReader::new(&log) {
        let Record::Class(class) = record else {
            continue;
        };
        for method in class
            .methods
            .iter()
            .filter(|m| m.counting == Counting::Slots)
        {
            let counts = slots.counts(method.index, method.flow.num_paths);
            let counts = counts.map_err(anyhow::Error::msg)?;
            used += counts.iter().filter(|c| **c > 0).count() as u64;
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_of_a_forest() {
        // a(b, c(d)), e
        let mut forest = Forest::default();
        forest.add(&[
            (None, 1),
            (Some(0), 2),
            (Some(0), 2),
            (Some(2), 3),
            (None, 1),
        ]);
        assert_eq!(forest.nodes, 5);
        assert_eq!(forest.degree(), Some(3.0 / 2.0));
        assert_eq!(forest.leaf_depth(), Some((2.0 + 3.0 + 1.0) / 3.0));
        assert_eq!(Forest::default().degree(), None);
    }
}
