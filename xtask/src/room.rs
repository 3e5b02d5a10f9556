//! How much room the disk has: a store on a full disk stops its server, and a log beside it cannot say so any more.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};

use crate::server;

/// What the tests write, caches of packages aside, into an empty target directory and into one that is filled.
const EMPTY_WANTS: u64 = 5 << 30;
const FILLED_WANTS: u64 = 1 << 30;

/// Says at once that there is too little room: found out later, it would look like a fault of the program.
pub(crate) fn check() -> Result<()> {
    let target = server::target()?;
    let wanted = if target.join("debug").join("a2ad").exists() { FILLED_WANTS } else { EMPTY_WANTS };
    fs::create_dir_all(&target).context("cannot make the target directory")?;
    let free = free(&target)?;
    ensure!(
        free >= wanted,
        "the tests want {} of room in {}, where {} are free; make room, or set CARGO_TARGET_DIR to a larger disk",
        shown(wanted),
        target.display(),
        shown(free),
    );
    Ok(())
}

/// The bytes that are free where `path` lies.
pub(crate) fn free(path: &Path) -> Result<u64> {
    let disk = rustix::fs::statvfs(path).context("cannot ask how much room the disk has")?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

pub(crate) fn shown(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
