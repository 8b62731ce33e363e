//! Class-name globs: `*` is any run of characters (dots too), `?` one character; a name without a wildcard also covers the
//! classes nested in it. Names are compared as the JVM writes them, with `/`.

/// A compiled glob.
#[derive(Clone, Debug)]
pub struct Glob {
    text: String,
    pattern: Vec<u8>,
    literal: bool,
}

impl Glob {
    /// `com.acme.*` and `com/acme/*` mean the same.
    pub fn new(text: &str) -> Self {
        let pattern: Vec<u8> = text
            .bytes()
            .map(|b| if b == b'.' { b'/' } else { b })
            .collect();
        let literal = !pattern.iter().any(|b| matches!(b, b'*' | b'?'));
        Self {
            text: text.to_owned(),
            pattern,
            literal,
        }
    }

    /// As the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a class's internal name matches.
    pub fn matches(&self, name: &str) -> bool {
        let name = name.as_bytes();
        if self.literal {
            return name
                .strip_prefix(&self.pattern[..])
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'$');
        }
        let (mut p, mut n) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while n < name.len() {
            match self.pattern.get(p) {
                Some(b'*') => {
                    star = Some((p, n));
                    p += 1;
                }
                Some(&c) if c == b'?' || c == name[n] => {
                    p += 1;
                    n += 1;
                }
                _ => match star {
                    Some((sp, sn)) => {
                        star = Some((sp, sn + 1));
                        p = sp + 1;
                        n = sn + 1;
                    }
                    None => return false,
                },
            }
        }
        self.pattern[p..].iter().all(|&c| c == b'*')
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn matches_like_a_shell() {
        for (glob, name, yes) in [
            ("com.acme.*", "com/acme/Foo", true),
            ("com.acme.*", "com/acme/sub/Foo$Bar", true),
            ("com.acme.*", "com/acmeother/Foo", false),
            ("com/acme/Foo", "com/acme/Foo$Bar", true),
            ("com.acme.Foo", "com/acme/Foobar", false),
            ("*Test", "a/b/MyTest", true),
            ("*a*b", "xaxxbxb", true),
            ("*a*b", "xaxxbxc", false),
            ("?", "ab", false),
            ("*", "", true),
        ] {
            assert_eq!(Glob::new(glob).matches(name), yes, "{glob} {name}");
        }
    }
}
