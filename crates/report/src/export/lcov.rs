//! Coverage in the format of LCOV: which lines, paths and turns of loops ran, for genhtml and the tools that read its records.
//!
//! What is not known is left out, with a remark, instead of being reported as not run: docs/exports.md says where that is so.

use std::collections::BTreeMap;
use std::io::Write;

use borescope_profile::{Code, Loop, Method, MethodDetail, Profile};

use super::ExportOptions;
use crate::{Error, words};

/// A method with more paths than this has no branch for each.
const PATHS: u32 = 64;

/// What went into the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Methods in it.
    pub methods: usize,
    /// Methods without source lines, which are not.
    pub without_lines: usize,
}

/// Why there is no coverage.
#[derive(Debug, thiserror::Error)]
pub enum LcovError {
    /// Only a share of the calls was counted: what did not run in it may have run.
    #[error(
        "of this profile only a random share of the calls was counted (--burst): coverage needs all of them"
    )]
    Burst,
    /// The profile does not say what did not run.
    #[error(
        "this profile was sealed by an earlier version, which did not keep the lines that did not run"
    )]
    Earlier,
    /// As with the other formats.
    #[error(transparent)]
    Other(#[from] Error),
}

/// Writes a record for each source file. Methods that never ran are in it, too.
pub fn paths(
    profile: &Profile,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<Covered, LcovError> {
    if profile.manifest().burst.is_some() {
        return Err(LcovError::Burst);
    }
    let mut covered = Covered::default();
    let mut files: BTreeMap<String, Vec<&Method>> = BTreeMap::new();
    for method in profile.methods().iter().filter(|one| options.wants(one)) {
        let file = method
            .source_file
            .as_deref()
            .filter(|_| method.lines.is_some());
        let path = file.and_then(|file| options.source.path(&method.class, file));
        match path {
            Some(path) => {
                let path = words::plain(&path.to_string_lossy());
                files.entry(path).or_default().push(method);
                covered.methods += 1;
            }
            None => covered.without_lines += 1,
        }
    }
    if let Some(methods) = files.values().next() {
        let first = profile.code(methods[0].index).map_err(Error::from)?;
        first.ok_or(LcovError::Earlier)?;
    }
    crate::buffered(out, |out| {
        writeln!(out, "# borescope {}", profile.manifest().borescope)?;
        if covered.without_lines > 0 {
            writeln!(
                out,
                "# {} left out: without source lines",
                words::plain(&words::plural(
                    covered.without_lines as u64,
                    "method",
                    "methods"
                ))
            )?;
        }
        for (path, methods) in &files {
            file(profile, path, methods, out)?;
        }
        Ok(())
    })?;
    Ok(covered)
}

/// Lines and branches of a file, added up over its methods.
#[derive(Default)]
struct File {
    lines: BTreeMap<u32, u64>,
    /// (line, block, branch, taken; `None` = could not be taken as nothing came there).
    branches: Vec<(u32, u32, u32, Option<u64>)>,
    blocks: u32,
}

fn file(
    profile: &Profile,
    path: &str,
    methods: &[&Method],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut file = File::default();
    writeln!(out, "TN:\nSF:{path}")?;
    let names = names(methods);
    for (method, name) in methods.iter().zip(&names) {
        writeln!(out, "FN:{},{name}", first_line(method))?;
    }
    for (method, name) in methods.iter().zip(&names) {
        writeln!(out, "FNDA:{},{name}", method.activations)?;
    }
    let ran = methods.iter().filter(|method| method.activations > 0);
    writeln!(out, "FNF:{}\nFNH:{}", methods.len(), ran.count())?;
    for (method, name) in methods.iter().zip(&names) {
        let detail = profile.detail(method.index)?;
        let code = profile.code(method.index)?.unwrap_or_default();
        for remark in file.add(method, &detail, &code) {
            writeln!(out, "# {name}: {remark}")?;
        }
    }
    file.branches.sort_unstable();
    for (line, block, branch, taken) in &file.branches {
        match taken {
            Some(taken) => writeln!(out, "BRDA:{line},{block},{branch},{taken}")?,
            None => writeln!(out, "BRDA:{line},{block},{branch},-")?,
        }
    }
    let taken = file.branches.iter().filter(|branch| branch.3 > Some(0));
    writeln!(out, "BRF:{}\nBRH:{}", file.branches.len(), taken.count())?;
    for (line, count) in &file.lines {
        writeln!(out, "DA:{line},{count}")?;
    }
    let hit = file.lines.values().filter(|&&count| count > 0).count();
    writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", file.lines.len())?;
    Ok(())
}

fn first_line(method: &Method) -> u16 {
    method.lines.map_or(0, |lines| lines.0)
}

/// Names that differ: two classes of one name have a number.
fn names(methods: &[&Method]) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let name = |method: &&Method| {
        let name = format!("{}.{}{}", method.class, method.method, method.descriptor);
        let name = words::plain(&name);
        let again = seen.entry(name.clone()).or_default();
        *again += 1;
        match again {
            1 => name,
            again => format!("{name}#{again}"),
        }
    };
    methods.iter().map(name).collect()
}

impl File {
    /// Adds a method; returns what its figures do not say.
    fn add(&mut self, method: &Method, detail: &MethodDetail, code: &Code) -> Vec<String> {
        let mut remarks = Vec::new();
        self.lines(method, detail, code, &mut remarks);
        self.paths(method, detail, &mut remarks);
        for one in &code.loops {
            self.turns(one, &mut remarks);
        }
        if let Some(unfinished) = method.unfinished.filter(|&unfinished| unfinished > 0) {
            remarks.push(format!(
                "{unfinished} of its paths were cut short by an exception: what only they ran counts as not run"
            ));
        }
        if !method.paths_exact {
            remarks.push("not everything was counted: what counts as not run may have run".into());
        }
        remarks
    }

    fn lines(
        &mut self,
        method: &Method,
        detail: &MethodDetail,
        code: &Code,
        remarks: &mut Vec<String>,
    ) {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for path in &detail.paths {
            for line in crate::names::lines(path) {
                let count = counts.entry(line).or_default();
                *count = count.saturating_add(path.count);
            }
        }
        let arms = detail.merged.iter().flat_map(|branch| &branch.lines);
        let arms: Vec<u32> = arms.map(|&line| line.into()).collect();
        let mut unknown = Vec::new();
        for line in code.lines.iter().map(|&line| u32::from(line)) {
            match counts.get(&line) {
                // No path names the arms of branches that are not told apart: whether they ran is not known, if anything did.
                None if arms.contains(&line) && method.ids > 0 => unknown.push(line),
                None => counts.insert(line, 0).map_or((), drop),
                Some(_) => {}
            }
        }
        unknown.dedup();
        if !unknown.is_empty() {
            remarks.push(format!(
                "lines {} left out: of short branches that were not told apart (--branches split)",
                words::ranges(&unknown)
            ));
        }
        for (line, count) in counts {
            let sum = self.lines.entry(line).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// A branch for each path of the method, at its first line.
    fn paths(&mut self, method: &Method, detail: &MethodDetail, remarks: &mut Vec<String>) {
        if method.numbered_paths < 2 {
            return;
        }
        if method.numbered_paths > PATHS {
            remarks.push(format!(
                "{} of {} paths ran: too many for a branch each",
                method.paths, method.num_paths
            ));
            return;
        }
        let block = self.block();
        let line = first_line(method).into();
        let ran: BTreeMap<u32, u64> = detail.paths.iter().map(|p| (p.id, p.count)).collect();
        for id in 0..method.numbered_paths {
            let count = ran.get(&id).copied().unwrap_or(0);
            let taken = (method.ids > 0).then_some(count);
            self.branches.push((line, block, id, taken));
        }
    }

    /// A branch each for no turn of a loop, one turn, and more.
    fn turns(&mut self, one: &Loop, remarks: &mut Vec<String>) {
        if one.line == 0 {
            return;
        }
        let block = self.block();
        let line = u32::from(one.line);
        let entered = [one.zero, one.one, one.many, one.unsure]
            .iter()
            .any(|&count| count > 0);
        for (branch, count) in (0..).zip([one.zero, one.one, one.many]) {
            match (entered, count, one.unsure) {
                (false, _, _) => self.branches.push((line, block, branch, None)),
                // Some of those that are not known may be of this kind.
                (true, 0, 1..) => {}
                (true, count, _) => self.branches.push((line, block, branch, Some(count))),
            }
        }
        if one.unsure > 0 {
            remarks.push(format!(
                "of {} entries of the loop at line {line} the turns are not known (-k)",
                one.unsure
            ));
        }
    }

    fn block(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks - 1
    }
}
