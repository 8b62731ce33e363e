//! SARIF 2.1.0: what the report says to look at first, as results for code review tools.

use std::io::Write;
use std::path::Path;

use borescope_profile::Profile;
use borescope_profile::sites;
use serde_json::{Value, json};

use super::{ExportOptions, mark};
use crate::advice::{self, RULES};
use crate::first::{self, Lead, short_name};
use crate::json::hottest;
use crate::sites::{At, Leads};
use crate::{Error, chain, words};

/// As in the text report: methods that it shows, and chains of each.
const METHODS: usize = 10;
const CHAINS: usize = 3;

const GREW: &str = "growing-line";
const HOLDS: &str = "largest-line";
/// Rules of the sites lens, as [`RULES`].
const SITE_RULES: [(&str, &str); 2] = [
    (
        GREW,
        "The live objects that a line allocated grew from the first snapshot to the last.",
    ),
    (
        HOLDS,
        "Of all lines this one allocated most of what is alive.",
    ),
];

/// A result to be.
struct Found<'a> {
    rule: &'a str,
    level: &'a str,
    text: String,
    class: &'a str,
    method: &'a str,
    descriptor: &'a str,
    file: Option<&'a str>,
    lines: Option<(u32, u32)>,
}

/// The findings that the text report leads with.
pub fn paths(profile: &Profile, options: &ExportOptions, out: &mut dyn Write) -> Result<(), Error> {
    let all = profile.manifest().totals.ids;
    let chosen: Vec<_> = hottest(profile.methods())
        .into_iter()
        .filter(|method| options.wants(method))
        .collect();
    let mut leads = Vec::new();
    for &method in first::scanned(&chosen, chosen.len().min(METHODS), all) {
        let detail = profile.detail(method.index)?;
        let chains = chain::hot(method, &detail, CHAINS);
        let found = advice::findings(method, &detail, &chains);
        leads.extend(found.into_iter().map(|finding| Lead {
            number: None,
            method,
            finding,
        }));
    }
    let leads = first::weightiest(leads);
    let found = leads.iter().map(|lead| {
        let (method, finding) = (lead.method, &lead.finding);
        let ends = (finding.lines.first(), finding.lines.last());
        let of_method = method.lines.map(|(a, b)| (u32::from(a), u32::from(b)));
        Found {
            rule: finding.rule,
            level: "note",
            text: format!(
                "{}{} ({} of all iterations): {}. {}",
                short_name(method),
                mark(method),
                words::percent(method.ids, all),
                finding.short,
                finding.text
            ),
            class: &method.class,
            method: &method.method,
            descriptor: &method.descriptor,
            file: method.source_file.as_deref(),
            lines: ends.0.copied().zip(ends.1.copied()).or(of_method),
        }
    });
    let version = &profile.manifest().borescope;
    write("paths", version, &RULES, found, options, out)
}

/// The lines that grew most, or that hold most where there is one snapshot.
pub fn sites(
    profile: &sites::Profile,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let leads = match At::last(profile) {
        Some(last) => Some(Leads::of(last, options.method.as_ref())?),
        None => None,
    };
    let grew = leads.as_ref().is_some_and(|leads| leads.grew);
    let lines = leads.iter().flat_map(|leads| &leads.lines);
    let found = lines.map(|(line, text)| {
        let at = u32::from(line.place.line);
        Found {
            rule: if grew { GREW } else { HOLDS },
            level: if grew { "warning" } else { "note" },
            text: text.clone(),
            class: &line.place.class,
            method: &line.place.method,
            descriptor: &line.place.descriptor,
            file: line.place.source_file.as_deref(),
            lines: (at > 0).then_some((at, at)),
        }
    });
    let version = &profile.manifest().borescope;
    write("sites", version, &SITE_RULES, found, options, out)
}

fn write<'a>(
    lens: &str,
    version: &str,
    rules: &[(&str, &str)],
    found: impl Iterator<Item = Found<'a>>,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let results: Vec<Value> = found.map(|one| result(&one, rules, options)).collect();
    let rules = rules.iter().map(|(id, text)| {
        json!({
            "id": id,
            "shortDescription": { "text": text },
        })
    });
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "borescope",
                "version": version,
                "rules": rules.collect::<Vec<_>>(),
            } },
            "automationDetails": { "id": format!("borescope/{lens}/") },
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    });
    crate::buffered(out, |out| {
        serde_json::to_writer_pretty(&mut *out, &log)?;
        Ok(out.write_all(b"\n")?)
    })
}

fn result(one: &Found, rules: &[(&str, &str)], options: &ExportOptions) -> Value {
    let name = format!("{}.{}{}", one.class, one.method, one.descriptor);
    let mut location = json!({
        "logicalLocations": [{ "fullyQualifiedName": words::plain(&name), "kind": "function" }],
    });
    let path = one
        .file
        .and_then(|file| options.source.path(one.class, file));
    if let Some(path) = path {
        let mut physical = json!({ "artifactLocation": artifact(&path) });
        if let Some((first, last)) = one.lines {
            physical["region"] = json!({ "startLine": first, "endLine": last });
        }
        location["physicalLocation"] = physical;
    }
    json!({
        "ruleId": one.rule,
        "ruleIndex": rules.iter().position(|(id, _)| *id == one.rule),
        "level": one.level,
        "message": { "text": words::plain(&one.text) },
        "locations": [location],
        "partialFingerprints": { "borescopeFinding/v1": format!("{} {}", one.rule, words::plain(&name)) },
    })
}

/// A relative path is one from the root of the sources.
fn artifact(path: &Path) -> Value {
    let uri = uri(&path.to_string_lossy());
    match path.is_absolute() {
        true => json!({ "uri": format!("file://{uri}") }),
        false => json!({ "uri": uri, "uriBaseId": "%SRCROOT%" }),
    }
}

/// Escaped as RFC 3986 asks for.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'$' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("./a b/Ü$1.java"), "a%20b/%C3%9C$1.java");
        assert_eq!(
            artifact(Path::new("/x/A.java")),
            json!({ "uri": "file:///x/A.java" })
        );
        assert_eq!(
            artifact(Path::new("x/A.java")),
            json!({ "uri": "x/A.java", "uriBaseId": "%SRCROOT%" })
        );
    }
}
