//! Reads a log slice by slice, so that a long log is never in memory as a whole.

use std::{sync::Arc, time::Duration};

use super::{Store, StoreError, TaskRow};
use crate::{
    access::scope::Scope,
    log::{Entry, Seq},
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
    when_overloaded: WhenOverloaded,
}

/// What a reader does while the store rejects reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WhenOverloaded {
    Fail,
    Wait,
}

/// How long a reader waits before it tries again.
const OVERLOAD_DELAY: Duration = Duration::from_millis(100);

impl<'a> LogReader<'a> {
    /// Reads a task's log from its beginning to the entry with the number `end`.
    pub fn new(store: &'a dyn Store, scope: &'a Scope, row: &'a TaskRow, end: Seq) -> Self {
        Self {
            store,
            scope,
            row,
            first: None,
            cursor: 0,
            end,
            beyond: Vec::new(),
            when_overloaded: WhenOverloaded::Fail,
        }
    }

    /// The same log when its first slice has been read already.
    #[must_use]
    pub fn with_first(self, slice: LogSlice) -> Self {
        Self { first: Some(slice), ..self }
    }

    /// Waits while the store is overloaded: for work that is accepted already.
    #[must_use]
    pub fn waiting(self) -> Self {
        Self { when_overloaded: WhenOverloaded::Wait, ..self }
    }

    /// The next slice of at most [`MAX_SLICE_BYTES`](super::MAX_SLICE_BYTES); `None` at the end.
    ///
    /// # Errors
    ///
    /// Those of [`Store::entries`], and [`StoreError::Purged`] when the log ends early: a purge deletes the newest
    /// entries first.
    pub async fn next(&mut self) -> Result<Option<LogSlice>, StoreError> {
        if self.cursor >= self.end {
            return Ok(None);
        }
        let mut slice = match self.first.take() {
            Some(slice) => slice,
            None => self.read().await?,
        };
        self.beyond = slice.split_off(slice.partition_point(|(seq, _)| *seq <= self.end));
        let Some((last, _)) = slice.last() else { return Err(StoreError::Purged) };
        self.cursor = *last;
        Ok(Some(slice))
    }

    async fn read(&self) -> Result<LogSlice, StoreError> {
        loop {
            match self.store.entries(self.scope, self.row.no, self.cursor, usize::MAX).await {
                Err(StoreError::Overloaded) if self.when_overloaded == WhenOverloaded::Wait => {
                    tokio::time::sleep(OVERLOAD_DELAY).await;
                }
                read => return read,
            }
        }
    }

    /// Entries after the end that were read with the last slice.
    pub fn into_beyond(self) -> LogSlice {
        self.beyond
    }
}
