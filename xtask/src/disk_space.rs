//! Free disk space. It is checked before the tests start, because a store on a full disk stops its server and the
//! log on the same disk cannot record the reason.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::{Context as _, Result, ensure};

use crate::program;

/// Bytes the tests write into an empty target directory and into a filled one, package caches not counted.
const EMPTY_TARGET_BYTES: u64 = 5 << 30;
const FILLED_TARGET_BYTES: u64 = 1 << 30;

/// Whether an earlier run has left its products in the target directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetDirectory {
    Empty,
    Filled,
}

/// Fails early when there is too little space; discovered later, it would look like a fault of the program.
pub(crate) fn check() -> Result<TargetDirectory> {
    let target = program::target()?;
    let (found, wanted) = match target.join("debug").join("a2ad").exists() {
        true => (TargetDirectory::Filled, FILLED_TARGET_BYTES),
        false => (TargetDirectory::Empty, EMPTY_TARGET_BYTES),
    };
    fs::create_dir_all(&target).context("cannot create the target directory")?;
    let free = free(&target)?;
    ensure!(
        free >= wanted,
        "the tests need {} of disk space in {}, where {} are free; free some space, or set CARGO_TARGET_DIR to a larger disk",
        format_mib(wanted),
        target.display(),
        format_mib(free),
    );
    Ok(found)
}

/// Deletes the test programs of the crates, which no later part of the tests runs: about 900 MiB. Programs that are run have
/// a second name beside the directory.
pub(crate) fn delete_test_programs() -> Result<()> {
    let deps = program::target()?.join("debug").join("deps");
    for entry in fs::read_dir(&deps).with_context(|| format!("cannot read {}", deps.display()))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let is_program =
            metadata.is_file() && metadata.mode() & 0o100 != 0 && entry.path().extension().is_none();
        if is_program && metadata.nlink() == 1 {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Free bytes on the file system that holds `path`.
pub(crate) fn free(path: &Path) -> Result<u64> {
    let disk = rustix::fs::statvfs(path).context("cannot read the free disk space")?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

pub(crate) fn format_mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
