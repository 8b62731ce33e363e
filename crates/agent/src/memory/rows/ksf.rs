//! The slow path of the k-SF (figure 6 of the source document): makes the nodes that a step does not find. State: beta << 32 | tau.
//! Shared arenas only count here, under their arena's lock; so moving to the front is safe there, too.

use super::{Addr, Arena, Counters, find, flags, publish};
use crate::memory::raw::{load32, load64, store32, store64};
use borescope_spool::layout::{self, Kind, ksf, row};

impl Counters {
    /// A whole step of the k-SF, making what is absent.
    pub fn miss_ksf(&self, s: u64, r: u32) -> u64 {
        let sink = self.offset(self.hash_sink());
        let tau = self.at(s as u32);
        if s == sink {
            self.lost();
            return sink;
        }
        let (root, at_start) = self.ksf_root(tau);
        let id = load32(root + row::FLAGS) >> 8;
        let mut arena = self.threads.arena(id);
        match self.ksf_step(
            &mut arena,
            id,
            root,
            if at_start { 0 } else { tau },
            (s >> 32) as u32,
            r,
        ) {
            Some(_) if self.k == 1 => s,
            Some(next) => next,
            None => {
                self.lost();
                sink
            }
        }
    }

    /// The method's root row, given tau, and whether that is the root row itself: the activation has just begun.
    pub(super) fn ksf_root(&self, tau: Addr) -> (Addr, bool) {
        if load32(tau) == Kind::KsfNode as u32 {
            (self.at(load32(tau + ksf::ROOT)), false)
        } else {
            (tau, true)
        }
    }

    fn ksf_step(
        &self,
        arena: &mut Arena,
        id: u32,
        root: Addr,
        tau: Addr,
        beta: u32,
        r: u32,
    ) -> Option<u64> {
        let mut beta = if beta == 0 { 0 } else { self.at(beta) };
        let top;
        if tau == 0 || i64::from(load32(tau + ksf::DEPTH)) == i64::from(self.k) - 2 {
            beta = tau;
            top = match find(load64(root + row::REAL_TABLE), r) {
                Ok(edge) => self.at((load64(edge) >> 32) as u32),
                Err(_) => {
                    let node = self.new_node(arena, id, root, r, 0)?;
                    self.insert(arena, id, root, r, node, 0)?;
                    node
                }
            };
        } else {
            top = self.child(arena, id, root, tau, r)?;
        }
        let mut counted = top;
        if beta != 0 {
            beta = self.child(arena, id, root, beta, r)?;
            counted = beta;
        }
        store64(counted + ksf::COUNT, load64(counted + ksf::COUNT) + 1);
        Some(
            self.offset(top)
                | if beta == 0 {
                    0
                } else {
                    self.offset(beta) << 32
                },
        )
    }

    fn child(&self, arena: &mut Arena, id: u32, root: Addr, node: Addr, r: u32) -> Option<Addr> {
        let first = load32(node + ksf::FIRST);
        // With move to front the list of search holds all children but one that a probe was about to move when its thread was
        // stopped (a stack overflow, Thread.stop): then the other list has it.
        if self.moves_to_front()
            && let Some(found) = self.search(node, ksf::FRONT, ksf::NEXT, r)
        {
            return Some(found);
        }
        let found = self.search(node, ksf::FIRST, ksf::SIBLING, r);
        if found.is_some() && !self.moves_to_front() {
            return found;
        }
        let child = match found {
            Some(child) => child,
            None => {
                let new = self.new_node(arena, id, root, r, load32(node + ksf::DEPTH) + 1)?;
                store32(new + ksf::SIBLING, first);
                store32(node + ksf::FIRST, self.offset(new) as u32);
                new
            }
        };
        if self.moves_to_front() {
            self.put_in_front(node, child);
        }
        Some(child)
    }

    /// The child of `node` with the ID, in a list of children; the list of search then has it in front.
    fn search(&self, node: Addr, head: u64, next: u64, r: u32) -> Option<Addr> {
        let mut before = 0;
        let mut c = load32(node + head);
        while c != 0 {
            let a = self.at(c);
            if load32(a + ksf::ID) == r {
                if head == ksf::FRONT && before != 0 {
                    store32(before + ksf::NEXT, load32(a + ksf::NEXT));
                    self.put_in_front(node, a);
                }
                return Some(a);
            }
            before = a;
            c = load32(a + next);
        }
        None
    }

    /// `child` is not in the list of search.
    fn put_in_front(&self, node: Addr, child: Addr) {
        store32(child + ksf::NEXT, load32(node + ksf::FRONT));
        store32(node + ksf::FRONT, self.offset(child) as u32);
    }

    fn new_node(&self, arena: &mut Arena, id: u32, root: Addr, r: u32, depth: u32) -> Option<Addr> {
        let node = self.allocate(arena, id, layout::KSF_BYTES, false)?;
        store32(node, Kind::KsfNode as u32);
        store32(node + 4, layout::KSF_BYTES as u32);
        store32(node + ksf::ID, r);
        store32(node + ksf::DEPTH, depth);
        store32(node + ksf::ROOT, self.offset(root) as u32);
        store32(node + ksf::FLAGS, flags(id));
        publish(arena);
        Some(node)
    }
}
