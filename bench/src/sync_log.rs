//! A log shared by many calls: one thread appends what is queued and syncs once for all of it (group commit).
//!
//! The thread never waits for more records. It takes what is queued, writes, calls `fdatasync`, notifies all callers,
//! and continues; records queued meanwhile are the next batch. A failed write or sync ends the process, since no
//! later record could be guaranteed.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result};
use tokio::sync::oneshot;

/// Bytes written per call: about a task row and its events.
const RECORD_BYTES: usize = 1600;

/// Handle on the log thread, which ends when the last handle is dropped.
#[derive(Clone)]
pub struct SyncLog {
    queue: mpsc::Sender<oneshot::Sender<()>>,
}

impl SyncLog {
    /// Starts the log in a new file in `folder`.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("bare-durable.log");
        let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        let (queue, waiting) = mpsc::channel();
        thread::Builder::new().name("sync-log".into()).spawn(move || write(file, waiting))?;
        Ok(Self { queue })
    }

    /// Returns once a record of this call is on disk.
    pub async fn append(&self) {
        let (done, synced) = oneshot::channel();
        self.queue.send(done).expect("the log thread lives as long as its queue");
        synced.await.expect("the log thread notifies every caller");
    }
}

fn write(mut file: File, waiting: mpsc::Receiver<oneshot::Sender<()>>) {
    let mut records = Vec::new();
    while let Ok(first) = waiting.recv() {
        let batch: Vec<_> = std::iter::once(first).chain(waiting.try_iter()).collect();
        records.resize(batch.len() * RECORD_BYTES, b'r');
        if let Err(error) = file.write_all(&records).and_then(|()| file.sync_data()) {
            eprintln!("cannot write the log: {error}");
            std::process::exit(1);
        }
        for done in batch {
            // The client of this call may have disconnected.
            let _ = done.send(());
        }
    }
}
