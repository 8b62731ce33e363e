//! The log of number assignments: what must be stored so that every field ever made decodes.
//!
//! An event is logged before the first object can carry its number; so a log cut off anywhere decodes all objects up to there.
//! Epochs grow with each event; within a class the log is in their order. A snapshot of the heap notes the epoch it was taken at.

use crate::scheme::{Mode, Policy, Scheme, Space};
use crate::tree::Number;
use crate::{ClassId, Error, MethodId, Owner, SiteId};

/// What happened to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// The owner may mark objects with it from now on.
    Given,
    /// No object carries it and none will: another owner may get it, or a number above or below it.
    Released,
}

/// One change of a class's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event {
    /// Its place in time, unique.
    pub epoch: u64,
    /// Whose number.
    pub class: ClassId,
    /// Which kind.
    pub space: Space,
    /// The number.
    pub number: Number,
    /// To whom, from whom.
    pub owner: Owner,
    /// What.
    pub action: Action,
}

/// Bytes of an event.
pub const EVENT_BYTES: usize = 24;
/// Bytes of a scheme.
pub const SCHEME_BYTES: usize = 24;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

impl Event {
    /// Little endian: epoch u64 | class u32 | number's bits u32 | owner's ID u32 | number's length u8 | owner's kind u8 (0 site, 1 method, 2 others) | space u8 (0
    /// static, 1 dynamic) | action u8 (0 given, 1 released).
    pub fn to_bytes(&self) -> [u8; EVENT_BYTES] {
        let (kind, id) = match self.owner {
            Owner::Site(site) => (0, site.0),
            Owner::Method(method) => (1, method.0),
            Owner::Others => (2, 0),
        };
        let mut bytes = [0; EVENT_BYTES];
        bytes[..8].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.class.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.number.bits().to_le_bytes());
        bytes[16..20].copy_from_slice(&u32::to_le_bytes(id));
        bytes[20] = self.number.len();
        bytes[21] = kind;
        bytes[22] = (self.space == Space::Dynamic).into();
        bytes[23] = (self.action == Action::Released).into();
        bytes
    }

    /// The event of these bytes.
    pub fn from_bytes(bytes: &[u8; EVENT_BYTES]) -> Result<Self, Error> {
        let id = u32_at(bytes, 16);
        Ok(Event {
            epoch: u64_at(bytes, 0),
            class: ClassId(u32_at(bytes, 8)),
            number: Number::new(u32_at(bytes, 12), bytes[20])
                .ok_or(Error::Bytes("a number has more bits than its length"))?,
            owner: match (bytes[21], id) {
                (0, id) => Owner::Site(SiteId(id)),
                (1, id) => Owner::Method(MethodId(id)),
                (2, 0) => Owner::Others,
                _ => return Err(Error::Bytes("unknown kind of owner")),
            },
            space: match bytes[22] {
                0 => Space::Static,
                1 => Space::Dynamic,
                _ => return Err(Error::Bytes("unknown kind of number")),
            },
            action: match bytes[23] {
                0 => Action::Given,
                1 => Action::Released,
                _ => return Err(Error::Bytes("unknown action")),
            },
        })
    }
}

impl Scheme {
    /// Little endian: seed u64 | merge_below u32 | mode u8 (0 static, 1 dynamic, 2 hybrid, 3 spare) | static number's bits u8 | width u8 | min_id_bits u8 |
    /// min_number_bits u8 | share u8 | wrap u8 | guard_bits u8 | 4 zeroes.
    pub fn to_bytes(&self) -> [u8; SCHEME_BYTES] {
        let (mode, number_bits) = match self.mode() {
            Mode::Static { number_bits } => (0, number_bits),
            Mode::Dynamic => (1, 0),
            Mode::Hybrid => (2, 0),
            Mode::Spare => (3, 0),
        };
        let policy = self.policy();
        let mut bytes = [0; SCHEME_BYTES];
        bytes[..8].copy_from_slice(&self.seed().to_le_bytes());
        bytes[8..12].copy_from_slice(&policy.merge_below.to_le_bytes());
        bytes[12..20].copy_from_slice(&[
            mode,
            number_bits,
            self.width(),
            policy.min_id_bits,
            policy.min_number_bits,
            policy.share,
            policy.wrap.into(),
            policy.guard_bits,
        ]);
        bytes
    }

    /// The scheme of these bytes.
    pub fn from_bytes(bytes: &[u8; SCHEME_BYTES]) -> Result<Self, Error> {
        let mode = match (bytes[12], bytes[13]) {
            (0, number_bits) => Mode::Static { number_bits },
            (1, 0) => Mode::Dynamic,
            (2, 0) => Mode::Hybrid,
            (3, 0) => Mode::Spare,
            _ => return Err(Error::Bytes("unknown mode")),
        };
        if bytes[18] > 1 || bytes[20..].iter().any(|&b| b != 0) {
            return Err(Error::Bytes("unknown policy"));
        }
        let policy = Policy {
            min_id_bits: bytes[15],
            min_number_bits: bytes[16],
            share: bytes[17],
            merge_below: u32_at(bytes, 8),
            guard_bits: bytes[19],
            wrap: bytes[18] == 1,
        };
        Scheme::new(mode, bytes[14], policy, u64_at(bytes, 0))
    }
}
