//! Where to look first: what the counts of the hottest methods prove, the weightiest first. Reports for people begin with it.

use borescope_profile::Method;

use crate::{
    advice::Finding,
    words::{self, percent},
};

/// So many are named.
const FIRST: usize = 5;
/// They come from the methods shown and from those with at least one in so many of all iterations ...
const SCAN_SHARE: u128 = 200;
/// ... but not from more methods than this.
const SCAN_MOST: usize = 100;

/// A finding and its method.
pub(crate) struct Lead<'a> {
    /// Its place among the methods shown; `None` = it is not shown.
    pub(crate) number: Option<usize>,
    pub(crate) method: &'a Method,
    pub(crate) finding: Finding,
}

/// The methods in which findings are looked for, of all that were `chosen`, the hottest first: some more than the `shown` ones, as what to
/// mend need not be in the hottest.
pub(crate) fn scanned<'a, 'm>(
    chosen: &'a [&'m Method],
    shown: usize,
    all: u64,
) -> &'a [&'m Method] {
    let weighs = |m: &Method| u128::from(m.ids) * SCAN_SHARE >= u128::from(all);
    let scanned = chosen
        .iter()
        .enumerate()
        .take_while(|(i, m)| *i < shown || (*i < SCAN_MOST && weighs(m)))
        .count();
    &chosen[..scanned]
}

/// The weightiest ones.
pub(crate) fn weightiest(mut leads: Vec<Lead>) -> Vec<Lead> {
    leads.sort_by_key(|lead| std::cmp::Reverse(lead.finding.weight));
    leads.truncate(FIRST);
    leads
}

impl Lead<'_> {
    /// `Scanner.next (method 1, 94 % of all iterations): a pattern of 5 paths repeats back to back`
    pub(crate) fn sentence(&self, all: u64) -> String {
        let name = short_name(self.method);
        let place = match self.number {
            Some(n) => format!("method\u{a0}{n}"),
            None => format!("--method\u{a0}'{name}'"),
        };
        let share = percent(self.method.ids, all);
        format!(
            "{name} ({place}, {share} of all iterations): {}",
            self.finding.short
        )
    }
}

/// `Scanner.next`: class without package.
pub(crate) fn short_name(method: &Method) -> String {
    let class = words::java_name(&method.class);
    format!(
        "{}.{}",
        class.rsplit('.').next().unwrap_or(&class),
        method.method
    )
}
