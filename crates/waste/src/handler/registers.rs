//! The general registers of a stopped thread.

use iced_x86::Register;

/// Carry, parity, zero, sign and overflow flag in RFLAGS.
const CF: u64 = 1 << 0;
const PF: u64 = 1 << 2;
const ZF: u64 = 1 << 6;
const SF: u64 = 1 << 7;
const DF: u64 = 1 << 10;
const OF: u64 = 1 << 11;

/// Register values. A signal's context has them all, a sample of the kernel those that were asked for (the rest is 0 and must not be used).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// In the order of their encoding: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    pub general: [u64; 16],
    /// The instruction to execute next.
    pub rip: u64,
    /// RFLAGS.
    pub flags: u64,
    /// Bases of fs and gs, if known. Compiled Java code does not use them.
    pub fs_base: Option<u64>,
    /// See `fs_base`.
    pub gs_base: Option<u64>,
}

impl Registers {
    /// The stack pointer.
    pub fn rsp(&self) -> u64 {
        self.general[4]
    }

    pub(crate) fn rcx(&self) -> u64 {
        self.general[1]
    }

    /// The zero flag.
    pub fn zero(&self) -> bool {
        self.flags & ZF != 0
    }

    /// The direction flag: string instructions go down.
    pub fn down(&self) -> bool {
        self.flags & DF != 0
    }

    /// The value of a register that stands in an address; `None` for vectors and what is not known.
    pub(crate) fn value(&self, register: Register) -> Option<u64> {
        match register {
            // Their bases are 0 in 64-bit mode.
            Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
            Register::FS => self.fs_base,
            Register::GS => self.gs_base,
            _ if register.is_gpr() => {
                let full = *self.general.get(register.full_register().number())?;
                Some(match register.size() {
                    8 => full,
                    4 => full & 0xFFFF_FFFF,
                    2 => full & 0xFFFF,
                    _ => full & 0xFF,
                })
            }
            _ => None,
        }
    }

    /// Whether a condition holds (Intel SDM volume 1, appendix B).
    pub(crate) fn holds(&self, condition: iced_x86::ConditionCode) -> Option<bool> {
        use iced_x86::ConditionCode as C;
        let flag = |bit: u64| self.flags & bit != 0;
        let less = flag(SF) != flag(OF);
        Some(match condition {
            C::o => flag(OF),
            C::no => !flag(OF),
            C::b => flag(CF),
            C::ae => !flag(CF),
            C::e => flag(ZF),
            C::ne => !flag(ZF),
            C::be => flag(CF) || flag(ZF),
            C::a => !(flag(CF) || flag(ZF)),
            C::s => flag(SF),
            C::ns => !flag(SF),
            C::p => flag(PF),
            C::np => !flag(PF),
            C::l => less,
            C::ge => !less,
            C::le => flag(ZF) || less,
            C::g => !(flag(ZF) || less),
            C::None => return None,
        })
    }
}
