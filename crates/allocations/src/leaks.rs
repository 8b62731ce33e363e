//! Whether a constructor may let go of `this`: make it reachable for others, lock it, or ask for its hash.
//!
//! A plain store into the header is right only where no one else can have written there. So each class is summarized when its bytes are seen: where
//! `this` goes in its constructors, and in its methods that these call on `this`. A question about `new C(...)` then follows the calls, with the exact
//! type C: a virtual call leads to the method that C itself would run. What is not known leaks.

use std::collections::HashSet;
use std::sync::Arc;

use borescope_classfile::ClassFile;
use borescope_classfile::insn::{INVOKESPECIAL, RETURN};

use crate::walk::{THIS, Walker};
use crate::{Constructors, jdk};

const NATIVE: u16 = 0x100;
const ABSTRACT: u16 = 0x400;
const SYNCHRONIZED: u16 = 0x20;
const STATIC: u16 = 0x8;
const PRIVATE: u16 = 0x2;
const OVERRIDABLE: u16 = 0x5;

/// What a class says about where its constructors let `this` go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSummary {
    name: Box<str>,
    super_name: Option<Box<str>>,
    /// Declares a `finalize()` that does something: Object's constructor hands such objects to the collector (RegisterFinalizersAtInit).
    finalizes: bool,
    /// Constructors, and methods that they lead to.
    bodies: Vec<Body>,
    /// All instance methods: name and descriptor, and whether only classes of the package can override it. Sorted.
    declared: Vec<(Box<str>, bool)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Body {
    /// Name and descriptor.
    key: Box<str>,
    leaks: bool,
    calls: Vec<ThisCall>,
}

/// A call on `this`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ThisCall {
    class: Box<str>,
    key: Box<str>,
    /// Leads to a method of `class` itself: a constructor, or a private method.
    exact: bool,
    /// `super.method()`.
    above: bool,
}

impl ClassSummary {
    /// Internal name of the class.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn body(&self, key: &str) -> Option<&Body> {
        self.bodies.iter().find(|body| &*body.key == key)
    }

    /// Whether the class declares such an instance method; if so, whether it is package-private.
    fn declares(&self, key: &str) -> Option<bool> {
        let found = self
            .declared
            .binary_search_by(|(known, _)| (**known).cmp(key));
        found.ok().map(|i| self.declared[i].1)
    }
}

fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

fn key(name: &[u8], descriptor: &[u8]) -> Box<str> {
    let mut key = String::from_utf8_lossy(name).into_owned();
    key.push_str(&String::from_utf8_lossy(descriptor));
    key.into()
}

/// Summarizes a class.
pub fn summarize(class: &ClassFile<'_>) -> ClassSummary {
    let mut walker = Walker::default();
    let methods = class.methods();
    let mut declared: Vec<(Box<str>, bool)> = methods
        .iter()
        .filter(|method| method.access_flags() & STATIC == 0)
        .map(|method| {
            let own = method.access_flags() & (OVERRIDABLE | PRIVATE) == 0;
            (key(method.name_bytes(), method.descriptor_bytes()), own)
        })
        .collect();
    declared.sort_unstable();
    let find = |key: &str| {
        methods.iter().position(|method| {
            key.strip_prefix(&*method.name()) == Some(&*method.descriptor())
                && method.access_flags() & STATIC == 0
        })
    };
    let mut bodies: Vec<Body> = Vec::new();
    let mut todo: Vec<usize> = (0..methods.len())
        .filter(|&i| methods[i].name_bytes() == b"<init>")
        .collect();
    let mut seen: HashSet<usize> = todo.iter().copied().collect();
    while let Some(i) = todo.pop() {
        let method = &methods[i];
        let mut body = Body {
            key: key(method.name_bytes(), method.descriptor_bytes()),
            leaks: true,
            calls: Vec::new(),
        };
        let opaque = method.access_flags() & (NATIVE | ABSTRACT | SYNCHRONIZED) != 0;
        if let (false, Some(code)) = (opaque, method.code())
            && walker.walk(class, method, &code, &[]).is_ok()
        {
            body.leaks = walker.escaped & THIS != 0;
            for sent in walker.sent.iter().filter(|_| !body.leaks) {
                let at = usize::from(sent.bci);
                let index = u16::from_be_bytes([code.code[at + 1], code.code[at + 2]]);
                // The walk has looked at it.
                let Some(member) = class.member(index) else {
                    continue;
                };
                if jdk::keeps_no_receiver(&member) && member.class == b"java/lang/Object" {
                    continue;
                }
                let name = key(member.name, member.descriptor);
                let target = find(&name);
                let here = member.class == class.this_name_bytes();
                let private =
                    here && target.is_some_and(|i| methods[i].access_flags() & PRIVATE != 0);
                let special = code.code[at] == INVOKESPECIAL;
                let exact = member.name == b"<init>" || private || (special && here);
                if let Some(target) = target.filter(|_| here || !exact)
                    && seen.insert(target)
                {
                    todo.push(target);
                }
                let call = ThisCall {
                    class: text(member.class),
                    key: name,
                    exact,
                    above: special && !exact,
                };
                if !body.calls.contains(&call) {
                    body.calls.push(call);
                }
            }
        }
        bodies.push(body);
    }
    ClassSummary {
        name: text(class.this_name_bytes()),
        super_name: class.super_name_bytes().map(text),
        finalizes: class.this_name_bytes() != b"java/lang/Object"
            && find("finalize()V").is_some_and(|i| {
                // An empty one does not count (classFileParser.cpp, has_empty_finalizer).
                methods[i].code().is_none_or(|code| code.code != [RETURN])
            }),
        bodies,
        declared,
    }
}

/// The summaries that are known, as one class loader sees them.
pub trait Summaries {
    /// The summary of a class; none if its bytes were not seen.
    fn summary(&self, class: &str) -> Option<Arc<ClassSummary>>;
}

/// Answers questions about constructors from the summaries.
pub struct Resolver<'a>(pub &'a dyn Summaries);

impl Constructors for Resolver<'_> {
    fn leaks(&self, class: &str, descriptor: &str) -> bool {
        if jdk::safe_new(class, descriptor) {
            return false;
        }
        Resolution::new(self.0, class)
            .is_none_or(|mut resolution| resolution.leaks(class, &format!("<init>{descriptor}")))
    }
}

/// Chains longer than this are not followed.
const LONGEST_CHAIN: usize = 64;

/// A question about objects of one exact type.
struct Resolution {
    /// The type, its superclass, and so on, up to the last that is known. (None of those beyond has a finalizer if a constructor that is
    /// known to be safe leads there: no class on that list, and none above it, has.)
    chain: Vec<Arc<ClassSummary>>,
    todo: Vec<(usize, Box<str>)>,
    seen: HashSet<(usize, Box<str>)>,
}

impl Resolution {
    /// None if the type has a finalizer, or is not known.
    fn new(summaries: &dyn Summaries, class: &str) -> Option<Self> {
        let mut chain = Vec::new();
        let mut next: Option<Box<str>> = Some(class.into());
        while let Some(summary) = next.take().and_then(|name| summaries.summary(&name)) {
            if summary.finalizes || chain.len() == LONGEST_CHAIN {
                return None;
            }
            next.clone_from(&summary.super_name);
            chain.push(summary);
        }
        (!chain.is_empty()).then_some(Self {
            chain,
            todo: Vec::new(),
            seen: HashSet::new(),
        })
    }

    fn leaks(&mut self, class: &str, key: &str) -> bool {
        if self.reach_exact(class, key).is_err() {
            return true;
        }
        while let Some((at, key)) = self.todo.pop() {
            let summary = Arc::clone(&self.chain[at]);
            let Some(body) = summary.body(&key).filter(|body| !body.leaks) else {
                return true;
            };
            for call in &body.calls {
                let reached = if call.exact {
                    self.reach_exact(&call.class, &call.key)
                } else {
                    self.reach_virtual(at, &call.key, call.above)
                };
                if reached.is_err() {
                    return true;
                }
            }
        }
        false
    }

    fn reach(&mut self, at: usize, key: &str) {
        if self.seen.insert((at, key.into())) {
            self.todo.push((at, key.into()));
        }
    }

    /// A constructor or private method.
    fn reach_exact(&mut self, class: &str, key: &str) -> Result<(), Leaks> {
        let listed = |descriptor| jdk::safe_constructor(class, descriptor);
        if key.strip_prefix("<init>").is_some_and(listed) {
            return Ok(());
        }
        if let Some(at) = self
            .chain
            .iter()
            .position(|summary| &*summary.name == class)
        {
            self.reach(at, key);
            return Ok(());
        }
        Err(Leaks)
    }

    /// A method looked up from the exact type (or from above the caller); called in the class at `caller`.
    fn reach_virtual(&mut self, caller: usize, key: &str, above: bool) -> Result<(), Leaks> {
        let first = if above { caller + 1 } else { 0 };
        let mut found = false;
        for at in first..self.chain.len() {
            let Some(own) = self.chain[at].declares(key) else {
                continue;
            };
            // A package-private method is not overridden by one in another package.
            if !found || own {
                found = true;
                self.reach(at, key);
            }
            // The one that the caller sees: what it overrides itself is never run.
            if at >= caller {
                break;
            }
        }
        if found { Ok(()) } else { Err(Leaks) }
    }
}

/// The object may get away.
struct Leaks;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jdks;
    use std::collections::HashMap;
    use std::process::Command;

    /// Whether the constructor and all that it calls on `this` are plainly safe: no call depends on the exact type, and what it calls is
    /// safe in the same way.
    fn plainly_safe(classes: &HashMap<String, ClassSummary>, class: &str, key: &str) -> bool {
        let summary = &classes[class];
        !summary.finalizes
            && summary.body(key).is_some_and(|body| {
                !body.leaks
                    && body
                        .calls
                        .iter()
                        .all(|call| call.exact && plainly_safe(classes, &call.class, &call.key))
            })
    }

    #[test]
    fn listed_constructors_are_safe_by_the_class_files_of_the_jdks() {
        let dir = tempfile::tempdir().unwrap();
        jdks::compile(&["JdkClasses.java"], dir.path(), &[]);
        for version in jdks::JDKS {
            let out = dir.path().join(version.to_string());
            std::fs::create_dir(&out).unwrap();
            let mut java = Command::new(jdks::home(version).join("bin/java"));
            java.arg("-cp").arg(dir.path()).arg("JdkClasses").arg(&out);
            let names = jdk::SAFE_CONSTRUCTORS.iter().map(|(class, _)| class);
            jdks::output(java.args(names));
            let mut classes = HashMap::new();
            for file in std::fs::read_dir(&out).unwrap() {
                let bytes = std::fs::read(file.unwrap().path()).unwrap();
                let summary = summarize(&ClassFile::parse(&bytes).unwrap());
                classes.insert(summary.name().to_owned(), summary);
            }
            for (class, descriptors) in jdk::SAFE_CONSTRUCTORS {
                for descriptor in *descriptors {
                    let safe = plainly_safe(&classes, class, &format!("<init>{descriptor}"));
                    assert!(safe, "JDK {version}: {class}{descriptor}");
                }
            }
            let failure = "<init>(Ljava/lang/String;)V";
            assert!(!plainly_safe(&classes, "java/lang/Throwable", failure));
        }
    }

    /// A class with `m()V`, if it declares that, and a constructor that calls such methods and constructors.
    fn class(
        name: &str,
        above: Option<&str>,
        m: Option<(bool, bool)>,
        calls: &[(&str, &str)],
    ) -> ClassSummary {
        let body = |key: &str, leaks, calls| Body {
            key: key.into(),
            leaks,
            calls,
        };
        let call = |&(class, key): &(&str, &str)| ThisCall {
            class: class.into(),
            key: key.into(),
            exact: key.starts_with('<'),
            above: false,
        };
        let mut bodies = vec![body("<init>()V", false, calls.iter().map(call).collect())];
        bodies.extend(m.map(|(_, leaks)| body("m()V", leaks, Vec::new())));
        ClassSummary {
            name: name.into(),
            super_name: above.map(Into::into),
            finalizes: false,
            bodies,
            declared: m.map(|(own, _)| ("m()V".into(), own)).into_iter().collect(),
        }
    }

    struct Known(Vec<Arc<ClassSummary>>);

    impl Summaries for Known {
        fn summary(&self, class: &str) -> Option<Arc<ClassSummary>> {
            self.0.iter().find(|known| known.name() == class).cloned()
        }
    }

    /// `a.A` and `a.B` are of one package, `b.C`, which declares `m()` anew, of another: B's constructor calls A's package-private one.
    #[test]
    fn a_method_of_the_same_name_in_another_package_overrides_nothing() {
        for (own, leaks, expected) in [
            (true, true, true),
            (true, false, false),
            // Overridden.
            (false, true, false),
        ] {
            let known = Known(vec![
                class(
                    "b/C",
                    Some("a/B"),
                    Some((false, false)),
                    &[("a/B", "<init>()V")],
                )
                .into(),
                class(
                    "a/B",
                    Some("a/A"),
                    None,
                    &[("a/A", "<init>()V"), ("a/B", "m()V")],
                )
                .into(),
                class("a/A", Some("java/lang/Object"), Some((own, leaks)), &[]).into(),
            ]);
            assert_eq!(
                Resolver(&known).leaks("b/C", "()V"),
                expected,
                "{own} {leaks}"
            );
        }
    }

    #[test]
    fn the_list_is_sorted() {
        assert!(jdk::SAFE_CONSTRUCTORS.is_sorted());
    }
}
