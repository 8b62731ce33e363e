//! What the figures suggest, in words. A suggestion says what it rests on.

use super::At;
use super::heap::{Entry, Heap, Line};
use crate::words::plural;
use crate::{Error, MethodGlob};

/// Snapshots that are looked at to tell steady growth from a jump.
const STEPS: usize = 16;
/// Fewer objects than this suggest nothing.
const MANY: i128 = 64;

/// Objects of the collections of the JDK that stand for one element each.
fn is_node(ty: &str) -> bool {
    ty.starts_with("java.util.") && (ty.ends_with("Node") || ty.ends_with("Entry"))
}

/// A line, other than the entry's own or the same, where a collection got about as many elements as the entry has new objects.
pub(super) fn collection<'a>(entry: &Entry, all: &[Entry<'a>]) -> Option<(&'a Line, &'a str)> {
    let objects = entry
        .parts
        .iter()
        .find(|(what, _)| !is_node(&what.ty))
        .map(|(_, change)| change.objects())?;
    if objects < MANY {
        return None;
    }
    all.iter().find_map(|other| {
        if !other.line.of_application {
            return None;
        }
        let node = other.parts.iter().find(|(what, change)| {
            is_node(&what.ty) && (change.objects() - objects).abs() * 50 <= objects
        });
        node.map(|(what, _)| (other.line, what.ty.as_str()))
    })
}

/// In how many of how many steps from one snapshot to the next each line grew. Empty if there are fewer than two steps.
pub(super) fn steps(
    first: At,
    last: At,
    glob: Option<&MethodGlob>,
    lines: &[&Line],
) -> Result<(usize, Vec<usize>), Error> {
    let between = |number: u32| (first.snapshot.number..=last.snapshot.number).contains(&number);
    let snapshots = &last.profile.manifest().snapshots;
    let numbers: Vec<u32> = snapshots
        .iter()
        .map(|snapshot| snapshot.number)
        .filter(|&number| between(number))
        .collect();
    let mut chosen: Vec<u32> = (0..STEPS)
        .filter_map(|at| numbers.get(at * numbers.len().saturating_sub(1) / (STEPS - 1)))
        .copied()
        .collect();
    chosen.dedup();
    if chosen.len() < 3 {
        return Ok((0, Vec::new()));
    }
    let mut grew = vec![0; lines.len()];
    let mut before: Option<Vec<u64>> = None;
    for &number in &chosen {
        let Some(at) = At::number(last.profile, number) else {
            continue;
        };
        let heap = Heap::read(at, glob)?;
        let bytes = heap.bytes();
        let now: Vec<u64> = lines
            .iter()
            .map(|line| bytes.get(line).copied().unwrap_or(0))
            .collect();
        for (at, before) in before.iter().flatten().enumerate() {
            grew[at] += usize::from(now[at] > *before);
        }
        before = Some(now);
    }
    Ok((chosen.len() - 1, grew))
}

/// `grew in each of 4 steps`.
pub(super) fn steadily(steps: usize, grew: usize) -> String {
    match grew == steps {
        true => format!(
            "grew in each of {}",
            plural(steps as u64, "step", "steps between snapshots")
        ),
        false => format!("grew in {grew} of {steps} steps between snapshots"),
    }
}
