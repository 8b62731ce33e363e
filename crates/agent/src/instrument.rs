//! Puts the probes into a class: parse, control flow, numbering, splice. Pure: no JVM; the same bytes and settings give the same result.
//!
//! Probe code (JVMS 6.5), with locals from max_locals on: `r` (int, the path register), `s` (long, the engine's state), `n` (turns of
//! run loops), as far as a method needs them: see ARCHITECTURE.md, "From bytecode to a path ID". Nothing is added to the class but constants and
//! exception handlers: no field, no method. In burst mode a method's code stands twice, with probes and as it was, and its entry chooses.

use crate::memory::dense_limit;
use borescope_cfg::flow::Flow;
use borescope_cfg::{Builder, Probe, Then, Turns};
use borescope_classfile::insn::{
    ATHROW, BIPUSH, DUP2, IADD, ICONST_0, IINC, ILOAD, ILOAD_0, INVOKESTATIC, ISTORE, ISTORE_0,
    LADD, LCMP, LCONST_0, LCONST_1, LDC_W, LLOAD, LLOAD_0, LSTORE, LSTORE_0, SIPUSH, WIDE,
};
use borescope_classfile::{Buffers, ClassFile, ExtraLocal, MethodEdit, Plain, Splicer};
use borescope_spool::layout::Engine;
use borescope_spool::meta::{self, Counting};

/// The helper that probes call.
pub const HELPER: &str = "java/lang/BorescopeProbe";
/// Newest class file version known (JDK 26); newer classes pass through.
pub const NEWEST_MAJOR: u16 = 70;
/// Methods of at most this many paths count in slots, if they can.
const MOST_SLOTS: u32 = 64;

/// Numbers of probe sites whose slow path C2 may make a trap of; 0 is for those where it may not. Sites of one number share a limit of traps
/// (java/probe, BorescopeTrap).
const TRAP_SITES: u32 = 1024;

/// How classes are to be instrumented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Counting engine.
    pub engine: Engine,
    /// Length of the longest path sequence counted.
    pub k: u32,
    /// Short branches are not told apart.
    pub merge: bool,
    /// Methods with a single path and no loop are counted too.
    pub straight_line: bool,
    /// Burst mode: only activations chosen at random count in rows.
    pub burst: bool,
}

impl Settings {
    /// The default ones.
    pub fn new(engine: Engine, k: u32) -> Self {
        Self {
            engine,
            k,
            merge: true,
            straight_line: false,
            burst: false,
        }
    }
}

/// Slots from 0 on, for whoever instruments a class without a JVM.
pub fn numbered(counts: &[u32]) -> Option<Vec<u32>> {
    let mut next = 0u32;
    let first = |&count: &u32| {
        let first = next;
        next = next.checked_add(count)?;
        Some(first)
    };
    counts.iter().map(first).collect()
}

/// Instruments one class after another, keeping its buffers.
#[derive(Default)]
pub struct Instrumenter {
    flows: Builder,
    edit: MethodEdit,
    code: Vec<u8>,
    buffers: Buffers,
}

/// What became of a class.
#[derive(Default)]
pub struct Instrumented {
    /// The new class file; `None` = nothing in it could be instrumented.
    pub bytes: Option<Vec<u8>>,
    /// Instrumented methods, with the numbering of their IDs.
    pub methods: Vec<meta::Method>,
    /// Indices of methods that count in rows and have run loops.
    pub with_runs: Vec<u32>,
    /// Methods that stay plain.
    pub skipped: Vec<meta::Skipped>,
    /// Methods without probes because they have a single path and no loop.
    pub straight_line: u32,
}

impl Instrumented {
    fn skip(&mut self, class: &str, method: &borescope_classfile::Method<'_>, reason: String) {
        self.skipped.push(meta::Skipped {
            class: class.to_owned(),
            method: method.name().into_owned(),
            descriptor: method.descriptor().into_owned(),
            reason,
        });
    }
}

/// Why a class is left alone as a whole, if it is.
pub fn refuse(class: &ClassFile<'_>) -> Option<String> {
    let major = class.major();
    (major > NEWEST_MAJOR).then(|| {
        format!("class file version {major} is newer than this borescope knows ({NEWEST_MAJOR})")
    })
}

/// A method that gets probes.
struct Planned {
    /// Its place in the class.
    at: usize,
    flow: Flow,
    probes: Vec<Probe>,
    way: Way,
    /// Burst mode: only activations chosen at random count, the others run in a copy of the code as it was.
    sampled: bool,
    /// The type of `n`, if the method has run loops.
    turns: Option<Turns>,
}

impl Planned {
    fn counting(&self) -> Counting {
        match self.way {
            Way::Once | Way::Slots => Counting::Slots,
            Way::Rows(..) if self.sampled => Counting::Groups,
            Way::Rows(..) => Counting::Rows,
        }
    }
}

/// Whether each activation emits one ID.
fn emits_once(probes: &[Probe]) -> bool {
    probes.iter().all(|probe| match probe {
        Probe::Emit { then, .. } => *then == Then::Leave,
        Probe::Turn { .. } | Probe::Run { .. } | Probe::Unwind { .. } => false,
        Probe::Enter { .. } | Probe::Add { .. } | Probe::Caught { .. } => true,
    })
}

/// The type of `n`, if the method has run loops.
fn turns(probes: &[Probe]) -> Option<Turns> {
    probes.iter().find_map(|probe| match probe {
        Probe::Enter { turns, .. } => *turns,
        _ => None,
    })
}

impl Instrumenter {
    /// Instruments a class. `reserve` gives slots: so many for each method that gets probes, and the index of each first one; the same for
    /// the same class. `None` from it, as from here: there are no more.
    pub fn instrument(
        &mut self,
        class: &ClassFile<'_>,
        settings: Settings,
        reserve: impl FnOnce(&[u32]) -> Option<Vec<u32>>,
    ) -> Option<Instrumented> {
        let name = class.this_name().into_owned();
        let mut out = Instrumented::default();
        let mut planned = Vec::new();
        for (at, method) in class.methods().iter().enumerate() {
            let Some(code) = method.code() else { continue };
            let flow_settings = borescope_cfg::Settings {
                merge: settings.merge,
                // Before the call of the other constructor, no handler can have a frame of its own.
                runs: settings.engine == Engine::Automaton && method.name() != "<init>",
            };
            match self.flows.build(class, &code, flow_settings) {
                Err(e) => out.skip(&name, method, e.to_string()),
                Ok((flow, _)) if flow.num_paths == 1 && !settings.straight_line => {
                    out.straight_line += 1;
                }
                Ok((flow, probes)) => {
                    let way = Way::new(settings, flow.num_paths, &probes);
                    planned.push(Planned {
                        at,
                        way,
                        sampled: settings.burst && way != Way::Once,
                        turns: turns(&probes),
                        flow,
                        probes,
                    });
                }
            }
        }
        if planned.is_empty() {
            return Some(out);
        }
        let slots = |plan: &Planned| plan.counting().slots(plan.flow.num_paths);
        let indices = reserve(&planned.iter().map(slots).collect::<Vec<_>>())?;
        let mut splicer = Splicer::with_buffers(class, std::mem::take(&mut self.buffers));
        for (mut plan, index) in planned.into_iter().zip(indices) {
            let method = &class.methods()[plan.at];
            let Some(code) = method.code() else { continue };
            let mut splice = |plan: &Planned| {
                self.write(&mut splicer, code.max_locals, plan, index)
                    .and_then(|()| splicer.edit(plan.at, &self.edit))
            };
            let mut done = splice(&plan);
            if done.is_err() && plan.sampled {
                // Its code may be too long to stand twice: then all its activations count.
                plan.sampled = false;
                done = splice(&plan);
            }
            match done {
                Err(e) => out.skip(&name, method, e.to_string()),
                Ok(()) => {
                    let counting = plan.counting();
                    if counting != Counting::Slots && plan.turns.is_some() {
                        out.with_runs.push(index);
                    }
                    out.methods.push(meta::Method {
                        index,
                        counting,
                        name: method.name().into_owned(),
                        descriptor: method.descriptor().into_owned(),
                        lines: code.line_numbers(),
                        flow: plan.flow,
                    });
                }
            }
        }
        let (bytes, buffers) = splicer.finish_keeping();
        self.buffers = buffers;
        out.bytes = (!out.methods.is_empty()).then_some(bytes);
        Some(out)
    }

    /// Fills `self.edit` with the probes' code.
    fn write(
        &mut self,
        pool: &mut Splicer<'_>,
        max_locals: u16,
        plan: &Planned,
        index: u32,
    ) -> Result<(), Plain> {
        let (way, turns) = (plan.way, plan.turns);
        max_locals
            .checked_add(5)
            .filter(|end| *end < u16::MAX - 1)
            .ok_or(Plain::LocalsFull)?;
        let (r, s, n) = (max_locals, max_locals + 1, max_locals + 3);
        const INT: ExtraLocal = ExtraLocal::Int;
        const LONG: ExtraLocal = ExtraLocal::Long;
        self.edit.clear();
        self.edit.extra_locals = match (way, turns) {
            (Way::Once, _) => &[INT],
            (_, None) => &[INT, LONG],
            (_, Some(Turns::Int)) => &[INT, LONG, INT],
            (_, Some(Turns::Long)) => &[INT, LONG, LONG],
        };
        // s, r and one addend or site; or what was thrown, s, r, n and three constants.
        self.edit.extra_stack = if turns.is_some() { 9 } else { 4 };
        let write = Writer {
            way,
            sampled: plan.sampled,
            index,
            paths: plan.flow.num_paths,
            r,
            s,
            n,
            turns,
        };
        let code = &mut self.code;
        if plan.sampled {
            code.clear();
            push(code, pool, index)?;
            call(code, pool, "enterBurst", "(I)J")?;
            code.push(DUP2);
            local(code, LSTORE, s);
            code.extend([LCONST_0, LCMP]);
            self.edit.keep_copy(code);
        }
        for (ordinal, probe) in (0..).zip(&plan.probes) {
            code.clear();
            let site = 1 + index.wrapping_add(ordinal) % (TRAP_SITES - 1);
            write.probe(code, pool, probe, site)?;
            match (probe, probe.at()) {
                (Probe::Unwind { ranges, .. }, _) => self.edit.unwind(ranges, code),
                (_, Some(at)) => self.edit.insert(at, code),
                (_, None) => {}
            }
        }
        Ok(())
    }
}

/// How a method counts: which of the helper's methods its probes call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One ID an activation, in a slot: no state.
    Once,
    /// In slots; the state is their address.
    Slots,
    /// In rows: names of enter, hit, exit and run.
    Rows(
        &'static str,
        &'static str,
        &'static str,
        Option<&'static str>,
    ),
}

impl Way {
    fn new(settings: Settings, num_paths: u32, probes: &[Probe]) -> Self {
        let engine = settings.engine;
        let few = engine == Engine::Automaton && num_paths <= MOST_SLOTS;
        if few && emits_once(probes) {
            Self::Once
        } else if few && settings.k == 1 && !settings.burst {
            Self::Slots
        } else if engine.is_ksf() {
            Self::Rows("enterKsf", "hitKsf", "exitKsf", None)
        } else if num_paths > dense_limit(engine) {
            Self::Rows("enter", "hitHash", "exitHash", Some("runHash"))
        } else {
            Self::Rows("enter", "hit", "exit", Some("run"))
        }
    }
}

/// Writes the code of a method's probes.
struct Writer {
    way: Way,
    sampled: bool,
    index: u32,
    paths: u32,
    r: u16,
    s: u16,
    n: u16,
    turns: Option<Turns>,
}

impl Writer {
    fn probe(
        &self,
        code: &mut Vec<u8>,
        pool: &mut Splicer<'_>,
        probe: &Probe,
        site: u32,
    ) -> Result<(), Plain> {
        let (r, s) = (self.r, self.s);
        match *probe {
            Probe::Enter { value, .. } => {
                match self.way {
                    Way::Once => {}
                    // The state is there: it says that the activation was chosen.
                    Way::Rows(..) if self.sampled => {}
                    Way::Slots => {
                        push(code, pool, self.index)?;
                        call(code, pool, "slots", "(I)J")?;
                        local(code, LSTORE, s);
                    }
                    Way::Rows(enter, ..) => {
                        push(code, pool, self.index)?;
                        call(code, pool, enter, "(I)J")?;
                        local(code, LSTORE, s);
                    }
                }
                self.start(code, pool, value)?;
                self.no_turns(code);
            }
            Probe::Add { value, .. } => add(code, pool, r, value)?,
            Probe::Emit {
                add: value, then, ..
            } => {
                self.load_state(code);
                local(code, ILOAD, r);
                if value != 0 {
                    push(code, pool, value)?;
                    code.push(IADD);
                }
                match (self.way, then) {
                    (Way::Once, _) => call(code, pool, "count", "(I)V")?,
                    (Way::Slots, _) => call(code, pool, "countAt", "(JI)V")?,
                    (Way::Rows(_, _, exit, _), Then::Leave) => {
                        self.call_engine(code, pool, exit, "(JI)V")?;
                    }
                    (Way::Rows(_, "hit", ..), _) if !self.sampled => {
                        // What is thrown is rare itself.
                        push(code, pool, if then == Then::Continue { 0 } else { site })?;
                        call(code, pool, "hit", "(JII)J")?;
                        local(code, LSTORE, s);
                    }
                    (Way::Rows(_, hit, ..), _) => {
                        self.call_engine(code, pool, hit, "(JI)J")?;
                        local(code, LSTORE, s);
                    }
                }
                if let Then::Restart(value) = then {
                    self.start(code, pool, value)?;
                }
            }
            Probe::Turn { .. } => self.turn(code),
            Probe::Run { id, .. } => {
                self.run(code, pool, id, site)?;
                local(code, ILOAD, r);
                self.load_turns(code);
                push(code, pool, id)?;
                call(code, pool, "restart", self.typed("(III)I", "(IJI)I"))?;
                local(code, ISTORE, r);
                self.no_turns(code);
            }
            Probe::Unwind { id, .. } => {
                self.run(code, pool, id, 0)?;
                code.push(ATHROW);
            }
            Probe::Caught { value, .. } => {
                if matches!(self.way, Way::Rows(..)) {
                    self.load_state(code);
                    call(code, pool, "caught", "(J)V")?;
                }
                self.start(code, pool, value)?;
            }
        }
        Ok(())
    }

    /// r = value. Where there is no state, r holds the slot itself.
    fn start(&self, code: &mut Vec<u8>, pool: &mut Splicer<'_>, value: u32) -> Result<(), Plain> {
        let base = if self.way == Way::Once { self.index } else { 0 };
        push(code, pool, base + value)?;
        local(code, ISTORE, self.r);
        Ok(())
    }

    /// Calls a method of [`Way::Rows`], in burst mode its variant for chosen activations.
    fn call_engine(
        &self,
        code: &mut Vec<u8>,
        pool: &mut Splicer<'_>,
        name: &str,
        descriptor: &str,
    ) -> Result<(), Plain> {
        if self.sampled {
            call(code, pool, &format!("{name}Chosen"), descriptor)
        } else {
            call(code, pool, name, descriptor)
        }
    }

    /// What the helper's methods take first.
    fn load_state(&self, code: &mut Vec<u8>) {
        if self.way != Way::Once {
            local(code, LLOAD, self.s);
        }
    }

    /// Emits the turns of a run loop.
    fn run(
        &self,
        code: &mut Vec<u8>,
        pool: &mut Splicer<'_>,
        id: u32,
        site: u32,
    ) -> Result<(), Plain> {
        self.load_state(code);
        local(code, ILOAD, self.r);
        self.load_turns(code);
        push(code, pool, id)?;
        match self.way {
            Way::Rows(_, _, _, Some("run")) if !self.sampled => {
                push(code, pool, self.paths)?;
                push(code, pool, site)?;
                call(code, pool, "run", self.typed("(JIIIII)J", "(JIJIII)J"))?;
                local(code, LSTORE, self.s);
            }
            Way::Rows(_, _, _, Some(run)) => {
                push(code, pool, self.paths)?;
                self.call_engine(code, pool, run, self.typed("(JIIII)J", "(JIJII)J"))?;
                local(code, LSTORE, self.s);
            }
            _ => call(code, pool, "runAt", self.typed("(JIII)V", "(JIJI)V"))?,
        }
        Ok(())
    }

    fn typed(&self, int: &'static str, long: &'static str) -> &'static str {
        match self.turns {
            Some(Turns::Long) => long,
            _ => int,
        }
    }

    fn load_turns(&self, code: &mut Vec<u8>) {
        local(
            code,
            match self.turns {
                Some(Turns::Long) => LLOAD,
                _ => ILOAD,
            },
            self.n,
        );
    }

    /// n += 1.
    fn turn(&self, code: &mut Vec<u8>) {
        match self.turns {
            Some(Turns::Long) => {
                local(code, LLOAD, self.n);
                code.extend([LCONST_1, LADD]);
                local(code, LSTORE, self.n);
            }
            _ if self.n < 256 => code.extend([IINC, self.n as u8, 1]),
            _ => {
                code.extend([WIDE, IINC]);
                code.extend(self.n.to_be_bytes());
                code.extend([0, 1]);
            }
        }
    }

    /// n = 0.
    fn no_turns(&self, code: &mut Vec<u8>) {
        let (zero, store) = match self.turns {
            None => return,
            Some(Turns::Int) => (ICONST_0, ISTORE),
            Some(Turns::Long) => (LCONST_0, LSTORE),
        };
        code.push(zero);
        local(code, store, self.n);
    }
}

/// iload, lload, istore or lstore in its shortest form.
fn local(code: &mut Vec<u8>, op: u8, index: u16) {
    if index < 4 {
        let first = match op {
            ILOAD => ILOAD_0,
            LLOAD => LLOAD_0,
            ISTORE => ISTORE_0,
            _ => LSTORE_0,
        };
        code.push(first + index as u8);
    } else if index < 256 {
        code.extend([op, index as u8]);
    } else {
        code.extend([WIDE, op]);
        code.extend(index.to_be_bytes());
    }
}

/// Pushes a constant: iconst, bipush, sipush or ldc_w.
fn push(code: &mut Vec<u8>, pool: &mut Splicer<'_>, value: u32) -> Result<(), Plain> {
    match value {
        0..=5 => code.push(ICONST_0 + value as u8),
        6..=127 => code.extend([BIPUSH, value as u8]),
        128..=32767 => {
            code.push(SIPUSH);
            code.extend((value as u16).to_be_bytes());
        }
        _ => {
            code.push(LDC_W);
            code.extend(pool.integer(value as i32)?.to_be_bytes());
        }
    }
    Ok(())
}

/// r += value.
fn add(code: &mut Vec<u8>, pool: &mut Splicer<'_>, r: u16, value: u32) -> Result<(), Plain> {
    if value <= 127 && r < 256 {
        code.extend([IINC, r as u8, value as u8]);
    } else if value <= 32767 {
        code.extend([WIDE, IINC]);
        code.extend(r.to_be_bytes());
        code.extend((value as u16).to_be_bytes());
    } else {
        local(code, ILOAD, r);
        push(code, pool, value)?;
        code.push(IADD);
        local(code, ISTORE, r);
    }
    Ok(())
}

fn call(
    code: &mut Vec<u8>,
    pool: &mut Splicer<'_>,
    name: &str,
    descriptor: &str,
) -> Result<(), Plain> {
    let method = pool.methodref(HELPER, name, descriptor)?;
    code.push(INVOKESTATIC);
    code.extend(method.to_be_bytes());
    Ok(())
}
