//! Stores folded tasks ("docs"), so that a long log is not replayed from its beginning at each read.
//!
//! The writer reports which tasks have a long log; this thread reads and folds them on its own connection and queues
//! the result as another write. A doc is only a cache: it names the last entry it includes, and later entries are
//! read from the log.

use std::{sync::mpsc, thread::JoinHandle};

use engine::{
    ids::{Ids, TaskNo},
    log::Seq,
    task::fold,
};
use rusqlite::{Connection, params};

use super::doc_format;

use crate::sqlite::reads::readers::Failure;

use crate::sqlite::writes::row_limits;

use super::rows;

use crate::sqlite::reads::snapshots;

/// A folded task to be stored.
pub(crate) struct Doc {
    no: TaskNo,
    at_seq: i64,
    /// Segments that this doc includes and the previous one did not.
    segments: i64,
    bytes: Vec<u8>,
}

impl Doc {
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// The writer's handle on the folding thread. Dropping it ends and joins the thread.
pub(crate) struct Docs {
    grown: Option<mpsc::SyncSender<TaskNo>>,
    thread: Option<JoinHandle<()>>,
}

/// A settled task is folded if more than this number of segments, or more than this many bytes, follow its doc.
const SETTLED_SEGMENTS: i64 = 16;
const SETTLED_BYTES: i64 = 64 << 10;
/// Number of segments since the last fold after which an unsettled task is folded.
const LONG_TAIL: i64 = 64;
/// Most tasks that wait to be folded.
const MAX_WAITING: usize = 4_096;

impl Docs {
    /// Starts the thread; each folded task is passed to `keep`, which returns `false` when the writer has stopped.
    pub(crate) fn start(
        connection: Connection,
        ids: Ids,
        keep: impl Fn(Doc) -> bool + Send + 'static,
    ) -> Self {
        let (grown, queue) = mpsc::sync_channel::<TaskNo>(MAX_WAITING);
        let thread = std::thread::Builder::new().name("a2ad-docs".into());
        let work = move || {
            while let Ok(task) = queue.recv() {
                match make(&connection, &ids, task) {
                    Ok(Some(doc)) => {
                        if !keep(doc) {
                            break;
                        }
                    }
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
    pub(crate) fn grown(&self, task: TaskNo) {
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

/// Whether a log may be long enough to be folded: `tail` segments follow its doc, and it has `size` bytes in all.
pub(crate) fn should_fold(settled: bool, tail: i64, size: i64) -> bool {
    if settled { tail > SETTLED_SEGMENTS || size > SETTLED_BYTES } else { tail > 0 && tail % LONG_TAIL == 0 }
}

fn make(connection: &Connection, ids: &Ids, task: TaskNo) -> Result<Option<Doc>, Failure> {
    let tx = connection.unchecked_transaction()?;
    let Some((row, tail)) = rows::with_tail(&tx, ids, task)? else { return Ok(None) };
    let (behind, previous) = sizes(&tx, task, row.doc)?;
    // An unsettled task is folded again only when its log has doubled, so that the total cost of folding stays linear
    // in the log.
    let long = match row.state.is_settled() {
        true => tail > SETTLED_SEGMENTS || behind > SETTLED_BYTES,
        false => behind >= previous,
    };
    if behind == 0 || !long {
        return Ok(None);
    }
    let snapshot = snapshots::whole(&tx, row)?;
    let at_seq = i64::try_from(snapshot.row.last_seq).unwrap_or(i64::MAX);
    let bytes = doc_format::encode(fold::into_task(ids, snapshot)?);
    let bytes = bytes.filter(|bytes| row_limits::fits_in_row(bytes.len()));
    Ok(bytes.map(|bytes| Doc { no: task, at_seq, segments: tail, bytes }))
}

/// Bytes of the segments after the doc, and of the doc.
fn sizes(tx: &Connection, task: TaskNo, doc: Seq) -> rusqlite::Result<(i64, i64)> {
    tx.prepare_cached(
        "SELECT (SELECT coalesce(sum(length(bytes)), 0) FROM segments WHERE place >= ?1 AND place < ?2 AND last_seq > ?3),
                (SELECT coalesce(max(length(bytes)), 0) FROM docs WHERE n = ?4)",
    )?
    .query_row(
        params![
            rows::segment_key(task.0, 0),
            rows::segment_key(task.0 + 1, 0),
            i64::try_from(doc).unwrap_or(i64::MAX),
            task.0
        ],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Stores a doc, unless the task was purged or has a newer doc.
pub(crate) fn keep(connection: &Connection, doc: &Doc) -> rusqlite::Result<()> {
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
