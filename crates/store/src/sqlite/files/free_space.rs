//! Free space on the file system of the store: below a limit, messages of clients are refused.
//!
//! A commit that finds no space ends the process, so the store stops to accept work long before that. Everything else goes
//! on: reads, cancellations, what running work records, and purging, which makes room. The writer looks once a second
//! and after [`LOOK_BYTES`], never for a single call.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::store_files;

/// How often the writer looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Bytes written after which the writer looks earlier. The log and later the database grow by as much.
const LOOK_BYTES: usize = 1 << 20;
/// Below this, opening a store copies its log into the database first.
pub(crate) const LITTLE: u64 = 64 << 20;
/// What a checkpoint leaves for the commits after it.
const LEFT_BY_CHECKPOINT: u64 = 1 << 20;

/// Whether there is less free space than the limit. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LowSpace(Arc<AtomicBool>);

impl LowSpace {
    pub(crate) fn is_low(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Looks at the free space, for the writer.
pub(crate) struct FreeSpace {
    database: PathBuf,
    /// In bytes; 0 is no limit.
    min: u64,
    low: LowSpace,
    looked_at: Instant,
    written: usize,
}

impl FreeSpace {
    /// Looks at once. `database` is the file of the store.
    pub(crate) fn new(database: PathBuf, min: u64) -> Self {
        let mut this =
            Self { database, min, low: LowSpace::default(), looked_at: Instant::now(), written: 0 };
        this.look();
        this
    }

    pub(crate) fn low(&self) -> LowSpace {
        self.low.clone()
    }

    /// Counts the bytes of a commit, and looks if it is time to.
    pub(crate) fn written(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written >= LOOK_BYTES || self.looked_at.elapsed() >= INTERVAL {
            self.look();
        }
    }

    fn look(&mut self) {
        if self.min == 0 {
            return;
        }
        (self.looked_at, self.written) = (Instant::now(), 0);
        // A file system that does not answer is not a reason to refuse messages.
        let Some(free) = free_space(&self.database) else { return };
        let was_low = self.low.is_low();
        let low = is_low(free, self.min, was_low);
        match (was_low, low) {
            (false, true) => tracing::warn!(
                free,
                min_free_disk = self.min,
                "little disk space is left: new messages are refused until there is more; reads, cancellations, \
                 running tasks and purging go on"
            ),
            (true, false) => tracing::warn!(free, "there is enough disk space again: messages are accepted"),
            (false, false) | (true, true) => return,
        }
        self.low.0.store(low, Ordering::Relaxed);
    }
}

/// Decides whether space is low. It is enough again when an eighth more than the limit is free, so that the state does
/// not change with every commit.
fn is_low(free: u64, min: u64, was_low: bool) -> bool {
    free < if was_low { min.saturating_add(min / 8) } else { min }
}

/// Whether the log can be copied into the database. A checkpoint that finds no space half way has used up all of it, and
/// then nothing can be committed any more; so it is not begun.
pub(crate) fn log_fits(connection: &Connection) -> rusqlite::Result<bool> {
    let Some(database) = connection.path().map(Path::new) else { return Ok(true) };
    let Some(free) = free_space(database) else { return Ok(true) };
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let length = number("page_count")?.saturating_mul(number("page_size")?).unsigned_abs();
    let growth = length.saturating_sub(store_files::length(database));
    Ok(fits(growth, free))
}

/// Decides whether a file can grow by so many bytes.
fn fits(growth: u64, free: u64) -> bool {
    growth == 0 || growth.saturating_add(LEFT_BY_CHECKPOINT) <= free
}

/// Bytes that this process may still write beside a file; `None` if the system does not tell.
pub(crate) fn free_space(file: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(file).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_leaves_space_and_needs_none_for_pages_that_the_file_has() {
        assert!(fits(0, 0));
        assert!(!fits(1, LEFT_BY_CHECKPOINT));
        assert!(fits(1, LEFT_BY_CHECKPOINT + 1));
    }

    #[test]
    fn space_is_low_below_the_limit_and_until_there_is_an_eighth_more() {
        assert!(!is_low(800, 800, false));
        assert!(is_low(799, 800, false));
        assert!(is_low(899, 800, true));
        assert!(!is_low(900, 800, true));
    }

    #[test]
    fn the_system_tells_how_much_is_free() {
        assert!(free_space(Path::new(".")).is_some_and(|free| free > 0));
        assert_eq!(free_space(Path::new("/nowhere/at/all")), None);
    }

    #[test]
    fn no_limit_is_never_low_and_an_impossible_one_is_at_once() {
        assert!(!FreeSpace::new(PathBuf::from("."), 0).low().is_low());
        assert!(FreeSpace::new(PathBuf::from("."), u64::MAX).low().is_low());
    }
}
