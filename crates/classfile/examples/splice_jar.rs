//! `splice_jar IN.jar OUT.jar`: inserts a call at every place of every method, after checking that a splice without edits gives
//! back the same bytes. Prints what was edited and, by reason, what was not.

#[path = "../tests/support/mod.rs"]
mod support;

use borescope_classfile::{ClassFile, Splicer};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use zip::write::SimpleFileOptions;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output] = &args[..] else {
        panic!("usage: splice_jar IN.jar OUT.jar")
    };
    let mut out = zip::ZipWriter::new(File::create(output).expect("output file"));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut outcome = support::Outcome::default();
    let (mut classes, mut unreadable) = (0, 0);
    for (name, bytes) in support::classes_of_jar(Path::new(input)) {
        classes += 1;
        out.start_file(&name, stored).expect("zip entry");
        match ClassFile::parse(&bytes) {
            Ok(class) => {
                assert_eq!(
                    Splicer::new(&class).finish(),
                    bytes,
                    "{name} changed without an edit"
                );
                out.write_all(&support::heavy(&bytes, &mut outcome))
                    .expect("zip entry");
            }
            Err(error) => {
                eprintln!("{name}: {error}");
                unreadable += 1;
                out.write_all(&bytes).expect("zip entry");
            }
        }
    }
    out.finish().expect("output file");
    println!(
        "{classes} classes, {unreadable} not read, {} methods edited",
        outcome.edited
    );
    for (reason, count) in outcome.plain {
        println!("{count} plain: {reason}");
    }
}
