//! Objects that are not on top of the stack when their constructor returns: code that no Java compiler makes, in JVMs.

#[path = "support/jdk.rs"]
mod jdk;
#[path = "support/mod.rs"]
mod support;

use borescope_allocations::{Settings, instrument};
use borescope_classfile::insn::*;
use borescope_classfile::{At, ClassFile, MethodEdit, Splicer};
use std::process::Command;

#[test]
fn objects_below_others_in_locals_and_out_of_reach() {
    let dir = tempfile::tempdir().unwrap();
    jdk::compile(&["Odd.java"], dir.path(), &[]);
    jdk::compile_stub(&dir.path().join("stub"));
    let file = dir.path().join("Odd.class");
    let bytes = std::fs::read(&file).unwrap();
    let class = ClassFile::parse(&bytes).unwrap();
    let mut splicer = Splicer::new(&class);
    let [a, b] = splicer.class("Odd").unwrap().to_be_bytes();
    let [c, d] = splicer
        .methodref("Odd", "<init>", "()V")
        .unwrap()
        .to_be_bytes();
    let new = [NEW, a, b];
    let init = [INVOKESPECIAL, c, d];
    // Each ends with the object, or null, on the stack. The original is `aconst_null; areturn`.
    let bodies: [(&str, Vec<u8>); 8] = [
        (
            "below1",
            [&new[..], &[ICONST_1, DUP2, POP], &init, &[POP]].concat(),
        ),
        (
            "below2",
            [&new[..], &[DUP, LCONST_1, DUP2_X1, POP2], &init, &[POP2]].concat(),
        ),
        (
            "below2ints",
            [
                &new[..],
                &[DUP, ICONST_1, SWAP, ICONST_2, SWAP],
                &init,
                &[POP2],
            ]
            .concat(),
        ),
        (
            "inLocal",
            [
                &new[..],
                &[DUP, ASTORE_0, ICONST_1, ICONST_2, ICONST_3, ALOAD_0],
                &init,
                &[POP2, POP],
            ]
            .concat(),
        ),
        (
            "deep",
            [
                &new[..],
                &[DUP, ICONST_1, SWAP, ICONST_2, SWAP, ICONST_3, SWAP],
                &init,
                &[POP2, POP],
            ]
            .concat(),
        ),
        ("gone", [&new[..], &init, &[ACONST_NULL]].concat()),
        ("unfinished", [&new[..], &[POP, ACONST_NULL]].concat()),
        // Two of them half made at once, the older one constructed first.
        (
            "two",
            [
                &new[..],
                &[ASTORE_0],
                &new,
                &[DUP, ALOAD_0],
                &init,
                &init,
                &[POP, ALOAD_0],
            ]
            .concat(),
        ),
    ];
    for (name, body) in &bodies {
        let index = class.methods().iter().position(|m| m.name() == *name);
        let mut edit = MethodEdit::default();
        edit.extra_stack = 8;
        edit.insert(At::Before(1), &[&[POP], &body[..]].concat());
        splicer.edit(index.unwrap(), &edit).unwrap();
    }
    let odd = splicer.finish();
    let class = ClassFile::parse(&odd).unwrap();
    let settings = Settings {
        attribute: false,
        local: true,
        exclude: |_, method, _| method == "toString" || method == "main",
        ..Settings::default()
    };
    let done = instrument(&class, &settings, &support::Unknown, |_, _| Some((1, 1))).unwrap();
    let method = |index: u16| class.methods()[usize::from(index)].name();
    let skipped: Vec<_> = done
        .skipped
        .iter()
        .map(|skip| (method(skip.method), skip.reason))
        .collect();
    assert_eq!(
        skipped,
        [
            (
                "deep".into(),
                "the constructed object is too deep on the stack"
            ),
            ("gone".into(), "the constructed object is dropped at once"),
        ]
    );
    let names: Vec<_> = done.sites.iter().map(|site| method(site.method)).collect();
    assert_eq!(
        names,
        ["below1", "below2", "below2ints", "inLocal", "two", "two"]
    );
    std::fs::write(&file, done.bytes.unwrap()).unwrap();
    for version in jdk::JDKS {
        let text = jdk::output(
            Command::new(jdk::home(version).join("bin/java"))
                .args(["-Xverify:all", "--patch-module"])
                .arg(format!("java.base={}", dir.path().join("stub").display()))
                .arg("-cp")
                .arg(dir.path())
                .arg("Odd"),
        );
        let expected = "\
mark 1 Odd1
below1 Odd1
mark 2 Odd2
below2 Odd2
mark 3 Odd3
below2ints Odd3
mark 4 Odd4
inLocal Odd4
deep Odd5
gone null
unfinished null
mark 5 Odd7
mark 6 Odd8
two Odd7
";
        assert_eq!(text, expected, "JDK {version}");
    }
}
