//! Parquet files without Arrow: columns in memory, written and read a row group at a time.
//!
//! All profile tables have an INT32 column first, `method` or `snapshot` (or no row order that matters); rows are sorted by it, so a row group's
//! minimum and maximum tell which of these it holds. Row groups end where one ends if they can. Below, "method" stands for both.

use std::fs::File;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Type as PhysicalType, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescriptor, TypePtr};
use serde::{Deserialize, Serialize};

use crate::Error;

/// A row group ends at the next method after so many rows: small enough that reading one method does not read much else.
const GROUP_ROWS: usize = 16 << 10;
/// A row group ends here also within a method: bounds the memory of writer and reader.
const GROUP_ROWS_MAX: usize = 1 << 20;

/// Size and CRC-32 of a file, to tell damage from content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// Bytes.
    pub bytes: u64,
    /// CRC-32 (IEEE).
    pub crc32: u32,
}

/// A writer that sums what passes.
struct Summed<W> {
    inner: W,
    hasher: crc32fast::Hasher,
    bytes: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buf)?;
        self.hasher.update(buf.get(..written).unwrap_or(buf));
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Sums a file.
pub(crate) fn checksum(path: &Path) -> Result<Checksum, Error> {
    let mut file = File::open(path).map_err(Error::io(path))?;
    let mut sum = Summed {
        inner: io::sink(),
        hasher: crc32fast::Hasher::new(),
        bytes: 0,
    };
    io::copy(&mut file, &mut sum).map_err(Error::io(path))?;
    Ok(Checksum {
        bytes: sum.bytes,
        crc32: sum.hasher.finalize(),
    })
}

fn error(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    move |error| match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => Error::io(path)(*source),
            Err(other) => Error::damaged(path, other),
        },
        other => Error::damaged(path, other),
    }
}

fn parse(schema: &str) -> TypePtr {
    Arc::new(parse_message_type(schema).expect("the schemas of this crate are right"))
}

/// A column of a row group: values and, where the schema has optional or repeated parts, Dremel levels.
#[derive(Debug)]
pub(crate) struct Column {
    max_def: i16,
    repeated: bool,
    defs: Vec<i16>,
    reps: Vec<i16>,
    values: Values,
    /// Where reading goes on.
    level: usize,
    value: usize,
}

#[derive(Debug)]
enum Values {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    Text(Vec<ByteArray>),
}

impl Column {
    fn new(descriptor: &ColumnDescriptor) -> Column {
        Column {
            max_def: descriptor.max_def_level(),
            repeated: descriptor.max_rep_level() > 0,
            defs: Vec::new(),
            reps: Vec::new(),
            values: match descriptor.physical_type() {
                PhysicalType::BOOLEAN => Values::Bool(Vec::new()),
                PhysicalType::INT32 => Values::I32(Vec::new()),
                PhysicalType::INT64 => Values::I64(Vec::new()),
                _ => Values::Text(Vec::new()),
            },
            level: 0,
            value: 0,
        }
    }

    /// The next value of a column that may be empty, or that ends a list when it is.
    fn defined(&mut self, defined: bool) {
        if self.max_def > 0 {
            self.defs.push(if defined { self.max_def } else { 0 });
        }
    }

    pub(crate) fn bool(&mut self, value: impl Into<Option<bool>>) {
        let value = value.into();
        self.defined(value.is_some());
        if let (Values::Bool(values), Some(value)) = (&mut self.values, value) {
            values.push(value);
        }
    }

    pub(crate) fn int(&mut self, value: impl Into<Option<i64>>) {
        let value = value.into();
        self.defined(value.is_some());
        match (&mut self.values, value) {
            (Values::I32(values), Some(value)) => values.push(value as i32),
            (Values::I64(values), Some(value)) => values.push(value),
            _ => {}
        }
    }

    /// A count: Parquet's widest integer that every reader takes is signed.
    pub(crate) fn count(&mut self, value: u64) {
        self.int(i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub(crate) fn text<'a>(&mut self, value: impl Into<Option<&'a str>>) {
        let value = value.into();
        self.defined(value.is_some());
        if let (Values::Text(values), Some(value)) = (&mut self.values, value) {
            values.push(value.into());
        }
    }

    /// A list of integers.
    pub(crate) fn list(&mut self, list: impl IntoIterator<Item = u32>) {
        let mut first = true;
        for value in list {
            self.reps.push(i16::from(!first));
            first = false;
            self.int(i64::from(value));
        }
        if first {
            self.reps.push(0);
            self.defined(false);
        }
    }

    fn next_defined(&mut self) -> Option<bool> {
        if self.max_def == 0 {
            return Some(true);
        }
        let def = *self.defs.get(self.level)?;
        self.level += 1;
        Some(def == self.max_def)
    }

    fn next_value<T>(&mut self, get: impl Fn(&Values, usize) -> Option<T>) -> Option<Option<T>> {
        if !self.next_defined()? {
            return Some(None);
        }
        let value = get(&self.values, self.value)?;
        self.value += 1;
        Some(Some(value))
    }

    /// `Some(None)` = null, `None` = no more rows.
    pub(crate) fn next_opt_bool(&mut self) -> Option<Option<bool>> {
        self.next_value(|values, at| match values {
            Values::Bool(values) => values.get(at).copied(),
            _ => None,
        })
    }

    pub(crate) fn next_bool(&mut self) -> Option<bool> {
        self.next_opt_bool()?
    }

    /// `Some(None)` = null, `None` = no more rows.
    pub(crate) fn next_opt_int(&mut self) -> Option<Option<i64>> {
        self.next_value(|values, at| match values {
            Values::I32(values) => values.get(at).map(|&value| value.into()),
            Values::I64(values) => values.get(at).copied(),
            _ => None,
        })
    }

    /// A value that must be there and fit.
    pub(crate) fn next_int<T: TryFrom<i64>>(&mut self) -> Option<T> {
        T::try_from(self.next_opt_int()??).ok()
    }

    pub(crate) fn next_opt_text(&mut self) -> Option<Option<String>> {
        self.next_value(|values, at| match values {
            Values::Text(values) => values.get(at)?.as_utf8().ok().map(str::to_owned),
            _ => None,
        })
    }

    pub(crate) fn next_text(&mut self) -> Option<String> {
        self.next_opt_text()?
    }

    pub(crate) fn next_list<T: TryFrom<i64>>(&mut self) -> Option<Vec<T>> {
        let mut list = Vec::new();
        if *self.reps.get(self.level)? != 0 {
            return None;
        }
        loop {
            if let Some(value) = self.next_opt_int()? {
                list.push(T::try_from(value).ok()?);
            }
            if self.reps.get(self.level).is_none_or(|&rep| rep == 0) {
                return Some(list);
            }
        }
    }
}

/// Writes one table.
pub(crate) struct TableWriter {
    path: PathBuf,
    writer: SerializedFileWriter<Summed<File>>,
    columns: Vec<Column>,
    rows: usize,
}

impl TableWriter {
    /// Makes the file `path`, which must not exist.
    pub(crate) fn create(path: PathBuf, schema: &str) -> Result<TableWriter, Error> {
        let file = File::create_new(&path).map_err(Error::io(&path))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("borescope ", env!("CARGO_PKG_VERSION")).into())
            .build();
        let sum = Summed {
            inner: file,
            hasher: crc32fast::Hasher::new(),
            bytes: 0,
        };
        let writer = SerializedFileWriter::new(sum, parse(schema), Arc::new(properties))
            .map_err(error(&path))?;
        let columns = writer
            .schema_descr()
            .columns()
            .iter()
            .map(|column| Column::new(column))
            .collect();
        Ok(TableWriter {
            path,
            writer,
            columns,
            rows: 0,
        })
    }

    /// Writes one row: `fill` gets all columns and must give each one value or list.
    pub(crate) fn row(&mut self, fill: impl FnOnce(&mut [Column])) -> Result<(), Error> {
        fill(&mut self.columns);
        self.rows += 1;
        if self.rows >= GROUP_ROWS_MAX {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// The rows of a method are all there.
    pub(crate) fn end_method(&mut self) -> Result<(), Error> {
        if self.rows >= GROUP_ROWS {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.rows == 0 {
            return Ok(());
        }
        write_group(&mut self.writer, &mut self.columns).map_err(error(&self.path))?;
        self.rows = 0;
        Ok(())
    }

    /// Ends the file; what it holds is on the disk when this returns.
    pub(crate) fn finish(mut self) -> Result<Checksum, Error> {
        self.flush()?;
        let path = self.path;
        let mut sum = self.writer.into_inner().map_err(error(&path))?;
        sum.flush()
            .and_then(|()| sum.inner.sync_all())
            .map_err(Error::io(&path))?;
        Ok(Checksum {
            bytes: sum.bytes,
            crc32: sum.hasher.finalize(),
        })
    }
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    columns: &mut [Column],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        let Some(mut out) = group.next_column()? else {
            break;
        };
        let defs = (column.max_def > 0).then_some(&column.defs[..]);
        let reps = column.repeated.then_some(&column.reps[..]);
        match &mut column.values {
            Values::Bool(values) => out
                .typed::<BoolType>()
                .write_batch(values, defs, reps)
                .map(|_| values.clear())?,
            Values::I32(values) => out
                .typed::<Int32Type>()
                .write_batch(values, defs, reps)
                .map(|_| values.clear())?,
            Values::I64(values) => out
                .typed::<Int64Type>()
                .write_batch(values, defs, reps)
                .map(|_| values.clear())?,
            Values::Text(values) => out
                .typed::<ByteArrayType>()
                .write_batch(values, defs, reps)
                .map(|_| values.clear())?,
        }
        out.close()?;
        column.defs.clear();
        column.reps.clear();
    }
    group.close()?;
    Ok(())
}

/// Reads one table.
pub(crate) struct TableReader {
    path: PathBuf,
    reader: SerializedFileReader<File>,
}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableReader")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// The library that reads Parquet is not hardened against files made to break it: a panic of its is damage like any other.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Error> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(error(path)),
        Err(_) => Err(Error::damaged(path, "not readable as Parquet")),
    }
}

impl TableReader {
    /// Opens `path`, which must have this schema.
    pub(crate) fn open(path: PathBuf, schema: &str) -> Result<TableReader, Error> {
        let file = File::open(&path).map_err(Error::io(&path))?;
        let reader = guarded(&path, || SerializedFileReader::new(file))?;
        let found = reader
            .metadata()
            .file_metadata()
            .schema_descr()
            .root_schema_ptr();
        if found != parse(schema) {
            return Err(Error::damaged(
                &path,
                "other columns than this version writes",
            ));
        }
        Ok(TableReader { path, reader })
    }

    /// All row groups, or those that may hold rows of one method.
    pub(crate) fn groups(&self, method: Option<i32>) -> Result<Vec<usize>, Error> {
        let Some(method) = method else {
            return Ok((0..self.reader.num_row_groups()).collect());
        };
        let mut groups = Vec::new();
        for at in 0..self.reader.num_row_groups() {
            let statistics = self
                .reader
                .metadata()
                .row_group(at)
                .columns()
                .first()
                .and_then(|c| c.statistics());
            let Some(Statistics::Int32(range)) = statistics else {
                return Err(self.damaged("a row group without statistics"));
            };
            let (Some(min), Some(max)) = (range.min_opt(), range.max_opt()) else {
                return Err(self.damaged("a row group without statistics"));
            };
            if (min..=max).contains(&&method) {
                groups.push(at);
            }
        }
        Ok(groups)
    }

    /// Reads all rows of a row group with `row`, which takes one value or list from each column and gives `None` if one does not fit.
    pub(crate) fn rows(
        &self,
        group: usize,
        mut row: impl FnMut(&mut [Column]) -> Option<()>,
    ) -> Result<(), Error> {
        let (rows, mut columns) = guarded(&self.path, || {
            let group = self.reader.get_row_group(group)?;
            let rows = usize::try_from(group.metadata().num_rows())?;
            let descriptor = self.reader.metadata().file_metadata().schema_descr();
            let mut columns = Vec::new();
            for (at, descriptor) in descriptor.columns().iter().enumerate() {
                columns.push(read_column(
                    group.get_column_reader(at)?,
                    Column::new(descriptor),
                    rows,
                )?);
            }
            Ok((rows, columns))
        })?;
        for _ in 0..rows {
            row(&mut columns).ok_or_else(|| self.damaged("a value that no profile has"))?;
        }
        Ok(())
    }

    pub(crate) fn damaged(&self, reason: &str) -> Error {
        Error::damaged(&self.path, reason)
    }
}

fn read_column(
    reader: ColumnReader,
    mut column: Column,
    rows: usize,
) -> Result<Column, ParquetError> {
    let defs = Some(&mut column.defs);
    let reps = Some(&mut column.reps);
    let (read, _, _) = match (reader, &mut column.values) {
        (ColumnReader::BoolColumnReader(mut reader), Values::Bool(values)) => {
            reader.read_records(rows, defs, reps, values)?
        }
        (ColumnReader::Int32ColumnReader(mut reader), Values::I32(values)) => {
            reader.read_records(rows, defs, reps, values)?
        }
        (ColumnReader::Int64ColumnReader(mut reader), Values::I64(values)) => {
            reader.read_records(rows, defs, reps, values)?
        }
        (ColumnReader::ByteArrayColumnReader(mut reader), Values::Text(values)) => {
            reader.read_records(rows, defs, reps, values)?
        }
        _ => return Err(ParquetError::General("a column of another type".into())),
    };
    match read == rows {
        true => Ok(column),
        false => Err(ParquetError::General(
            "a column is shorter than its row group".into(),
        )),
    }
}
