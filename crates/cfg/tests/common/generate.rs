//! Random methods: structured ones as compilers make them, and arbitrary jumps.

use super::{Asm, Label, Program};
use borescope_classfile::insn;
use proptest::prelude::*;

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    Nop,
    Call,
    /// A call that a run loop may have.
    Math,
    /// A division, which may throw.
    Div,
    /// One of [`SHORT`].
    Short(usize),
    If(Vec<Stmt>),
    IfElse(Vec<Stmt>, Vec<Stmt>),
    /// Test at the top, goto at the bottom.
    While(Vec<Stmt>),
    /// Test at the bottom.
    DoWhile(Vec<Stmt>),
    /// No exit but break, return and throw.
    Forever(Vec<Stmt>),
    /// Cases, default last; `true` = tableswitch. A case falls into the next one where it does not jump.
    Switch(bool, Vec<Vec<Stmt>>),
    /// Body, handler, whether the handler covers itself too.
    Try(Vec<Stmt>, Vec<Stmt>, bool),
    BreakIf,
    ContinueIf,
    ReturnIf,
    ThrowIf,
    Throw,
    Return,
    Break,
}

/// Short branches: the way that the branch falls into, and the one that it jumps to if there is one.
pub const SHORT: [(&[u8], Option<&[u8]>); 5] = [
    (&[insn::IINC, 1, 1], None),
    (&[insn::ILOAD_1, insn::ISTORE_2], None),
    (&[insn::ICONST_1], Some(&[insn::ILOAD_1])),
    (&[insn::ICONST_1, insn::ISTORE_1], Some(&[insn::NOP])),
    // Too long.
    (&[insn::IINC, 1, 1], Some(&[insn::IINC, 2, 1])),
];

/// Statements as they stand in run loops.
pub fn quiet() -> impl Strategy<Value = Vec<Stmt>> {
    let stmt = prop_oneof![
        4 => (0..SHORT.len()).prop_map(Stmt::Short),
        2 => Just(Stmt::Nop),
        2 => Just(Stmt::Div),
        1 => Just(Stmt::Math),
        2 => Just(Stmt::BreakIf),
        1 => Just(Stmt::ReturnIf),
    ];
    prop::collection::vec(stmt, 0..4)
}

/// Statements nested up to four deep.
pub fn body() -> impl Strategy<Value = Vec<Stmt>> {
    let leaf = prop_oneof![
        4 => Just(Stmt::Nop),
        3 => Just(Stmt::Call),
        1 => Just(Stmt::Math),
        2 => Just(Stmt::Div),
        3 => (0..SHORT.len()).prop_map(Stmt::Short),
        2 => quiet().prop_map(Stmt::While),
        2 => quiet().prop_map(Stmt::DoWhile),
        2 => Just(Stmt::BreakIf),
        1 => Just(Stmt::ContinueIf),
        1 => Just(Stmt::ReturnIf),
        1 => Just(Stmt::ThrowIf),
        1 => Just(Stmt::Throw),
        1 => Just(Stmt::Return),
        1 => Just(Stmt::Break),
    ];
    let stmt = leaf.prop_recursive(4, 40, 4, |inner| {
        let list = || prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            list().prop_map(Stmt::If),
            (list(), list()).prop_map(|(a, b)| Stmt::IfElse(a, b)),
            list().prop_map(Stmt::While),
            list().prop_map(Stmt::DoWhile),
            list().prop_map(Stmt::Forever),
            (any::<bool>(), prop::collection::vec(list(), 1..5))
                .prop_map(|(table, cases)| Stmt::Switch(table, cases)),
            (list(), list(), any::<bool>()).prop_map(|(a, b, c)| Stmt::Try(a, b, c)),
        ]
    });
    prop::collection::vec(stmt, 0..6)
}

/// Compiles statements as javac would; code after a jump is left in, so some is unreachable.
pub fn compile(body: &[Stmt]) -> Program {
    let mut asm = Asm::default();
    let out = asm.label();
    list(&mut asm, body, (out, out));
    asm.bind(out).op(&[insn::RETURN]);
    asm.finish()
}

fn list(asm: &mut Asm, stmts: &[Stmt], jumps: (Label, Label)) {
    stmts.iter().for_each(|s| stmt(asm, s, jumps));
}

/// `jumps` = where break and continue go.
fn stmt(asm: &mut Asm, stmt: &Stmt, jumps: (Label, Label)) {
    match stmt {
        Stmt::Nop => {
            asm.op(&[insn::NOP]);
        }
        Stmt::Call => {
            asm.call();
        }
        Stmt::Math => {
            asm.math();
        }
        Stmt::Div => {
            asm.op(&[insn::IDIV]);
        }
        Stmt::Short(which) => {
            let (way, other) = SHORT[*which];
            let [or, end] = asm.labels();
            asm.ifeq(or).op(way);
            if let Some(other) = other {
                asm.goto(end).bind(or).op(other).bind(end);
            } else {
                asm.bind(or);
            }
        }
        Stmt::If(then) => {
            let end = asm.label();
            asm.ifeq(end);
            list(asm, then, jumps);
            asm.bind(end);
        }
        Stmt::IfElse(then, other) => {
            let [or, end] = asm.labels();
            asm.ifeq(or);
            list(asm, then, jumps);
            asm.goto(end).bind(or);
            list(asm, other, jumps);
            asm.bind(end);
        }
        Stmt::While(body) => {
            let [head, end] = asm.labels();
            asm.bind(head).ifeq(end);
            list(asm, body, (end, head));
            asm.goto(head).bind(end);
        }
        Stmt::DoWhile(body) => {
            let [head, test, end] = asm.labels();
            asm.bind(head);
            list(asm, body, (end, test));
            asm.bind(test).ifeq(head).bind(end);
        }
        Stmt::Forever(body) => {
            let [head, end] = asm.labels();
            asm.bind(head);
            list(asm, body, (end, head));
            asm.branch(insn::GOTO_W, head).bind(end);
        }
        Stmt::Switch(table, cases) => {
            let end = asm.label();
            let labels: Vec<Label> = cases.iter().map(|_| asm.label()).collect();
            let (&default, rest) = labels.split_last().unwrap();
            // Twice the same targets, and once the default: several edges to one block.
            let rest: Vec<Label> = [rest, &[default], rest].concat();
            if *table {
                asm.table_switch(default, &rest);
            } else {
                asm.lookup_switch(default, &rest);
            }
            for (label, case) in labels.iter().zip(cases) {
                asm.bind(*label);
                list(asm, case, (end, jumps.1));
            }
            asm.bind(end);
        }
        Stmt::Try(body, handler, self_covering) => {
            let [end, catch, catch_end] = asm.labels();
            let start = asm.here();
            list(asm, body, jumps);
            let body_end = asm.here();
            asm.goto(end).bind(catch).op(&[insn::POP]);
            list(asm, handler, jumps);
            asm.bind(catch_end).bind(end);
            asm.guard(start, body_end, catch);
            if *self_covering {
                asm.guard(catch, catch_end, catch);
            }
        }
        Stmt::BreakIf => {
            asm.ifeq(jumps.0);
        }
        Stmt::ContinueIf => {
            asm.ifeq(jumps.1);
        }
        Stmt::ReturnIf | Stmt::ThrowIf => {
            let end = asm.label();
            let leave = if matches!(stmt, Stmt::ReturnIf) {
                insn::RETURN
            } else {
                insn::ATHROW
            };
            asm.ifeq(end).op(&[leave]).bind(end);
        }
        Stmt::Throw => {
            asm.op(&[insn::ATHROW]);
        }
        Stmt::Return => {
            asm.op(&[insn::RETURN]);
        }
        Stmt::Break => {
            asm.goto(jumps.0);
        }
    }
}

/// One instruction of a method of arbitrary jumps; targets are instruction numbers (modulo their count).
#[derive(Clone, Debug)]
pub enum Insn {
    Nop,
    Call,
    Math,
    Increment,
    If(usize),
    Goto(usize),
    Switch(bool, Vec<usize>),
    Return,
    Throw,
}

/// Arbitrary instructions, and exception table entries in instruction numbers.
pub fn jumble() -> impl Strategy<Value = (Vec<Insn>, Vec<(usize, usize, usize)>)> {
    let target = 0usize..30;
    let insn = prop_oneof![
        3 => Just(Insn::Nop),
        2 => Just(Insn::Call),
        1 => Just(Insn::Math),
        2 => Just(Insn::Increment),
        6 => target.clone().prop_map(Insn::If),
        3 => target.clone().prop_map(Insn::Goto),
        1 => (any::<bool>(), prop::collection::vec(target.clone(), 2..5))
            .prop_map(|(table, targets)| Insn::Switch(table, targets)),
        1 => Just(Insn::Return),
        1 => Just(Insn::Throw),
    ];
    (
        prop::collection::vec(insn, 1..30),
        prop::collection::vec((target.clone(), target.clone(), target), 0..4),
    )
}

/// Assembles arbitrary instructions. `tidy`: jumps to handlers go to the instruction after instead, and what would run into a
/// handler returns.
pub fn assemble(insns: &[Insn], guards: &[(usize, usize, usize)], tidy: bool) -> Program {
    let mut asm = Asm::default();
    let n = insns.len() + 1;
    let handlers: Vec<usize> = guards.iter().map(|g| usize::from(tidy) + g.2 % n).collect();
    // One return ahead of the last for each handler that would be the last.
    let labels: Vec<Label> = (0..n + 2).map(|_| asm.label()).collect();
    let to = |target: usize| {
        let mut target = target % n;
        while tidy && handlers.contains(&target) {
            target += 1;
        }
        labels[target]
    };
    for (i, insn) in insns.iter().enumerate() {
        asm.bind(labels[i]);
        let before_handler = tidy && handlers.contains(&(i + 1));
        match insn {
            Insn::Nop | Insn::Call | Insn::Math | Insn::Increment | Insn::If(_)
                if before_handler =>
            {
                asm.op(&[insn::RETURN])
            }
            Insn::Nop => asm.op(&[insn::NOP]),
            Insn::Call => asm.call(),
            Insn::Math => asm.math(),
            Insn::Increment => asm.op(&[insn::IINC, 1, 1]),
            Insn::If(target) => asm.ifeq(to(*target)),
            Insn::Goto(target) => asm.goto(to(*target)),
            Insn::Switch(table, targets) => {
                let targets: Vec<Label> = targets.iter().map(|&t| to(t)).collect();
                if *table {
                    asm.table_switch(targets[0], &targets[1..])
                } else {
                    asm.lookup_switch(targets[0], &targets[1..])
                }
            }
            Insn::Return => asm.op(&[insn::RETURN]),
            Insn::Throw => asm.op(&[insn::ATHROW]),
        };
    }
    for &label in &labels[n - 1..] {
        asm.bind(label).op(&[insn::RETURN]);
    }
    for (guard, &handler) in guards.iter().zip(&handlers) {
        let (a, b) = (guard.0 % n, guard.1 % n);
        asm.guard(labels[a.min(b)], labels[a.max(b) + 1], labels[handler]);
    }
    asm.finish()
}
