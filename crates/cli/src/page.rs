//! Reports in files, and the page of one in a browser.

use crate::failure::{Result, cannot};
use crate::{say, show};
use borescope_profile::Opened;
use borescope_report::HtmlOptions;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The page's name in the profile.
const NAME: &str = "report.html";

/// Makes the page of a profile in its directory, and opens it.
pub fn open(dir: &Path, profile: &Opened) -> Result<()> {
    let path = dir.join(NAME);
    to_file(&path, |file| {
        show::html(profile, &HtmlOptions::default(), file)
    })?;
    launch(&path);
    Ok(())
}

/// Opens a file as the desktop does; where there is none, it is only said where the file is.
pub fn launch(path: &Path) {
    let shown = path.display();
    match ::open::that_detached(path) {
        Ok(()) => say::note(format_args!("opening {shown}")),
        Err(_) => say::note(format_args!(
            "nothing here opens {shown} (no xdg-open, no desktop): open it in a browser yourself"
        )),
    }
}

/// Writes a file that has its name only when it is whole (but a pipe or device is written to).
pub fn to_file<T>(path: &Path, write: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
    let unwritable = |e: std::io::Error| {
        cannot!(
            "cannot write {}: {e}; --out FILE must be in a directory that can be written",
            path.display()
        )
    };
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        let mut file = File::options().write(true).open(path).map_err(unwritable)?;
        return write(&mut file);
    }
    let parent = path.parent().filter(|dir| *dir != Path::new(""));
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(parent.unwrap_or(Path::new(".")))
        .map_err(unwritable)?;
    let written = write(file.as_file_mut())?;
    file.persist(path).map_err(|e| unwritable(e.error))?;
    Ok(written)
}
