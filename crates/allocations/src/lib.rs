//! Finds the places in a class that allocate, and splices in calls of the sites lens's helper that mark what they made.
//!
//! Comes in: a parsed class file, settings, and what is known of other classes' constructors. Goes out: the new class file, its allocation
//! sites, the calls into the JDK (for attribution), and all that was left alone, with the reason. Knows nothing of a JVM, and the same input gives
//! the same output. Must never happen here: a class that the verifier refuses while it accepts the original, or that behaves otherwise.
//! docs/allocations.md says what is found and how.

mod emit;
mod jdk;
#[cfg(test)]
#[path = "../tests/support/jdk.rs"]
mod jdks;
mod leaks;
mod methods;
mod operands;
mod scan;
mod walk;

use borescope_classfile::ClassFile;

pub use jdk::is_jdk;
pub use leaks::{ClassSummary, Resolver, Summaries, summarize};
use scan::Scanner;

/// The helper that inserted code calls.
pub const HELPER: &str = "java/lang/BorescopeSites";

/// The helper that inserted code calls instead when a trace is recorded.
pub const TRACE_HELPER: &str = "java/lang/BorescopeTrace";

/// How a class is to be instrumented.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Sites are marked. Without it only calls and callbacks are instrumented.
    pub mark: bool,
    /// Calls into the JDK and callbacks from it are instrumented, so that what the JDK allocates leads to a line of the application.
    pub attribute: bool,
    /// The thread's call is forgotten when a call into the JDK returns: for programs that also run methods that are not instrumented.
    pub reset: bool,
    /// The class is the JDK's: the helper's `markIn` methods, which look at the thread's call, take the place of `mark`.
    pub jdk: bool,
    /// Sites whose objects plainly do not leave their method are marked, too.
    pub local: bool,
    /// A trace is recorded: sites call [`TRACE_HELPER`], and so does code that is about to ask for an identity hash. Goes without `attribute` and `jdk`.
    pub trace: bool,
    /// Whether a class (internal name) counts as the JDK's.
    pub is_jdk: fn(&str) -> bool,
    /// Whether a method (class, name, descriptor) stays plain.
    pub exclude: fn(&str, &str, &str) -> bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mark: true,
            attribute: true,
            reset: false,
            jdk: false,
            local: false,
            trace: false,
            is_jdk,
            exclude: |_, _, _| false,
        }
    }
}

/// What a site does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `new` and a constructor; the bci is that of `new`.
    New,
    /// `newarray`.
    NewArray,
    /// `anewarray`.
    ANewArray,
    /// `multianewarray`: the array and the arrays in it.
    MultiANewArray,
    /// A call of `clone()` of an array, or of `Object.clone`.
    Clone,
    /// `invokedynamic` that makes a lambda or concatenates strings.
    Indy,
    /// A call of `Class.newInstance`, `Constructor.newInstance` or `Array.newInstance`.
    Reflect,
    /// A call of a JDK method that gives a new object and that C2 replaces by code of its own, such as `Arrays.copyOf`.
    Intrinsic,
}

/// A place in bytecode that allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Index of the method in the class file.
    pub method: u16,
    /// The instruction.
    pub bci: u16,
    /// Its source line; 0 = not known.
    pub line: u16,
    /// What it does.
    pub kind: Kind,
    /// Internal name of the class, or descriptor of the array type; the declared type where the kind does not tell.
    pub ty: String,
    /// [`Kind::New`]: descriptor of the constructor that it calls; empty otherwise.
    pub constructor: String,
    /// Marked with a plain store: the object is proven to be in no other thread's reach.
    pub plain: bool,
}

/// A place in an application method that calls into the JDK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index of the method in the class file.
    pub method: u16,
    /// The instruction.
    pub bci: u16,
    /// Its source line; 0 = not known.
    pub line: u16,
}

/// Something that is not instrumented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// Index of the method in the class file.
    pub method: u16,
    /// The site; none = the whole method.
    pub bci: Option<u16>,
    /// Why, in stable words.
    pub reason: &'static str,
    /// False: the method would change the thread's call, but cannot, so what it makes the JDK allocate is attributed to the call before.
    pub calls: bool,
}

/// What became of a class.
#[derive(Clone, Debug, Default)]
pub struct Instrumented {
    /// The new class file; none = nothing was inserted.
    pub bytes: Option<Vec<u8>>,
    /// The numbered sites: the first has the index that `reserve` gave, and so on. Which these are depends on the class file and the settings
    /// alone. Those named in `skipped`, themselves or with their whole method, stay unmarked.
    pub sites: Vec<Site>,
    /// The numbered calls, in the same way.
    pub calls: Vec<Call>,
    /// What was left alone.
    pub skipped: Vec<Skip>,
}

/// What is known of constructors of other classes.
pub trait Constructors {
    /// Whether `class.<init>` of this descriptor may make the new object reachable for others, lock it, or ask for its hash. Unknown = true.
    fn leaks(&self, class: &str, descriptor: &str) -> bool;
}

/// Instruments a class. `reserve(sites, calls)` gives the first index of each; none from it, as from here: there are no more, the class stays
/// plain.
pub fn instrument(
    class: &ClassFile<'_>,
    settings: &Settings,
    constructors: &dyn Constructors,
    reserve: impl FnOnce(usize, usize) -> Option<(u32, u32)>,
) -> Option<Instrumented> {
    let mut scanner = Scanner::new(class, settings, constructors);
    let name = class.this_name();
    let mut planned = Vec::new();
    for (index, method) in class.methods().iter().enumerate() {
        let Some(code) = method.code() else { continue };
        if (settings.exclude)(&name, &method.name(), &method.descriptor()) {
            continue;
        }
        // A class file has at most 65535 methods.
        if let Some(found) = scanner.method(index as u16, method, &code) {
            planned.push((index, found));
        }
    }
    let Scanner {
        mut sites,
        calls,
        mut skipped,
        ..
    } = scanner;
    let bytes = if planned.is_empty() {
        sites.clear();
        None
    } else {
        let first = reserve(sites.len(), calls.len())?;
        emit::splice(class, settings, &planned, first, &mut skipped)
    };
    Some(Instrumented {
        bytes,
        sites,
        calls,
        skipped,
    })
}
