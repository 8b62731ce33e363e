//! Sequences of paths in a profile, to compare two runs.

use anyhow::Result;
use borescope_profile::{Method, Profile};
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// A sequence: its method and path IDs.
pub type Gram = (String, Vec<u32>);

/// A method's name that is the same in each run.
pub fn name(method: &Method) -> String {
    format!(
        "{}.{}{} {:x}",
        method.class, method.method, method.descriptor, method.class_hash
    )
}

/// How often the sequences of these lengths occurred.
pub fn counts(profile: &Profile, lengths: RangeInclusive<u32>) -> Result<HashMap<Gram, u64>> {
    let mut all = HashMap::new();
    for method in profile.methods().iter().filter(|m| m.ids > 0) {
        let kipf = profile.detail(method.index)?.kipf;
        let name = name(method);
        for (ids, count) in lengths.clone().flat_map(|length| kipf.level(length)) {
            *all.entry((name.clone(), ids)).or_default() += count;
        }
    }
    Ok(all)
}
