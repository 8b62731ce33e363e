//! Sealing spools of the waste lens, without a JVM: every pair comes out under its lines, the counters come out as they went in, and damage is told.

use std::fs;
use std::path::Path;

use borescope_profile::waste::{Context, LENS, Manifest, Pair, Profile, What, seal};
use borescope_profile::{Error, Existing, Opened, seal_any};
use borescope_spool::meta::{Record, Skipped};
use borescope_spool::testing::waste::{
    frames, ledger, ledger_methods, ledger_samples, sample, software, spool,
};
use borescope_spool::waste::{FILE, read};
use borescope_waste::Waste;
use proptest::prelude::*;

fn sealed(dir: &Path) -> (Manifest, Profile) {
    let out = dir.join("p");
    let manifest = seal(&dir.join("spool"), &out, Existing::Replace).unwrap();
    let profile = Profile::open(&out).unwrap();
    assert_eq!(profile.manifest(), &manifest);
    (manifest, profile)
}

/// Method and line of a context's frames, innermost first.
fn stack(profile: &Profile, context: u32) -> Vec<(String, u16)> {
    let mut frames = Vec::new();
    let mut next = Some(context);
    while let Some(number) = next {
        let Context { caller, what } = &profile.contexts()[number as usize - 1];
        frames.push(match what {
            What::At(place, _) => (format!("{}.{}", place.class, place.method), place.line),
            other => (format!("{other:?}"), 0),
        });
        next = *caller;
    }
    frames
}

fn pairs(profile: &Profile, waste: Waste, wasteful: bool) -> Vec<&Pair> {
    let is = |row: &&Pair| row.pair.waste == waste && row.pair.wasteful == wasteful;
    profile.pairs().iter().filter(is).collect()
}

#[test]
fn the_ledger() {
    let tmp = tempfile::tempdir().unwrap();
    ledger(&tmp.path().join("spool"), 40);
    let (manifest, profile) = sealed(tmp.path());
    assert_eq!(manifest.lens, LENS);
    assert_eq!(
        (manifest.source.as_str(), manifest.weight.as_str()),
        ("software", "cpu-time")
    );
    assert_eq!(
        (manifest.rate, manifest.tolerance_ppm, manifest.watches),
        (100, 10_000, 3)
    );
    assert!(!manifest.target.sealed_after_crash);
    assert_eq!((&manifest.log_torn, &manifest.table_torn), (&None, &None));
    let dead = manifest.kinds["dead_store"];
    assert_eq!((dead.asked, dead.wasteful, dead.useful), (50, 40, 10));
    let loads = manifest.kinds["silent_load"];
    assert_eq!((loads.asked, loads.wasteful), (47, 30));
    assert_eq!((loads.useful, loads.unanswered), (10, 7));
    for (name, count) in [
        ("ticks", 205),
        ("not_compiled", 100),
        ("armed", 105),
        ("completed", 98),
        ("lost_to_gc", 7),
        ("no_room", 0),
    ] {
        assert_eq!(manifest.samples[name], count, "{name}");
    }
    // All counters come out as they were.
    let whole = fs::read(tmp.path().join("spool").join(FILE)).unwrap();
    let table = read(&whole).unwrap();
    assert_eq!(manifest.accounts(), table.profile.accounts);
    assert!(manifest.accounts().check(true).is_ok());

    let [dead] = pairs(&profile, Waste::DeadStore, true)[..] else {
        panic!("{:?}", profile.pairs())
    };
    assert_eq!((dead.count, dead.doubtful), (40, [Some(false); 2]));
    assert_eq!(dead.types, [Some("long".into()), Some("long".into())]);
    let above = [("acme.Main.run", 20), ("acme.Main.main", 10)].map(|(m, l)| (m.to_owned(), l));
    let post = |line| vec![("acme.Ledger.post".to_owned(), line)];
    assert_eq!(
        stack(&profile, dead.pair.first),
        [post(41), above.to_vec()].concat()
    );
    assert_eq!(
        stack(&profile, dead.pair.second),
        [post(43), above.to_vec()].concat()
    );
    let [useful] = pairs(&profile, Waste::DeadStore, false)[..] else {
        panic!("{:?}", profile.pairs())
    };
    assert_eq!((useful.count, useful.pair.second), (10, 0));
    assert_eq!(stack(&profile, useful.pair.first), post(41));

    let loads = pairs(&profile, Waste::SilentLoad, true);
    let second = |row: &Pair| stack(&profile, row.pair.second)[0].clone();
    let of = |row: &&Pair| (second(row), row.count, row.doubtful[1]);
    let mut seconds: Vec<_> = loads.iter().map(of).collect();
    seconds.sort();
    // Line 53 adds: only line 52 can have loaded.
    assert_eq!(
        seconds,
        [
            (("Unnamed".to_owned(), 0), 1, None),
            (("acme.Ledger.sum".to_owned(), 52), 29, Some(false)),
        ]
    );
    assert!(
        loads
            .iter()
            .all(|row| row.types[0].as_deref() == Some("double"))
    );
    assert!(matches!(
        Opened::open(tmp.path().join("p")),
        Ok(Opened::Waste(_))
    ));
    let other = borescope_profile::sites::Profile::open(tmp.path().join("p")).unwrap_err();
    assert!(
        matches!(&other, Error::Lens { lens, .. } if lens == LENS),
        "{other}"
    );
}

#[test]
fn methods_of_one_name_are_one() {
    // A class that two loaders have, or one that was loaded again: its methods have other numbers.
    let tmp = tempfile::tempdir().unwrap();
    let mut samples = ledger_samples(3);
    let twin = |frame: borescope_waste::Frame| borescope_waste::Frame {
        method: frame.method + 100,
        ..frame
    };
    samples.add(&sample(
        Waste::DeadStore,
        twin(frames::STORE),
        twin(frames::STORE_AGAIN),
    ));
    let mut records = ledger_methods();
    for mut record in ledger_methods() {
        if let Record::Compiled(class) = &mut record {
            class
                .methods
                .iter_mut()
                .for_each(|method| method.number += 100);
        }
        records.push(record);
    }
    records.push(Record::Skipped(Skipped::class("acme/Old", "it is old")));
    spool(&tmp.path().join("spool"), software(), &records, &samples);
    let (manifest, profile) = sealed(tmp.path());
    let dead = pairs(&profile, Waste::DeadStore, true);
    assert_eq!(dead.iter().map(|row| row.count).collect::<Vec<_>>(), [4]);
    // Without the record of its end.
    assert!(manifest.target.sealed_after_crash);
    assert_eq!(profile.skipped()[0].class, "acme.Old");
}

#[test]
fn an_access_that_its_bytecode_cannot_do_is_the_only_one_of_the_method_that_can() {
    let tmp = tempfile::tempdir().unwrap();
    let entry = |frame: borescope_waste::Frame| borescope_waste::Frame { bci: -1, ..frame };
    let mut samples = ledger_samples(0);
    // `sum` has one access of a double; `post` has two of a long, so nobody knows which it was.
    for (kind, frame) in [
        (Waste::SilentLoad, frames::LOAD),
        (Waste::DeadStore, frames::STORE),
    ] {
        samples.add(&sample(kind, entry(frame), entry(frame)));
    }
    spool(
        &tmp.path().join("spool"),
        software(),
        &ledger_methods(),
        &samples,
    );
    let (_, profile) = sealed(tmp.path());
    let [dead] = pairs(&profile, Waste::DeadStore, true)[..] else {
        panic!("{:?}", profile.pairs())
    };
    assert_eq!((dead.doubtful[0], &dead.types[0]), (Some(true), &None));
    let place = |row: &Pair| stack(&profile, row.pair.first)[0].clone();
    assert_eq!(place(dead), ("acme.Ledger.post".to_owned(), 41));
    let loads = pairs(&profile, Waste::SilentLoad, true);
    let same = loads.iter().filter(|row| row.pair.first == row.pair.second);
    // Those that stood there, those at the addition, and that at the entry.
    assert_eq!(same.map(|row| row.count).collect::<Vec<_>>(), [25 + 4 + 1]);
}

#[test]
fn what_is_no_table_or_no_log_is_refused() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("spool");
    let seal = || {
        let out = tmp.path().join("p");
        seal_any(&dir, &out, Existing::Replace, &mut |_| {}).unwrap_err()
    };
    ledger(&dir, 1);
    fs::write(dir.join(FILE), b"no table").unwrap();
    assert!(matches!(seal(), Error::Damaged { .. }), "{}", seal());
    ledger(&dir, 1);
    fs::write(
        dir.join("meta.log"),
        Record::Notice("out of memory".into()).encode(),
    )
    .unwrap();
    assert!(seal().to_string().ends_with("out of memory"), "{}", seal());
    fs::remove_file(dir.join("meta.log")).unwrap();
    assert!(matches!(seal(), Error::NotASpool { .. }), "{}", seal());
    assert!(!tmp.path().join("p").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever is missing at the end of either file: it seals with what is there, says so, and invents nothing.
    #[test]
    fn a_torn_spool_seals(log in any::<proptest::sample::Index>(), table in 64usize..) {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("spool");
        ledger(&dir, 40);
        let cut = |name: &str, len: usize| {
            let whole = fs::read(dir.join(name)).unwrap();
            let len = len.min(whole.len());
            fs::write(dir.join(name), &whole[..len]).unwrap();
            whole.len() - len
        };
        // The target and the set-up stay.
        let head: usize = [Record::Target(borescope_spool::testing::sites::target()), Record::Waste(software())]
            .map(|record| record.encode().len()).iter().sum();
        let whole = fs::metadata(dir.join("meta.log")).unwrap().len() as usize;
        cut("meta.log", head + log.index(whole - head));
        let size = fs::metadata(dir.join(FILE)).unwrap().len() as usize;
        let missing = cut(FILE, 64 + table % (size - 63));
        let (manifest, profile) = sealed(tmp.path());
        prop_assert_eq!(manifest.table_torn.is_some(), missing > 0);
        let count: u64 = profile.pairs().iter().map(|row| row.count).sum();
        prop_assert!(count <= 98);
        prop_assert!(missing > 0 || count == 98);
    }
}
