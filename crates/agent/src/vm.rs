//! What every lens asks the JVM: who it is, whose a class is.

use crate::glob::Glob;
use crate::jvmti::sys::JObject;
use crate::jvmti::{Jni, Jvmti, c_string, flags};
use crate::options::Options;
use borescope_spool::meta::Target;
use std::ffi::CStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// 17 for `17.0.15`, 8 for `1.8.0_432`.
pub fn feature_version(version: &str) -> Option<u32> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match numbers.next()?.ok()? {
        1 => numbers.next()?.ok(),
        n => Some(n),
    }
}

/// The first record of a spool.
pub fn target(jvmti: Jvmti, options: &Options) -> Target {
    let property = |name: &CStr| jvmti.property(name).unwrap_or_default();
    let globs = |g: &[Glob]| g.iter().map(|g| g.text().to_owned()).collect();
    Target {
        pid: std::process::id(),
        // java.version is set by Java code and not known to the VM; java.vm.version is `17.0.15+6-Debian-1deb12u1`.
        jdk: property(c"java.vm.version")
            .split(['+', '-'])
            .next()
            .unwrap_or_default()
            .to_owned(),
        vm: format!(
            "{} {}",
            property(c"java.vm.name"),
            property(c"java.vm.version")
        ),
        collector: flags::collector().into(),
        command: command(jvmti),
        started: now_ms(),
        include: globs(&options.include),
        exclude: globs(&options.exclude),
        merge: options.merge,
        straight_line: options.straight_line,
        one_in: options.one_in.unwrap_or(0),
    }
}

/// What runs: `sun.java.command`, else the process's arguments.
fn command(jvmti: Jvmti) -> String {
    jvmti
        .property(c"sun.java.command")
        .filter(|c| !c.is_empty())
        .unwrap_or_else(|| {
            let raw = std::fs::read("/proc/self/cmdline").unwrap_or_default();
            raw.split(|&b| b == 0)
                .map(|a| String::from_utf8_lossy(a))
                .collect::<Vec<_>>()
                .join(" ")
                .trim_end()
                .to_owned()
        })
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_millis() as u64)
}

/// A class of a JDK module (`java.*`, `jdk.*`), whoever loads it.
pub fn is_jdk(jvmti: Jvmti, jni: Jni, loader: JObject, name: &str) -> bool {
    if name.starts_with("java/") {
        return true;
    }
    let package = name.rsplit_once('/').map_or("", |(p, _)| p);
    let module = jvmti.named_module(loader, &c_string(package));
    if module.is_null() {
        // Classes that reflection spins at run time have no package of their own.
        return name.starts_with("jdk/internal/")
            || name.starts_with("jdk/proxy")
            || name.starts_with("com/sun/proxy/");
    }
    let module_name = jni.string_field(module, c"name").unwrap_or_default();
    jni.forget(module);
    module_name.starts_with("java.") || module_name.starts_with("jdk.")
}

/// The name in a class's signature, with slashes; `None`: an array, or a primitive type.
pub fn class_name(signature: &str) -> Option<&str> {
    signature.strip_prefix('L')?.strip_suffix(';')
}

/// Sends the loaded classes through the load hook, so many at once, that are wanted by name (with slashes) and loader (null = boot). `refused` hears of
/// those that stay as they are, and why.
pub fn retransform(
    jvmti: Jvmti,
    jni: Jni,
    at_once: usize,
    is_wanted: impl Fn(&str, JObject) -> bool,
    refused: impl Fn(&str, &str),
) {
    let (mut wanted, mut names) = (Vec::new(), Vec::new());
    for class in jvmti.loaded_classes() {
        let signature = jvmti.signature(class).unwrap_or_default();
        let wants = |name: &str| {
            jvmti.loader(class).is_some_and(|loader| {
                let yes = is_wanted(name, loader);
                jni.forget(loader);
                yes
            })
        };
        // With a dot: a hidden class.
        let name = class_name(&signature).filter(|name| !name.contains('.') && wants(name));
        match name {
            Some(name) if jvmti.is_modifiable(class) => {
                wanted.push(class);
                names.push(name.to_owned());
                continue;
            }
            Some(name) => refused(name, "the JVM does not let agents change this class"),
            None => {}
        }
        jni.forget(class);
    }
    for (batch, names) in wanted.chunks(at_once).zip(names.chunks(at_once)) {
        // One by one after a failure: a class that another agent has changed in a way the JVM refuses must not keep the rest plain.
        if jvmti.retransform(batch).is_err() {
            for (&class, name) in batch.iter().zip(names) {
                if let Err(code) = jvmti.retransform(&[class]) {
                    let why = format!("the JVM refuses to retransform it (JVMTI error {code})");
                    refused(name, &why);
                }
            }
        }
    }
    for class in wanted {
        jni.forget(class);
    }
}

/// Class of a loader, as records name it.
pub fn loader_name(jvmti: Jvmti, jni: Jni, loader: JObject) -> String {
    if loader.is_null() {
        return "boot".into();
    }
    let class = jni.class_of(loader);
    let signature = jvmti.signature(class).unwrap_or_default();
    jni.forget(class);
    class_name(&signature).unwrap_or_default().replace('/', ".")
}

/// All classes that a helper uses stay plain.
#[cfg(test)]
pub fn check_helper(bytes: &[u8], never: &[Glob]) {
    let helper = borescope_classfile::ClassFile::parse(bytes).unwrap();
    let mut used = 0;
    for index in 1..u16::MAX {
        // Fieldref, Methodref, InterfaceMethodref (JVMS 4.4.2)
        if matches!(helper.constant_tag(index), Some(9..=11)) {
            let class = helper.member_class_bytes(index).unwrap();
            let class = std::str::from_utf8(class).unwrap();
            assert!(never.iter().any(|g| g.matches(class)), "{class}");
            used += 1;
        }
    }
    assert!(used > 5, "{used}");
}

/// A seed from the system.
pub fn random() -> u64 {
    // The keys of a hash map are the system's randomness, and there is no other source in the standard library.
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), now_ms())
}
