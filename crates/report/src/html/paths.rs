//! The data of a page about paths: rows of the hottest methods, and the detail of as many of them as there is room for.

use borescope_paths::chains::Chain;
use borescope_profile::{Manifest, Method, MethodDetail, PathRow, Profile};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::budget::List;
use super::flow::Flow;
use super::tree::{self, Tree};
use super::{HtmlOptions, begun, cut, said};
use crate::contrast::{Code, contrast};
use crate::first::{self, Lead};
use crate::json::{ChainJson, Each, PathJson, chain_interval, hottest, method_fields};
use crate::names::{self, Names};
use crate::text::{self, TextOptions};
use crate::words::{self, percent, plural, thousands};
use crate::{Error, about, advice, chain, detail};

/// Bytes for the rows of methods, for their details, and for source text in these.
const ROWS: usize = 1_300_000;
const DETAILS: usize = 3_000_000;
const SOURCE: usize = 800_000;
/// Methods with details, unless asked for otherwise.
const METHODS: usize = 200;
/// Methods that the text report shows: findings of some more are looked for, see [`first::scanned`].
const SHOWN: usize = 10;
/// Chains of a method, as in the text report.
const CHAINS: usize = 3;
/// Paths of a method.
const PATHS: usize = 100;
/// Columns and rows of a matrix.
const MATRIX: (usize, usize) = (8, 40);
/// Source lines of a method, and of their characters.
const LINES: usize = 800;
const COLUMNS: usize = 240;
/// Lines before and after a method.
const AROUND: u32 = 3;

/// The data as JSON.
pub(super) fn data(profile: &Profile, options: &HtmlOptions) -> Result<Vec<u8>, Error> {
    let manifest = profile.manifest();
    let all = hottest(profile.methods());
    let wanted = |m: &&Method| {
        let glob = options.method.as_ref();
        glob.is_none_or(|glob| glob.matches(&m.class, &m.method))
    };
    let chosen: Vec<&Method> = all.iter().copied().filter(wanted).collect();
    let mut details = Details::read(profile, options, &chosen)?;
    let most = TextOptions {
        method: options.method.clone(),
        ..TextOptions::default()
    };

    let about = said(|page| text::header(page, profile));
    let mut data = begun("paths", &manifest.borescope, &about)?;
    data.field("k", &manifest.k)?;
    data.field("iterations", &manifest.totals.ids)?;
    if chosen.is_empty() {
        let why = said(|page| text::nothing(page, profile, &most, &all));
        data.field("nothing", &why)?;
    }
    let notes = said(|page| text::not_measured(page, profile, &most));
    data.field("notes", &notes.get(1..))?;
    data.field("first", &details.first(manifest))?;
    let rows = chosen.iter().enumerate().map(|(at, method)| Row {
        method,
        all: manifest.totals.ids,
        stands_out: details.stands_out.get(at).and_then(Option::as_deref),
    });
    let rows = data.list("methods", rows, ROWS)?;
    details.fold_rows(manifest, &chosen, rows);
    data.field("folded", &details.folded)?;
    data.finished("details", details.list);
    Ok(data.finish())
}

/// A line of the table of methods: the fields of the JSON report, and words of the text report.
struct Row<'a> {
    method: &'a Method,
    all: u64,
    stands_out: Option<&'a str>,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let m = self.method;
        let mut map = serializer.serialize_map(None)?;
        method_fields(&mut map, m)?;
        map.serialize_entry("name", &about::name(m))?;
        map.serialize_entry("place", &about::place(m))?;
        let words = RowWords {
            iterations: words::count(m, m.ids),
            share: percent(m.ids, self.all),
            activations: words::count(m, m.activations),
            mean: words::mean(m.ids, m.activations),
            paths: thousands(m.paths),
            of: about::big(&m.num_paths),
        };
        map.serialize_entry("words", &words)?;
        map.serialize_entry("paths_run", &m.paths)?;
        map.serialize_entry("estimated", &m.estimate.is_some())?;
        map.serialize_entry("stands_out", &self.stands_out)?;
        map.end()
    }
}

/// Numbers as a person reads them: `~` before estimates, `>=` before lower bounds.
#[derive(Serialize)]
struct RowWords {
    iterations: String,
    share: String,
    activations: String,
    mean: String,
    paths: String,
    of: String,
}

#[derive(Serialize)]
struct LeadJson {
    /// Place of the method in the table, from 1.
    method: Option<usize>,
    text: String,
    /// What to do about it.
    advice: String,
}

/// The details of methods, and what else their data is needed for.
struct Details<'a> {
    list: List,
    leads: Vec<Lead<'a>>,
    /// Of each method what to say in the table.
    stands_out: Vec<Option<String>>,
    folded: Vec<String>,
}

impl<'a> Details<'a> {
    fn read(
        profile: &Profile,
        options: &HtmlOptions,
        chosen: &[&'a Method],
    ) -> Result<Self, Error> {
        let manifest = profile.manifest();
        let shown = chosen.len().min(options.top.unwrap_or(SHOWN));
        let scanned = first::scanned(chosen, shown, manifest.totals.ids).len();
        let detailed = chosen.len().min(options.top.unwrap_or(METHODS));
        let mut details = Details {
            list: List::new(DETAILS),
            leads: Vec::new(),
            stands_out: Vec::new(),
            folded: Vec::new(),
        };
        let mut written = 0;
        let mut sources = SOURCE;
        let mut without_source = 0;
        for (at, &method) in chosen.iter().enumerate().take(scanned.max(detailed)) {
            let data = profile.detail(method.index)?;
            let chains = chain::hot(method, &data, CHAINS);
            let findings = advice::findings(method, &data, &chains);
            let stands_out = findings.first().map(|finding| finding.short.clone());
            details.stands_out.push(stands_out);
            if written == at && at < detailed {
                let mut source = source(method, options);
                match sources.checked_sub(source.as_ref().map_or(0, Source::bytes)) {
                    Some(left) => sources = left,
                    None => {
                        source = None;
                        without_source += 1;
                    }
                }
                let of = Of {
                    manifest,
                    method,
                    data: &data,
                    chains: &chains,
                };
                let detail = Detail::new(at + 1, &of, &findings, source);
                written += usize::from(details.list.push(&detail)?);
            }
            if at < scanned {
                details
                    .leads
                    .extend(findings.into_iter().map(|finding| Lead {
                        number: Some(at + 1),
                        method,
                        finding,
                    }));
            }
        }
        if written < chosen.len() {
            details.folded.push(format!(
                "Paths, sequences and control flow are here of the {} of {} that ran; `borescope report DIR --format html --method GLOB` \
                 makes a page of others.",
                plural(written as u64, "hottest method", "hottest methods"),
                thousands(chosen.len() as u64)
            ));
        }
        if without_source > 0 {
            details.folded.push(format!(
                "The source text of {} found no room.",
                plural(without_source, "method", "methods")
            ));
        }
        Ok(details)
    }

    /// Where to look first: the sentences of the text report.
    fn first(&mut self, manifest: &Manifest) -> Vec<LeadJson> {
        first::weightiest(std::mem::take(&mut self.leads))
            .iter()
            .map(|lead| LeadJson {
                method: lead.number,
                text: cut(&lead.sentence(manifest.totals.ids), 2_000),
                advice: cut(&lead.finding.text, 2_000),
            })
            .collect()
    }

    /// Says which methods are not in the table.
    fn fold_rows(&mut self, manifest: &Manifest, chosen: &[&Method], rows: usize) {
        let rest = &chosen[rows..];
        if rest.is_empty() {
            return;
        }
        let ids = rest.iter().fold(0u64, |sum, m| sum.saturating_add(m.ids));
        self.folded.push(format!(
            "The table has the {} of {} that ran; the others have {} of the iterations together.",
            plural(rows as u64, "hottest method", "hottest methods"),
            thousands(chosen.len() as u64),
            percent(ids, manifest.totals.ids)
        ));
    }
}

/// A method's data.
struct Of<'a> {
    manifest: &'a Manifest,
    method: &'a Method,
    data: &'a MethodDetail,
    chains: &'a [Chain],
}

/// All that the page shows of a method.
struct Detail<'a> {
    number: usize,
    of: &'a Of<'a>,
    words: Words,
    trees: Vec<Tree>,
    flow: Flow,
    groups: Vec<Group>,
    /// By line how many iterations touch it.
    lines: Vec<(u32, u64)>,
    source: Option<Source>,
}

#[derive(Serialize)]
struct Words {
    facts: String,
    doubt: Option<String>,
    findings: Vec<String>,
    /// Of each chain its IDs with arrows, and its story.
    chains: Vec<Vec<String>>,
    /// What stands in for chains where there are none.
    without: Vec<String>,
    merged: Vec<String>,
    /// Of each path: count, share, where it starts, how it ends, lines.
    paths: Vec<[String; 5]>,
    folded: Vec<String>,
}

/// Paths of one place, and what tells them apart.
#[derive(Serialize)]
struct Group {
    title: String,
    paths: Vec<u32>,
    /// Lines or bytecode, and for each path whether it runs it.
    rows: Vec<(String, Vec<bool>)>,
    left_out: usize,
}

/// Source text from a line on.
#[derive(Serialize)]
struct Source {
    from: u32,
    lines: Vec<String>,
}

impl<'a> Detail<'a> {
    fn new(
        number: usize,
        of: &'a Of<'a>,
        findings: &[advice::Finding],
        source: Option<Source>,
    ) -> Self {
        let Of {
            manifest,
            method,
            data,
            chains,
        } = *of;
        let roots = about::roots(chains, &data.paths);
        Detail {
            number,
            of,
            words: Words::of(of, findings),
            trees: tree::trees(manifest, method, &data.kipf, &roots),
            flow: Flow::of(method, data),
            groups: about::groups(chains, &data.paths)
                .iter()
                .map(|group| Group::of(group))
                .filter(|group| !group.rows.is_empty())
                .collect(),
            lines: weights(&data.paths),
            source,
        }
    }
}

impl Serialize for Detail<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Of {
            manifest,
            method,
            data,
            chains,
        } = *self.of;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("number", &self.number)?;
        map.serialize_entry("words", &self.words)?;
        let paths = data.paths.iter().take(PATHS).map(PathJson);
        map.serialize_entry("paths", &Each(paths))?;
        let interval = |c| chain_interval(manifest, method, &data.kipf, c);
        let chains = chains.iter().map(|c| ChainJson(c, interval(c)));
        map.serialize_entry("chains", &Each(chains))?;
        map.serialize_entry("groups", &self.groups)?;
        map.serialize_entry("trees", &self.trees)?;
        map.serialize_entry("flow", &self.flow)?;
        map.serialize_entry("lines", &self.lines)?;
        map.serialize_entry("source", &self.source)?;
        map.end()
    }
}

impl Words {
    fn of(of: &Of, findings: &[advice::Finding]) -> Self {
        let Of {
            manifest,
            method,
            data,
            chains,
        } = *of;
        let names = Names::new(&data.paths);
        let story = |c: &Chain| said(|page| chain::describe(page, method, &data.kipf, &names, c));
        let rest = data.paths.len().saturating_sub(PATHS);
        let count = sum(data.paths.iter().skip(PATHS));
        Words {
            facts: about::facts(method),
            doubt: about::doubt(method),
            findings: findings.iter().map(|f| cut(&f.text, 2_000)).collect(),
            chains: chains.iter().map(story).collect(),
            without: match chains.is_empty() {
                true => said(|page| {
                    chain::without(page, method, &data.paths, &names, manifest.k);
                }),
                false => Vec::new(),
            },
            merged: said(|page| detail::merged(page, &data.merged)),
            paths: data
                .paths
                .iter()
                .take(PATHS)
                .map(|p| path_words(method, p))
                .collect(),
            folded: match rest {
                0 => Vec::new(),
                _ => vec![format!(
                    "... and {}, together {}",
                    plural(rest as u64, "more path", "more paths"),
                    percent(count, method.ids)
                )],
            },
        }
    }
}

/// The columns of the text report's table of paths.
fn path_words(method: &Method, p: &PathRow) -> [String; 5] {
    [
        match p.interval {
            Some(of) => words::estimate(p.count, of),
            None => words::count(method, p.count),
        },
        percent(p.count, method.ids),
        names::starts(p.starts).to_owned(),
        names::ends(p.ends).to_owned(),
        names::place(p),
    ]
}

impl Group {
    fn of(paths: &[&PathRow]) -> Self {
        let (columns, most) = MATRIX;
        let paths = &paths[..paths.len().min(columns)];
        let rows = contrast(paths);
        let left_out = rows.len().saturating_sub(most);
        let named = rows.into_iter().take(most).map(|row| {
            let place = match &row.code {
                Code::Lines(lines) => words::lines(lines).unwrap_or_default(),
                Code::Bytecode(ranges) => names::bytecode(ranges),
            };
            (place, row.takers)
        });
        Group {
            title: paths.first().map_or(String::new(), |p| detail::apart(p)),
            paths: paths.iter().map(|p| p.id).collect(),
            rows: named.collect(),
            left_out,
        }
    }
}

/// By line how many iterations touch it: each path counts once for each of its lines.
fn weights(paths: &[PathRow]) -> Vec<(u32, u64)> {
    let mut weights = std::collections::BTreeMap::new();
    for path in paths {
        for line in names::lines(path) {
            let sum: &mut u64 = weights.entry(line).or_default();
            *sum = sum.saturating_add(path.count);
        }
    }
    weights.into_iter().take(LINES).collect()
}

fn sum<'a>(paths: impl Iterator<Item = &'a PathRow>) -> u64 {
    paths.fold(0, |sum, p| sum.saturating_add(p.count))
}

/// The text of a method's lines, with some around.
fn source(method: &Method, options: &HtmlOptions) -> Option<Source> {
    let file = method.source_file.as_ref()?;
    let (first, last) = method.lines?;
    let file = options.source.find(&method.class, file)?;
    let from = u32::from(first).saturating_sub(AROUND).max(1);
    let lines = (from..=u32::from(last) + AROUND).map_while(|line| file.indented(line));
    let lines: Vec<String> = lines
        .take(LINES)
        .map(|text| cut(&text.replace('\t', "    "), COLUMNS))
        .collect();
    (!lines.is_empty()).then_some(Source { from, lines })
}

impl Source {
    /// About as long as it will be in JSON: an upper bound but for characters that are written as numbers.
    fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.len() + 4).sum()
    }
}
