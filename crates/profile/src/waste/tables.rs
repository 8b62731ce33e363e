//! The tables of a profile of waste: their columns (docs/formats.md describes each), a row in, a row out.

use borescope_waste::handler::watches::{Detail, Shape};
use borescope_waste::{Bytes, Element, Kind, Waste};

use super::{Context, Pair, Place, What};
use crate::table::Column;
use crate::tables::Next;

/// `contexts.parquet`.
pub(super) const CONTEXTS: &str = "message contexts {
    REQUIRED INT32 context; OPTIONAL INT32 caller; REQUIRED BYTE_ARRAY what (STRING); OPTIONAL BYTE_ARRAY class (STRING);
    OPTIONAL BYTE_ARRAY method (STRING); OPTIONAL BYTE_ARRAY descriptor (STRING); OPTIONAL BYTE_ARRAY source_file (STRING);
    OPTIONAL INT32 line; OPTIONAL INT32 bci; }";

/// `pairs.parquet`.
pub(super) const PAIRS: &str = "message pairs {
    REQUIRED INT32 pair; REQUIRED BYTE_ARRAY kind (STRING); REQUIRED BOOLEAN wasteful; REQUIRED INT64 count;
    REQUIRED INT32 first; OPTIONAL INT32 second;
    OPTIONAL BYTE_ARRAY first_type (STRING); OPTIONAL BYTE_ARRAY second_type (STRING);
    OPTIONAL BOOLEAN first_doubtful; OPTIONAL BOOLEAN second_doubtful;
    REQUIRED BYTE_ARRAY first_access (STRING); REQUIRED INT32 first_width; REQUIRED BYTE_ARRAY first_element (STRING);
    REQUIRED BYTE_ARRAY second_access (STRING); REQUIRED INT32 second_width; REQUIRED BYTE_ARRAY second_element (STRING);
    REQUIRED BYTE_ARRAY first_code (STRING); REQUIRED BYTE_ARRAY second_code (STRING);
    REQUIRED BOOLEAN whole; REQUIRED BOOLEAN loads_between; REQUIRED BOOLEAN stores_between; REQUIRED BOOLEAN others_between;
    REQUIRED BOOLEAN initialising; REQUIRED INT64 object; }";

/// Files that only this lens has, and their schemas.
pub(crate) const TABLES: [(&str, &str); 2] =
    [("contexts.parquet", CONTEXTS), ("pairs.parquet", PAIRS)];

/// Names of what a frame can be.
const WHAT: [&str; 5] = ["frame", "unnamed", "cut", "deeper", "unknown"];

pub(super) fn write_context(columns: &mut [Column], number: u32, context: &Context) {
    let mut to = Next::of(columns);
    to.get().int(i64::from(number));
    to.get().int(context.caller.map(i64::from));
    to.get().text(match context.what {
        What::At(..) => WHAT[0],
        What::Unnamed => WHAT[1],
        What::Cut => WHAT[2],
        What::Deeper => WHAT[3],
        What::Unknown => WHAT[4],
    });
    let at = match &context.what {
        What::At(place, bci) => Some((place, *bci)),
        _ => None,
    };
    let place = at.map(|(place, _)| place);
    to.get().text(place.map(|place| place.class.as_str()));
    to.get().text(place.map(|place| place.method.as_str()));
    to.get().text(place.map(|place| place.descriptor.as_str()));
    to.get()
        .text(place.and_then(|place| place.source_file.as_deref()));
    to.get().int(place.map(|place| i64::from(place.line)));
    to.get().int(at.map(|(_, bci)| i64::from(bci)));
}

/// The row, with its number in front.
pub(super) fn read_context(columns: &mut [Column]) -> Option<(u32, Context)> {
    let mut from = Next::of(columns);
    let number = from.get().next_int()?;
    let caller = match from.get().next_opt_int()? {
        Some(caller) => Some(u32::try_from(caller).ok()?),
        None => None,
    };
    let what = from.get().next_text()?;
    let mut text = || from.get().next_opt_text();
    let (class, method, descriptor, source_file) = (text()?, text()?, text()?, text()?);
    let (line, bci) = (from.get().next_opt_int()?, from.get().next_opt_int()?);
    let what = match (what.as_str(), class, method, descriptor) {
        ("frame", Some(class), Some(method), Some(descriptor)) => What::At(
            Place {
                class,
                method,
                descriptor,
                source_file,
                line: line?.try_into().ok()?,
            },
            bci?.try_into().ok()?,
        ),
        ("unnamed", ..) => What::Unnamed,
        ("cut", ..) => What::Cut,
        ("deeper", ..) => What::Deeper,
        ("unknown", ..) => What::Unknown,
        _ => return None,
    };
    Some((number, Context { caller, what }))
}

const ACCESSES: [(Kind, &str); 4] = [
    (Kind::Load, "load"),
    (Kind::Store, "store"),
    (Kind::Both, "both"),
    (Kind::CompareExchange, "compare_exchange"),
];
const ELEMENTS: [(Element, &str); 3] = [
    (Element::Bits, "bits"),
    (Element::F32, "float"),
    (Element::F64, "double"),
];

fn name<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> &'static str {
    let found = names.iter().find(|(known, _)| known == value);
    found.map_or("", |(_, name)| name)
}

fn value<T: Copy>(names: &[(T, &str)], name: &str) -> Option<T> {
    let found = names.iter().find(|(_, known)| *known == name);
    found.map(|(value, _)| *value)
}

/// Bytes of an instruction as hexadecimal digits.
fn hex(bytes: &Bytes) -> String {
    bytes
        .get()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn of_hex(text: &str) -> Option<Bytes> {
    if text.is_empty() {
        return Some(Bytes::default());
    }
    let bytes: Option<Vec<u8>> = (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect();
    Bytes::new(&bytes?)
}

pub(super) fn write_pair(columns: &mut [Column], number: u32, row: &Pair) {
    let Pair {
        pair,
        count,
        types,
        doubtful,
    } = row;
    let detail = &pair.detail;
    let mut to = Next::of(columns);
    to.get().int(i64::from(number));
    to.get().text(pair.waste.name());
    to.get().bool(pair.wasteful);
    to.get().count(*count);
    to.get().int(i64::from(pair.first));
    to.get()
        .int(pair.wasteful.then_some(i64::from(pair.second)));
    types.iter().for_each(|ty| to.get().text(ty.as_deref()));
    doubtful.iter().for_each(|flag| to.get().bool(*flag));
    for shape in [&detail.first, &detail.second] {
        to.get().text(name(&ACCESSES, &shape.kind));
        to.get().int(i64::from(shape.width));
        to.get().text(name(&ELEMENTS, &shape.element));
    }
    to.get().text(hex(&pair.first_instruction).as_str());
    to.get().text(hex(&pair.second_instruction).as_str());
    for flag in [
        detail.whole,
        detail.loads_between,
        detail.stores_between,
        detail.others_between,
        detail.initialising,
    ] {
        to.get().bool(flag);
    }
    // A number, not a count: its bits are kept.
    to.get().int(pair.object as i64);
}

pub(super) fn read_pair(columns: &mut [Column]) -> Option<Pair> {
    let mut from = Next::of(columns);
    from.get().next_int::<u32>()?;
    let kind = from.get().next_text()?;
    let waste = Waste::ALL.into_iter().find(|waste| waste.name() == kind)?;
    let (wasteful, count) = (from.get().next_bool()?, from.get().next_int()?);
    let first: u32 = from.get().next_int()?;
    let second = match from.get().next_opt_int()? {
        Some(second) => u32::try_from(second).ok()?,
        None => 0,
    };
    let types = [from.get().next_opt_text()?, from.get().next_opt_text()?];
    let doubtful = [from.get().next_opt_bool()?, from.get().next_opt_bool()?];
    let mut shape = || {
        Some(Shape {
            kind: value(&ACCESSES, &from.get().next_text()?)?,
            width: from.get().next_int()?,
            element: value(&ELEMENTS, &from.get().next_text()?)?,
        })
    };
    let (first_shape, second_shape) = (shape()?, shape()?);
    let first_instruction = of_hex(&from.get().next_text()?)?;
    let second_instruction = of_hex(&from.get().next_text()?)?;
    let mut flag = || from.get().next_bool();
    let detail = Detail {
        whole: flag()?,
        loads_between: flag()?,
        stores_between: flag()?,
        others_between: flag()?,
        initialising: flag()?,
        first: first_shape,
        second: second_shape,
    };
    let pair = borescope_waste::Pair {
        waste,
        wasteful,
        first,
        second,
        detail,
        first_instruction,
        second_instruction,
        object: from.get().next_opt_int()?? as u64,
    };
    (first != 0 && (second != 0) == wasteful).then_some(Pair {
        pair,
        count,
        types,
        doubtful,
    })
}
