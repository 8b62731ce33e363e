//! A machine instruction in words.

use crate::handler::code::Bytes;
use iced_x86::{Decoder, DecoderOptions, FastFormatter};

/// An instruction in Intel's notation, `None` if it is not known. Addresses relative to itself are shown as distances from its start.
pub fn text(instruction: &Bytes) -> Option<String> {
    let bytes = instruction.get();
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let decoded = decoder.decode();
    if decoded.is_invalid() || decoded.len() != bytes.len() {
        return None;
    }
    let mut text = String::new();
    let mut formatter = FastFormatter::new();
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_rip_relative_addresses(true);
    options.set_use_hex_prefix(true);
    formatter.format(&decoded, &mut text);
    Some(text)
}
