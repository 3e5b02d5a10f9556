//! Copies the directory with a store's keys. It contains files only, and stays private. A server may make a key meanwhile:
//! a file that it has not finished is left out.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use super::{CopyError, Unfinished, rename, sync};
use crate::sqlite::files::{
    file_lock::FILE_MODE,
    key_folder::{FOLDER_MODE, UNFINISHED},
};

/// Copies the directory, if there is one; returns how many files it has.
pub(super) fn copy(from: &Path, to: &Path) -> Result<usize, CopyError> {
    if !from.is_dir() {
        return Ok(0);
    }
    let unfinished = Unfinished::directory(to, FOLDER_MODE)?;
    let mut files = 0;
    for entry in fs::read_dir(from).map_err(CopyError::file(from))? {
        let entry = entry.map_err(CopyError::file(from))?;
        let path = entry.path();
        if path.as_os_str().as_encoded_bytes().ends_with(UNFINISHED.as_bytes()) {
            continue;
        }
        copy_file(&path, &unfinished.0.join(entry.file_name())).map_err(CopyError::file(&path))?;
        files += 1;
    }
    sync(&unfinished.0)
        .and_then(|_| rename::to_new_name(&unfinished.0, to))
        .map_err(CopyError::renaming(to))?;
    Ok(files)
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    if !fs::metadata(from)?.is_file() {
        return Err(io::Error::other("expected a file; a directory of keys contains nothing else"));
    }
    let mut copy = File::options().write(true).create_new(true).mode(FILE_MODE).open(to)?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    copy.sync_all()
}
