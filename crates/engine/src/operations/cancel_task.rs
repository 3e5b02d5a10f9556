//! Cancels a task (A2A 3.1.5).
//!
//! The cancel is itself the terminal event: the commit decides whether it applies and increments the fencing
//! token, so later writes of the run are rejected. A successful cancel is final.

use protocol::{CancelTask, Reply};

use super::{get_task::load, trim_history};
use crate::{
    engine::{Call, EngineInner},
    error::{Error, Result},
    log::Log,
    store::{Advance, Change, NotCommitted, Snapshot, Step},
    task::{PublicIds, cancel, fold},
};

/// How often to retry when the task changed between read and commit.
const MAX_TRIES: usize = 8;

pub(super) async fn cancel_task(engine: &EngineInner, call: Call, req: CancelTask) -> Result<Reply> {
    for _ in 0..MAX_TRIES {
        let snapshot = load(engine, &call, &req.id).await?;
        if cancel_if_open(engine, &snapshot).await? {
            // Updates that the run committed between the read and the cancel belong to the task too.
            let canceled = load(engine, &call, &req.id).await?;
            let mut task = fold::snapshot(&engine.ids, &canceled)?;
            if !call.dialect.includes_history_by_default() && !call.task_policy.always_include_history {
                trim_history(&mut task, Some(0));
            }
            return Ok(Reply::Task(task));
        }
    }
    Err(Error::later("the task changes too fast to be canceled; try again"))
}

/// Cancels the task; `false` when it changed since the snapshot in a way that prevents it.
async fn cancel_if_open(engine: &EngineInner, snapshot: &Snapshot) -> Result<bool> {
    let names = PublicIds::of(&engine.ids, &snapshot.row);
    let event = cancel::cancel(&names, snapshot.row.state, engine.clock.now())?;
    let log = Log::pack([(event, None)]);
    let change = Change::Advance(Box::new(Advance {
        no: snapshot.row.no,
        step: Step::Cancel,
        status: log.status(),
        log,
        visibility: None,
        saved: None,
        skill: None,
        key: None,
    }));
    let receipt = engine.store.commit(change);
    match engine.runner.cancel(snapshot.row.no, receipt).await {
        Ok(Ok(_)) => Ok(true),
        Ok(Err(NotCommitted::Conflict(_))) => Ok(false),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Error::Unavailable("the engine has stopped".into())),
    }
}
