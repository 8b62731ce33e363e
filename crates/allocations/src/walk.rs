//! One method's code, walked with an abstract stack: where the object of each `new` is when its constructor returns, and where the objects of
//! each site and `this` go.
//!
//! A dataflow of its own, without StackMapTable: class files without one are walked in the same way. A slot's value is a kind (one of two slots of a
//! long or double; not yet constructed, from which `new`; anything else) and the set of sites whose objects it may be. Sets only grow, so the walk
//! ends. Nothing is inferred about types: the verifier has done, or will do, that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use borescope_classfile::insn::{self, Flow, *};
use borescope_classfile::{ClassFile, Code, Error, Member, Method};

use crate::jdk;
use crate::operands::{Parameters, SIMPLE};

/// The set that holds only `this`.
pub(crate) const THIS: u64 = 1 << 63;
/// So many sites of a method are followed; the others count as escaping.
pub(crate) const FOLLOWED: usize = 62;
/// Largest number of values that states may hold, 16 bytes each.
const MOST_VALUES: usize = 2 << 20;
/// So many values are merged at most, some 0.1 s; no method of the corpus needs a hundredth of it.
const MOST_MERGED: usize = 64 << 20;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    /// [`ONE`], [`HALF_OF_TWO`], [`THIS_INIT`], or [`NEW_INIT`] + the index of a site.
    kind: u32,
    /// Sites whose objects it may be.
    set: u64,
}

const ONE: u32 = 0;
const HALF_OF_TWO: u32 = 1;
const THIS_INIT: u32 = 2;
const NEW_INIT: u32 = 3;
const ANY: Value = Value { kind: ONE, set: 0 };
const HALF: Value = Value {
    kind: HALF_OF_TWO,
    set: 0,
};

/// Where the object is after its constructor returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the stack below so many slots, 0 to 2; with a single slot above, that is a whole value.
    Stack(u8),
    /// In this local.
    Local(u16),
    /// Deeper on the stack.
    Deep,
    /// Nowhere: it is garbage, unless its constructor kept it.
    Gone,
}

/// A constructor call that completes the object of a `new`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Init {
    /// The invokespecial.
    pub bci: u16,
    /// Index of the site.
    pub site: u32,
    /// Where the object is then.
    pub place: Place,
}

/// A call with objects of sites or `this` as its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sent {
    /// The instruction.
    pub bci: u16,
    /// The objects.
    pub set: u64,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// In `values`: the locals, then the stack.
    at: usize,
    depth: usize,
    pending: bool,
}

/// Walks one method after another, keeping its buffers.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    /// By bci: 1 + index in `states` if control can come there from elsewhere.
    target: Vec<u32>,
    states: Vec<Option<State>>,
    values: Vec<Value>,
    pending: BinaryHeap<Reverse<u16>>,
    locals: Vec<Value>,
    stack: Vec<Value>,
    /// By bci of a handler's range: whether one begins here.
    begins: Vec<bool>,
    /// Values merged.
    merged: usize,
    /// By bci of the call.
    pub inits: Vec<Init>,
    /// Objects whose reference goes where it is not followed.
    pub escaped: u64,
    /// By bci.
    pub sent: Vec<Sent>,
}

/// Why a method could not be walked.
#[derive(Debug)]
pub(crate) enum Stop {
    Malformed,
    JsrRet,
    TooLarge,
}

impl Stop {
    /// In words.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "its code is malformed",
            Self::JsrRet => "it uses jsr or ret",
            Self::TooLarge => "it is too large to be analysed",
        }
    }
}

impl From<Error> for Stop {
    fn from(_: Error) -> Self {
        Self::Malformed
    }
}

impl Walker {
    /// Walks a method. `sites`: the bcis of its instructions whose objects are followed, ascending.
    pub(crate) fn walk(
        &mut self,
        class: &ClassFile<'_>,
        method: &Method<'_>,
        code: &Code<'_>,
        sites: &[u16],
    ) -> Result<(), Stop> {
        self.inits.clear();
        self.sent.clear();
        self.escaped = 0;
        self.merged = 0;
        self.find_targets(code)?;
        self.enter(method, code)?;
        let mut at = 0;
        loop {
            self.run(class, code, sites, at)?;
            let Some(Reverse(next)) = self.pending.pop() else {
                break;
            };
            at = usize::from(next);
            let index = self.target[at] as usize - 1;
            if let Some(state) = &mut self.states[index] {
                state.pending = false;
                let (locals, stack) = self.values[state.at..].split_at(self.locals.len());
                self.locals.copy_from_slice(locals);
                self.stack.clear();
                self.stack.extend_from_slice(&stack[..state.depth]);
            }
        }
        // A place met again is written again: the last time says what holds.
        self.inits.reverse();
        self.inits.sort_by_key(|init| init.bci);
        self.inits.dedup_by_key(|init| init.bci);
        self.sent.sort_unstable();
        self.sent.dedup_by(|later, first| {
            let same = later.bci == first.bci;
            if same {
                first.set |= later.set;
            }
            same
        });
        Ok(())
    }

    /// Whether control can come to an instruction of the method last walked from elsewhere than the one before.
    pub(crate) fn is_target(&self, bci: u16) -> bool {
        self.target[usize::from(bci)] != 0
    }

    fn find_targets(&mut self, code: &Code<'_>) -> Result<(), Stop> {
        let bytes = code.code;
        self.target.clear();
        self.target.resize(bytes.len(), 0);
        self.begins.clear();
        self.begins.resize(bytes.len(), false);
        self.states.clear();
        self.values.clear();
        self.pending.clear();
        let mut targets = 0u32;
        let mut mark = |target: &mut Vec<u32>, bci: u16| -> Result<(), Stop> {
            let slot = target.get_mut(usize::from(bci)).ok_or(Stop::Malformed)?;
            if *slot == 0 {
                targets += 1;
                *slot = targets;
            }
            Ok(())
        };
        for step in insn::insns(bytes) {
            let (bci, op) = step?;
            if !matches!(op, IFEQ..=LOOKUPSWITCH | IFNULL..=JSR_W | WIDE) {
                continue;
            }
            match insn::flow(bytes, usize::from(bci))? {
                Flow::Branch(to) | Flow::Goto(to) => mark(&mut self.target, to)?,
                Flow::Switch { default, targets } => {
                    mark(&mut self.target, default)?;
                    for to in targets {
                        mark(&mut self.target, to)?;
                    }
                }
                Flow::Jsr(_) | Flow::Ret => return Err(Stop::JsrRet),
                Flow::Next | Flow::Return | Flow::Throw => {}
            }
        }
        for entry in code.exceptions() {
            mark(&mut self.target, entry.handler)?;
            *self
                .begins
                .get_mut(usize::from(entry.start))
                .ok_or(Stop::Malformed)? = true;
        }
        self.states.resize(targets as usize, None);
        Ok(())
    }

    /// The state at the method's entry.
    fn enter(&mut self, method: &Method<'_>, code: &Code<'_>) -> Result<(), Stop> {
        self.stack.clear();
        self.locals.clear();
        if !method.is_static() {
            let constructor = method.name_bytes() == b"<init>";
            self.locals.push(Value {
                kind: if constructor { THIS_INIT } else { ONE },
                set: THIS,
            });
        }
        for parameter in Parameters::of(method.descriptor_bytes()) {
            match parameter.ok_or(Stop::Malformed)? {
                [b'J' | b'D'] => self.locals.extend([HALF, HALF]),
                _ => self.locals.push(ANY),
            }
        }
        if self.locals.len() > usize::from(code.max_locals) {
            return Err(Stop::Malformed);
        }
        self.locals.resize(usize::from(code.max_locals), ANY);
        Ok(())
    }

    /// From `at` on, up to where control always leaves or others may come in.
    fn run(
        &mut self,
        class: &ClassFile<'_>,
        code: &Code<'_>,
        sites: &[u16],
        start: usize,
    ) -> Result<(), Stop> {
        let bytes = code.code;
        let mut at = start;
        // Whether locals have changed since the handlers here were told of them.
        let mut changed = true;
        loop {
            if self.target.get(at).copied().ok_or(Stop::Malformed)? != 0
                && (at != start || self.states[self.target[at] as usize - 1].is_none())
            {
                return self.flow_to(at as u16, false);
            }
            if changed || self.begins[at] {
                for entry in code.exceptions() {
                    if (usize::from(entry.start)..usize::from(entry.end)).contains(&at) {
                        self.flow_to(entry.handler, true)?;
                    }
                }
            }
            let len = insn::insn_len(bytes, at)?;
            changed = self.step(class, bytes, sites, at)?;
            match bytes[at] {
                IFEQ..=LOOKUPSWITCH | IFNULL..=JSR_W => match insn::flow(bytes, at)? {
                    Flow::Branch(to) => self.flow_to(to, false)?,
                    Flow::Goto(to) => return self.flow_to(to, false),
                    Flow::Switch { default, targets } => {
                        self.flow_to(default, false)?;
                        for to in targets {
                            self.flow_to(to, false)?;
                        }
                        return Ok(());
                    }
                    _ => return Err(Stop::JsrRet),
                },
                IRETURN..=RETURN | ATHROW => return Ok(()),
                _ => {}
            }
            at += len;
        }
    }

    /// Control goes to `bci`, with the stack as it is or (handlers) with only what was thrown.
    fn flow_to(&mut self, bci: u16, thrown: bool) -> Result<(), Stop> {
        // Code that is entered in the middle of an instruction jumps to where nobody has looked for targets.
        let target = self.target[usize::from(bci)].checked_sub(1);
        let index = target.ok_or(Stop::Malformed)? as usize;
        let stack = if thrown { &[ANY][..] } else { &self.stack[..] };
        let Some(state) = &mut self.states[index] else {
            let at = self.values.len();
            if at + self.locals.len() + stack.len() > MOST_VALUES {
                return Err(Stop::TooLarge);
            }
            self.values.extend_from_slice(&self.locals);
            self.values.extend_from_slice(stack);
            self.states[index] = Some(State {
                at,
                depth: stack.len(),
                pending: true,
            });
            self.pending.push(Reverse(bci));
            return Ok(());
        };
        if state.depth != stack.len() {
            return Err(Stop::Malformed);
        }
        self.merged += self.locals.len() + state.depth;
        if self.merged > MOST_MERGED {
            return Err(Stop::TooLarge);
        }
        let old = &mut self.values[state.at..state.at + self.locals.len() + state.depth];
        let mut grown = false;
        for (old, new) in old.iter_mut().zip(self.locals.iter().chain(stack)) {
            let both = Value {
                kind: if old.kind == new.kind { old.kind } else { ONE },
                set: old.set | new.set,
            };
            grown |= both != *old;
            *old = both;
        }
        if grown && !state.pending {
            state.pending = true;
            self.pending.push(Reverse(bci));
        }
        Ok(())
    }

    fn pop(&mut self) -> Result<Value, Stop> {
        self.stack.pop().ok_or(Stop::Malformed)
    }

    fn drop(&mut self, count: usize) -> Result<(), Stop> {
        let left = self.stack.len().checked_sub(count).ok_or(Stop::Malformed)?;
        self.stack.truncate(left);
        Ok(())
    }

    /// Pops a reference that is not followed from here on.
    fn escape(&mut self) -> Result<(), Stop> {
        self.escaped |= self.pop()?.set;
        Ok(())
    }

    fn push(&mut self, slots: u8) {
        match slots {
            0 => {}
            1 => self.stack.push(ANY),
            _ => self.stack.extend([HALF, HALF]),
        }
    }

    /// The slots that a value of this descriptor takes.
    fn slots(descriptor: &[u8]) -> u8 {
        match descriptor.first() {
            Some(b'V') => 0,
            Some(b'J' | b'D') => 2,
            _ => 1,
        }
    }

    fn store(&mut self, local: usize, value: Value) -> Result<(), Stop> {
        *self.locals.get_mut(local).ok_or(Stop::Malformed)? = value;
        Ok(())
    }

    fn load(&mut self, op: u8, local: usize) -> Result<(), Stop> {
        match op {
            LLOAD | DLOAD => self.push(2),
            ALOAD => {
                let value = *self.locals.get(local).ok_or(Stop::Malformed)?;
                self.stack.push(value);
            }
            _ => self.push(1),
        }
        Ok(())
    }

    fn store_op(&mut self, op: u8, local: usize) -> Result<(), Stop> {
        let value = self.pop()?;
        if matches!(op, LSTORE | DSTORE) {
            self.pop()?;
            self.store(local + 1, HALF)?;
        }
        self.store(local, value)
    }

    /// Copies the topmost `count` slots below the `under` slots beneath them.
    fn dup(&mut self, count: usize, under: usize) -> Result<(), Stop> {
        let at = self.stack.len().checked_sub(count + under);
        let at = at.ok_or(Stop::Malformed)?;
        for i in 0..count {
            let value = self.stack[self.stack.len() - count + i];
            self.stack.insert(at + i, value);
        }
        Ok(())
    }

    /// Carries out an instruction; returns whether locals have changed.
    fn step(
        &mut self,
        class: &ClassFile<'_>,
        code: &[u8],
        sites: &[u16],
        at: usize,
    ) -> Result<bool, Stop> {
        let op = code[at];
        let u1 = |i: usize| usize::from(code[at + i]);
        let u2 = |i: usize| u16::from_be_bytes([code[at + i], code[at + i + 1]]);
        if let Some((pop, push)) = SIMPLE[usize::from(op)] {
            self.drop(usize::from(pop))?;
            self.push(push);
            return Ok(false);
        }
        match op {
            ILOAD..=ALOAD => self.load(op, u1(1))?,
            ILOAD_0..=ALOAD_3 => {
                self.load(ILOAD + (op - ILOAD_0) / 4, usize::from(op - ILOAD_0) % 4)?
            }
            ISTORE..=ASTORE => {
                self.store_op(op, u1(1))?;
                return Ok(true);
            }
            ISTORE_0..=ASTORE_3 => {
                self.store_op(ISTORE + (op - ISTORE_0) / 4, usize::from(op - ISTORE_0) % 4)?;
                return Ok(true);
            }
            WIDE => match code[at + 1] {
                op @ ILOAD..=ALOAD => self.load(op, usize::from(u2(2)))?,
                op @ ISTORE..=ASTORE => {
                    self.store_op(op, usize::from(u2(2)))?;
                    return Ok(true);
                }
                IINC => {}
                _ => return Err(Stop::JsrRet),
            },
            AASTORE => {
                self.escape()?;
                self.drop(2)?;
            }
            DUP => self.dup(1, 0)?,
            DUP_X1 => self.dup(1, 1)?,
            DUP_X2 => self.dup(1, 2)?,
            DUP2 => self.dup(2, 0)?,
            DUP2_X1 => self.dup(2, 1)?,
            DUP2_X2 => self.dup(2, 2)?,
            SWAP => {
                let (a, b) = (self.pop()?, self.pop()?);
                self.stack.extend([a, b]);
            }
            ARETURN | ATHROW => self.escape()?,
            GETSTATIC | PUTSTATIC | GETFIELD | PUTFIELD => {
                let field = class.member(u2(1)).ok_or(Stop::Malformed)?;
                let slots = Self::slots(field.descriptor);
                if matches!(op, PUTSTATIC | PUTFIELD) {
                    if slots == 1 {
                        self.escape()?;
                    } else {
                        self.drop(usize::from(slots))?;
                    }
                }
                if matches!(op, GETFIELD | PUTFIELD) {
                    self.pop()?;
                }
                if matches!(op, GETSTATIC | GETFIELD) {
                    self.push(slots);
                }
            }
            INVOKEVIRTUAL..=INVOKEDYNAMIC => {
                return self.invoke(class, op, at as u16, u2(1), sites);
            }
            NEW | NEWARRAY | ANEWARRAY | MULTIANEWARRAY => {
                match op {
                    NEW => {}
                    MULTIANEWARRAY => self.drop(u1(3))?,
                    _ => self.drop(1)?,
                }
                let site = sites.binary_search(&(at as u16)).ok();
                let mut value = Value {
                    kind: ONE,
                    set: bit(sites, at as u16),
                };
                if let Some(site) = site.filter(|_| op == NEW) {
                    value.kind = NEW_INIT + site as u32;
                    // An older one that was never constructed is of no use from here on (JVMS 4.10.1.9.new).
                    for old in self.locals.iter_mut().chain(&mut self.stack) {
                        if old.kind == value.kind {
                            *old = ANY;
                        }
                    }
                }
                self.stack.push(value);
            }
            CHECKCAST => {
                let value = self.pop()?;
                self.stack.push(value);
            }
            MONITORENTER => {
                // A lock stands in the header; for sites of this method the mark is there before.
                self.escaped |= self.pop()?.set & THIS;
            }
            _ => return Err(Stop::Malformed),
        }
        Ok(false)
    }

    fn invoke(
        &mut self,
        class: &ClassFile<'_>,
        op: u8,
        bci: u16,
        index: u16,
        sites: &[u16],
    ) -> Result<bool, Stop> {
        let member = if op == INVOKEDYNAMIC {
            let dynamic = class.invoke_dynamic(index).ok_or(Stop::Malformed)?;
            Member {
                class: b"",
                name: dynamic.name,
                descriptor: dynamic.descriptor,
            }
        } else {
            class.member(index).ok_or(Stop::Malformed)?
        };
        let keeps = !jdk::keeps_no_argument(&member);
        // Parameters stand in the order in which they were pushed: the topmost is the last.
        let mut slots = 0;
        for parameter in Parameters::of(member.descriptor) {
            slots += usize::from(Self::slots(parameter.ok_or(Stop::Malformed)?));
        }
        let first = self.stack.len().checked_sub(slots).ok_or(Stop::Malformed)?;
        for value in self.stack.drain(first..) {
            self.escaped |= if keeps { value.set } else { value.set & THIS };
        }
        let mut result = Value {
            kind: ONE,
            set: if op == INVOKESTATIC {
                bit(sites, bci)
            } else {
                0
            },
        };
        let mut changed = false;
        if !matches!(op, INVOKESTATIC | INVOKEDYNAMIC) {
            let receiver = self.pop()?;
            if receiver.set != 0 {
                self.sent.push(Sent {
                    bci,
                    set: receiver.set,
                });
            }
            if jdk::returns_receiver(&member) {
                result.set = receiver.set;
            }
            if member.name == b"<init>" && receiver.kind >= THIS_INIT {
                self.constructed(bci, receiver.kind);
                changed = true;
            }
        }
        let returned = member.descriptor.iter().rposition(|&c| c == b')');
        let returned = returned.map_or(&[][..], |at| &member.descriptor[at + 1..]);
        match Self::slots(returned) {
            1 => self.stack.push(result),
            slots => self.push(slots),
        }
        Ok(changed)
    }

    /// A constructor has returned: all copies of the object are usable.
    fn constructed(&mut self, bci: u16, kind: u32) {
        let same = |value: &&mut Value| value.kind == kind;
        let mut place = Place::Gone;
        let mut above = 0;
        let depth = self.stack.len();
        for (i, value) in self.stack.iter_mut().enumerate() {
            if value.kind == kind {
                value.kind = ONE;
                place = Place::Deep;
                above = depth - 1 - i;
            }
        }
        let local = self.locals.iter().position(|value| value.kind == kind);
        self.locals
            .iter_mut()
            .filter(same)
            .for_each(|value| value.kind = ONE);
        if kind == THIS_INIT {
            return;
        }
        if place == Place::Deep && (above == 0 || (above <= 2 && local.is_none())) {
            place = Place::Stack(above as u8);
        } else if let Some(local) = local {
            place = Place::Local(local as u16);
        }
        self.inits.push(Init {
            bci,
            site: kind - NEW_INIT,
            place,
        });
    }
}

/// The set of the site at this bci, if it is followed.
fn bit(sites: &[u16], bci: u16) -> u64 {
    let site = sites.binary_search(&bci).ok();
    let followed = site.filter(|&site| site < FOLLOWED);
    followed.map_or(0, |site| 1 << site)
}
