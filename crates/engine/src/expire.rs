//! Fails tasks that no process runs: the deadline has passed, or the client did not reply in time.

use protocol::Timestamp;

use crate::{
    ids::TaskNo,
    store::{Change, NotCommitted, Store, StoreError, TaskRow},
    task::{PublicIds, Reason, turn::expiry},
};

/// Fails these tasks, unless they continued meanwhile, with a reason code and a text for the client; returns those that
/// have failed. All are queued before the first is awaited, so that they share commits.
pub(crate) async fn expire(
    store: &dyn Store,
    rows: &[TaskRow],
    reason: Reason,
    text: impl Fn(&TaskRow) -> String,
    now: Timestamp,
) -> Result<Vec<TaskNo>, StoreError> {
    let ids = store.ids();
    let commit = |row: &TaskRow| {
        let names = PublicIds::of(&ids, row);
        let why = names.explain(text(row), reason, None);
        store.commit(Change::Advance(Box::new(expiry(row, &names, why, now))))
    };
    let receipts: Vec<_> = rows.iter().map(commit).collect();
    let mut failed = Vec::new();
    for (row, receipt) in rows.iter().zip(receipts) {
        match receipt.await {
            Ok(_) => failed.push(row.no),
            Err(NotCommitted::Unavailable(reason)) => return Err(StoreError::Unavailable(reason)),
            Err(_) => {}
        }
    }
    Ok(failed)
}
