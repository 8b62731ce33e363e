//! Instructions as HotSpot's compilers emit them: what they access, and what they do not.

use borescope_waste::analysis::text::text;
use borescope_waste::handler::barrier::is_store_check;
use borescope_waste::handler::code::{Hidden, Operand};
use borescope_waste::*;

const AT: u64 = 0x7F00_0000_0000;

/// rax = 0x1000, rcx = 0x2000, ... r15 = 0x10000.
fn registers() -> Registers {
    Registers {
        general: std::array::from_fn(|n| (n as u64 + 1) * 0x1000),
        rip: AT,
        ..Registers::default()
    }
}

fn operands(bytes: &[u8]) -> Vec<Operand> {
    let mut reader = Reader::new();
    let instruction = reader
        .at(&Code::new(AT, bytes), AT)
        .expect("an instruction");
    assert_eq!(
        instruction.bytes.get(),
        bytes,
        "{:?}",
        text(&instruction.bytes)
    );
    reader
        .operands(&instruction, Some(&registers()))
        .iter()
        .collect()
}

/// The one access of an instruction.
fn access(bytes: &[u8]) -> (u64, u8, Kind, Element) {
    let all = operands(bytes);
    assert_eq!(all.len(), 1, "{all:?}");
    let access = all[0].access.unwrap();
    (
        access.address(),
        access.width(),
        access.kind(),
        access.element(),
    )
}

fn hidden(bytes: &[u8]) -> (Hidden, Kind, u16) {
    let all = operands(bytes);
    assert_eq!(all.len(), 1, "{all:?}");
    (all[0].access.unwrap_err(), all[0].kind, all[0].width)
}

use Element::{Bits, F32, F64};
use Kind::{Both, CompareExchange, Load, Store};

#[test]
fn loads_and_stores() {
    // mov r10d, [rsi+8]; mov rax, [rbx+rcx*8+0x10]; movzx eax, word [r9+0xc]; movsx rdx, byte [rdi-1]
    assert_eq!(access(&[0x44, 0x8B, 0x56, 0x08]), (0x7008, 4, Load, Bits));
    assert_eq!(
        access(&[0x48, 0x8B, 0x44, 0xCB, 0x10]),
        (0x4000 + 0x2000 * 8 + 0x10, 8, Load, Bits)
    );
    assert_eq!(
        access(&[0x41, 0x0F, 0xB7, 0x41, 0x0C]),
        (0xA00C, 2, Load, Bits)
    );
    assert_eq!(
        access(&[0x48, 0x0F, 0xBE, 0x57, 0xFF]),
        (0x7FFF, 1, Load, Bits)
    );
    // mov [r12+r8*8+0x18], edx, as with compressed references; mov word [rax], 5; mov byte [r13], cl
    assert_eq!(
        access(&[0x43, 0x89, 0x54, 0xC4, 0x18]),
        (0xD000 + 0x9000 * 8 + 0x18, 4, Store, Bits)
    );
    assert_eq!(
        access(&[0x66, 0xC7, 0x00, 0x05, 0x00]),
        (0x1000, 2, Store, Bits)
    );
    assert_eq!(access(&[0x41, 0x88, 0x4D, 0x00]), (0xE000, 1, Store, Bits));
    // cmp rax, [rcx] loads; cmp dword [rsi+8], imm loads; test [r11], eax loads; add [rdx], eax does both; add eax, [rdx] loads
    assert_eq!(access(&[0x48, 0x3B, 0x01]), (0x2000, 8, Load, Bits));
    assert_eq!(
        access(&[0x81, 0x7E, 0x08, 1, 2, 3, 0]),
        (0x7008, 4, Load, Bits)
    );
    assert_eq!(access(&[0x41, 0x85, 0x03]), (0xC000, 4, Load, Bits));
    assert_eq!(access(&[0x01, 0x02]), (0x3000, 4, Both, Bits));
    assert_eq!(access(&[0x03, 0x02]), (0x3000, 4, Load, Bits));
    // inc dword [rax]; setne [rcx]; cmove rax, [rdx]: always loads
    assert_eq!(access(&[0xFF, 0x00]), (0x1000, 4, Both, Bits));
    assert_eq!(access(&[0x0F, 0x95, 0x01]), (0x2000, 1, Store, Bits));
    assert_eq!(access(&[0x48, 0x0F, 0x44, 0x02]), (0x3000, 8, Load, Bits));
    // mov rax, [rip+0x10]: from behind the instruction
    assert_eq!(
        access(&[0x48, 0x8B, 0x05, 0x10, 0, 0, 0]),
        (AT + 7 + 0x10, 8, Load, Bits)
    );
}

#[test]
fn floating_point_and_vectors() {
    // movsd xmm0, [rax+0x10]; movsd [rax], xmm1; movss; addsd xmm0, [rcx]; vaddss; cvtsi2sd xmm0, dword [rax]
    assert_eq!(
        access(&[0xF2, 0x0F, 0x10, 0x40, 0x10]),
        (0x1010, 8, Load, F64)
    );
    assert_eq!(access(&[0xF2, 0x0F, 0x11, 0x08]), (0x1000, 8, Store, F64));
    assert_eq!(access(&[0xF3, 0x0F, 0x10, 0x00]), (0x1000, 4, Load, F32));
    assert_eq!(access(&[0xF2, 0x0F, 0x58, 0x01]), (0x2000, 8, Load, F64));
    assert_eq!(access(&[0xC5, 0xFA, 0x58, 0x01]), (0x2000, 4, Load, F32));
    assert_eq!(access(&[0xF2, 0x0F, 0x2A, 0x00]), (0x1000, 4, Load, Bits));
    // vmovdqu ymm0, [rax]: integers, as far as the instruction says; vmovups [rax], ymm0; vaddpd ymm0, ymm0, [rax]
    assert_eq!(access(&[0xC5, 0xFE, 0x6F, 0x00]), (0x1000, 32, Load, Bits));
    assert_eq!(access(&[0xC5, 0xFC, 0x11, 0x00]), (0x1000, 32, Store, F32));
    assert_eq!(access(&[0xC5, 0xFD, 0x58, 0x00]), (0x1000, 32, Load, F64));
    // vmovdqu64 zmm0, [rax]; vmovdqu8 xmm... ; vaddpd zmm0, zmm0, qword [rax]{1to8}: one element
    assert_eq!(
        access(&[0x62, 0xF1, 0xFE, 0x48, 0x6F, 0x00]),
        (0x1000, 64, Load, Bits)
    );
    assert_eq!(
        access(&[0x62, 0xF1, 0xFD, 0x58, 0x58, 0x00]),
        (0x1000, 8, Load, F64)
    );
    // movq xmm0, [rax]; vpbroadcastd ymm0, [rax]
    assert_eq!(access(&[0xF3, 0x0F, 0x7E, 0x00]), (0x1000, 8, Load, Bits));
    assert_eq!(
        access(&[0xC4, 0xE2, 0x7D, 0x58, 0x00]),
        (0x1000, 4, Load, Bits)
    );
}

#[test]
fn reads_and_writes_at_once() {
    // lock cmpxchg [rdx], rcx; lock xadd [rdx], eax; xchg [rdx], rax; lock cmpxchg16b [rsi]
    assert_eq!(
        access(&[0xF0, 0x48, 0x0F, 0xB1, 0x0A]),
        (0x3000, 8, CompareExchange, Bits)
    );
    assert_eq!(access(&[0xF0, 0x0F, 0xC1, 0x02]), (0x3000, 4, Both, Bits));
    assert_eq!(access(&[0x48, 0x87, 0x02]), (0x3000, 8, Both, Bits));
    assert_eq!(
        access(&[0xF0, 0x48, 0x0F, 0xC7, 0x0E]),
        (0x7000, 16, CompareExchange, Bits)
    );
}

#[test]
fn string_instructions() {
    // rep stosq; rep movsq; movsb; repe cmpsb; repne scasb; lodsd
    assert_eq!(access(&[0xF3, 0x48, 0xAB]), (0x8000, 8, Store, Bits));
    let moves: Vec<_> = operands(&[0xF3, 0x48, 0xA5])
        .iter()
        .map(|o| o.access.unwrap())
        .collect();
    let of = |address, kind| Access::new(address, 8, kind, Bits).unwrap();
    assert_eq!(moves, [of(0x7000, Load), of(0x8000, Store)]);
    assert_eq!(operands(&[0xA4]).len(), 2);
    assert!(operands(&[0xF3, 0xA6]).iter().all(|o| o.kind == Load));
    assert_eq!(access(&[0xF2, 0xAE]), (0x8000, 1, Load, Bits));
    assert_eq!(access(&[0xAD]), (0x7000, 4, Load, Bits));
    // rcx = 0: nothing.
    let mut none = registers();
    none.general[1] = 0;
    let mut reader = Reader::new();
    let instruction = reader.at(&Code::new(AT, &[0xF3, 0x48, 0xAB]), AT).unwrap();
    assert!(reader.operands(&instruction, Some(&none)).is_empty());
}

#[test]
fn what_accesses_nothing() {
    let none: [&[u8]; 12] = [
        // prefetchnta [rax+0xc0]; prefetchw [r10]; prefetcht0
        &[0x0F, 0x18, 0x80, 0xC0, 0, 0, 0],
        &[0x41, 0x0F, 0x0D, 0x0A],
        &[0x0F, 0x18, 0x08],
        // lea rax, [rbx+rcx*8+0x10]; nop [rax+rax+0]; a nop of 9 bytes
        &[0x48, 0x8D, 0x44, 0xCB, 0x10],
        &[0x0F, 0x1F, 0x44, 0x00, 0x00],
        &[0x66, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
        // clflush, clwb, endbr64, mov rax, rcx, push rax, ret
        &[0x0F, 0xAE, 0x38],
        &[0x66, 0x0F, 0xAE, 0x30],
        &[0xF3, 0x0F, 0x1E, 0xFA],
        &[0x48, 0x89, 0xC8],
        &[0x50],
        &[0xC3],
    ];
    for bytes in none {
        assert_eq!(operands(bytes), [], "{bytes:x?}");
    }
}

#[test]
fn what_the_general_registers_do_not_tell() {
    // vmaskmovps ymm0, ymm1, [rax]; vmovdqu32 zmm0{k1}, [rax]; vmovdqu32 [rax]{k1}, zmm0
    assert_eq!(
        hidden(&[0xC4, 0xE2, 0x75, 0x2C, 0x00]),
        (Hidden::Masked, Load, 32)
    );
    assert_eq!(
        hidden(&[0x62, 0xF1, 0x7E, 0x49, 0x6F, 0x00]),
        (Hidden::Masked, Load, 64)
    );
    assert_eq!(
        hidden(&[0x62, 0xF1, 0x7E, 0x49, 0x7F, 0x00]),
        (Hidden::Masked, Store, 64)
    );
    // vgatherdps ymm0, [rax+ymm2*4], ymm1; vpscatterdd [rax+zmm2*4]{k1}, zmm0
    assert_eq!(
        hidden(&[0xC4, 0xE2, 0x75, 0x92, 0x04, 0x90]).0,
        Hidden::Gather
    );
    assert_eq!(
        hidden(&[0x62, 0xF2, 0x7D, 0x49, 0xA0, 0x04, 0x90]).0,
        Hidden::Gather
    );
    // bt [rax], ecx; but bt dword [rax], 3 is plain
    assert_eq!(hidden(&[0x0F, 0xA3, 0x08]).0, Hidden::BitString);
    assert_eq!(access(&[0x0F, 0xBA, 0x20, 0x03]), (0x1000, 4, Load, Bits));
    // fxsave [rax]; mov rax, fs:[0x10]
    assert_eq!(hidden(&[0x0F, 0xAE, 0x00]).0, Hidden::Width);
    assert_eq!(
        hidden(&[0x64, 0x48, 0x8B, 0x04, 0x25, 0x10, 0, 0, 0]).0,
        Hidden::Base
    );
}

#[test]
fn instructions_in_words() {
    let said = |bytes: &[u8]| text(&Bytes::new(bytes).unwrap());
    assert_eq!(
        said(&[0x44, 0x8B, 0x56, 0x08]).unwrap(),
        "mov r10d, [rsi+0x8]"
    );
    assert_eq!(
        said(&[0xF2, 0x0F, 0x11, 0x08]).unwrap(),
        "movsd [rax], xmm1"
    );
    assert_eq!(said(&[0x48, 0x8B]), None);
    assert_eq!(text(&Bytes::default()), None);
    assert!(Bytes::new(&[]).is_none() && Bytes::new(&[0; 16]).is_none());
}

fn scope() -> Scope {
    Scope {
        heap: (0x1000, 0x8000),
        stack: (0x7800, 0x9000),
        layout: Layout::COMPRESSED,
    }
}

#[test]
fn filters() {
    let judge = |bytes: &[u8], object| {
        let operand = operands(bytes)[0];
        scope()
            .judge(&operand, object)
            .map(|access| access.address())
    };
    let class_word: &[u8] = &[0x44, 0x8B, 0x56, 0x08];
    let at_12: &[u8] = &[0x44, 0x8B, 0x56, 0x0C];
    // By the instruction: mov r10d, [rsi+8] loads the class word, and nothing else can be there.
    assert_eq!(judge(class_word, None), Err(Refusal::Header));
    assert_eq!(
        judge(&[0x81, 0x7E, 0x08, 1, 2, 3, 0], None),
        Err(Refusal::Header)
    );
    // [rsi+12] may be a field; a store at 8, a load of 8 bytes or with an index is no class word.
    assert_eq!(judge(at_12, None), Ok(0x700C));
    assert_eq!(judge(&[0x44, 0x89, 0x56, 0x08], None), Ok(0x7008));
    assert_eq!(judge(&[0x48, 0x8B, 0x46, 0x08], None), Ok(0x7008));
    // By the object.
    let array = Some(Object {
        start: 0x7000,
        array: true,
    });
    let plain = Some(Object {
        start: 0x7000,
        array: false,
    });
    assert_eq!(judge(at_12, array), Err(Refusal::ArrayLength));
    assert_eq!(judge(at_12, plain), Ok(0x700C));
    assert_eq!(judge(class_word, plain), Err(Refusal::Header));
    assert_eq!(
        judge(
            class_word,
            Some(Object {
                start: 0x6F00,
                array: true
            })
        ),
        Ok(0x7008),
        "an element"
    );
    // mov rax, [rsi]: the mark word.
    assert_eq!(judge(&[0x48, 0x8B, 0x06], plain), Err(Refusal::Header));
    // mov rax, [rsp+8]; an address in the stack; outside of the heap; across its end; a gather
    assert_eq!(
        judge(&[0x48, 0x8B, 0x44, 0x24, 0x08], None),
        Err(Refusal::Stack)
    );
    assert_eq!(judge(&[0x48, 0x8B, 0x07], None), Err(Refusal::Stack));
    assert_eq!(judge(&[0x48, 0x8B, 0x00], None), Ok(0x1000));
    assert_eq!(
        judge(&[0x48, 0x8B, 0x40, 0xFF], None),
        Err(Refusal::OutsideHeap)
    );
    assert_eq!(
        judge(&[0x49, 0x8B, 0x41, 0x08], None),
        Err(Refusal::OutsideHeap)
    );
    assert_eq!(
        judge(&[0xC4, 0xE2, 0x75, 0x92, 0x04, 0x90], None),
        Err(Refusal::Hidden)
    );
    // Wide class words, and compact headers, whose array length is at 8.
    let wide = Scope {
        layout: Layout::WIDE,
        ..scope()
    };
    assert_eq!(
        wide.judge(&operands(&[0x48, 0x8B, 0x46, 0x08])[0], None),
        Err(Refusal::Header)
    );
    assert!(wide.judge(&operands(class_word)[0], None).is_ok());
    let compact = Scope {
        layout: Layout::COMPACT,
        ..scope()
    };
    assert_eq!(
        compact.judge(&operands(class_word)[0], array),
        Err(Refusal::ArrayLength)
    );
    assert_eq!(
        compact.judge(&operands(&[0x8B, 0x46, 0x04])[0], None),
        Err(Refusal::Header)
    );
}

#[test]
fn the_look_of_generational_zgc() {
    let check = |bytes: &[u8]| {
        let mut reader = Reader::new();
        let code = Code::new(AT, bytes);
        let first = reader.at(&code, AT).unwrap();
        is_store_check(&mut reader, &code, &first)
    };
    let test = [0xF7, 0x46, 0x10, 0, 0, 0x0F, 0]; // test dword [rsi+0x10], bits
    let jump = [0x0F, 0x85, 0x40, 0, 0, 0]; // jne slow
    let colour = [0x48, 0xC1, 0xE0, 0x10, 0x48, 0x0D, 1, 0, 0, 0]; // shl rax, 16; or rax, bits
    let store = [0x48, 0x89, 0x46, 0x10]; // mov [rsi+0x10], rax
    assert!(check(&[&test[..], &jump, &colour, &store].concat()));
    // cmp word [rsi+0x10], bits; jne; xchg [rsi+0x10], rax
    let compare = [0x66, 0x81, 0x7E, 0x10, 0x34, 0x12];
    assert!(check(
        &[&compare[..], &jump, &colour, &[0x48, 0x87, 0x46, 0x10]].concat()
    ));
    // The program's own: same width; another field; a load; no jump; base changed between; nothing behind.
    assert!(!check(&[&test[..], &jump, &[0x89, 0x46, 0x10]].concat()));
    assert!(!check(
        &[&test[..], &jump, &[0x48, 0x89, 0x46, 0x18]].concat()
    ));
    assert!(!check(
        &[&test[..], &jump, &[0x48, 0x8B, 0x46, 0x10]].concat()
    ));
    assert!(!check(&[&test[..], &store].concat()));
    assert!(!check(
        &[&test[..], &jump, &[0x48, 0xFF, 0xC6], &store].concat()
    ));
    assert!(!check(&test));
    // cmp dword [rsi+0x10], imm: an int field of the program.
    assert!(!check(
        &[&[0x81, 0x7E, 0x10, 1, 2, 3, 0][..], &jump, &store].concat()
    ));
}
