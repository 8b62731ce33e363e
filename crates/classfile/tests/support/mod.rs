//! What tests, bench and the corpus tool share: class files out of JARs, and the heaviest edit there is.
#![allow(dead_code, missing_docs)] // each user takes a part

use borescope_classfile::insn::{self, Flow};
use borescope_classfile::{At, ClassFile, ExtraLocal, MethodEdit, Plain, Splicer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// All class files of a JAR: (entry name, bytes). Multi-release variants and module descriptors are left out, as a class loader
/// would not find them by their names.
pub fn classes_of_jar(jar: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(File::open(jar).expect("jar")).expect("a zip file");
    let mut classes = Vec::new();
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).expect("zip entry");
        let name = entry.name().to_string();
        if name.ends_with(".class")
            && !name.starts_with("META-INF/")
            && !name.ends_with("module-info.class")
        {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("zip entry");
            classes.push((name, bytes));
        }
    }
    classes
}

/// The class files in `tests/data`.
pub fn data() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("tests/data")
        .map(|file| file.expect("a file").path())
        .collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "class")
    });
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).expect("a class file"))
        .collect()
}

/// What happened to the methods with code.
#[derive(Default, Debug)]
pub struct Outcome {
    pub edited: usize,
    pub plain: BTreeMap<String, usize>,
}

/// `invokestatic` of a method without arguments and result, for marking places.
pub fn marker(splicer: &mut Splicer) -> Result<[u8; 3], Plain> {
    let [hi, lo] = splicer
        .methodref("java/lang/Thread", "onSpinWait", "()V")?
        .to_be_bytes();
    Ok([insn::INVOKESTATIC, hi, lo])
}

/// Sets three new locals at entry, inserts a marker at every place there is, and adds handlers for everything.
pub fn heavy_edit(
    class: &ClassFile,
    method: usize,
    marker: &[u8],
    edit: &mut MethodEdit,
) -> Result<(), Plain> {
    heavy_edit_every(1, class, method, marker, edit)
}

/// As [`heavy_edit`], but only around every n-th instruction.
pub fn heavy_edit_every(
    n: usize,
    class: &ClassFile,
    method: usize,
    marker: &[u8],
    edit: &mut MethodEdit,
) -> Result<(), Plain> {
    let Some(code) = class.methods()[method].code() else {
        return Err(Plain::NoCode);
    };
    edit.clear();
    edit.extra_locals = &[ExtraLocal::Int, ExtraLocal::Long, ExtraLocal::Int];
    edit.extra_stack = 2;
    let local = |slot: u32| (slot as u16).to_be_bytes();
    let [a, b] = local(u32::from(code.max_locals));
    let [c, d] = local(u32::from(code.max_locals) + 1);
    let [e, f] = local(u32::from(code.max_locals) + 3);
    edit.insert(At::Entry, &[insn::ICONST_0, insn::WIDE, insn::ISTORE, a, b]);
    edit.insert(At::Entry, &[insn::LCONST_0, insn::WIDE, insn::LSTORE, c, d]);
    edit.insert(At::Entry, &[insn::ICONST_0, insn::WIDE, insn::ISTORE, e, f]);
    edit.insert(At::Entry, marker);
    let count = [insn::WIDE, insn::IINC, a, b, 0, 1];
    for item in insn::insns(code.code).step_by(n) {
        let (bci, _) = item?;
        edit.insert(At::Before(bci), marker);
        if bci > 0 {
            edit.insert(At::FallThrough(bci), marker);
        }
        let mut taken = |target| {
            edit.insert(At::Taken { from: bci, target }, marker);
            edit.insert(At::Taken { from: bci, target }, &count);
        };
        match insn::flow(code.code, usize::from(bci))? {
            Flow::Branch(target) | Flow::Goto(target) => taken(target),
            Flow::Switch { default, targets } => {
                let mut all: Vec<u16> = targets.chain([default]).collect();
                all.sort_unstable();
                all.dedup();
                all.into_iter().for_each(taken);
            }
            _ => {}
        }
    }
    if class.methods()[method].name() != "<init>" {
        unwind_everything(code.code, [e, f], marker, edit)?;
    }
    Ok(())
}

/// Two handlers, each for every second stretch of five instructions: both count in the local `[e, f]` and throw on.
fn unwind_everything(
    code: &[u8],
    [e, f]: [u8; 2],
    marker: &[u8],
    edit: &mut MethodEdit,
) -> Result<(), Plain> {
    let mut cuts = Vec::new();
    for item in insn::insns(code).step_by(5) {
        cuts.push(item?.0);
    }
    cuts.push(code.len() as u16);
    let ranges: Vec<(u16, u16)> = cuts.windows(2).map(|w| (w[0], w[1])).collect();
    let handler = [marker, &[insn::WIDE, insn::IINC, e, f, 0, 1, insn::ATHROW]].concat();
    for first in [0, 1] {
        let every_second: Vec<_> = ranges.iter().skip(first).step_by(2).copied().collect();
        edit.unwind(&every_second, &handler);
    }
    Ok(())
}

/// The class with [`heavy_edit`] in every method that allows it.
pub fn heavy(bytes: &[u8], outcome: &mut Outcome) -> Vec<u8> {
    heavy_with(None, bytes, outcome)
}

/// As [`heavy`]; with `Some` the methods keep a copy of their code, which runs if it is `Some(false)`.
pub fn heavy_with(edited: Option<bool>, bytes: &[u8], outcome: &mut Outcome) -> Vec<u8> {
    let class = ClassFile::parse(bytes).expect("a class file");
    let mut splicer = Splicer::new(&class);
    let marker = marker(&mut splicer).expect("room in the pool");
    let mut edit = MethodEdit::default();
    for (i, method) in class.methods().iter().enumerate() {
        if method.code().is_none() {
            continue;
        }
        let filled = heavy_edit(&class, i, &marker, &mut edit);
        if let Some(edited) = edited {
            let [a, b, c] = marker;
            edit.keep_copy(&[a, b, c, insn::ICONST_0 + u8::from(edited)]);
        }
        match filled.and_then(|()| splicer.edit(i, &edit)) {
            Ok(()) => outcome.edited += 1,
            Err(plain) => *outcome.plain.entry(plain.to_string()).or_default() += 1,
        }
    }
    splicer.finish()
}
