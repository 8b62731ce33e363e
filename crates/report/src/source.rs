//! Source text of lines, from directories and archives the user names. Class and file names come from the profile, which is untrusted: they never
//! lead out of those directories, and a file that is no text or is huge is as good as none.

use std::{
    collections::HashMap,
    fmt,
    fs::{self, File},
    io::{BufReader, ErrorKind, Read},
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex},
};

use zip::ZipArchive;
use zip::result::{ZipError, ZipResult};

/// A source file is not read beyond this.
const MAX_BYTES: u64 = 16 << 20;

/// Where source files are looked for, in this order: directories, and jars or zips with sources.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Place>);

/// Why source files cannot be looked for there.
#[derive(Debug, thiserror::Error)]
pub enum NoSources {
    /// Nothing has this path.
    #[error("{}: no such directory, jar or zip", .0.display())]
    Missing(PathBuf),
    /// What has it cannot be read as an archive.
    #[error("{}: neither a directory nor a jar or zip ({})", .0.display(), .1)]
    Neither(PathBuf, ZipError),
}

#[derive(Clone, Debug)]
enum Place {
    Directory(PathBuf),
    Archive(Arc<Archive>),
}

impl Sources {
    /// Looks at what is there; an archive stays open.
    pub fn open(paths: &[PathBuf]) -> Result<Self, NoSources> {
        let open = |path: &PathBuf| {
            if path.is_dir() {
                return Ok(Place::Directory(path.clone()));
            }
            let archive = File::open(path).map_err(|e| match e.kind() {
                ErrorKind::NotFound => NoSources::Missing(path.clone()),
                _ => NoSources::Neither(path.clone(), e.into()),
            })?;
            let archive = Archive::open(archive);
            let archive = archive.map_err(|e| NoSources::Neither(path.clone(), e))?;
            Ok(Place::Archive(Arc::new(archive)))
        };
        paths.iter().map(open).collect::<Result<_, _>>().map(Self)
    }

    /// The source file of a class: in a directory `package/file`, then `file`; in an archive also below another directory (`java.base/java/util/List.java`).
    pub(crate) fn find(&self, class: &str, file: &str) -> Option<SourceFile> {
        let wanted = Wanted::new(class, file)?;
        let bytes = self.0.iter().find_map(|place| match place {
            Place::Directory(dir) => wanted.below(dir).find_map(|path| fs::read(path).ok()),
            Place::Archive(archive) => archive.read(&wanted),
        })?;
        // Lossy: old sources are often Latin-1.
        let text = String::from_utf8_lossy(&bytes);
        Some(SourceFile(text.lines().map(str::to_owned).collect()))
    }

    /// The path of a class's source file for other tools: where it is in one of the directories, else by package and name (`com/acme/A.java`).
    pub(crate) fn path(&self, class: &str, file: &str) -> Option<PathBuf> {
        let wanted = Wanted::new(class, file)?;
        let found = self.0.iter().find_map(|place| match place {
            Place::Directory(dir) => wanted.below(dir).next(),
            Place::Archive(_) => None,
        });
        Some(found.unwrap_or_else(|| Path::new(&wanted.package).join(wanted.file)))
    }
}

/// A file of a package, by names that lead nowhere else.
struct Wanted<'a> {
    /// With slashes.
    package: String,
    file: &'a str,
}

impl<'a> Wanted<'a> {
    fn new(class: &str, file: &'a str) -> Option<Self> {
        let class = class.replace('.', "/");
        let package = class.rsplit_once('/').map_or("", |p| p.0).to_owned();
        let plain =
            harmless(&package) && harmless(file) && Path::new(file).components().count() == 1;
        plain.then_some(Self { package, file })
    }

    /// The files that may be it, none of them huge.
    fn below(&self, dir: &Path) -> impl Iterator<Item = PathBuf> {
        let all = [dir.join(&self.package).join(self.file), dir.join(self.file)];
        all.into_iter().filter(|path| {
            fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_BYTES)
        })
    }
}

/// A jar or zip.
struct Archive {
    zip: Mutex<ZipArchive<BufReader<File>>>,
    /// Files by their name: the directory, without a slash at its end, and the number of the entry.
    files: HashMap<String, Vec<(String, usize)>>,
}

impl Archive {
    fn open(file: File) -> ZipResult<Self> {
        let zip = ZipArchive::new(BufReader::new(file))?;
        let mut files = HashMap::<_, Vec<_>>::new();
        for entry in 0..zip.len() {
            let name = zip.name_for_index(entry).unwrap_or_default();
            let (directory, file) = name.rsplit_once('/').unwrap_or(("", name));
            if !file.is_empty() {
                let place = (directory.to_owned(), entry);
                files.entry(file.to_owned()).or_default().push(place);
            }
        }
        Ok(Self {
            zip: Mutex::new(zip),
            files,
        })
    }

    /// The file in the directory that the package is, or ends with; else at the top. An entry that cannot be read is as good as none.
    fn read(&self, wanted: &Wanted<'_>) -> Option<Vec<u8>> {
        let ends_with = |directory: &str| {
            let before = directory.strip_suffix(wanted.package.as_str());
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let places = self.files.get(wanted.file)?.iter();
        let of_package = places.clone().filter(|(directory, _)| ends_with(directory));
        let (_, entry) = of_package
            .min_by_key(|(directory, _)| directory.len())
            .or_else(|| places.clone().find(|(directory, _)| directory.is_empty()))?;
        let mut zip = self.zip.lock().ok()?;
        let mut bytes = Vec::new();
        let entry = zip.by_index(*entry).ok()?;
        entry.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= MAX_BYTES).then_some(bytes)
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").finish_non_exhaustive()
    }
}

/// One source file.
pub(crate) struct SourceFile(Vec<String>);

impl SourceFile {
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

/// A relative path of plain names.
fn harmless(path: &str) -> bool {
    Path::new(path)
        .components()
        .all(|c| matches!(c, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use zip::write::SimpleFileOptions;

    /// Names that lead elsewhere.
    const EVIL: [(&str, &str); 7] = [
        ("A", "../secret"),
        ("../A", "secret"),
        ("x/../../A", "secret"),
        ("/A", "etc"),
        ("A", ""),
        ("A", "com"),
        ("A", "/etc/passwd"),
    ];

    fn first(sources: &Sources, class: &str, file: &str) -> Option<String> {
        let file = sources.find(class, file)?;
        file.line(1).map(str::to_owned)
    }

    #[test]
    fn found_by_package_and_never_outside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("src");
        fs::create_dir_all(root.join("com/acme")).unwrap();
        fs::write(root.join("com/acme/A.java"), "one\n  two \n").unwrap();
        fs::write(dir.path().join("secret"), "secret\n").unwrap();
        let empty = tempfile::tempdir().unwrap();
        let sources = Sources::open(&[empty.path().to_owned(), root.clone()]).unwrap();
        let found = sources.find("com/acme/A$Inner", "A.java").unwrap();
        assert_eq!(
            (found.line(0), found.line(2), found.line(3)),
            (None, Some("two"), None)
        );
        let package = Sources::open(&[root.join("com/acme")]).unwrap();
        assert!(package.find("com.acme.A", "A.java").is_some());
        let named = |sources: &Sources| sources.path("com.acme.A$B", "A.java").unwrap();
        assert_eq!(named(&Sources::default()), Path::new("com/acme/A.java"));
        assert_eq!(named(&sources), root.join("com/acme/A.java"));
        for (class, file) in EVIL {
            assert!(sources.find(class, file).is_none(), "{class} {file}");
            let path = sources.path(class, file);
            assert!(
                path.is_none_or(|path| harmless(&path.to_string_lossy())),
                "{class} {file}"
            );
        }
    }

    /// An archive of these files, `\n` and the name in each.
    fn archive(path: &Path, names: &[&str]) {
        let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
        for name in names {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(name.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
    }

    #[test]
    fn an_archive_is_looked_through_by_package_wherever_that_is() {
        let dir = tempfile::tempdir().unwrap();
        let jar = dir.path().join("sources.jar");
        archive(
            &jar,
            &[
                "META-INF/versions/9/com/acme/A.java",
                "com/acme/A.java",
                "java.base/java/util/List.java",
                "java.desktop/java/awt/List.java",
                "xcom/acme/B.java",
                "Top.java",
                "../secret",
            ],
        );
        let sources = Sources::open(std::slice::from_ref(&jar)).unwrap();
        for (class, file, found) in [
            ("com.acme.A$B", "A.java", Some("com/acme/A.java")),
            (
                "java.util.List",
                "List.java",
                Some("java.base/java/util/List.java"),
            ),
            (
                "java.awt.List",
                "List.java",
                Some("java.desktop/java/awt/List.java"),
            ),
            ("com.acme.List", "List.java", None),
            ("com.acme.B", "B.java", None),
            ("com.acme.Top", "Top.java", Some("Top.java")),
            ("Top", "Top.java", Some("Top.java")),
        ] {
            assert_eq!(first(&sources, class, file).as_deref(), found, "{class}");
        }
        for (class, file) in EVIL {
            assert!(sources.find(class, file).is_none(), "{class} {file}");
        }
        // Tools cannot open a path in an archive.
        let named = sources.path("com.acme.A", "A.java").unwrap();
        assert_eq!(named, Path::new("com/acme/A.java"));
    }

    /// However far it unpacks: 1 GB of one byte is some 1 MB.
    #[test]
    fn an_entry_that_is_huge_unpacked_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let jar = dir.path().join("sources.jar");
        let mut zip = zip::ZipWriter::new(File::create(&jar).unwrap());
        let packed =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        for (name, more) in [("Large.java", 0), ("Huge.java", 1)] {
            zip.start_file(name, packed).unwrap();
            let spaces = std::io::repeat(b' ').take(MAX_BYTES + more);
            std::io::copy(&mut BufReader::new(spaces), &mut zip).unwrap();
        }
        zip.finish().unwrap();
        let sources = Sources::open(&[jar]).unwrap();
        assert!(sources.find("Large", "Large.java").is_some());
        assert!(sources.find("Huge", "Huge.java").is_none());
    }

    #[test]
    fn what_is_neither_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().join("A.java");
        fs::write(&text, "class A {}").unwrap();
        let half = dir.path().join("half.jar");
        archive(&half, &["A.java", "B.java"]);
        let whole = fs::read(&half).unwrap();
        fs::write(&half, &whole[..whole.len() / 2]).unwrap();
        for (path, words) in [
            (dir.path().join("none"), "no such directory, jar or zip"),
            (text, "neither a directory nor a jar or zip"),
            (half, "neither a directory nor a jar or zip"),
        ] {
            let said = Sources::open(std::slice::from_ref(&path)).unwrap_err();
            let said = said.to_string();
            assert!(said.contains(words), "{said}");
            assert!(said.contains(&path.display().to_string()), "{said}");
        }
    }

    /// An entry whose bytes are damaged is as good as none, and nothing panics, whichever byte it is.
    #[test]
    fn a_damaged_archive_gives_its_text_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let jar = dir.path().join("sources.jar");
        archive(&jar, &["com/acme/A.java"]);
        let whole = fs::read(&jar).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            fs::write(&jar, &bytes).unwrap();
            if let Ok(sources) = Sources::open(std::slice::from_ref(&jar)) {
                let found = first(&sources, "com.acme.A", "A.java");
                assert!(
                    found.is_none_or(|text| text == "com/acme/A.java"),
                    "byte {at}"
                );
            }
        }
    }
}
