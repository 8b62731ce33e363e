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

/// Class of a loader, as records name it.
pub fn loader_name(jvmti: Jvmti, jni: Jni, loader: JObject) -> String {
    if loader.is_null() {
        return "boot".into();
    }
    let class = jni.class_of(loader);
    let signature = jvmti.signature(class).unwrap_or_default();
    jni.forget(class);
    signature
        .trim_start_matches('L')
        .trim_end_matches(';')
        .replace('/', ".")
}

/// A seed from the system.
pub fn random() -> u64 {
    // The keys of a hash map are the system's randomness, and there is no other source in the standard library.
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), now_ms())
}
