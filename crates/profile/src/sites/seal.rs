//! Seals a spool of sites.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use borescope_spool::sites::Snapshot as Taken;
use borescope_spool::snapshot::{self, Origin, Snapshot as Counted, objects};

use super::log::Log;
use super::names::type_name;
use super::tables::{self, LIVE, OBJECTS, SITES};
use super::{Header, LENS, Live, Manifest, Site, Snapshot, Sum};
use crate::seal::{Existing, directory, write_manifest};
use crate::table::TableWriter;
use crate::tables::{SKIPPED, write_skipped};
use crate::{Error, SCHEMA};

/// Seals the spool `spool` (which is only read, and may still be written by a JVM) into the profile directory `out`. Nothing appears under that
/// name until the profile is complete and on the disk.
pub fn seal(spool: &Path, out: &Path, existing: Existing) -> Result<Manifest, Error> {
    let open = || Log::read(&spool.join("meta.log"));
    directory(out, existing, open, |log, dir| {
        Sealer {
            log,
            spool,
            sites: Vec::new(),
            by_owner: HashMap::new(),
            by_site: HashMap::new(),
            torn: Vec::new(),
        }
        .write(dir)
    })
}

struct Sealer<'a> {
    log: &'a Log,
    spool: &'a Path,
    /// Sites met so far, by index.
    sites: Vec<Site>,
    /// Index of the site of each owner met; `None` = the log does not have it.
    by_owner: HashMap<u32, Option<u32>>,
    by_site: HashMap<Site, u32>,
    torn: Vec<String>,
}

/// Index of a site, or why there is none.
type Origins = Result<u32, &'static str>;

impl Sealer<'_> {
    fn write(mut self, dir: &Path) -> Result<Manifest, Error> {
        let create = |name: &str, schema| TableWriter::create(dir.join(name), schema);
        let mut live = create("live.parquet", LIVE)?;
        let mut skipped = create("skipped.parquet", SKIPPED)?;
        let mut listed: Option<TableWriter> = None;
        let mut snapshots = Vec::new();
        for taken in &self.log.snapshots {
            let counted = match self.counted(taken)? {
                Ok(counted) => counted,
                Err(reason) => {
                    self.torn
                        .push(format!("snapshot {}: {reason}", taken.number));
                    continue;
                }
            };
            let types: Vec<String> = counted.classes.iter().map(|name| type_name(name)).collect();
            let mut snapshot = self.summed(taken, &counted, &types, &mut live)?;
            if taken.listed {
                let table = match &mut listed {
                    Some(table) => table,
                    None => listed.insert(create("objects.parquet", OBJECTS)?),
                };
                snapshot.listed = self.objects(taken, &types, table)?;
            }
            snapshots.push(snapshot);
        }
        let mut sites = create("sites.parquet", SITES)?;
        for site in &self.sites {
            sites.row(|columns| tables::write_site(columns, site))?;
        }
        for row in &self.log.skipped {
            skipped.row(|columns| write_skipped(columns, row))?;
        }
        let mut files = BTreeMap::new();
        let listed = listed.map(|table| ("objects.parquet", table));
        let others = [
            ("sites.parquet", sites),
            ("live.parquet", live),
            ("skipped.parquet", skipped),
        ];
        for (name, table) in others.into_iter().chain(listed) {
            files.insert(name.to_owned(), table.finish()?);
        }
        let set_up = &self.log.set_up;
        let mut totals = self.log.totals;
        totals.live_sites = self.sites.len() as u64;
        let manifest = Manifest {
            borescope: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA,
            lens: LENS.into(),
            target: self.log.target.clone(),
            mode: set_up.mode.name().into(),
            header: Header {
                hash_shift: set_up.hash_shift,
                spare_bits: set_up.spare_bits,
            },
            jdk: set_up.jdk,
            attribute: set_up.attribute,
            attached: set_up.attached,
            snapshots,
            totals,
            notices: self.log.notices.clone(),
            log_torn: self.log.torn.clone(),
            snapshots_torn: (!self.torn.is_empty()).then(|| self.torn.join("; ")),
            files,
        };
        write_manifest(dir, &manifest)?;
        Ok(manifest)
    }

    /// The content of a snapshot's file, or what is wrong with it.
    fn counted(&self, taken: &Taken) -> Result<Result<Counted, String>, Error> {
        let path = self.spool.join(snapshot::file_name(taken.number));
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Err("its file is missing".into()));
            }
            Err(error) => return Err(Error::io(&path)(error)),
        };
        let counted = match Counted::read(&bytes) {
            Ok(counted) => counted,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let mut sum = Sum::default();
        for row in &counted.rows {
            sum += Sum {
                objects: row.objects,
                bytes: row.bytes,
            };
        }
        let named = Sum {
            objects: taken.objects,
            bytes: taken.bytes,
        };
        Ok(match counted.number == taken.number && sum == named {
            true => Ok(counted),
            false => Err("another file than the log names".into()),
        })
    }

    fn origin(&mut self, origin: Origin) -> Origins {
        match origin {
            Origin::Owner(owner) => self.site(owner).ok_or("site record lost"),
            Origin::NoMark if self.log.set_up.attached => Err("before attach, or vm or native"),
            Origin::NoMark => Err("vm or native"),
            Origin::Hashed => Err("hash taken first"),
            Origin::Unreadable => Err("header in a monitor"),
            Origin::Foreign => Err("foreign mark"),
        }
    }

    fn site(&mut self, owner: u32) -> Option<u32> {
        if let Some(&known) = self.by_owner.get(&owner) {
            return known;
        }
        let index = self.log.site(owner).map(|site| {
            let next = self.sites.len() as u32;
            *self.by_site.entry(site).or_insert_with_key(|site| {
                self.sites.push(Site {
                    index: next,
                    ..site.clone()
                });
                next
            })
        });
        self.by_owner.insert(owner, index);
        index
    }

    /// Writes the rows of a snapshot, and sums them up.
    fn summed(
        &mut self,
        taken: &Taken,
        counted: &Counted,
        types: &[String],
        live: &mut TableWriter,
    ) -> Result<Snapshot, Error> {
        let mut snapshot = Snapshot {
            number: taken.number,
            at: taken.at_ms,
            took_ms: taken.took_ms,
            cause: taken.cause.name().into(),
            live_only: taken.live_only,
            listed: false,
            live: Sum::default(),
            with_site: Sum::default(),
            with_app: Sum::default(),
            unknown: BTreeMap::new(),
        };
        let mut sums: BTreeMap<(Origins, &str), Sum> = BTreeMap::new();
        for row in &counted.rows {
            let ty = types.get(row.class as usize).map_or("", String::as_str);
            let sum = Sum {
                objects: row.objects,
                bytes: row.bytes,
            };
            *sums.entry((self.origin(row.origin), ty)).or_default() += sum;
        }
        let mut rows: Vec<Live> = Vec::with_capacity(sums.len());
        for ((origin, ty), sum) in sums {
            snapshot.live += sum;
            match origin {
                Ok(site) => {
                    snapshot.with_site += sum;
                    let site = self.sites.get(site as usize);
                    if site.is_some_and(|site| site.app.is_some()) {
                        snapshot.with_app += sum;
                    }
                }
                Err(reason) => *snapshot.unknown.entry(reason.into()).or_default() += sum,
            }
            rows.push(Live {
                site: origin.ok(),
                ty: ty.into(),
                sum,
                reason: origin.err().map(str::to_owned),
            });
        }
        // Stable, and so the same for equal spools.
        rows.sort_by_key(|row| std::cmp::Reverse((row.sum.bytes, row.sum.objects)));
        for row in &rows {
            live.row(|columns| tables::write_live(columns, taken.number, row))?;
        }
        live.end_method()?;
        Ok(snapshot)
    }

    /// Writes each object; false = not all were there.
    fn objects(
        &mut self,
        taken: &Taken,
        types: &[String],
        table: &mut TableWriter,
    ) -> Result<bool, Error> {
        let path = self.spool.join(snapshot::objects_name(taken.number));
        match self.copy(taken, &path, types, table)? {
            None => Ok(true),
            Some(reason) => {
                self.torn.push(format!(
                    "objects of snapshot {}: {reason}; those before are kept",
                    taken.number
                ));
                Ok(false)
            }
        }
    }

    /// What is wrong with the file.
    fn copy(
        &mut self,
        taken: &Taken,
        path: &Path,
        types: &[String],
        table: &mut TableWriter,
    ) -> Result<Option<String>, Error> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let reader = match objects::Reader::new(BufReader::new(file)) {
            Ok(reader) if reader.number() == taken.number => reader,
            Ok(_) => return Ok(Some("the file of another snapshot".into())),
            Err(error) => return Ok(Some(error.to_string())),
        };
        let mut count = 0;
        for object in reader {
            let object = match object {
                Ok(object) => object,
                Err(error) => return Ok(Some(error.to_string())),
            };
            let Some(ty) = types.get(object.class as usize) else {
                return Ok(Some("an object of a class that is not there".into()));
            };
            let origin = self.origin(object.origin);
            let place = (object.address, object.bytes);
            table.row(|columns| {
                tables::write_object(columns, taken.number, place, ty, origin);
            })?;
            count += 1;
        }
        table.end_method()?;
        Ok((count != taken.objects).then(|| format!("{count} of {} are there", taken.objects)))
    }
}
