//! Figure 7 of the seed, done literally.

use std::collections::HashMap;

/// Nodes by their bits as text; `set` is the allocation location of a node.
#[derive(Default)]
pub struct Figure7 {
    pub set: HashMap<String, u8>,
    pub current: HashMap<u8, String>,
}

impl Figure7 {
    pub fn set_at(&self, node: &str) -> Option<u8> {
        self.set.get(node).copied()
    }

    /// Steps 703 to 706, read as figure 6 needs it: step (b) blocks 0, 00, 000 and 0000, so "child" is every node below.
    pub fn free(&self, node: &str, site: u8) -> bool {
        self.set_at(node).is_none()
            && self
                .set
                .iter()
                .all(|(other, &s)| !other.starts_with(node) || s == site)
    }

    /// Search_for_next_dynamic_ID.
    pub fn search(&mut self, site: u8, len: usize) -> bool {
        let mut node = self.current[&site][..len].to_owned(); // 702
        loop {
            if self.free(&node, site) {
                self.set.insert(node.clone(), site); // 707
                self.current.insert(site, node);
                return true; // 708
            }
            while node.ends_with('1') {
                node.pop(); // 709
            }
            if node.pop().is_none() {
                return false; // 710 to 712
            }
            node.push('1'); // 713
            while self.set_at(&node).is_none() && node.len() < len {
                node.push('0');
            }
        }
    }

    /// From the root along the bits to the first node that is set.
    pub fn decode(&self, leaf: &str) -> Option<u8> {
        (0..=leaf.len()).find_map(|n| self.set_at(&leaf[..n]))
    }

    /// "The next free 5-bit value" (figure 6A, b): the leftmost leaf with nothing set on the way to it.
    pub fn first(&mut self, site: u8, max_len: usize) -> bool {
        let leaf = (0..1u32 << max_len)
            .map(|v| format!("{v:0max_len$b}"))
            .find(|leaf| self.decode(leaf).is_none());
        match leaf {
            Some(leaf) => {
                self.set.insert(leaf.clone(), site);
                self.current.insert(site, leaf);
                true
            }
            None => false,
        }
    }
}
