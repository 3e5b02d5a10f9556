//! The memory use of a process, read from the kernel.

use std::fs;

use anyhow::{Context, Result};

/// Resident memory in bytes.
pub(crate) struct Resident {
    pub(crate) now: u64,
    /// Peak since the last reset.
    pub(crate) peak: u64,
}

pub(crate) fn read(process: u32) -> Result<Resident> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).context("cannot read the memory")?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
    };
    let read = || Some(Resident { now: field("VmRSS:")?, peak: field("VmHWM:")? });
    read().context("the kernel does not report the memory of a process")
}

/// Resets the peak; returns whether the kernel allows it.
pub(crate) fn reset_peak(process: u32) -> bool {
    fs::write(format!("/proc/{process}/clear_refs"), "5").is_ok()
}
