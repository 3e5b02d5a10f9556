//! Reads a log slice by slice, so that a long log is never in memory as a whole.

use std::sync::Arc;

use super::{Store, StoreError, TaskRow};
use crate::{
    log::{Entry, Seq},
    scope::Scope,
};

/// Consecutive entries of a log with their sequence numbers.
pub type LogSlice = Vec<(Seq, Arc<Entry>)>;

/// A cursor in a task's log.
pub struct LogReader<'a> {
    store: &'a dyn Store,
    scope: &'a Scope,
    row: &'a TaskRow,
    first: Option<LogSlice>,
    cursor: Seq,
    end: Seq,
    beyond: LogSlice,
}

impl<'a> LogReader<'a> {
    /// Reads a task's log from its beginning to the entry with the number `end`.
    pub fn new(store: &'a dyn Store, scope: &'a Scope, row: &'a TaskRow, end: Seq) -> Self {
        Self { store, scope, row, first: None, cursor: 0, end, beyond: Vec::new() }
    }

    /// The same log when its first slice has been read already.
    #[must_use]
    pub fn with_first(self, slice: LogSlice) -> Self {
        Self { first: Some(slice), ..self }
    }

    /// The next slice of at most [`MAX_SLICE_BYTES`](super::MAX_SLICE_BYTES); `None` at the end, and when the
    /// task was purged meanwhile.
    ///
    /// # Errors
    ///
    /// Those of [`Store::entries`].
    pub async fn next(&mut self) -> Result<Option<LogSlice>, StoreError> {
        if self.cursor >= self.end {
            return Ok(None);
        }
        let mut slice = match self.first.take() {
            Some(slice) => slice,
            None => self.store.entries(self.scope, self.row.no, self.cursor, usize::MAX).await?,
        };
        self.beyond = slice.split_off(slice.partition_point(|(seq, _)| *seq <= self.end));
        let last = slice.last().map(|(seq, _)| *seq);
        self.cursor = last.unwrap_or(self.end);
        Ok(last.map(|_| slice))
    }
    /// Entries after the end that were read with the last slice.
    pub fn into_beyond(self) -> LogSlice {
        self.beyond
    }
}
