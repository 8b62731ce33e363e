//! Machine code of one blob (an nmethod, a stub), instructions, and their memory operands.
//!
//! Decoding is iced-x86's. It makes tables on its first use and an operand's facts in a buffer on the heap: both are made by
//! [`Reader::new`], outside of any handler, and never grow later.

use super::access::{Access, Element, Kind, MAX_WIDTH};
use super::registers::Registers;
use iced_x86::{
    Decoder, DecoderOptions, InstructionInfoFactory, InstructionInfoOptions, MemorySize, Mnemonic,
    OpAccess, OpKind, Register,
};

/// The bytes of a code blob.
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl<'a> Code<'a> {
    /// `bytes` stand at address `start`.
    pub fn new(start: u64, bytes: &'a [u8]) -> Code<'a> {
        Code { start, bytes }
    }

    /// Whether an address is inside.
    pub fn contains(&self, pc: u64) -> bool {
        self.from(pc).is_some_and(|rest| !rest.is_empty())
    }

    /// The instruction that ends at `pc`, decoding from `anchor` on, where one begins. `None`: none does.
    pub fn before(&self, anchor: u64, pc: u64) -> Option<Instruction> {
        let bytes = self.from(anchor)?;
        // One decoder for all of them: making one costs as much as several instructions.
        let mut decoder = Decoder::with_ip(64, bytes, anchor, DecoderOptions::NONE);
        let mut raw = iced_x86::Instruction::new();
        while decoder.can_decode() && decoder.ip() < pc {
            decoder.decode_out(&mut raw);
            if raw.is_invalid() {
                return None;
            }
        }
        let bytes = self.from(raw.ip())?.get(..raw.len())?;
        let bytes = Bytes::new(bytes)?;
        (raw.next_ip() == pc).then_some(Instruction { raw, bytes })
    }

    /// The bytes from an address on.
    fn from(&self, pc: u64) -> Option<&'a [u8]> {
        let offset = usize::try_from(pc.checked_sub(self.start)?).ok()?;
        self.bytes.get(offset..)
    }
}

/// An instruction's bytes, at most 15. It is how an instruction travels to the report, where [`crate::analysis::text`] puts it into words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes([u8; 16]);

impl Bytes {
    /// Longest instruction.
    pub const MAX: usize = 15;

    /// `None` if there are none, or more than 15.
    pub fn new(bytes: &[u8]) -> Option<Bytes> {
        let mut packed = [0; 16];
        packed.get_mut(..bytes.len())?.copy_from_slice(bytes);
        if bytes.is_empty() || bytes.len() > Bytes::MAX {
            return None;
        }
        packed[15] = bytes.len() as u8;
        Some(Bytes(packed))
    }

    /// The bytes; none if the instruction is not known.
    pub fn get(&self) -> &[u8] {
        let len = usize::from(self.0[15]).min(Bytes::MAX);
        &self.0[..len]
    }

    pub(crate) fn to_words(self) -> [u64; 2] {
        let half = |at: usize| (0..8).fold(0, |w, n| w | u64::from(self.0[at + n]) << (8 * n));
        [half(0), half(8)]
    }

    pub(crate) fn from_words(words: [u64; 2]) -> Bytes {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&words[0].to_le_bytes());
        bytes[8..].copy_from_slice(&words[1].to_le_bytes());
        // Words out of a file may say anything: keep them in one form.
        Bytes::new(Bytes(bytes).get()).unwrap_or_default()
    }
}

/// An instruction at an address.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub(crate) raw: iced_x86::Instruction,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Instruction {
    /// Where it stands.
    pub fn pc(&self) -> u64 {
        self.raw.ip()
    }

    /// Where the one behind it stands.
    pub fn next(&self) -> u64 {
        self.raw.next_ip()
    }
}

/// Why an operand's bytes cannot be said from the general registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// A mask says which elements are touched (AVX masked moves, EVEX masks).
    Masked,
    /// A gather or scatter: many addresses.
    Gather,
    /// A bit string: the bit's number moves the address.
    BitString,
    /// Of unknown or more than [`MAX_WIDTH`] bytes (`xsave`).
    Width,
    /// Relative to a register or segment whose value is not known, or beyond the end of the address space.
    Base,
    /// The instruction has overwritten a register of the address: `mov rax, [rax]`, seen from behind.
    Overwritten,
}

/// How the address is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// A base register, and no index: base + displacement, as fields and headers are addressed.
    pub field: bool,
    /// The base is rsp: a slot of the frame.
    pub stack: bool,
    /// The base is r15, which compiled Java code keeps the thread's own structure in.
    pub thread: bool,
    /// The displacement.
    pub displacement: i64,
}

/// A memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// What is done to it.
    pub kind: Kind,
    /// Bytes; 0 if unknown.
    pub width: u16,
    /// What they mean.
    pub element: Element,
    /// The access, if its bytes are known.
    pub access: Result<Access, Hidden>,
    /// How the address is written.
    pub form: Form,
}

/// The memory operands of an instruction: none, one, or two (`movs`, `cmps`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operands([Option<Operand>; 2]);

impl Operands {
    /// In the order in which they happen: loads first.
    pub fn iter(&self) -> impl Iterator<Item = Operand> + '_ {
        self.0.iter().flatten().copied()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }
}

/// What decodes: one for each thread, and for each handler that may interrupt another.
#[derive(Debug)]
pub struct Reader {
    facts: InstructionInfoFactory,
}

impl Default for Reader {
    fn default() -> Self {
        Reader::new()
    }
}

impl Reader {
    /// Makes everything that lives on the heap. Not in a handler.
    pub fn new() -> Reader {
        let mut reader = Reader {
            facts: InstructionInfoFactory::new(),
        };
        // aesencwide256kl fs:[rax+rcx], the instruction with a memory operand that uses the most registers: the buffer will never grow.
        let most = [0x64, 0xF3, 0x0F, 0x38, 0xD8, 0x14, 0x08];
        if let Some(instruction) = reader.at(&Code::new(0, &most), 0) {
            reader.overwrites_address(&instruction);
        }
        reader
    }

    /// The instruction at an address. `None`: outside of the code, cut off by its end, or no instruction.
    pub fn at(&self, code: &Code<'_>, pc: u64) -> Option<Instruction> {
        let rest = code.from(pc)?;
        let rest = &rest[..rest.len().min(Bytes::MAX)];
        let mut decoder = Decoder::with_ip(64, rest, pc, DecoderOptions::NONE);
        let raw = decoder.decode();
        if raw.is_invalid() {
            return None;
        }
        let bytes = Bytes::new(rest.get(..raw.len())?)?;
        Some(Instruction { raw, bytes })
    }

    /// The memory that an instruction reads and writes by its operands. Not the stack slots of push, pop, call and return; prefetches, `lea`
    /// and long nops access nothing. `registers`: before the instruction; without them all addresses but those of constants are [`Hidden::Base`].
    pub fn operands(
        &mut self,
        instruction: &Instruction,
        registers: Option<&Registers>,
    ) -> Operands {
        let raw = &instruction.raw;
        let mut operands = Operands::default();
        if touches_nothing(raw.mnemonic()) {
            return operands;
        }
        let over = repeats(raw) && registers.is_some_and(|r| r.rcx() == 0);
        let options =
            InstructionInfoOptions::NO_MEMORY_USAGE | InstructionInfoOptions::NO_REGISTER_USAGE;
        let facts = self.facts.info_options(raw, options);
        let mut found = 0;
        for n in 0..raw.op_count() {
            let kind = match kind_of(raw, facts.op_access(n)) {
                Some(kind) if is_memory(raw.op_kind(n)) && !over => kind,
                _ => continue,
            };
            if let Some(slot) = operands.0.get_mut(found) {
                *slot = Some(operand(raw, n, kind, registers));
                found += 1;
            }
        }
        // `movs` names its destination first.
        let kinds = operands.0.map(|operand| operand.map(|o| o.kind));
        if let [Some(Kind::Store), Some(Kind::Load)] = kinds {
            operands.0.swap(0, 1);
        }
        operands
    }

    /// Whether the instruction writes a register that its memory operand's address is made of.
    pub fn overwrites_address(&mut self, instruction: &Instruction) -> bool {
        let raw = &instruction.raw;
        self.writes(instruction, [raw.memory_base(), raw.memory_index()])
    }

    /// Whether the instruction writes one of two registers, or a part of it.
    pub(crate) fn writes(&mut self, instruction: &Instruction, registers: [Register; 2]) -> bool {
        let parts = registers.map(Register::full_register);
        let options = InstructionInfoOptions::NO_MEMORY_USAGE;
        let facts = self.facts.info_options(&instruction.raw, options);
        facts.used_registers().iter().any(|used| {
            let reads_only = matches!(
                used.access(),
                OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
            );
            let register = used.register().full_register();
            !reads_only && register != Register::None && parts.contains(&register)
        })
    }
}

/// Whether a string instruction is repeated by rcx.
pub(crate) fn repeats(raw: &iced_x86::Instruction) -> bool {
    raw.is_string_instruction() && (raw.has_rep_prefix() || raw.has_repne_prefix())
}

pub(crate) fn is_memory(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Memory
            | OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI
    )
}

/// Hints to the cache name an address and neither read nor write, whatever the tables say of their operands.
fn touches_nothing(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Prefetch
            | M::Prefetchw
            | M::Prefetchwt1
            | M::Prefetchnta
            | M::Prefetcht0
            | M::Prefetcht1
            | M::Prefetcht2
            | M::Prefetchit0
            | M::Prefetchit1
            | M::Vgatherpf0dps
            | M::Vgatherpf0dpd
            | M::Vgatherpf0qps
            | M::Vgatherpf0qpd
            | M::Vgatherpf1dps
            | M::Vgatherpf1dpd
            | M::Vgatherpf1qps
            | M::Vgatherpf1qpd
            | M::Vscatterpf0dps
            | M::Vscatterpf0dpd
            | M::Vscatterpf0qps
            | M::Vscatterpf0qpd
            | M::Vscatterpf1dps
            | M::Vscatterpf1dpd
            | M::Vscatterpf1qps
            | M::Vscatterpf1qpd
            | M::Clflush
            | M::Clflushopt
            | M::Clwb
            | M::Cldemote
            | M::Invlpg
            | M::Lea
            | M::Nop
            | M::Reservednop
    )
}

fn kind_of(raw: &iced_x86::Instruction, access: OpAccess) -> Option<Kind> {
    let compare_exchange = matches!(
        raw.mnemonic(),
        Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b
    );
    match access {
        OpAccess::None | OpAccess::NoMemAccess => None,
        OpAccess::Read | OpAccess::CondRead => Some(Kind::Load),
        OpAccess::Write | OpAccess::CondWrite => Some(Kind::Store),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite if compare_exchange => {
            Some(Kind::CompareExchange)
        }
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => Some(Kind::Both),
    }
}

fn element_of(size: MemorySize) -> Element {
    match size.element_type() {
        MemorySize::Float32 => Element::F32,
        MemorySize::Float64 => Element::F64,
        _ => Element::Bits,
    }
}

fn masked(raw: &iced_x86::Instruction) -> bool {
    use Mnemonic as M;
    raw.has_op_mask()
        || matches!(
            raw.mnemonic(),
            M::Vmaskmovps
                | M::Vmaskmovpd
                | M::Vpmaskmovd
                | M::Vpmaskmovq
                | M::Maskmovq
                | M::Maskmovdqu
                | M::Vmaskmovdqu
        )
}

fn operand(
    raw: &iced_x86::Instruction,
    n: u32,
    kind: Kind,
    registers: Option<&Registers>,
) -> Operand {
    let size = raw.memory_size();
    let width = u16::try_from(size.size()).unwrap_or(0);
    let element = element_of(size);
    let plain = raw.op_kind(n) == OpKind::Memory;
    let bit_string = matches!(
        raw.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    ) && raw.op1_kind() == OpKind::Register;
    let access = if raw.memory_index().is_vector_register() && plain {
        Err(Hidden::Gather)
    } else if masked(raw) {
        Err(Hidden::Masked)
    } else if bit_string {
        Err(Hidden::BitString)
    } else if width == 0 || width > u16::from(MAX_WIDTH) {
        Err(Hidden::Width)
    } else {
        let known = registers.copied().unwrap_or_default();
        let value = |register: Register, _, _| match registers {
            None if register.is_gpr() => None,
            _ => known.value(register),
        };
        raw.virtual_address(n, 0, value)
            .and_then(|address| Access::new(address, width as u8, kind, element))
            .ok_or(Hidden::Base)
    };
    let base = raw.memory_base();
    let form = Form {
        field: plain && base.is_gpr() && raw.memory_index() == Register::None,
        stack: plain && base == Register::RSP,
        thread: plain && base == Register::R15,
        displacement: raw.memory_displacement64() as i64,
    };
    Operand {
        kind,
        width,
        element,
        access,
        form,
    }
}
