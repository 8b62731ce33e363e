//! `cargo bench -p borescope-classfile -- JAR...`: how fast classes are parsed and spliced, in MB of class bytes per second of one
//! core, best of five rounds, by the thread's processor time (other programs may run). Without arguments it does nothing.

#[path = "../tests/support/mod.rs"]
mod support;

use borescope_classfile::{At, Buffers, ClassFile, ExtraLocal, MethodEdit, Splicer, insn};
use std::hint::black_box;
use std::path::Path;

fn main() {
    let jars: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let classes: Vec<Vec<u8>> = jars
        .iter()
        .flat_map(|jar| support::classes_of_jar(Path::new(jar)))
        .map(|(_, bytes)| bytes)
        .collect();
    if classes.is_empty() {
        return;
    }
    let total: usize = classes.iter().map(Vec::len).sum();
    println!("{} classes, {:.1} MB", classes.len(), total as f64 / 1e6);
    let mut edit = MethodEdit::default();
    let mut buffers = Buffers::default();
    measure("parse", total, &classes, |bytes| {
        black_box(ClassFile::parse(bytes).expect("a class file"));
    });
    measure("parse, decode instructions", total, &classes, |bytes| {
        let class = ClassFile::parse(bytes).expect("a class file");
        for code in class.methods().iter().filter_map(|method| method.code()) {
            black_box(insn::insns(code.code).filter(Result::is_ok).count());
        }
    });
    measure(
        "parse, splice a call before each jump and return",
        total,
        &classes,
        |bytes| {
            black_box(sparse(bytes, &mut edit, &mut buffers));
        },
    );
    measure(
        "parse, splice calls at every place",
        total,
        &classes,
        |bytes| {
            black_box(support::heavy(bytes, &mut support::Outcome::default()));
        },
    );
}

fn measure(what: &str, total: usize, classes: &[Vec<u8>], mut work: impl FnMut(&[u8])) {
    let best = (0..5)
        .map(|_| {
            let start = cpu_nanoseconds();
            classes.iter().for_each(|bytes| work(bytes));
            cpu_nanoseconds() - start
        })
        .min()
        .unwrap_or(1);
    println!("{:7.0} MB/s  {what}", total as f64 * 1e3 / best as f64);
}

/// Time that this thread has run: the first field of Linux's schedstat.
fn cpu_nanoseconds() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    stat.split(' ')
        .next()
        .and_then(|field| field.parse().ok())
        .expect("a number")
}

/// About as much as a path profiler inserts.
fn sparse(bytes: &[u8], edit: &mut MethodEdit, buffers: &mut Buffers) -> Vec<u8> {
    let class = ClassFile::parse(bytes).expect("a class file");
    let mut splicer = Splicer::with_buffers(&class, std::mem::take(buffers));
    let call = support::marker(&mut splicer).expect("room in the pool");
    for (i, method) in class.methods().iter().enumerate() {
        let Some(code) = method.code() else { continue };
        edit.clear();
        edit.extra_locals = &[ExtraLocal::Int, ExtraLocal::Long];
        edit.extra_stack = 2;
        let [a, b] = code.max_locals.to_be_bytes();
        let [c, d] = code.max_locals.wrapping_add(1).to_be_bytes();
        edit.insert(At::Entry, &[insn::ICONST_0, insn::WIDE, insn::ISTORE, a, b]);
        edit.insert(At::Entry, &[insn::LCONST_0, insn::WIDE, insn::LSTORE, c, d]);
        for item in insn::insns(code.code) {
            let Ok((bci, op)) = item else { break };
            if matches!(
                op,
                insn::IFEQ..=insn::RETURN | insn::ATHROW | insn::IFNULL | insn::IFNONNULL
            ) {
                edit.insert(At::Before(bci), &call);
                if let Ok(insn::Flow::Branch(target)) = insn::flow(code.code, usize::from(bci)) {
                    edit.insert(At::Taken { from: bci, target }, &call);
                }
            }
        }
        let _ = black_box(splicer.edit(i, edit));
    }
    let (spliced, kept) = splicer.finish_keeping();
    *buffers = kept;
    spliced
}
