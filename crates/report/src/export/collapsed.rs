//! Collapsed stacks, the format of flamegraph.pl, speedscope and async-profiler's converters: `frame;frame;frame count`, the root first.

use std::io::Write;

use borescope_profile::Profile;

use super::{ExportOptions, Frame, each_method, method_name, path_name, stack};
use crate::Error;
use crate::sites::{At, wanted};

/// Each method with its paths; the count says how often a path ran.
pub fn paths(profile: &Profile, options: &ExportOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| {
        each_method(profile, options, |method, paths| {
            let name = frame(&method_name(method));
            for path in paths {
                let path_name = frame(&path_name(paths, path));
                writeln!(out, "{name};{path_name} {}", path.count)?;
            }
            Ok(())
        })
    })
}

/// Lines of the application, below them the lines that allocate, below these the types; the count is of live bytes.
pub fn sites(at: At, options: &ExportOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| {
        for live in at.profile.live(at.snapshot.number)? {
            let site = live.site.and_then(|site| at.profile.site(site));
            if site.is_some_and(|site| !wanted(site, options.method.as_ref())) {
                continue;
            }
            let frames = stack(&live.ty, site, live.reason.as_deref());
            let names: Vec<String> = frames.iter().rev().map(named).collect();
            writeln!(out, "{} {}", names.join(";"), live.sum.bytes)?;
        }
        Ok(())
    })
}

/// `acme.Cache.load:42`
fn named(one: &Frame) -> String {
    match one.place {
        Some(place) if place.line > 0 => frame(&format!("{}:{}", one.name, place.line)),
        _ => frame(&one.name),
    }
}

/// Semicolons part frames.
fn frame(name: &str) -> String {
    name.replace(';', ",")
}
