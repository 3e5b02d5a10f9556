//! Ends a task at its client's wish (A2A 3.1.5).
//!
//! Cancelling is itself the terminal event: it is decided where it is committed, the fence moves with it, and
//! whatever the run says afterwards is refused. A success is final.

use protocol::{CancelTask, Reply};

use super::{get_task::load, trim_history};
use crate::{
    engine::{Call, Parts},
    error::{Error, Result},
    log::Log,
    store::{Advance, Change, NotCommitted, Snapshot, Step},
    task::{Names, cancel, fold},
};

/// How often a decision is made anew because the task moved on under it.
const TRIES: usize = 8;

pub(super) async fn cancel_task(engine: &Parts, call: Call, req: CancelTask) -> Result<Reply> {
    for _ in 0..TRIES {
        let snapshot = load(engine, &call, &req.id).await?;
        if cancel_if_open(engine, &snapshot).await? {
            // What the run said between the first look and the cancel belongs to the task too.
            let canceled = load(engine, &call, &req.id).await?;
            let mut task = fold::snapshot(&engine.ids, &canceled)?;
            if !call.dialect.shows_history_unasked() && !call.task_policy.whole_history {
                trim_history(&mut task, Some(0));
            }
            return Ok(Reply::Task(task));
        }
    }
    Err(Error::later("the task changes too fast to be canceled; try again"))
}

/// Ends the task; `false` when it has moved on to where it cannot be ended.
async fn cancel_if_open(engine: &Parts, snapshot: &Snapshot) -> Result<bool> {
    let names = Names::of(&engine.ids, &snapshot.row);
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
