//! Stores folded tasks ("docs"), so that a long log is not replayed from its beginning at each read.
//!
//! The writer reports which tasks have a long log; this thread reads and folds them on its own connection and queues
//! the result as another write. A doc is only a cache: it names the last entry it includes, and later entries are
//! read from the log.

use std::{sync::mpsc, thread::JoinHandle};

use engine::{
    ids::{Ids, TaskNo},
    task::fold,
};
use protocol::{dialect::v1, json::write::Writer as Json};
use rusqlite::{Connection, params};

use super::{readers::Failure, row_limits, rows};

/// A folded task to be stored.
pub(super) struct Doc {
    no: TaskNo,
    at_seq: i64,
    /// Segments that this doc includes and the previous one did not.
    segments: i64,
    bytes: Vec<u8>,
}

impl Doc {
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// The writer's handle on the folding thread. Dropping it ends and joins the thread.
pub(super) struct Docs {
    grown: Option<mpsc::SyncSender<TaskNo>>,
    thread: Option<JoinHandle<()>>,
}

/// Size in bytes above which a log of a single segment is folded.
const LONG_SEGMENT: i64 = 16 << 10;
/// Number of segments since the last fold after which an unsettled task is folded.
const LONG_TAIL: i64 = 64;
/// Most tasks that wait to be folded.
const MAX_WAITING: usize = 4_096;

impl Docs {
    /// Starts the thread; each folded task is passed to `keep`.
    pub(super) fn start(connection: Connection, ids: Ids, keep: impl Fn(Doc) + Send + 'static) -> Self {
        let (grown, queue) = mpsc::sync_channel::<TaskNo>(MAX_WAITING);
        let thread = std::thread::Builder::new().name("a2ad-docs".into());
        let work = move || {
            while let Ok(task) = queue.recv() {
                match make(&connection, &ids, task) {
                    Ok(Some(doc)) => keep(doc),
                    Ok(None) => {}
                    Err(Failure::Sql(error)) => tracing::warn!(%error, "folding a task log failed"),
                    Err(Failure::Store(error)) => tracing::error!(%error, "folding a task log failed"),
                }
            }
        };
        let thread = thread.spawn(work).expect("the system can start a thread");
        Self { grown: Some(grown), thread: Some(thread) }
    }

    /// Queues a task whose log has grown; skips it if too many wait.
    pub(super) fn grown(&self, task: TaskNo) {
        if let Some(grown) = &self.grown {
            let _ = grown.try_send(task);
        }
    }
}

impl Drop for Docs {
    fn drop(&mut self) {
        self.grown = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether a log is long enough to be folded.
pub(super) fn should_fold(settled: bool, tail: i64, tail_bytes: i64) -> bool {
    if settled { tail > 1 || tail_bytes > LONG_SEGMENT } else { tail > 0 && tail % LONG_TAIL == 0 }
}

fn make(connection: &Connection, ids: &Ids, task: TaskNo) -> Result<Option<Doc>, Failure> {
    let tx = connection.unchecked_transaction()?;
    let Some((row, tail)) = rows::with_tail(&tx, ids, task)? else { return Ok(None) };
    let snapshot = rows::with_log(&tx, row)?;
    let previous = tx
        .prepare_cached("SELECT coalesce(max(length(bytes)), 0) FROM docs WHERE n = ?1")?
        .query_row(params![task.0], |row| row.get::<_, i64>(0))?;
    let previous = usize::try_from(previous).unwrap_or_default();
    let behind: usize = snapshot.log.iter().map(|entry| entry.size()).sum();
    // An unsettled task is folded again only when its log has doubled, so that the total cost of folding stays linear
    // in the log.
    if snapshot.log.is_empty() || !snapshot.row.state.is_settled() && behind < previous {
        return Ok(None);
    }
    let mut writer = Json::new();
    v1::task::encode(&mut writer, &fold::snapshot(ids, &snapshot)?);
    let at_seq = i64::try_from(snapshot.row.last_seq).unwrap_or(i64::MAX);
    let bytes = writer.finish();
    Ok(row_limits::fits_in_row(bytes.len()).then_some(Doc { no: task, at_seq, segments: tail, bytes }))
}

/// Stores a doc, unless the task was purged or has a newer doc.
pub(super) fn keep(connection: &Connection, doc: &Doc) -> rusqlite::Result<()> {
    let kept = connection
        .prepare_cached(
            "UPDATE tasks SET doc = ?2, tail = tail - ?3 WHERE n = ?1 AND doc < ?2 AND visible < 3",
        )?
        .execute(params![doc.no.0, doc.at_seq, doc.segments])?;
    if kept > 0 {
        connection
            .prepare_cached("INSERT OR REPLACE INTO docs (n, at_seq, bytes) VALUES (?1, ?2, ?3)")?
            .execute(params![doc.no.0, doc.at_seq, doc.bytes])?;
    }
    Ok(())
}
