//! Collapsed stacks for flame graphs, one line a pair of contexts: the first access's frames from the outermost in, the kind in brackets, the second's from
//! the innermost out, and the samples.

use std::io::Write;

use borescope_profile::waste::Profile;

use super::lines::Lines;
use crate::{Error, MethodGlob, words};

/// Writes the wasteful pairs; `method`: only those of which a line is in such a method.
pub fn collapsed(
    profile: &Profile,
    method: Option<&MethodGlob>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let mut lines = Lines::of(profile);
        if method.is_some() {
            let kept = {
                let leaf = |node| lines.profile.contexts.leaf(node);
                let wanted = |frame| {
                    let place = lines.place(frame);
                    place.is_some_and(|place| {
                        method.is_none_or(|glob| glob.matches(&place.class, &place.method))
                    })
                };
                let mut kept = lines.profile.pairs.clone();
                kept.retain(|pair, _| {
                    let leaves = [leaf(pair.first), leaf(pair.second)];
                    leaves.into_iter().flatten().any(wanted)
                });
                kept
            };
            lines.profile.pairs = kept;
        }
        let name = |frame| match lines.place(frame) {
            Some(place) if place.line > 0 => {
                format!(
                    "{}.{}:{}",
                    words::java_name(&place.class),
                    place.method,
                    place.line
                )
            }
            Some(place) => format!("{}.{}", words::java_name(&place.class), place.method),
            None => lines.name(frame),
        };
        let text = lines.profile.collapsed(|frame| words::plain(&name(frame)));
        Ok(out.write_all(text.as_bytes())?)
    })
}
