//! What the two signal handlers do: a tick begins a seek, breakpoints lead it to an access, which is watched; the traps of the watch are told apart and paired
//! (crates/waste has all of the deciding). Comes in: registers of the interrupted code. Goes out: counts in the shared table. Must never happen here: anything that
//! allocates, locks, waits or panics; a breakpoint left behind that belongs to no watch.

use super::codemap::{Blob, CodeMap};
use super::hotspot::{Buffer, DEPTH, HotSpot};
use super::kernel::{Break, Event, peek};
use super::signals::Context;
use super::threads::{self, Met, Register, Thread, WATCHES};
use borescope_waste::handler::barrier::is_store_check;
use borescope_waste::handler::code::{Instruction, Operand};
use borescope_waste::handler::reservoir::Draw;
use borescope_waste::handler::seek::Reached;
use borescope_waste::{
    Access, AccessSource, Armed, Asked, End, Frame, Kind, Miss, Mode, Object, Origin, Pair, Place,
    Refusal, Registers, Scope, Seek, Step, Table, Tally, Tolerance, Watch, trap,
};
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Breakpoints that a seek may ask for.
const STOPS: u32 = 8;
/// Accesses that it may let pass, one less.
const SKIP: u64 = 4;
/// Pieces of code that it may go through between two breakpoints.
const PIECES: usize = 16;
/// Ticks until registers are asked for again that could not be had.
const PATIENCE: u32 = 256;
/// In the data of our traps: "bors", the thread's number, the register's.
const MARK: u64 = 0x626F_7273;
/// The register for execution.
const EXECUTE: u64 = 7;

static SHARED: OnceLock<Shared> = OnceLock::new();

/// What all handlers share; there for the JVM's life.
pub struct Shared {
    pub table: Table<'static>,
    pub map: CodeMap,
    pub vm: HotSpot,
    pub rate: u32,
    pub watches: usize,
    pub tolerance: Tolerance,
    pub tick: c_int,
    /// Collections that have begun.
    pub collections: AtomicU64,
    pub stopped: AtomicBool,
}

impl Shared {
    /// Makes it known to the handlers; false = there is one already.
    pub fn publish(self) -> bool {
        SHARED.set(self).is_ok()
    }

    /// It, once it is known.
    pub fn get() -> Option<&'static Shared> {
        SHARED.get()
    }

    /// Objects begin to move: watches of all threads end when their threads next look.
    pub fn collecting(&self) {
        self.collections.fetch_add(1, Release);
    }

    fn tally(&self) -> Tally<'static> {
        self.table.tally()
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// The access of an operand, or why it is none of the program's.
    fn judge(&self, operand: &Operand) -> Result<Access, Refusal> {
        let layout = self.vm.layout;
        let scope = Scope {
            heap: self.vm.heap,
            // Outside of the heap anyway.
            stack: (0, 0),
            layout,
        };
        let access = scope.judge(operand, None)?;
        let start = access
            .address()
            .wrapping_sub(operand.form.displacement as u64);
        let at = |offset: u8, width| {
            operand.form.displacement == i64::from(offset) && operand.width == width
        };
        let object = if operand.kind == Kind::Load
            && at(layout.length, 4)
            && self.vm.is_array(start)
        {
            Object { start, array: true }
        } else if at(0, 8) && (self.vm.instance_bytes(start).is_some() || self.vm.is_array(start)) {
            Object {
                start,
                array: false,
            }
        } else {
            return Ok(access);
        };
        scope.judge(operand, Some(object))
    }
}

/// A clock has ticked. False: it is none of ours.
pub fn tick(descriptor: c_int, context: &mut Context<'_>) -> bool {
    let (Some(shared), Some(number)) = (Shared::get(), threads::of_clock(descriptor)) else {
        return false;
    };
    threads::with(number, |thread| {
        if shared.is_stopped() {
            return;
        }
        Work {
            shared,
            thread,
            context,
        }
        .tick();
        if let Some(clock) = thread.clock {
            clock.wind();
        }
    });
    true
}

/// A breakpoint has trapped; `late`: not where it happened. False: it is none of ours.
pub fn trap(data: u64, late: bool, context: &mut Context<'_>) -> bool {
    let (Some(shared), true) = (Shared::get(), data >> 32 == MARK) else {
        return false;
    };
    let (number, register) = ((data as u32) >> 3, data & 7);
    threads::with(number, |thread| {
        let mut work = Work {
            shared,
            thread,
            context,
        };
        match register {
            EXECUTE => work.stopped(late),
            register => work.touched(register as usize, late),
        }
    });
    true
}

/// The thread ends: so do its watches.
pub fn ending(thread: &mut Thread, shared: &Shared) {
    let tally = shared.tally();
    if thread.seek.take().is_some() {
        thread.watches.missed(Miss::Ended, &tally);
    }
    thread.watches.end_all(End::ThreadEnd, &tally);
}

fn data(number: u32, register: u64) -> u64 {
    MARK << 32 | u64::from(number) << 3 | register
}

/// One handler's work.
struct Work<'a, 'c> {
    shared: &'static Shared,
    thread: &'a mut Thread,
    context: &'a mut Context<'c>,
}

impl Work<'_, '_> {
    fn tick(&mut self) {
        let tally = self.shared.tally();
        self.forget_moved();
        self.thread.watches.tick(&tally);
        self.thread.patience = self.thread.patience.saturating_sub(1);
        if self.thread.patience == 0 {
            self.thread.watches.set_limit(self.shared.watches);
        }
        if self.thread.seek.take().is_some() {
            // The thread never came to where the last breakpoint is.
            self.thread.watches.missed(Miss::LeftCode, &tally);
            self.rest();
        }
        let registers = self.context.registers();
        if self.shared.map.find(registers.rip).is_none() {
            return self.thread.watches.missed(Miss::NotCompiled, &tally);
        }
        if self.thread.java.is_none() {
            let r15 = registers.general[15];
            self.thread.java = self.shared.vm.java_thread(r15, self.thread.id);
        }
        let skip = self.thread.watches.random().below(SKIP) as u32;
        let seek = Seek::new(registers.rip, skip, STOPS);
        let top = self.buffer().top;
        self.go_on(seek, top, &registers);
    }

    /// The thread is where a seek has its breakpoint.
    fn stopped(&mut self, late: bool) {
        let registers = self.context.registers();
        self.rest();
        let Some((mut seek, top)) = self.thread.seek.take() else {
            return;
        };
        if late || self.shared.is_stopped() {
            return self
                .thread
                .watches
                .missed(Miss::Ended, &self.shared.tally());
        }
        self.forget_moved();
        seek.stopped(registers.rip);
        self.go_on(seek, top, &registers);
    }

    fn go_on(&mut self, mut seek: Seek, top: u64, registers: &Registers) {
        let tally = self.shared.tally();
        let mut miss = Miss::StepLimit;
        for _ in 0..PIECES {
            let Some(blob) = self.shared.map.find(seek.pc()) else {
                miss = Miss::LeftCode;
                break;
            };
            let shared = self.shared;
            let mut accept = |operand: &Operand| shared.judge(operand).ok();
            let reader = &mut self.thread.reader;
            match seek.event(reader, &blob.code(), registers, &mut accept) {
                Step::BreakAt(pc) => {
                    if self.break_at(pc) {
                        self.thread.seek = Some((seek, top));
                        return;
                    }
                    miss = Miss::Ended;
                    break;
                }
                Step::Elsewhere(_) => {}
                Step::Return => match peek(registers.rsp(), 8) {
                    Some(pc) => seek.returns_to(pc),
                    None => break,
                },
                Step::Reached(reached) => {
                    self.thread.watches.reached(&tally);
                    if let Err(Some(refusal)) = self.sample(&reached, &blob, top, registers) {
                        self.thread.watches.refuse(refusal, &tally);
                    }
                    return;
                }
                Step::Miss(why) => {
                    miss = why;
                    break;
                }
                Step::Refused(_) => {
                    miss = Miss::Mismatch;
                    break;
                }
            }
        }
        self.thread.watches.missed(miss, &tally);
    }

    /// Watches what the thread is about to touch. The error: why not, if that is not counted yet.
    fn sample(
        &mut self,
        reached: &Reached,
        blob: &Blob,
        top: u64,
        registers: &Registers,
    ) -> Result<(), Option<Refusal>> {
        let tally = self.shared.tally();
        let Reached {
            instruction,
            access,
        } = reached;
        if is_store_check(&mut self.thread.reader, &blob.code(), instruction) {
            return Err(Some(Refusal::Barrier));
        }
        let slot = self.thread.watches.choose(&tally).ok_or(None)?;
        let mut origin = self
            .origin(instruction, blob, registers)
            .ok_or(Some(Refusal::NoStack))?;
        let buffer = self.buffer();
        origin.initialising = Self::initialises(access, top, buffer);
        let place = Place::within(access, self.thread.watches.random());
        let before = peek(place.start(), place.len().into()).ok_or(Some(Refusal::Hidden))?;
        let watch =
            Watch::ahead(place, *access, before, Asked::ALL).ok_or(Some(Refusal::NotAsked))?;
        let mode = watch.mode().ok_or(Some(Refusal::NotAsked))?;
        if !self.watch(slot, place, mode) {
            // Who held it has lost it. If it cannot be opened, others hold the registers: those that are open have to do for a while.
            self.thread.watches.end(slot, End::Replaced, &tally);
            self.thread.watches.set_limit(slot.max(1));
            self.thread.patience = PATIENCE;
            return Err(Some(Refusal::NoRegister));
        }
        let mounted = self.mounted();
        let register = &mut self.thread.registers[slot];
        register.expected = Some(instruction.pc());
        register.buffer = buffer.start;
        register.mounted = mounted;
        let armed = Armed {
            watch,
            origin,
            object: 0,
        };
        self.thread.watches.arm(slot, armed, &tally);
        Ok(())
    }

    /// A watched place was touched.
    fn touched(&mut self, slot: usize, late: bool) {
        let tally = self.shared.tally();
        let registers = self.context.registers();
        self.forget_moved();
        let Some(place) = self
            .thread
            .watches
            .get(slot)
            .map(|armed| armed.watch.place())
        else {
            return self.release(slot);
        };
        if late || self.shared.is_stopped() {
            return self.end(slot, End::Stopped);
        }
        if self.mounted() != self.thread.registers.get(slot).map_or(0, |r| r.mounted) {
            return self.end(slot, End::Unmounted);
        }
        let Some((blob, trapped)) = self.which(&place, &registers) else {
            return self.end(slot, End::UnknownAccess);
        };
        let trap::Trapped {
            instruction,
            access,
            ..
        } = trapped;
        let buffer = self.buffer();
        let register = &mut self.thread.registers[slot];
        match register.expected.take() {
            // Something came between: an exception, or another way than the registers told.
            Some(pc) if pc != instruction.pc() => return self.end(slot, End::UnknownAccess),
            Some(_) => {}
            None => {
                if is_store_check(&mut self.thread.reader, &blob.code(), &instruction) {
                    return;
                }
                // The buffer is younger than the watch: what was watched is gone, and this is a new object.
                if buffer.holds(place.start()) && buffer.start != register.buffer {
                    return self.end(slot, End::NewObject);
                }
            }
        }
        let Some(after) = peek(place.start(), place.len().into()) else {
            return self.end(slot, End::UnknownAccess);
        };
        let Some(seen) = self
            .thread
            .watches
            .trapped(slot, &access, None, after, &tally)
        else {
            return self.release(slot);
        };
        // A stack is read only for what is shown with both contexts.
        let second = match seen.seen.answers().any(|answer| answer.wasteful) {
            true => self
                .origin(&instruction, &blob, &registers)
                .unwrap_or_else(|| self.unknown(&instruction)),
            false => Origin::default(),
        };
        for answer in seen.seen.answers() {
            let pair = Pair::new(&seen.armed, &answer, &second, &access);
            self.shared.table.record(&pair);
        }
        match seen.seen.next {
            None => self.release(slot),
            Some(mode) => {
                if self.thread.registers[slot].mode != Some(mode) && !self.watch(slot, place, mode)
                {
                    self.end(slot, End::Stopped);
                }
            }
        }
    }

    /// Which access has trapped, and the code it is in.
    fn which(&mut self, place: &Place, registers: &Registers) -> Option<(Blob, trap::Trapped)> {
        let blob = self.shared.map.find(registers.rip.wrapping_sub(1))?;
        let n = (registers.rip ^ registers.rip >> 6) as usize % self.thread.met.len();
        let met = self.thread.met[n];
        let known = met.pc == registers.rip && met.serial == blob.serial;
        let anchor = if known { met.start } else { blob.start };
        let reader = &mut self.thread.reader;
        let trapped = trap::trapped(reader, &blob.code(), anchor, registers, place).ok()?;
        if trapped.instruction.next() == registers.rip {
            self.thread.met[n] = Met {
                pc: registers.rip,
                serial: blob.serial,
                start: trapped.instruction.pc(),
            };
        }
        Some((blob, trapped))
    }

    /// Who does an access: the context of the calling thread.
    fn origin(
        &mut self,
        instruction: &Instruction,
        blob: &Blob,
        registers: &Registers,
    ) -> Option<Origin> {
        let (rsp, rbp) = (registers.general[4], registers.general[5]);
        let mut at = match blob.stub {
            false => (instruction.pc(), rsp, rbp),
            true => self.caller_of_stub(rsp, rbp)?,
        };
        let Shared { vm, table, .. } = self.shared;
        let env = self.thread.env;
        // HotSpot looks up the first note at or behind a program counter. C2's stand where the last instruction of a place begins, C1's where it ends
        // (NonSafepointEmitter::observe_instruction, LIR_Assembler::process_debug_info).
        let inside = u64::from(!vm.c2 && !blob.stub);
        at.0 += inside;
        let mut context = self.context.at(at.0, at.1, at.2);
        let mut read = vm
            .frames(env, &mut context, &mut self.thread.frames)
            .ok()?
            .len();
        // No bytecode: a note of the method's entry or exit. Then the other way may tell.
        if self.thread.frames[0].bci < 0 && !blob.stub {
            at.0 = instruction.pc() + 1 - inside;
            let mut context = self.context.at(at.0, at.1, at.2);
            read = vm
                .frames(env, &mut context, &mut self.thread.frames)
                .ok()?
                .len();
        }
        let frames = &self.thread.frames[..read];
        let frame = |f: &super::hotspot::CallFrame| {
            Frame::new(f.method as u64, f.bci).unwrap_or(Frame::UNKNOWN)
        };
        let deeper = (frames.len() == DEPTH).then_some(Frame::DEEPER);
        let leaf = frame(frames.first()?);
        let all = deeper.into_iter().chain(frames.iter().rev().map(frame));
        Some(Origin {
            context: table.context(all)?.node,
            line: table.line(leaf)?,
            instruction: instruction.bytes,
            initialising: false,
        })
    }

    /// A stub has a frame of its own, or none: where its caller goes on, and the caller's stack and frame pointers.
    fn caller_of_stub(&self, rsp: u64, rbp: u64) -> Option<(u64, u64, u64)> {
        let compiled = |pc: &u64| self.shared.map.find(*pc).is_some_and(|blob| !blob.stub);
        if let Some(pc) = peek(rsp, 8).filter(compiled) {
            return Some((pc, rsp + 8, rbp));
        }
        let pc = peek(rbp.checked_add(8)?, 8).filter(compiled)?;
        Some((pc, rbp.checked_add(16)?, peek(rbp, 8)?))
    }

    /// Stands for a context that could not be had.
    fn unknown(&self, instruction: &Instruction) -> Origin {
        let node = self.shared.table.line(Frame::UNKNOWN).unwrap_or(0);
        Origin {
            context: node,
            line: node,
            instruction: instruction.bytes,
            initialising: false,
        }
    }

    /// Whether an access fills an object that was allocated since `top` was the buffer's. Others are told by their bytecodes, in the report.
    fn initialises(access: &Access, top: u64, buffer: Buffer) -> bool {
        let new = access.address() >= top && top >= buffer.start;
        new && access.kind().stores() && buffer.holds(access.address())
    }

    /// After a collection has begun nothing is where it was.
    fn forget_moved(&mut self) {
        let now = self.shared.collections.load(Acquire);
        if self.thread.generation == now {
            return;
        }
        self.thread.generation = now;
        self.thread
            .watches
            .end_all(End::Collection, &self.shared.tally());
        (0..WATCHES).for_each(|slot| self.release(slot));
    }

    fn end(&mut self, slot: usize, why: End) {
        self.thread.watches.end(slot, why, &self.shared.tally());
        self.release(slot);
    }

    /// Lets a register rest.
    fn release(&mut self, slot: usize) {
        if let Some(register) = self.thread.registers.get_mut(slot)
            && register.mode.take().is_some()
            && let Some(event) = register.event
        {
            event.rest();
        }
    }

    /// Lets the register for execution rest.
    fn rest(&mut self) {
        if let Some(event) = self.thread.execute {
            event.rest();
        }
    }

    fn break_at(&mut self, pc: u64) -> bool {
        let data = data(self.thread.number, EXECUTE);
        set(&mut self.thread.execute, Break::Execute(pc), data)
    }

    fn watch(&mut self, slot: usize, place: Place, mode: Mode) -> bool {
        let what = match mode {
            Mode::ReadWrite => Break::ReadWrite(place.start(), place.len()),
            Mode::Write => Break::Write(place.start(), place.len()),
        };
        let data = data(self.thread.number, slot as u64);
        let Some(Register {
            event, mode: is, ..
        }) = self.thread.registers.get_mut(slot)
        else {
            return false;
        };
        let done = set(event, what, data);
        *is = done.then_some(mode);
        done
    }

    fn buffer(&self) -> Buffer {
        self.thread
            .java
            .map_or(Buffer::default(), |java| self.shared.vm.buffer(java))
    }

    fn mounted(&self) -> u64 {
        self.thread
            .java
            .map_or(0, |java| self.shared.vm.mounted(java))
    }
}

/// Has a register wait for something, opened if it is not yet.
fn set(event: &mut Option<Event>, what: Break, data: u64) -> bool {
    match *event {
        Some(open) => open.change(what, data),
        None => match Event::break_on(what, data) {
            Ok(new) if threads::is_fair(new.descriptor()) => {
                *event = Some(new);
                true
            }
            Ok(new) => {
                new.close();
                false
            }
            Err(_) => false,
        },
    }
}
