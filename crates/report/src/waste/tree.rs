//! Full contexts of a leaf pair as a tree: callers of both accesses once, from the outermost in, then where the two ways part.

use borescope_waste::Frame;
use borescope_waste::rank::LeafPair;

use super::lines::Lines;
use crate::page::{Look, Page};
use crate::words::{self, plural};

/// Contexts that are shown of a pair.
const MOST: usize = 10;
/// Indentation of a branch.
const STEP: usize = 2;

/// One pair of contexts: callers of both from the outermost in, then each access's own frames.
struct Way {
    both: Vec<Frame>,
    first: Vec<Frame>,
    second: Vec<Frame>,
    count: u64,
}

/// Writes the tree below `indent` columns.
pub(super) fn write(page: &mut Page, lines: &Lines, pair: &LeafPair, indent: usize) {
    let tree = &lines.profile.contexts;
    let outer_first = |node: u32| {
        let mut frames: Vec<Frame> = tree.frames(node).collect();
        frames.reverse();
        frames
    };
    let mut ways: Vec<Way> = pair
        .contexts
        .iter()
        .take(MOST)
        .map(|one| {
            let (first, second) = (outer_first(one.first), outer_first(one.second));
            // The access itself is no caller.
            let common = tree
                .depth(one.meeting)
                .min(first.len().saturating_sub(1))
                .min(second.len().saturating_sub(1));
            Way {
                both: first[..common].to_vec(),
                first: first[common..].to_vec(),
                second: second[common..].to_vec(),
                count: one.count,
            }
        })
        .collect();
    ways.sort_by(|a, b| a.both.cmp(&b.both));
    let refs: Vec<&Way> = ways.iter().collect();
    branch(page, lines, &refs, 0, indent);
    if let Some(more @ 1..) = pair.contexts.len().checked_sub(MOST) {
        let text = plural(
            more as u64,
            "more pair of contexts",
            "more pairs of contexts",
        );
        line(page, indent, Look::Dim, &words::plain(&text));
    }
}

/// Ways that agree in their first `depth` callers.
fn branch(page: &mut Page, lines: &Lines, ways: &[&Way], depth: usize, indent: usize) {
    let mut depth = depth;
    if let [first, rest @ ..] = ways {
        // What all have in common, without another step in.
        while let Some(frame) = first.both.get(depth) {
            if rest.iter().any(|way| way.both.get(depth) != Some(frame)) {
                break;
            }
            line(page, indent, Look::Plain, &lines.name(*frame));
            depth += 1;
        }
    }
    let mut rest = ways;
    while let [one, ..] = rest {
        let next = one.both.get(depth);
        let same = rest
            .iter()
            .take_while(|way| way.both.get(depth) == next)
            .count();
        let (these, others) = rest.split_at(same);
        match next {
            None => these
                .iter()
                .for_each(|way| leaf(page, lines, way, indent + STEP)),
            Some(_) => branch(page, lines, these, depth, indent + STEP),
        }
        rest = others;
    }
}

fn leaf(page: &mut Page, lines: &Lines, way: &Way, indent: usize) {
    let samples = words::plain(&plural(way.count, "sample", "samples"));
    line(page, indent, Look::Bold, &samples);
    for (name, frames) in [("first ", &way.first), ("second", &way.second)] {
        for (at, frame) in frames.iter().enumerate() {
            let lead = if at == 0 { name } else { "      " };
            line(
                page,
                indent,
                Look::Plain,
                &format!("{lead} {}", lines.name(*frame)),
            );
        }
    }
}

fn line(page: &mut Page, indent: usize, look: Look, text: &str) {
    // A deep tree must not push its names off the page.
    let indent = indent.min(page.width / 2);
    let lead = " ".repeat(indent);
    let line = words::keep_end_after(&lead, text, page.width);
    page.line(look, &line);
}
