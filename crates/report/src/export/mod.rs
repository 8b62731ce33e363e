//! Profiles in the formats of other tools, one file a format; docs/exports.md says what each gives and what it loses. Each has a function for each lens
//! that it is made of: `paths`, `sites`.
//!
//! In: a profile. Out: bytes on a writer, a method or a row at a time. What must never happen here: an estimate or a lower bound that passes for an
//! exact count, code reported as not run of which that is not known.

pub mod collapsed;
pub mod csv;
pub mod lcov;
pub mod pprof;
pub mod sarif;

use borescope_profile::sites::{Place, Site};
use borescope_profile::{Manifest, Method, PathRow, Profile};

use crate::names::Names;
use crate::{Error, MethodGlob, Sources, json::hottest, words};

/// What goes into an export.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// Only these methods; of sites, only lines in them.
    pub method: Option<MethodGlob>,
    /// Where source files are looked for, by package and name: formats that name files then name them as they are found there.
    pub source: Sources,
}

impl ExportOptions {
    fn wants(&self, method: &Method) -> bool {
        self.method
            .as_ref()
            .is_none_or(|glob| glob.matches(&method.class, &method.method))
    }
}

/// What is wrong with the counts of a method, behind its name; nothing where they are exact.
fn mark(method: &Method) -> &'static str {
    match (method.estimate, method.paths_exact) {
        (Some(_), _) => " [estimate]",
        (None, false) => " [lower bound]",
        (None, true) => "",
    }
}

/// `acme.Cache.load`, with a mark if its counts are not exact.
fn method_name(method: &Method) -> String {
    let class = words::java_name(&method.class);
    words::plain(&format!("{class}.{}{}", method.method, mark(method)))
}

/// `path 9 (lines 53-55, 68)`
fn path_name(paths: &[PathRow], path: &PathRow) -> String {
    words::plain(&Names::new(paths).full(path.id, &[]))
}

/// A frame of an allocation: the place as a name, and its place in the source.
struct Frame<'a> {
    name: String,
    place: Option<&'a Place>,
}

impl<'a> Frame<'a> {
    fn named(name: &str) -> Self {
        Frame {
            name: words::plain(name),
            place: None,
        }
    }

    fn at(place: &'a Place) -> Self {
        let class = words::java_name(&place.class);
        Frame {
            name: words::plain(&format!("{class}.{}", place.method)),
            place: Some(place),
        }
    }
}

/// What stands for an allocation as a stack, the type first: type, line that allocates, line of the application.
fn stack<'a>(ty: &str, site: Option<&'a Site>, reason: Option<&str>) -> Vec<Frame<'a>> {
    let mut frames = vec![Frame::named(ty)];
    match site {
        None => frames.push(Frame::named(&format!(
            "(site not known: {})",
            reason.unwrap_or("no reason")
        ))),
        Some(site) => {
            frames.push(Frame::at(&site.at));
            match &site.app {
                None => frames.push(Frame::named("(caller not known)")),
                Some(app) if *app != site.at => frames.push(Frame::at(app)),
                Some(_) => {}
            }
        }
    }
    frames
}

/// Each method that ran with its paths, the hottest first.
fn each_method(
    profile: &Profile,
    options: &ExportOptions,
    mut each: impl FnMut(&Method, &[PathRow]) -> Result<(), Error>,
) -> Result<(), Error> {
    for method in hottest(profile.methods()) {
        if options.wants(method) {
            each(method, &profile.detail(method.index)?.paths)?;
        }
    }
    Ok(())
}

/// What the counts of a profile are worth, where they are not simply exact: a line each.
fn doubts(manifest: &Manifest) -> Vec<String> {
    let burst = manifest.burst.map(|burst| {
        format!(
            "one in {} calls was profiled: counts of methods marked [estimate] are estimates",
            burst.one_in
        )
    });
    let lost = manifest.lost > 0 || manifest.counters_torn.is_some();
    let lower = lost.then(|| {
        "counts of methods marked [lower bound] are lower bounds: not everything was counted"
            .to_owned()
    });
    burst.into_iter().chain(lower).collect()
}
