//! What the witness agent recorded (format: `tests/witness/src/lib.rs`), and how to run it.

use crate::{java, output, witness_agent};
use std::path::Path;
use std::process::{Command, Output};

/// An executed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytecode index.
    pub bci: u16,
    /// It is the first instruction of a handler that has caught an exception.
    pub caught: bool,
}

/// How an activation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By a return instruction.
    Return,
    /// An exception left the method.
    Exception,
    /// It had not ended when the JVM did.
    Live,
}

/// A sequence of instructions that `count` activations of a method executed.
#[derive(Clone, Debug)]
pub struct Run {
    /// How many activations.
    pub count: u64,
    /// How they ended.
    pub end: End,
    /// What they executed.
    pub steps: Vec<Step>,
}

/// A method that ran.
#[derive(Clone, Debug)]
pub struct Method {
    /// Index into [`Record::classes`].
    pub class: usize,
    /// Name.
    pub name: String,
    /// Descriptor.
    pub descriptor: String,
    /// Its activations.
    pub runs: Vec<Run>,
}

/// Everything the witness saw of one JVM.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Class name with slashes, class bytes: each pair once.
    pub classes: Vec<(String, Vec<u8>)>,
    /// The classes' methods, also those that did not run.
    pub methods: Vec<Method>,
}

impl Record {
    /// Reads a record; an error is a record that is cut off, or that the agent itself says is wrong.
    pub fn parse(text: &str) -> Result<Record, String> {
        let mut record = Record::default();
        let mut ended = false;
        for (number, line) in text.lines().enumerate() {
            let fields: Vec<&str> = line.split('\t').collect();
            let bad = || format!("line {} of the record: {:.200}", number + 1, line);
            match fields[..] {
                ["class", _, name, hex] => {
                    record
                        .classes
                        .push((name.to_owned(), from_hex(hex).ok_or_else(bad)?));
                }
                ["method", _, class, name, descriptor] => record.methods.push(Method {
                    class: class.parse().map_err(|_| bad())?,
                    name: name.to_owned(),
                    descriptor: descriptor.to_owned(),
                    runs: Vec::new(),
                }),
                ["run", method, count, end, steps] => {
                    let index: usize = method.parse().map_err(|_| bad())?;
                    let run = Run {
                        count: count.parse().map_err(|_| bad())?,
                        end: match end {
                            "Return" => End::Return,
                            "Exception" => End::Exception,
                            "Live" => End::Live,
                            _ => return Err(bad()),
                        },
                        steps: steps
                            .split_whitespace()
                            .map(step)
                            .collect::<Option<_>>()
                            .ok_or_else(bad)?,
                    };
                    record
                        .methods
                        .get_mut(index)
                        .ok_or_else(bad)?
                        .runs
                        .push(run);
                }
                ["end"] => ended = true,
                _ => return Err(bad()),
            }
        }
        if ended {
            Ok(record)
        } else {
            Err("the record is cut off: the JVM did not end in order".to_owned())
        }
    }
}

fn step(text: &str) -> Option<Step> {
    let (caught, bci) = match text.strip_prefix('!') {
        Some(bci) => (true, bci),
        None => (false, text),
    };
    Some(Step {
        bci: bci.parse().ok()?,
        caught,
    })
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex
        .chars()
        .map(|c| c.to_digit(16).map(|d| d as u8))
        .collect();
    Some(
        digits?
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
            .collect(),
    )
}

/// Runs `java ARGS` with the witness watching the classes that match `globs`, after `adjust`ing the command; returns what the
/// program printed and the record.
pub fn watch(
    jdk: u32,
    globs: &[&str],
    args: &[&str],
    scratch: &Path,
    adjust: impl FnOnce(&mut Command),
) -> (Output, Record) {
    let file = scratch.join("witness.txt");
    let mut command = Command::new(java(jdk));
    // The interpreter fuses pairs such as two loads into one instruction, of which the second is never stepped.
    command.args(["-Xint", "-XX:-RewriteFrequentPairs"]);
    command.arg(format!(
        "-agentpath:{}=classes={},out={}",
        witness_agent().display(),
        globs.join(":"),
        file.display()
    ));
    adjust(command.args(args));
    let run = output(&mut command);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| {
        panic!(
            "the witness wrote no record: {error}\n{}",
            String::from_utf8_lossy(&run.stderr)
        )
    });
    let record = Record::parse(&text).unwrap_or_else(|error| panic!("the witness failed: {error}"));
    (run, record)
}
