//! What stayed plain, by reason: examples, or all of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use borescope_profile::Skipped;

use crate::page::{Look, Page};
use crate::words::{self, plural};

/// Examples for a reason.
const EXAMPLES: usize = 3;

/// A paragraph a reason, the most frequent first; false = there is none. `what` ends the sentence "3 classes and methods ...".
pub(crate) fn by_reason(page: &mut Page, skipped: &[Skipped], what: &str, all: bool) -> bool {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for s in skipped {
        let class = words::java_name(&s.class);
        let name = if s.method.is_empty() {
            class
        } else {
            format!("{class}.{}{}", s.method, words::parameters(&s.descriptor))
        };
        reasons.entry(&s.reason).or_default().push(name);
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(reason, names)| (Reverse(names.len()), *reason));
    for (reason, names) in &reasons {
        let count = names.len();
        let lead = format!(
            "{} {what}: {reason}",
            plural(count as u64, "class or method", "classes and methods")
        );
        if all {
            page.para(Look::Plain, "  - ", &lead);
            names
                .iter()
                .for_each(|n| page.line(Look::Plain, &format!("      {n}")));
        } else {
            let more = if count > EXAMPLES { ", ..." } else { "" };
            let some = names[..count.min(EXAMPLES)].join(", ");
            page.para(Look::Plain, "  - ", &format!("{lead}: {some}{more}"));
        }
    }
    if !all && skipped.len() > EXAMPLES {
        page.para(Look::Dim, "    ", "--skipped lists all that stayed plain");
    }
    !reasons.is_empty()
}
