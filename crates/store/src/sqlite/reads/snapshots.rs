//! Reads tasks: a row, its doc and the log after it, or as much of them as a reader shows.

use std::{ops::ControlFlow, sync::Arc};

use engine::{
    Reservation,
    ids::TaskNo,
    log::{Entry, Kind, LocatedEntry, Log, Seq},
    store::{Snapshot, StoreError, TaskRow, View, Visibility},
};
use protocol::Task;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::sqlite::tables::doc_format::StoredDoc;

use super::readers::Failure;

use crate::sqlite::tables::rows::segment_key;

use crate::sqlite::tables::segments::{self, Part};

/// Reads what a view shows of a task. A purged task has nothing but its row.
pub(crate) fn read(tx: &Connection, row: TaskRow, view: &View) -> Result<Snapshot, Failure> {
    if row.visibility == Visibility::Purged {
        return Ok(Snapshot { row, doc: None, log: Vec::new(), bytes: 0 });
    }
    let mut charge = Charge { memory: view.memory.as_deref(), bytes: 0 };
    if view.is_whole() {
        charge.add(row.size)?;
        return whole(tx, row);
    }
    let messages = view.history.map_or(usize::MAX, |length| length as usize);
    let wanted = Wanted { messages, bytes: usize::MAX, artifacts: view.artifacts, status: true };
    partial(tx, row, &mut wanted.begin(), &mut charge)
}

/// Reads the newest messages of a task's history, at most as many bytes as there are left; takes them off.
pub(crate) fn history(tx: &Connection, row: TaskRow, bytes_left: &mut usize) -> Result<Snapshot, Failure> {
    let wanted = Wanted { messages: usize::MAX, bytes: *bytes_left, artifacts: false, status: false };
    let mut selection = wanted.begin();
    let snapshot = partial(tx, row, &mut selection, &mut Charge { memory: None, bytes: 0 })?;
    *bytes_left = if selection.shows_history() { selection.left.bytes } else { 0 };
    Ok(snapshot)
}

/// Reads a task with its doc and the whole log after it.
pub(crate) fn whole(tx: &Connection, row: TaskRow) -> Result<Snapshot, Failure> {
    let stored = stored_doc(tx, &row)?;
    let from = stored.as_ref().map_or(0, |(at_seq, _)| *at_seq);
    let doc = stored.map(|(_, stored)| stored.read_all()).transpose()?;
    let log = log_after(tx, row.no, from)?;
    check_length(&row, from, log.len() as Seq)?;
    let bytes = row.size;
    Ok(Snapshot { row, doc, log, bytes })
}

/// The whole log after an entry. Each segment is loaded at once.
fn log_after(tx: &Connection, task: TaskNo, from: Seq) -> Result<Vec<Arc<Entry>>, Failure> {
    let mut statement = tx.prepare_cached(
        "SELECT place, bytes FROM segments WHERE place >= ?1 AND place < ?2 AND last_seq > ?3 ORDER BY place",
    )?;
    let first = segment_key(task.0, 0);
    let seen = i64::try_from(from).unwrap_or(i64::MAX);
    let start = segments::segment_of(tx, task, from)?;
    let mut rows = statement.query(params![start, segment_key(task.0 + 1, 0), seen])?;
    let mut log = Vec::new();
    while let Some(row) = rows.next()? {
        let first_seq = Seq::try_from(row.get::<_, i64>(0)? - first).unwrap_or_default();
        let segment = Log::unpack(row.get::<_, Vec<u8>>(1)?.into())?;
        let behind = usize::try_from((from + 1).saturating_sub(first_seq)).unwrap_or(usize::MAX);
        log.extend(segment.entries().iter().skip(behind).cloned());
    }
    Ok(log)
}

/// The task's doc, if it has one, and the last entry that it includes.
fn stored_doc<'c>(tx: &'c Connection, row: &TaskRow) -> Result<Option<(Seq, StoredDoc<'c>)>, Failure> {
    if row.doc == 0 {
        return Ok(None);
    }
    let at_seq: Option<i64> = tx
        .prepare_cached("SELECT at_seq FROM docs WHERE n = ?1")?
        .query_row(params![row.no.0], |row| row.get(0))
        .optional()?;
    let Some(at_seq) = at_seq else { return Ok(None) };
    Ok(Some((Seq::try_from(at_seq).unwrap_or_default(), StoredDoc::open(tx, row.no)?)))
}

fn check_length(row: &TaskRow, from: Seq, entries: Seq) -> Result<(), Failure> {
    let found = from + entries;
    if found == row.last_seq {
        return Ok(());
    }
    let text = format!("the log of task {} has {found} entries, its row records {}", row.no.0, row.last_seq);
    Err(Failure::Store(StoreError::Broken(text)))
}

/// Counts what is read against the caller's reservation, before it is read.
struct Charge<'a> {
    memory: Option<&'a Reservation>,
    bytes: u64,
}

impl Charge<'_> {
    fn add(&mut self, bytes: u64) -> Result<(), Failure> {
        self.bytes += bytes;
        let Some(memory) = self.memory else { return Ok(()) };
        memory.cover_task(self.bytes).map_err(|error| Failure::Store(StoreError::TooLarge(error)))
    }
}

/// What is read of a task.
#[derive(Clone, Copy)]
struct Wanted {
    /// The newest messages of the history.
    messages: usize,
    /// As long as they have at most this many bytes.
    bytes: usize,
    artifacts: bool,
    /// The status and the metadata.
    status: bool,
}

/// Decides which entries of a log are read, newest first.
struct Selection {
    left: Wanted,
    /// The last status has been found.
    has_status: bool,
}

impl Wanted {
    fn begin(self) -> Selection {
        Selection { left: self, has_status: !self.status }
    }
}

impl Selection {
    /// The part of the next older entry that is needed, if any.
    fn part(&mut self, entry: &LocatedEntry) -> Option<Part> {
        match entry.kind {
            Kind::Artifact => self.left.artifacts.then_some(Part::Whole),
            Kind::Status(_) | Kind::Message => {
                let is_last_status = matches!(entry.kind, Kind::Status(_)) && !self.has_status;
                // A settled status may have a message of the agent, but need not have one: only the others count, so
                // that there are never too few.
                let settled = matches!(entry.kind, Kind::Status(state) if state.is_settled());
                let counted = entry.user_message.is_some() || entry.kind == Kind::Message;
                let in_history = (settled || counted) && self.take(entry.size(), usize::from(counted));
                // The status of a message has the metadata that the client sent with it.
                let has_metadata = self.left.status && entry.user_message.is_some();
                let decides_state = entry.kind == Kind::Message && !self.has_status;
                self.has_status |= is_last_status;
                match (in_history, is_last_status || has_metadata || decides_state) {
                    (true, _) => Some(Part::Whole),
                    (false, true) => Some(Part::Frame),
                    (false, false) => None,
                }
            }
        }
    }

    /// Takes messages of this size off what is left; `false` if they are not shown. Nothing older is shown then.
    fn take(&mut self, bytes: usize, messages: usize) -> bool {
        if self.left.messages == 0 {
            return false;
        }
        if bytes > self.left.bytes {
            self.left.messages = 0;
            return false;
        }
        self.left.bytes -= bytes;
        self.left.messages -= messages;
        true
    }

    fn shows_history(&self) -> bool {
        self.left.messages > 0
    }

    /// Whether no older entry can be needed.
    fn is_complete(&self) -> bool {
        !self.left.artifacts && !self.left.status && !self.shows_history()
    }
}

fn partial(
    tx: &Connection,
    row: TaskRow,
    selection: &mut Selection,
    charge: &mut Charge<'_>,
) -> Result<Snapshot, Failure> {
    // A doc without lengths cannot be read in parts, but the log can.
    let stored = stored_doc(tx, &row)?.filter(|(_, stored)| stored.has_lengths());
    let after = stored.as_ref().map_or(0, |(at_seq, _)| *at_seq);
    let (mut log, mut seen) = (Vec::new(), 0);
    segments::backwards(tx, row.no, row.last_seq, after, |segment| {
        for (_, located) in segment.entries().rev().take_while(|(seq, _)| *seq > after) {
            seen += 1;
            if let Some(part) = selection.part(located) {
                let bytes = if part == Part::Whole { located.size() } else { located.frame.len() };
                charge.add(bytes as u64)?;
                log.push(segment.detached(located, part)?);
            }
        }
        Ok(if selection.is_complete() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if !selection.is_complete() {
        check_length(&row, after, seen)?;
    }
    log.reverse();
    let doc = match stored {
        Some((_, stored)) if !selection.is_complete() => Some(partial_doc(&stored, selection, charge)?),
        _ => None,
    };
    Ok(Snapshot { row, doc, log, bytes: charge.bytes })
}

fn partial_doc(
    stored: &StoredDoc<'_>,
    selection: &mut Selection,
    charge: &mut Charge<'_>,
) -> Result<Task, Failure> {
    let messages = stored.messages().iter().rev().take_while(|bytes| selection.take(**bytes, 1)).count();
    charge.add(stored.size_of(messages, selection.left.artifacts) as u64)?;
    stored.read(messages, selection.left.artifacts)
}
