//! The format of pprof (profile.proto, in gzip): `go tool pprof`, speedscope and the like read it.
//!
//! A message may be written in pieces, as repeated fields of pieces add up: samples go out as they come, and only names are kept.

use std::collections::HashMap;
use std::io::Write;

use borescope_profile::Profile;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;

use super::{ExportOptions, doubts, each_method, method_name, path_name, stack};
use crate::Error;
use crate::sites::{At, wanted};

/// Samples of a piece.
const PIECE: usize = 1 << 10;

/// `perftools.profiles.Profile`; texts are numbers of strings.
#[derive(Clone, PartialEq, prost::Message)]
struct Piece {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    ty: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sample {
    /// The leaf first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// A frame to be: names as people and as machines say them, the file, the line (0 = not known).
struct Named<'a> {
    name: &'a str,
    system: &'a str,
    file: &'a str,
    line: u16,
}

struct Pieces<W: Write> {
    out: GzEncoder<W>,
    next: Piece,
    strings: HashMap<String, i64>,
    functions: HashMap<[i64; 3], u64>,
    locations: HashMap<(u64, u16), u64>,
}

impl<W: Write> Pieces<W> {
    fn new(out: W) -> Self {
        let mut pieces = Pieces {
            out: GzEncoder::new(out, Compression::default()),
            next: Piece::default(),
            strings: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
        };
        // The first string of every profile is the empty one.
        pieces.string("");
        pieces
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(&number) = self.strings.get(text) {
            return number;
        }
        let number = number(self.strings.len());
        self.strings.insert(text.to_owned(), number);
        self.next.string_table.push(text.to_owned());
        number
    }

    /// What is counted: names and units; the first is shown if nothing else is asked for.
    fn values(&mut self, values: &[(&str, &str)]) {
        for (ty, unit) in values {
            let (ty, unit) = (self.string(ty), self.string(unit));
            self.next.sample_type.push(ValueType { ty, unit });
        }
    }

    fn comment(&mut self, text: &str) {
        let text = self.string(text);
        self.next.comment.push(text);
    }

    fn location(&mut self, named: &Named) -> u64 {
        let key = [named.name, named.system, named.file].map(|text| self.string(text));
        let free = self.functions.len() as u64 + 1;
        let function_id = *self.functions.entry(key).or_insert(free);
        if function_id == free {
            let [name, system_name, filename] = key;
            self.next.function.push(Function {
                id: free,
                name,
                system_name,
                filename,
            });
        }
        let free = self.locations.len() as u64 + 1;
        let key = (function_id, named.line);
        let id = *self.locations.entry(key).or_insert(free);
        if id == free {
            let line = named.line.into();
            let line = vec![Line { function_id, line }];
            self.next.location.push(Location { id, line });
        }
        id
    }

    fn sample(&mut self, location_id: Vec<u64>, value: &[u64]) -> Result<(), Error> {
        let value = value.iter().map(|&value| number(value)).collect();
        self.next.sample.push(Sample { location_id, value });
        match self.next.sample.len() {
            PIECE.. => self.write(),
            _ => Ok(()),
        }
    }

    fn write(&mut self) -> Result<(), Error> {
        let piece = std::mem::take(&mut self.next).encode_to_vec();
        Ok(self.out.write_all(&piece)?)
    }

    fn finish(mut self) -> Result<(), Error> {
        self.write()?;
        self.out.finish()?;
        Ok(())
    }
}

/// The format's integers are signed.
fn number(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

fn nanos(ms: u64) -> i64 {
    number(ms).saturating_mul(1_000_000)
}

/// The source file of a class, as formats name it.
fn file(options: &ExportOptions, class: &str, file: Option<&str>) -> String {
    file.and_then(|file| options.source.path(class, file))
        .map_or_else(String::new, |path| path.to_string_lossy().into_owned())
}

/// Each path of a method with its count; its caller, as it were, is the method.
pub fn paths(profile: &Profile, options: &ExportOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let manifest = profile.manifest();
        let mut pieces = Pieces::new(out);
        pieces.values(&[("paths", "count")]);
        pieces.next.time_nanos = nanos(manifest.target.started);
        let ran = |ended: u64| nanos(ended.saturating_sub(manifest.target.started));
        pieces.next.duration_nanos = manifest.target.ended.map_or(0, ran);
        pieces.comment(&format!("borescope {}: paths", manifest.borescope));
        for doubt in doubts(manifest) {
            pieces.comment(&doubt);
        }
        each_method(profile, options, |method, paths| {
            let name = method_name(method);
            let system = format!("{}.{}{}", method.class, method.method, method.descriptor);
            let file = file(options, &method.class, method.source_file.as_deref());
            let root = pieces.location(&Named {
                name: &name,
                system: &system,
                file: &file,
                line: method.lines.map_or(0, |lines| lines.0),
            });
            for path in paths {
                let leaf = pieces.location(&Named {
                    name: &format!("{name} {}", path_name(paths, path)),
                    system: &format!("{system} {}", path.id),
                    file: &file,
                    line: path.lines.first().copied().unwrap_or(0),
                });
                pieces.sample(vec![leaf, root], &[path.count])?;
            }
            Ok(())
        })?;
        pieces.finish()
    })
}

/// Live objects and bytes by type, line that allocates, and line of the application.
pub fn sites(at: At, options: &ExportOptions, out: &mut dyn Write) -> Result<(), Error> {
    crate::buffered(out, |out| {
        let manifest = at.profile.manifest();
        let mut pieces = Pieces::new(out);
        // The names that `go tool pprof` has options for.
        pieces.values(&[("inuse_objects", "count"), ("inuse_space", "bytes")]);
        pieces.next.default_sample_type = pieces.string("inuse_space");
        pieces.next.time_nanos = nanos(at.snapshot.at);
        pieces.comment(&format!(
            "borescope {}: live objects, snapshot {} ({})",
            manifest.borescope, at.snapshot.number, at.snapshot.cause
        ));
        if !at.snapshot.live_only {
            pieces.comment("the heap was not collected before: dead objects are counted as well");
        }
        for live in at.profile.live(at.snapshot.number)? {
            let site = live.site.and_then(|site| at.profile.site(site));
            if site.is_some_and(|site| !wanted(site, options.method.as_ref())) {
                continue;
            }
            let mut locations = Vec::new();
            for frame in stack(&live.ty, site, live.reason.as_deref()) {
                let (system, source, line) = match frame.place {
                    Some(place) => (
                        format!("{}.{}{}", place.class, place.method, place.descriptor),
                        file(options, &place.class, place.source_file.as_deref()),
                        place.line,
                    ),
                    None => (frame.name.clone(), String::new(), 0),
                };
                locations.push(pieces.location(&Named {
                    name: &frame.name,
                    system: &system,
                    file: &source,
                    line,
                }));
            }
            pieces.sample(locations, &[live.sum.objects, live.sum.bytes])?;
        }
        pieces.finish()
    })
}
