//! Numbers every method of the class files under some directories (unpacked jars, or a JDK's modules unpacked by `jimage extract`)
//! and tells how many paths there are, what is skipped and why, and how fast it went. Each flow is checked as decoders check it.
//!
//! ```sh
//! cargo run --release -p borescope-cfg --example scan -- DIRECTORY...
//! ```

use borescope_cfg::flow::{Edge, EdgeKind, Flow};
use borescope_cfg::{Builder, Probe, Settings, Turns};
use borescope_classfile::insn::{self, Flow as Control};
use borescope_classfile::{At, ClassFile, Code, Method};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn main() -> std::io::Result<()> {
    let mut files = vec![];
    for directory in std::env::args_os().skip(1) {
        collect(Path::new(&directory), &mut files)?;
    }
    let mut tally = Tally::default();
    for some in files.chunks(1_000) {
        let bytes: Vec<Vec<u8>> = some.iter().map(std::fs::read).collect::<Result<_, _>>()?;
        tally.classes(some, &bytes)?;
    }
    tally.print();
    Ok(())
}

fn collect(directory: &Path, out: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "class") {
            out.push(path);
        }
    }
    Ok(())
}

/// Processor time of this thread: other programs on the machine do not count.
fn processor_time() -> std::io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().and_then(|n| n.parse().ok());
    Ok(Duration::from_nanos(nanos.unwrap_or(0)))
}

/// As the agent has them unless told otherwise.
fn settings(method: &Method<'_>) -> Settings {
    Settings {
        merge: true,
        runs: method.name() != "<init>",
    }
}

#[derive(Default)]
struct Tally {
    builder: Builder,
    classes: usize,
    class_bytes: usize,
    unreadable: usize,
    time: Duration,
    methods: usize,
    blocks: usize,
    probes: usize,
    on_jumps: usize,
    one_path: usize,
    back_edges: usize,
    run_loops: usize,
    run_loops_by_int: usize,
    branches: usize,
    merged: usize,
    skipped: BTreeMap<String, usize>,
    cut_methods: usize,
    cut_blocks: usize,
    cut_edges: usize,
    over_31_bits: usize,
    /// Digits, number, method.
    most: (usize, String, String),
}

impl Tally {
    fn classes(&mut self, files: &[PathBuf], bytes: &[Vec<u8>]) -> std::io::Result<()> {
        let mut classes = vec![];
        for (file, bytes) in files.iter().zip(bytes) {
            match ClassFile::parse(bytes) {
                Ok(class) => classes.push((file, class)),
                Err(_) => self.unreadable += 1,
            }
            self.class_bytes += bytes.len();
        }
        let methods: Vec<(usize, &Method<'_>, Code<'_>)> = classes
            .iter()
            .enumerate()
            .flat_map(|(i, (_, class))| class.methods().iter().map(move |m| (i, m)))
            .filter_map(|(i, method)| Some((i, method, method.code()?)))
            .collect();
        let begin = processor_time()?;
        for (class, method, code) in &methods {
            let class = &classes[*class].1;
            std::hint::black_box(self.builder.build(class, code, settings(method)).ok());
        }
        self.time += processor_time()?.saturating_sub(begin);
        self.classes += classes.len();
        self.methods += methods.len();
        for (class, method, code) in &methods {
            let (file, class) = &classes[*class];
            let name = || {
                format!(
                    "{}.{}{}",
                    class.this_name(),
                    method.name(),
                    method.descriptor()
                )
            };
            match self.builder.build(class, code, settings(method)) {
                Ok((flow, probes)) => {
                    if let Err(error) = flow.validate() {
                        panic!("{} in {}: {error}", name(), file.display());
                    }
                    let branch = |bci: u16| {
                        let flow = insn::flow(code.code, bci.into());
                        matches!(flow, Ok(Control::Branch(_)))
                    };
                    let starts = insn::insns(code.code).filter_map(|i| Some(i.ok()?.0));
                    self.branches += starts.filter(|&bci| branch(bci)).count();
                    self.method(&flow, &probes, name);
                }
                Err(skip) => *self.skipped.entry(skip.to_string()).or_default() += 1,
            }
        }
        Ok(())
    }

    fn method(&mut self, flow: &Flow, probes: &[Probe], name: impl Fn() -> String) {
        self.blocks += flow.blocks.len();
        self.probes += probes.len();
        let taken = |p: &&Probe| matches!(p.at(), Some(At::Taken { .. }));
        let back = |e: &&Edge| e.kind == EdgeKind::Back;
        self.back_edges += flow.edges.iter().filter(back).count();
        let unwinds = |p: &&Probe| matches!(p, Probe::Unwind { .. });
        let runs = probes.iter().filter(unwinds).count();
        self.run_loops += runs;
        if let Some(Probe::Enter {
            turns: Some(Turns::Int),
            ..
        }) = probes.first()
        {
            self.run_loops_by_int += runs;
        }
        self.merged += flow.merged.len();
        self.on_jumps += probes.iter().filter(taken).count();
        self.one_path += usize::from(flow.num_paths == 1);
        let cut_edges = flow
            .edges
            .iter()
            .filter(|e| e.kind == EdgeKind::Cut)
            .count();
        self.cut_edges += cut_edges;
        self.cut_methods += usize::from(cut_edges > 0);
        self.cut_blocks += flow.starts.iter().filter(|s| s.kind.cut).count();
        let uncut = &flow.uncut_paths;
        self.over_31_bits += usize::from(uncut.parse::<u128>().map_or(true, |n| n > 1 << 31));
        if (uncut.len(), uncut) > (self.most.0, &self.most.1) {
            self.most = (uncut.len(), uncut.clone(), name());
        }
    }

    fn print(&self) {
        println!(
            "classes        {} ({} bytes)",
            self.classes, self.class_bytes
        );
        println!("unreadable     {}", self.unreadable);
        println!(
            "methods        {}, {} of them with one path",
            self.methods, self.one_path
        );
        for (reason, count) in &self.skipped {
            println!("skipped        {count}: {reason}");
        }
        println!("blocks         {}", self.blocks);
        println!(
            "probes         {}, {} of them on jumps",
            self.probes, self.on_jumps
        );
        println!(
            "back edges     {}, {} of them of run loops ({} counted by an int)",
            self.back_edges, self.run_loops, self.run_loops_by_int
        );
        let share = 100.0 * self.merged as f64 / self.branches as f64;
        println!(
            "branches       {} conditional ones, {} of them merged ({share:.1} %)",
            self.branches, self.merged
        );
        println!("over 2^31      {} methods", self.over_31_bits);
        println!(
            "cut            {} methods before {} blocks ({} edges)",
            self.cut_methods, self.cut_blocks, self.cut_edges
        );
        println!("most paths     {} in {}", self.most.1, self.most.2);
        let rate = self.class_bytes as f64 / 1e6 / self.time.as_secs_f64();
        println!("speed          {rate:.0} MB/s of class bytes, one core");
    }
}
