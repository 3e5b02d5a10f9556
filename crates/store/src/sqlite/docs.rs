//! Keeps folded tasks, so that a long log is not read from its beginning each time.
//!
//! The writer says which tasks have grown; this thread reads and folds them beside it and hands the result back
//! as one more thing to write. A doc is only ever a shortcut: it says up to which entry it holds, and what
//! follows is read from the log.

use std::{sync::mpsc, thread::JoinHandle};

use engine::{
    ids::{Ids, TaskNo},
    task::fold,
};
use protocol::{dialect::v1, json::write::Writer as Json};
use rusqlite::{Connection, params};

use super::{readers::Failure, rows};

/// A folded task to be kept.
pub(super) struct Doc {
    no: TaskNo,
    at_seq: i64,
    /// Segments it holds that the doc before did not.
    segments: i64,
    bytes: Vec<u8>,
}

/// The writer's handle on the thread that folds.
pub(super) struct Docs {
    grown: Option<mpsc::Sender<TaskNo>>,
    thread: Option<JoinHandle<()>>,
}

/// A log of one segment is folded when it is longer than this.
const LONG_SEGMENT: i64 = 16 << 10;
/// A task at work is folded when so many segments have come since the last time.
const LONG_TAIL: i64 = 64;

impl Docs {
    /// Starts folding; what is folded goes to `keep`.
    pub(super) fn start(connection: Connection, ids: Ids, keep: impl Fn(Doc) + Send + 'static) -> Self {
        let (grown, queue) = mpsc::channel::<TaskNo>();
        let thread = std::thread::Builder::new().name("a2ad-docs".into());
        let work = move || {
            while let Ok(task) = queue.recv() {
                match make(&connection, &ids, task) {
                    Ok(Some(doc)) => keep(doc),
                    Ok(None) => {}
                    Err(Failure::Sql(error)) => tracing::warn!(%error, "a task could not be folded"),
                    Err(Failure::Store(error)) => tracing::error!(%error, "a task could not be folded"),
                }
            }
        };
        let thread = thread.spawn(work).expect("the system can start a thread");
        Self { grown: Some(grown), thread: Some(thread) }
    }

    /// Tells of a task whose log has grown.
    pub(super) fn grown(&self, task: TaskNo) {
        if let Some(grown) = &self.grown {
            let _ = grown.send(task);
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

/// Whether a log is long enough to be worth folding.
pub(super) fn worth_it(settled: bool, tail: i64, tail_bytes: i64) -> bool {
    if settled { tail > 1 || tail_bytes > LONG_SEGMENT } else { tail > 0 && tail % LONG_TAIL == 0 }
}

fn make(connection: &Connection, ids: &Ids, task: TaskNo) -> Result<Option<Doc>, Failure> {
    let tx = connection.unchecked_transaction()?;
    let Some((row, tail)) = rows::with_tail(&tx, ids, task)? else { return Ok(None) };
    let snapshot = rows::with_log(&tx, row)?;
    let had = tx
        .prepare_cached("SELECT coalesce(max(length(bytes)), 0) FROM docs WHERE n = ?1")?
        .query_row(params![task.0], |row| row.get::<_, i64>(0))?;
    let had = usize::try_from(had).unwrap_or_default();
    let behind: usize = snapshot.log.iter().map(|entry| entry.size()).sum();
    // A task at work is folded again only when it has doubled: the sum of all folding stays in proportion.
    if snapshot.log.is_empty() || !snapshot.row.state.is_settled() && behind < had {
        return Ok(None);
    }
    let mut writer = Json::new();
    v1::task::encode(&mut writer, &fold::snapshot(ids, &snapshot)?);
    let at_seq = i64::try_from(snapshot.row.last_seq).unwrap_or(i64::MAX);
    Ok(Some(Doc { no: task, at_seq, segments: tail, bytes: writer.finish() }))
}

/// Keeps a doc, unless the task is gone or has a younger one.
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
