//! The directory of a profile: whole or not there, never over something else, and damage is named by file.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use borescope_profile::{Checksum, Error, Existing, Manifest, Profile, SCHEMA, seal};
use borescope_spool::layout::Engine;
use common::{CASES, WORKED, counters, log, sealed};
use proptest::prelude::*;

const FILES: [&str; 8] = [
    "code.parquet",
    "kipf.parquet",
    "loops.parquet",
    "manifest.json",
    "merged.parquet",
    "methods.parquet",
    "paths.parquet",
    "skipped.parquet",
];

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A directory with a spool in it, and the path of the profile to be.
fn spool() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (spool, out) = (dir.path().join("spool"), dir.path().join("p"));
    let cases = (0..50)
        .map(|at| (0..at).map(|id| id % 40).collect())
        .collect();
    let image = counters(
        Engine::Automaton,
        4,
        &[(0, WORKED, vec![vec![0, 4, 6, 5]]), (0, CASES, cases)],
    );
    fs::create_dir(&spool).unwrap();
    fs::write(spool.join("counters.bin"), image.finish(Some(1))).unwrap();
    fs::write(spool.join("meta.log"), log()).unwrap();
    (dir, spool, out)
}

fn seal_quietly(spool: &Path, out: &Path, existing: Existing) -> Result<Manifest, Error> {
    seal(spool, out, existing, &mut |_| ())
}

#[test]
fn nothing_is_overwritten_unless_told() {
    let (dir, spool, out) = spool();
    let mut steps = Vec::new();
    seal(&spool, &out, Existing::Refuse, &mut |at| {
        steps.push((at.done, at.methods))
    })
    .unwrap();
    assert_eq!(steps, (0..=5).map(|done| (done, 5)).collect::<Vec<_>>());
    assert_eq!(names(&out), FILES);
    assert_eq!(names(dir.path()), ["p", "spool"]);
    let error = seal_quietly(&spool, &out, Existing::Refuse).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: already exists", out.display())
    );
    fs::remove_file(out.join("paths.parquet")).unwrap();
    seal_quietly(&spool, &out, Existing::Replace).unwrap();
    assert_eq!(names(&out), FILES);
    assert_eq!(names(dir.path()), ["p", "spool"]);
}

#[test]
fn what_is_no_profile_is_left_alone() {
    let (dir, spool, _) = spool();
    let files = dir.path().join("files");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("thesis.tex"), "years of work").unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "a file").unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("/nonexistent", &link).unwrap();
    for out in [&files, &file, &link] {
        assert!(
            matches!(seal_quietly(&spool, out, Existing::Replace), Err(Error::Exists { path }) if path == *out)
        );
    }
    assert_eq!(
        fs::read(files.join("thesis.tex")).unwrap(),
        b"years of work"
    );
    assert_eq!(fs::read(&file).unwrap(), b"a file");
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    seal_quietly(&spool, &empty, Existing::Refuse).unwrap();
    assert_eq!(names(&empty), FILES);
    let deep = dir.path().join("a/b/c");
    seal_quietly(&spool, &deep, Existing::Refuse).unwrap();
    assert_eq!(
        names(dir.path()),
        ["a", "empty", "file", "files", "link", "spool"]
    );
}

#[test]
fn a_killed_sealing_is_cleaned_up() {
    let (dir, spool, out) = spool();
    seal_quietly(&spool, &out, Existing::Refuse).unwrap();
    // A process id that no process has: above the kernel's limit of 2^22.
    let left = dir.path().join(".p.sealing-99999999");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("paths.parquet"), "half").unwrap();
    // This one lives.
    let other = dir.path().join(".p.sealing-1");
    fs::create_dir(&other).unwrap();
    // It was killed when it had moved the old profile away.
    fs::rename(&out, dir.path().join(".p.sealing-99999999.old")).unwrap();
    let error = seal_quietly(&spool, &out, Existing::Refuse).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }));
    assert_eq!(names(dir.path()), [".p.sealing-1", "p", "spool"]);
    Profile::open(&out).unwrap();
}

#[test]
fn what_is_no_spool_is_named() {
    let (dir, spool, out) = spool();
    let error = |spool: &Path| {
        seal_quietly(spool, &out, Existing::Refuse)
            .unwrap_err()
            .to_string()
    };
    let at = |name: &str| spool.join(name).display().to_string();
    assert_eq!(
        error(dir.path()),
        format!(
            "{}: not a spool of borescope: no such file",
            dir.path().join("counters.bin").display()
        )
    );
    fs::remove_file(spool.join("meta.log")).unwrap();
    assert_eq!(
        error(&spool),
        format!("{}: not a spool of borescope: no such file", at("meta.log"))
    );
    fs::write(spool.join("counters.bin"), "text").unwrap();
    assert_eq!(
        error(&spool),
        format!(
            "{}: not a spool of borescope: 4 bytes, the header alone has 4096",
            at("counters.bin")
        )
    );
    assert_eq!(names(dir.path()), ["spool"]);
}

#[test]
fn a_parent_that_cannot_be_made_is_named() {
    let (dir, spool, _) = spool();
    let out = spool.join("meta.log").join("p");
    let error = seal_quietly(&spool, &out, Existing::Refuse)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("meta.log") && error.contains("Not a directory"),
        "{error}"
    );
    assert_eq!(names(dir.path()), ["spool"]);
}

/// A file-size limit stands in for a full disk: both make `write` fail in the middle.
#[test]
fn a_write_that_fails_leaves_nothing() {
    const OUT: &str = "BORESCOPE_TEST_SEAL_WITH_LIMIT";
    if let Some(dir) = std::env::var_os(OUT) {
        let dir = PathBuf::from(dir);
        let error = seal_quietly(&dir.join("spool"), &dir.join("p"), Existing::Refuse).unwrap_err();
        fs::write(dir.join("error"), error.to_string()).unwrap();
        return;
    }
    let (dir, spool, _) = spool();
    fs::write(spool.join("counters.bin"), {
        let ids: Vec<u32> = (0..200_000u64)
            .map(|at| (at * at / 7 % 40) as u32)
            .collect();
        counters(Engine::Automaton, 16, &[(0, CASES, vec![ids])]).finish(Some(1))
    })
    .unwrap();
    let done = Command::new("sh")
        // In units of 512 bytes; without the trap the signal would end the process.
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 16; exec \"$0\" --exact a_write_that_fails_leaves_nothing",
        ])
        .arg(std::env::current_exe().unwrap())
        .env(OUT, dir.path())
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stdout)
    );
    let error = fs::read_to_string(dir.path().join("error")).unwrap();
    assert!(
        error.contains(".parquet") && error.contains("File too large"),
        "{error}"
    );
    assert_eq!(names(dir.path()), ["error", "spool"]);
}

#[test]
fn damage_is_named_by_file() {
    let (_dir, spool, out) = spool();
    seal_quietly(&spool, &out, Existing::Refuse).unwrap();
    let fails = |name: &str, bytes: Option<&[u8]>| {
        let path = out.join(name);
        let whole = fs::read(&path).unwrap();
        match bytes {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let error = Profile::open(&out).unwrap_err();
        fs::write(&path, whole).unwrap();
        assert!(
            error
                .to_string()
                .starts_with(&format!("{}: ", path.display())),
            "{error}"
        );
        error
    };
    for name in FILES {
        let whole = fs::read(out.join(name)).unwrap();
        assert!(matches!(fails(name, None), Error::Io { .. }));
        assert!(matches!(fails(name, Some(b"")), Error::Damaged { .. }));
        assert!(matches!(
            fails(name, Some(&whole[..whole.len() / 2])),
            Error::Damaged { .. }
        ));
        if name != "manifest.json" {
            for at in (0..whole.len()).step_by(whole.len() / 40) {
                let mut changed = whole.clone();
                changed[at] ^= 0x10;
                assert!(matches!(fails(name, Some(&changed)), Error::Damaged { .. }));
            }
        }
    }
    let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
    for other in [SCHEMA - 1, SCHEMA + 1] {
        let ours = format!("\"schema\": {SCHEMA}");
        let other_schema = manifest.replace(&ours, &format!("\"schema\": {other}"));
        assert!(matches!(
            fails("manifest.json", Some(other_schema.as_bytes())),
            Error::Schema { found, .. } if found == other
        ));
    }
    Profile::open(&out).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Files that someone changed on purpose, checksum and all: an error or other content, never a panic.
    #[test]
    fn forged_tables_never_panic(
        file in prop::sample::select(vec!["code.parquet", "kipf.parquet", "loops.parquet", "merged.parquet", "methods.parquet", "paths.parquet", "skipped.parquet"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let cases = (0..20).map(|at| (0..at).map(|id| id % 40).collect()).collect();
        let image = counters(Engine::Automaton, 2, &[(0, WORKED, vec![vec![0, 4, 6, 5]]), (0, CASES, cases)]);
        let (mut manifest, _) = sealed(dir.path(), &image.finish(None), &log()).unwrap();
        let path = dir.path().join("p").join(file);
        let mut bytes = fs::read(&path).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        fs::write(&path, &bytes).unwrap();
        manifest.files.insert(file.into(), Checksum { bytes: bytes.len() as u64, crc32: crc32fast::hash(&bytes) });
        fs::write(dir.path().join("p/manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
        if let Ok(profile) = Profile::open(dir.path().join("p")) {
            for method in profile.methods() {
                let _ = profile.code(method.index);
                if let Ok(detail) = profile.detail(method.index) {
                    prop_assert_eq!(detail.paths.len() as u64, method.paths);
                    prop_assert_eq!(detail.kipf.nodes().count(), detail.kipf.len());
                    prop_assert_eq!(detail.merged.len() as u64, method.merged);
                }
            }
        }
    }
}
