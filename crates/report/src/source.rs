//! Source text of lines, from directories the user names. Class and file names come from the profile, which is untrusted: they never
//! lead out of those directories, and a file that is no text or is huge is as good as none.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// A source file is not read beyond this.
const MAX_BYTES: u64 = 16 << 20;

/// One source file.
pub(crate) struct SourceFile(Vec<String>);

impl SourceFile {
    /// Looks for `dir/package/file`, then `dir/file`, in each directory in turn.
    pub(crate) fn find(dirs: &[PathBuf], class: &str, file: &str) -> Option<Self> {
        places(dirs, class, file).find_map(|path| {
            // Lossy: old sources are often Latin-1.
            let text = String::from_utf8_lossy(&fs::read(&path).ok()?).into_owned();
            Some(Self(text.lines().map(str::to_owned).collect()))
        })
    }

    /// The text of a line (1-based) without its indentation; `None` if there is no such line.
    pub(crate) fn line(&self, number: u32) -> Option<&str> {
        self.indented(number).map(str::trim)
    }

    /// The text of a line (1-based) as it is; `None` if there is no such line.
    pub(crate) fn indented(&self, number: u32) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.0.get(index).map(String::as_str)
    }
}

/// The path of a class's source file for other tools: where it is in one of the directories, else by package and name (`com/acme/A.java`).
pub(crate) fn path(dirs: &[PathBuf], class: &str, file: &str) -> Option<PathBuf> {
    let (package, file) = (package(class), Path::new(file));
    let named = harmless(&package) && file.components().count() == 1;
    if !named || !harmless(&file.to_string_lossy()) {
        return None;
    }
    let found = places(dirs, class, &file.to_string_lossy()).next();
    Some(found.unwrap_or_else(|| Path::new(&package).join(file)))
}

fn package(class: &str) -> String {
    let class = class.replace('.', "/");
    class.rsplit_once('/').map_or("", |p| p.0).to_owned()
}

/// The files that may be it, none of them huge.
fn places(dirs: &[PathBuf], class: &str, file: &str) -> impl Iterator<Item = PathBuf> {
    let package = package(class);
    let plain = harmless(&package) && harmless(file) && Path::new(file).components().count() == 1;
    let dirs = if plain { dirs } else { &[] };
    let all = dirs
        .iter()
        .flat_map(move |dir| [dir.join(&package).join(file), dir.join(file)]);
    all.filter(|path| {
        fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_BYTES)
    })
}

/// A relative path of plain names.
fn harmless(path: &str) -> bool {
    Path::new(path)
        .components()
        .all(|c| matches!(c, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_by_package_and_never_outside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("src");
        fs::create_dir_all(root.join("com/acme")).unwrap();
        fs::write(root.join("com/acme/A.java"), "one\n  two \n").unwrap();
        fs::write(dir.path().join("secret"), "secret\n").unwrap();
        let dirs = [dir.path().join("nowhere"), root.clone()];
        let found = SourceFile::find(&dirs, "com/acme/A$Inner", "A.java").unwrap();
        assert_eq!(
            (found.line(0), found.line(2), found.line(3)),
            (None, Some("two"), None)
        );
        assert!(SourceFile::find(&[root.join("com/acme")], "com.acme.A", "A.java").is_some());
        let named = |dirs: &[PathBuf]| path(dirs, "com.acme.A$B", "A.java").unwrap();
        assert_eq!(named(&[]), Path::new("com/acme/A.java"));
        assert_eq!(named(&dirs), root.join("com/acme/A.java"));
        for (class, file) in [
            ("A", "../secret"),
            ("../A", "secret"),
            ("x/../../A", "secret"),
            ("/A", "etc"),
            ("A", ""),
            ("A", "com"),
            ("A", "/etc/passwd"),
        ] {
            assert!(
                SourceFile::find(&dirs, class, file).is_none(),
                "{class} {file}"
            );
            let path = path(&dirs, class, file);
            assert!(
                path.is_none_or(|path| harmless(&path.to_string_lossy())),
                "{class} {file}"
            );
        }
    }
}
