//! Fills a store with finished tasks through the store's own interface, which is much faster than through a server.
//!
//! Deliberately not here: what a proof does with the store.

use std::path::Path;

use anyhow::{Result, ensure};
use engine::{
    Clock, Feed, Origin, Scope, Store,
    ids::{Tag, TaskNo},
    log::Log,
    store::{
        Accept, Change, JournalChange, MessageKey, NewContext, PrincipalCaps, SkillSource, Visibility,
        WorkState,
    },
    task::PublicIds,
};
use protocol::{TaskState, Timestamp};
use store::{Sqlite, SqliteOptions};

/// Changes queued before the first is awaited.
const BATCH: i64 = 4_096;

/// Opens a store for filling: a commit does not wait for the disk.
pub(crate) fn open(path: &Path, clock: &Clock) -> Result<Sqlite> {
    let options = SqliteOptions { sync: false, ..SqliteOptions::at(path) };
    Ok(Sqlite::open(&options, Feed::default(), clock)?)
}

/// Creates finished tasks; `task` decides the owner and the key of each by its number.
pub(crate) async fn fill(
    store: &dyn Store,
    count: i64,
    ended: Timestamp,
    task: impl Fn(i64) -> (Scope, Option<MessageKey>),
) -> Result<()> {
    let names = PublicIds { task: "task".into(), context: "context".into() };
    let log = Log::pack([(names.status(TaskState::Completed, None, ended), None)]);
    for first in (0..count).step_by(BATCH as usize) {
        let numbers = first..count.min(first + BATCH);
        let TaskNo(number) = store.reserve(BATCH).await?;
        let receipts: Vec<_> = numbers
            .map(|index| {
                let (scope, key) = task(index);
                store.commit(Change::Accept(Box::new(Accept {
                    webhook: None,
                    no: TaskNo(number + index - first),
                    tag: Tag::random(),
                    scope,
                    client_id: None,
                    skill: None,
                    skill_source: SkillSource::Server,
                    admitted: false,
                    origin: Origin::default(),
                    context: NewContext::Own,
                    log: log.clone(),
                    state: TaskState::Completed,
                    status_at: ended,
                    visibility: Visibility::Visible,
                    work: WorkState::Idle,
                    saved: None,
                    journal: JournalChange::Keep,
                    deadline: None,
                    progress_size: 0,
                    key,
                    caps: PrincipalCaps::default(),
                    asking_turns: 0,
                })))
            })
            .collect();
        for receipt in receipts {
            ensure!(receipt.await.is_ok(), "the store cannot be filled");
        }
    }
    Ok(())
}
