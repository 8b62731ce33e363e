//! What the tests share: sinks that keep everything, and schemes of all modes and widths.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod figure7;

use borescope_sites::*;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Keeps the log and the published stamps. `room`: events that it takes.
#[derive(Debug)]
pub struct Kept {
    pub events: Mutex<Vec<Event>>,
    pub stamps: Mutex<HashMap<(SiteId, Space), Option<Stamp>>>,
    pub room: AtomicUsize,
}

impl Default for Kept {
    fn default() -> Self {
        Kept::with_room(usize::MAX)
    }
}

impl Kept {
    pub fn with_room(room: usize) -> Self {
        Kept {
            events: Mutex::default(),
            stamps: Mutex::default(),
            room: AtomicUsize::new(room),
        }
    }

    pub fn stamp(&self, site: SiteId, space: Space) -> Option<Stamp> {
        *self.stamps.lock().unwrap().get(&(site, space))?
    }

    pub fn log_so_far(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }
}

impl Sink for Kept {
    fn log(&self, event: &Event) -> bool {
        let mut events = self.events.lock().unwrap();
        let room = events.len() < self.room.load(Ordering::Relaxed);
        if room {
            events.push(*event);
        }
        room
    }
    fn publish(&self, site: SiteId, space: Space, stamp: Option<Stamp>) {
        self.stamps.lock().unwrap().insert((site, space), stamp);
    }
}

pub fn policies() -> impl Strategy<Value = Policy> {
    let random = (1u8..5, 0u8..4, 0u8..4, 0u32..6, any::<bool>(), 0u8..4).prop_map(
        |(min_id_bits, min_number_bits, share, merge_below, wrap, guard_bits)| Policy {
            min_id_bits,
            min_number_bits,
            share,
            merge_below,
            guard_bits,
            wrap,
        },
    );
    prop_oneof![Just(Policy::SEED), random]
}

pub fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![
        (1u8..31).prop_map(|number_bits| Mode::Static { number_bits }),
        Just(Mode::Dynamic),
        Just(Mode::Hybrid),
        Just(Mode::Spare),
    ]
}

/// All modes, small fields (where numbers run out) and the real ones.
pub fn schemes() -> impl Strategy<Value = Scheme> {
    let widths = prop_oneof![
        1u8..10,
        prop_oneof![Just(14u8), Just(15), Just(22), Just(25), Just(30), Just(31)]
    ];
    (modes(), widths, policies(), any::<u64>(), any::<bool>()).prop_filter_map(
        "not every scheme is one",
        |(mode, width, policy, seed, ours)| match ours {
            true => Scheme::ours(mode, width, seed).ok(),
            false => Scheme::new(mode, width, policy, seed).ok(),
        },
    )
}
