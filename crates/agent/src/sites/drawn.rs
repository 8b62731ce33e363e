//! Dynamic mode: the hashes that the JVM draws itself, for objects that nobody has marked, are told from ours with certainty.
//!
//! From the lens's begin to its end HotSpot counts them (mode 3 of its flag `hashCode`; synchronizer.cpp, `get_next_hash`, reads the flag for each hash)
//! instead of drawing them at random, so they lack the highest bit, which ours have, until it has counted 2^30 of them. How far it is, is sampled: at each
//! snapshot, and by the control thread meanwhile. Those from before the lens began are found by a walk (`numbers.rs`). The flag is only written if what
//! comes of it is as expected, and if the user has not set it.

use crate::jvmti::{Jni, Jvmti, flags};
use borescope_sites::drawn::Drawn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const FLAG: &str = "hashCode";
/// Values of the flag that mean something else than the usual: random numbers of each thread's.
const CHOSEN: std::ops::RangeInclusive<i64> = 0..=4;
const COUNTED: i64 = 3;
/// Hashes that other threads may draw between two of ours, at start.
const NEAR: u32 = 1 << 20;
/// How often the control thread samples: no JVM counts through most of 2^31 hashes meanwhile (a draw takes some 20 ns, and threads that draw at once count once).
pub const EVERY: Duration = Duration::from_secs(30);

static STATE: Mutex<Option<State>> = Mutex::new(None);

struct State {
    /// The flag before.
    before: i64,
    drawn: Drawn,
}

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the JVM count its hashes from now on. `ours` is the lowest hash that we make; the error says why it cannot be. All that it has drawn otherwise is in
/// headers when a heap walk begins after this, as no thread stops for one between the draw and the store.
pub fn begin(jvmti: Jvmti, jni: Jni, ours: u32) -> Result<(), String> {
    let cannot = || {
        "the identity hashes that this JVM draws cannot be told from numbers of allocation sites"
            .to_owned()
    };
    let before = flags::word_flag(FLAG).ok_or_else(cannot)?;
    if CHOSEN.contains(&before) && before != COUNTED {
        return Err(format!(
            "numbers of allocation sites in identity hashes need the JVM's own hashes as they usually are: leave out -XX:hashCode={before}"
        ));
    }
    flags::set_word_flag(FLAG, COUNTED);
    let first = draw(jvmti, jni);
    let second = draw(jvmti, jni);
    let counts = match (first, second) {
        (Some(first), Some(second)) => first < second && second - first < NEAR,
        _ => false,
    };
    let (Some(second), true) = (second, counts) else {
        flags::set_word_flag(FLAG, before);
        return Err(cannot());
    };
    let drawn = Drawn::new(second, ours);
    *state() = Some(State { before, drawn });
    Ok(())
}

/// Has the JVM draw its hashes as before.
pub fn end() {
    if let Some(state) = state().take() {
        flags::set_word_flag(FLAG, state.before);
    }
}

/// Looks how far the JVM has counted, if it does. Allocates an object: not while a lock is held, nor where a collection cannot be.
pub fn sample(jvmti: Jvmti, jni: Jni) {
    let counts = state().is_some();
    // Without the lock: an allocation may wait for a collection.
    let hash = if counts { draw(jvmti, jni) } else { None };
    if let (Some(hash), Some(state)) = (hash, &mut *state()) {
        state.drawn.see(hash);
    }
}

/// How far it was at the last sample. Where the JVM does not count, no hash is ours.
pub fn now() -> Drawn {
    let drawn = state().as_ref().map(|state| state.drawn);
    drawn.unwrap_or(Drawn::new(u32::MAX, u32::MAX))
}

/// Draws a hash, for an object that nobody else knows.
fn draw(jvmti: Jvmti, jni: Jni) -> Option<u32> {
    let object = jni.new_object();
    let hash = match object.is_null() {
        true => None,
        false => jvmti.hash(object),
    };
    jni.forget(object);
    hash
}
