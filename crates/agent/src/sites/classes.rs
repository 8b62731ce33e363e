//! Instruments classes as they load, and those of the JDK that were there before.

use super::numbers;
use super::tables::Plain;
use super::{State, control, helper, jdk};
use crate::glob::Glob;
use crate::jvmti::Jni;
use crate::jvmti::sys::JObject;
use crate::{instrument, vm};
use borescope_allocations::{
    HELPER, Instrumented, Kind, Settings, TRACE_HELPER, is_jdk, summarize,
};
use borescope_classfile::ClassFile;
use borescope_classfile::insn::{INVOKESTATIC, insns};
use borescope_spool::meta::{Record, Skipped};
use borescope_spool::sites::{Call, MethodName, Site, SiteClass, SiteKind, SkippedSite};
use std::collections::{HashMap, HashSet};

/// Classes that are retransformed at once in a JVM that runs.
const BATCH: usize = 128;

/// Said of a method whose calls into the JDK could not be instrumented.
const CALLS_UNKNOWN: &str = "; what it makes the JDK allocate is attributed to the call before";

/// Numbers of classes by (name, hash of the bytes): the same bytes loaded again have the same.
pub type Known = HashMap<(String, u64), Numbers>;

/// The numbers of a class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    first_site: u32,
    first_call: u32,
    sites: usize,
    calls: usize,
    /// The loader whose class came first.
    loader: u64,
}

/// What a class is to us.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Stays plain.
    Nobodys,
    /// Its sites are owners.
    Applications,
    /// Its sites have owners by call.
    Jdks,
}

impl State {
    /// What to do with a class.
    pub fn whose(&self, jni: Jni, loader: JObject, name: &str) -> Whose {
        let any = |globs: &[Glob]| globs.iter().any(|g| g.matches(name));
        let o = &self.options;
        if any(&o.exclude) {
            return Whose::Nobodys;
        }
        if vm::is_jdk(self.jvmti, jni, loader, name) {
            return match o.sites.jdk && !any(&self.never) {
                true => Whose::Jdks,
                false => Whose::Nobodys,
            };
        }
        match o.include.is_empty() || any(&o.include) {
            true => Whose::Applications,
            false => Whose::Nobodys,
        }
    }

    /// The new bytes of a class; `None` = it stays as it is.
    pub fn transform(
        &self,
        jni: Jni,
        loader: JObject,
        name: &str,
        whose: Whose,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        let (tables, _) = helper::shared()?;
        let plain = whose == Whose::Nobodys;
        let class = match ClassFile::parse(bytes) {
            Ok(c) => c,
            Err(_) if plain => return None,
            Err(e) => {
                self.skip_class(name, &format!("cannot be read: {e}"));
                return None;
            }
        };
        let home = self.loader(loader);
        self.constructors().learn(home, summarize(&class));
        if plain {
            return None;
        }
        if let Some(why) = instrument::refuse(&class) {
            self.skip_class(name, &why);
            return None;
        }
        // Another agent may hand us a class that is marked already.
        if calls_helper(&class) {
            self.skip_class(name, "has borescope's marks already");
            return None;
        }
        let trace = self.options.sites.trace;
        // In a trace, sites of the JDK are numbered with the others.
        let is_jdks = whose == Whose::Jdks;
        let jdk = is_jdks && !trace;
        let o = &self.options.sites;
        let settings = Settings {
            attribute: !jdk && o.attribute && o.jdk && !trace,
            jdk,
            local: trace || o.local,
            mark: true,
            trace,
            // Frames from before, and classes that are left out, call the JDK without saying so.
            reset: self.attached
                || !self.options.include.is_empty()
                || !self.options.exclude.is_empty(),
            is_jdk,
            exclude: match (is_jdks, trace) {
                (false, _) => |_, _, _| false,
                (true, false) => jdk::stays_plain,
                (true, true) => jdk::marked_by_callers,
            },
        };
        let key = (name.to_owned(), xxhash_rust::xxh3::xxh3_64(bytes));
        let known = self.known().get(&key).copied();
        let mut numbers = None;
        let mut reserve = |sites, calls| {
            let same = known.filter(|k| (k.sites, k.calls) == (sites, calls));
            numbers = same.or_else(|| {
                let (first_site, first_call) = match jdk {
                    true => tables.jdk(sites, calls),
                    false => tables.application(sites, calls),
                }?;
                Some(Numbers {
                    first_site,
                    first_call,
                    sites,
                    calls,
                    loader: home,
                })
            });
            numbers.map(|n| (n.first_site, n.first_call))
        };
        let constructors = self.constructors();
        let done = constructors.ask(home, |known| {
            borescope_allocations::instrument(&class, &settings, known, &mut reserve)
        });
        drop(constructors);
        let Some(done) = done else {
            self.skip_class(name, "no numbers are left for its allocation sites");
            return None;
        };
        if numbers.is_none() || known != numbers {
            let n = numbers.unwrap_or(Numbers {
                first_site: 1,
                first_call: 1,
                sites: 0,
                calls: 0,
                loader: home,
            });
            let new = record(
                &class,
                name,
                vm::loader_name(self.jvmti, jni, loader),
                key.1,
                jdk,
                n,
                &done,
            );
            // Before the class can run.
            let empty = done.bytes.is_none() && new.skipped.is_empty();
            if !empty && !self.log(&Record::SiteClass(new)) {
                return None;
            }
            if numbers.is_some() {
                if let Some(by_class) = numbers::shared() {
                    by_class.learn(jdk, n.first_site, &done.sites);
                }
                self.known().insert(key, n);
            }
        }
        if let Some(numbers) = numbers {
            self.wait_for_constructors(home, jdk, numbers, &done);
        }
        done.bytes
    }

    /// Notes the sites that may use a plain store as soon as more is known.
    fn wait_for_constructors(&self, loader: u64, jdk: bool, numbers: Numbers, done: &Instrumented) {
        let Some((tables, _)) = helper::shared() else {
            return;
        };
        let first = match jdk {
            true => Plain::Site(numbers.first_site),
            false => Plain::Owner(numbers.first_site),
        };
        let mut constructors = self.constructors();
        if numbers.loader != loader {
            constructors.share(tables, first, numbers.sites);
            return;
        }
        for (i, s) in done.sites.iter().enumerate() {
            if s.kind == Kind::New && !s.plain {
                constructors.wait(loader, first, first.plus(i as u32), &s.ty, &s.constructor);
            }
        }
    }

    /// A class is ready to be instantiated.
    pub fn prepared(&self, jni: Jni, class: JObject) {
        let Some((tables, _)) = helper::shared() else {
            return;
        };
        let (Some(signature), Some(loader)) =
            (self.jvmti.signature(class), self.jvmti.loader(class))
        else {
            return;
        };
        if let Some(name) = vm::class_name(&signature) {
            let home = self.loader(loader);
            if self.is_late(jni, loader, home, name) {
                control::wake(self);
            }
            self.constructors().prepared(tables, home, name);
        }
        jni.forget(loader);
    }

    /// Whether the hook should have seen a class and has not: its bytes were read before the hook was on, and then it was not among the loaded classes
    /// yet, for the VM loads its superclass first, which may take a loader of the program any time.
    fn is_late(&self, jni: Jni, loader: JObject, home: u64, name: &str) -> bool {
        // With a dot: a hidden class, which the hook never sees.
        !name.contains('.')
            && !self.constructors().has_seen(home, name)
            && self.whose(jni, loader, name) != Whose::Nobodys
    }

    /// Sends the classes through the hook that have come late. Not in the event: its thread holds the class's lock, and two that change one class at
    /// once would wait for each other (jvmtiRedefineClasses.cpp, `lock_classes`, then `link_class`).
    pub fn instrument_late(&self, jni: Jni) {
        let is_wanted = |name: &str, loader| self.is_late(jni, loader, self.loader(loader), name);
        self.retransform(jni, is_wanted, |name, why| self.skip_class(name, why));
    }

    /// Sends classes through the hook that were loaded before it was on.
    pub fn instrument_loaded(&self, jni: Jni) {
        let is_wanted = |name: &str, loader| self.whose(jni, loader, name) != Whose::Nobodys;
        self.retransform(jni, is_wanted, |name, why| self.skip_class(name, why));
        if let Some((tables, _)) = helper::shared() {
            self.constructors().prepared_all(tables);
        }
    }

    /// Makes the classes plain that were instrumented; the hook is off by now.
    pub fn restore_loaded(&self, jni: Jni) {
        let names: HashSet<String> = self.known().keys().map(|(name, _)| name.clone()).collect();
        self.retransform(jni, |name, _| names.contains(name), |_, _| {});
    }

    /// Sends the loaded classes through the hook that are wanted by name (with slashes) and loader.
    fn retransform(
        &self,
        jni: Jni,
        is_wanted: impl Fn(&str, JObject) -> bool,
        refused: impl Fn(&str, &str),
    ) {
        // At the start the program waits anyway, and once is quickest; in a JVM that runs, each call is a pause.
        let at_once = match self.attached {
            true => BATCH,
            false => usize::MAX,
        };
        vm::retransform(self.jvmti, jni, at_once, is_wanted, refused);
    }

    fn skip_class(&self, name: &str, reason: &str) {
        self.log(&Record::Skipped(Skipped::class(name, reason)));
    }
}

/// Whether instructions of a class call the helper. That its constants name it is not enough: in a class that was instrumented once they
/// stay (jvmtiRedefineClasses.cpp, `merge_cp_and_rewrite`).
fn calls_helper(class: &ClassFile<'_>) -> bool {
    let is_helpers = |index| {
        // Methodref (JVMS 4.4.2)
        class.constant_tag(index) == Some(10)
            && class
                .member_class_bytes(index)
                .is_some_and(|c| [HELPER, TRACE_HELPER].map(str::as_bytes).contains(&c))
    };
    if !(1..class.pool_count()).any(is_helpers) {
        return false;
    }
    let code = class.methods().iter().filter_map(|m| m.code());
    code.into_iter().any(|code| {
        insns(code.code).flatten().any(|(bci, opcode)| {
            let at = usize::from(bci);
            let index = code.code.get(at + 1..at + 3);
            opcode == INVOKESTATIC
                && index.is_some_and(|i| is_helpers(u16::from_be_bytes([i[0], i[1]])))
        })
    })
}

/// How to decode the numbers of a class. Names only the methods that something stands in.
fn record(
    class: &ClassFile<'_>,
    name: &str,
    loader: String,
    hash: u64,
    jdk: bool,
    numbers: Numbers,
    done: &Instrumented,
) -> SiteClass {
    let all = class.methods();
    let mut methods = Vec::new();
    let mut places: HashMap<u16, u16> = HashMap::new();
    let mut place = |method: u16| {
        *places.entry(method).or_insert_with(|| {
            let (name, descriptor) = all.get(usize::from(method)).map_or_else(
                || (String::new(), String::new()),
                |m| (m.name().into_owned(), m.descriptor().into_owned()),
            );
            methods.push(MethodName { name, descriptor });
            methods.len() as u16 - 1
        })
    };
    let sites = done.sites.iter().map(|s| Site {
        method: place(s.method),
        bci: s.bci,
        line: s.line,
        kind: kind(s.kind),
        ty: s.ty.clone(),
    });
    let sites = sites.collect();
    let calls = done.calls.iter().map(|c| Call {
        method: place(c.method),
        bci: c.bci,
        line: c.line,
    });
    let calls = calls.collect();
    let skipped = done.skipped.iter().map(|s| SkippedSite {
        method: place(s.method),
        bci: s.bci,
        reason: match s.calls {
            true => s.reason.to_owned(),
            false => format!("{}{CALLS_UNKNOWN}", s.reason),
        },
    });
    let skipped = skipped.collect();
    SiteClass {
        name: name.to_owned(),
        loader,
        hash,
        source_file: class.source_file().map(|s| s.to_string()),
        jdk,
        first_site: numbers.first_site,
        first_call: numbers.first_call,
        methods,
        sites,
        calls,
        skipped,
    }
}

fn kind(kind: Kind) -> SiteKind {
    match kind {
        Kind::New => SiteKind::New,
        Kind::NewArray => SiteKind::NewArray,
        Kind::ANewArray => SiteKind::ANewArray,
        Kind::MultiANewArray => SiteKind::MultiANewArray,
        Kind::Clone => SiteKind::Clone,
        Kind::Indy => SiteKind::Indy,
        Kind::Reflect => SiteKind::Reflect,
        Kind::Intrinsic => SiteKind::Intrinsic,
    }
}
