//! Turns a recording of the sites lens (`borescope_spool::trace`) into a trace for the simulator (`borescope_sites::trace`).
//!
//! In the trace, a site allocates objects of one class: one that allocates several (clones, lambdas, reflection) is there once for each. Classes of one name
//! are one class, whoever loaded them. Sites of `new` and of arrays are there from the start, others when they allocate.

use crate::Error;
use crate::gather::{not_a_spool, source_form};
use crate::sites::names::type_name;
use borescope_sites::trace::{Record, Step, TraceSite, Writer};
use borescope_spool::log::LogReader;
use borescope_spool::meta::Record as Logged;
use borescope_spool::sites::{SiteClass, SiteKind};
use borescope_spool::trace::{CLASSES, EVENTS, Event, MAGIC, slot};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::Path;

/// What a trace holds, and what it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Classes.
    pub classes: u64,
    /// Sites.
    pub sites: u64,
    /// Objects.
    pub objects: u64,
    /// Objects whose identity hash was asked for.
    pub hashed: u64,
    /// Events for which there was no room.
    pub lost: u64,
    /// Times that the identity hash of an object was asked for that is not in the trace.
    pub unmarked: u64,
    /// Times that the hash of an object was asked for which was locked, so that it was not known which one it is.
    pub locked: u64,
}

/// Whether the spool holds a recording.
pub fn is_recorded(spool: &Path) -> bool {
    spool.join(EVENTS).exists()
}

/// Writes the trace of a spool. Its JVM may still run: then of what has happened so far.
pub fn write(spool: &Path, out: impl Write) -> Result<Summary, Error> {
    let path = spool.join(EVENTS);
    let file = File::open(&path).map_err(not_a_spool(&path))?;
    let mut events = Events {
        path: &path,
        input: BufReader::with_capacity(1 << 20, file),
    };
    // Before the files that say what sites and classes these events have.
    let header = events.header()?;
    let log = spool.join("meta.log");
    let bytes = fs::read(&log).map_err(not_a_spool(&log))?;
    let mut converter = Converter {
        names: class_names(&spool.join(CLASSES))?,
        ranges: BTreeMap::new(),
        classes: HashMap::new(),
        methods: 0,
        sites: HashMap::new(),
        allocated: Vec::new(),
        run: None,
        summary: Summary::default(),
        out: Writer::new(out).map_err(wrong(spool))?,
    };
    for record in LogReader::new(&bytes) {
        if let Logged::SiteClass(class) = record {
            converter.class(class);
        }
    }
    converter.known().map_err(wrong(&log))?;
    converter.events(header, events)?;
    let summary = converter.summary;
    converter.out.finish().map_err(wrong(&path))?;
    Ok(summary)
}

/// The file of events, word by word.
struct Events<'a, R> {
    path: &'a Path,
    input: R,
}

impl<R: Read> Events<'_, R> {
    /// `None`: the file ends.
    fn word(&mut self) -> Result<Option<u64>, Error> {
        let mut bytes = [0; 8];
        match self.input.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(u64::from_le_bytes(bytes))),
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(e) => Err(Error::io(self.path)(e)),
        }
    }

    fn header(&mut self) -> Result<[u64; slot::FIRST], Error> {
        let mut header = [0; slot::FIRST];
        for place in &mut header {
            let word = self.word()?;
            *place = word.ok_or_else(|| Error::damaged(self.path, "it has no header"))?;
        }
        match header[slot::MAGIC] {
            MAGIC => Ok(header),
            _ => Err(Error::damaged(
                self.path,
                "it does not begin as a recording",
            )),
        }
    }
}

/// Says which file a trace could not be made of.
fn wrong(path: &Path) -> impl FnOnce(borescope_sites::Error) -> Error {
    let path = path.to_owned();
    move |e| match e {
        borescope_sites::Error::Io(source) => Error::Io { path, source },
        other => Error::damaged(&path, other),
    }
}

/// Signatures in order; one that is torn is not there.
fn class_names(path: &Path) -> Result<Vec<String>, Error> {
    let bytes = fs::read(path).map_err(not_a_spool(path))?;
    let mut rest = &bytes[..];
    let mut names = Vec::new();
    while let Some((len, tail)) = rest.split_first_chunk() {
        let Some((name, tail)) = tail.split_at_checked(u16::from_le_bytes(*len).into()) else {
            break;
        };
        names.push(String::from_utf8_lossy(name).into_owned());
        rest = tail;
    }
    Ok(names)
}

/// A site as the log knows it, and where the IDs of its class's methods begin.
struct Range {
    class: SiteClass,
    first_method: u32,
}

struct Converter<W> {
    /// Signatures of classes by number, less one.
    names: Vec<String>,
    /// By number of the first site.
    ranges: BTreeMap<u32, Range>,
    /// Index in the trace, by signature without `L` and `;`.
    classes: HashMap<String, u32>,
    methods: u32,
    /// Index in the trace, by number of site and class.
    sites: HashMap<(u32, u32), u32>,
    /// Objects by site of the trace.
    allocated: Vec<u64>,
    /// Allocations in a row that are not written yet.
    run: Option<(u32, u64)>,
    summary: Summary,
    out: Writer<W>,
}

type Done<T = ()> = Result<T, borescope_sites::Error>;

impl<W: Write> Converter<W> {
    fn class(&mut self, class: SiteClass) {
        let first_method = self.methods;
        self.methods += class.methods.len() as u32;
        let range = Range {
            class,
            first_method,
        };
        self.ranges.insert(range.class.first_site, range);
    }

    /// Writes the sites of which it is known what they allocate, whether they do or not.
    fn known(&mut self) -> Done {
        let fixed = [SiteKind::New, SiteKind::NewArray, SiteKind::ANewArray];
        let ranges = self.ranges.values().map(|range| &range.class);
        let numbers: Vec<u32> = ranges
            .flat_map(|class| {
                let numbered = (class.first_site..).zip(&class.sites);
                numbered.filter(|(_, site)| fixed.contains(&site.kind))
            })
            .map(|(number, _)| number)
            .collect();
        for number in numbers {
            self.site(number, 0)?;
        }
        Ok(())
    }

    fn write(&mut self, record: &Record) -> Done {
        self.out.write(record)
    }

    /// A site's index in the trace; `None`: the log does not know it.
    fn site(&mut self, number: u32, class: u32) -> Done<Option<u32>> {
        if let Some(&index) = self.sites.get(&(number, class)) {
            return Ok(Some(index));
        }
        let range = self.ranges.range(..=number).next_back();
        let Some((range, site)) = range.and_then(|(first, range)| {
            let site = range.class.sites.get((number - first) as usize)?;
            Some((range, site))
        }) else {
            return Ok(None);
        };
        let ty = match class.checked_sub(1) {
            None => Some(&site.ty),
            Some(nth) => self.names.get(nth as usize),
        };
        let Some(ty) = ty else { return Ok(None) };
        let ty = ty
            .strip_prefix('L')
            .and_then(|name| name.strip_suffix(';'))
            .unwrap_or(ty)
            .to_owned();
        let holder = &range.class;
        let method = holder.methods.get(usize::from(site.method));
        let place = match site.line {
            0 => format!("bci {}", site.bci),
            line => line.to_string(),
        };
        let method_name = method.map_or("?", |m| &m.name);
        let label = format!("{}.{method_name}:{place}", source_form(&holder.name));
        let method = range.first_method + u32::from(site.method);
        self.flush()?;
        let class_index = match self.classes.get(&ty) {
            Some(&index) => index,
            None => {
                let index = self.classes.len() as u32;
                let name = type_name(&match ty.starts_with('[') {
                    true => ty.clone(),
                    false => format!("L{ty};"),
                });
                self.write(&Record::Class(cut(name)))?;
                self.classes.insert(ty, index);
                self.summary.classes += 1;
                index
            }
        };
        self.write(&Record::Site(TraceSite {
            class: class_index,
            method,
            label: cut(label),
        }))?;
        let index = self.allocated.len() as u32;
        self.allocated.push(0);
        self.sites.insert((number, class), index);
        self.summary.sites += 1;
        Ok(Some(index))
    }

    fn flush(&mut self) -> Done {
        match self.run.take() {
            Some((site, count)) => self.write(&Record::Step(Step::Allocate { site, count })),
            None => Ok(()),
        }
    }

    fn events<R: Read>(
        &mut self,
        header: [u64; slot::FIRST],
        mut events: Events<'_, R>,
    ) -> Result<(), Error> {
        let path = events.path;
        let (next, limit) = (header[slot::NEXT], header[slot::LIMIT]);
        self.summary.lost = next.saturating_sub(limit);
        self.summary.unmarked = header[slot::UNMARKED];
        self.summary.locked = header[slot::LOCKED];
        // The objects that are referenced at some time: site and which of its objects.
        let mut objects: HashMap<u64, (u32, u64)> = HashMap::new();
        for at in slot::FIRST as u64..next.min(limit) {
            let Some(word) = events.word()? else {
                return Err(Error::damaged(path, "it ends too early"));
            };
            match Event::of(word) {
                None => {}
                Some(Event::Allocated {
                    site,
                    class,
                    hashed,
                }) => {
                    let index = self.site(site, class).map_err(wrong(path))?;
                    let index = index.ok_or_else(|| {
                        Error::damaged(path, format!("event {at} is of an unknown site"))
                    })?;
                    if hashed {
                        objects.insert(at, (index, self.allocated[index as usize]));
                    }
                    self.allocate(index).map_err(wrong(path))?;
                }
                // A second one, or one that leads nowhere, is none.
                Some(Event::Referenced { object }) => {
                    if let Some((site, nth)) = objects.remove(&object.into()) {
                        self.flush().map_err(wrong(path))?;
                        let step = Record::Step(Step::Hash { site, nth });
                        self.write(&step).map_err(wrong(path))?;
                        self.summary.hashed += 1;
                    }
                }
            }
        }
        self.flush().map_err(wrong(path))
    }

    fn allocate(&mut self, site: u32) -> Done {
        self.allocated[site as usize] += 1;
        self.summary.objects += 1;
        match &mut self.run {
            Some((of, count)) if *of == site => *count += 1,
            _ => {
                self.flush()?;
                self.run = Some((site, 1));
            }
        }
        Ok(())
    }
}

/// What a trace has room for.
fn cut(mut name: String) -> String {
    const MOST: usize = 60_000;
    if name.len() > MOST {
        let end = (0..=MOST).rfind(|&end| name.is_char_boundary(end));
        name.truncate(end.unwrap_or(0));
    }
    match name.is_empty() {
        true => "?".into(),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use borescope_sites::trace::Trace;
    use borescope_spool::sites::{MethodName, Site};

    /// A class of two methods with `new A` and a clone.
    fn log() -> Vec<u8> {
        let site = |method, line, kind, ty: &str| Site {
            method,
            bci: 3,
            line,
            kind,
            ty: ty.into(),
        };
        let method = |name: &str| MethodName {
            name: name.into(),
            descriptor: "()V".into(),
        };
        Logged::SiteClass(SiteClass {
            name: "p/Holder".into(),
            loader: "app".into(),
            hash: 1,
            source_file: None,
            jdk: false,
            first_site: 5,
            first_call: 1,
            methods: vec![method("make"), method("copy")],
            sites: vec![
                site(0, 7, SiteKind::New, "p/A"),
                site(1, 0, SiteKind::Clone, "[Ljava/lang/Object;"),
            ],
            calls: Vec::new(),
            skipped: Vec::new(),
        })
        .encode()
    }

    fn spool(events: &[u64]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("meta.log"), log()).unwrap();
        fs::write(dir.path().join(CLASSES), b"\x04\x00[Lx;\x05\x00Lp/A;").unwrap();
        let mut words = vec![0; slot::FIRST];
        words[slot::MAGIC] = MAGIC;
        words[slot::NEXT] = (slot::FIRST + events.len()) as u64;
        words[slot::LIMIT] = 100;
        words[slot::UNMARKED] = 2;
        words.extend(events);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        fs::write(dir.path().join(EVENTS), bytes).unwrap();
        dir
    }

    const HASHED: u64 = 1 << 63;
    const OF: u64 = 1 << 62;

    #[test]
    fn a_trace_says_what_happened() {
        let events = [
            5,
            5 | HASHED,           // 9
            0,                    // nothing came of it
            5,                    // in a row with the ones before
            6 | 1 << 32 | HASHED, // 12: x[]
            6 | 2 << 32,          // p.A
            OF | 12,
            OF | 9,
            OF | 9, // as no recording has it
            5,
        ];
        let dir = spool(&events);
        let mut bytes = Vec::new();
        let summary = write(dir.path(), &mut bytes).unwrap();
        let trace = Trace::read(&bytes[..]).unwrap();
        assert_eq!(trace.classes, ["p.A", "x[]"]);
        let sites: Vec<_> = trace
            .sites
            .iter()
            .map(|s| (s.class, s.method, s.label.as_str()))
            .collect();
        let copy = "p.Holder.copy:bci 3";
        assert_eq!(
            sites,
            [(0, 0, "p.Holder.make:7"), (1, 1, copy), (0, 1, copy)]
        );
        let allocate = |site, count| Step::Allocate { site, count };
        let hash = |site, nth| Step::Hash { site, nth };
        assert_eq!(
            trace.steps,
            [
                allocate(0, 3),
                allocate(1, 1),
                allocate(2, 1),
                hash(1, 0),
                hash(0, 1),
                allocate(0, 1)
            ]
        );
        let expected = Summary {
            classes: 2,
            sites: 3,
            objects: 6,
            hashed: 2,
            unmarked: 2,
            ..Summary::default()
        };
        assert_eq!(summary, expected);
    }

    #[test]
    fn what_contradicts_itself_is_an_error() {
        let of = |events: &[u64]| write(spool(events).path(), std::io::sink());
        assert!(matches!(of(&[4]), Err(Error::Damaged { .. })));
        assert!(matches!(of(&[7]), Err(Error::Damaged { .. })));
        assert!(matches!(of(&[6 | 3 << 32]), Err(Error::Damaged { .. })));
        let short = spool(&[5]);
        let path = short.path().join(EVENTS);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(write(short.path(), std::io::sink()).is_err());
        // References that lead nowhere are none.
        assert_eq!(of(&[OF | 77]).unwrap().hashed, 0);
    }

    #[test]
    fn a_full_recording_says_so() {
        let dir = spool(&[5, 5]);
        let path = dir.path().join(EVENTS);
        let mut bytes = fs::read(&path).unwrap();
        bytes[8 * slot::LIMIT] = slot::FIRST as u8 + 1;
        fs::write(&path, bytes).unwrap();
        let summary = write(dir.path(), std::io::sink()).unwrap();
        assert_eq!((summary.objects, summary.lost), (1, 1));
    }
}
