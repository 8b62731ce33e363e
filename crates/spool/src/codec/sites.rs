//! Encoding and decoding of the records of the sites lens; the shapes stand in the parent's table.

use super::{
    DecodeError, ENDED, NUMBERED, OWNERS, Reader, SITE_CLASS, SITES, SNAPSHOT, Writer, unknown,
};
use crate::sites::{
    Call, Cause, MAX_OWNER, MethodName, Mode, Numbered, Owner, Site, SiteClass, SiteKind, Sites,
    SkippedSite, Snapshot,
};

impl Writer {
    pub(super) fn sites(&mut self, sites: &Sites) {
        let Sites {
            mode,
            hash_shift,
            spare_bits,
            jdk,
            attribute,
            attached,
            scheme,
        } = *sites;
        self.byte(SITES);
        self.byte(mode as u8);
        self.byte(hash_shift);
        self.byte(spare_bits);
        self.byte(u8::from(jdk) | u8::from(attribute) << 1 | u8::from(attached) << 2);
        self.option(scheme.as_ref(), |w, scheme| w.0.extend_from_slice(scheme));
    }

    pub(super) fn site_class(&mut self, class: &SiteClass) {
        let SiteClass {
            name,
            loader,
            hash,
            source_file,
            jdk,
            first_site,
            first_call,
            methods,
            sites,
            calls,
            skipped,
        } = class;
        self.byte(SITE_CLASS);
        self.string(name);
        self.string(loader);
        self.0.extend_from_slice(&hash.to_le_bytes());
        self.option(source_file.as_ref(), |w, file| w.string(file));
        self.byte(u8::from(*jdk));
        self.int(*first_site);
        self.int(*first_call);
        self.len(methods.len());
        for MethodName { name, descriptor } in methods {
            self.string(name);
            self.string(descriptor);
        }
        self.len(sites.len());
        for site in sites {
            let Site {
                method,
                bci,
                line,
                kind,
                ty,
            } = site;
            self.place(*method, *bci);
            self.int(*line);
            self.byte(*kind as u8);
            self.string(ty);
        }
        self.len(calls.len());
        for call in calls {
            let Call { method, bci, line } = *call;
            self.place(method, bci);
            self.int(line);
        }
        self.len(skipped.len());
        for site in skipped {
            let SkippedSite {
                method,
                bci,
                reason,
            } = site;
            self.int(*method);
            self.option(bci.as_ref(), |w, bci| w.int(*bci));
            self.string(reason);
        }
    }

    fn place(&mut self, method: u16, bci: u16) {
        self.int(method);
        self.int(bci);
    }

    pub(super) fn owners(&mut self, owners: &[Owner]) {
        self.byte(OWNERS);
        self.len(owners.len());
        for owner in owners {
            let Owner { owner, site, call } = *owner;
            for value in [owner, site, call] {
                self.int(value);
            }
        }
    }

    pub(super) fn snapshot(&mut self, snapshot: &Snapshot) {
        let Snapshot {
            number,
            cause,
            at_ms,
            took_ms,
            live_only,
            listed,
            objects,
            bytes,
            epoch,
        } = *snapshot;
        self.byte(SNAPSHOT);
        self.int(number);
        self.byte(cause as u8);
        self.int(at_ms);
        self.int(took_ms);
        self.byte(u8::from(live_only) | u8::from(listed) << 1);
        self.int(objects);
        self.int(bytes);
        self.int(epoch);
    }

    pub(super) fn numbered(&mut self, numbered: &Numbered) {
        let Numbered {
            signature,
            owner,
            event,
        } = numbered;
        self.byte(NUMBERED);
        self.string(signature);
        self.int(*owner);
        self.0.extend_from_slice(event);
    }

    pub(super) fn ended(&mut self, at_ms: u64) {
        self.byte(ENDED);
        self.int(at_ms);
    }
}

impl Reader<'_> {
    pub(super) fn sites(&mut self) -> Result<Sites, DecodeError> {
        let mode = match self.byte()? {
            0 => Mode::Spare,
            1 => Mode::Static,
            2 => Mode::Dynamic,
            3 => Mode::Hybrid,
            value => return Err(unknown("mode of numbers", value)),
        };
        let (hash_shift, spare_bits) = (self.byte()?, self.byte()?);
        let bits = self.bits("bits of the lens", 3)?;
        Ok(Sites {
            mode,
            hash_shift,
            spare_bits,
            jdk: bits & 1 != 0,
            attribute: bits & 2 != 0,
            attached: bits & 4 != 0,
            scheme: self.option(Self::array)?,
        })
    }

    pub(super) fn site_class(&mut self) -> Result<SiteClass, DecodeError> {
        let class = SiteClass {
            name: self.string()?,
            loader: self.string()?,
            hash: self.hash()?,
            source_file: self.option(Self::string)?,
            jdk: self.bits("kind of class", 1)? != 0,
            first_site: self.int()?,
            first_call: self.int()?,
            methods: self.list(2, |r| {
                Ok(MethodName {
                    name: r.string()?,
                    descriptor: r.string()?,
                })
            })?,
            sites: self.list(5, |r| {
                Ok(Site {
                    method: r.int()?,
                    bci: r.int()?,
                    line: r.int()?,
                    kind: {
                        let kind = r.byte()?;
                        let known = SiteKind::ALL.get(usize::from(kind));
                        *known.ok_or_else(|| unknown("kind of site", kind))?
                    },
                    ty: r.string()?,
                })
            })?,
            calls: self.list(3, |r| {
                Ok(Call {
                    method: r.int()?,
                    bci: r.int()?,
                    line: r.int()?,
                })
            })?,
            skipped: self.list(3, |r| {
                Ok(SkippedSite {
                    method: r.int()?,
                    bci: r.option(Self::int)?,
                    reason: r.string()?,
                })
            })?,
        };
        class.check()?;
        Ok(class)
    }

    pub(super) fn owners(&mut self) -> Result<Vec<Owner>, DecodeError> {
        self.list(3, |r| {
            let owner = Owner {
                owner: r.int()?,
                site: r.int()?,
                call: r.int()?,
            };
            match owner.owner {
                1..=MAX_OWNER if owner.site > 0 => Ok(owner),
                _ => Err(DecodeError::Range),
            }
        })
    }

    pub(super) fn snapshot(&mut self) -> Result<Snapshot, DecodeError> {
        let number = self.int()?;
        let cause = self.byte()?;
        let known = Cause::ALL.get(usize::from(cause));
        let cause = *known.ok_or_else(|| unknown("cause of a snapshot", cause))?;
        let (at_ms, took_ms) = (self.u64()?, self.u64()?);
        let bits = self.bits("bits of a snapshot", 2)?;
        Ok(Snapshot {
            number,
            cause,
            at_ms,
            took_ms,
            live_only: bits & 1 != 0,
            listed: bits & 2 != 0,
            objects: self.u64()?,
            bytes: self.u64()?,
            epoch: self.u64()?,
        })
    }

    pub(super) fn numbered(&mut self) -> Result<Numbered, DecodeError> {
        Ok(Numbered {
            signature: self.string()?,
            owner: self.int()?,
            event: self.array()?,
        })
    }
}

impl SiteClass {
    /// Refuses what refers to methods that are not there, and numbers that no site can have.
    fn check(&self) -> Result<(), DecodeError> {
        let methods = (self.sites.iter().map(|site| site.method))
            .chain(self.calls.iter().map(|call| call.method))
            .chain(self.skipped.iter().map(|site| site.method));
        for method in methods {
            if usize::from(method) >= self.methods.len() {
                return Err(DecodeError::Range);
            }
        }
        let fits = |first: u32, list: usize, most: u32| {
            list == 0 || first > 0 && u64::from(first) + list as u64 <= u64::from(most) + 1
        };
        match fits(self.first_site, self.sites.len(), MAX_OWNER)
            && fits(self.first_call, self.calls.len(), u32::MAX)
        {
            true => Ok(()),
            false => Err(DecodeError::Range),
        }
    }
}
