//! An invented trace, for demonstrations and measurements without a program: nobody ran it, its shape alone is taken from life.
//!
//! Taken from the seed's figure 11: the largest class has 14,933 sites and few classes have most sites. Ours: a third of the sites ever allocate, objects per
//! site have a heavy tail (Pareto), and only some classes are ever used by identity, so most objects are never hashed.

use crate::rng::Rng;
use crate::trace::{Step, Trace, TraceSite};

/// Sites of the largest class (seed, figure 11: `Object[]` in Trade6).
pub const LARGEST: u32 = 14_933;
const CLASSES: u32 = 600;
/// A site allocates in at most so many bursts.
const BURSTS: u64 = 48;
const MOST_OBJECTS: f64 = 2e6;

/// Uniform in [0, 1).
fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// The trace of a seed; `largest` sites in the largest class ([`LARGEST`] for the full size), the others in proportion.
pub fn trace(seed: u64, largest: u32) -> Trace {
    let mut rng = Rng::new(seed);
    let mut trace = Trace::default();
    // (moment, site, count): the bursts of all sites, mixed.
    let mut bursts: Vec<(u64, u32, u64)> = Vec::new();
    let mut shares = Vec::new();
    let mut method = 0;
    for class in 0..CLASSES {
        let sites = (f64::from(largest) / f64::from(class + 1).powf(1.25)).ceil() as u32;
        trace.classes.push(format!("synthetic.Class{class}"));
        // The share of its objects that are hashed.
        shares.push(match (class, unit(&mut rng)) {
            (0, _) => 0.02,
            (_, u) if u < 0.15 => 0.05 + unit(&mut rng) * 0.9,
            _ => 0.0,
        });
        for nth in 0..sites {
            let site = trace.sites.len() as u32;
            method += u32::from(unit(&mut rng) < 0.4);
            trace.sites.push(TraceSite {
                class,
                method,
                label: format!("synthetic.Method{method}:{nth}"),
            });
            if unit(&mut rng) >= 1.0 / 3.0 {
                continue;
            }
            let objects = (1.0 - unit(&mut rng)).powf(-1.0 / 0.8).min(MOST_OBJECTS) as u64;
            let number = objects.min(1 + rng.next_u64() % BURSTS);
            for burst in 0..number {
                let count = objects / number + u64::from(burst < objects % number);
                bursts.push((rng.next_u64(), site, count));
            }
        }
    }
    bursts.sort_unstable();
    let mut allocated = vec![0u64; trace.sites.len()];
    for (_, site, count) in bursts {
        trace.steps.push(Step::Allocate { site, count });
        let before = allocated[site as usize];
        let share = shares[trace.sites[site as usize].class as usize];
        if share == 0.0 {
            continue;
        }
        for nth in before..before + count {
            if unit(&mut rng) < share {
                trace.steps.push(Step::Hash { site, nth });
                // Look-ups of an object that was put somewhere long ago.
                if before > 0 && unit(&mut rng) < 0.1 {
                    let nth = rng.next_u64() % before;
                    trace.steps.push(Step::Hash { site, nth });
                }
            }
        }
        allocated[site as usize] = before + count;
    }
    trace
}
