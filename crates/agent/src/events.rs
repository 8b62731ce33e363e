//! Start: looks whether this is a JVM for us, and hands over to the lens that was asked for.

use crate::jvmti::Jvmti;
use crate::jvmti::sys::JavaVm;
use crate::options::{Lens, Options};
use crate::{paths, sites, vm::feature_version};

/// Starts in Agent_OnLoad; the error is one line for the user.
///
/// # Safety
/// `vm` comes from the JVM.
pub unsafe fn start(vm: JavaVm, text: &str) -> Result<(), String> {
    let options = Options::parse(text)?;
    // SAFETY: by contract.
    let jvmti = unsafe { Jvmti::new(vm) }.ok_or("this JVM has no JVMTI 11; borescope needs a HotSpot JDK 17 or newer. The program runs without it")?;
    let vm_name = jvmti.property(c"java.vm.name").unwrap_or_default();
    let version = jvmti.property(c"java.vm.version").unwrap_or_default();
    if !(vm_name.contains("HotSpot") || vm_name.contains("OpenJDK")) {
        return Err(format!(
            "`{vm_name}` is not HotSpot; borescope needs a HotSpot JDK 17 or newer. The program runs without it"
        ));
    }
    if feature_version(&version).is_none_or(|v| v < 17) {
        return Err(format!(
            "JDK {version} is too old; borescope needs JDK 17 or newer. The program runs without it"
        ));
    }
    match options.lens {
        Lens::Paths => paths::start(jvmti, options),
        Lens::Sites => sites::start(jvmti, options),
    }
}
