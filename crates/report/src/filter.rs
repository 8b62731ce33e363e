//! Which methods a report is about: a glob over `package.Class.method`.

/// A glob: `*` stands for any characters (dots included), `?` for one. It matches a method when it matches its class name, its
/// `package.Class.method`, or the same without the package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodGlob(String);

impl MethodGlob {
    /// A glob as a user types it: dots or slashes between packages.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.replace('/', "."))
    }

    /// As typed (with dots).
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the method is meant; `class` with dots or slashes.
    pub fn matches(&self, class: &str, method: &str) -> bool {
        let class = class.replace('/', ".");
        let full = format!("{class}.{method}");
        let simple = class.rsplit('.').next().unwrap_or(&class);
        let short = full.get(class.len() - simple.len()..).unwrap_or(&full);
        [class.as_str(), simple, &full, short]
            .iter()
            .any(|name| glob(self.0.as_bytes(), name.as_bytes()))
    }
}

/// Linear-memory matching with one point of return (the last `*`): at worst pattern * text steps, never exponential.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match back {
                Some((star, at)) => {
                    back = Some((star, at + 1));
                    p = star + 1;
                    t = at + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_class_method_or_both() {
        let yes = |g: &str| MethodGlob::new(g).matches("com/acme/Scanner", "next");
        for g in [
            "*",
            "com.acme.*",
            "com/acme/*",
            "com.acme.Scanner",
            "Scanner",
            "Scanner.next",
            "com.acme.Scanner.next",
            "*.next",
            "Sc?nner.n*t",
        ] {
            assert!(yes(g), "{g}");
        }
        for g in [
            "",
            "com.acme",
            "canner",
            "next",
            "Scanner.nex",
            "*.nexts",
            "?",
            "scanner",
        ] {
            assert!(!yes(g), "{g}");
        }
        assert!(MethodGlob::new("Plain.run").matches("Plain", "run"));
    }

    #[test]
    fn stars_backtrack_without_exploding() {
        let text = "a".repeat(2_000);
        assert!(!glob(
            "*a".repeat(40).as_bytes(),
            format!("{text}b").as_bytes()
        ));
        assert!(glob("*a".repeat(40).as_bytes(), text.as_bytes()));
    }
}
