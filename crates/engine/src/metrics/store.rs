//! What a store counts.

use protocol::TaskState;

use super::{Counter, DURATION_BOUNDS, Gauge, Histogram};

/// Upper bounds for the number of changes in one commit; the writer takes at most 256.
const BATCH_BOUNDS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256];

/// The counters of a store.
#[derive(Debug)]
pub struct StoreMetrics {
    /// Visible tasks, by [`TaskState::number`].
    pub tasks: [Gauge; TaskState::ALL.len()],
    /// Tasks that have reached a terminal state in this process, by [`TaskState::number`].
    pub finished: [Counter; TaskState::ALL.len()],
    /// Runs that a crash of the previous process has ended.
    pub crashed_runs: Counter,
    /// How long commits took, from the first statement to the end of the sync.
    pub commit_duration: Histogram,
    /// How many changes each commit had.
    pub commit_changes: Histogram,
    /// Bytes that wait to be written.
    pub queued_bytes: Gauge,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        Self {
            tasks: Default::default(),
            finished: Default::default(),
            crashed_runs: Counter::default(),
            commit_duration: Histogram::new(DURATION_BOUNDS),
            commit_changes: Histogram::new(BATCH_BOUNDS),
            queued_bytes: Gauge::default(),
        }
    }
}

/// How much space a store uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// Bytes of its files.
    pub used: u64,
    /// Bytes that the file system has left for it; `None` where that is unknown.
    pub free: Option<u64>,
}
