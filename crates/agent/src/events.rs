//! Start: looks whether this is a JVM for us, and hands over to the lens that was asked for.

use crate::jvmti::sys::JavaVm;
use crate::jvmti::{Jni, Jvmti};
use crate::options::{Lens, Options};
use crate::{paths, say, sites, spool, vm::feature_version, waste};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// The file in the output directory that says why an agent that was to be attached refused.
pub const REFUSED: &str = ".refused";
/// How long a JVM may take until it is up.
const STARTING: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(10);
/// What a user who starts the program reads behind the reason.
const GOES_ON: &str = ". The program runs without borescope";

/// Starts in Agent_OnLoad; the error is one line for the user.
///
/// # Safety
/// `vm` comes from the JVM.
pub unsafe fn start(vm: JavaVm, text: &str) -> Result<(), String> {
    let options = Options::parse(text)?;
    // SAFETY: by contract.
    let found = unsafe { Jvmti::new(vm) };
    let jvmti = suitable(found).map_err(|why| why + GOES_ON)?;
    match options.lens {
        Lens::Paths => paths::start(jvmti, options),
        Lens::Sites => sites::start(jvmti, options),
        Lens::Waste => waste::start(jvmti, options),
    }
}

/// Starts in Agent_OnAttach; false = it cannot be, and who asked can read why.
///
/// # Safety
/// `vm` comes from the JVM, and this is a thread of its.
pub unsafe fn attach(vm: JavaVm, text: &str) -> bool {
    let options = match read(text).and_then(|text| Options::parse(&text)) {
        Ok(options) => options,
        Err(why) => {
            say(&why); // Nobody knows whose directory it would be.
            return false;
        }
    };
    let out = options.out.clone();
    // SAFETY: by contract.
    match unsafe { begin(vm, options) } {
        Ok(()) => true,
        Err(why) => {
            if !leave_word(Path::new(&out), &why) {
                say(&why);
            }
            false
        }
    }
}

/// # Safety
/// As [`attach`].
unsafe fn begin(vm: JavaVm, options: Options) -> Result<(), String> {
    // A JVM takes requests before it is up, and has no JVMTI until then (JvmtiExport::get_jvmti_interface).
    let looks = STARTING.as_millis() / STEP.as_millis();
    let found = (0..looks).find_map(|_| {
        // SAFETY: by contract.
        let jvmti = unsafe { Jvmti::new(vm) };
        jvmti.or_else(|| {
            std::thread::sleep(STEP);
            None
        })
    });
    let jvmti = suitable(found)?;
    // SAFETY: by contract.
    let jni = unsafe { Jni::of(vm) }.ok_or("this JVM has no JNI 10")?;
    match options.lens {
        Lens::Paths => Err("the paths lens cannot be attached in this version: start the program with it, `borescope paths -- java ...`".into()),
        Lens::Sites => sites::attach(jvmti, jni, options),
        Lens::Waste => Err("the waste lens cannot be attached in this version: start the program with it, `borescope waste -- java ...`".into()),
    }
}

/// The options: `@FILE` stands for those in a file, since the attach protocol carries 1,024 bytes.
fn read(text: &str) -> Result<String, String> {
    match text.strip_prefix('@') {
        Some(file) => {
            fs::read_to_string(file).map_err(|e| format!("cannot read options in `{file}`: {e}"))
        }
        None => Ok(text.to_owned()),
    }
}

fn leave_word(out: &Path, why: &str) -> bool {
    spool::create_file(out, REFUSED).is_ok_and(|mut file| file.write_all(why.as_bytes()).is_ok())
}

/// Whether this JVM is one for us.
fn suitable(found: Option<Jvmti>) -> Result<Jvmti, String> {
    let jvmti =
        found.ok_or("this JVM has no JVMTI 11; borescope needs a HotSpot JDK 17 or newer")?;
    let vm_name = jvmti.property(c"java.vm.name").unwrap_or_default();
    let version = jvmti.property(c"java.vm.version").unwrap_or_default();
    if !(vm_name.contains("HotSpot") || vm_name.contains("OpenJDK")) {
        return Err(format!(
            "`{vm_name}` is not HotSpot; borescope needs a HotSpot JDK 17 or newer"
        ));
    }
    if feature_version(&version).is_none_or(|v| v < 17) {
        return Err(format!(
            "JDK {version} is too old; borescope needs JDK 17 or newer"
        ));
    }
    Ok(jvmti)
}
