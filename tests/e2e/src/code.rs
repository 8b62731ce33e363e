//! A reader of class files as small as the oracle needs: instruction lengths, successors, handlers, line numbers (JVMS 4 and 6.5).
//!
//! Deliberately not `crates/classfile`: what checks borescope must not share its mistakes. Class files here are trusted test input, so
//! a malformed one panics.

use std::collections::BTreeMap;

/// What an instruction does with control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes on to [`Insn::next`].
    Plain,
    /// xreturn.
    Return,
    /// athrow.
    Throw,
    /// jsr, jsr_w or ret.
    Subroutine,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Insn {
    /// Opcode (JVMS 6.5); of what `wide` widens, that.
    pub op: u8,
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// Length in bytes.
    pub len: u16,
    /// What kind.
    pub kind: Kind,
    /// Bytecode indices that can be executed next without an exception, each once.
    pub next: Vec<u16>,
}

/// An exception table entry.
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    /// First covered bytecode index.
    pub start: u16,
    /// After the last covered one.
    pub end: u16,
    /// Where the handler starts.
    pub target: u16,
}

/// The code of a method.
#[derive(Clone, Debug)]
pub struct Code {
    /// Method name.
    pub name: String,
    /// Method descriptor.
    pub descriptor: String,
    /// Instructions by bytecode index.
    pub insns: BTreeMap<u16, Insn>,
    /// Exception table.
    pub handlers: Vec<Handler>,
    /// (first bytecode index, line).
    pub lines: Vec<(u16, u16)>,
}

/// The parts of a class file that the oracle reads.
#[derive(Clone, Debug)]
pub struct ClassFile {
    /// SourceFile attribute.
    pub source: Option<String>,
    /// Methods that have code.
    pub methods: Vec<Code>,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        let part = &self.bytes[self.at..self.at + n];
        self.at += n;
        part
    }

    fn u1(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn u2(&mut self) -> u16 {
        let b = self.take(2);
        u16::from_be_bytes([b[0], b[1]])
    }

    fn i4(&mut self) -> i32 {
        let b = self.take(4);
        i32::from_be_bytes([b[0], b[1], b[2], b[3]])
    }

    fn len(&mut self) -> usize {
        self.i4() as u32 as usize
    }

    /// Attributes as (name, content).
    fn attributes(&mut self, pool: &[Option<String>]) -> Vec<(String, &'a [u8])> {
        let count = self.u2();
        (0..count)
            .map(|_| {
                let name = text(pool, self.u2());
                let len = self.len();
                (name, self.take(len))
            })
            .collect()
    }
}

fn text(pool: &[Option<String>], index: u16) -> String {
    pool[usize::from(index)].clone().expect("a Utf8 constant")
}

/// Reads a class file.
pub fn parse(bytes: &[u8]) -> ClassFile {
    let mut r = Reader { bytes, at: 8 };
    let count = r.u2();
    let mut pool = vec![None; usize::from(count)];
    let mut index = 1;
    while index < count {
        let tag = r.u1();
        match tag {
            1 => {
                let len = usize::from(r.u2());
                pool[usize::from(index)] = Some(String::from_utf8_lossy(r.take(len)).into_owned());
            }
            7 | 8 | 16 | 19 | 20 => _ = r.take(2),
            15 => _ = r.take(3),
            3 | 4 | 9..=12 | 17 | 18 => _ = r.take(4),
            5 | 6 => _ = r.take(8),
            _ => panic!("constant pool tag {tag}"),
        }
        index += if tag == 5 || tag == 6 { 2 } else { 1 };
    }
    r.take(6);
    let interfaces = usize::from(r.u2());
    r.take(2 * interfaces);
    for _ in 0..r.u2() {
        r.take(6);
        r.attributes(&pool);
    }
    let mut methods = Vec::new();
    for _ in 0..r.u2() {
        r.take(2);
        let (name, descriptor) = (text(&pool, r.u2()), text(&pool, r.u2()));
        for (attribute, content) in r.attributes(&pool) {
            if attribute == "Code" {
                methods.push(code(content, &pool, name.clone(), descriptor.clone()));
            }
        }
    }
    let source = r
        .attributes(&pool)
        .into_iter()
        .find(|(name, _)| name == "SourceFile");
    let source =
        source.map(|(_, content)| text(&pool, u16::from_be_bytes([content[0], content[1]])));
    ClassFile { source, methods }
}

fn code(content: &[u8], pool: &[Option<String>], name: String, descriptor: String) -> Code {
    let mut r = Reader {
        bytes: content,
        at: 4,
    };
    let len = r.len();
    let body = r.take(len);
    let handlers = (0..r.u2())
        .map(|_| {
            let handler = Handler {
                start: r.u2(),
                end: r.u2(),
                target: r.u2(),
            };
            r.take(2);
            handler
        })
        .collect();
    let mut lines = Vec::new();
    for (attribute, content) in r.attributes(pool) {
        if attribute == "LineNumberTable" {
            let mut table = Reader {
                bytes: content,
                at: 0,
            };
            for _ in 0..table.u2() {
                lines.push((table.u2(), table.u2()));
            }
        }
    }
    lines.sort_unstable();
    Code {
        name,
        descriptor,
        insns: insns(body),
        handlers,
        lines,
    }
}

fn insns(body: &[u8]) -> BTreeMap<u16, Insn> {
    let mut insns = BTreeMap::new();
    let mut at = 0;
    while at < body.len() {
        let insn = insn(body, at);
        let len = usize::from(insn.len);
        insns.insert(at as u16, insn);
        at += len;
    }
    insns
}

fn insn(body: &[u8], at: usize) -> Insn {
    let mut r = Reader {
        bytes: body,
        at: at + 1,
    };
    let target = |offset: i32| (at as i32 + offset) as u16;
    let (mut kind, mut targets, mut falls) = (Kind::Plain, Vec::new(), true);
    let mut op = body[at];
    match op {
        // Conditional branches; ifnull and ifnonnull.
        153..=166 | 198 | 199 => targets.push(target(i32::from(r.u2() as i16))),
        // goto, goto_w
        167 => {
            targets.push(target(i32::from(r.u2() as i16)));
            falls = false;
        }
        200 => {
            targets.push(target(r.i4()));
            falls = false;
        }
        // jsr, ret, jsr_w
        168 => {
            r.take(2);
            kind = Kind::Subroutine;
        }
        169 => {
            r.take(1);
            kind = Kind::Subroutine;
        }
        201 => {
            r.take(4);
            kind = Kind::Subroutine;
        }
        // tableswitch
        170 => {
            r.at = (at + 4) & !3;
            targets.push(target(r.i4()));
            let (low, high) = (r.i4(), r.i4());
            for _ in low..=high {
                targets.push(target(r.i4()));
            }
            falls = false;
        }
        // lookupswitch
        171 => {
            r.at = (at + 4) & !3;
            targets.push(target(r.i4()));
            for _ in 0..r.i4() {
                r.take(4);
                targets.push(target(r.i4()));
            }
            falls = false;
        }
        172..=177 => kind = Kind::Return,
        191 => kind = Kind::Throw,
        // wide: iinc has two more bytes than the others
        196 => {
            op = r.u1();
            r.take(if op == 132 { 4 } else { 2 });
            if op == 169 {
                kind = Kind::Subroutine;
            }
        }
        // bipush, ldc, loads and stores with an index, newarray
        16 | 18 | 21..=25 | 54..=58 | 188 => _ = r.take(1),
        // sipush, ldc_w, ldc2_w, iinc, fields, invokes, new, anewarray, checkcast, instanceof
        17 | 19 | 20 | 132 | 178..=184 | 187 | 189 | 192 | 193 => _ = r.take(2),
        // multianewarray
        197 => _ = r.take(3),
        // invokeinterface, invokedynamic
        185 | 186 => _ = r.take(4),
        _ => {}
    }
    if falls && kind == Kind::Plain {
        targets.push(r.at as u16);
    }
    targets.sort_unstable();
    targets.dedup();
    Insn {
        op,
        bytes: body[at..r.at].to_vec(),
        len: (r.at - at) as u16,
        kind,
        next: targets,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A method with this code and these handlers: (start, end, target).
    pub(crate) fn body(bytes: &[u8], handlers: &[(u16, u16, u16)]) -> Code {
        let handler = |&(start, end, target): &(u16, u16, u16)| Handler { start, end, target };
        Code {
            name: "m".into(),
            descriptor: "(I)I".into(),
            insns: insns(bytes),
            handlers: handlers.iter().map(handler).collect(),
            lines: Vec::new(),
        }
    }

    #[test]
    fn lengths_and_successors() {
        // iload_0; ifeq +5; iconst_1; ireturn; tableswitch padded from 7 to 8 {default +17, 0..1: +16, +17}; nop; nop; return
        let mut body = vec![0x1a, 0x99, 0, 6, 0x04, 0xac, 0x00, 0xaa];
        for word in [18i32, 0, 1, 17, 18] {
            body.extend(word.to_be_bytes());
        }
        let switch = insn(&body, 7);
        assert_eq!((switch.len, switch.next), (21, vec![24, 25]));
        let branch = insn(&body, 1);
        assert_eq!((branch.len, branch.next), (3, vec![4, 7]));
        assert_eq!(insn(&body, 5).kind, Kind::Return);
        let wide_iinc = insn(&[196, 132, 1, 0, 0, 1, 177], 0);
        assert_eq!(
            (wide_iinc.op, wide_iinc.len, wide_iinc.next),
            (132, 6, vec![6])
        );
    }
}
