//! What is known of the JDK's classes: which are its own, which of their methods hand out a new object, allocate nothing, or keep nothing of what
//! they are given. Read from the sources of JDK 17, 21 and 25.

use borescope_classfile::Member;
use borescope_classfile::insn::{INVOKEINTERFACE, INVOKESPECIAL, INVOKESTATIC, INVOKEVIRTUAL};

use crate::Kind;
use crate::scan::Asks;

/// Whether a class (internal name) is the JDK's, by its package.
pub fn is_jdk(class: &str) -> bool {
    const PACKAGES: [&str; 9] = [
        "java/",
        "javax/",
        "jdk/",
        "sun/",
        "com/sun/",
        "netscape/javascript/",
        "org/ietf/jgss/",
        "org/w3c/dom/",
        "org/xml/sax/",
    ];
    PACKAGES.iter().any(|package| class.starts_with(package))
}

/// What a call that always gives a new object is, if it is one.
pub(crate) fn fresh(op: u8, member: &Member<'_>) -> Option<Kind> {
    match (op, member.class, member.name) {
        (INVOKEVIRTUAL, [b'[', ..], b"clone") | (INVOKESPECIAL, b"java/lang/Object", b"clone") => {
            Some(Kind::Clone)
        }
        // EliminateAutoBox; and callers know better than valueOf whether the box is kept.
        _ if boxes(op, member) => Some(Kind::Intrinsic),
        (INVOKEVIRTUAL, b"java/lang/Class" | b"java/lang/reflect/Constructor", b"newInstance")
        | (INVOKESTATIC, b"java/lang/reflect/Array", b"newInstance") => Some(Kind::Reflect),
        // vmIntrinsics.hpp: compiled code does not run the bytecode of these, so what marks there would be passed by.
        (INVOKESTATIC, b"java/util/Arrays", b"copyOf" | b"copyOfRange")
        | (INVOKEVIRTUAL, b"jdk/internal/misc/Unsafe", b"allocateUninitializedArray")
        | (INVOKESTATIC, b"java/lang/StringUTF16", b"toBytes") => {
            (member.descriptor.ends_with(b"[Ljava/lang/Object;")
                || member.class != b"java/util/Arrays")
                .then_some(Kind::Intrinsic)
        }
        // stringopts.cpp (OptimizeStringConcat): a chain of appends becomes one allocation.
        (INVOKEVIRTUAL, b"java/lang/StringBuilder" | b"java/lang/StringBuffer", b"toString") => {
            Some(Kind::Intrinsic)
        }
        _ => None,
    }
}

/// What a call asks an object for, if it is a hash. Not `super.hashCode()` where the superclass is not Object: the object's own class does not say whether
/// that leads to Object's.
pub(crate) fn asks_for_hash(op: u8, member: &Member<'_>) -> Option<Asks> {
    match (op, member.class, member.name, member.descriptor) {
        (INVOKESTATIC, b"java/lang/System", b"identityHashCode", _)
        | (INVOKESPECIAL, b"java/lang/Object", b"hashCode", b"()I") => Some(Asks::Identity),
        (INVOKEVIRTUAL, b"java/lang/String", ..) => None,
        (INVOKEVIRTUAL | INVOKEINTERFACE, _, b"hashCode", b"()I") => Some(Asks::HashCode),
        _ => None,
    }
}

/// Whether a call boxes a number or character that need not come from a cache (JLS 5.1.7): `valueOf` of a primitive type.
pub(crate) fn boxes(op: u8, member: &Member<'_>) -> bool {
    op == INVOKESTATIC
        && member.name == b"valueOf"
        && matches!(
            (member.class, member.descriptor),
            (b"java/lang/Integer", b"(I)Ljava/lang/Integer;")
                | (b"java/lang/Long", b"(J)Ljava/lang/Long;")
                | (b"java/lang/Double", b"(D)Ljava/lang/Double;")
                | (b"java/lang/Float", b"(F)Ljava/lang/Float;")
                | (b"java/lang/Short", b"(S)Ljava/lang/Short;")
                | (b"java/lang/Character", b"(C)Ljava/lang/Character;")
        )
}

/// Whether the bootstrap method makes call sites that give a lambda or a concatenated string.
pub(crate) fn makes_objects(bootstrap: &Member<'_>) -> bool {
    matches!(
        (bootstrap.class, bootstrap.name),
        (
            b"java/lang/invoke/LambdaMetafactory",
            b"metafactory" | b"altMetafactory"
        ) | (
            b"java/lang/invoke/StringConcatFactory",
            b"makeConcat" | b"makeConcatWithConstants"
        )
    )
}

/// Whether serialization calls such a method by reflection (java.io.ObjectStreamClass).
pub(crate) fn called_by_serialization(name: &[u8], descriptor: &[u8]) -> bool {
    matches!(
        (name, descriptor),
        (b"readObject", b"(Ljava/io/ObjectInputStream;)V")
            | (b"writeObject", b"(Ljava/io/ObjectOutputStream;)V")
            | (b"readResolve" | b"writeReplace", b"()Ljava/lang/Object;")
            | (b"readObjectNoData", b"()V")
    )
}

fn builder(class: &[u8]) -> bool {
    matches!(
        class,
        b"java/lang/StringBuilder" | b"java/lang/StringBuffer"
    )
}

/// Whether what the method returns is its receiver.
pub(crate) fn returns_receiver(member: &Member<'_>) -> bool {
    builder(member.class)
        && (member.descriptor.ends_with(b")Ljava/lang/StringBuilder;")
            || member.descriptor.ends_with(b")Ljava/lang/StringBuffer;"))
}

/// Whether the method stores its receiver nowhere and hands it to nobody but its caller.
pub(crate) fn keeps_no_receiver(member: &Member<'_>) -> bool {
    match member.class {
        class if builder(class) => !matches!(member.name, b"chars" | b"codePoints"),
        b"java/lang/Boolean"
        | b"java/lang/Byte"
        | b"java/lang/Character"
        | b"java/lang/Double"
        | b"java/lang/Float"
        | b"java/lang/Integer"
        | b"java/lang/Long"
        | b"java/lang/Short" => member.name == b"<init>" || member.name.ends_with(b"Value"),
        b"java/lang/Object" => matches!(member.name, b"<init>" | b"getClass"),
        _ => false,
    }
}

/// Whether the method stores none of its arguments, hands them to nobody and does not return them.
pub(crate) fn keeps_no_argument(member: &Member<'_>) -> bool {
    match member.class {
        b"java/lang/System" => member.name == b"arraycopy",
        // Look-ups.
        b"java/util/Map"
        | b"java/util/HashMap"
        | b"java/util/TreeMap"
        | b"java/util/LinkedHashMap"
        | b"java/util/concurrent/ConcurrentHashMap"
        | b"java/util/Collection"
        | b"java/util/List"
        | b"java/util/Set"
        | b"java/util/HashSet"
        | b"java/util/TreeSet"
        | b"java/util/ArrayList" => {
            matches!(
                (member.name, member.descriptor),
                (b"get", b"(Ljava/lang/Object;)Ljava/lang/Object;")
                    | (
                        b"contains" | b"containsKey" | b"containsValue",
                        b"(Ljava/lang/Object;)Z"
                    )
                    | (
                        b"remove",
                        b"(Ljava/lang/Object;)Z" | b"(Ljava/lang/Object;)Ljava/lang/Object;"
                    )
                    | (b"indexOf" | b"lastIndexOf", b"(Ljava/lang/Object;)I")
            )
        }
        b"java/util/Arrays" => match member.name {
            b"copyOf" | b"copyOfRange" => true,
            // What it fills an array of objects with is in the array then.
            b"fill" => !member.descriptor.ends_with(b"Ljava/lang/Object;)V"),
            _ => false,
        },
        b"java/lang/String" => {
            matches!(member.name, b"<init>" | b"valueOf" | b"copyValueOf")
                && member.descriptor.starts_with(b"([C")
        }
        _ => false,
    }
}

/// Whether a call allocates nothing (but what it throws), so that it need not be known which line it is on.
pub(crate) fn allocates_nothing(op: u8, member: &Member<'_>) -> bool {
    let name = member.name;
    // The caller marks what they make.
    if boxes(op, member) {
        return true;
    }
    match member.class {
        b"java/lang/Math" | b"java/lang/StrictMath" => true,
        b"java/lang/Object" => matches!(
            name,
            b"<init>" | b"getClass" | b"notify" | b"notifyAll" | b"wait"
        ),
        b"java/lang/String" => matches!(
            name,
            b"length"
                | b"charAt"
                | b"codePointAt"
                | b"isEmpty"
                | b"equals"
                | b"hashCode"
                | b"indexOf"
                | b"lastIndexOf"
                | b"startsWith"
                | b"endsWith"
                | b"compareTo"
                | b"equalsIgnoreCase"
                | b"getChars"
                | b"regionMatches"
        ),
        class if builder(class) => matches!(
            name,
            b"length" | b"charAt" | b"setCharAt" | b"setLength" | b"getChars"
        ),
        b"java/lang/System" => matches!(
            name,
            b"arraycopy" | b"nanoTime" | b"currentTimeMillis" | b"identityHashCode"
        ),
        b"java/lang/Thread" => name == b"currentThread",
        b"java/lang/Enum" => matches!(name, b"ordinal" | b"name"),
        b"java/lang/Boolean"
        | b"java/lang/Byte"
        | b"java/lang/Character"
        | b"java/lang/Double"
        | b"java/lang/Float"
        | b"java/lang/Integer"
        | b"java/lang/Long"
        | b"java/lang/Short"
        | b"java/lang/Number" => {
            // Not those that give a String, a box or an array; such as Character.isDigit, Integer.compare, Double.doubleToLongBits.
            matches!(
                member.descriptor,
                [
                    ..,
                    b')',
                    b'Z' | b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S'
                ]
            ) && !name.starts_with(b"parse")
                && !name.starts_with(b"getInteger")
        }
        b"java/util/Collection"
        | b"java/util/List"
        | b"java/util/Set"
        | b"java/util/Map"
        | b"java/util/ArrayList"
        | b"java/util/HashMap"
        | b"java/util/HashSet" => {
            matches!(name, b"size" | b"isEmpty")
        }
        b"java/util/concurrent/atomic/AtomicInteger"
        | b"java/util/concurrent/atomic/AtomicLong"
        | b"java/util/concurrent/atomic/AtomicBoolean" => {
            !matches!(name, b"toString") && !member.descriptor.contains(&b'L')
        }
        _ => false,
    }
}

/// Whether a constructor of the JDK stores `this` nowhere, locks it not and asks for no hash, whatever the exact type: a list for classes whose
/// bytes were not seen. Throwable is not in it: its constructor calls the synchronized `fillInStackTrace`.
pub(crate) fn safe_constructor(class: &str, descriptor: &str) -> bool {
    SAFE_CONSTRUCTORS
        .binary_search_by(|(known, _)| known.cmp(&class))
        .is_ok_and(|i| SAFE_CONSTRUCTORS[i].1.contains(&descriptor))
}

/// By class: descriptors. A test resolves each in the JDKs' own class files.
pub(crate) const SAFE_CONSTRUCTORS: &[(&str, &[&str])] = &[
    ("java/io/ByteArrayInputStream", &["([B)V", "([BII)V"]),
    ("java/io/ByteArrayOutputStream", &["()V", "(I)V"]),
    ("java/io/FilterInputStream", &["(Ljava/io/InputStream;)V"]),
    ("java/io/FilterOutputStream", &["(Ljava/io/OutputStream;)V"]),
    ("java/io/InputStream", &["()V"]),
    ("java/io/OutputStream", &["()V"]),
    ("java/lang/Enum", &["(Ljava/lang/String;I)V"]),
    ("java/lang/Number", &["()V"]),
    ("java/lang/Object", &["()V"]),
    ("java/lang/Record", &["()V"]),
    (
        "java/lang/ref/PhantomReference",
        &["(Ljava/lang/Object;Ljava/lang/ref/ReferenceQueue;)V"],
    ),
    (
        "java/lang/ref/SoftReference",
        &[
            "(Ljava/lang/Object;)V",
            "(Ljava/lang/Object;Ljava/lang/ref/ReferenceQueue;)V",
        ],
    ),
    (
        "java/lang/ref/WeakReference",
        &[
            "(Ljava/lang/Object;)V",
            "(Ljava/lang/Object;Ljava/lang/ref/ReferenceQueue;)V",
        ],
    ),
    ("java/text/Format", &["()V"]),
    ("java/util/AbstractCollection", &["()V"]),
    ("java/util/AbstractList", &["()V"]),
    ("java/util/AbstractMap", &["()V"]),
    ("java/util/AbstractQueue", &["()V"]),
    ("java/util/AbstractSequentialList", &["()V"]),
    ("java/util/AbstractSet", &["()V"]),
    ("java/util/ArrayDeque", &["()V", "(I)V"]),
    (
        "java/util/ArrayList",
        &["()V", "(I)V", "(Ljava/util/Collection;)V"],
    ),
    ("java/util/EventObject", &["(Ljava/lang/Object;)V"]),
    ("java/util/HashMap", &["()V", "(I)V", "(IF)V"]),
    ("java/util/HashSet", &["()V", "(I)V", "(IF)V"]),
    (
        "java/util/LinkedHashMap",
        &["()V", "(I)V", "(IF)V", "(IFZ)V"],
    ),
    ("java/util/LinkedHashSet", &["()V", "(I)V", "(IF)V"]),
    ("java/util/LinkedList", &["()V"]),
    (
        "java/util/PriorityQueue",
        &["()V", "(I)V", "(ILjava/util/Comparator;)V"],
    ),
    ("java/util/TimerTask", &["()V"]),
    ("java/util/TreeMap", &["()V", "(Ljava/util/Comparator;)V"]),
    ("java/util/concurrent/ConcurrentHashMap", &["()V", "(I)V"]),
    (
        "java/util/concurrent/atomic/AtomicBoolean",
        &["()V", "(Z)V"],
    ),
    (
        "java/util/concurrent/atomic/AtomicInteger",
        &["()V", "(I)V"],
    ),
    ("java/util/concurrent/atomic/AtomicLong", &["()V", "(J)V"]),
    (
        "java/util/concurrent/atomic/AtomicReference",
        &["()V", "(Ljava/lang/Object;)V"],
    ),
];

/// Constructors that are safe for objects of the class itself, which has no subclasses: their methods return `this` to them, which the analysis
/// takes for a leak.
fn safe_final_constructor(class: &str, descriptor: &str) -> bool {
    match class {
        "java/lang/StringBuilder" => true,
        "java/lang/StringBuffer" => descriptor == "()V" || descriptor == "(I)V",
        _ => false,
    }
}

/// As [`safe_constructor`], for `new` of exactly this class.
pub(crate) fn safe_new(class: &str, descriptor: &str) -> bool {
    safe_constructor(class, descriptor) || safe_final_constructor(class, descriptor)
}
