//! What is to be done in one method: its sites and calls, in the order of its code, and where the code that marks goes.

use borescope_classfile::insn::{self, *};
use borescope_classfile::{ClassFile, Code, Error, Member, Method};

use crate::walk::{FOLLOWED, Init, Place, Stop, Walker};
use crate::{Call, Constructors, Kind, Settings, Site, Skip, jdk};

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
}

/// What is to be done in a method.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub marks: Vec<Mark>,
    /// Indices of calls in the class, with their bcis.
    pub calls: Vec<(u32, u16)>,
    /// The call is saved at the entry and restored at the end.
    pub callback: bool,
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
    /// Looks at a method; none if there is nothing to do.
    pub fn method(&mut self, index: u16, method: &Method<'_>, code: &Code<'_>) -> Option<Found> {
        let (candidates, calls) = match self.find(code) {
            Ok(found) => found,
            Err(_) => {
                self.skip(index, None, "its code is malformed");
                return None;
            }
        };
        let mut found = Found::default();
        let lines = if candidates.is_empty() && calls.is_empty() {
            Vec::new()
        } else {
            code.line_numbers()
        };
        let line = |bci: u16| {
            let after = lines.partition_point(|&(start, _)| start <= bci);
            after.checked_sub(1).map_or(0, |i| lines[i].1)
        };
        if !candidates.is_empty() {
            if let Err(reason) = self.mark(index, method, code, candidates, &line, &mut found) {
                self.skip(index, None, reason);
                return None;
            }
        }
        for bci in calls {
            found.calls.push((self.calls.len() as u32, bci));
            self.calls.push(Call {
                method: index,
                bci,
                line: line(bci),
            });
        }
        let any = !found.marks.is_empty() || !found.calls.is_empty() || found.callback;
        any.then_some(found)
    }

    fn skip(&mut self, method: u16, bci: Option<u16>, reason: &'static str) {
        self.skipped.push(Skip {
            method,
            bci,
            reason,
        });
    }

    /// All instructions that allocate, and those that call into the JDK.
    fn find(&self, code: &Code<'_>) -> Result<(Vec<Candidate>, Vec<u16>), Error> {
        let bytes = code.code;
        let mut candidates = Vec::new();
        let mut calls = Vec::new();
        let mut length = None;
        for step in insn::insns(bytes) {
            let (bci, op) = step?;
            let at = usize::from(bci);
            let u2 = || u16::from_be_bytes([bytes[at + 1], bytes[at + 2]]);
            let class_name = || {
                let name = self.class.class_name(u2());
                name.ok_or(Error::PoolIndex(u2()))
            };
            let mut add = |kind, ty: String, plain, may_be_local, dimensions| {
                candidates.push(Candidate {
                    bci,
                    op,
                    kind,
                    ty,
                    plain,
                    may_be_local,
                    dimensions,
                });
            };
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
                        calls.push(bci);
                    }
                    if jdk::makes_objects(&dynamic.bootstrap) {
                        add(Kind::Indy, returned(dynamic.descriptor), false, false, 0);
                    }
                }
                INVOKEVIRTUAL..=INVOKEINTERFACE => {
                    let member = self.class.member(u2()).ok_or(Error::PoolIndex(u2()))?;
                    if self.attribute() && self.calls_jdk(op, &member) {
                        calls.push(bci);
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
                        add(kind, ty, array, false, 0);
                    }
                }
                _ => {}
            }
        }
        Ok((candidates, calls))
    }

    fn attribute(&self) -> bool {
        self.settings.attribute && !self.settings.jdk
    }

    fn calls_jdk(&self, _op: u8, member: &Member<'_>) -> bool {
        std::str::from_utf8(member.class).is_ok_and(|class| (self.settings.is_jdk)(class))
            && !jdk::allocates_nothing(member)
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
    ) -> Result<(), &'static str> {
        let followed: Vec<u16> = candidates
            .iter()
            .filter(|candidate| matches!(candidate.op, NEW | NEWARRAY | ANEWARRAY | MULTIANEWARRAY))
            .map(|candidate| candidate.bci)
            .collect();
        let mut inits = Vec::new();
        let mut leaves = !0;
        if !followed.is_empty() {
            self.walker
                .walk(self.class, method, code, &followed)
                .map_err(|stop| match stop {
                    Stop::Malformed => "its code is malformed",
                    Stop::JsrRet => "it uses jsr or ret",
                    Stop::TooLarge => "it is too large to be analysed",
                })?;
            inits = std::mem::take(&mut self.walker.inits);
            inits.sort_by_key(|init| init.site);
            leaves = self.leaves(code, &followed);
        }
        for candidate in candidates {
            let follow = followed.binary_search(&candidate.bci).ok();
            let local = follow.is_some_and(|i| i < FOLLOWED && leaves & (1 << i) == 0);
            if local && candidate.may_be_local && !self.settings.local {
                self.skip(index, Some(candidate.bci), LOCAL);
                continue;
            }
            let site = self.sites.len() as u32;
            let first = found.marks.len();
            let mut constructor = String::new();
            let mut plain = candidate.plain;
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
                });
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
    fn leaves(&self, code: &Code<'_>, followed: &[u16]) -> u64 {
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
        let _ = followed;
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
