//! Names of types as in Java source.

use crate::gather::source_form;

/// A JVM signature (`[Ljava/lang/String;`), or a binary name with slashes, as in Java source.
///
/// A hidden class (`LMain$$Lambda$14.0x0000000800c03000;`, JVMTI GetClassSignature) has a suffix that differs from run to run, and lambdas had a
/// number before JDK 21: both go, so that classes of two runs compare.
pub(crate) fn type_name(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let mut base = match element {
        "Z" if dimensions > 0 => "boolean".into(),
        "B" if dimensions > 0 => "byte".into(),
        "C" if dimensions > 0 => "char".into(),
        "S" if dimensions > 0 => "short".into(),
        "I" if dimensions > 0 => "int".into(),
        "J" if dimensions > 0 => "long".into(),
        "F" if dimensions > 0 => "float".into(),
        "D" if dimensions > 0 => "double".into(),
        _ => class_name(element),
    };
    base.push_str(&"[]".repeat(dimensions));
    base
}

pub(crate) fn class_name(element: &str) -> String {
    let signature = element.strip_prefix('L').and_then(|s| s.strip_suffix(';'));
    let Some(name) = signature else {
        return source_form(element);
    };
    let hidden = name
        .rsplit_once(".0x")
        .filter(|(_, suffix)| !suffix.is_empty() && suffix.bytes().all(|b| b.is_ascii_hexdigit()));
    let Some((name, _)) = hidden else {
        return source_form(name);
    };
    let lambda = name
        .rsplit_once("$$Lambda$")
        .filter(|(_, number)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
    match lambda {
        Some((host, _)) => source_form(host) + "$$Lambda",
        None => source_form(name),
    }
}

#[cfg(test)]
mod tests {
    use super::type_name;

    #[test]
    fn types_are_named_as_in_source() {
        for (name, source) in [
            ("[B", "byte[]"),
            ("[[J", "long[][]"),
            ("Ljava/util/HashMap$Node;", "java.util.HashMap$Node"),
            ("[Ljava/lang/String;", "java.lang.String[]"),
            ("java/lang/String", "java.lang.String"),
            ("L", "L"),
            ("B", "B"),
            ("LA$$Lambda$14.0x0000000800c03000;", "A$$Lambda"),
            ("[LA$$Lambda.0x00000008;", "A$$Lambda[]"),
            ("Lp/H.0xff;", "p.H"),
            ("Lp/H.0x;", "p.H.0x"),
            ("", ""),
        ] {
            assert_eq!(type_name(name), source, "{name}");
        }
    }
}
