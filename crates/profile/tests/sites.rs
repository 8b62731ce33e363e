//! Sealing spools of the sites lens, without a JVM: every object comes out under the line that allocated it, and damage is told.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use borescope_profile::sites::{LENS, Live, Manifest, Profile, Site, Sum, seal};
use borescope_profile::{Error, Existing, Opened, seal_any};
use borescope_spool::meta::{Record, Skipped, Target};
use borescope_spool::sites::{
    Call, Cause, MethodName, Owner, Site as Logged, SiteClass, SiteKind, Sites,
};
use borescope_spool::snapshot::{Origin, file_name, objects_name};
use borescope_spool::testing::sites::{Heap, owners, shop, shop_heap, spare, target};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

fn sealed(dir: &Path) -> (Manifest, Profile) {
    let out = dir.join("p");
    let manifest = seal(&dir.join("spool"), &out, Existing::Replace).unwrap();
    let profile = Profile::open(&out).unwrap();
    assert_eq!(profile.manifest(), &manifest);
    (manifest, profile)
}

fn sum(objects: u64, bytes: u64) -> Sum {
    Sum { objects, bytes }
}

#[test]
fn the_shop() {
    let tmp = tempfile::tempdir().unwrap();
    let spool = tmp.path().join("spool");
    shop(&spool)
        .record(&Record::Skipped(Skipped {
            class: "acme/Old".into(),
            method: String::new(),
            descriptor: String::new(),
            reason: "class version 70 is not known".into(),
        }))
        .snapshot(Cause::Request, &shop_heap(10), false)
        .snapshot(Cause::Exit, &shop_heap(1000), true)
        .record(&Record::Ended { at_ms: 77 });
    let (manifest, profile) = sealed(tmp.path());
    assert_eq!(
        (manifest.lens.as_str(), manifest.mode.as_str()),
        (LENS, "spare")
    );
    assert_eq!(
        (manifest.header.hash_shift, manifest.header.spare_bits),
        (8, 25)
    );
    assert_eq!(manifest.target.ended, Some(77));
    assert!(!manifest.target.sealed_after_crash);
    assert_eq!(
        (&manifest.log_torn, &manifest.snapshots_torn),
        (&None, &None)
    );
    let totals = manifest.totals;
    assert_eq!(
        (totals.classes, totals.sites, totals.calls, totals.owners),
        (3, 5, 1, 6)
    );
    assert_eq!((totals.skipped_sites, totals.live_sites), (1, 6));
    let skipped: Vec<_> = profile.skipped().iter().map(|s| s.class.as_str()).collect();
    assert_eq!(skipped, ["acme.Old", "acme.Shop"]);

    let [first, last] = &manifest.snapshots[..] else {
        panic!("{:?}", manifest.snapshots)
    };
    assert_eq!(
        (first.cause.as_str(), last.cause.as_str()),
        ("request", "exit")
    );
    assert_eq!((first.listed, last.listed), (false, true));
    assert_eq!(last.unknown["vm or native"], sum(1, 376));
    assert_eq!(last.unknown["hash taken first"], sum(1, 16));
    assert_eq!(last.live.objects, last.with_site.objects + 2);
    assert_eq!(last.with_site.objects, last.with_app.objects + 1);

    let live = profile.live(2).unwrap();
    let at = |ty: &str, line: u16| -> (Sum, &Site) {
        let of = |live: &&Live| {
            let site = live.site.and_then(|site| profile.site(site));
            live.ty == ty && site.is_some_and(|site| site.at.line == line && site.app.is_some())
        };
        let found = live.iter().find(of).unwrap();
        (found.sum, profile.site(found.site.unwrap()).unwrap())
    };
    let (pages, site) = at("byte[]", 42);
    assert_eq!(pages, sum(1000, 1_040_000));
    assert_eq!(site.app.as_ref(), Some(&site.at));
    assert_eq!((site.kind.as_str(), site.bci), ("newarray", 4));
    let (nodes, site) = at("java.util.HashMap$Node", 1901);
    assert_eq!(nodes, sum(1000, 32_000));
    let app = site.app.as_ref().unwrap();
    assert_eq!(
        (app.class.as_str(), app.method.as_str(), app.line),
        ("acme.Cache", "put", 52)
    );
    assert_eq!(site.at.class, "java.util.HashMap");
    // Sorted by bytes; the other snapshot is another one.
    assert!(live.is_sorted_by_key(|live| std::cmp::Reverse(live.sum.bytes)));
    assert_eq!(profile.live(1).unwrap()[0].sum, sum(10, 10_400));
    assert!(profile.live(3).unwrap().is_empty());

    let objects: Vec<_> = profile
        .objects()
        .unwrap()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(objects.len(), shop_heap(1000).len());
    assert_eq!(objects[0].address, 0x7000_0000);
    assert_eq!(objects[0].reason.as_deref(), Some("vm or native"));
    assert!(matches!(
        Opened::open(tmp.path().join("p")),
        Ok(Opened::Sites(_))
    ));
    let other = borescope_profile::Profile::open(tmp.path().join("p")).unwrap_err();
    assert!(
        matches!(&other, Error::Lens { lens, .. } if lens == LENS),
        "{other}"
    );
}

/// What the generator makes: classes with sites and calls, owners in the JDK, objects.
#[derive(Debug)]
struct World {
    classes: Vec<SiteClass>,
    owners: Vec<Owner>,
    snapshots: Vec<Vec<(usize, u64, Origin)>>,
    listed: bool,
}

const TYPES: [(&str, &str); 4] = [
    ("[B", "byte[]"),
    ("Lp/A;", "p.A"),
    ("[[Lp/A;", "p.A[][]"),
    ("Lp/L$$Lambda$3.0x0008;", "p.L$$Lambda"),
];

fn world() -> impl Strategy<Value = World> {
    // Few names and lines, so that sites agree now and then.
    let class = (
        any::<bool>(),
        0..2u8,
        vec((0..2u16, 0..2u16, 0..2u16), 0..4),
        vec((0..2u16, 0..2u16), 0..4),
    );
    let live = vec((any::<Index>(), 1..9u64, 0..40u32), 0..30);
    (
        vec(class, 0..6),
        vec((0..12u32, 0..12u32), 0..6),
        vec(live, 0..4),
        any::<bool>(),
    )
        .prop_map(|(classes, pairs, snapshots, listed)| {
            let (mut owner, mut jdk_site, mut call) = (1, 1, 1);
            let mut made = Vec::new();
            for (jdk, name, sites, calls) in classes {
                let first_site = if jdk { jdk_site } else { owner };
                *(if jdk { &mut jdk_site } else { &mut owner }) += sites.len() as u32;
                let first_call = call;
                call += calls.len() as u32;
                let site = |&(method, bci, line): &(u16, u16, u16)| Logged {
                    method,
                    bci,
                    line,
                    kind: SiteKind::New,
                    ty: "p/A".into(),
                };
                made.push(SiteClass {
                    name: format!("p/C{name}"),
                    loader: "boot".into(),
                    hash: 1,
                    source_file: Some("C.java".into()),
                    jdk,
                    first_site,
                    first_call,
                    methods: ["m", "n"]
                        .map(|name| MethodName {
                            name: name.into(),
                            descriptor: "()V".into(),
                        })
                        .into(),
                    sites: sites.iter().map(site).collect(),
                    calls: calls
                        .iter()
                        .map(|&(method, line)| Call {
                            method,
                            bci: 0,
                            line,
                        })
                        .collect(),
                    skipped: vec![],
                });
            }
            let owners = (owner..).zip(pairs).map(|(owner, (site, call))| Owner {
                owner,
                site: site + 1,
                call,
            });
            let snapshots = snapshots.into_iter().map(|live| {
                let of = |(ty, units, number): (Index, u64, u32)| {
                    let origin = match number {
                        0..4 => Origin::UNKNOWN[number as usize],
                        _ => Origin::Owner(number - 3),
                    };
                    (ty.index(TYPES.len()), units * 8, origin)
                };
                live.into_iter().map(of).collect()
            });
            World {
                classes: made,
                owners: owners.collect(),
                snapshots: snapshots.collect(),
                listed,
            }
        })
}

impl World {
    /// The lines that an owner stands for, found the long way: `class.method:line bci` of the site and of the application.
    fn lines(&self, owner: u32) -> Option<(String, Option<String>)> {
        let at = |jdk: bool, number: u32| {
            let classes = self.classes.iter().filter(move |class| class.jdk == jdk);
            let sites = classes.flat_map(|class| {
                (class.first_site..)
                    .zip(&class.sites)
                    .map(move |(n, site)| (n, class, site))
            });
            sites
                .into_iter()
                .find(|one| one.0 == number)
                .map(|(_, class, site)| {
                    let line = line(class, site.method, site.line);
                    (format!("{line} {}", site.bci), line)
                })
        };
        let Some(pair) = self.owners.iter().find(|pair| pair.owner == owner) else {
            return at(false, owner).map(|(site, line)| (site, Some(line)));
        };
        let calls = self.classes.iter().flat_map(|class| {
            (class.first_call..)
                .zip(&class.calls)
                .map(move |(n, call)| (n, class, call))
        });
        let call = calls.into_iter().find(|one| one.0 == pair.call);
        let call = call.map(|(_, class, call)| line(class, call.method, call.line));
        at(true, pair.site).map(|(site, _)| (site, call))
    }
}

fn line(class: &SiteClass, method: u16, line: u16) -> String {
    let method = &class.methods[usize::from(method)].name;
    format!("{}.{method}:{line}", class.name.replace('/', "."))
}

fn reason(origin: Origin) -> &'static str {
    match origin {
        Origin::Owner(_) => "site record lost",
        Origin::NoMark => "vm or native",
        Origin::Hashed => "hash taken first",
        Origin::Unreadable => "header in a monitor",
        Origin::Foreign => "foreign mark",
    }
}

/// Site, application line, reason, type.
type Key = (String, Option<String>, Option<String>, String);

fn key(profile: &Profile, site: Option<u32>, reason: Option<&str>, ty: &str) -> Key {
    let site = site.map(|site| profile.site(site).unwrap());
    let place =
        |p: &borescope_profile::sites::Place| format!("{}.{}:{}", p.class, p.method, p.line);
    (
        site.map_or(String::new(), |site| {
            format!("{} {}", place(&site.at), site.bci)
        }),
        site.and_then(|site| site.app.as_ref().map(place)),
        reason.map(str::to_owned),
        ty.to_owned(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_object_comes_out_under_its_line(world in world()) {
        let tmp = tempfile::tempdir().unwrap();
        let mut heap = Heap::new(&tmp.path().join("spool"), target(), spare());
        for class in &world.classes {
            heap.record(&Record::SiteClass(class.clone()));
        }
        heap.record(&Record::Owners(world.owners.clone()));
        for live in &world.snapshots {
            let live: Vec<_> = live.iter().map(|&(ty, bytes, origin)| (TYPES[ty].0, bytes, origin)).collect();
            heap.snapshot(Cause::Interval, &live, world.listed);
        }
        let (manifest, profile) = sealed(tmp.path());
        prop_assert_eq!(manifest.snapshots.len(), world.snapshots.len());
        let mut listed = Vec::new();
        for (snapshot, live) in manifest.snapshots.iter().zip(&world.snapshots) {
            let mut expected: BTreeMap<Key, Sum> = BTreeMap::new();
            let (mut with_site, mut with_app) = (Sum::default(), Sum::default());
            for &(ty, bytes, origin) in live {
                let lines = match origin {
                    Origin::Owner(owner) => world.lines(owner),
                    _ => None,
                };
                let ty = TYPES[ty].1.to_owned();
                if let Some((_, app)) = &lines {
                    with_site += sum(1, bytes);
                    if app.is_some() {
                        with_app += sum(1, bytes);
                    }
                }
                let key: Key = match lines {
                    Some((site, app)) => (site, app, None, ty),
                    None => (String::new(), None, Some(reason(origin).into()), ty),
                };
                listed.push((snapshot.number, bytes, key.clone()));
                *expected.entry(key).or_default() += sum(1, bytes);
            }
            let mut found: BTreeMap<Key, Sum> = BTreeMap::new();
            let mut total = Sum::default();
            for live in profile.live(snapshot.number).unwrap() {
                total += live.sum;
                let key = key(&profile, live.site, live.reason.as_deref(), &live.ty);
                // Sites that agree are one row.
                prop_assert!(found.insert(key, live.sum).is_none());
            }
            prop_assert_eq!(found, expected);
            prop_assert_eq!(snapshot.live, total);
            prop_assert_eq!((snapshot.with_site, snapshot.with_app), (with_site, with_app));
            let mut all = snapshot.with_site;
            snapshot.unknown.values().for_each(|&more| all += more);
            prop_assert_eq!(all, total);
        }
        let objects = profile.objects().unwrap();
        prop_assert_eq!(objects.is_some(), world.listed && !world.snapshots.is_empty());
        let found: Vec<_> = objects.into_iter().flatten().map(Result::unwrap).map(|object| {
            let key = key(&profile, object.site, object.reason.as_deref(), &object.ty);
            (object.snapshot, object.bytes, key)
        }).collect();
        if world.listed {
            prop_assert_eq!(found, listed);
        }
    }

    /// A log cut anywhere seals to what it has, or is no spool; objects of lost records are labelled.
    #[test]
    fn torn_logs_lose_lines_but_no_objects(at in any::<Index>()) {
        let tmp = tempfile::tempdir().unwrap();
        let spool = tmp.path().join("spool");
        shop(&spool).snapshot(Cause::Exit, &shop_heap(3), false);
        let log = fs::read(spool.join("meta.log")).unwrap();
        let cut = at.index(log.len());
        fs::write(spool.join("meta.log"), &log[..cut]).unwrap();
        match seal(&spool, &tmp.path().join("p"), Existing::Refuse) {
            Ok(manifest) => {
                prop_assert!(manifest.snapshots.is_empty());
                prop_assert!(manifest.target.sealed_after_crash);
            }
            Err(error) => prop_assert!(matches!(error, Error::NotASpool { .. }), "{error}"),
        }
    }
}

#[test]
fn damaged_snapshots_are_left_out_and_named() {
    let tmp = tempfile::tempdir().unwrap();
    let spool = tmp.path().join("spool");
    shop(&spool)
        .snapshot(Cause::Interval, &shop_heap(1), true)
        .snapshot(Cause::Interval, &shop_heap(2), true)
        .snapshot(Cause::Interval, &shop_heap(3), true)
        .snapshot(Cause::Interval, &shop_heap(4), true);
    let path = spool.join(file_name(1));
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    fs::remove_file(spool.join(file_name(2))).unwrap();
    // The file of another snapshot under this name, and a list that ends early.
    fs::copy(spool.join(file_name(4)), spool.join(file_name(3))).unwrap();
    let list = spool.join(objects_name(4));
    let bytes = fs::read(&list).unwrap();
    fs::write(&list, &bytes[..bytes.len() - 1]).unwrap();
    let (manifest, profile) = sealed(tmp.path());
    let numbers: Vec<_> = manifest
        .snapshots
        .iter()
        .map(|s| (s.number, s.listed))
        .collect();
    assert_eq!(numbers, [(4, false)]);
    assert_eq!(
        manifest.snapshots_torn.as_deref().unwrap(),
        "snapshot 1: checksum differs; snapshot 2: its file is missing; snapshot 3: another file than the log names; \
         objects of snapshot 4: cut off; those before are kept"
    );
    let objects = profile.objects().unwrap().unwrap();
    assert_eq!(objects.count(), shop_heap(4).len());
}

#[test]
fn a_log_without_the_lens_is_no_spool() {
    let tmp = tempfile::tempdir().unwrap();
    let log = Record::Target(Target::default()).encode();
    fs::write(tmp.path().join("meta.log"), &log).unwrap();
    let error = |what: &Path| seal_any(what, &tmp.path().join("p"), Existing::Refuse, &mut |_| ());
    let said = error(tmp.path()).unwrap_err().to_string();
    assert!(said.ends_with("neither counters nor sites"), "{said}");
    // The agent's own reason, if it gave one.
    let notice = Record::Notice("the sites lens is off: biased locking".into()).encode();
    fs::write(tmp.path().join("meta.log"), [log, notice].concat()).unwrap();
    let said = error(tmp.path()).unwrap_err().to_string();
    assert!(
        said.ends_with("the sites lens is off: biased locking"),
        "{said}"
    );
}

#[test]
fn damaged_profiles_are_refused() {
    let tmp = tempfile::tempdir().unwrap();
    shop(&tmp.path().join("spool")).snapshot(Cause::Exit, &shop_heap(1), true);
    let attached = Sites {
        attached: true,
        ..spare()
    };
    let other = tmp.path().join("attached");
    Heap::new(&other.join("spool"), target(), attached).snapshot(
        Cause::Exit,
        &[
            ("[B", 16, Origin::NoMark),
            ("[B", 16, Origin::Owner(owners::PAGE)),
        ],
        false,
    );
    let reasons: Vec<String> = sealed(&other).0.snapshots[0]
        .unknown
        .keys()
        .cloned()
        .collect();
    assert_eq!(
        reasons,
        ["before attach, or vm or native", "site record lost"]
    );
    for file in ["sites", "live", "skipped", "objects"] {
        sealed(tmp.path());
        let path = tmp.path().join("p").join(format!("{file}.parquet"));
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        fs::write(&path, bytes).unwrap();
        let error = Profile::open(tmp.path().join("p")).unwrap_err().to_string();
        assert!(error.contains(file) && error.contains("damaged"), "{error}");
    }
}
