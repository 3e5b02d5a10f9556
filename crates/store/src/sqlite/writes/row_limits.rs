//! Limits of SQLite and of the schema. A change that exceeds one is rejected before its first statement: an SQL error
//! would stop the writer.

use engine::{
    log::Seq,
    store::{Change, JournalStep, NotCommitted, Step},
};

use crate::sqlite::tables::rows;

/// Largest blob that is written. SQLite's limit for a row is 1,000,000,000 bytes, and exceeding it would stop the
/// writer.
const MAX_BLOB_BYTES: usize = 900_000_000;
/// Sequence numbers that only the end of a task can use, so that a task with too many entries can still fail.
const RESERVED_SEQS: Seq = 1_024;

/// Whether a blob of this size can be stored.
pub(crate) fn fits_in_row(bytes: usize) -> bool {
    bytes <= MAX_BLOB_BYTES
}

/// Rejects a change that SQLite could not store, before any statement is executed.
pub(crate) fn check_blobs(change: &Change) -> Result<(), NotCommitted> {
    let saved = change.saved().map_or(0, |saved| saved.state.len());
    let step = change.journal().steps().iter().map(JournalStep::size).max().unwrap_or(0);
    match change.log().segment().len().max(saved).max(step) {
        bytes if fits_in_row(bytes) => Ok(()),
        bytes => Err(NotCommitted::TooLarge(format!(
            "a single change of the task has {bytes} bytes, and the store can hold {MAX_BLOB_BYTES}"
        ))),
    }
}

/// The highest sequence number that a step may use.
pub(crate) fn max_seq(step: Step) -> Seq {
    match step {
        Step::Finish { .. } | Step::Cancel | Step::Expire { .. } => rows::MAX_SEQ,
        _ => rows::MAX_SEQ - RESERVED_SEQS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_stay_below_the_limit_of_sqlite() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        // SQLite checks the size of such a blob and does not allocate it.
        let blob = |bytes: usize| {
            let sql = format!("SELECT length(zeroblob({bytes}))");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0))
        };
        assert!(blob(MAX_BLOB_BYTES + 1_000).is_ok() && blob(1_000_000_001).is_err());
        assert!(fits_in_row(MAX_BLOB_BYTES) && !fits_in_row(MAX_BLOB_BYTES + 1));
    }
}
