//! A log that many calls share: one thread appends what is queued and syncs it once for all of them.
//!
//! The thread never waits for company. It takes what is there, writes, calls `fdatasync`, answers all, and
//! looks again; whatever came meanwhile is the next batch. A failed write or sync ends the process, since
//! nothing after it could be promised.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result};
use tokio::sync::oneshot;

/// What one call writes, in bytes: about a task row and its events.
const RECORD_BYTES: usize = 1600;

/// The door to the log's thread; it ends when the last of these is dropped.
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
        self.queue.send(done).expect("the log's thread lives as long as its queue");
        synced.await.expect("the log's thread answers every call it took");
    }
}

fn write(mut file: File, waiting: mpsc::Receiver<oneshot::Sender<()>>) {
    let mut records = Vec::new();
    while let Ok(first) = waiting.recv() {
        let batch: Vec<_> = std::iter::once(first).chain(waiting.try_iter()).collect();
        records.resize(batch.len() * RECORD_BYTES, b'r');
        if let Err(error) = file.write_all(&records).and_then(|()| file.sync_data()) {
            eprintln!("the log cannot be written: {error}");
            std::process::exit(1);
        }
        for done in batch {
            // A call whose client went away no longer listens.
            let _ = done.send(());
        }
    }
}
