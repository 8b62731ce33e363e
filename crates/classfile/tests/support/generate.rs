//! Random methods over a small set of instructions, assembled to class files by hand (the library under test is not used).
#![allow(dead_code, missing_docs)] // each user takes a part

use borescope_classfile::insn::*;
use proptest::prelude::*;

/// How a block ends. Targets are taken modulo the number of blocks.
#[derive(Clone, Debug)]
pub enum End {
    Fall,
    /// Opcode of a conditional jump on one int or two.
    If(u8, usize),
    Goto(usize),
    GotoW(usize),
    TableSwitch(i32, Vec<usize>, usize),
    LookupSwitch(Vec<usize>, usize),
    Return,
    Throw,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub body: Vec<(u8, i8)>,
    pub padding: usize,
    pub end: End,
}

/// A static method of four ints. All locals are ints throughout, so every frame is known.
#[derive(Clone, Debug)]
pub struct Program {
    /// Of the class.
    pub name: String,
    pub major: u16,
    pub blocks: Vec<Block>,
    pub handlers: Vec<Block>,
    /// First and last block covered, and handler; in this order of priority.
    pub ranges: Vec<(usize, usize, usize)>,
    /// Frames are written as full frames instead of the shortest form.
    pub full_frames: bool,
}

pub struct Assembled {
    pub class: Vec<u8>,
    pub code: Vec<u8>,
}

fn end() -> impl Strategy<Value = End> {
    let target = 0..64usize;
    prop_oneof![
        3 => Just(End::Fall),
        6 => (prop_oneof![IFEQ..=IF_ICMPLE], target.clone()).prop_map(|(op, t)| End::If(op, t)),
        2 => target.clone().prop_map(End::Goto),
        1 => target.clone().prop_map(End::GotoW),
        1 => (-2..3i32, prop::collection::vec(target.clone(), 1..5), target.clone())
            .prop_map(|(low, targets, default)| End::TableSwitch(low, targets, default)),
        // HotSpot's verifier refuses a lookupswitch without cases that ends the code.
        1 => (prop::collection::vec(target.clone(), 1..5), target)
            .prop_map(|(targets, default)| End::LookupSwitch(targets, default)),
        1 => Just(End::Return),
        1 => Just(End::Throw),
    ]
}

fn block(max_padding: usize) -> impl Strategy<Value = Block> {
    let padding = prop_oneof![3 => Just(0), 1 => 0..=max_padding];
    (
        prop::collection::vec(any::<(u8, i8)>(), 0..6),
        padding,
        end(),
    )
        .prop_map(|(body, padding, end)| Block { body, padding, end })
}

pub fn program(
    blocks: std::ops::Range<usize>,
    max_padding: usize,
) -> impl Strategy<Value = Program> {
    (
        prop::sample::select(vec![45u16, 49, 50, 52, 61]),
        prop::collection::vec(block(max_padding), blocks),
        prop::collection::vec(block(0), 0..3),
        prop::collection::vec((0..64usize, 0..8usize, 0..64usize), 0..4),
        any::<bool>(),
    )
        .prop_map(|(major, blocks, handlers, ranges, full_frames)| Program {
            name: "Generated".into(),
            major,
            blocks,
            handlers,
            ranges,
            full_frames,
        })
}

impl Program {
    pub fn assemble(&self) -> Assembled {
        let n = self.blocks.len();
        let all = n + self.handlers.len();
        // Two passes: the first learns where the blocks start, with jumps to 0.
        let mut starts = vec![0usize; all + 1];
        let mut code = Vec::new();
        for _ in 0..2 {
            code.clear();
            for (i, block) in self.blocks.iter().chain(&self.handlers).enumerate() {
                starts[i] = code.len();
                let falls = matches!(block.end, End::Fall | End::If(..));
                let last = if falls && i + 1 >= n {
                    &End::Return
                } else {
                    &block.end
                };
                emit(&mut code, block, last, i >= n, &|target| starts[target % n]);
            }
            starts[all] = code.len();
        }
        let ranges = self
            .ranges
            .iter()
            .filter(|_| all > n)
            .map(|&(first, more, handler)| {
                let first = first % all;
                let end = (first + 1 + more).min(all);
                (starts[first], starts[end], starts[n + handler % (all - n)])
            });
        Assembled {
            class: self.class(&code, &starts, ranges.collect(), n),
            code,
        }
    }

    fn class(
        &self,
        code: &[u8],
        starts: &[usize],
        ranges: Vec<(usize, usize, usize)>,
        n: usize,
    ) -> Vec<u8> {
        let mut c = Bytes::default();
        c.u4(0xcafe_babe)
            .u2(if self.major == 45 { 3 } else { 0 })
            .u2(self.major);
        let texts = [
            &self.name,
            "java/lang/Object",
            "m",
            "(IIII)I",
            "Code",
            "StackMapTable",
            "LineNumberTable",
            "java/lang/Throwable",
            "LocalVariableTable",
            "I",
        ];
        c.u2(texts.len() as u16 + 4);
        for text in texts {
            c.u1(1).u2(text.len() as u16).0.extend(text.bytes());
        }
        for name in [1, 2, 8] {
            c.u1(7).u2(name); // classes 11, 12, 13
        }
        c.u2(0x21).u2(11).u2(12).u2(0).u2(0).u2(1);
        c.u2(0x9).u2(3).u2(4).u2(1);

        let mut attribute = Bytes::default();
        attribute.u2(4).u2(6).u4(code.len() as u32).0.extend(code);
        attribute.u2(ranges.len() as u16);
        for (start, end, handler) in ranges {
            attribute
                .u2(start as u16)
                .u2(end as u16)
                .u2(handler as u16)
                .u2(0);
        }
        // Every block is its own line; the last block's number is its index + 1.
        let mut lines = Bytes::default();
        lines.u2(starts.len() as u16 - 1);
        for (i, start) in starts[..starts.len() - 1].iter().enumerate() {
            lines.u2(*start as u16).u2(i as u16 + 1);
        }
        let mut variables = Bytes::default();
        variables
            .u2(1)
            .u2(0)
            .u2(code.len() as u16)
            .u2(3)
            .u2(10)
            .u2(0);
        let mut frames = Bytes::default();
        frames.u2(starts.len() as u16 - 1);
        let mut last = None;
        for (i, &start) in starts[..starts.len() - 1].iter().enumerate() {
            let delta = last.map_or(start, |last| start - last - 1);
            last = Some(start);
            if self.full_frames {
                frames.u1(255).u2(delta as u16).u2(4).u4(0x0101_0101);
                frames.u2(u16::from(i >= n));
            } else if delta < 64 {
                frames.u1(if i >= n { 64 } else { 0 } + delta as u8);
            } else {
                frames.u1(if i >= n { 247 } else { 251 }).u2(delta as u16);
            }
            if i >= n {
                frames.u1(7).u2(13);
            }
        }
        attribute.u2(if self.major >= 50 { 3 } else { 2 });
        attribute.attribute(7, &lines).attribute(9, &variables);
        if self.major >= 50 {
            attribute.attribute(6, &frames);
        }
        c.attribute(5, &attribute).u2(0);
        c.0
    }
}

fn emit(
    code: &mut Vec<u8>,
    block: &Block,
    end: &End,
    handler: bool,
    start: &dyn Fn(usize) -> usize,
) {
    if handler {
        code.push(POP);
    }
    let mut depth = 0;
    for &(op, arg) in &block.body {
        let local = arg as u8 % 4;
        match op % 8 {
            0 | 1 if depth < 3 => {
                code.extend([BIPUSH, arg as u8]);
                depth += 1;
            }
            2 | 3 if depth < 3 => {
                code.push(ILOAD_0 + local);
                depth += 1;
            }
            4 if depth >= 2 => {
                code.push(IADD);
                depth -= 1;
            }
            5 if depth >= 1 => {
                code.push(ISTORE_0 + local);
                depth -= 1;
            }
            6 => code.extend([IINC, local, arg as u8]),
            7 => code.extend([WIDE, IINC, 0, local, 0xff, arg as u8]),
            _ => code.push(NOP),
        }
    }
    code.extend(std::iter::repeat_n(POP, depth));
    code.extend(std::iter::repeat_n(NOP, block.padding));
    let at = code.len();
    let near = |code: &mut Vec<u8>, op: u8, from: usize, target: usize| {
        // The first pass, and programs too large for their jumps, get any displacement.
        let offset = start(target) as i64 - from as i64;
        code.push(op);
        code.extend((offset as i16).to_be_bytes());
    };
    let far = |code: &mut Vec<u8>, target: usize| {
        code.extend((start(target) as i32 - at as i32).to_be_bytes());
    };
    let padding = |at: usize| 3 - (at & 3);
    match end {
        End::Fall => {}
        End::If(op, target) => {
            code.push(ILOAD_0);
            if *op >= IF_ICMPEQ {
                code.push(ILOAD_1);
            }
            let from = code.len();
            near(code, *op, from, *target);
        }
        End::Goto(target) => near(code, GOTO, at, *target),
        End::GotoW(target) => {
            code.push(GOTO_W);
            far(code, *target);
        }
        End::TableSwitch(low, targets, default) => {
            let at = at + 1;
            let far = |code: &mut Vec<u8>, target: usize| {
                code.extend((start(target) as i32 - at as i32).to_be_bytes());
            };
            code.extend([ILOAD_2, TABLESWITCH]);
            code.extend(std::iter::repeat_n(0, padding(at)));
            far(code, *default);
            code.extend(low.to_be_bytes());
            code.extend((low + targets.len() as i32 - 1).to_be_bytes());
            targets.iter().for_each(|&target| far(code, target));
        }
        End::LookupSwitch(targets, default) => {
            let at = at + 1;
            let far = |code: &mut Vec<u8>, target: usize| {
                code.extend((start(target) as i32 - at as i32).to_be_bytes());
            };
            code.extend([ILOAD_3, LOOKUPSWITCH]);
            code.extend(std::iter::repeat_n(0, padding(at)));
            far(code, *default);
            code.extend((targets.len() as i32).to_be_bytes());
            for (key, &target) in targets.iter().enumerate() {
                code.extend((key as i32 - 1).to_be_bytes());
                far(code, target);
            }
        }
        End::Return => code.extend([ILOAD_0, IRETURN]),
        End::Throw => code.extend([ACONST_NULL, ATHROW]),
    }
    // A block has at least one instruction, so that no two blocks start at one place.
    if code.len() == at && block.padding == 0 && block.body.is_empty() && !handler {
        code.push(NOP);
    }
}

#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u1(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }
    fn u2(&mut self, value: u16) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }
    fn u4(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }
    fn attribute(&mut self, name: u16, contents: &Bytes) -> &mut Self {
        self.u2(name)
            .u4(contents.0.len() as u32)
            .0
            .extend(&contents.0);
        self
    }
}
