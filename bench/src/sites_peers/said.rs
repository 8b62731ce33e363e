//! What the tools say, by line: borescope's report, and the samples that `jfr print` shows of a recording.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;

/// Class, and number of a line.
pub type Place = (String, u32);

/// async-profiler's interval between samples, in bytes, unless told otherwise.
const INTERVAL: u64 = 524_287;

/// Lines, each with a weight.
#[derive(Debug, Default)]
pub struct Lines {
    weights: BTreeMap<Place, u64>,
    objects: BTreeMap<(Place, String), u64>,
}

impl Lines {
    fn add(&mut self, place: Place, ty: &str, objects: u64, weight: u64) {
        *self.weights.entry(place.clone()).or_default() += weight;
        *self.objects.entry((place, ty.to_owned())).or_default() += objects;
    }

    /// Of the last snapshot of borescope's report; and the share of the live bytes that has a line of the application.
    pub fn of_report(report: &Value) -> Option<(Lines, f64)> {
        let last = report["sites"]["snapshots"].as_array()?.last()?;
        let mut lines = Lines::default();
        for site in last["sites"].as_array()? {
            let (class, line) = match &site["app_class"] {
                Value::Null => (&site["class"], &site["line"]),
                app => (app, &site["app_line"]),
            };
            let place = (
                class.as_str()?.to_owned(),
                u32::try_from(line.as_u64()?).ok()?,
            );
            lines.add(
                place,
                site["type"].as_str()?,
                site["live_objects"].as_u64()?,
                site["live_bytes"].as_u64()?,
            );
        }
        let share = last["with_app_bytes"].as_f64()? / last["live_bytes"].as_f64()?;
        Some((lines, share))
    }

    /// How many lines.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// What a line is said to hold.
    pub fn weight(&self, place: &Place) -> Option<u64> {
        self.weights.get(place).copied()
    }

    /// 1 = no line holds more; `None` = it is not named.
    pub fn rank(&self, place: &Place) -> Option<usize> {
        let mine = self.weight(place)?;
        Some(1 + self.weights.values().filter(|w| **w > mine).count())
    }

    /// Objects of a type of a line.
    pub fn objects(&self, place: &Place, ty: &str) -> u64 {
        let key = (place.clone(), ty.to_owned());
        self.objects.get(&key).copied().unwrap_or_default()
    }
}

/// The first line below a text report's heading of what to look at.
pub fn first_finding(report: &str) -> Option<&str> {
    let mut lines = report
        .lines()
        .skip_while(|l| !l.starts_with("LOOK HERE FIRST"));
    lines.nth(1)
}

/// Live objects that a tool has sampled.
#[derive(Debug)]
pub struct Said {
    /// A sample stands for bytes.
    pub estimates: bool,
    /// All.
    pub samples: Vec<Sample>,
}

/// A live object.
#[derive(Debug, PartialEq)]
pub struct Sample {
    /// As in Java source.
    ty: String,
    /// Bytes that it stands for, or 1.
    weight: u64,
    /// The innermost line that is not the JDK's.
    place: Option<Place>,
}

impl Said {
    /// Reads the events of one kind out of what `jfr print` says.
    pub fn read(text: &str, event: &str) -> Result<Said> {
        let estimates = event.starts_with("profiler.");
        let begin = format!("{event} {{");
        let mut samples = Vec::new();
        let mut lines = text.lines();
        while lines.by_ref().any(|l| l == begin) {
            let of: Vec<&str> = lines.by_ref().take_while(|l| *l != "}").collect();
            let sample = Sample::read(&of, estimates);
            samples.push(sample.with_context(|| format!("not understood: {of:?}"))?);
        }
        let begun = text.lines().filter(|l| l.starts_with(event)).count();
        ensure!(
            begun == samples.len(),
            "{begun} events, {} read",
            samples.len()
        );
        Ok(Said { estimates, samples })
    }

    /// By line.
    pub fn lines(&self) -> Lines {
        let mut lines = Lines::default();
        for sample in &self.samples {
            if let Some(place) = &sample.place {
                lines.add(place.clone(), &sample.ty, 1, sample.weight);
            }
        }
        lines
    }

    /// Samples of a line.
    pub fn at(&self, place: &Place) -> u64 {
        let at = self
            .samples
            .iter()
            .filter(|s| s.place.as_ref() == Some(place));
        at.count() as u64
    }

    /// The share of what they stand for that has a line; `None` = there are none.
    pub fn with_line(&self) -> Option<f64> {
        let sum = |all: bool| -> u64 {
            let of = self.samples.iter().filter(|s| all || s.place.is_some());
            of.map(|s| s.weight).sum()
        };
        (!self.samples.is_empty()).then(|| sum(false) as f64 / sum(true) as f64)
    }
}

impl Sample {
    fn read(lines: &[&str], estimates: bool) -> Option<Sample> {
        let field = |name: &str| lines.iter().find_map(|l| l.trim_start().strip_prefix(name));
        let (ty, weight) = match estimates {
            true => {
                let size = bytes(field("allocationSize = ")?)?;
                (field("objectClass = ")?, size.max(INTERVAL))
            }
            // The object and below it what holds it, an indented line each.
            false => {
                let at = lines
                    .iter()
                    .position(|l| l.trim_start().starts_with("object = "))?;
                (lines.get(at + 1)?.trim_start(), 1)
            }
        };
        let stack = lines
            .iter()
            .position(|l| l.trim_start() == "stackTrace = [");
        let mut frames = stack.map_or(&[][..], |at| &lines[at + 1..]).iter();
        Some(Sample {
            ty: without_lengths(ty.split(' ').next()?),
            weight,
            place: frames.find_map(|frame| place(frame.trim())),
        })
    }
}

/// `216 bytes`, `1.5 kB`, `2.0 MB`: rounded, as it is printed.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let unit = match unit.trim() {
        "byte" | "bytes" => 1.0,
        "kB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * unit) as u64)
}

/// `int[3][]` as `int[][]`.
fn without_lengths(ty: &str) -> String {
    let mut inside = false;
    let kept = ty.chars().filter(|c| {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            _ => return !inside,
        }
        true
    });
    kept.collect()
}

/// `a.B$C.method(int) line: 12` as class and line, if it is not the JDK's.
fn place(frame: &str) -> Option<Place> {
    const JDK: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];
    let (method, rest) = frame.split_once('(')?;
    let (class, _) = method.rsplit_once('.')?;
    if JDK.iter().any(|package| class.starts_with(package)) {
        return None;
    }
    let (_, line) = rest.rsplit_once("line:")?;
    Some((class.to_owned(), line.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn samples_of_async_profiler() {
        let text = "profiler.LiveObject {\n  startTime = 14:08:18.124 (2026-11-30)\n  objectClass = CacheLeak$Account (classLoader = app)\n  allocationSize = 32 bytes\n  \
            stackTrace = [\n    CacheLeak.accounts(CacheLeak$Request) line: 68\n    CacheLeak.main(String[]) line: 103\n  ]\n}\n\n\
            profiler.LiveObject {\n  objectClass = java.lang.Object[] (classLoader = null)\n  allocationSize = 1.5 MB\n  stackTrace = [\n    java.util.ArrayList.grow() line: 0\n    \
            a.B$C.<init>(int[], String) line: 7\n  ]\n}\n\nprofiler.LiveObject {\n  objectClass = byte[] (classLoader = null)\n  allocationSize = 24 bytes\n  stackTrace = [\n    \
            sun.x.Y.run() line: 1\n  ]\n}\n";
        let said = Said::read(text, "profiler.LiveObject").unwrap();
        let planted = ("CacheLeak".to_owned(), 68);
        assert_eq!((said.samples.len(), said.at(&planted)), (3, 1));
        let lines = said.lines();
        assert_eq!((lines.len(), lines.rank(&planted)), (2, Some(2)));
        assert_eq!(lines.objects(&planted, "CacheLeak$Account"), 1);
        assert_eq!(lines.weight(&("a.B$C".into(), 7)), Some(3 << 19));
        assert_eq!(lines.rank(&("a.B$C".into(), 8)), None);
        let (known, all) = ((3 << 19) + INTERVAL, (3 << 19) + 2 * INTERVAL);
        assert_eq!(said.with_line(), Some(known as f64 / all as f64));
        assert!(Said::read("profiler.LiveObject {\n}\n", "profiler.LiveObject").is_err());
    }

    #[test]
    fn samples_of_the_flight_recorder() {
        let text = "jdk.OldObjectSample {\n  objectSize = 816 bytes\n  object =  [\n    java.lang.String[200]\n    last : A$Session\n  ]\n  arrayElements = 200\n  root = N/A\n  stackTrace = [\n    \
            A$Session.<init>(String) line: 38\n    A.serve() line: 5\n  ]\n}\n\njdk.OldObjectSample {\n  object =  [\n    java.util.ArrayList Size: 40\n  ]\n  stackTrace = N/A\n}\n";
        let said = Said::read(text, "jdk.OldObjectSample").unwrap();
        let planted = ("A$Session".to_owned(), 38);
        assert_eq!(
            said.samples[1],
            Sample {
                ty: "java.util.ArrayList".into(),
                weight: 1,
                place: None
            }
        );
        assert_eq!(said.lines().objects(&planted, "java.lang.String[]"), 1);
        assert_eq!(
            (said.with_line(), said.lines().rank(&planted)),
            (Some(0.5), Some(1))
        );
        assert_eq!(
            Said::read("", "jdk.OldObjectSample").unwrap().with_line(),
            None
        );
    }

    #[test]
    fn lines_of_a_report() {
        let site = |ty: &str, app: Value, bytes: u64| json!({"type": ty, "class": "java.util.HashMap", "line": 9, "app_class": app, "app_line": 3, "live_objects": 2, "live_bytes": bytes});
        let sites = json!([
            site("A", json!("a.B"), 10),
            site("C", json!("a.B"), 5),
            site("A", Value::Null, 20)
        ]);
        let snapshots = json!([{}, {"live_bytes": 40, "with_app_bytes": 15, "sites": sites}]);
        let (lines, share) = Lines::of_report(&json!({"sites": {"snapshots": snapshots}})).unwrap();
        let planted = ("a.B".to_owned(), 3);
        assert_eq!(
            (lines.weight(&planted), lines.rank(&planted), lines.len()),
            (Some(15), Some(2), 2)
        );
        assert_eq!((lines.objects(&planted, "A"), share), (2, 0.375));
        let report = "x\nLOOK HERE FIRST\n  - a.B.c (B.java:3) grew\n    more";
        assert_eq!(first_finding(report), Some("  - a.B.c (B.java:3) grew"));
        assert_eq!(first_finding("x"), None);
    }
}
