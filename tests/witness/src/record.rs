//! What was executed: per thread a stack of running activations, per method the distinct step sequences and how often each ran.
//!
//! Order between activations does not matter to a path profile (nothing joins two activations), so equal sequences are counted, which
//! keeps the record of a thousand calls as small as that of one.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// Set in a step that an exception led to: the first instruction of the handler.
pub const CAUGHT: u32 = 1 << 31;

/// How an activation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// By a return instruction.
    Return,
    /// An exception left the method.
    Exception,
    /// It had not ended when the JVM did.
    Live,
}

/// An activation that runs.
pub struct Activation {
    method: u32,
    steps: Vec<u32>,
    caught: bool,
}

/// Running activations of one thread, innermost last.
pub type Stack = Mutex<Vec<Activation>>;

#[derive(Default)]
struct Names {
    /// Class bytes by (loader tag, class name), as last seen by the load hook.
    loaded: HashMap<(i64, String), u32>,
    /// Distinct (class name, class bytes).
    classes: Vec<(String, Vec<u8>)>,
    /// Distinct (class, method name, descriptor).
    methods: Vec<(u32, String, String)>,
    next_loader: i64,
}

/// An executed sequence: method, steps, end.
type Sequence = (u32, Vec<u32>, End);

/// Everything the witness has seen.
pub struct Recorder {
    out: PathBuf,
    globs: Vec<String>,
    names: Mutex<Names>,
    method_ids: RwLock<HashMap<usize, u32>>,
    stacks: Mutex<Vec<&'static Stack>>,
    sequences: Mutex<HashMap<Sequence, u64>>,
    errors: Mutex<Vec<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `*` matches any characters; everything else itself.
fn glob_matches(glob: &str, text: &str) -> bool {
    match glob.split_once('*') {
        None => glob == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && glob_matches(tail, &rest[at..]))
        }),
    }
}

impl Recorder {
    /// Reads the agent's options: `classes=GLOB[:GLOB...],out=FILE`; globs are on binary names with dots.
    pub fn from_options(options: &str) -> Result<Recorder, String> {
        let (mut globs, mut out) = (Vec::new(), None);
        for option in options.split(',') {
            match option.split_once('=') {
                Some(("classes", list)) => globs = list.split(':').map(str::to_owned).collect(),
                Some(("out", file)) => out = Some(PathBuf::from(file)),
                _ => return Err(format!("unknown option '{option}'")),
            }
        }
        Ok(Recorder {
            out: out.ok_or("option out=FILE is missing")?,
            globs,
            names: Mutex::default(),
            method_ids: RwLock::default(),
            stacks: Mutex::default(),
            sequences: Mutex::default(),
            errors: Mutex::default(),
        })
    }

    /// Whether a class (binary name with slashes) is recorded.
    pub fn wants(&self, class: &str) -> bool {
        let dotted = class.replace('/', ".");
        self.globs.iter().any(|glob| glob_matches(glob, &dotted))
    }

    /// A tag for a loader seen for the first time.
    pub fn new_loader(&self) -> i64 {
        let mut names = lock(&self.names);
        names.next_loader += 1;
        names.next_loader
    }

    /// The load hook saw a class.
    pub fn class_bytes(&self, loader: i64, name: &str, bytes: &[u8]) {
        let names = &mut *lock(&self.names);
        let known = names
            .classes
            .iter()
            .position(|(n, b)| n == name && b == bytes);
        let index = known.unwrap_or_else(|| {
            names.classes.push((name.to_owned(), bytes.to_owned()));
            names.classes.len() - 1
        });
        names.loaded.insert((loader, name.to_owned()), index as u32);
    }

    /// A class is ready: its methods from now on have these IDs. Classes the load hook did not see (hidden ones) stay unrecorded.
    pub fn class_ready(&self, loader: i64, name: &str, methods: Vec<(usize, String, String)>) {
        let names = &mut *lock(&self.names);
        let Some(&class) = names.loaded.get(&(loader, name.to_owned())) else {
            return;
        };
        let mut ids = self
            .method_ids
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        for (id, method, descriptor) in methods {
            let key = (class, method, descriptor);
            let known = names.methods.iter().position(|m| *m == key);
            let index = known.unwrap_or_else(|| {
                names.methods.push(key);
                names.methods.len() - 1
            });
            ids.insert(id, index as u32);
        }
    }

    /// The recorded method behind a `jmethodID`.
    pub fn method(&self, id: usize) -> Option<u32> {
        self.method_ids
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .copied()
    }

    /// A stack for a thread that has none; kept to the end of the JVM, as activations of daemon threads are still live then.
    pub fn new_stack(&self) -> &'static Stack {
        let stack: &'static Stack = Box::leak(Box::default());
        lock(&self.stacks).push(stack);
        stack
    }

    /// A recorded method starts.
    pub fn enter(&self, stack: &Stack, method: u32) {
        lock(stack).push(Activation {
            method,
            steps: Vec::new(),
            caught: false,
        });
    }

    /// An instruction is about to run.
    pub fn step(&self, stack: &Stack, method: u32, bci: u32) {
        match lock(stack).last_mut() {
            Some(top) if top.method == method => {
                let caught = if std::mem::take(&mut top.caught) {
                    CAUGHT
                } else {
                    0
                };
                top.steps.push(bci | caught);
            }
            _ => self.error(format!(
                "step at {bci} of method {method} outside an activation of it"
            )),
        }
    }

    /// A handler of the innermost activation caught an exception: the next step is its first instruction.
    pub fn caught(&self, stack: &Stack, method: u32) {
        match lock(stack).last_mut() {
            Some(top) if top.method == method => top.caught = true,
            _ => self.error(format!(
                "exception caught in method {method} outside an activation of it"
            )),
        }
    }

    /// A method ends. A call that overflows the stack before its first instruction has neither an entry nor an exit (seen on
    /// JDK 17 and 25), so entries and exits pair up.
    pub fn exit(&self, stack: &Stack, method: u32, end: End) {
        let mut running = lock(stack);
        let ours = running.last().is_some_and(|top| top.method == method);
        match ours.then(|| running.pop()).flatten() {
            Some(top) => {
                drop(running);
                self.count(top, end);
            }
            None => self.error(format!(
                "exit from method {method} outside an activation of it"
            )),
        }
    }

    /// Something the witness cannot vouch for: goes into the record, and fails whoever reads it.
    pub fn error(&self, message: String) {
        lock(&self.errors).push(message);
    }

    fn count(&self, activation: Activation, end: End) {
        *lock(&self.sequences)
            .entry((activation.method, activation.steps, end))
            .or_insert(0) += 1;
    }

    /// The JVM ends: writes the record.
    pub fn finish(&self) -> std::io::Result<()> {
        for stack in lock(&self.stacks).iter() {
            for activation in lock(stack).drain(..) {
                self.count(activation, End::Live);
            }
        }
        let mut out = BufWriter::new(std::fs::File::create(&self.out)?);
        let names = lock(&self.names);
        for (index, (name, bytes)) in names.classes.iter().enumerate() {
            write!(out, "class\t{index}\t{name}\t")?;
            for byte in bytes {
                write!(out, "{byte:02x}")?;
            }
            writeln!(out)?;
        }
        for (index, (class, name, descriptor)) in names.methods.iter().enumerate() {
            writeln!(out, "method\t{index}\t{class}\t{name}\t{descriptor}")?;
        }
        for ((method, steps, end), count) in lock(&self.sequences).iter() {
            write!(out, "run\t{method}\t{count}\t{end:?}\t")?;
            for step in steps {
                let mark = if step & CAUGHT != 0 { "!" } else { "" };
                write!(out, " {mark}{}", step & !CAUGHT)?;
            }
            writeln!(out)?;
        }
        for message in lock(&self.errors).iter() {
            writeln!(out, "error\t{message}")?;
        }
        writeln!(out, "end")?;
        out.flush()
    }
}
