//! Records of `meta.log` of the sites lens: where objects are allocated, what the numbers in their headers stand for, and which
//! snapshots were taken.
//!
//! An *owner* is what such a number stands for: an allocation site alone, or a site in the JDK with the call site in the application from
//! which it was reached. Owners have one index for the whole JVM, from 1 on ([`MAX_OWNER`]). The spool of this lens has no `counters.bin`:
//! `meta.log`, and two files for each snapshot at most ([`crate::snapshot`]).

/// The largest owner: above it are the codes of [`crate::snapshot::Origin`].
pub const MAX_OWNER: u32 = (1 << 29) - 1;

/// How the lens was set up; once, before the first [`SiteClass`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sites {
    /// How numbers stand in headers.
    pub mode: Mode,
    /// Where the identity hash begins in the header word, as probed.
    pub hash_shift: u8,
    /// Bits above the hash that the VM does not use; 0 with compact headers.
    pub spare_bits: u8,
    /// Classes of the JDK are instrumented.
    pub jdk: bool,
    /// Sites of the JDK are told apart by the application's call site.
    pub attribute: bool,
    /// The agent came after the start: objects without a mark may be older.
    pub attached: bool,
    /// How hashes are made of numbers (`borescope_sites::Scheme::to_bytes`), where the mode has numbers by class.
    pub scheme: Option<[u8; SCHEME_BYTES]>,
}

/// Bytes of a scheme.
pub const SCHEME_BYTES: usize = 24;
/// Bytes of an event.
pub const EVENT_BYTES: usize = 24;

/// A number of a class was given or released; written before an object can carry it. With the scheme these records decode each hash that was ever
/// made, at every time (docs/sites-numbering.md).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// JVM signature of the class whose objects carry it.
    pub signature: String,
    /// The owner that it stands for: the event itself may name another index, one for each class where a site makes objects of several. 0 =
    /// those owners of one site of the JDK that came when numbers ran short: the event's method is twice the site plus one.
    pub owner: u32,
    /// `borescope_sites::Event::to_bytes`.
    pub event: [u8; EVENT_BYTES],
}

/// How numbers stand in headers (docs/sites-numbering.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Owner in the spare bits above a random hash.
    Spare = 0,
    /// Static number as the hash (figure 9A of the seed).
    Static = 1,
    /// Dynamic number and random identifier as the hash (9B).
    Dynamic = 2,
    /// Static, and dynamic from the first identity-hash reference on (9C).
    Hybrid = 3,
}

impl Mode {
    /// As reports and options spell it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Spare => "spare",
            Mode::Static => "static",
            Mode::Dynamic => "dynamic",
            Mode::Hybrid => "hybrid",
        }
    }
}

/// The sites and call sites of a class that was instrumented: once for each distinct (name, bytes). Written before the class can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteClass {
    /// Binary name with slashes.
    pub name: String,
    /// Class of the defining loader, `boot` for the boot loader.
    pub loader: String,
    /// xxh3-64 of the class bytes as the agent got them.
    pub hash: u64,
    /// SourceFile attribute.
    pub source_file: Option<String>,
    /// A class of the JDK: its sites are numbered by themselves, and [`Owner`]s name them. Otherwise each site is an owner.
    pub jdk: bool,
    /// Of `sites[0]`, the others follow: an owner (application), or a site index (JDK, from 1 on).
    pub first_site: u32,
    /// Of `calls[0]`, the others follow; from 1 on.
    pub first_call: u32,
    /// Methods that the rest refers to: all of the class, or those that are needed.
    pub methods: Vec<MethodName>,
    /// Where it allocates.
    pub sites: Vec<Site>,
    /// Where it calls into the JDK.
    pub calls: Vec<Call>,
    /// Sites that get no mark.
    pub skipped: Vec<SkippedSite>,
}

/// A method of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName {
    /// Name.
    pub name: String,
    /// Descriptor.
    pub descriptor: String,
}

/// How a site allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum SiteKind {
    /// `new` and a constructor.
    New = 0,
    /// `newarray`.
    NewArray = 1,
    /// `anewarray`.
    ANewArray = 2,
    /// `multianewarray`: the array and its sub-arrays.
    MultiANewArray = 3,
    /// A call of `clone`.
    Clone = 4,
    /// `invokedynamic` of a lambda or a concatenation.
    Indy = 5,
    /// `newInstance` by reflection.
    Reflect = 6,
    /// A call of a JDK method that C2 replaces by an allocation of its own.
    Intrinsic = 7,
}

impl SiteKind {
    /// All of them, by number.
    pub const ALL: [SiteKind; 8] = [
        SiteKind::New,
        SiteKind::NewArray,
        SiteKind::ANewArray,
        SiteKind::MultiANewArray,
        SiteKind::Clone,
        SiteKind::Indy,
        SiteKind::Reflect,
        SiteKind::Intrinsic,
    ];

    /// As tables spell it.
    pub fn name(self) -> &'static str {
        match self {
            SiteKind::New => "new",
            SiteKind::NewArray => "newarray",
            SiteKind::ANewArray => "anewarray",
            SiteKind::MultiANewArray => "multianewarray",
            SiteKind::Clone => "clone",
            SiteKind::Indy => "invokedynamic",
            SiteKind::Reflect => "reflection",
            SiteKind::Intrinsic => "intrinsic",
        }
    }
}

/// A place in bytecode that allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Index in [`SiteClass::methods`].
    pub method: u16,
    /// Bytecode index of the instruction.
    pub bci: u16,
    /// Source line, 0 = unknown.
    pub line: u16,
    /// How.
    pub kind: SiteKind,
    /// Binary name with slashes, or descriptor of an array; as declared where the object may be of a subclass (clone, lambda, reflection).
    pub ty: String,
}

/// A place in the application that calls into the JDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index in [`SiteClass::methods`].
    pub method: u16,
    /// Bytecode index of the instruction.
    pub bci: u16,
    /// Source line, 0 = unknown.
    pub line: u16,
}

/// A site, or all sites of a method, that get no mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedSite {
    /// Index in [`SiteClass::methods`].
    pub method: u16,
    /// Bytecode index of the instruction; `None` = the whole method.
    pub bci: Option<u16>,
    /// Reason in words, stable wording.
    pub reason: String,
}

/// A site of the JDK as reached from a call site of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its number.
    pub owner: u32,
    /// Index of the site ([`SiteClass::first_site`] of a class of the JDK).
    pub site: u32,
    /// Index of the call site; 0 = not known.
    pub call: u32,
}

/// Why a snapshot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// The JVM ended.
    Exit = 0,
    /// Somebody asked for it.
    Request = 1,
    /// An OutOfMemoryError.
    OutOfMemory = 2,
    /// By the clock (`--every`).
    Interval = 3,
}

impl Cause {
    /// All of them, by number.
    pub const ALL: [Cause; 4] = [
        Cause::Exit,
        Cause::Request,
        Cause::OutOfMemory,
        Cause::Interval,
    ];

    /// As tables spell it.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Exit => "exit",
            Cause::Request => "request",
            Cause::OutOfMemory => "oom",
            Cause::Interval => "interval",
        }
    }
}

/// A snapshot was taken; written when its files ([`crate::snapshot::file_name`], [`crate::snapshot::objects_name`]) are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// From 1 on.
    pub number: u32,
    /// Why.
    pub cause: Cause,
    /// Milliseconds since 1970 when it was begun, with the collection if there is one.
    pub at_ms: u64,
    /// How long the application stood still, collection included, in milliseconds.
    pub took_ms: u64,
    /// The heap was collected before: what was counted was alive. False = some of it may have been dead.
    pub live_only: bool,
    /// There is a file with each object.
    pub listed: bool,
    /// Objects in the heap.
    pub objects: u64,
    /// Their sizes.
    pub bytes: u64,
    /// Numbers by class: the time of their events at which it was taken; 0 in spare mode.
    pub epoch: u64,
}
