//! The one thing that we read from a JVM's performance data: whether it lets itself be attached to.
//!
//! The file `/tmp/hsperfdata_<user>/<pid>` is mapped by the JVM itself (perfMemory_posix.cpp) and has the layout of perfMemory.hpp: a prologue of 32 bytes
//! {magic, byte order, version 2.0, accessible; used, overflow; time; offset and number of entries}, then entries {length, offset of the
//! name, vector length; type, flags, units, variability; offset of the data}. The string `sun.rt.jvmCapabilities` begins with `1` where
//! attaching is supported (runtimeService.cpp).

/// `PERFDATA_MAGIC`, big-endian whatever the machine.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const LITTLE_ENDIAN: u8 = 1;
const PROLOGUE: usize = 32;
const ENTRY: usize = 20;
const CAPABILITIES: &[u8] = b"sun.rt.jvmCapabilities";

/// Whether the JVM lets itself be attached to; `None`: the data do not say (not made yet, another layout).
pub fn attachable(data: &[u8]) -> Option<bool> {
    let [order, major] = [*data.get(4)?, *data.get(5)?];
    if data.get(..4)? != MAGIC || order != LITTLE_ENDIAN || major != 2 {
        return None;
    }
    let number = |at: usize| {
        let bytes = data.get(at..at.checked_add(4)?)?;
        usize::try_from(i32::from_le_bytes(bytes.try_into().ok()?)).ok()
    };
    let (mut entry, count) = (number(PROLOGUE - 8)?, number(PROLOGUE - 4)?);
    for _ in 0..count {
        let length = number(entry)?;
        let name = data.get(entry.checked_add(number(entry + 4)?)?..)?;
        if name
            .strip_prefix(CAPABILITIES)
            .is_some_and(|rest| rest.first() == Some(&0))
        {
            return match data.get(entry.checked_add(number(entry + 16)?)?)? {
                b'1' => Some(true),
                b'0' => Some(false),
                _ => None,
            };
        }
        // Entries never overlap; a length that says so would not end.
        entry = entry.checked_add(length.max(ENTRY))?;
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file with entries of a name and a string.
    pub(crate) fn file(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend([1, 2, 0, 1]);
        out.extend([0; 16]);
        out.extend((PROLOGUE as i32).to_le_bytes());
        out.extend((entries.len() as i32).to_le_bytes());
        for (name, value) in entries {
            let data = ENTRY + name.len() + 1;
            let length = (data + value.len() + 1).next_multiple_of(8);
            let mut entry = Vec::new();
            for n in [length, ENTRY, value.len() + 1] {
                entry.extend((n as i32).to_le_bytes());
            }
            entry.extend(*b"B\0\0\x01");
            entry.extend((data as i32).to_le_bytes());
            entry.extend(name.as_bytes());
            entry.push(0);
            entry.extend(value.as_bytes());
            entry.resize(length, 0);
            out.extend(entry);
        }
        out
    }

    #[test]
    fn reads_the_capability() {
        let capabilities = |value| {
            attachable(&file(&[
                ("sun.rt.jvmVersion", "1"),
                ("sun.rt.jvmCapabilitiesX", "0"),
                ("sun.rt.jvmCapabilities", value),
                ("sun.rt.last", ""),
            ]))
        };
        assert_eq!(capabilities("1100"), Some(true));
        assert_eq!(capabilities("0100"), Some(false));
        assert_eq!(capabilities(""), None);
        assert_eq!(attachable(&file(&[])), None);
        let mut big_endian = file(&[("sun.rt.jvmCapabilities", "1")]);
        big_endian[4] = 0;
        assert_eq!(attachable(&big_endian), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(
            cut in 0_usize..200,
            changes in prop::collection::vec((0_usize..200, any::<u8>()), 0..8),
        ) {
            let mut data = file(&[("a", "b"), ("sun.rt.jvmCapabilities", "1")]);
            for (at, byte) in changes {
                let at = at % data.len();
                data[at] = byte;
            }
            let _ = attachable(&data[..cut.min(data.len())]);
            let _ = attachable(&data);
        }
    }
}
