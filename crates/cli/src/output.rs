//! The output directory: its default name, what may be in it beforehand, and the spools that agents make in it.

use crate::failure::{Result, cannot, usage};
use std::borrow::Cow;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where agents put their spools within the output directory: one directory a JVM, named by its process id.
pub const SPOOLS: &str = ".spool";
/// The file that every spool has.
pub const LOG: &str = "meta.log";
/// The file that makes a directory a profile; the last one that a seal writes.
pub const MANIFEST: &str = "manifest.json";

/// A new or empty output directory, absolute.
pub struct Output {
    /// The directory.
    pub dir: PathBuf,
    created: bool,
}

impl Output {
    /// Makes the directory, or takes an empty one; refuses to touch anything else.
    pub fn prepare(asked: Option<&Path>) -> Result<Self> {
        let dir = asked.map_or_else(|| default_name(SystemTime::now()), Path::to_owned);
        let dir = std::path::absolute(&dir).map_err(|e| usage!("output directory: {e}"))?;
        let shown = dir.display();
        if dir.to_str().is_none() {
            return Err(cannot!(
                "output directory {shown} is not UTF-8, which the agent's options need: choose another with -o"
            ));
        }
        let created = match fs::create_dir(&dir) {
            Ok(()) => true,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                refuse_unless_empty(&dir)?;
                false
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(&dir).map_err(|e| {
                    cannot!("cannot create output directory {shown}: {e}; choose another with -o")
                })?;
                true
            }
            Err(e) => {
                return Err(cannot!(
                    "cannot create output directory {shown}: {e}; choose another with -o"
                ));
            }
        };
        let output = Self { dir, created };
        writable(&output.dir).inspect_err(|_| output.discard_if_empty())?;
        Ok(output)
    }

    /// Makes it another user's, if we made it: an agent in a JVM of that user shall write there.
    pub fn give_to(&self, user: u32, group: u32) -> Result<()> {
        if !self.created {
            return Ok(());
        }
        std::os::unix::fs::chown(&self.dir, Some(user), Some(group))
            .map_err(|e| cannot!("cannot give {} to the JVM's user: {e}", self.dir.display()))
    }

    /// Removes the directory if we made it and nothing came into it.
    pub fn discard_if_empty(&self) {
        if self.created {
            let _ = fs::remove_dir(self.dir.join(SPOOLS));
            let _ = fs::remove_dir(&self.dir);
        }
    }

    /// Whether anything came into it.
    pub fn holds_something(&self) -> bool {
        let names = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        names.map(|entry| entry.file_name()).any(|name| {
            // A directory for spools without one is nothing.
            name != SPOOLS
                || fs::read_dir(self.dir.join(SPOOLS)).is_ok_and(|mut all| all.next().is_some())
        })
    }
}

fn refuse_unless_empty(dir: &Path) -> Result<()> {
    let shown = dir.display();
    let mut entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotADirectory => {
            return Err(cannot!(
                "output {shown} is a file: choose a new directory with -o"
            ));
        }
        Err(e) => return Err(cannot!("cannot read output directory {shown}: {e}")),
    };
    if dir.join(MANIFEST).exists() || has_spools(dir) || !profiles(dir)?.is_empty() {
        return Err(cannot!(
            "{shown} already holds a profile: choose a new directory with -o, or remove it"
        ));
    }
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(cannot!(
            "output directory {shown} is not empty: choose a new one with -o"
        )),
    }
}

/// Whether a file can be made in the directory.
pub fn writable(dir: &Path) -> Result<()> {
    tempfile::tempfile_in(dir).map(drop).map_err(|e| {
        cannot!(
            "cannot write to {}: {e}; choose another directory with -o",
            dir.display()
        )
    })
}

/// The spools in an output directory, by process id: `PID`, or `PID-2` and so on where the system used an id again.
pub fn spools(dir: &Path) -> Result<Vec<PathBuf>> {
    subdirectories(&dir.join(SPOOLS), "")
}

/// Whether there is a spool that is not sealed yet.
pub fn has_spools(dir: &Path) -> bool {
    spools(dir).is_ok_and(|s| !s.is_empty())
}

/// The profiles in an output directory of several JVMs, by process id.
pub fn profiles(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = subdirectories(dir, "jvm-")?;
    found.retain(|p| p.join(MANIFEST).is_file());
    Ok(found)
}

/// Subdirectories with this prefix and then one or two numbers, by these. Symbolic links are not followed.
fn subdirectories(dir: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
    let unreadable = |e: std::io::Error| cannot!("cannot read {}: {e}", dir.display());
    let entries = match fs::read_dir(dir) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        other => other.map_err(unreadable)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let Some(numbers) = name.to_str().and_then(|n| numbers(n.strip_prefix(prefix)?)) else {
            continue;
        };
        if entry.file_type().map_err(unreadable)?.is_dir() {
            found.push((numbers, entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// 12 and 1 of `12`, 12 and 2 of `12-2`.
fn numbers(name: &str) -> Option<(u32, u32)> {
    let number = |text: &str| {
        text.parse()
            .ok()
            .filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
    };
    let (pid, again) = name.split_once('-').unwrap_or((name, "1"));
    Some((number(pid)?, number(again)?))
}

/// What a spool is called: the process id of its JVM, with `-2` and so on where the system used an id again.
pub fn name(spool: &Path) -> Cow<'_, str> {
    spool.file_name().unwrap_or_default().to_string_lossy()
}

/// Whether a process of this machine still writes the spool (and is not just one with the same id): it has the counters mapped, or, as a spool of the
/// sites lens has none, the log open.
pub fn still_running(spool: &Path) -> bool {
    let name = name(spool);
    let Some((pid, _)) = numbers(&name) else {
        return false;
    };
    let Ok(spool) = spool.canonicalize() else {
        return false;
    };
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let counters = spool.join("counters.bin");
    let mapped = |path: &str| maps.lines().any(|line| line.ends_with(path));
    counters.to_str().is_some_and(mapped)
        || open_files(pid).is_ok_and(|files| files.contains(&spool.join(LOG)))
}

/// Files that a process has open.
pub fn open_files(pid: u32) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))?;
    // What is closed meanwhile is left out.
    Ok(entries
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .collect())
}

/// `borescope-20260131-120000.borescope`, in UTC.
fn default_name(now: SystemTime) -> PathBuf {
    let seconds = now
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    let time = seconds % 86_400;
    let (h, m, s) = (time / 3_600, time / 60 % 60, time % 60);
    PathBuf::from(format!(
        "borescope-{year:04}{month:02}{day:02}-{h:02}{m:02}{s:02}.borescope"
    ))
}

/// Year, month and day of a number of days since 1970 (Gregorian; eras of 400 years that begin on 1 March).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_786, (2026, 11, 29)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(civil(days), date);
        }
        let name = default_name(UNIX_EPOCH + Duration::from_secs(20_786 * 86_400 + 3_661));
        assert_eq!(name, Path::new("borescope-20261129-010101.borescope"));
    }

    #[test]
    fn only_new_or_empty_directories() {
        let tmp = tempfile::tempdir().unwrap();
        let message = |p: &Path| Output::prepare(Some(p)).err().expect("refused").to_string();
        let at = |name: &str| tmp.path().join(name);

        let new = Output::prepare(Some(&at("a/b"))).unwrap();
        assert!(new.dir.is_dir());
        new.discard_if_empty();
        assert!(!new.dir.exists());

        fs::create_dir(at("empty")).unwrap();
        let taken = Output::prepare(Some(&at("empty"))).unwrap();
        taken.discard_if_empty();
        assert!(taken.dir.exists(), "not ours to remove");

        fs::write(at("file"), "").unwrap();
        assert!(message(&at("file")).contains("is a file"));
        assert!(message(&at("file/below")).contains("cannot create"));

        fs::write(at("empty/notes.txt"), "").unwrap();
        assert!(message(&at("empty")).contains("is not empty"));
        fs::write(at("empty/manifest.json"), "").unwrap();
        assert!(message(&at("empty")).contains("already holds a profile"));

        fs::create_dir_all(at("spool/.spool/12")).unwrap();
        assert!(message(&at("spool")).contains("already holds a profile"));
        fs::create_dir_all(at("many/jvm-12")).unwrap();
        assert!(message(&at("many")).contains("is not empty"));
        fs::write(at("many/jvm-12/manifest.json"), "").unwrap();
        assert!(message(&at("many")).contains("already holds a profile"));
    }

    #[test]
    fn spools_are_directories_named_by_number() {
        let tmp = tempfile::tempdir().unwrap();
        assert!(spools(tmp.path()).unwrap().is_empty());
        for d in [
            ".spool/100",
            ".spool/9",
            ".spool/9-10",
            ".spool/9-2",
            ".spool/x1",
            ".spool/1x",
            ".spool/+1",
            ".spool/-1",
        ] {
            fs::create_dir_all(tmp.path().join(d)).unwrap();
        }
        fs::write(tmp.path().join(".spool/7"), "").unwrap();
        std::os::unix::fs::symlink("9", tmp.path().join(".spool/8")).unwrap();
        let names: Vec<_> = spools(tmp.path())
            .unwrap()
            .iter()
            .map(|p| name(p).into_owned())
            .collect();
        assert_eq!(names, ["9", "9-2", "9-10", "100"]);
    }
}
