//! Purges finished tasks in slices, each one commit of bounded size, so that live work is hardly delayed.
//!
//! A task is made invisible first; its log, doc, checkpoint and journal are deleted after that, as many rows per commit as the
//! slice allows. While rows remain, a marker in `meta` names the task, so that the rest is deleted after a crash too.
//! The last rows go first: what remains meanwhile is a prefix of the log.
//!
//! Deleting a large row is cheap when its pages are in memory: SQLite only has to follow the chain of its pages. When
//! they are not, each page is one random read. So a reader reads the rows of a slice before the writer deletes them.

use std::collections::VecDeque;

use engine::{
    ids::TaskNo,
    store::{FinishedTask, StoreError, Visibility},
};
use protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use super::changes::{CountedTask, WriterCache, counted_task, number};

use crate::sqlite::reads::readers::{Failure, ReaderPool};

use crate::sqlite::tables::rows;

use crate::sqlite::tables::webhooks;

use super::writer::PurgeQueue;

/// Bytes that one commit deletes at most, unless a single row is larger: that row is deleted alone.
pub(crate) const SLICE_BYTES: u64 = 2 << 20;
/// What the deletion of a row costs in addition to its bytes, in bytes.
const ROW_COST: u64 = 1 << 10;
/// Prefix of the `meta` keys that name tasks whose rows are not all deleted.
const MARKER: &str = "purging/";

/// A purge in progress: goes to the writer once per slice.
pub(crate) struct Purge {
    /// The task that is invisible already and whose rows are not all deleted.
    unfinished: Option<TaskNo>,
    tasks: VecDeque<FinishedTask>,
    now: i64,
    /// Number of tasks purged so far.
    purged: usize,
}

impl Purge {
    pub(crate) fn new(tasks: Vec<FinishedTask>, now: Timestamp) -> Self {
        Self { unfinished: None, tasks: tasks.into(), now: now.as_millis(), purged: 0 }
    }

    /// The rest of a purge that was interrupted.
    pub(crate) fn rest_of(task: TaskNo) -> Self {
        Self { unfinished: Some(task), tasks: VecDeque::new(), now: 0, purged: 0 }
    }

    /// Runs to the end; each slice queues behind live work. Returns how many tasks were purged. If the future is
    /// dropped, [`unfinished`] finds the task whose rows are not all deleted.
    pub(crate) async fn run(mut self, readers: &ReaderPool, queue: &PurgeQueue) -> Result<usize, StoreError> {
        while !self.is_done() {
            let tasks: Vec<_> =
                self.unfinished.into_iter().chain(self.tasks.iter().map(|task| task.no)).collect();
            // Only saves time: the slice is deleted whether or not its rows were read.
            let _ = readers.read(move |tx| prefetch(tx, &tasks)).await;
            self = queue.delete_slice(self).await?;
        }
        Ok(self.purged)
    }

    fn is_done(&self) -> bool {
        self.unfinished.is_none() && self.tasks.is_empty()
    }

    /// Deletes the next slice inside the writer's transaction. Returns how many bytes were deleted.
    pub(crate) fn delete_slice(
        &mut self,
        connection: &Connection,
        cache: &mut WriterCache,
    ) -> rusqlite::Result<u64> {
        let mut slice = Slice::default();
        let marked = self.unfinished;
        loop {
            if let Some(task) = self.unfinished {
                let finished = delete_rows(connection, task, &mut slice)?;
                if finished == (marked == Some(task)) {
                    mark(connection, task, !finished)?;
                }
                if !finished {
                    return Ok(slice.bytes);
                }
                self.unfinished = None;
            }
            if slice.is_full() {
                return Ok(slice.bytes);
            }
            let Some(task) = self.tasks.pop_front() else { return Ok(slice.bytes) };
            slice.cost += ROW_COST;
            if hide(connection, cache, &task, self.now)? {
                self.purged += 1;
                self.unfinished = Some(task.no);
            }
        }
    }
}

/// What one commit deletes.
#[derive(Default)]
struct Slice {
    rows: usize,
    bytes: u64,
    cost: u64,
}

impl Slice {
    /// Adds a row; `false` if it has to wait for the next slice. The first row always fits.
    fn add(&mut self, bytes: i64) -> bool {
        let bytes = bytes.unsigned_abs();
        if self.rows > 0 && self.cost + bytes + ROW_COST > SLICE_BYTES {
            return false;
        }
        self.rows += 1;
        self.bytes += bytes;
        self.cost += bytes + ROW_COST;
        true
    }

    fn is_full(&self) -> bool {
        self.cost + ROW_COST > SLICE_BYTES
    }
}

/// Makes a finished task invisible, unless it was reopened meanwhile. Its row stays as a tombstone, so that the
/// idempotency keys of its messages are still known. A client-chosen task id becomes available again.
fn hide(
    connection: &Connection,
    cache: &mut WriterCache,
    task: &FinishedTask,
    now: i64,
) -> rusqlite::Result<bool> {
    let before = counted_task(connection, task.no.0)?;
    let hidden = connection
        .prepare_cached(
            "UPDATE tasks SET visible = 3, purged_at = ?3, size = 0, progress_size = 0, doc = 0, tail = 0,
                 client_id = NULL, webhooks = 0
             WHERE n = ?1 AND last_seq = ?2 AND state IN (3, 4, 5, 7) AND visible IN (1, 2)",
        )?
        .execute(params![task.no.0, number(task.last_seq), now])?;
    if hidden > 0 {
        webhooks::delete_all(connection, task.no)?;
    }
    if let (1, Some(CountedTask { scope, state, visibility, size })) = (hidden, before) {
        if visibility == Visibility::Visible {
            cache.counts.remove(scope, state);
        }
        cache.usage.add_bytes(scope, -size);
    }
    Ok(hidden > 0)
}

/// Deletes rows of a task as far as the slice allows; returns whether none is left.
fn delete_rows(connection: &Connection, task: TaskNo, slice: &mut Slice) -> rusqlite::Result<bool> {
    let (first, last) = segment_keys(task);
    let mut from = None;
    let mut all = true;
    {
        let mut segments = connection.prepare_cached(
            "SELECT place, length(bytes) FROM segments WHERE place BETWEEN ?1 AND ?2 ORDER BY place DESC",
        )?;
        let mut segments = segments.query(params![first, last])?;
        while let Some(segment) = segments.next()? {
            if !slice.add(segment.get(1)?) {
                all = false;
                break;
            }
            from = Some(segment.get::<_, i64>(0)?);
        }
    }
    if let Some(from) = from {
        connection
            .prepare_cached("DELETE FROM segments WHERE place BETWEEN ?1 AND ?2")?
            .execute(params![from, last])?;
    }
    for (length, delete) in [
        ("SELECT length(bytes) FROM docs WHERE n = ?1", "DELETE FROM docs WHERE n = ?1"),
        ("SELECT length(bytes) FROM saved WHERE n = ?1", "DELETE FROM saved WHERE n = ?1"),
    ] {
        let length: Option<i64> =
            connection.prepare_cached(length)?.query_row(params![task.0], |row| row.get(0)).optional()?;
        if let Some(length) = length {
            if !all || !slice.add(length) {
                return Ok(false);
            }
            connection.prepare_cached(delete)?.execute(params![task.0])?;
        }
    }
    Ok(all && delete_journal(connection, task, slice)?)
}

/// Deletes the journal of a task as far as the slice allows; returns whether nothing is left of it.
fn delete_journal(connection: &Connection, task: TaskNo, slice: &mut Slice) -> rusqlite::Result<bool> {
    let mut from: Option<(i64, String)> = None;
    let mut all = true;
    {
        let mut steps = connection.prepare_cached(JOURNAL_SIZES)?;
        let mut steps = steps.query(params![task.0])?;
        while let Some(step) = steps.next()? {
            if !slice.add(step.get(2)?) {
                all = false;
                break;
            }
            from = Some((step.get(0)?, step.get(1)?));
        }
    }
    if let Some((turn, step)) = from {
        connection.prepare_cached(DELETE_STEPS)?.execute(params![task.0, turn, step])?;
    }
    Ok(all)
}

/// The size of an output is known without its pages.
pub(crate) const JOURNAL_SIZES: &str = "SELECT turn, step, coalesce(length(output), 0) FROM journal
     WHERE n = ?1 ORDER BY turn DESC, step DESC";

pub(crate) const DELETE_STEPS: &str = "DELETE FROM journal WHERE n = ?1 AND (turn, step) >= (?2, ?3)";

pub(crate) const JOURNAL_OUTPUTS: &str =
    "SELECT output FROM journal WHERE n = ?1 ORDER BY turn DESC, step DESC";

/// Records in `meta` whether rows of a purged task remain.
fn mark(connection: &Connection, task: TaskNo, remain: bool) -> rusqlite::Result<()> {
    let key = format!("{MARKER}{}", task.0);
    let sql = if remain {
        "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, 1)"
    } else {
        "DELETE FROM meta WHERE key = ?1"
    };
    connection.prepare_cached(sql)?.execute(params![key]).map(drop)
}

/// Purged tasks of which rows remain: their purge was interrupted, or is in progress.
pub(crate) fn unfinished(connection: &Connection) -> rusqlite::Result<Vec<TaskNo>> {
    let mut keys = connection.prepare_cached(
        "SELECT CAST(substr(key, ?2) AS INTEGER) FROM meta WHERE key >= ?1 AND key < ?1 || '~'",
    )?;
    let tasks = keys.query_map(params![MARKER, MARKER.len() as i64 + 1], |row| row.get(0).map(TaskNo))?;
    tasks.collect()
}

/// Reads the rows of the next slice, in the order in which they will be deleted.
fn prefetch(tx: &Connection, tasks: &[TaskNo]) -> Result<(), Failure> {
    let mut slice = Slice::default();
    for task in tasks {
        let (first, last) = segment_keys(*task);
        let segments = "SELECT bytes FROM segments WHERE place BETWEEN ?1 AND ?2 ORDER BY place DESC";
        let by_task = params![task.0];
        let all = read_rows(tx, segments, params![first, last], &mut slice)?
            && read_rows(tx, "SELECT bytes FROM docs WHERE n = ?1", by_task, &mut slice)?
            && read_rows(tx, "SELECT bytes FROM saved WHERE n = ?1", by_task, &mut slice)?
            && read_rows(tx, JOURNAL_OUTPUTS, by_task, &mut slice)?;
        if !all {
            break;
        }
    }
    Ok(())
}

/// Reads rows as far as the slice allows; returns whether these were all.
fn read_rows(
    tx: &Connection,
    select: &str,
    params: &[&dyn ToSql],
    slice: &mut Slice,
) -> rusqlite::Result<bool> {
    let mut rows = tx.prepare_cached(select)?;
    let mut rows = rows.query(params)?;
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(0)?.as_blob_or_null().ok().flatten().map_or(0, <[u8]>::len);
        if !slice.add(i64::try_from(bytes).unwrap_or(i64::MAX)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The lowest and the highest segment key that a task can have.
fn segment_keys(task: TaskNo) -> (i64, i64) {
    (rows::segment_key(task.0, 0), rows::segment_key(task.0 + 1, 0) - 1)
}
