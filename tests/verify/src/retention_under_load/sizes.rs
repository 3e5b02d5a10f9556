//! The size of the store on disk: the database file and its WAL, sampled continuously.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::interval;

const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Samples the file sizes until it is dropped.
pub(crate) struct Sizes {
    files: [PathBuf; 2],
    peak: Arc<AtomicU64>,
    _watch: JoinSet<()>,
}

impl Sizes {
    pub(crate) fn watch(store: &Path) -> Self {
        let mut log: OsString = store.into();
        log.push("-wal");
        let files = [store.to_owned(), log.into()];
        let peak = Arc::new(AtomicU64::new(0));
        let mut watch = JoinSet::new();
        let (seen, watched) = (peak.clone(), files.clone());
        watch.spawn(async move {
            let mut look = interval(SAMPLE_INTERVAL);
            loop {
                look.tick().await;
                seen.fetch_max(total(&watched), Ordering::Relaxed);
            }
        });
        Self { files, peak, _watch: watch }
    }

    /// The largest total size since the last call.
    pub(crate) fn take_peak(&self) -> u64 {
        let now = total(&self.files);
        self.peak.swap(now, Ordering::Relaxed).max(now)
    }

    /// The size of the database file without the WAL.
    pub(crate) fn database(&self) -> u64 {
        size(&self.files[0])
    }
}

fn total(files: &[PathBuf]) -> u64 {
    files.iter().map(|file| size(file)).sum()
}

/// A missing file has size 0.
fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}
