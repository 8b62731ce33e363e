//! Which classes and methods of the JDK stay plain.

use crate::glob::Glob;

/// Classes that the helper itself runs through, that switch threads under a running method, or that the VM knows by heart.
const NEVER: [&str; 15] = [
    "java/lang/Object",
    "java/lang/Thread",
    "java/lang/ThreadGroup",
    "java/lang/BaseVirtualThread",
    "java/lang/VirtualThread*",
    "java/lang/ThreadBuilders",
    "java/lang/Class",
    "java/lang/Shutdown",
    "java/lang/Borescope*",
    "java/lang/Module*",
    "java/lang/ref/Reference",
    "java/lang/ref/Finalizer",
    "jdk/internal/misc/*",
    "jdk/internal/vm/*",
    "java/lang/invoke/*",
];

/// [`NEVER`], compiled.
pub fn never() -> Vec<Glob> {
    NEVER.iter().map(|g| Glob::new(g)).collect()
}

/// Methods of the JDK that stay plain, because what they make mostly dies where it was asked for, so that C2 does without it as long as nobody
/// writes into its header: iterators, boxes, views of buffers, Optional.
pub fn stays_plain(class: &str, name: &str, _descriptor: &str) -> bool {
    match name {
        "<clinit>" | "iterator" | "listIterator" | "spliterator" | "descendingIterator" => true,
        "valueOf" => class.starts_with("java/lang/"),
        "duplicate" | "slice" | "asReadOnlyBuffer" => class.starts_with("java/nio/"),
        "of" | "ofNullable" => class.starts_with("java/util/Optional"),
        _ => false,
    }
}

/// Methods of the JDK that stay plain when a trace is recorded: those that run while the JVM builds itself, and those whose callers mark what they
/// make, since compiled code may not run their bytecode (`borescope_allocations::Kind::Intrinsic`): so an object has the same site however often it ran.
pub fn marked_by_callers(class: &str, name: &str, descriptor: &str) -> bool {
    match (class, name) {
        (_, "<clinit>") => true,
        ("java/util/Arrays", "copyOf" | "copyOfRange") => {
            descriptor.ends_with("[Ljava/lang/Object;")
        }
        ("java/lang/StringUTF16", "toBytes") => true,
        ("java/lang/StringBuilder" | "java/lang/StringBuffer", "toString") => true,
        (
            "java/lang/Integer"
            | "java/lang/Long"
            | "java/lang/Double"
            | "java/lang/Float"
            | "java/lang/Short"
            | "java/lang/Character",
            "valueOf",
        ) => !descriptor.starts_with("(L"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::{helper, trace};
    use crate::vm;

    /// Else marking an object could call itself without end.
    #[test]
    fn the_helpers_use_no_class_that_may_be_instrumented() {
        vm::check_helper(helper::HELPER_CLASS, &never());
        vm::check_helper(trace::HELPER_CLASS, &never());
    }
}
