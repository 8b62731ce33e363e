//! The raw figures: one line a run in `runs.csv`, one line a counted variant in `profiles.csv`, one line an engine by itself in `replay.csv`,
//! one object a session in `sessions.json`.
//!
//! Lines are only ever added, so an interrupted evaluation loses nothing. Sessions with the same agent on the same machine add up; what
//! an earlier agent measured stays in the files and is in no figure ([`Results::keep_version`]).

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

/// The run went well.
pub const OK: &str = "ok";
/// Engine of the runs without the agent.
pub const PLAIN: &str = "plain";

/// What is measured: a program in a variant on a JDK.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Major version.
    pub jdk: u32,
    /// Program.
    pub program: String,
    /// Engine, [`PLAIN`] without the agent.
    pub engine: String,
    /// k, 0 without the agent.
    pub k: u32,
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// When the session began; its key in `sessions.json`.
    pub session: String,
    /// Major version of the JDK.
    pub jdk: u32,
    /// Program.
    pub program: String,
    /// Engine.
    pub engine: String,
    /// k.
    pub k: u32,
    /// From 1.
    pub turn: u32,
    /// [`OK`], or what went wrong.
    pub status: String,
    /// User and system time of the process, seconds.
    pub cpu_s: f64,
    /// Seconds.
    pub wall_s: f64,
    /// Disk space of the spool.
    pub spool_bytes: Option<u64>,
}

/// What a variant counted, read from its spool and profile after the first run that went well. Empty = does not apply.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Profile {
    /// When the session began.
    pub session: String,
    /// Major version of the JDK.
    pub jdk: u32,
    /// Program.
    pub program: String,
    /// Engine.
    pub engine: String,
    /// k.
    pub k: u32,
    /// [`OK`], or why the counts are not all.
    pub status: String,
    /// Path IDs that were emitted.
    pub items: Option<u64>,
    /// Look-ups in a hash table.
    pub hash_operations: Option<u64>,
    /// Rows (of all threads).
    pub rows: Option<u64>,
    /// Counters in use: edges of rows, items of hash tables.
    pub edges: Option<u64>,
    /// Counters at fixed offsets that are in use (of all threads together).
    pub fixed_counters: Option<u64>,
    /// Run slots in use.
    pub run_slots: Option<u64>,
    /// Nodes of all k-SF.
    pub ksf_nodes: Option<u64>,
    /// Average number of children of the inner nodes of all k-SF.
    pub ksf_degree: Option<f64>,
    /// Bytes of counters.bin that records and slots take.
    pub counter_bytes: u64,
    /// Nodes of all k-IPF.
    pub kipf_nodes: Option<u64>,
    /// Average number of children of the inner nodes of all k-IPF.
    pub kipf_degree: Option<f64>,
    /// Average length of the sequences that are leaves of a k-IPF.
    pub kipf_leaf_depth: Option<f64>,
}

/// An engine of `crates/paths` on streams like a program's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Replay {
    /// When the session began.
    pub session: String,
    /// Major version of the JDK that the profile is from.
    pub jdk: u32,
    /// Program.
    pub program: String,
    /// Engine.
    pub engine: String,
    /// k.
    pub k: u32,
    /// IDs in the streams.
    pub items: u64,
    /// CPU time an item.
    pub ns_per_item: f64,
    /// Nodes looked at in child lists, an item (k-SF).
    pub scans_per_item: Option<f64>,
    /// Look-ups in hash tables, an item.
    pub hash_operations_per_item: f64,
    /// Nodes, edges or table items.
    pub counters: u64,
}

/// What was run when, and with what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Session {
    /// UTC.
    pub started: String,
    /// Version of borescope.
    pub borescope: String,
    /// Commit of borescope, with `-dirty` if the checkout had changes.
    pub commit: String,
    /// Checksum of the agent's library.
    #[serde(default)]
    pub agent: String,
    /// Processor.
    pub cpu: String,
    /// Its cores.
    pub cores: usize,
    /// Kernel.
    pub kernel: String,
    /// JDKs by major version.
    pub jdks: BTreeMap<u32, String>,
    /// Jars by program.
    pub jars: BTreeMap<String, Vec<String>>,
    /// Arguments of the command.
    pub arguments: Vec<String>,
}

/// All raw figures of a directory.
#[derive(Debug, Default)]
pub struct Results {
    dir: PathBuf,
    /// Runs.
    pub runs: Vec<Run>,
    /// Counts.
    pub profiles: Vec<Profile>,
    /// Engines by themselves.
    pub replays: Vec<Replay>,
    /// Sessions.
    pub sessions: Vec<Session>,
    /// Runs that [`Results::keep_version`] left out.
    pub superseded: usize,
}

/// Turns of a variant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Turns {
    /// Those that went well.
    pub good: u32,
    /// One did not: it is not run again with the same agent.
    pub failed: bool,
}

impl Run {
    /// What was run.
    pub fn key(&self) -> Key {
        Key {
            jdk: self.jdk,
            program: self.program.clone(),
            engine: self.engine.clone(),
            k: self.k,
        }
    }
}

impl Results {
    /// What the directory holds.
    pub fn read(dir: &Path) -> Result<Results> {
        let sessions = dir.join("sessions.json");
        Ok(Results {
            superseded: 0,
            dir: dir.to_owned(),
            runs: rows(&dir.join("runs.csv"))?,
            profiles: rows(&dir.join("profiles.csv"))?,
            replays: rows(&dir.join("replay.csv"))?,
            sessions: match fs::read(&sessions) {
                Err(_) if !sessions.exists() => Vec::new(),
                text => serde_json::from_slice(&text?)
                    .with_context(|| sessions.display().to_string())?,
            },
        })
    }

    /// Leaves out what another agent, machine or JDK measured than the newest session's: the files keep it, figures do not mix it.
    pub fn keep_version(&mut self) {
        let Some(last) = self.sessions.last().cloned() else {
            return;
        };
        let version = |s: &Session| match s.agent.is_empty() {
            // Sessions of before the checksum was noted.
            true => s.commit.clone(),
            false => s.agent.clone(),
        };
        let same_jdk = |(jdk, version): (&u32, &String)| {
            last.jdks.get(jdk).is_none_or(|newest| newest == version)
        };
        let kept: BTreeSet<&String> = self
            .sessions
            .iter()
            .filter(|s| {
                version(s) == version(&last) && (&s.cpu, s.cores) == (&last.cpu, last.cores)
            })
            .filter(|s| s.jdks.iter().all(same_jdk))
            .map(|s| &s.started)
            .collect();
        let before = self.runs.len();
        self.runs.retain(|r| kept.contains(&r.session));
        self.profiles.retain(|p| kept.contains(&p.session));
        self.replays.retain(|r| kept.contains(&r.session));
        self.superseded += before - self.runs.len();
    }

    /// The turns that each variant has.
    pub fn turns(&self) -> BTreeMap<Key, Turns> {
        let mut all: BTreeMap<Key, Turns> = BTreeMap::new();
        for run in &self.runs {
            let of = all.entry(run.key()).or_default();
            match run.status == OK {
                true => of.good += 1,
                false => of.failed = true,
            }
        }
        all
    }

    /// Adds a session.
    pub fn begin(&mut self, session: Session) -> Result<()> {
        self.sessions.push(session);
        let text = serde_json::to_string_pretty(&self.sessions)?;
        fs::write(self.dir.join("sessions.json"), text + "\n")?;
        Ok(())
    }

    /// Adds a run.
    pub fn run(&mut self, run: Run) -> Result<()> {
        append(&self.dir.join("runs.csv"), &run)?;
        self.runs.push(run);
        Ok(())
    }

    /// Adds counts.
    pub fn profile(&mut self, profile: Profile) -> Result<()> {
        append(&self.dir.join("profiles.csv"), &profile)?;
        self.profiles.push(profile);
        Ok(())
    }

    /// Adds an engine by itself.
    pub fn replay(&mut self, replay: Replay) -> Result<()> {
        append(&self.dir.join("replay.csv"), &replay)?;
        self.replays.push(replay);
        Ok(())
    }

    /// The runs of each variant.
    pub fn by_variant(&self) -> BTreeMap<Key, Vec<&Run>> {
        let mut all: BTreeMap<Key, Vec<&Run>> = BTreeMap::new();
        for run in &self.runs {
            all.entry(run.key()).or_default().push(run);
        }
        all
    }

    /// The run of `engine` in the same turn.
    pub fn beside(&self, run: &Run, engine: &str, k: u32) -> Option<&Run> {
        self.runs.iter().find(|other| {
            other.engine == engine
                && other.k == k
                && other.session == run.session
                && other.turn == run.turn
                && other.jdk == run.jdk
                && other.program == run.program
                && other.status == OK
        })
    }

    /// The newest counts of a variant.
    pub fn counts(&self, key: &Key) -> Option<&Profile> {
        self.profiles.iter().rev().find(|p| {
            p.jdk == key.jdk && p.program == key.program && p.engine == key.engine && p.k == key.k
        })
    }
}

/// The lines of a file; none if there is no file.
pub fn rows<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    csv::Reader::from_path(path)
        .and_then(|mut reader| reader.deserialize().collect())
        .with_context(|| path.display().to_string())
}

/// A file of these lines.
pub fn write(path: &Path, rows: &[impl Serialize]) -> Result<()> {
    let mut writer = csv::Writer::from_path(path).with_context(|| path.display().to_string())?;
    for row in rows {
        writer.serialize(row)?;
    }
    writer.flush().with_context(|| path.display().to_string())
}

/// Adds a line to a file.
pub fn append(path: &Path, row: &impl Serialize) -> Result<()> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    let empty = file.metadata()?.len() == 0;
    let mut writer = csv::WriterBuilder::new()
        .has_headers(empty)
        .from_writer(file);
    writer.serialize(row)?;
    writer.flush().with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(session: &str, engine: &str, turn: u32, cpu_s: f64) -> Run {
        Run {
            session: session.into(),
            jdk: 25,
            program: "lu".into(),
            engine: engine.into(),
            k: 1,
            turn,
            status: OK.into(),
            cpu_s,
            wall_s: cpu_s,
            spool_bytes: None,
        }
    }

    #[test]
    fn lines_come_back_and_versions_do_not_mix() {
        let dir = tempfile::tempdir().unwrap();
        let mut results = Results::read(dir.path()).unwrap();
        for (session, engine, turn, cpu) in [
            ("a", "automaton", 1, 9.0),
            ("a", "blpp-hash", 1, 8.0),
            ("b", "automaton", 1, 2.0),
            ("b", "automaton", 2, 3.0),
        ] {
            results.run(run(session, engine, turn, cpu)).unwrap();
        }
        let counts = Profile {
            status: "says \"no\", and why".into(),
            items: Some(7),
            ..Profile::default()
        };
        results.profile(counts).unwrap();
        let again = Results::read(dir.path()).unwrap();
        assert_eq!(again.profiles[0].status, "says \"no\", and why");
        assert_eq!(
            (again.profiles[0].items, again.profiles[0].rows),
            (Some(7), None)
        );
        // The other engine ran in another session: not beside.
        assert!(again.beside(&again.runs[2], "blpp-hash", 1).is_none());
        assert!(again.beside(&again.runs[0], "blpp-hash", 1).is_some());
        let session = |started: &str, agent: &str, commit: &str| Session {
            started: started.into(),
            agent: agent.into(),
            commit: commit.into(),
            ..Session::default()
        };
        let cpu = |sessions: Vec<Session>| {
            let mut kept = Results::read(dir.path()).unwrap();
            kept.sessions = sessions;
            kept.keep_version();
            assert_eq!(kept.runs.len() + kept.superseded, 4);
            let cpu: Vec<f64> = kept.runs.iter().map(|r| r.cpu_s).collect();
            cpu
        };
        // The agent decides, whatever the commit; the commit where the agent is not known; the machine and JDK, too.
        let (old, new) = (session("a", "1", "x"), session("b", "1", "y"));
        assert_eq!(cpu(vec![old.clone(), new.clone()]), [9.0, 8.0, 2.0, 3.0]);
        assert_eq!(cpu(vec![session("a", "2", "y"), new.clone()]), [2.0, 3.0]);
        assert_eq!(
            cpu(vec![session("a", "", "x"), session("b", "", "y")]),
            [2.0, 3.0]
        );
        let elsewhere = Session {
            cores: 64,
            ..old.clone()
        };
        assert_eq!(cpu(vec![elsewhere, new.clone()]), [2.0, 3.0]);
        let jdk = |session: &Session, version: &str| Session {
            jdks: BTreeMap::from([(25, version.to_owned())]),
            ..session.clone()
        };
        assert_eq!(
            cpu(vec![jdk(&old, "25.0.1"), jdk(&new, "25.0.2")]),
            [2.0, 3.0]
        );
        assert_eq!(cpu(vec![jdk(&old, "25.0.2"), jdk(&new, "25.0.2")]).len(), 4);
    }

    #[test]
    fn turns_add_up_over_sessions() {
        let runs = vec![
            run("a", "automaton", 1, 1.0),
            run("b", "automaton", 1, 1.0),
            Run {
                status: "exit code 1".into(),
                ..run("b", "ksf", 1, 1.0)
            },
        ];
        let results = Results {
            runs,
            ..Results::default()
        };
        let turns: Vec<Turns> = results.turns().into_values().collect();
        let expected = [(2, false), (0, true)].map(|(good, failed)| Turns { good, failed });
        assert_eq!(turns, expected);
    }
}
