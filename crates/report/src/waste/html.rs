//! The data of a page about wasteful memory operations: pairs of lines with their calling contexts, and a flame graph of each kind.

use std::collections::HashMap;
use std::io::Write;

use borescope_profile::waste::{Place, Profile};
use borescope_waste::analysis::text::text as instruction;
use borescope_waste::rank::LeafPair;
use borescope_waste::{Frame, Waste};
use serde::Serialize;

use super::flame::{self, Flame};
use super::lines::{Lines, doubtful, type_of};
use super::{kind, text};
use crate::html::{Around, HtmlOptions, List, begun, cut, said};
use crate::words::{self, plural, thousands};
use crate::{Error, Sources, TextOptions};

/// Bytes for the pairs, for the frames that they and the flame graphs name, and for the contexts that these stand in.
const PAIRS: usize = 1_400_000;
const FRAMES: usize = 1_800_000;
const CONTEXTS: usize = 700_000;
/// Of those for frames, what the lines of the pairs leave to their callers.
const CALLERS: usize = 600_000;
/// Pairs, unless asked for otherwise.
const MOST_PAIRS: usize = 5_000;
/// Pairs of contexts of a pair of lines.
const WAYS: usize = 10;
/// Findings at the top, as in the text report, and more behind them.
const FINDINGS: usize = 10;
/// Characters of a sentence.
const SENTENCE: usize = 2_000;

/// Writes a profile of wasteful memory operations as a page.
pub fn html(profile: &Profile, options: &HtmlOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let data = data(profile, options)?;
        crate::html::write(&profile.manifest().target.command, &data, out)
    })
}

fn data(profile: &Profile, options: &HtmlOptions) -> Result<Vec<u8>, Error> {
    let m = profile.manifest();
    let about = said(|page| text::header(page, m));
    let mut data = begun("waste", &m.borescope, &about)?;
    let notes = said(|page| text::not_measured(page, profile, &TextOptions::default()));
    data.field("notes", &notes.get(1..))?;
    data.field("samples", &said(|page| text::samples(page, m)).get(1..))?;
    if text::answers(m) == 0 {
        data.field("nothing", &said(|page| text::nothing(page, m)))?;
        return Ok(data.finish());
    }
    data.field("kinds", &said(|page| text::kinds(page, m)).get(1..))?;
    data.field("estimates", &text::ESTIMATES)?;

    let lines = Lines::of(profile);
    let glob = options.method.as_ref();
    let wanted = |pair: &&LeafPair| lines.wanted(pair, glob);
    let pairs: Vec<&LeafPair> = lines.ranking.pairs.iter().filter(wanted).collect();
    let new: Vec<&LeafPair> = lines.ranking.initialising.iter().filter(wanted).collect();
    let most = options.top.unwrap_or(MOST_PAIRS);
    let all: Vec<(&LeafPair, bool)> = pairs
        .iter()
        .map(|pair| (*pair, false))
        .chain(new.iter().map(|pair| (*pair, true)))
        .collect();

    // The lines of the pairs come before callers: without them there is no row.
    let mut places = Places::new(&lines, &options.source);
    let mut shown = 0;
    for (pair, _) in all.iter().take(most) {
        let both = [pair.first, pair.second].map(|frame| places.frame(frame, true));
        match both {
            [Ok(Some(_)), Ok(Some(_))] => shown += 1,
            [Err(error), _] | [_, Err(error)] => return Err(error),
            _ => break,
        }
    }
    let mut folded = Vec::new();
    let mut flames = Vec::new();
    for waste in Waste::ALL {
        let of_kind = pairs.iter().filter(|pair| pair.waste == waste).copied();
        let flame = Flame::of(&lines.profile.contexts, of_kind, flame::FRAMES);
        flames.push(FlameJson::of(waste, &flame, &mut places)?);
    }
    let mut rows = List::new(PAIRS);
    let mut written = 0;
    for ((pair, initialising), rank) in all.iter().zip(1..).take(shown) {
        let row = PairJson::of(&lines, (pair, *initialising, rank), &mut places)?;
        if !rows.push(&row)? {
            break;
        }
        written += 1;
    }
    data.finished("pairs", rows);
    data.finished("frames", places.frames);
    data.finished("contexts", places.contexts);
    data.field("flames", &flames)?;

    let lead = |(at, pair): (usize, &&LeafPair)| LeadJson {
        pair: (at < written).then_some(at),
        text: cut(&text::finding(&lines, pair), SENTENCE),
    };
    let findings = pairs.iter().enumerate().take(FINDINGS.min(most));
    let leads: Vec<LeadJson> = findings.map(lead).collect();
    data.field("leads", &leads)?;
    data.field("none", &pairs.is_empty().then(|| text::none(glob)))?;
    let objects = new.first().map(|most| {
        let text = text::new_objects(&lines, most, &new);
        cut(&text, SENTENCE)
    });
    data.field("new_objects", &objects)?;
    if written < all.len() {
        folded.push(format!(
            "The table has {} of {}.",
            plural(written as u64, "pair of lines", "pairs of lines"),
            thousands(all.len() as u64)
        ));
    }
    for flame in flames.iter().filter(|flame| flame.folded > 0) {
        folded.push(flame.left_out());
    }
    data.field("folded", &folded)?;
    Ok(data.finish())
}

/// Frames and contexts that the page has, as far as there is room for them.
struct Places<'a> {
    lines: &'a Lines<'a>,
    source: &'a Sources,
    frames: List,
    frame_of: HashMap<Frame, u32>,
    frames_full: bool,
    contexts: List,
    context_of: HashMap<u32, u32>,
    contexts_full: bool,
}

impl<'a> Places<'a> {
    fn new(lines: &'a Lines<'a>, source: &'a Sources) -> Self {
        Places {
            lines,
            source,
            frames: List::new(FRAMES),
            frame_of: HashMap::new(),
            frames_full: false,
            contexts: List::new(CONTEXTS),
            context_of: HashMap::new(),
            contexts_full: false,
        }
    }

    /// The place of a frame in the list, with the source around it if it is new and asked for; `None` = there is no room.
    fn frame(&mut self, frame: Frame, with_source: bool) -> Result<Option<u32>, Error> {
        if let Some(&at) = self.frame_of.get(&frame) {
            return Ok(Some(at));
        }
        if self.frames_full || with_source && self.frames.left() < CALLERS {
            return Ok(None);
        }
        let place = self.lines.place(frame);
        let row = FrameJson {
            name: self.lines.name(frame),
            source: match (&place, with_source) {
                (Some(place), true) => Around::of(place, self.source),
                _ => None,
            },
            place,
        };
        self.frames_full = !self.frames.push(&row)?;
        let next = self.frame_of.len() as u32;
        Ok((!self.frames_full).then(|| *self.frame_of.entry(frame).or_insert(next)))
    }

    /// The place of a context in the list, after its callers; `None` = there is no room.
    fn context(&mut self, node: u32) -> Result<Option<u32>, Error> {
        let tree = &self.lines.profile.contexts;
        // The callers that are not there yet, the innermost first.
        let mut missing = Vec::new();
        let mut at = node;
        while let Some((caller, frame)) =
            tree.node(at).filter(|_| !self.context_of.contains_key(&at))
        {
            missing.push((at, frame));
            at = caller;
        }
        let mut last = self.context_of.get(&at).copied();
        for (node, frame) in missing.into_iter().rev() {
            if self.contexts_full {
                return Ok(None);
            }
            let Some(frame) = self.frame(frame, false)? else {
                return Ok(None);
            };
            let caller = last.map_or(-1, i64::from);
            self.contexts_full = !self.contexts.push(&(caller, frame))?;
            if self.contexts_full {
                return Ok(None);
            }
            let next = self.context_of.len() as u32;
            self.context_of.insert(node, next);
            last = Some(next);
        }
        Ok(last)
    }
}

#[derive(Serialize)]
struct FrameJson {
    /// `acme.Cache.put (Cache.java:52)`, or why there is no name.
    name: String,
    #[serde(flatten)]
    place: Option<Place>,
    source: Option<Around>,
}

/// A pair of lines. The names are those of the JSON report, where it has the same.
#[derive(Serialize)]
struct PairJson {
    rank: usize,
    kind: &'static str,
    words: PairWords,
    #[serde(rename = "type")]
    ty: String,
    count: u64,
    share: f64,
    share_lo: f64,
    share_hi: f64,
    /// Places in the list of frames.
    first: u32,
    second: u32,
    first_instruction: Option<String>,
    second_instruction: Option<String>,
    initialising: bool,
    contexts: Vec<Way>,
    /// Pairs of contexts that are not here, and their samples.
    more: Option<(usize, u64)>,
}

/// What the text report says.
#[derive(Serialize)]
struct PairWords {
    kind: &'static str,
    share: String,
    interval: String,
    of: String,
    hint: String,
    doubt: Option<String>,
    partial: Option<&'static str>,
}

/// A pair of contexts: first and second, as places in the list of contexts; samples.
type Way = (u32, u32, u64);

impl PairJson {
    fn of(
        lines: &Lines,
        (pair, initialising, rank): (&LeafPair, bool, usize),
        places: &mut Places,
    ) -> Result<PairJson, Error> {
        let rows = lines.rows(pair, initialising);
        let [first, second] =
            [pair.first, pair.second].map(|frame| places.frame_of.get(&frame).copied());
        let mut contexts = Vec::new();
        for one in pair.contexts.iter().take(WAYS) {
            let (Some(first), Some(second)) =
                (places.context(one.first)?, places.context(one.second)?)
            else {
                break;
            };
            contexts.push((first, second, one.count));
        }
        let rest = pair.contexts.get(contexts.len()..).unwrap_or_default();
        let samples = rest
            .iter()
            .fold(0u64, |sum, one| sum.saturating_add(one.count));
        Ok(PairJson {
            rank,
            kind: pair.waste.name(),
            words: PairWords {
                kind: kind(pair.waste),
                share: words::plain(&text::share(lines, pair)),
                interval: format!(
                    "{} to {}",
                    text::rounded(pair.share.lo),
                    text::rounded(pair.share.hi)
                ),
                of: text::of_what(&lines.profile, pair.waste),
                hint: format!("{}.", text::capital(pair.hint.words())),
                doubt: text::doubt(doubtful(&rows)),
                partial: text::partial(pair),
            },
            ty: type_of(&rows, &pair.shapes),
            count: pair.count,
            share: pair.share.share,
            share_lo: pair.share.lo,
            share_hi: pair.share.hi,
            first: first.unwrap_or(0),
            second: second.unwrap_or(0),
            first_instruction: instruction(&pair.instructions[0]),
            second_instruction: instruction(&pair.instructions[1]),
            initialising,
            more: (!rest.is_empty()).then_some((rest.len(), samples)),
            contexts,
        })
    }
}

/// A flame graph of the second contexts of a kind.
#[derive(Serialize)]
struct FlameJson {
    kind: &'static str,
    words: &'static str,
    /// Samples of the kind.
    count: u64,
    nodes: Vec<NodeJson>,
    /// Frames that are not here, and the most samples of one of them.
    folded: u64,
    most_folded: u64,
}

/// A frame: its caller and what ran, as places in the lists of nodes and frames, both -1 of the root; samples.
type NodeJson = (i64, i64, u64);

impl FlameJson {
    fn of(waste: Waste, flame: &Flame, places: &mut Places) -> Result<FlameJson, Error> {
        let mut of = FlameJson {
            kind: waste.name(),
            words: kind(waste),
            count: flame.nodes.first().map_or(0, |root| root.count),
            nodes: Vec::new(),
            folded: flame.folded,
            most_folded: flame.most_folded,
        };
        for node in &flame.nodes {
            let frame = match node.parent {
                None => -1,
                Some(_) => match places.frame(node.frame, false)? {
                    Some(frame) => i64::from(frame),
                    None => break,
                },
            };
            let caller = node.parent.map_or(-1, i64::from);
            of.nodes.push((caller, frame, node.count));
        }
        // Those for whose names there is no room. A caller stands before what it calls: so none that is here lacks its caller.
        let rest = flame.nodes.get(of.nodes.len()..).unwrap_or_default();
        of.folded += rest.len() as u64;
        of.most_folded = rest.first().map_or(of.most_folded, |node| node.count);
        Ok(of)
    }

    fn left_out(&self) -> String {
        format!(
            "The flame graph of {}s is without {}, of at most {} each: these count in their callers.",
            self.words,
            plural(self.folded, "frame", "frames"),
            plural(self.most_folded, "sample", "samples")
        )
    }
}

#[derive(Serialize)]
struct LeadJson {
    /// Place of the pair in the list.
    pair: Option<usize>,
    text: String,
}
