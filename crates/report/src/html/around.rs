//! Source text around a line.

use borescope_profile::sites::Place;
use serde::Serialize;

use super::cut;
use crate::Sources;

/// Source lines around a line, and their characters.
const AROUND: u32 = 4;
const COLUMNS: usize = 240;

/// Lines of source.
#[derive(Debug, Serialize)]
pub(crate) struct Around {
    /// The number of the first.
    from: u32,
    lines: Vec<String>,
}

impl Around {
    /// The line of a place and those around it; `None` if it is not found.
    pub(crate) fn of(place: &Place, sources: &Sources) -> Option<Around> {
        let line = u32::from(place.line);
        let file = sources.find(&place.class, place.source_file.as_ref()?)?;
        file.indented(line)?;
        let from = line.saturating_sub(AROUND).max(1);
        let lines = (from..=line + AROUND).map_while(|line| file.indented(line));
        let lines = lines.map(|text| cut(&text.replace('\t', "    "), COLUMNS));
        Some(Around {
            from,
            lines: lines.collect(),
        })
    }
}
