//! What C2 makes of a method's innermost loops, plain and with probes: instructions, and how many of them read or write the stack. HotSpot's calling
//! convention keeps no register across a call, so what is live across a probe's slow path lies on the stack.

use crate::evaluation::chosen;
use crate::run::{self, Runner};
use anyhow::{Context as _, Result, ensure};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Options.
#[derive(clap::Args)]
pub struct Args {
    /// Program
    #[arg(long, default_value = "sparse")]
    program: String,
    /// Method, as `-XX:CompileCommand` takes it; what C2 makes of it last is shown
    #[arg(long, default_value = "jnt.scimark2.SparseCompRow::matmult")]
    method: String,
    /// JDK
    #[arg(long, default_value_t = 25)]
    jdk: u32,
    /// Length of sequences
    #[arg(short, long, default_value_t = 4)]
    k: u32,
}

/// An instruction: its address, where it jumps to, and whether it touches the stack.
struct Instruction {
    at: u64,
    to: Option<u64>,
    stack: bool,
}

/// Prints a table.
pub fn run(args: &Args) -> Result<()> {
    let runner = Runner::new(300)?;
    let programs = chosen(std::slice::from_ref(&args.program))?;
    let program = programs.first().context("a program")?;
    println!(
        "{} of {}, JDK {}, k = {}: innermost loops of C2's code, instructions (of these with an operand on the stack)\n",
        args.method, program.name, args.jdk, args.k
    );
    for (name, with_agent) in [("plain", false), ("automaton", true)] {
        let files = tempfile::tempdir()?;
        let out = files.path().join("out");
        let options = format!("lens=paths,k={},out={}", args.k, out.display());
        let print = format!("-XX:CompileCommand=print,{}", args.method);
        // C1's code is printed, too, if there is any.
        let jvm = [
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:-TieredCompilation",
            &print,
        ];
        let arguments = program.arguments(files.path());
        let all = jvm.iter().map(|o| (*o).to_owned()).chain(arguments);
        let ran = runner.java(
            args.jdk,
            with_agent.then_some(options.as_str()),
            all.map(OsString::from),
        )?;
        ran.well(program)?;
        ensure!(
            !with_agent || run::spool(&out).is_some(),
            "no spool: {}",
            ran.stderr
        );
        let (start, code) = printed(&String::from_utf8_lossy(&ran.stdout)).with_context(|| {
            format!(
                "the JVM printed no machine code of `{}`: is it compiled by C2 in this program?",
                args.method
            )
        })?;
        let raw = files.path().join("code");
        std::fs::write(&raw, code)?;
        let loops: Vec<String> = innermost(&disassembled(start, &raw)?)
            .iter()
            .map(|body| {
                let stack = body.iter().filter(|i| i.stack).count();
                format!("{} ({stack})", body.len())
            })
            .collect();
        println!("- {name}: {}", loops.join(", "));
    }
    Ok(())
}

/// Address and bytes of the last method in the output of `-XX:CompileCommand=print`.
fn printed(output: &str) -> Option<(u64, Vec<u8>)> {
    let (_, last) = output.rsplit_once("[MachCode]")?;
    let (body, _) = last.split_once("[/MachCode]")?;
    let mut start = None;
    let mut bytes = Vec::new();
    for line in body.lines() {
        // `  0x00007fb1b8cbfe80: e8cb cefb | 0366 ...`; comments begin with `;`.
        let Some((address, hex)) = line
            .trim()
            .strip_prefix("0x")
            .and_then(|l| l.split_once(": "))
        else {
            continue;
        };
        let digits: String = hex.chars().filter(|c| !matches!(c, ' ' | '|')).collect();
        let pairs = digits.as_bytes().chunks_exact(2);
        let parsed: Option<Vec<u8>> = pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        if let Some(parsed) = parsed {
            start.get_or_insert(u64::from_str_radix(address, 16).ok()?);
            bytes.extend(parsed);
        }
    }
    Some((start?, bytes))
}

/// As objdump (binutils) reads it.
fn disassembled(start: u64, code: &Path) -> Result<Vec<Instruction>> {
    let output = Command::new("objdump")
        .args([
            "-D",
            "-b",
            "binary",
            "-m",
            "i386:x86-64",
            "-M",
            "intel",
            "--no-show-raw-insn",
        ])
        .arg(format!("--adjust-vma={start:#x}"))
        .arg(code)
        .output()
        .context("cannot run objdump; it comes with binutils")?;
    ensure!(
        output.status.success(),
        "objdump failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let instruction = |line: &str| {
        let (at, rest) = line.trim().split_once(":\t")?;
        let jump = rest.starts_with('j');
        let target = rest.split_whitespace().last()?.strip_prefix("0x");
        Some(Instruction {
            at: u64::from_str_radix(at, 16).ok()?,
            to: target
                .filter(|_| jump)
                .and_then(|t| u64::from_str_radix(t, 16).ok()),
            stack: rest.contains("[rsp"),
        })
    };
    Ok(text.lines().filter_map(instruction).collect())
}

/// Bodies of the loops that hold no other loop: from a jump's target down to the jump.
fn innermost(code: &[Instruction]) -> Vec<&[Instruction]> {
    let mut loops: Vec<(usize, usize)> = Vec::new();
    for (last, jump) in code.iter().enumerate() {
        let Some(to) = jump.to.filter(|to| *to <= jump.at) else {
            continue;
        };
        let Ok(first) = code.binary_search_by_key(&to, |i| i.at) else {
            continue;
        };
        loops.push((first, last));
    }
    let inner = |&(first, last): &(usize, usize)| {
        !loops
            .iter()
            .any(|&(f, l)| (f, l) != (first, last) && first <= f && l <= last)
    };
    loops
        .iter()
        .copied()
        .filter(inner)
        .map(|(first, last)| &code[first..=last])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_jvm_prints() {
        let text = "x\n[MachCode]\n  # comment\n  0x00007fb1b8cbfe80: ;   {runtime_call}\n  0x00007fb1b8cbfe80: e8cb cefb | 03\n\n  0x00007fb1b8cbfe85: 66 \n[/MachCode]\n";
        assert_eq!(
            printed(text),
            Some((0x7fb1_b8cb_fe80, vec![0xe8, 0xcb, 0xce, 0xfb, 3, 0x66]))
        );
        assert_eq!(printed("nothing"), None);
    }

    #[test]
    fn finds_loops_that_hold_no_other() {
        let at = |at, to| Instruction {
            at,
            to,
            stack: false,
        };
        // 0: 1: 2: jl 1; 3: jl 0; 4: jmp 9 (forward); 5: jl 5.
        let code = [
            at(0, None),
            at(1, None),
            at(2, Some(1)),
            at(3, Some(0)),
            at(4, Some(9)),
            at(5, Some(5)),
        ];
        let found: Vec<(u64, usize)> = innermost(&code)
            .iter()
            .map(|b| (b[0].at, b.len()))
            .collect();
        assert_eq!(found, [(1, 2), (5, 1)]);
    }
}
