//! JDKs on this machine: where they may be, and what they say they are.

use crate::failure::{Result, cannot};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What to do when there is no Java.
pub const INSTALL: &str = "install a JDK 17 or newer (Debian, Ubuntu: apt install openjdk-17-jdk-headless), or set JAVA_HOME";

/// The Java that a person would get: JAVA_HOME, else `java` on PATH.
pub fn default_java() -> Result<PathBuf> {
    from_java_home()
        .or_else(on_path)
        .ok_or_else(|| cannot!("no Java found in JAVA_HOME or on PATH: {INSTALL}"))
}

/// Every Java to be found in the usual places, each once.
pub fn all() -> Vec<PathBuf> {
    let system = std::fs::read_dir("/usr/lib/jvm")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path().join("bin/java"));
    let mut system: Vec<PathBuf> = system.filter(|p| p.is_file()).collect();
    system.sort();
    let mut seen = Vec::new();
    from_java_home()
        .into_iter()
        .chain(on_path())
        .chain(system)
        .filter(|java| is_new(&mut seen, java))
        .collect()
}

/// Whether this Java (links followed) was not seen before.
fn is_new(seen: &mut Vec<PathBuf>, java: &Path) -> bool {
    let real = java.canonicalize().unwrap_or_else(|_| java.to_owned());
    let new = !seen.contains(&real);
    if new {
        seen.push(real);
    }
    new
}

fn from_java_home() -> Option<PathBuf> {
    let home: OsString = std::env::var_os("JAVA_HOME").filter(|h| !h.is_empty())?;
    Some(Path::new(&home).join("bin/java")).filter(|p| p.is_file())
}

fn on_path() -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join("java"))
        .find(|p| p.is_file())
}

/// What a Java says it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `java.version`: `17.0.15`, `1.8.0_402`.
    pub version: String,
    /// `java.vm.name`: `OpenJDK 64-Bit Server VM`.
    pub vm: String,
    /// `os.arch`: `amd64`.
    pub arch: String,
}

impl Identity {
    /// Asks it.
    pub fn of(java: &Path) -> Result<Self> {
        let shown = java.display();
        let output = Command::new(java)
            .args(["-XshowSettings:properties", "-version"])
            .env_remove("JAVA_TOOL_OPTIONS")
            .stdin(Stdio::null())
            .output()
            .map_err(|e| cannot!("cannot run {shown}: {e}"))?;
        let text = String::from_utf8_lossy(&output.stderr);
        let identity = Self::parse(&text);
        if identity.version.is_empty() {
            return Err(cannot!(
                "{shown} does not answer like a Java: {}",
                text.lines().next().unwrap_or("it said nothing")
            ));
        }
        Ok(identity)
    }

    fn parse(text: &str) -> Self {
        let property = |key: &str| {
            let value = text
                .lines()
                .find_map(|l| l.trim().strip_prefix(key)?.strip_prefix(" = "));
            value.unwrap_or_default().to_owned()
        };
        Self {
            version: property("java.version"),
            vm: property("java.vm.name"),
            arch: property("os.arch"),
        }
    }

    /// 17 of `17.0.15`, 8 of `1.8.0_402`, 26 of `26-ea`.
    pub fn major(&self) -> Option<u32> {
        let mut numbers = self
            .version
            .split(|c: char| !c.is_ascii_digit())
            .map(|n| n.parse().ok());
        match numbers.next()?? {
            1 => numbers.next()?,
            major => Some(major),
        }
    }

    /// Why borescope cannot work in it, and what to do.
    pub fn unsupported(&self) -> Option<String> {
        let hotspot = ["OpenJDK", "HotSpot", "Java HotSpot"]
            .iter()
            .any(|name| self.vm.starts_with(name));
        if !hotspot {
            return Some(format!(
                "{} is not HotSpot: use an OpenJDK build such as Temurin",
                self.vm
            ));
        }
        if self.arch != "amd64" {
            return Some(format!(
                "it is for {}: borescope works on x86-64 only",
                self.arch
            ));
        }
        match self.major() {
            Some(17..) => None,
            _ => Some(format!("{} is too old: use JDK 17 or newer", self.version)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(version: &str, vm: &str, arch: &str) -> Identity {
        Identity::parse(&format!(
            "Property settings:\n    java.version = {version}\n    java.vm.name = {vm}\n    os.arch = {arch}\n"
        ))
    }

    #[test]
    fn versions() {
        let major = |v| identity(v, "OpenJDK 64-Bit Server VM", "amd64").major();
        for (version, number) in [
            ("17.0.15", Some(17)),
            ("21", Some(21)),
            ("1.8.0_402", Some(8)),
            ("26-ea", Some(26)),
            ("11.0.2", Some(11)),
            ("", None),
            ("1", None),
            ("x", None),
        ] {
            assert_eq!(major(version), number, "{version}");
        }
    }

    #[test]
    fn what_is_supported() {
        let why = |version, vm, arch| {
            identity(version, vm, arch)
                .unsupported()
                .unwrap_or_default()
        };
        assert_eq!(why("17.0.15", "OpenJDK 64-Bit Server VM", "amd64"), "");
        assert_eq!(
            why("25.0.2", "Java HotSpot(TM) 64-Bit Server VM", "amd64"),
            ""
        );
        assert!(why("11.0.2", "OpenJDK 64-Bit Server VM", "amd64").contains("too old"));
        assert!(why("1.8.0_402", "OpenJDK 64-Bit Server VM", "amd64").contains("too old"));
        assert!(why("21.0.1", "Eclipse OpenJ9 VM", "amd64").contains("not HotSpot"));
        assert!(why("21.0.1", "OpenJDK 64-Bit Server VM", "aarch64").contains("x86-64"));
    }
}
