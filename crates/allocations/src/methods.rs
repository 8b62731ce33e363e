//! The instance methods that an application's class can inherit from the JDK's exported classes, of JDK 17, 21 and 25 together: by the hashes of
//! name and descriptor, in `jdk_methods.bin` (tests/jdk_methods.rs makes and checks it). A method that is in the list by chance costs a few
//! instructions and is otherwise harmless.
//!
//! Descriptors are erased, as in bytecode: what the JDK calls back is `compare(Object, Object)`, and the compiler's bridge method of this name and
//! descriptor stands in the application's class.

use std::sync::LazyLock;

/// Count of the overridable ones, their hashes in order, the hashes of the final ones in order: big-endian u32.
static FILE: &[u8] = include_bytes!("jdk_methods.bin");

struct Lists {
    overridable: Vec<u32>,
    inherited: Vec<u32>,
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let words = FILE.chunks_exact(4);
    let mut words = words.map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]));
    let count = words.next().unwrap_or(0) as usize;
    let overridable = words.by_ref().take(count).collect();
    Lists {
        overridable,
        inherited: words.collect(),
    }
});

/// FNV-1a of name and descriptor.
pub(crate) fn hash(name: &[u8], descriptor: &[u8]) -> u32 {
    let bytes = name.iter().chain(descriptor);
    bytes.fold(0x811c_9dc5, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Whether the JDK may know a method of this name and descriptor as one of its own, and so call it in an application's object.
pub(crate) fn overridable(name: &[u8], descriptor: &[u8]) -> bool {
    let hash = hash(name, descriptor);
    LISTS.overridable.binary_search(&hash).is_ok()
}

/// Whether calling a method of this name and descriptor of an application's class may lead to an inherited method of the JDK.
pub(crate) fn inheritable(name: &[u8], descriptor: &[u8]) -> bool {
    let hash = hash(name, descriptor);
    LISTS.overridable.binary_search(&hash).is_ok() || LISTS.inherited.binary_search(&hash).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_know_the_usual_callbacks() {
        assert!(LISTS.overridable.is_sorted() && LISTS.inherited.is_sorted());
        assert!(LISTS.overridable.len() > 10_000 && LISTS.inherited.len() > 100);
        for (name, descriptor) in [
            ("compare", "(Ljava/lang/Object;Ljava/lang/Object;)I"),
            ("run", "()V"),
            ("hashCode", "()I"),
            ("finalize", "()V"),
            ("read", "([BII)I"),
            ("apply", "(Ljava/lang/Object;)Ljava/lang/Object;"),
        ] {
            assert!(
                overridable(name.as_bytes(), descriptor.as_bytes()),
                "{name}"
            );
        }
        assert!(!overridable(b"getClass", b"()Ljava/lang/Class;"));
        assert!(inheritable(b"getClass", b"()Ljava/lang/Class;"));
        assert!(!inheritable(b"compare", b"(Lcom/acme/A;Lcom/acme/A;)I"));
    }
}
