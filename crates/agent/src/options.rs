//! Options of the agent: `-agentpath:libborescope.so=lens=paths,k=4,out=DIR,include=com.acme.*;org.x.*`, or `lens=sites,out=DIR`,
//! or `lens=waste,out=DIR,rate=100`.
//!
//! Comma-separated `key=value`; lists use `;`; `%XX` stands for any byte (so values may hold commas).

use crate::glob::Glob;
use crate::instrument::Settings;
use borescope_spool::layout::Engine;

/// Largest k.
pub const MAX_K: u32 = 64;
/// Least and most activations of which burst mode chooses one.
pub const ONE_IN: std::ops::RangeInclusive<u32> = 2..=65536;
/// Most seconds between snapshots: a year.
pub const LONGEST: u32 = 365 * 24 * 3_600;
/// Why there is no hybrid mode (docs/sites-numbering.md); `HashTagged` shows what would become of a program.
const NO_HYBRID: &str = "mode=hybrid would change identity hashes that the JVM itself may have read, for tags and locks: choose auto, spare, dynamic or static";
/// Default limit of rows.
pub const DEFAULT_ROWS: u32 = 4096;
/// Default limit of counter memory for one JVM.
pub const DEFAULT_MEMORY: u64 = 64 << 20;

/// What the agent observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lens {
    /// Which paths code takes.
    Paths,
    /// Where live objects were allocated.
    Sites,
    /// Which loads and stores do no useful work.
    Waste,
}

impl Lens {
    fn name(self) -> &'static str {
        match self {
            Lens::Paths => "paths",
            Lens::Sites => "sites",
            Lens::Waste => "waste",
        }
    }
}

/// How numbers of allocation sites stand in headers (docs/sites-numbering.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What headers have room for.
    Auto,
    /// Above the identity hash.
    Spare,
    /// In the identity hash.
    Dynamic,
    /// There, too, of one length.
    Static,
}

/// Options of the sites lens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sites {
    /// Classes of the JDK are instrumented, too.
    pub jdk: bool,
    /// What the JDK allocates is told apart by the application's call.
    pub attribute: bool,
    /// Objects that plainly do not leave the method that makes them are marked, too.
    pub local: bool,
    /// Snapshots list each object.
    pub objects: bool,
    /// Snapshots collect first.
    pub gc: bool,
    /// How numbers stand in headers.
    pub mode: Mode,
    /// Seconds between snapshots.
    pub every: Option<u32>,
    /// A trace of allocations and identity hashes is recorded; there are no snapshots.
    pub trace: bool,
}

/// Parsed options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which lens.
    pub lens: Lens,
    /// Options of the sites lens.
    pub sites: Sites,
    /// Options of the waste lens.
    pub waste: crate::waste::Settings,
    /// Length of the longest path sequence counted.
    pub k: u32,
    /// Counting engine.
    pub engine: Engine,
    /// Output directory; the spool is made in it.
    pub out: String,
    /// Classes to instrument; empty = everything that is not the JDK.
    pub include: Vec<Glob>,
    /// Classes to leave plain.
    pub exclude: Vec<Glob>,
    /// Short branches are not told apart.
    pub merge: bool,
    /// Methods with a single path and no loop are counted too.
    pub straight_line: bool,
    /// Limit of counter memory in bytes.
    pub memory: u64,
    /// Limit of rows for each method and thread.
    pub rows: u32,
    /// Burst mode: one in so many activations is chosen.
    pub one_in: Option<u32>,
    /// What the choice of activations follows from; `None` = the system's randomness.
    pub seed: Option<u64>,
}

impl Options {
    /// Parses the agent's option string; the error is one line for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut o = Self {
            lens: Lens::Paths,
            sites: Sites {
                jdk: true,
                attribute: true,
                local: false,
                objects: false,
                gc: true,
                mode: Mode::Auto,
                every: None,
                trace: false,
            },
            waste: crate::waste::Settings::default(),
            k: 4,
            engine: Engine::Automaton,
            out: String::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            merge: true,
            straight_line: false,
            memory: DEFAULT_MEMORY,
            rows: DEFAULT_ROWS,
            one_in: None,
            seed: None,
        };
        // What only one lens knows, as far as it was given.
        let (mut of_paths, mut of_sites, mut of_waste) = (None, None, None);
        for part in text.split(',').filter(|p| !p.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "k" | "engine" | "branches" | "straight" | "memory" | "rows" | "burst" | "seed" => {
                    of_paths = Some(key);
                }
                "jdk" | "attribute" | "local" | "objects" | "gc" | "every" | "mode" | "trace" => {
                    of_sites = Some(key);
                }
                "rate" | "tolerance" | "watches" => of_waste = Some(key),
                _ => {}
            }
            match key {
                "rate" | "tolerance" | "watches" => o.waste.set(key, value)?,
                "lens" => o.lens = lens(&decode(value)?)?,
                "k" => {
                    o.k = value
                        .parse()
                        .ok()
                        .filter(|k| (1..=MAX_K).contains(k))
                        .ok_or_else(|| {
                            format!("k must be a number from 1 to {MAX_K}, not `{value}`")
                        })?;
                }
                "engine" => o.engine = engine(value)?,
                "out" => o.out = decode(value)?,
                "include" => o.include = globs(value)?,
                "exclude" => o.exclude = globs(value)?,
                "memory" => {
                    o.memory = value
                        .parse()
                        .ok()
                        .filter(|m| *m >= 1 << 20)
                        .ok_or_else(|| {
                            format!(
                                "memory must be a number of bytes, at least 1048576, not `{value}`"
                            )
                        })?;
                }
                "rows" => {
                    o.rows = value
                        .parse()
                        .ok()
                        .filter(|rows| *rows >= 2)
                        .ok_or_else(|| format!("rows must be a number from 2 on, not `{value}`"))?;
                }
                "branches" => {
                    o.merge = match value {
                        "merge" => true,
                        "split" => false,
                        _ => return Err(format!("branches must be merge or split, not `{value}`")),
                    }
                }
                "straight" => o.straight_line = flag(key, value)?,
                "jdk" => o.sites.jdk = flag(key, value)?,
                "attribute" => o.sites.attribute = flag(key, value)?,
                "local" => o.sites.local = flag(key, value)?,
                "objects" => o.sites.objects = flag(key, value)?,
                "gc" => o.sites.gc = flag(key, value)?,
                "trace" => o.sites.trace = flag(key, value)?,
                "every" => {
                    let every = value.parse().ok().filter(|n| (1..=LONGEST).contains(n));
                    o.sites.every = Some(every.ok_or_else(|| {
                        format!(
                            "every must be a number of seconds from 1 to {LONGEST}, not `{value}`"
                        )
                    })?);
                }
                "mode" => {
                    o.sites.mode = match value {
                        "auto" => Mode::Auto,
                        "spare" => Mode::Spare,
                        "dynamic" => Mode::Dynamic,
                        "static" => Mode::Static,
                        "hybrid" => return Err(NO_HYBRID.into()),
                        _ => {
                            return Err(format!(
                                "mode must be auto, spare, dynamic or static, not `{value}`"
                            ));
                        }
                    }
                }
                "burst" => {
                    let one_in = value.parse().ok().filter(|n| ONE_IN.contains(n));
                    o.one_in = Some(one_in.ok_or_else(|| {
                        format!(
                            "burst must be a number from {} to {} (one in so many activations), not `{value}`",
                            ONE_IN.start(),
                            ONE_IN.end()
                        )
                    })?);
                }
                "seed" => {
                    o.seed = Some(value.parse().map_err(|_| {
                        format!(
                            "seed must be a number from 0 to {}, not `{value}`",
                            u64::MAX
                        )
                    })?);
                }
                _ => {
                    return Err(format!(
                        "unknown agent option `{key}`; known: lens, out, include, exclude; lens=paths: k, engine, branches, straight, memory, rows, burst, seed; \
                         lens=sites: jdk, attribute, local, objects, gc, every, mode, trace; lens=waste: rate, tolerance, watches"
                    ));
                }
            }
        }
        let owned = [
            (Lens::Paths, of_paths),
            (Lens::Sites, of_sites),
            (Lens::Waste, of_waste),
        ];
        for (of, key) in owned {
            if let Some(key) = key.filter(|_| of != o.lens) {
                return Err(format!(
                    "`{key}` is an option of lens={}, not of lens={}",
                    of.name(),
                    o.lens.name()
                ));
            }
        }
        if o.one_in.is_some() && o.engine != Engine::Automaton {
            return Err("burst needs the automaton engine".into());
        }
        if matches!(o.engine, Engine::BlppHash | Engine::BlppDense) {
            o.k = 1;
        }
        if o.out.is_empty() {
            o.out = format!("borescope-{}.borescope", std::process::id());
        }
        Ok(o)
    }

    /// What of it changes the probes.
    pub fn instrumenting(&self) -> Settings {
        Settings {
            engine: self.engine,
            k: self.k,
            merge: self.merge,
            straight_line: self.straight_line,
            burst: self.one_in.is_some(),
        }
    }
}

fn lens(value: &str) -> Result<Lens, String> {
    match value {
        "paths" => Ok(Lens::Paths),
        "sites" => Ok(Lens::Sites),
        "waste" => Ok(Lens::Waste),
        _ if value.contains([',', '+', ';']) => Err(format!(
            "one lens at a time: lens=paths, lens=sites or lens=waste, not `{value}`"
        )),
        _ => Err(format!(
            "unknown lens `{value}`; this version has lens=paths, lens=sites and lens=waste"
        )),
    }
}

fn flag(key: &str, value: &str) -> Result<bool, String> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("{key} must be 0 or 1, not `{value}`")),
    }
}

fn engine(value: &str) -> Result<Engine, String> {
    Ok(match value {
        "automaton" => Engine::Automaton,
        "ksf" => Engine::Ksf,
        "ksf-mtf" => Engine::KsfMtf,
        "blpp-hash" => Engine::BlppHash,
        "blpp-dense" => Engine::BlppDense,
        _ => {
            return Err(format!(
                "unknown engine `{value}`; known: automaton, ksf, ksf-mtf, blpp-hash, blpp-dense"
            ));
        }
    })
}

fn globs(value: &str) -> Result<Vec<Glob>, String> {
    value
        .split(';')
        .filter(|g| !g.is_empty())
        .map(|g| Ok(Glob::new(&decode(g)?)))
        .collect()
}

/// Undoes percent-encoding.
fn decode(value: &str) -> Result<String, String> {
    let bad = || format!("bad percent-encoding in agent option value `{value}`");
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let (Some(h), Some(l)) = (bytes.next(), bytes.next()) else {
                return Err(bad());
            };
            let hex = [h, l];
            let hex = std::str::from_utf8(&hex).map_err(|_| bad())?;
            out.push(u8::from_str_radix(hex, 16).map_err(|_| bad())?);
        } else {
            out.push(b);
        }
    }
    String::from_utf8(out).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_command_line_writes() {
        let o = Options::parse("lens=paths,k=11,engine=ksf,out=/a%2Cb%20c,include=com.acme.*;x.Y,exclude=com.acme.gen.*,memory=1048576").unwrap();
        assert_eq!((o.k, o.engine, o.out.as_str()), (11, Engine::Ksf, "/a,b c"));
        assert_eq!(o.include.len(), 2);
        assert_eq!(o.exclude[0].text(), "com.acme.gen.*");
        assert_eq!(o.memory, 1 << 20);
    }

    #[test]
    fn sites_have_their_own_options() {
        let o = Options::parse("lens=sites,mode=auto").unwrap();
        assert_eq!(o.lens, Lens::Sites);
        assert!(o.sites.jdk && o.sites.attribute && o.sites.gc);
        assert!(!o.sites.local && !o.sites.objects);
        let o = Options::parse(
            "every=5,objects=1,gc=0,mode=dynamic,jdk=0,attribute=0,local=1,trace=1,lens=sites",
        )
        .unwrap();
        let expected = Sites {
            jdk: false,
            attribute: false,
            local: true,
            objects: true,
            gc: false,
            mode: Mode::Dynamic,
            every: Some(5),
            trace: true,
        };
        assert_eq!(o.sites, expected);
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, word) in [
            ("k=0", "1 to 64"),
            ("k=65", "1 to 64"),
            ("engine=fast", "fast"),
            ("lens=heat", "lens=paths, lens=sites and lens=waste"),
            ("lens=waste,k=4", "lens=paths"),
            ("lens=waste,rate=0", "1 to 10000"),
            ("lens=waste,tolerance=1", "below 1"),
            ("lens=waste,tolerance=NaN", "below 1"),
            ("lens=waste,watches=4", "1 to 3"),
            ("rate=10", "lens=waste"),
            ("lens=paths+sites", "one lens at a time"),
            ("lens=sites,k=4", "lens=paths"),
            ("jdk=1", "lens=sites"),
            ("lens=sites,jdk=yes", "0 or 1"),
            ("lens=sites,every=0", "1 to 31536000"),
            ("lens=sites,mode=bare", "auto, spare, dynamic or static"),
            ("lens=sites,mode=hybrid", "tags and locks: choose auto"),
            ("lens=sites,trace=yes", "0 or 1"),
            ("trace=0", "lens=sites"),
            ("colour=red", "colour"),
            ("out=%4", "percent"),
            ("memory=12", "1048576"),
            ("branches=some", "merge or split"),
            ("straight=yes", "0 or 1"),
            ("burst=1", "2 to 65536"),
            ("burst=65537", "2 to 65536"),
            ("burst=1/64", "2 to 65536"),
            ("burst=64,engine=ksf", "automaton"),
            ("engine=blpp-dense,burst=64", "automaton"),
            ("seed=x", "number"),
        ] {
            let e = Options::parse(text).unwrap_err();
            assert!(e.contains(word), "{text}: {e}");
        }
    }

    #[test]
    fn plain_ball_larus_has_k_1() {
        assert_eq!(Options::parse("k=8,engine=blpp-hash").unwrap().k, 1);
    }
}
