//! Takes snapshots: collects, names the classes, walks, writes. One at a time, on whatever thread asks.

use super::State;
use super::drawn;
use super::helper;
use super::numbers;
use super::walk::{self, Found, Wanted};
use super::words;
use crate::jvmti::sys::JObject;
use crate::jvmti::{Jni, flags};
use crate::{spool, vm};
use borescope_spool::meta::Record;
use borescope_spool::sites::{Cause, Snapshot};
use borescope_spool::snapshot::{self, Row, objects};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Walks again for classes that came up meanwhile, at most so often.
const WALKS: u32 = 3;
/// A class without a name, of objects that were made between naming and walk.
const UNKNOWN_CLASS: &str = "Lunknown;";

/// What fills holes between objects that a collection has not closed (collectedHeap.cpp, `fill_with_objects`; in JDK 17 they are int[] and Object).
const FILLERS: [&str; 2] = [
    "Ljdk/internal/vm/FillerObject;",
    "[Ljdk/internal/vm/FillerElement;",
];

/// What is kept from one snapshot to the next.
#[derive(Default)]
pub struct Snapshots {
    taken: u32,
    /// There is one of an OutOfMemoryError: a program that catches them may throw thousands.
    out_of_memory: bool,
    /// Signatures of classes by tag, less one.
    classes: Vec<String>,
    ended: bool,
}

/// A snapshot before the walk.
struct Begun {
    at_ms: u64,
    instant: Instant,
    live_only: bool,
    cause: Cause,
}

/// Takes a snapshot; gives its number. The error is one line.
pub fn take(state: &State, jni: Jni, cause: Cause) -> Result<u32, String> {
    if cause == Cause::OutOfMemory && std::mem::replace(&mut state.snapshots().out_of_memory, true)
    {
        return Err("there is a snapshot of an OutOfMemoryError already".into());
    }
    // Where memory has run out, the control thread's last sample has to do; these collectors cannot make room at exit.
    let by_references = walks_by_references();
    let samples = cause != Cause::OutOfMemory && !(cause == Cause::Exit && by_references);
    // A sample leaves a dead object behind. It is collected, or, where the program goes on while the heap is collected, walks do not show it.
    if samples && !by_references {
        drawn::sample(state.jvmti, jni);
    }
    let begun = Begun {
        at_ms: vm::now_ms(),
        instant: Instant::now(),
        // Without the lock: where the JVM ends meanwhile, this may never return, and the end must not wait for it.
        live_only: collect(state, cause),
        cause,
    };
    if samples && by_references {
        drawn::sample(state.jvmti, jni);
    }
    let mut s = state.snapshots();
    if s.ended {
        return Err("the JVM has ended".into());
    }
    let (Some((tables, _)), Some(spool)) = (helper::shared(), state.spool.get()) else {
        return Err("the lens is off".into());
    };
    let number = s.taken + 1;
    let names = [snapshot::file_name(number), snapshot::objects_name(number)];
    let temporary = names.clone().map(|n| spool.dir.join(format!("{n}.part")));
    let result = write(state, jni, &begun, &mut s, number, &temporary);
    let result = result.and_then(|record| {
        // Before the names are final: owners that the walk has met.
        let pending = tables.take_pending();
        let logged = pending.is_empty() || spool.log.append(&Record::Owners(pending));
        let named = |from: &Path, to: &String| fs::rename(from, spool.dir.join(to)).is_ok();
        (logged
            && (!record.listed || named(&temporary[1], &names[1]))
            && named(&temporary[0], &names[0])
            && spool.log.append(&Record::Snapshot(record)))
        .then_some(number)
        .ok_or_else(|| "cannot write to the spool: the disk is full".to_owned())
    });
    match &result {
        Ok(_) => s.taken = number,
        Err(why) => {
            for path in &temporary {
                let _ = fs::remove_file(path);
            }
            let line = format!("snapshot {number} ({}) failed: {why}", cause.name());
            spool.log.append(&Record::Notice(line));
        }
    }
    result
}

/// Everything up to whole files under temporary names.
fn write(
    state: &State,
    jni: Jni,
    begun: &Begun,
    s: &mut Snapshots,
    number: u32,
    [rows_path, list_path]: &[std::path::PathBuf; 2],
) -> Result<Snapshot, String> {
    let (tables, layout) = helper::shared().ok_or("the lens is off")?;
    let cannot = |e: std::io::Error| format!("cannot write to the spool: {e}");
    let mut walks = 0;
    let found = loop {
        let classes = name_classes(state, jni, &mut s.classes);
        // Java code runs to make the words; not where it has just run out of memory. Where there are classes that they do not know, tags are to say which.
        let by_words = walks == 0 && begun.cause != Cause::OutOfMemory;
        let by_words = by_words.then(|| words::of(jni, state.jvmti, &classes.all));
        let (walker, words) = match by_words.flatten() {
            Some((walker, words)) => (walker, Some(words)),
            None => (state.jvmti, None),
        };
        let list = match state.options.sites.objects {
            true => {
                let file = new_file(list_path).map_err(cannot)?;
                Some(objects::Writer::new(file, number).map_err(cannot)?)
            }
            false => None,
        };
        let fillers = FILLERS.map(|f| {
            let place = s.classes.iter().position(|c| c == f);
            place.map_or(-1, |tag| tag as i64 + 1)
        });
        let found = {
            let wanted = Wanted {
                words,
                reading: numbers::shared().map(|n| n.reading(&s.classes)),
                list,
                left_out: fillers,
            };
            walk::walk(walker, *layout, tables, wanted)?
        };
        // Until here no class's place may go to another one.
        drop(classes);
        walks += 1;
        if found.of_unknown_class == 0 || walks == WALKS {
            break found;
        }
    };
    let took_ms = begun.instant.elapsed().as_millis() as u64;
    let Found {
        rows,
        list,
        reading,
        ..
    } = found;
    let listed = list.is_some();
    if let Some(list) = list {
        list.finish().map_err(cannot)?;
    }
    let rows: Vec<Row> = rows.iter().collect();
    if let Some(reading) = &reading {
        let left_out = reading.doubtful();
        if left_out > 0 {
            let line = format!(
                "snapshot {number}: the JVM has drawn so many identity hashes itself that {left_out} objects may have one of these or a line's number: they are listed under `hash taken first`, and are missing from their lines if they have one"
            );
            state.log(&Record::Notice(line));
        }
    }
    // Class 0 is the one without a name.
    let names: Vec<&str> = std::iter::once(UNKNOWN_CLASS)
        .chain(s.classes.iter().map(String::as_str))
        .collect();
    let file = BufWriter::new(new_file(rows_path).map_err(cannot)?);
    snapshot::write(file, number, names.into_iter(), rows.iter().copied()).map_err(cannot)?;
    Ok(Snapshot {
        number,
        cause: begun.cause,
        at_ms: begun.at_ms,
        took_ms,
        live_only: begun.live_only,
        listed,
        objects: rows.iter().map(|r| r.objects).sum(),
        bytes: rows.iter().map(|r| r.bytes).sum(),
        epoch: reading.map_or(0, |r| r.epoch()),
    })
}

/// Makes a file, in place of what is left of an earlier walk.
fn new_file(path: &Path) -> std::io::Result<File> {
    let (dir, name) = (path.parent(), path.file_name().and_then(|n| n.to_str()));
    let (Some(dir), Some(name)) = (dir, name) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let _ = fs::remove_file(path);
    spool::create_file(dir, name)
}

/// Whether heap walks go from the roots along references, so that they mostly show no dead object (zHeapIterator.cpp, shenandoahHeap.cpp; what only
/// weak references lead to, they may show).
pub fn walks_by_references() -> bool {
    matches!(flags::collector(), "Z" | "Shenandoah")
}

/// Leaves only live objects to the walk, if it can; false = some of what it will see may be dead.
fn collect(state: &State, cause: Cause) -> bool {
    // The threads of these collectors are stopped before VMDeath (java.cpp, before_exit): a collection would wait for them for ever.
    if cause == Cause::Exit && walks_by_references() {
        return state.collected.load(Relaxed);
    }
    // Epsilon does not collect.
    state.options.sites.gc && state.jvmti.collect() && flags::collector() != "Epsilon"
}

/// Dynamic mode: finds the hashes that are there before an object is marked. No number is given that one of them could be taken for.
pub fn note_hashes(state: &State, jni: Jni) -> Result<(), String> {
    let (Some((_, layout)), Some(numbers)) = (helper::shared(), numbers::shared()) else {
        return Ok(());
    };
    let mut s = state.snapshots();
    drop(name_classes(state, jni, &mut s.classes));
    walk::hashes(state.jvmti, *layout, numbers.avoiding(&s.classes))
}

/// Classes that cannot be unloaded meanwhile.
struct Classes {
    jni: Jni,
    /// With their tags.
    all: Vec<(JObject, u32)>,
}

impl Drop for Classes {
    fn drop(&mut self) {
        for &(class, _) in &self.all {
            self.jni.forget(class);
        }
    }
}

/// Gives all classes a tag, and notes their names by it.
fn name_classes(state: &State, jni: Jni, names: &mut Vec<String>) -> Classes {
    let all = state.jvmti.loaded_classes().into_iter().map(|class| {
        let mut tag = state.jvmti.tag(class);
        if tag == 0 {
            let signature = state.jvmti.signature(class).unwrap_or_default();
            if state.jvmti.set_tag(class, names.len() as i64 + 1) {
                names.push(signature);
                tag = names.len() as i64;
            }
        }
        (class, u32::try_from(tag).unwrap_or(0))
    });
    let all = all.collect();
    Classes { jni, all }
}

/// The last snapshot, and the end of the log.
pub fn end(state: &State, jni: Jni) {
    let _ = take(state, jni, Cause::Exit);
    end_log(state);
}

/// The end of the log; no snapshot is taken any more.
pub fn end_log(state: &State) {
    if std::mem::replace(&mut state.snapshots().ended, true) {
        return;
    }
    if let Some(spool) = state.spool.get() {
        if helper::shared().is_some_and(|(tables, _)| tables.exhausted()) {
            let line = "numbers of allocation sites ran out: some objects could not be marked";
            spool.log.append(&Record::Notice(line.into()));
        }
        let _ = fs::remove_file(spool.dir.join(super::control::NAME));
        let at_ms = vm::now_ms();
        spool.log.append(&Record::Ended { at_ms });
        spool.log.close();
    }
}
