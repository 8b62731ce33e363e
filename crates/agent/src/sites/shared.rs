//! Objects that code hands out again and again where it seems to make new ones: the first who asks for them must not pass for their maker. So they
//! get their identity hash before anything is instrumented, and whoever has one is never marked.

use crate::jvmti::sys::JValue;
use crate::jvmti::{Jni, Jvmti};
use std::ffi::CStr;

/// Boxes that the JLS wants to be the same (5.1.7).
const BOXES: [(&CStr, &CStr, std::ops::Range<i64>); 5] = [
    (c"java/lang/Byte", c"(B)Ljava/lang/Byte;", -128..128),
    (c"java/lang/Short", c"(S)Ljava/lang/Short;", -128..128),
    (c"java/lang/Character", c"(C)Ljava/lang/Character;", 0..128),
    (c"java/lang/Integer", c"(I)Ljava/lang/Integer;", -128..128),
    (c"java/lang/Long", c"(J)Ljava/lang/Long;", -128..128),
];

/// Hashes cached boxes and the empty string.
pub fn hash_all(jvmti: Jvmti, jni: Jni) {
    let empty = jni.interned(c"");
    if !empty.is_null() {
        jvmti.hash(empty);
        jni.forget(empty);
    }
    for (name, signature, values) in BOXES {
        let class = jni.find_class(name);
        if class.is_null() {
            continue;
        }
        let method = jni.static_method(class, c"valueOf", signature);
        for value in values.filter(|_| !method.is_null()) {
            // A jvalue's smaller members are its first bytes.
            let object = jni.call_static_object(class, method, &[JValue { long: value }]);
            if !object.is_null() {
                jvmti.hash(object);
                jni.forget(object);
            }
        }
        jni.forget(class);
    }
}
