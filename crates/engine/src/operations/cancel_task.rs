//! Cancels a task (A2A 3.1.5).
//!
//! The cancel is itself the terminal event: the commit decides whether it applies and increments the fencing
//! token, so later writes of the run are rejected. A successful cancel is final.

use std::time::Duration;

use protocol::{CancelTask, Task, TaskId};

use super::get_task::{load_row, load_task};
use crate::{
    agent::Agent as _,
    engine::{Call, EngineInner},
    error::{Error, Result},
    log::Log,
    store::{Advance, Change, JournalChange, NotCommitted, Step, TaskRow},
    task::{PublicIds, cancel},
};

/// How often to retry when the task changed between read and commit.
const MAX_TRIES: usize = 8;
/// How often, and how long apart, a canceled task is read from an overloaded store: ten seconds in all.
const MAX_READS: usize = 100;
const READ_DELAY: Duration = Duration::from_millis(100);

pub(crate) async fn cancel_task(engine: &EngineInner, call: Call, req: CancelTask) -> Result<Task> {
    for _ in 0..MAX_TRIES {
        let row = load_row(engine, &call, &req.id).await?;
        if cancel_if_open(engine, &row).await? {
            notify_agent(engine, &call, &row);
            // Updates that the run committed between the read and the cancel belong to the task too.
            let history =
                call.dialect().rules().includes_history_by_default || call.task_policy.always_include_history;
            let history_length = if history { None } else { Some(0) };
            return load_canceled(engine, &call, &req.id, history_length).await;
        }
    }
    Err(Error::later("the task changes too fast to be canceled; try again"))
}

/// Notifies the agent, which may keep something for a task that waits for its client. It is notified of every task,
/// because a run may have kept it a moment before the task was canceled.
fn notify_agent(engine: &EngineInner, call: &Call, row: &TaskRow) {
    let catalog = engine.runner.catalog().load();
    if let Some(registered) = catalog.get(call.scope.tenant(), call.scope.agent()) {
        let task = PublicIds::of(&engine.ids, row).task;
        registered.skills().works().for_each(|work| work.abandoned(&call.scope, &task));
    }
}

/// Reads a task that was canceled. It waits for an overloaded store, because a client that tries again is refused: the
/// task is canceled already.
async fn load_canceled(
    engine: &EngineInner,
    call: &Call,
    id: &TaskId,
    history_length: Option<u32>,
) -> Result<Task> {
    for _ in 0..MAX_READS {
        match load_task(engine, call, id, history_length).await {
            Err(Error::RetryLater(_)) => tokio::time::sleep(READ_DELAY).await,
            read => return read,
        }
    }
    load_task(engine, call, id, history_length).await
}

/// Cancels the task; `false` when it changed since the row was read in a way that prevents it.
async fn cancel_if_open(engine: &EngineInner, row: &TaskRow) -> Result<bool> {
    let names = PublicIds::of(&engine.ids, row);
    let event = cancel::cancel(&names, row.state, engine.clock.now())?;
    let log = Log::pack([(event, None)]);
    let change = Change::Advance(Box::new(Advance {
        status: log.status(),
        log,
        journal: JournalChange::Clear,
        ..Advance::new(row.no, Step::Cancel)
    }));
    let receipt = engine.store.commit(change);
    match engine.runner.cancel(row.no, receipt).await {
        Ok(Ok(_)) => Ok(true),
        Ok(Err(NotCommitted::Conflict(_))) => Ok(false),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Error::Unavailable("the engine has stopped".into())),
    }
}
