//! Text for people. What was profiled; where to look first; the hottest methods with their hot chains in source lines; then the
//! detail of the same methods; then what was not measured.

use std::io::Write;

use borescope_paths::chains::{self, Chain};
use borescope_profile::{Manifest, Method, MethodDetail, Profile};

use crate::{
    Error, MethodGlob, about,
    advice::{self, Finding},
    chain, detail,
    first::{self, Lead},
    json::hottest,
    names::Names,
    page::{Look, Page},
    skipped,
    source::Sources,
    words::{self, percent, plural, thousands},
};

/// Chains of a method.
const CHAINS: usize = 3;
/// Trees of a method.
const TREES: usize = 2;
/// Nodes below this share of the root are pruned (seed, figure 4).
const PRUNE: f64 = 0.1;
/// Examples for a reason to stay plain.
const EXAMPLES: usize = 3;

/// What the text shows, and how.
#[derive(Clone, Debug)]
pub struct TextOptions {
    /// At most so many methods.
    pub top: usize,
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to use ANSI colours.
    pub color: bool,
    /// Only these methods.
    pub method: Option<MethodGlob>,
    /// Where source files are looked for.
    pub source: Sources,
    /// Whether to list all classes and methods that stayed plain, not only examples.
    pub skipped: bool,
    /// Whether to show the full calling contexts of pairs (waste lens).
    pub contexts: bool,
}

impl Default for TextOptions {
    /// Ten methods, 80 columns, no colour.
    fn default() -> Self {
        Self {
            top: 10,
            width: 80,
            color: false,
            method: None,
            source: Sources::default(),
            skipped: false,
            contexts: false,
        }
    }
}

/// Writes the report for people.
pub fn text(profile: &Profile, options: &TextOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| write(profile, options, out))
}

fn write(profile: &Profile, options: &TextOptions, out: &mut dyn Write) -> Result<(), Error> {
    let manifest = profile.manifest();
    let mut page = Page::new(options.width, options.color);
    header(&mut page, profile);

    let wanted = |m: &Method| {
        options
            .method
            .as_ref()
            .is_none_or(|g| g.matches(&m.class, &m.method))
    };
    let all = hottest(profile.methods());
    let chosen: Vec<&Method> = all.iter().copied().filter(|m| wanted(m)).collect();
    let shown = &chosen[..chosen.len().min(options.top)];
    if shown.is_empty() {
        nothing(&mut page, profile, options, &all);
    }
    // Entries and details are made in one pass, since a detail is read from the files at each call, and printed one after the other.
    // Findings are looked for in some more methods than are shown: what to mend need not be in the hottest ones.
    let mut entries = page.another();
    let mut details = page.another();
    let mut leads: Vec<Lead> = Vec::new();
    let scanned = first::scanned(&chosen, shown.len(), manifest.totals.ids);
    for (i, method) in scanned.iter().copied().enumerate() {
        let data = profile.detail(method.index)?;
        let chains = chain::hot(method, &data, CHAINS);
        let found = advice::findings(method, &data, &chains);
        let number = (i < shown.len()).then_some(i + 1);
        if number.is_some() {
            let entry = Entry {
                number: i + 1,
                method,
                data: &data,
                chains,
            };
            entry.summary(&mut entries, manifest, &found);
            entry.detail(&mut details, options);
        }
        leads.extend(found.into_iter().map(|finding| Lead {
            number,
            method,
            finding,
        }));
    }
    let leads = first::weightiest(leads);
    if !leads.is_empty() {
        page.blank();
        page.line(Look::Bold, "LOOK HERE FIRST");
        for lead in leads {
            page.para(Look::Advice, "  - ", &lead.sentence(manifest.totals.ids));
        }
    }
    out.write_all(page.take().as_bytes())?;
    if !shown.is_empty() {
        let rest = chosen.len() - shown.len();
        page.blank();
        page.line(Look::Bold, "HOTTEST METHODS");
        page.para(Look::Dim, "", "By iterations: an iteration is one run of an acyclic path, that is, one turn of a loop or the way out.");
        page.append(&entries.take());
        if rest > 0 {
            page.blank();
            page.para(
                Look::Dim,
                "",
                &format!(
                    "... and {} (--top N shows more)",
                    plural(rest as u64, "more method", "more methods")
                ),
            );
        }
        page.blank();
        page.line(Look::Bold, "DETAIL");
        page.append(&details.take());
    }
    not_measured(&mut page, profile, options);
    out.write_all(page.take().as_bytes())?;
    Ok(())
}

/// What was profiled, how far it can be trusted.
pub(crate) fn header(page: &mut Page, profile: &Profile) {
    let m = profile.manifest();
    let target = &m.target;
    let command = if target.command.is_empty() {
        "(command unknown)"
    } else {
        &target.command
    };
    page.line(Look::Bold, &words::keep_start(command, page.width));
    let time = match target.ended {
        Some(ended) => format!(
            "ran {}",
            words::duration(ended.saturating_sub(target.started))
        ),
        None => "did not end in order (killed, or still running when sealed)".to_owned(),
    };
    let or_unknown = |s: &str| {
        if s.is_empty() {
            "unknown".to_owned()
        } else {
            s.to_owned()
        }
    };
    page.para(
        Look::Plain,
        "",
        &format!(
            "JDK {}, {} collector, {time}; k = {}, engine {}; {} in {}",
            or_unknown(&target.jdk),
            or_unknown(&target.collector),
            m.k,
            m.engine,
            match m.burst {
                Some(burst) => format!("{} iterations", words::estimate(m.totals.ids, burst.ids)),
                None => plural(m.totals.ids, "iteration", "iterations"),
            },
            plural(m.totals.methods_executed, "method", "methods"),
        ),
    );
    let doubts = doubts(m);
    if let Some(burst) = &m.burst {
        let text = format!(
            "one in {} calls was profiled, chosen at random (--burst). Numbers with ~ say from that what all calls did; in brackets is the \
             interval that holds the true number in 95 of 100 cases, unless most of it lies in a few very long calls. Shares are estimates, \
             too, and what no profiled call did is not listed. Numbers without ~ count all calls.",
            thousands(burst.one_in.into())
        );
        page.para(Look::Advice, "Estimates: ", &text);
    }
    if !doubts.is_empty() {
        for doubt in doubts {
            page.para(Look::Advice, "Lower bounds: ", &doubt);
        }
    } else if m.burst.is_some() {
        if let Some(why) = &m.stopped {
            let text = format!("{why}: longer sequences not seen before then have wide intervals.");
            page.para(Look::Advice, "Bounded: ", &text);
        }
    } else if profile.methods().iter().any(|m| !m.paths_exact) {
        page.para(
            Look::Advice,
            "Lower bounds: ",
            "the counts of some methods (marked >=).",
        );
    } else {
        page.para(
            Look::Plain,
            "Exact: ",
            "each path that each instrumented method ran to its end is counted.",
        );
        let bounded = profile.methods().iter().filter(|m| !m.exact).count();
        if bounded > 0 {
            let methods = plural(bounded as u64, "method", "methods");
            let than = match &m.stopped {
                Some(why) => format!("than there was room for ({why})"),
                None => "than are kept (--rows N)".to_owned(),
            };
            let text = format!(
                "{methods} had more sequences {than}: their counts have a lower and an upper bound."
            );
            page.para(Look::Advice, "Bounded: ", &text);
        }
    }
    if m.totals.straight_line > 0 {
        let n = m.totals.straight_line;
        let methods = plural(n, "method", "methods");
        let verb = if n == 1 { "is" } else { "are" };
        let text = format!(
            "{methods} with a single path and no loop {verb} not counted (--straight-line counts them)."
        );
        page.para(Look::Plain, "", &text);
    }
    if m.k == 1 {
        page.para(
            Look::Plain,
            "",
            "k = 1 counts single paths only; which paths follow one another across iterations shows with -k 4 and more.",
        );
    }
}

/// Why counts may be too low, one sentence each.
fn doubts(m: &Manifest) -> Vec<String> {
    let mut out = Vec::new();
    let all = m.totals.ids.saturating_add(m.lost);
    let lost = format!(
        "{} ({}) could not be counted",
        plural(m.lost, "iteration", "iterations"),
        percent(m.lost, all)
    );
    match &m.stopped {
        Some(why) if m.lost > 0 => out.push(format!(
            "{why}, so sequences not seen before then are missing: {lost}."
        )),
        None if m.lost > 0 => out.push(format!("{lost}.")),
        _ => {}
    }
    if let Some(why) = &m.counters_torn {
        out.push(format!("a part of the counters could not be read ({why})."));
    }
    if let Some(why) = &m.log_torn {
        out.push(format!(
            "the end of the list of classes could not be read ({why})."
        ));
    }
    out
}

/// Why there is nothing to show, and what to do.
pub(crate) fn nothing(page: &mut Page, profile: &Profile, options: &TextOptions, all: &[&Method]) {
    let totals = &profile.manifest().totals;
    let target = &profile.manifest().target;
    page.blank();
    let text = match &options.method {
        _ if options.top == 0 => "No methods asked for (--top 0).".to_owned(),
        Some(glob) if !all.is_empty() => {
            let some: Vec<String> = all
                .iter()
                .take(EXAMPLES)
                .map(|m| format!("{}.{}", words::java_name(&m.class), m.method))
                .collect();
            format!(
                "No method that ran matches {}. The hottest that ran: {}.",
                glob.as_str(),
                some.join(", ")
            )
        }
        _ if totals.methods == 0 => {
            let globs = |g: &[String]| {
                if g.is_empty() {
                    "(default)".to_owned()
                } else {
                    g.join(", ")
                }
            };
            format!(
                "Nothing was instrumented. Include globs: {}; exclude globs: {}; {} stayed plain (see below). Globs name classes with \
                 their packages, such as --include 'com.acme.*'; by default all classes but the JDK's are included.",
                globs(&target.include),
                globs(&target.exclude),
                plural(
                    profile.skipped().len() as u64,
                    "class or method",
                    "classes and methods"
                ),
            )
        }
        _ => format!(
            "None of the {} ran.",
            plural(
                totals.methods,
                "instrumented method",
                "instrumented methods"
            )
        ),
    };
    page.para(Look::Bold, "", &text);
}

/// A method in the report.
struct Entry<'a> {
    number: usize,
    method: &'a Method,
    data: &'a MethodDetail,
    chains: Vec<Chain>,
}

impl Entry<'_> {
    /// Name, weight, findings and hot chains.
    fn summary(&self, page: &mut Page, manifest: &Manifest, findings: &[Finding]) {
        let m = self.method;
        page.blank();
        let weight = format!(
            "{}  {:>4}",
            words::count(m, m.ids),
            percent(m.ids, manifest.totals.ids)
        );
        let room = page.width.saturating_sub(weight.chars().count() + 2);
        page.both_ends(
            Look::Bold,
            &words::keep_end_after(&format!("{}. ", self.number), &about::name(m), room),
            &weight,
        );
        page.para(Look::Dim, "    ", &about::facts(m));
        if let Some(doubt) = about::doubt(m) {
            page.para(Look::Dim, "    ", &doubt);
        }
        for finding in findings {
            page.para(Look::Advice, "  > ", &finding.text);
        }
        let names = Names::new(&self.data.paths);
        for chain in &self.chains {
            chain::describe(page, m, &self.data.kipf, &names, chain);
        }
        if self.chains.is_empty() {
            chain::without(page, m, &self.data.paths, &names, manifest.k);
        }
    }

    /// Table, matrix, trees.
    fn detail(&self, page: &mut Page, options: &TextOptions) {
        let paths = &self.data.paths;
        page.blank();
        page.line(
            Look::Bold,
            &words::keep_end_after(
                &format!("{}. ", self.number),
                &about::name(self.method),
                page.width,
            ),
        );
        detail::table(page, self.method, paths);
        detail::merged(page, &self.data.merged);
        let source = self
            .method
            .source_file
            .as_ref()
            .and_then(|f| options.source.find(&self.method.class, f));
        about::groups(&self.chains, paths)
            .iter()
            .for_each(|g| detail::matrix(page, g, source.as_ref()));
        let roots = about::roots(&self.chains, paths);
        let trees: Vec<_> = roots
            .into_iter()
            .filter_map(|id| chains::tree(&self.data.kipf, id, PRUNE))
            .filter(|t| !t.children.is_empty())
            .take(TREES)
            .collect();
        if !trees.is_empty() {
            page.para(
                Look::Plain,
                "    ",
                "What follows what (below 10 % of the first path not shown):",
            );
            trees
                .iter()
                .for_each(|t| detail::tree(page, self.method, t));
        }
    }
}

/// What the counts do not cover.
pub(crate) fn not_measured(page: &mut Page, profile: &Profile, options: &TextOptions) {
    let m = profile.manifest();
    page.blank();
    page.line(Look::Bold, "NOT MEASURED");
    let mut said = false;
    for notice in &m.notices {
        page.para(Look::Plain, "  - ", notice);
        said = true;
    }
    if m.totals.unfinished > 0 {
        let mut worst: Vec<(u64, &Method)> = profile
            .methods()
            .iter()
            .filter_map(|m| Some((m.unfinished.filter(|&n| n > 0)?, m)))
            .collect();
        worst.sort_by_key(|(n, m)| (std::cmp::Reverse(*n), m.index));
        let some: Vec<String> = worst
            .iter()
            .take(EXAMPLES)
            .map(|(n, m)| format!("{} {}", first::short_name(m), words::number(m, *n)))
            .collect();
        let text = format!(
            "{} cut short by an exception{} (no count): {}{}",
            match m.burst {
                Some(burst) => format!(
                    "{} paths were",
                    words::estimate(m.totals.unfinished, burst.unfinished)
                ),
                None => plural(m.totals.unfinished, "path was", "paths were"),
            },
            if m.target.sealed_after_crash {
                " or the end of the JVM"
            } else {
                ""
            },
            some.join(", "),
            if worst.len() > EXAMPLES { ", ..." } else { "" },
        );
        page.para(Look::Plain, "  - ", &text);
        said = true;
    }
    let idle = m.totals.methods.saturating_sub(m.totals.methods_executed);
    if idle > 0 && m.totals.methods_executed > 0 {
        page.para(
            Look::Plain,
            "  - ",
            &format!(
                "{} of {} never ran{}",
                thousands(idle),
                plural(
                    m.totals.methods,
                    "instrumented method",
                    "instrumented methods"
                ),
                if m.burst.is_some() {
                    ", or in no profiled call"
                } else {
                    ""
                }
            ),
        );
        said = true;
    }
    said |= skipped::by_reason(page, profile.skipped(), "stayed plain", options.skipped);
    if !said {
        page.line(
            Look::Plain,
            "  - nothing: all that was asked for was measured",
        );
    }
}
