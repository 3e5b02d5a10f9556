//! What the system knows about this process. Linux only; elsewhere there are no samples.

use std::fs;

/// Memory, descriptors and processor time of this process.
#[derive(Debug, Default)]
pub(super) struct ProcessUsage {
    pub(super) resident_bytes: Option<u64>,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) open_descriptors: Option<u64>,
    pub(super) max_descriptors: Option<u64>,
}

impl ProcessUsage {
    /// Reads it: three small files of `/proc` and a limit.
    pub(super) fn read() -> Self {
        Self {
            resident_bytes: resident_pages().map(|pages| pages * rustix::param::page_size() as u64),
            cpu_seconds: cpu_ticks()
                .map(|ticks| ticks as f64 / rustix::param::clock_ticks_per_second() as f64),
            open_descriptors: open_descriptors(),
            max_descriptors: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        }
    }
}

fn resident_pages() -> Option<u64> {
    fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()
}

/// Time in user and kernel mode.
fn cpu_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the process comes first, and may have spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some(user + kernel)
}

/// Since Linux 6.2 the size of the folder is their number; before, the entries are counted.
fn open_descriptors() -> Option<u64> {
    const FOLDER: &str = "/proc/self/fd";
    match fs::metadata(FOLDER).ok()?.len() {
        0 => Some(fs::read_dir(FOLDER).ok()?.count() as u64),
        count => Some(count),
    }
}
