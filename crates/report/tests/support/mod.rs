//! Small profiles in memory, made of streams of path IDs.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;

use borescope_paths::KIpf;
use borescope_profile::{
    Burst, Interval, Manifest, Merged, Method, MethodDetail, MethodEstimate, PathRow, Profile,
    Skipped, Target, Totals,
    model::{EdgeKind, StartKind},
};

/// A path by hand: ID, lines, bytecode, how it starts (`e`ntry, `l`oop, `h`andler) and ends.
pub type PathSpec<'a> = (u32, &'a [u16], &'a [(u32, u32)], char, EdgeKind);

/// A method with what its activations emitted.
pub struct Sample {
    pub class: &'static str,
    pub method: &'static str,
    pub descriptor: &'static str,
    pub source_file: Option<&'static str>,
    pub num_paths: &'static str,
    /// `None` = counted at fixed places, without entries.
    pub unfinished: Option<u64>,
    pub merged: Vec<Merged>,
    pub exact: bool,
    pub paths: Vec<PathRow>,
    /// (activation, how many of it)
    pub activations: Vec<(Vec<u32>, u64)>,
}

pub fn path((id, lines, bcis, start, ends): PathSpec<'_>) -> PathRow {
    let starts = StartKind {
        entry: start == 'e',
        loop_head: start == 'l',
        handler: start == 'h',
        cut: start == 'c',
    };
    PathRow {
        id,
        count: 0,
        interval: None,
        lines: lines.to_vec(),
        bcis: bcis.to_vec(),
        starts,
        ends,
    }
}

/// Brute force: every contiguous part of length 1..=k of every activation.
pub fn ngrams(activations: &[(Vec<u32>, u64)], k: usize) -> BTreeMap<Vec<u32>, u64> {
    let mut all = BTreeMap::new();
    for (ids, times) in activations {
        for n in 1..=k {
            for gram in ids.windows(n) {
                *all.entry(gram.to_vec()).or_insert(0) += times;
            }
        }
    }
    all
}

pub fn profile(k: u32, samples: &[Sample]) -> Profile {
    let mut methods = Vec::new();
    let mut details = BTreeMap::new();
    let mut totals = Totals {
        classes: 1,
        ..Totals::default()
    };
    for (index, s) in (0..).zip(samples) {
        let mut kipf = KIpf::new(k).unwrap();
        for (ids, count) in ngrams(&s.activations, k as usize) {
            kipf.add_ngram(&ids, count).unwrap();
        }
        let mut paths: Vec<PathRow> = s
            .paths
            .iter()
            .cloned()
            .map(|p| PathRow {
                count: kipf.count(&[p.id]),
                ..p
            })
            .filter(|p| p.count > 0)
            .collect();
        paths.sort_by_key(|p| (std::cmp::Reverse(p.count), p.id));
        let lines = paths.iter().flat_map(|p| &p.lines);
        let method = Method {
            index,
            class: s.class.to_owned(),
            method: s.method.to_owned(),
            descriptor: s.descriptor.to_owned(),
            source_file: s.source_file.map(str::to_owned),
            loader: "jdk.internal.loader.ClassLoaders$AppClassLoader".to_owned(),
            class_hash: 0xfeed,
            instances: 1,
            num_paths: s.num_paths.to_owned(),
            numbered_paths: s.paths.len() as u32,
            activations: s.activations.iter().map(|a| a.1).sum(),
            unfinished: s.unfinished,
            ids: kipf.total(),
            paths: paths.len() as u64,
            kipf_nodes: kipf.len() as u64,
            merged: s.merged.len() as u64,
            exact: s.exact,
            paths_exact: s.exact,
            estimate: None,
            lines: lines.clone().min().copied().zip(lines.max().copied()),
        };
        totals.methods += 1;
        totals.methods_executed += u64::from(method.activations > 0);
        totals.activations += method.activations;
        totals.ids += method.ids;
        totals.unfinished += method.unfinished.unwrap_or(0);
        totals.paths += method.paths;
        totals.kipf_nodes += kipf.len() as u64;
        methods.push(method);
        let merged = s.merged.clone();
        let detail = MethodDetail {
            paths,
            kipf,
            merged,
        };
        details.insert(index, detail);
    }
    Profile::from_parts(manifest(k, totals), methods, Vec::new(), details)
}

pub fn manifest(k: u32, totals: Totals) -> Manifest {
    Manifest {
        borescope: "0.1.0".to_owned(),
        schema: borescope_profile::SCHEMA,
        target: Target {
            pid: 4711,
            jdk: "21.0.8".to_owned(),
            vm: "OpenJDK 64-Bit Server VM 21.0.8+9".to_owned(),
            collector: "G1".to_owned(),
            command: "demo.Main --size 12".to_owned(),
            started: 1_764_460_000_000,
            ended: Some(1_764_460_012_400),
            sealed_after_crash: false,
            include: Vec::new(),
            exclude: Vec::new(),
        },
        engine: "automaton".to_owned(),
        k,
        branches: "merge".to_owned(),
        burst: None,
        straight_line: false,
        stopped: None,
        lost: 0,
        notices: Vec::new(),
        totals,
        files: BTreeMap::new(),
        log_torn: None,
        counters_torn: None,
    }
}

/// The same profile with another manifest or another list of what stayed plain.
pub fn rebuilt(
    profile: &Profile,
    change: impl FnOnce(&mut Manifest, &mut Vec<Method>, &mut Vec<Skipped>),
) -> Profile {
    let mut manifest = profile.manifest().clone();
    let mut methods = profile.methods().to_vec();
    let mut skipped = profile.skipped().to_vec();
    let details = methods
        .iter()
        .map(|m| (m.index, profile.detail(m.index).unwrap()))
        .collect();
    change(&mut manifest, &mut methods, &mut skipped);
    Profile::from_parts(manifest, methods, skipped, details)
}

pub fn skipped(class: &str, method: &str, descriptor: &str, reason: &str) -> Skipped {
    let [class, method, descriptor, reason] =
        [class, method, descriptor, reason].map(str::to_owned);
    Skipped {
        class,
        method,
        descriptor,
        lens: "paths".to_owned(),
        reason,
    }
}

/// The seed's figure 3: A 10, B 12, C 14, D 16, E 18, F 20; A->B, B->{C,D}, C->E, D->E, E->{B,F}.
pub fn worked_example() -> Sample {
    use EdgeKind::{Back, Return};
    let specs: [PathSpec<'_>; 8] = [
        (0, &[12, 16, 18], &[(2, 6), (10, 16)], 'l', Back),
        (1, &[12, 16, 18, 20], &[(2, 6), (10, 18)], 'l', Return),
        (2, &[12, 14, 18], &[(2, 10), (13, 16)], 'l', Back),
        (3, &[12, 14, 18, 20], &[(2, 10), (13, 18)], 'l', Return),
        (4, &[10, 12, 16, 18], &[(0, 6), (10, 16)], 'e', Back),
        (5, &[10, 12, 16, 18, 20], &[(0, 6), (10, 18)], 'e', Return),
        (6, &[10, 12, 14, 18], &[(0, 10), (13, 16)], 'e', Back),
        (7, &[10, 12, 14, 18, 20], &[(0, 10), (13, 18)], 'e', Return),
    ];
    Sample {
        class: "demo.Worked",
        method: "example",
        descriptor: "(I)V",
        source_file: Some("Worked.java"),
        num_paths: "8",
        unfinished: Some(0),
        merged: Vec::new(),
        exact: true,
        paths: specs.into_iter().map(path).collect(),
        activations: vec![(vec![6, 2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 3], 1)],
    }
}

/// The seed's figure 4 in spirit: an outer loop whose inner loop mostly runs 86, 86, 86, 755, else 87.
pub fn figure_four() -> Sample {
    use EdgeKind::{Back, Return};
    let specs: [PathSpec<'_>; 6] = [
        (0, &[1196, 1197], &[(0, 9)], 'e', Back),
        (38, &[1204, 1205, 1206, 1208, 1211], &[(9, 41)], 'l', Back),
        (86, &[1214, 1215, 1218], &[(41, 60), (72, 80)], 'l', Back),
        (87, &[1214, 1215, 1218], &[(41, 55), (60, 80)], 'l', Back),
        (755, &[1214, 1221, 1222], &[(41, 44), (80, 97)], 'l', Back),
        (900, &[1204, 1230], &[(9, 14), (97, 99)], 'l', Return),
    ];
    let hot = [38, 86, 86, 86, 755];
    let mut long = vec![0];
    (0..7).for_each(|_| long.extend(hot));
    long.extend([38, 87, 87, 755]);
    (0..2).for_each(|_| long.extend(hot));
    long.extend([38, 87, 755, 38, 755, 900]);
    Sample {
        class: "org.eclipse.jdt.internal.compiler.parser.Scanner",
        method: "checkTaskTag",
        descriptor: "(II)V",
        source_file: Some("Scanner.java"),
        num_paths: "1032",
        unfinished: Some(3),
        merged: Vec::new(),
        exact: true,
        paths: specs.into_iter().map(path).collect(),
        activations: vec![(long, 20_000), (vec![0, 900], 100_000)],
    }
}

/// A loop that turns by exceptions.
pub fn handler_loop() -> Sample {
    use EdgeKind::{Back, Return};
    let specs: [PathSpec<'_>; 4] = [
        (0, &[30, 31], &[(0, 4)], 'e', Back),
        (1, &[32, 33], &[(4, 20)], 'l', Back),
        (2, &[32, 40], &[(4, 7), (30, 31)], 'l', Return),
        (3, &[35, 36], &[(20, 30)], 'h', Back),
    ];
    let mut ids = vec![0];
    (0..9).for_each(|_| ids.extend([3, 3, 1]));
    ids.push(2);
    Sample {
        class: "demo.Parse",
        method: "numbers",
        descriptor: "(Ljava/util/List;[Ljava/lang/String;)I",
        source_file: Some("Parse.java"),
        num_paths: "5",
        unfinished: Some(18_000),
        merged: Vec::new(),
        exact: true,
        paths: specs.into_iter().map(path).collect(),
        activations: vec![(ids, 1_000)],
    }
}

/// A loop that takes one of its two ways only, without line numbers.
pub fn one_way() -> Sample {
    use EdgeKind::{Back, Return};
    let specs: [PathSpec<'_>; 3] = [
        (0, &[], &[(0, 4)], 'e', Back),
        (1, &[], &[(4, 10), (18, 25)], 'l', Back),
        (3, &[], &[(4, 7), (25, 27)], 'l', Return),
    ];
    let mut ids = vec![0];
    ids.extend([1; 500]);
    ids.push(3);
    Sample {
        class: "demo.Sum",
        method: "<init>",
        descriptor: "()V",
        source_file: None,
        num_paths: "170141183460469231731687303715884105728",
        unfinished: Some(0),
        merged: Vec::new(),
        exact: true,
        paths: specs.into_iter().map(path).collect(),
        activations: vec![(ids, 40)],
    }
}

/// A loop that turns five times in every call.
pub fn fixed_trips() -> Sample {
    use EdgeKind::{Back, Return};
    let specs: [PathSpec<'_>; 3] = [
        (0, &[73, 74, 75], &[(0, 20)], 'e', Back),
        (2, &[74, 75], &[(2, 20)], 'l', Back),
        (3, &[74, 77], &[(2, 8), (20, 22)], 'l', Return),
    ];
    Sample {
        class: "demo.Settings",
        method: "readName",
        descriptor: "()I",
        source_file: Some("Settings.java"),
        num_paths: "4",
        unfinished: Some(0),
        merged: Vec::new(),
        exact: true,
        paths: specs.into_iter().map(path).collect(),
        activations: vec![(vec![0, 2, 2, 2, 2, 3], 3_000)],
    }
}

/// A loop all of whose branches are short: it takes one path, and the bytecode that no path names may well have run.
pub fn clamp() -> Sample {
    use EdgeKind::{Back, Return};
    let specs: [PathSpec<'_>; 3] = [
        (0, &[50], &[(0, 2)], 'e', Back),
        (
            1,
            &[51, 52, 77, 80],
            &[(2, 12), (16, 24), (32, 40)],
            'l',
            Back,
        ),
        (2, &[51, 82], &[(2, 6), (40, 42)], 'l', Return),
    ];
    let branch = |lines: &[u16], head, arms: &[(u32, u32)], join| Merged {
        head,
        arms: arms.to_vec(),
        join,
        lines: lines.to_vec(),
    };
    Sample {
        class: "demo.Pixels",
        method: "clamp",
        descriptor: "([I)V",
        source_file: Some("Pixels.java"),
        num_paths: "4",
        unfinished: Some(0),
        merged: vec![
            branch(&[52], (6, 12), &[(12, 16)], (16, 24)),
            branch(&[77, 78, 79], (16, 24), &[(24, 28), (28, 32)], (32, 40)),
        ],
        exact: true,
        paths: specs.into_iter().map(path).collect(),
        activations: vec![([vec![0], vec![1; 600], vec![2]].concat(), 10)],
    }
}

/// One path and no loop, counted at fixed places.
pub fn leaf() -> Sample {
    Sample {
        class: "Plain",
        method: "get",
        descriptor: "()I",
        source_file: Some("Plain.java"),
        num_paths: "1",
        unfinished: None,
        merged: Vec::new(),
        exact: true,
        paths: vec![path((0, &[5], &[(0, 5)], 'e', EdgeKind::Return))],
        activations: vec![(vec![0], 7_000)],
    }
}

/// Two methods of which one in 64 calls was profiled, and one that counts all.
pub fn burst() -> Profile {
    let all = profile(4, &[fixed_trips(), handler_loop(), leaf()]);
    let mut details = BTreeMap::new();
    let mut manifest = all.manifest().clone();
    let mut methods = all.methods().to_vec();
    let near = |n: u64| Interval {
        lo: n / 10 * 9,
        hi: Some(n / 8 * 9),
    };
    for (n, method) in methods.iter_mut().enumerate() {
        let mut detail = all.detail(method.index).unwrap();
        if n < 2 {
            (method.exact, method.paths_exact) = (false, false);
            method.unfinished = method.unfinished.map(|n| n + 640);
            method.estimate = Some(MethodEstimate {
                chosen: method.activations / 64,
                activations: near(method.activations),
                unfinished: near(method.unfinished.unwrap_or(0)),
                ids: near(method.ids),
            });
            for path in &mut detail.paths {
                path.interval = Some(near(path.count));
            }
        }
        details.insert(method.index, detail);
    }
    manifest.totals.unfinished += 1280;
    manifest.burst = Some(Burst {
        one_in: 64,
        groups: 16,
        activations: near(manifest.totals.activations),
        ids: near(manifest.totals.ids),
        unfinished: near(manifest.totals.unfinished),
    });
    Profile::from_parts(manifest, methods, Vec::new(), details)
}

/// The data of a page for a browser.
pub fn page_data(page: &str) -> serde_json::Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = page.split_once(start).expect("a page has data");
    let (data, _) = rest.split_once("</script>").expect("it ends");
    serde_json::from_str(data).expect("it is JSON")
}

/// Checks that what would leave its place in a page stands there no more often than in one with harmless names.
pub fn stays_text(page: &str, harmless: &str) {
    for mark in [
        "<script",
        "</script",
        "<!--",
        "<img",
        "alert(1)>",
        "onerror=alert(1)>",
    ] {
        assert_eq!(
            page.matches(mark).count(),
            harmless.matches(mark).count(),
            "{mark}"
        );
    }
}
