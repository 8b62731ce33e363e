//! Streams of path IDs, and the brute-force n-gram counter that every engine is compared with.

use crate::Error;
use std::collections::HashMap;

/// An item of the stream of one method: what the paper's `process_bl_path_id` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// `*`: an activation begins.
    Start,
    /// A path ID.
    Id(u32),
}

/// Reads `* 6 2 0 0 * 2`.
pub fn parse(text: &str) -> Result<Vec<Item>, Error> {
    text.split_whitespace()
        .map(|word| match word {
            "*" => Ok(Item::Start),
            _ => word
                .parse()
                .map(Item::Id)
                .map_err(|_| Error::Item(word.to_owned())),
        })
        .collect()
}

/// Cuts a stream at its `*` markers. IDs before the first marker are an activation too.
#[must_use]
pub fn activations(stream: &[Item]) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = Vec::new();
    for item in stream {
        match (item, all.last_mut()) {
            (Item::Id(id), Some(last)) => last.push(*id),
            (Item::Id(id), None) => all.push(vec![*id]),
            (Item::Start, _) => all.push(Vec::new()),
        }
    }
    all
}

/// The joined stream, with a `*` in front of each activation.
#[must_use]
pub fn join<A: AsRef<[u32]>>(activations: &[A]) -> Vec<Item> {
    activations
        .iter()
        .flat_map(|a| std::iter::once(Item::Start).chain(a.as_ref().iter().map(|&id| Item::Id(id))))
        .collect()
}

/// Counts all n-grams of 1 to k IDs inside each activation, by the definition: every window at every position.
#[must_use]
pub fn brute_force<A: AsRef<[u32]>>(activations: &[A], k: u32) -> HashMap<Vec<u32>, u64> {
    let mut counts = HashMap::new();
    for activation in activations {
        for n in 1..=k as usize {
            for gram in activation.as_ref().windows(n) {
                *counts.entry(gram.to_vec()).or_insert(0) += 1;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_activations() {
        let stream = parse("7 * 6 2 * * 2").unwrap();
        let cut = activations(&stream);
        assert_eq!(cut, [vec![7], vec![6, 2], vec![], vec![2]]);
        assert_eq!(activations(&join(&cut)), cut);
        assert_eq!(parse("* x"), Err(Error::Item("x".into())));
        assert_eq!(
            brute_force(&cut, 2),
            HashMap::from([(vec![7], 1), (vec![6], 1), (vec![2], 2), (vec![6, 2], 1)])
        );
    }
}
