//! What is to be done in one method: its sites and calls, in the order of its code, and where the code that marks goes.

use borescope_classfile::insn::{self, Flow, *};
use borescope_classfile::{ClassFile, Code, Error, Member, Method};

use crate::walk::{FOLLOWED, Init, Place, Stop, Walker};
use crate::{Call, Constructors, Kind, Settings, Site, Skip, jdk, methods};

/// Arrays of more elements are not replaced by scalars (c2_globals.hpp, EliminateAllocationArraySizeLimit).
const MOST_SCALARS: i32 = 64;

/// Reasons for leaving a site alone.
const LOCAL: &str = "does not leave its method";
const DEEP: &str = "the constructed object is too deep on the stack";
const GONE: &str = "the constructed object is dropped at once";

/// A place where code that marks is to be inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// The instruction behind which.
    pub bci: u16,
    /// Index of the site in the class.
    pub site: u32,
    pub place: Place,
    pub plain: bool,
    /// Levels that a multianewarray fills; 0 for others.
    pub dimensions: u8,
    /// The object is of just the type that the site names.
    pub exact: bool,
}

/// What is to be done in a method.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub marks: Vec<Mark>,
    /// Indices of calls in the class, with their bcis.
    pub calls: Vec<(u32, u16)>,
    /// What the method does with the thread's call as a whole.
    pub around: Option<Around>,
    /// Calls that ask for a hash, if a trace is recorded.
    pub hashes: Vec<(u16, Asks)>,
}

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// The identity hash.
    Identity,
    /// `hashCode()`, which gives the identity hash where nothing overrides it.
    HashCode,
}

impl Found {
    /// Whether the method sets, saves or restores the thread's call.
    pub fn changes_call(&self) -> bool {
        !self.calls.is_empty() || self.around.is_some()
    }
}

/// What a method does with the thread's call at its entry and its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    /// Saves and restores it.
    Keep,
    /// Also works without one.
    Forget,
}

/// Looks at one method after another of a class.
pub(crate) struct Scanner<'a> {
    pub class: &'a ClassFile<'a>,
    pub settings: &'a Settings,
    pub constructors: &'a dyn Constructors,
    pub walker: Walker,
    /// All sites of the class.
    pub sites: Vec<Site>,
    pub calls: Vec<Call>,
    pub skipped: Vec<Skip>,
    /// Methods of the class that its method references lead to.
    pub referred: Vec<(&'a [u8], &'a [u8])>,
}

/// What the instructions of a method are, as far as it matters here.
#[derive(Default)]
struct Instructions {
    candidates: Vec<Candidate>,
    /// Calls into the JDK; whether since the one before control may have come from elsewhere, or another method have made calls.
    calls: Vec<(u16, bool)>,
    /// Calls something that may call the JDK.
    calls_others: bool,
    hashes: Vec<(u16, Asks)>,
}

enum Leads {
    /// Into the JDK.
    Jdk,
    /// To a method of an application's class, which may be inherited from the JDK.
    Either,
    /// To an application's method.
    Elsewhere,
    /// To a method that neither allocates nor calls.
    Nowhere,
}

/// A site before it is known whether it is marked.
struct Candidate {
    bci: u16,
    op: u8,
    kind: Kind,
    ty: String,
    plain: bool,
    /// May be left alone if its object does not leave the method.
    may_be_local: bool,
    dimensions: u8,
}

impl<'a> Scanner<'a> {
    /// Starts with a class.
    pub fn new(
        class: &'a ClassFile<'a>,
        settings: &'a Settings,
        constructors: &'a dyn Constructors,
    ) -> Self {
        let mut referred = Vec::new();
        if settings.attribute && !settings.jdk {
            let handles = (1..class.pool_count()).filter_map(|i| class.method_handle(i));
            let own = handles.filter(|member| member.class == class.this_name_bytes());
            referred.extend(own.map(|member| (member.name, member.descriptor)));
        }
        Self {
            class,
            settings,
            constructors,
            walker: Walker::default(),
            sites: Vec::new(),
            calls: Vec::new(),
            skipped: Vec::new(),
            referred,
        }
    }

    /// Looks at a method; none if there is nothing to do.
    pub fn method(&mut self, index: u16, method: &Method<'_>, code: &Code<'_>) -> Option<Found> {
        let Ok(instructions) = self.find(code) else {
            self.skip(index, None, "its code is malformed");
            return None;
        };
        let mut found = Found {
            around: self.around(method, &instructions),
            hashes: instructions.hashes,
            ..Found::default()
        };
        let lines = if instructions.candidates.is_empty() && instructions.calls.is_empty() {
            Vec::new()
        } else {
            code.line_numbers()
        };
        let line = |bci: u16| {
            let after = lines.partition_point(|&(start, _)| start <= bci);
            after.checked_sub(1).map_or(0, |i| lines[i].1)
        };
        if !instructions.candidates.is_empty() {
            let candidates = instructions.candidates;
            match self.mark(index, method, code, candidates, &line, &mut found) {
                Ok(()) => {}
                Err(stop) => {
                    self.skip(index, None, stop.reason());
                    if !matches!(stop, Stop::TooLarge) {
                        let plain = instructions.calls.is_empty() && found.around.is_none();
                        self.skipped.last_mut()?.calls = plain;
                        return None;
                    }
                }
            }
        }
        // The line of the call that holds, on whatever way control came here.
        let mut holds = None;
        for &(bci, renewed) in &instructions.calls {
            let line = line(bci);
            if renewed || self.settings.reset || holds != Some(line) {
                found.calls.push((self.calls.len() as u32, bci));
                self.calls.push(Call {
                    method: index,
                    bci,
                    line,
                });
                holds = Some(line);
            }
        }
        let any = !found.marks.is_empty() || !found.hashes.is_empty() || found.changes_call();
        any.then_some(found)
    }

    /// Whether the method may run in the middle of what a method of the JDK does, so that the call that led there must hold again behind it.
    fn around(&self, method: &Method<'_>, instructions: &Instructions) -> Option<Around> {
        let (name, descriptor) = (method.name_bytes(), method.descriptor_bytes());
        if !self.settings.attribute {
            return None;
        }
        if self.settings.jdk {
            // The VM calls it wherever a class is needed first (SystemDictionary::load_instance_class_impl).
            let loads = self.class.this_name_bytes() == b"java/lang/ClassLoader"
                && (name, descriptor) == (b"loadClass", b"(Ljava/lang/String;)Ljava/lang/Class;");
            return loads.then_some(Around::Forget);
        }
        // Nothing in it changes the thread's call.
        if instructions.calls.is_empty() && !instructions.calls_others {
            return None;
        }
        let called = match name {
            b"<clinit>" => true,
            // No handler can cover a constructor's code up to the call of the other one.
            b"<init>" => false,
            _ if method.is_static() => {
                name.starts_with(b"lambda$") || self.referred.contains(&(name, descriptor))
            }
            _ => {
                methods::overridable(name, descriptor)
                    || name.starts_with(b"lambda$")
                    || jdk::called_by_serialization(name, descriptor)
                    || self.referred.contains(&(name, descriptor))
            }
        };
        called.then_some(Around::Keep)
    }

    fn skip(&mut self, method: u16, bci: Option<u16>, reason: &'static str) {
        self.skipped.push(Skip {
            method,
            bci,
            reason,
            calls: true,
        });
    }

    /// All instructions that allocate, and those that call into the JDK.
    fn find(&self, code: &Code<'_>) -> Result<Instructions, Error> {
        let bytes = code.code;
        let mut found = Instructions::default();
        let mut length = None;
        let joins = if self.attribute() {
            joins(code)?
        } else {
            Vec::new()
        };
        let mut joins = joins.iter().peekable();
        let mut renewed = true;
        for step in insn::insns(bytes) {
            let (bci, op) = step?;
            let at = usize::from(bci);
            let u2 = || u16::from_be_bytes([bytes[at + 1], bytes[at + 2]]);
            let class_name = || {
                let name = self.class.class_name(u2());
                name.ok_or(Error::PoolIndex(u2()))
            };
            let mut add = |kind, ty: String, plain, may_be_local, dimensions| {
                if !self.settings.mark {
                    return;
                }
                found.candidates.push(Candidate {
                    bci,
                    op,
                    kind,
                    ty,
                    plain,
                    may_be_local,
                    dimensions,
                });
            };
            while joins.next_if(|join| **join <= bci).is_some() {
                renewed = true;
            }
            let short = matches!(length, Some(0..=MOST_SCALARS));
            length = constant(bytes, at);
            match op {
                NEW => add(Kind::New, class_name()?.into_owned(), false, true, 0),
                NEWARRAY => {
                    let ty = match bytes[at + 1] {
                        4 => "[Z",
                        5 => "[C",
                        6 => "[F",
                        7 => "[D",
                        8 => "[B",
                        9 => "[S",
                        10 => "[I",
                        11 => "[J",
                        _ => return Err(Error::Format("newarray of no type")),
                    };
                    add(Kind::NewArray, ty.to_owned(), true, short, 0);
                }
                ANEWARRAY => {
                    let element = class_name()?;
                    let ty = if element.starts_with('[') {
                        format!("[{element}")
                    } else {
                        format!("[L{element};")
                    };
                    add(Kind::ANewArray, ty, true, short, 0);
                }
                MULTIANEWARRAY => {
                    let ty = class_name()?.into_owned();
                    add(Kind::MultiANewArray, ty, true, false, bytes[at + 3]);
                }
                INVOKEDYNAMIC => {
                    let dynamic = self.class.invoke_dynamic(u2());
                    let dynamic = dynamic.ok_or(Error::PoolIndex(u2()))?;
                    if self.attribute() {
                        found.calls.push((bci, renewed));
                        // Another language's bootstrap method may lead to any method.
                        renewed = !dynamic.bootstrap.class.starts_with(b"java/lang/invoke/");
                    }
                    if jdk::makes_objects(&dynamic.bootstrap) {
                        add(Kind::Indy, returned(dynamic.descriptor), false, false, 0);
                    }
                }
                INVOKEVIRTUAL..=INVOKEINTERFACE => {
                    let member = self.class.member(u2()).ok_or(Error::PoolIndex(u2()))?;
                    if self.attribute() {
                        match self.leads(op, &member) {
                            Leads::Jdk => {
                                found.calls.push((bci, renewed));
                                renewed = false;
                            }
                            Leads::Either => {
                                found.calls.push((bci, renewed));
                                renewed = true;
                            }
                            Leads::Elsewhere => {
                                found.calls_others = true;
                                renewed = true;
                            }
                            Leads::Nowhere => {}
                        }
                    }
                    if self.settings.trace {
                        let asks = jdk::asks_for_hash(op, &member);
                        found.hashes.extend(asks.map(|asks| (bci, asks)));
                    }
                    if let Some(kind) = jdk::fresh(op, &member) {
                        let array = member.class.starts_with(b"[");
                        let ty = match kind {
                            Kind::Clone if array => {
                                String::from_utf8_lossy(member.class).into_owned()
                            }
                            Kind::Clone => self.class.this_name().into_owned(),
                            _ => returned(member.descriptor),
                        };
                        add(kind, ty, array, jdk::boxes(op, &member), 0);
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn attribute(&self) -> bool {
        self.settings.attribute && !self.settings.jdk
    }

    /// Where a call leads.
    fn leads(&self, op: u8, member: &Member<'_>) -> Leads {
        let is_jdk = |class| (self.settings.is_jdk)(class);
        let array = member.class.starts_with(b"[");
        if array || std::str::from_utf8(member.class).is_ok_and(is_jdk) {
            return if array || jdk::allocates_nothing(op, member) {
                Leads::Nowhere
            } else {
                Leads::Jdk
            };
        }
        // An application's class may have inherited the method.
        let inherits = op != INVOKESTATIC
            && member.name != b"<init>"
            && methods::inheritable(member.name, member.descriptor)
            && !self.declares(member);
        if inherits {
            Leads::Either
        } else {
            Leads::Elsewhere
        }
    }

    /// Whether the member is a method with code of this very class.
    fn declares(&self, member: &Member<'_>) -> bool {
        member.class == self.class.this_name_bytes()
            && self.class.methods().iter().any(|method| {
                method.name_bytes() == member.name
                    && method.descriptor_bytes() == member.descriptor
                    && method.code().is_some()
            })
    }

    /// Decides where each site is marked.
    fn mark(
        &mut self,
        index: u16,
        method: &Method<'_>,
        code: &Code<'_>,
        candidates: Vec<Candidate>,
        line: &dyn Fn(u16) -> u16,
        found: &mut Found,
    ) -> Result<(), Stop> {
        let followed: Vec<u16> = candidates
            .iter()
            .filter(|candidate| {
                let array = matches!(candidate.op, NEWARRAY | ANEWARRAY | MULTIANEWARRAY);
                candidate.op == NEW || array || candidate.may_be_local
            })
            .map(|candidate| candidate.bci)
            .collect();
        let mut inits = Vec::new();
        let mut leaves = !0;
        if !followed.is_empty() {
            self.walker.walk(self.class, method, code, &followed)?;
            inits = std::mem::take(&mut self.walker.inits);
            inits.sort_by_key(|init| init.site);
            leaves = self.leaves(code);
        }
        for candidate in candidates {
            let follow = followed.binary_search(&candidate.bci).ok();
            let local = follow.is_some_and(|i| i < FOLLOWED && leaves & (1 << i) == 0);
            let array = matches!(candidate.op, NEWARRAY | ANEWARRAY);
            // The constant before an array is its length only where control comes from there.
            let joined = array && self.walker.is_target(candidate.bci);
            let local = local && candidate.may_be_local && !joined && !self.settings.local;
            let site = self.sites.len() as u32;
            let first = found.marks.len();
            let mut constructor = String::new();
            let mut plain = candidate.plain;
            let exact = match candidate.kind {
                Kind::New | Kind::NewArray | Kind::ANewArray => true,
                // Boxes and strings; not Arrays.copyOf of objects and what is declared as Object.
                Kind::Intrinsic => {
                    !candidate.ty.starts_with("[L") && candidate.ty != "java/lang/Object"
                }
                Kind::MultiANewArray | Kind::Clone | Kind::Indy | Kind::Reflect => false,
            };
            if candidate.kind == Kind::New {
                let of_site = |init: &&Init| Some(init.site as usize) == follow;
                let mut unmarked = None;
                plain = true;
                for init in inits.iter().filter(of_site) {
                    match init.place {
                        Place::Deep => unmarked = Some(DEEP),
                        Place::Gone => unmarked = unmarked.or(Some(GONE)),
                        Place::Stack(_) | Place::Local(_) => {
                            let descriptor = self.descriptor(code, init.bci);
                            let leaks = self.constructors.leaks(&candidate.ty, &descriptor);
                            plain &= !leaks;
                            constructor = descriptor;
                            found.marks.push(Mark {
                                bci: init.bci,
                                site,
                                place: init.place,
                                plain: !leaks,
                                dimensions: 0,
                                exact,
                            });
                        }
                    }
                }
                if let Some(reason) = unmarked {
                    self.skip(index, Some(candidate.bci), reason);
                }
                // Neither in code that cannot be reached nor where nothing is ever constructed is there an object.
                if found.marks.len() == first {
                    continue;
                }
            } else {
                found.marks.push(Mark {
                    bci: candidate.bci,
                    site,
                    place: Place::Stack(0),
                    plain,
                    dimensions: candidate.dimensions,
                    exact,
                });
            }
            // It keeps its number, so that numbers do not depend on what is known of constructors.
            if local {
                found.marks.truncate(first);
                self.skip(index, Some(candidate.bci), LOCAL);
            }
            self.sites.push(Site {
                method: index,
                bci: candidate.bci,
                line: line(candidate.bci),
                kind: candidate.kind,
                ty: candidate.ty,
                constructor,
                plain,
            });
        }
        Ok(())
    }

    /// The sites whose objects may leave the method.
    fn leaves(&self, code: &Code<'_>) -> u64 {
        let mut leaves = self.walker.escaped;
        for sent in &self.walker.sent {
            let at = usize::from(sent.bci);
            let index = u16::from_be_bytes([code.code[at + 1], code.code[at + 2]]);
            let Some(member) = self.class.member(index) else {
                return !0;
            };
            let keeps = if jdk::keeps_no_receiver(&member) {
                false
            } else if member.name == b"<init>" {
                let class = String::from_utf8_lossy(member.class);
                let descriptor = String::from_utf8_lossy(member.descriptor);
                self.constructors.leaks(&class, &descriptor)
            } else {
                true
            };
            if keeps {
                leaves |= sent.set;
            }
        }
        leaves
    }

    fn descriptor(&self, code: &Code<'_>, bci: u16) -> String {
        let at = usize::from(bci);
        let index = u16::from_be_bytes([code.code[at + 1], code.code[at + 2]]);
        let member = self.class.member(index);
        member.map_or_else(String::new, |member| {
            String::from_utf8_lossy(member.descriptor).into_owned()
        })
    }
}

/// Where control can come from elsewhere, ascending.
fn joins(code: &Code<'_>) -> Result<Vec<u16>, Error> {
    let mut joins: Vec<u16> = code.exceptions().map(|entry| entry.handler).collect();
    for step in insn::insns(code.code) {
        let (bci, op) = step?;
        if matches!(op, IFEQ..=LOOKUPSWITCH | IFNULL..=JSR_W) {
            match insn::flow(code.code, usize::from(bci))? {
                Flow::Branch(to) | Flow::Goto(to) => joins.push(to),
                Flow::Switch { default, targets } => {
                    joins.push(default);
                    joins.extend(targets);
                }
                _ => {}
            }
        }
    }
    joins.sort_unstable();
    Ok(joins)
}

/// What the instruction pushes, if it is a small int constant.
fn constant(code: &[u8], at: usize) -> Option<i32> {
    match code[at] {
        op @ ICONST_M1..=ICONST_5 => Some(i32::from(op) - i32::from(ICONST_0)),
        BIPUSH => Some(i32::from(code[at + 1] as i8)),
        _ => None,
    }
}

/// The class, or array descriptor, that a method returns.
fn returned(descriptor: &[u8]) -> String {
    let at = descriptor.iter().rposition(|&c| c == b')');
    let ty = at.map_or(&[][..], |at| &descriptor[at + 1..]);
    let ty = match ty {
        [b'L', name @ .., b';'] => name,
        other => other,
    };
    String::from_utf8_lossy(ty).into_owned()
}
