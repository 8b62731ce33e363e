//! Reports of the waste lens: the pairs of lines whose memory operations did no useful work, as text, JSON, a page for a browser or collapsed stacks,
//! and what differs between two profiles.

mod collapsed;
mod diff;
mod flame;
mod html;
mod json;
mod lines;
mod text;
mod tree;

pub use collapsed::collapsed;
pub use diff::{diff_json, diff_text};
pub use html::html;
pub use json::json;
pub use text::text;

use borescope_waste::Waste;

/// A kind in words.
fn kind(waste: Waste) -> &'static str {
    match waste {
        Waste::DeadStore => "dead store",
        Waste::SilentStore => "silent store",
        Waste::SilentLoad => "silent load",
    }
}

/// What was asked about.
fn asked(waste: Waste) -> &'static str {
    match waste {
        Waste::DeadStore | Waste::SilentStore => "stores",
        Waste::SilentLoad => "loads",
    }
}
