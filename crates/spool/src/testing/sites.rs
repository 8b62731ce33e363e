//! Spools of the sites lens without a JVM: [`Heap`] writes the files that an agent would.

use std::fs;
use std::path::{Path, PathBuf};

use crate::meta::{Record, Target};
use crate::sites::{
    Call, Cause, MethodName, Mode, Owner, Site, SiteClass, SiteKind, Sites, Snapshot,
};
use crate::snapshot::objects::{Object, Writer};
use crate::snapshot::{self, Origin, Row};

/// A live object: class as a JVM signature, size, where it was allocated.
pub type Live<'a> = (&'a str, u64, Origin);

/// A spool in the making.
pub struct Heap {
    dir: PathBuf,
    log: Vec<u8>,
    snapshots: u32,
    /// When the next snapshot is taken.
    at_ms: u64,
}

impl Heap {
    /// Begins a spool in `dir`, which is made.
    pub fn new(dir: &Path, target: Target, sites: Sites) -> Heap {
        fs::create_dir_all(dir).expect("a directory");
        let mut heap = Heap {
            dir: dir.to_owned(),
            log: Vec::new(),
            snapshots: 0,
            at_ms: target.started,
        };
        heap.record(&Record::Target(target));
        heap.record(&Record::Sites(sites));
        heap
    }

    /// Appends a record.
    pub fn record(&mut self, record: &Record) -> &mut Self {
        self.log.extend(record.encode());
        fs::write(self.dir.join("meta.log"), &self.log).expect("a log");
        self
    }

    /// Takes a snapshot, a minute after the one before; `listed`: with each object.
    pub fn snapshot(&mut self, cause: Cause, live: &[Live], listed: bool) -> &mut Self {
        self.snapshots += 1;
        self.at_ms += 60_000;
        let number = self.snapshots;
        let mut classes: Vec<&str> = live.iter().map(|one| one.0).collect();
        classes.sort_unstable();
        classes.dedup();
        let class = |name| classes.binary_search(&name).expect("it is there") as u32;
        let rows = live.iter().map(|&(name, bytes, origin)| Row {
            class: class(name),
            origin,
            objects: 1,
            bytes,
        });
        let mut file = Vec::new();
        snapshot::write(&mut file, number, classes.iter().copied(), rows).expect("a vector");
        fs::write(self.dir.join(snapshot::file_name(number)), file).expect("a snapshot");
        if listed {
            let mut list = Writer::new(Vec::new(), number).expect("a vector");
            for (at, &(name, bytes, origin)) in live.iter().enumerate() {
                let object = Object {
                    address: 0x7000_0000 + at as u64 * 64,
                    bytes,
                    class: class(name),
                    origin,
                };
                list.push(object).expect("a vector");
            }
            let (_, list) = list.finish().expect("a vector");
            fs::write(self.dir.join(snapshot::objects_name(number)), list).expect("a list");
        }
        self.record(&Record::Snapshot(Snapshot {
            number,
            cause,
            at_ms: self.at_ms,
            took_ms: 12,
            live_only: true,
            listed,
            objects: live.len() as u64,
            bytes: live.iter().map(|one| one.1).sum(),
            epoch: 0,
        }))
    }
}

/// A JVM.
pub fn target() -> Target {
    Target {
        pid: 42,
        jdk: "17.0.15".into(),
        vm: "OpenJDK 64-Bit Server VM 17.0.15+6".into(),
        collector: "G1".into(),
        command: "acme.Shop --port 80".into(),
        started: 1_764_457_000_000,
        ..Target::default()
    }
}

/// The ordinary set-up on JDK 17.
pub fn spare() -> Sites {
    Sites {
        mode: Mode::Spare,
        hash_shift: 8,
        spare_bits: 25,
        jdk: true,
        attribute: true,
        attached: false,
        scheme: None,
    }
}

/// Owners of the classes that [`shop`] describes.
pub mod owners {
    /// `new byte[1024]` in `acme.Cache.load`, line 42.
    pub const PAGE: u32 = 1;
    /// `new acme.Cache$Entry` in `acme.Cache.put`, line 51.
    pub const ENTRY: u32 = 2;
    /// `new acme.Request` in `acme.Shop.serve`, line 12.
    pub const REQUEST: u32 = 3;
    /// `HashMap.newNode` (line 1901) called in `acme.Cache.put`, line 52.
    pub const NODE: u32 = 4;
    /// `HashMap.resize` (line 702) called in `acme.Cache.put`, line 52.
    pub const TABLE: u32 = 5;
    /// `HashMap.newNode` with an unknown caller.
    pub const LOST_NODE: u32 = 6;
}

/// A shop with a cache that leaks.
pub fn shop(dir: &Path) -> Heap {
    let mut heap = Heap::new(dir, target(), spare());
    for class in shop_classes() {
        heap.record(&Record::SiteClass(class));
    }
    let owner = |(owner, site, call)| Owner { owner, site, call };
    let of_jdk = [
        (owners::NODE, 1, 1),
        (owners::TABLE, 2, 1),
        (owners::LOST_NODE, 1, 0),
    ];
    heap.record(&Record::Owners(of_jdk.map(owner).to_vec()));
    heap
}

fn shop_classes() -> [SiteClass; 3] {
    let methods = |names: &[(&str, &str)]| {
        let of = |&(name, descriptor): &(&str, &str)| MethodName {
            name: name.into(),
            descriptor: descriptor.into(),
        };
        names.iter().map(of).collect()
    };
    let site = |method, bci, line, kind, ty: &str| Site {
        method,
        bci,
        line,
        kind,
        ty: ty.into(),
    };
    let class = |name: &str, file: &str, first_site: u32| SiteClass {
        name: name.into(),
        loader: "jdk/internal/loader/ClassLoaders$AppClassLoader".into(),
        hash: first_site.into(),
        source_file: Some(file.into()),
        jdk: false,
        first_site,
        first_call: 0,
        methods: vec![],
        sites: vec![],
        calls: vec![],
        skipped: vec![],
    };
    [
        SiteClass {
            methods: methods(&[("load", "(I)[B"), ("put", "(Ljava/lang/String;)V")]),
            sites: vec![
                site(0, 4, 42, SiteKind::NewArray, "[B"),
                site(1, 0, 51, SiteKind::New, "acme/Cache$Entry"),
            ],
            first_call: 1,
            calls: vec![Call {
                method: 1,
                bci: 20,
                line: 52,
            }],
            ..class("acme/Cache", "Cache.java", owners::PAGE)
        },
        SiteClass {
            methods: methods(&[("serve", "()V")]),
            sites: vec![site(0, 3, 12, SiteKind::New, "acme/Request")],
            skipped: vec![crate::sites::SkippedSite {
                method: 0,
                bci: Some(30),
                reason: "does not leave its method".into(),
            }],
            ..class("acme/Shop", "Shop.java", owners::REQUEST)
        },
        SiteClass {
            loader: "boot".into(),
            jdk: true,
            methods: methods(&[("newNode", "()V"), ("resize", "()V")]),
            sites: vec![
                site(0, 0, 1901, SiteKind::New, "java/util/HashMap$Node"),
                site(1, 9, 702, SiteKind::ANewArray, "[Ljava/util/HashMap$Node;"),
            ],
            ..class("java/util/HashMap", "HashMap.java", 1)
        },
    ]
}

/// Live objects of the shop after so many requests have left something in the cache.
pub fn shop_heap(requests: usize) -> Vec<Live<'static>> {
    let mut live = vec![
        ("Ljava/lang/Thread;", 376, Origin::NoMark),
        ("Lacme/Request;", 24, Origin::Owner(owners::REQUEST)),
        (
            "Ljava/util/HashMap$Node;",
            32,
            Origin::Owner(owners::LOST_NODE),
        ),
        ("Ljava/lang/Object;", 16, Origin::Hashed),
    ];
    let table = 16 + 8 * requests.next_power_of_two() as u64;
    live.push((
        "[Ljava/util/HashMap$Node;",
        table,
        Origin::Owner(owners::TABLE),
    ));
    for _ in 0..requests {
        live.extend([
            ("[B", 1040, Origin::Owner(owners::PAGE)),
            ("Lacme/Cache$Entry;", 24, Origin::Owner(owners::ENTRY)),
            ("Ljava/util/HashMap$Node;", 32, Origin::Owner(owners::NODE)),
        ]);
    }
    live
}
