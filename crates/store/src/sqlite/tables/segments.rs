//! Reads segments of task logs. Small segments are loaded; of a large one only the headers are read, and then the
//! entries that are wanted.

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use engine::{
    ids::TaskNo,
    log::{Entry, Kind, LocatedEntry, Seq, locate},
    store::MAX_SLICE_BYTES,
};
use rusqlite::{Connection, MAIN_DB, Row, blob::Blob, params};

use crate::sqlite::reads::readers::Failure;

use super::rows::{MAX_SEQ, owns_log, segment_key};

/// Size in bytes up to which a segment is loaded as a whole.
const SMALL_SEGMENT: i64 = 16 << 10;
/// Memory that an entry needs beside its bytes.
const ENTRY_OVERHEAD: usize = 128;

/// A segment with its entries located.
pub(crate) struct Segment<'c> {
    first_seq: Seq,
    entries: Vec<LocatedEntry>,
    bytes: Source<'c>,
}

enum Source<'c> {
    Loaded(Bytes),
    Stored(Blob<'c>),
}

/// Which of an entry's bytes are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// Without the user message.
    Frame,
}

impl<'c> Segment<'c> {
    fn read(tx: &'c Connection, task: TaskNo, row: &Row<'_>) -> Result<Self, Failure> {
        let at: i64 = row.get(0)?;
        let first_seq = Seq::try_from(at - segment_key(task.0, 0)).unwrap_or_default();
        let loaded: Option<Vec<u8>> = row.get(1)?;
        let (entries, bytes) = match loaded {
            Some(loaded) => {
                let bytes = Bytes::from(loaded);
                let entries = locate(bytes.len(), |at, buffer: &mut [u8]| {
                    buffer.copy_from_slice(&bytes[at..at + buffer.len()]);
                    Ok::<_, Failure>(())
                })?;
                (entries, Source::Loaded(bytes))
            }
            None => {
                let blob = tx.blob_open(MAIN_DB, c"segments", c"bytes", at, true)?;
                let read = |at, buffer: &mut [u8]| Ok::<_, Failure>(blob.read_at_exact(buffer, at)?);
                (locate(blob.len(), read)?, Source::Stored(blob))
            }
        };
        Ok(Self { first_seq, entries, bytes })
    }

    /// The entries in order, with sequence numbers.
    pub(crate) fn entries(
        &self,
    ) -> impl DoubleEndedIterator<Item = (Seq, &LocatedEntry)> + ExactSizeIterator {
        let first_seq = self.first_seq;
        self.entries.iter().enumerate().map(move |(index, located)| (first_seq + index as Seq, located))
    }

    /// Reads one of the entries. It shares the bytes of a small segment.
    pub(crate) fn entry(&self, located: &LocatedEntry, part: Part) -> Result<Arc<Entry>, Failure> {
        let slice = |range: &std::ops::Range<usize>| match &self.bytes {
            Source::Loaded(bytes) => Ok::<_, Failure>(bytes.slice(range.clone())),
            Source::Stored(blob) => {
                let mut bytes = vec![0; range.len()];
                blob.read_at_exact(&mut bytes, range.start)?;
                Ok(bytes.into())
            }
        };
        let user_message = located.user_message.as_ref().filter(|_| part == Part::Whole).map(slice);
        Ok(Arc::new(located.entry(slice(&located.frame)?, user_message.transpose()?)))
    }

    /// Like [`Self::entry`], but the result does not keep the rest of the segment in memory.
    pub(crate) fn detached(&self, located: &LocatedEntry, part: Part) -> Result<Arc<Entry>, Failure> {
        match &self.bytes {
            Source::Stored(_) => self.entry(located, part),
            Source::Loaded(bytes) => {
                let copy = |range: &std::ops::Range<usize>| Bytes::copy_from_slice(&bytes[range.clone()]);
                let user_message = located.user_message.as_ref().filter(|_| part == Part::Whole).map(copy);
                Ok(Arc::new(located.entry(copy(&located.frame), user_message)))
            }
        }
    }
}

/// Calls `each` for the segments with entries after a sequence number, oldest first, until it breaks.
pub(crate) fn forwards<'c>(
    tx: &'c Connection,
    task: TaskNo,
    after: Seq,
    mut each: impl FnMut(Segment<'c>) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    if after >= MAX_SEQ {
        return Ok(());
    }
    let mut statement = tx.prepare_cached(
        "SELECT place, CASE WHEN length(bytes) <= ?4 THEN bytes END FROM segments
         WHERE place >= ?1 AND place < ?2 AND last_seq > ?3 ORDER BY place",
    )?;
    let (from, end) = (segment_of(tx, task, after)?, segment_key(task.0 + 1, 0));
    let seen = i64::try_from(after).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![from, end, seen, SMALL_SEGMENT])?;
    while let Some(row) = rows.next()? {
        if each(Segment::read(tx, task, row)?)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Calls `each` for the segments that begin at or before an entry and have entries after another one, newest first,
/// until it breaks.
pub(crate) fn backwards<'c>(
    tx: &'c Connection,
    task: TaskNo,
    up_to: Seq,
    after: Seq,
    mut each: impl FnMut(Segment<'c>) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    if after >= MAX_SEQ {
        return Ok(());
    }
    let mut statement = tx.prepare_cached(
        "SELECT place, CASE WHEN length(bytes) <= ?4 THEN bytes END FROM segments
         WHERE place BETWEEN ?1 AND ?2 AND last_seq > ?3 ORDER BY place DESC",
    )?;
    let (from, last) = (segment_of(tx, task, after)?, segment_key(task.0, up_to.min(MAX_SEQ)));
    let seen = i64::try_from(after).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![from, last, seen, SMALL_SEGMENT])?;
    while let Some(row) = rows.next()? {
        if each(Segment::read(tx, task, row)?)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The key of the segment that contains an entry; it may contain later entries too.
pub(crate) fn segment_of(tx: &Connection, task: TaskNo, seq: Seq) -> rusqlite::Result<i64> {
    let first = segment_key(task.0, 0);
    let found: Option<i64> = match seq {
        0 => None,
        _ => tx
            .prepare_cached("SELECT max(place) FROM segments WHERE place BETWEEN ?1 AND ?2")?
            .query_row(params![first, segment_key(task.0, seq)], |row| row.get(0))?,
    };
    Ok(found.unwrap_or(first))
}

/// Entries after a sequence number: at most `max` and at most [`MAX_SLICE_BYTES`], but at least one.
pub(crate) fn slice(
    tx: &Connection,
    task: TaskNo,
    after: Seq,
    max: usize,
) -> Result<Vec<(Seq, Arc<Entry>)>, Failure> {
    let mut found = Vec::new();
    let mut bytes = 0;
    forwards(tx, task, after, |segment| {
        for (seq, located) in segment.entries().filter(|(seq, _)| *seq > after) {
            bytes += located.size() + ENTRY_OVERHEAD;
            if found.len() >= max || !found.is_empty() && bytes > MAX_SLICE_BYTES {
                return Ok(ControlFlow::Break(()));
            }
            found.push((seq, segment.entry(located, Part::Whole)?));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// [`slice`] of a task of this scope.
pub(crate) fn entries(
    tx: &Connection,
    scope: i64,
    task: TaskNo,
    after: Seq,
    max: usize,
) -> Result<Vec<(Seq, Arc<Entry>)>, Failure> {
    if owns_log(tx, scope, task)? { slice(tx, task, after, max) } else { Ok(Vec::new()) }
}

/// The last status entry at or before `up_to`.
pub(crate) fn last_status(
    tx: &Connection,
    scope: i64,
    task: TaskNo,
    up_to: Seq,
) -> Result<Option<Arc<Entry>>, Failure> {
    if up_to >= MAX_SEQ || !owns_log(tx, scope, task)? {
        return Ok(None);
    }
    let found = last(tx, task, up_to, |entry| matches!(entry.kind, Kind::Status(_)))?;
    Ok(found.map(|(_, entry)| entry))
}

/// The last entry that has a user message or asks the client for something.
pub(crate) fn last_input(
    tx: &Connection,
    scope: i64,
    task: TaskNo,
) -> Result<Option<(Seq, Arc<Entry>)>, Failure> {
    if !owns_log(tx, scope, task)? {
        return Ok(None);
    }
    let asks = |kind| matches!(kind, Kind::Status(state) if state.is_interrupted());
    last(tx, task, MAX_SEQ, |entry| entry.user_message.is_some() || asks(entry.kind))
}

/// The last entry at or before `up_to` that matches. Segments are read backwards from there, only until it is found.
fn last(
    tx: &Connection,
    task: TaskNo,
    up_to: Seq,
    matches: impl Fn(&LocatedEntry) -> bool,
) -> Result<Option<(Seq, Arc<Entry>)>, Failure> {
    let mut found = None;
    backwards(tx, task, up_to, 0, |segment| {
        let mut newest_first = segment.entries().rev().filter(|(seq, _)| *seq <= up_to);
        let Some((seq, located)) = newest_first.find(|(_, located)| matches(located)) else {
            return Ok(ControlFlow::Continue(()));
        };
        found = Some((seq, segment.entry(located, Part::Whole)?));
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}
