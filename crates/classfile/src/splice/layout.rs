//! Where everything goes: positions of the old instructions and the inserted code in the new method, long jumps, and the code
//! itself. The buffers are kept from method to method.

use super::{At, MethodEdit, Plain};
use crate::Error;
use crate::class::Code;
use crate::insn::{self, *};
use std::ops::Range;

/// Flag: an instruction starts at this bci.
const START: u8 = 1;
/// Flag: the instruction before this bci can complete normally, or (bci 0) the method is entered here.
const FALLS_IN: u8 = 2;

// Order of the insertions at one bci: the second part of the sort key. Entry code and FallThrough code never meet.
const FALL_THROUGH: u64 = 0;
const TAKEN: u64 = 1;
const BEFORE: u64 = 2;
const TAKEN_GOTO: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JumpKind {
    Branch,
    Goto,
    /// A goto that became a goto_w.
    Widened,
    /// goto_w in the original.
    GotoW,
    Switch,
}

#[derive(Clone, Copy, Debug)]
struct Jump {
    from: u16,
    /// Unused for a switch.
    target: u16,
    kind: JumpKind,
}

/// Code that runs when a conditional jump or a switch goes from `from` to `target`.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    /// It stands in front of this instruction: `target`, unless that is too far for a 16-bit jump.
    pub(super) home: u16,
    from: u16,
    pub(super) target: u16,
    /// Its insertions, in [`Layout::order`].
    insertions: Range<usize>,
    /// Bytes of the insertions.
    len: u32,
    /// Where it stands in the new code.
    pub(super) at: u32,
}

/// A bci where something is inserted or an instruction may change its length.
#[derive(Clone, Debug, Default)]
struct Site {
    bci: u16,
    /// In `Layout::order`.
    fall_through: Range<usize>,
    /// In `Layout::taken`.
    taken: Range<usize>,
    /// In `Layout::order`.
    before: Range<usize>,
    /// Length in the old code, if the instruction itself is rewritten.
    rewritten: Option<u32>,
    /// Where ranges that begin or end here begin or end in the new code.
    boundary: u32,
    /// Position of the instruction itself.
    instruction: u32,
}

#[derive(Debug, Default)]
pub(super) struct Layout {
    flags: Vec<u8>,
    /// Position of each old bci in the new code: where jumps to it lead; and the new length.
    label: Vec<u32>,
    jumps: Vec<Jump>,
    /// Sort keys of the insertions: bci, kind, from, index in the edit.
    order: Vec<u64>,
    /// By (home, target, from), those whose home is not their target first.
    pub(super) taken: Vec<Taken>,
    /// Some Taken code is not in front of its target.
    has_far: bool,
    sites: Vec<Site>,
}

impl Layout {
    /// Finds the new positions.
    pub(super) fn plan(
        &mut self,
        code: &Code,
        edit: &MethodEdit,
        has_frames: bool,
    ) -> Result<(), Plain> {
        self.decode(code.code)?;
        self.sort(code.code, edit)?;
        // Each round makes at least one goto long or moves Taken code; 64 rounds are far more than a method of 64 KB needs.
        for _ in 0..64 {
            self.find_sites(code.code)?;
            self.assign(code.code, edit)?;
            if self.len() > 0xffff {
                return Err(Plain::CodeTooLarge);
            }
            if self.len() <= 0x7fff || !self.lengthen(code, has_frames)? {
                return Ok(());
            }
        }
        Err(Plain::FarBranch)
    }

    /// Length of the new code.
    pub(super) fn len(&self) -> u32 {
        self.label.last().copied().unwrap_or(0)
    }

    /// Whether the method has a switch.
    pub(super) fn has_switch(&self) -> bool {
        self.jumps.iter().any(|jump| jump.kind == JumpKind::Switch)
    }

    /// Whether some Taken code is not in front of its target.
    pub(super) fn has_far(&self) -> bool {
        self.has_far
    }

    fn decode(&mut self, code: &[u8]) -> Result<(), Plain> {
        self.flags.clear();
        self.flags.resize(code.len() + 1, 0);
        self.jumps.clear();
        self.flags[0] = FALLS_IN;
        let mut at = 0;
        while at < code.len() {
            let len = insn::insn_len(code, at)?;
            self.flags[at] |= START;
            let kind = match code[at] {
                IFEQ..=IF_ACMPNE | IFNULL | IFNONNULL => Some(JumpKind::Branch),
                GOTO => Some(JumpKind::Goto),
                GOTO_W => Some(JumpKind::GotoW),
                TABLESWITCH | LOOKUPSWITCH => Some(JumpKind::Switch),
                JSR | JSR_W | RET => return Err(Plain::JsrRet),
                WIDE if code[at + 1] == RET => return Err(Plain::JsrRet),
                _ => None,
            };
            let falls = match kind {
                None => !matches!(code[at], IRETURN..=RETURN | ATHROW),
                Some(kind) => {
                    let target = match insn::flow(code, at)? {
                        Flow::Branch(target) | Flow::Goto(target) => target,
                        _ => 0,
                    };
                    self.jumps.push(Jump {
                        from: at as u16,
                        target,
                        kind,
                    });
                    kind == JumpKind::Branch
                }
            };
            at += len;
            if falls {
                self.flags[at] |= FALLS_IN;
            }
        }
        // A method that falls off its end has no valid place for code behind its last instruction.
        if self.flags[code.len()] & FALLS_IN != 0 {
            return Err(Plain::Malformed(Error::CodeEnd(code.len())));
        }
        for jump in &self.jumps {
            if jump.kind != JumpKind::Switch {
                self.check_start(jump.target)?;
            } else if let Flow::Switch {
                default,
                mut targets,
            } = insn::flow(code, usize::from(jump.from))?
            {
                self.check_start(default)?;
                targets.try_for_each(|target| self.check_start(target).map(drop))?;
            }
        }
        Ok(())
    }

    pub(super) fn check_start(&self, bci: u16) -> Result<u16, Plain> {
        match self.flags.get(usize::from(bci)) {
            Some(flags) if flags & START != 0 => Ok(bci),
            _ => Err(Plain::Malformed(Error::Format(
                "a position inside an instruction",
            ))),
        }
    }

    /// Orders the insertions and groups those at jumps.
    fn sort(&mut self, code: &[u8], edit: &MethodEdit) -> Result<(), Plain> {
        self.order.clear();
        for (i, (at, _)) in edit.insertions.iter().enumerate() {
            let (bci, kind, from) = match *at {
                At::Entry => (0, FALL_THROUGH, 0),
                At::Before(bci) => (bci, BEFORE, 0),
                At::FallThrough(0) => return Err(Plain::BadInsertion(0)),
                At::FallThrough(bci) => (bci, FALL_THROUGH, 0),
                At::Taken { from, target } => {
                    self.check_start(from)
                        .map_err(|_| Plain::BadInsertion(from))?;
                    let (found, kind, bci) = match insn::flow(code, usize::from(from))? {
                        Flow::Goto(goes_to) => (goes_to == target, TAKEN_GOTO, from),
                        Flow::Branch(goes_to) => (goes_to == target, TAKEN, target),
                        Flow::Switch {
                            default,
                            mut targets,
                        } => (
                            default == target || targets.any(|t| t == target),
                            TAKEN,
                            target,
                        ),
                        _ => (false, TAKEN, target),
                    };
                    if !found {
                        return Err(Plain::BadInsertion(from));
                    }
                    (bci, kind, from)
                }
            };
            let flags = self.flags.get(usize::from(bci)).copied().unwrap_or(0);
            if flags & START == 0 {
                return Err(Plain::BadInsertion(bci));
            }
            let nothing_falls = kind == FALL_THROUGH && flags & FALLS_IN == 0;
            if nothing_falls || bytes_of(edit, i as u64).is_empty() {
                continue;
            }
            let (bci, from, i) = (u64::from(bci), u64::from(from), i as u64);
            self.order
                .push((bci << 48) | (kind << 46) | (from << 30) | (i & 0x3fff_ffff));
        }
        self.order.sort_unstable();

        self.taken.clear();
        self.has_far = false;
        let mut i = 0;
        while let Some(&key) = self.order.get(i) {
            let rest = &self.order[i..];
            let count = rest
                .iter()
                .take_while(|&other| other >> 30 == key >> 30)
                .count();
            if (key >> 46) & 3 == TAKEN {
                let (target, from) = ((key >> 48) as u16, (key >> 30) as u16);
                let len = rest[..count]
                    .iter()
                    .map(|&key| bytes_of(edit, key).len() as u32)
                    .sum();
                let insertions = i..i + count;
                self.taken.push(Taken {
                    home: target,
                    from,
                    target,
                    insertions,
                    len,
                    at: 0,
                });
            }
            i += count;
        }
        Ok(())
    }

    /// Makes the list of sites from the sorted insertions, the Taken code and the jumps.
    fn find_sites(&mut self, code: &[u8]) -> Result<(), Plain> {
        self.sites.clear();
        let rewritten = |jump: &&Jump| matches!(jump.kind, JumpKind::Switch | JumpKind::Widened);
        let mut rewritten = self.jumps.iter().filter(rewritten).peekable();
        let (mut next, mut next_taken) = (0, 0);
        loop {
            let inserted = self.order.get(next).map(|key| (key >> 48) as u16);
            let taken = self.taken.get(next_taken).map(|taken| taken.home);
            let jump = rewritten.peek().map(|jump| jump.from);
            let Some(bci) = [inserted, taken, jump].into_iter().flatten().min() else {
                break;
            };
            let mut site = Site {
                bci,
                ..Site::default()
            };
            site.fall_through = self.run(next, bci, FALL_THROUGH);
            let taken_insertions = self.run(site.fall_through.end, bci, TAKEN);
            site.before = self.run(taken_insertions.end, bci, TAKEN_GOTO);
            next = site.before.end;
            let here = self.taken[next_taken..]
                .iter()
                .take_while(|taken| taken.home == bci);
            site.taken = next_taken..next_taken + here.count();
            next_taken = site.taken.end;
            if jump == Some(bci) {
                rewritten.next();
                site.rewritten = Some(insn::insn_len(code, usize::from(bci))? as u32);
            }
            self.sites.push(site);
        }
        Ok(())
    }

    /// The insertions from `start` on that are at `bci` and of a kind up to `kind`.
    fn run(&self, start: usize, bci: u16, kind: u64) -> Range<usize> {
        let last = (u64::from(bci) << 2) | kind;
        start
            ..start
                + self.order[start..]
                    .iter()
                    .take_while(|&key| key >> 46 <= last)
                    .count()
    }

    /// Computes positions from the sites.
    fn assign(&mut self, code: &[u8], edit: &MethodEdit) -> Result<(), Plain> {
        self.label.clear();
        let mut new = edit.test_len();
        for site in &mut self.sites {
            let bci = u32::from(site.bci);
            let old = self.label.len() as u32;
            // Without rewriting, the site before has put down its own label, and `old` is the byte after it.
            self.label.extend(new..new + (bci - old));
            new += bci - old;
            site.boundary = new;
            new += total(edit, &self.order[site.fall_through.clone()]);
            if let [first @ .., last] = &mut self.taken[site.taken.clone()] {
                if self.flags[bci as usize] & FALLS_IN != 0 {
                    new += 3; // goto over the Taken code
                }
                if bci == 0 {
                    site.boundary = new;
                }
                for taken in first {
                    taken.at = new;
                    new += taken.len + if taken.home == taken.target { 3 } else { 5 };
                }
                last.at = new;
                new += last.len + if last.home == last.target { 0 } else { 5 };
            }
            if bci == 0 && site.taken.is_empty() {
                site.boundary = new;
            }
            self.label.push(new);
            new += total(edit, &self.order[site.before.clone()]);
            site.instruction = new;
            match site.rewritten {
                None => new += 1,
                Some(len) => {
                    self.label
                        .extend(std::iter::repeat_n(new, len as usize - 1));
                    new += match code[bci as usize] {
                        GOTO => 5,
                        _ => {
                            let padding = |at: u32| 3 - (at & 3);
                            len - padding(bci) + padding(new)
                        }
                    };
                }
            }
            if new > 0xf_ffff {
                return Err(Plain::CodeTooLarge); // long before u32 overflows
            }
        }
        let old = self.label.len() as u32;
        self.label.extend(new..=new + (code.len() as u32 - old));
        Ok(())
    }

    /// Makes jumps that no longer reach their targets long. Returns whether anything changed.
    fn lengthen(&mut self, code: &Code, has_frames: bool) -> Result<bool, Plain> {
        let mut changed = false;
        let mut far = Vec::new();
        for i in 0..self.jumps.len() {
            let jump = self.jumps[i];
            if !matches!(jump.kind, JumpKind::Goto | JumpKind::Branch) {
                continue;
            }
            let from = self.instruction(jump.from);
            if i16::try_from(i64::from(self.destination(&jump)) - i64::from(from)).is_ok() {
                continue;
            }
            changed = true;
            if jump.kind == JumpKind::Goto {
                self.jumps[i].kind = JumpKind::Widened;
            } else {
                far.push((jump, self.find_home(code, &jump, from, has_frames)?));
            }
        }
        for (jump, home) in far {
            self.has_far = true;
            match self
                .taken
                .iter_mut()
                .find(|t| (t.from, t.target) == (jump.from, jump.target))
            {
                Some(taken) => taken.home = home,
                None => self.taken.push(Taken {
                    home,
                    from: jump.from,
                    target: jump.target,
                    insertions: 0..0,
                    len: 0,
                    at: 0,
                }),
            }
        }
        self.taken
            .sort_by_key(|t| (t.home, t.home == t.target, t.target, t.from));
        Ok(changed)
    }

    /// A place in reach of a conditional jump for its Taken code, which then goes on by goto_w: in front of an instruction that
    /// has a frame (so that the goto over the inserted code is allowed), and which only such ranges cover as cover the target (so
    /// that the target's state suits their handlers).
    fn find_home(
        &self,
        code: &Code,
        jump: &Jump,
        from: u32,
        has_frames: bool,
    ) -> Result<u16, Plain> {
        // Every jump target has a frame, or the method does not pass the verifier; those are candidates enough.
        let candidates = self
            .jumps
            .iter()
            .filter(|j| j.kind != JumpKind::Switch)
            .map(|j| j.target);
        let after_goto = self
            .jumps
            .iter()
            .filter(|j| !has_frames && matches!(j.kind, JumpKind::Goto | JumpKind::Widened));
        let after_goto = after_goto.map(|j| j.from + 3);
        let distance =
            |home: u16| (i64::from(self.label[usize::from(home)]) - i64::from(from)).abs();
        candidates
            .chain(after_goto)
            .filter(|&home| home != 0 && home != jump.target)
            // Half of the reach: the code in between may yet grow.
            .filter(|&home| distance(home) < 0x4000 && self.check_start(home).is_ok())
            .filter(|&home| {
                code.exceptions().all(|entry| {
                    let covers = |bci| (entry.start..entry.end).contains(&bci);
                    !covers(home) || covers(jump.target)
                })
            })
            .min_by_key(|&home| distance(home))
            .ok_or(Plain::FarBranch)
    }

    /// Appends the new code.
    pub(super) fn emit(
        &self,
        code: &[u8],
        edit: &MethodEdit,
        out: &mut Vec<u8>,
    ) -> Result<(), Plain> {
        let base = out.len();
        if let Some(test) = edit.test() {
            out.extend(test);
            out.extend([IFEQ, 0, 0]); // the copy's place is not known here
        }
        let mut copied = 0;
        for site in &self.sites {
            let bci = usize::from(site.bci);
            out.extend(&code[copied..bci]);
            copied = bci;
            let insert = |out: &mut Vec<u8>, keys: &Range<usize>| {
                self.order[keys.clone()]
                    .iter()
                    .for_each(|&key| out.extend(bytes_of(edit, key)));
            };
            insert(out, &site.fall_through);
            let taken = &self.taken[site.taken.clone()];
            let here = |out: &Vec<u8>| (out.len() - base) as u32;
            if !taken.is_empty() && self.flags[bci] & FALLS_IN != 0 {
                near_goto(here(out), self.label[bci], out)?;
            }
            for (i, taken_code) in taken.iter().enumerate() {
                insert(out, &taken_code.insertions);
                if taken_code.home != taken_code.target {
                    let target = self.label[usize::from(taken_code.target)];
                    let offset = target.wrapping_sub(here(out));
                    out.push(GOTO_W);
                    out.extend(offset.to_be_bytes());
                } else if i + 1 < taken.len() {
                    near_goto(here(out), self.label[bci], out)?;
                }
            }
            insert(out, &site.before);
            if let Some(len) = site.rewritten {
                copied = bci + len as usize;
                if code[bci] == GOTO {
                    out.extend([GOTO_W, 0, 0, 0, 0]);
                } else {
                    let padding = 3 - (here(out) as usize & 3);
                    out.push(code[bci]);
                    out.extend(std::iter::repeat_n(0, padding));
                    out.extend(&code[(bci + 4) & !3..copied]);
                }
            }
        }
        out.extend(&code[copied..]);
        self.patch(code, &mut out[base..])
    }

    /// Writes the displacements of all jumps.
    fn patch(&self, old: &[u8], code: &mut [u8]) -> Result<(), Plain> {
        let mut sites = self.sites.iter().peekable();
        for jump in &self.jumps {
            while sites.next_if(|site| site.bci < jump.from).is_some() {}
            let from = match sites.peek() {
                Some(site) if site.bci == jump.from => site.instruction,
                _ => self.label[usize::from(jump.from)],
            };
            let at = from as usize;
            match jump.kind {
                JumpKind::Branch | JumpKind::Goto => {
                    let offset = i64::from(self.destination(jump)) - i64::from(from);
                    let offset = i16::try_from(offset).map_err(|_| Plain::FarBranch)?;
                    code[at + 1..at + 3].copy_from_slice(&offset.to_be_bytes());
                }
                JumpKind::Widened | JumpKind::GotoW => {
                    let offset = self.destination(jump).wrapping_sub(from);
                    code[at + 1..at + 5].copy_from_slice(&offset.to_be_bytes());
                }
                JumpKind::Switch => {
                    let Flow::Switch { default, targets } =
                        insn::flow(old, usize::from(jump.from))?
                    else {
                        continue;
                    };
                    let mut put = |at: usize, target: u16| {
                        let offset = self
                            .destination(&Jump { target, ..*jump })
                            .wrapping_sub(from);
                        code[at..at + 4].copy_from_slice(&offset.to_be_bytes());
                    };
                    let table = (at + 4) & !3;
                    put(table, default);
                    let (first, stride) = if old[usize::from(jump.from)] == TABLESWITCH {
                        (12, 4)
                    } else {
                        (12, 8)
                    };
                    for (i, target) in targets.enumerate() {
                        put(table + first + i * stride, target);
                    }
                }
            }
        }
        Ok(())
    }

    /// New position of a range's begin or end.
    pub(super) fn boundary(&self, bci: u16) -> Result<u16, Plain> {
        if usize::from(bci) + 1 != self.label.len() {
            self.check_start(bci)?;
        }
        let at = self
            .site(bci)
            .map_or_else(|| self.label[usize::from(bci)], |site| site.boundary);
        Ok(at as u16)
    }

    /// Where jumps to an instruction lead.
    pub(super) fn label_of_instruction(&self, bci: u16) -> Result<u16, Plain> {
        self.check_start(bci)
            .map(|bci| self.label[usize::from(bci)] as u16)
    }

    /// New position of the instruction itself.
    pub(super) fn position_of_instruction(&self, bci: u16) -> Result<u16, Plain> {
        self.check_start(bci)
            .map(|bci| self.instruction(bci) as u16)
    }

    /// New position of any bci up to and including the code's length.
    pub(super) fn label(&self, bci: u32) -> Result<u16, Plain> {
        match self.label.get(bci as usize) {
            Some(&label) => Ok(label as u16),
            None => Err(Plain::Malformed(Error::Format(
                "a position beyond the code",
            ))),
        }
    }

    fn site(&self, bci: u16) -> Option<&Site> {
        self.sites
            .binary_search_by_key(&bci, |site| site.bci)
            .ok()
            .map(|i| &self.sites[i])
    }

    /// New position of the instruction itself, behind what is inserted before it.
    fn instruction(&self, bci: u16) -> u32 {
        self.site(bci)
            .map_or_else(|| self.label[usize::from(bci)], |site| site.instruction)
    }

    /// Where the jump leads: to its Taken code or to its target's label.
    fn destination(&self, jump: &Jump) -> u32 {
        let key = (jump.target, jump.from);
        let taken = if self.has_far {
            self.taken.iter().position(|t| (t.target, t.from) == key)
        } else {
            self.taken
                .binary_search_by_key(&key, |t| (t.target, t.from))
                .ok()
        };
        taken.map_or_else(
            || self.label[usize::from(jump.target)],
            |i| self.taken[i].at,
        )
    }
}

fn bytes_of(edit: &MethodEdit, key: u64) -> &[u8] {
    let (_, range) = &edit.insertions[(key & 0x3fff_ffff) as usize];
    &edit.code[range.start as usize..range.end as usize]
}

fn total(edit: &MethodEdit, keys: &[u64]) -> u32 {
    keys.iter()
        .map(|&key| bytes_of(edit, key).len() as u32)
        .sum()
}

fn near_goto(from: u32, to: u32, out: &mut Vec<u8>) -> Result<(), Plain> {
    let offset = i16::try_from(to - from).map_err(|_| Plain::FarBranch)?;
    out.push(GOTO);
    out.extend(offset.to_be_bytes());
    Ok(())
}
