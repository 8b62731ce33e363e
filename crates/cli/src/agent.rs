//! Where the agent library is, and the options that a JVM starts it with.
//!
//! Options are `key=value` separated by commas; globs within a value are separated by semicolons. So commas, semicolons, percent
//! signs, blanks, quotes (which HotSpot strips from JAVA_TOOL_OPTIONS) and all that is not printable ASCII are written `%XX`.

use crate::args::{Engine, SiteOptions, WasteOptions, YesNo};
use crate::failure::{Result, cannot};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// File name of the agent.
const LIBRARY: &str = "libborescope.so";

/// The agent: `$BORESCOPE_AGENT`, else beside this program, in `deps/` (where cargo puts it when only the program is asked for;
/// the newer of the two counts, the first if they are one file) or in `../lib` (where a package puts it).
pub fn library() -> Result<PathBuf> {
    let found = match std::env::var_os("BORESCOPE_AGENT") {
        Some(given) => {
            let path = PathBuf::from(&given);
            if !path.is_file() {
                return Err(cannot!(
                    "no agent library at {} (from BORESCOPE_AGENT): set it to the path of {LIBRARY}",
                    path.display()
                ));
            }
            path
        }
        None => beside_us()?,
    };
    let path = std::path::absolute(&found).map_err(|e| cannot!("{}: {e}", found.display()))?;
    // HotSpot splits -agentpath at the first `=`.
    if path.as_os_str().as_bytes().contains(&b'=') {
        return Err(cannot!(
            "the JVM cannot load an agent from a path with `=` in it: move {}",
            path.display()
        ));
    }
    Ok(path)
}

fn beside_us() -> Result<PathBuf> {
    let exe = std::env::current_exe()
        .and_then(|p| p.canonicalize())
        .map_err(|e| cannot!("where is this program? {e}"))?;
    let dir = exe.parent().unwrap_or(Path::new("/"));
    let modified = |p: &PathBuf| p.metadata().and_then(|m| m.modified()).ok();
    let newest = [dir.join("deps").join(LIBRARY), dir.join(LIBRARY)]
        .into_iter()
        .filter(|p| p.is_file())
        .max_by_key(modified);
    newest.or_else(|| Some(dir.join("../lib").join(LIBRARY)).filter(|p| p.is_file())).ok_or_else(|| {
        cannot!("agent library {LIBRARY} not found in {0}, {0}/deps or {0}/../lib: set BORESCOPE_AGENT to its path", dir.display())
    })
}

/// What the agent shall do with the lens paths.
pub struct Paths<'a> {
    /// Length of the longest sequence of paths.
    pub k: u8,
    /// Engine, as the agent spells it.
    pub engine: &'a str,
    /// Output directory, absolute.
    pub out: &'a Path,
    /// Globs of classes to profile; empty: everything that is not the JDK.
    pub include: &'a [String],
    /// Globs of classes to leave alone.
    pub exclude: &'a [String],
    /// All branches are told apart, also short ones.
    pub split: bool,
    /// Methods with a single path and no loop are counted too.
    pub straight_line: bool,
    /// Limit on counter memory in bytes.
    pub memory: Option<u64>,
    /// Limit on rows for each method and thread.
    pub rows: Option<u32>,
    /// Burst mode: one in so many activations counts.
    pub one_in: Option<u32>,
}

impl<'a> Paths<'a> {
    /// Everything that is not the JDK's, with the default engine.
    pub fn of(k: u8, out: &'a Path) -> Self {
        Self {
            k,
            engine: Engine::Automaton.name(),
            out,
            include: &[],
            exclude: &[],
            split: false,
            straight_line: false,
            memory: None,
            rows: None,
            one_in: None,
        }
    }

    /// The option string that follows `-agentpath:LIB=`.
    pub fn encode(&self) -> String {
        let mut s = format!(
            "lens=paths,k={},engine={},out={}",
            self.k,
            self.engine,
            escape(self.out.as_os_str())
        );
        write_globs(&mut s, self.include, self.exclude);
        if self.split {
            s.push_str(",branches=split");
        }
        if self.straight_line {
            s.push_str(",straight=1");
        }
        if let Some(bytes) = self.memory {
            let _ = write!(s, ",memory={bytes}");
        }
        if let Some(rows) = self.rows {
            let _ = write!(s, ",rows={rows}");
        }
        if let Some(one_in) = self.one_in {
            let _ = write!(s, ",burst={one_in}");
        }
        s
    }
}

/// The options of the lens sites, as [`Paths::encode`] gives those of the other; `out`: as the JVM names it, absolute.
pub fn sites(out: &Path, o: &SiteOptions) -> String {
    let mut s = format!("lens=sites,out={}", escape(out.as_os_str()));
    write_globs(&mut s, &o.include, &o.exclude);
    let jdk = o.jdk == YesNo::Yes;
    for (key, flag) in [
        ("jdk", jdk),
        // Without the JDK's classes there is nothing to attribute: a site is the line.
        ("attribute", o.attribute == YesNo::Yes && jdk),
        ("objects", o.objects),
        ("gc", !o.no_gc),
    ] {
        let _ = write!(s, ",{key}={}", u8::from(flag));
    }
    if let Some(every) = o.every {
        let _ = write!(s, ",every={}", every.as_secs());
    }
    let _ = write!(s, ",mode={}", o.mode.name());
    s
}

/// The options of the lens waste.
pub fn waste(out: &Path, o: &WasteOptions) -> String {
    format!(
        "lens=waste,out={},rate={},tolerance=0.{:06},watches={}",
        escape(out.as_os_str()),
        o.rate,
        o.tolerance,
        o.watches
    )
}

fn write_globs(s: &mut String, include: &[String], exclude: &[String]) {
    for (key, globs) in [("include", include), ("exclude", exclude)] {
        if !globs.is_empty() {
            let all: Vec<String> = globs.iter().map(|g| escape(OsStr::new(g))).collect();
            let _ = write!(s, ",{key}={}", all.join(";"));
        }
    }
}

/// `-agentpath:LIB=OPTIONS`.
pub fn argument(library: &Path, options: &str) -> OsString {
    let mut arg = OsString::from("-agentpath:");
    arg.push(library);
    arg.push("=");
    arg.push(options);
    arg
}

/// `JAVA_TOOL_OPTIONS` with the agent appended to what is there. HotSpot splits it at blanks and knows quotes but no escapes.
pub fn tool_options(existing: Option<OsString>, agent: &OsStr) -> Result<OsString> {
    let bytes = agent.as_bytes();
    let quote = match (
        bytes.iter().any(u8::is_ascii_whitespace),
        bytes.contains(&b'"'),
        bytes.contains(&b'\''),
    ) {
        (false, false, false) => "",
        (_, false, _) => "\"",
        (_, true, false) => "'",
        (_, true, true) => {
            return Err(cannot!(
                "the path of the agent library has both kinds of quotes in it: move it"
            ));
        }
    };
    let mut all = existing
        .filter(|e| !e.is_empty())
        .map_or_else(OsString::new, |mut e| {
            e.push(" ");
            e
        });
    for part in [OsStr::new(quote), agent, OsStr::new(quote)] {
        all.push(part);
    }
    Ok(all)
}

fn escape(value: &OsStr) -> String {
    let mut out = String::new();
    for &b in value.as_bytes() {
        if b.is_ascii_alphanumeric() || b"/._-*?$:+@~".contains(&b) {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_keep_their_separators_apart() {
        let include = ["a.b.*".to_owned(), "c.Ü;,".to_owned()];
        let o = Paths {
            k: 4,
            engine: "automaton",
            out: Path::new("/tmp/a b,100%"),
            include: &include,
            exclude: &[],
            split: false,
            straight_line: false,
            memory: Some(5),
            rows: None,
            one_in: None,
        };
        assert_eq!(
            o.encode(),
            "lens=paths,k=4,engine=automaton,out=/tmp/a%20b%2C100%25,include=a.b.*;c.%C3%9C%3B%2C,memory=5"
        );
        let o = Paths {
            include: &[],
            split: true,
            straight_line: true,
            memory: None,
            rows: Some(100),
            one_in: Some(64),
            ..o
        };
        assert_eq!(
            o.encode(),
            "lens=paths,k=4,engine=automaton,out=/tmp/a%20b%2C100%25,branches=split,straight=1,rows=100,burst=64"
        );
    }

    #[test]
    fn options_of_the_waste_lens() {
        assert_eq!(
            waste(Path::new("/tmp/a,b"), &WasteOptions::default()),
            "lens=waste,out=/tmp/a%2Cb,rate=100,tolerance=0.010000,watches=3"
        );
    }

    #[test]
    fn tool_options_are_appended_and_quoted_only_if_needed() {
        let t = |old: Option<&str>, agent: &str| {
            tool_options(old.map(OsString::from), OsStr::new(agent))
                .unwrap()
                .into_string()
                .unwrap()
        };
        assert_eq!(t(None, "-agentpath:/l=o"), "-agentpath:/l=o");
        assert_eq!(t(Some(""), "-agentpath:/l=o"), "-agentpath:/l=o");
        assert_eq!(
            t(Some("-Xmx1g"), "-agentpath:/a b/l=o"),
            "-Xmx1g \"-agentpath:/a b/l=o\""
        );
        assert_eq!(t(None, "-agentpath:/a \"b/l=o"), "'-agentpath:/a \"b/l=o'");
        assert_eq!(t(None, "-agentpath:/it's/l=o"), "\"-agentpath:/it's/l=o\"");
        assert!(tool_options(None, OsStr::new("-agentpath:/it's \"it\"/l")).is_err());
    }
}
