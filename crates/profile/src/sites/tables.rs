//! The tables of a profile of sites: their columns (docs/formats.md describes each), a row in, a row out.

use super::{Live, Object, Place, Site, Sum};
use crate::table::Column;
use crate::tables::Next;

/// `sites.parquet`.
pub(super) const SITES: &str = "message sites {
    REQUIRED INT32 site; REQUIRED BYTE_ARRAY type (STRING); REQUIRED BYTE_ARRAY class (STRING); REQUIRED BYTE_ARRAY method (STRING);
    REQUIRED BYTE_ARRAY descriptor (STRING); OPTIONAL BYTE_ARRAY source_file (STRING); REQUIRED INT32 line; REQUIRED INT32 bci;
    REQUIRED BYTE_ARRAY kind (STRING); OPTIONAL BYTE_ARRAY app_class (STRING); OPTIONAL BYTE_ARRAY app_method (STRING);
    OPTIONAL BYTE_ARRAY app_descriptor (STRING); OPTIONAL BYTE_ARRAY app_source_file (STRING); OPTIONAL INT32 app_line; }";

/// `live.parquet`.
pub(super) const LIVE: &str = "message live {
    REQUIRED INT32 snapshot; OPTIONAL INT32 site; REQUIRED BYTE_ARRAY type (STRING); REQUIRED INT64 live_objects;
    REQUIRED INT64 live_bytes; OPTIONAL BYTE_ARRAY reason (STRING); }";

/// `objects.parquet`.
pub(super) const OBJECTS: &str = "message objects {
    REQUIRED INT32 snapshot; REQUIRED INT64 address; REQUIRED INT64 bytes; REQUIRED BYTE_ARRAY type (STRING); OPTIONAL INT32 site;
    OPTIONAL BYTE_ARRAY reason (STRING); }";

/// Files that only this lens has, and their schemas; the last is there only if objects were listed.
pub(crate) const TABLES: [(&str, &str); 3] = [
    ("sites.parquet", SITES),
    ("live.parquet", LIVE),
    ("objects.parquet", OBJECTS),
];

pub(super) fn write_site(columns: &mut [Column], site: &Site) {
    let Site {
        index,
        ty,
        at,
        bci,
        kind,
        app,
    } = site;
    let mut to = Next::of(columns);
    to.get().int(i64::from(*index));
    to.get().text(ty.as_str());
    to.get().text(at.class.as_str());
    to.get().text(at.method.as_str());
    to.get().text(at.descriptor.as_str());
    to.get().text(at.source_file.as_deref());
    to.get().int(i64::from(at.line));
    to.get().int(i64::from(*bci));
    to.get().text(kind.as_str());
    let app = app.as_ref();
    to.get().text(app.map(|app| app.class.as_str()));
    to.get().text(app.map(|app| app.method.as_str()));
    to.get().text(app.map(|app| app.descriptor.as_str()));
    to.get()
        .text(app.and_then(|app| app.source_file.as_deref()));
    to.get().int(app.map(|app| i64::from(app.line)));
}

pub(super) fn read_site(columns: &mut [Column]) -> Option<Site> {
    let mut from = Next::of(columns);
    let (index, ty) = (from.get().next_int()?, from.get().next_text()?);
    let at = Place {
        class: from.get().next_text()?,
        method: from.get().next_text()?,
        descriptor: from.get().next_text()?,
        source_file: from.get().next_opt_text()?,
        line: from.get().next_int()?,
    };
    let (bci, kind) = (from.get().next_int()?, from.get().next_text()?);
    let names = (
        from.get().next_opt_text()?,
        from.get().next_opt_text()?,
        from.get().next_opt_text()?,
    );
    let source_file = from.get().next_opt_text()?;
    let app = match (names, from.get().next_opt_int()?) {
        ((Some(class), Some(method), Some(descriptor)), Some(line)) => Some(Place {
            class,
            method,
            descriptor,
            source_file,
            line: line.try_into().ok()?,
        }),
        ((None, None, None), None) => None,
        _ => return None,
    };
    Some(Site {
        index,
        ty,
        at,
        bci,
        kind,
        app,
    })
}

pub(super) fn write_live(columns: &mut [Column], snapshot: u32, live: &Live) {
    let Live {
        site,
        ty,
        sum,
        reason,
    } = live;
    let mut to = Next::of(columns);
    to.get().int(i64::from(snapshot));
    to.get().int(site.map(i64::from));
    to.get().text(ty.as_str());
    to.get().count(sum.objects);
    to.get().count(sum.bytes);
    to.get().text(reason.as_deref());
}

/// The row, with its snapshot in front.
pub(super) fn read_live(columns: &mut [Column]) -> Option<(u32, Live)> {
    let mut from = Next::of(columns);
    let snapshot = from.get().next_int()?;
    let site = read_index(&mut from)?;
    let live = Live {
        site,
        ty: from.get().next_text()?,
        sum: Sum {
            objects: from.get().next_int()?,
            bytes: from.get().next_int()?,
        },
        reason: from.get().next_opt_text()?,
    };
    (live.site.is_some() != live.reason.is_some()).then_some((snapshot, live))
}

pub(super) fn write_object(
    columns: &mut [Column],
    snapshot: u32,
    (address, bytes): (u64, u64),
    ty: &str,
    origin: Result<u32, &str>,
) {
    let mut to = Next::of(columns);
    to.get().int(i64::from(snapshot));
    // Addresses of HotSpot on x86-64 are below 2^47.
    to.get().count(address);
    to.get().count(bytes);
    to.get().text(ty);
    to.get().int(origin.ok().map(i64::from));
    to.get().text(origin.err());
}

pub(super) fn read_object(columns: &mut [Column]) -> Option<Object> {
    let mut from = Next::of(columns);
    Some(Object {
        snapshot: from.get().next_int()?,
        address: from.get().next_int()?,
        bytes: from.get().next_int()?,
        ty: from.get().next_text()?,
        site: read_index(&mut from)?,
        reason: from.get().next_opt_text()?,
    })
}

/// `None` = a value that no profile has.
fn read_index(from: &mut Next) -> Option<Option<u32>> {
    match from.get().next_opt_int()? {
        Some(index) => Some(Some(index.try_into().ok()?)),
        None => Some(None),
    }
}
