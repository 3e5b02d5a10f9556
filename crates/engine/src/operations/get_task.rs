//! Reads one task (A2A 3.1.3).

use protocol::{GetTask, Reply, TaskId};

use super::trim_history;
use crate::{
    engine::{Call, EngineInner},
    error::Result,
    store::{Snapshot, Visibility},
    task::fold,
};

pub(super) async fn get_task(engine: &EngineInner, call: Call, req: GetTask) -> Result<Reply> {
    let snapshot = load(engine, &call, &req.id).await?;
    let mut task = fold::snapshot(&engine.ids, &snapshot)?;
    trim_history(&mut task, req.history_length);
    Ok(Reply::Task(task))
}

/// Loads a task that is visible to the caller. A hidden, purged or foreign task gives the same error as a
/// missing one.
pub(super) async fn load(engine: &EngineInner, call: &Call, id: &TaskId) -> Result<Snapshot> {
    let snapshot = match &call.memory {
        Some(memory) => engine.store.find_within(&call.scope, engine.lookup(id), memory).await?,
        None => engine.store.find(&call.scope, engine.lookup(id)).await?,
    };
    let visible = snapshot.filter(|snapshot| snapshot.row.visibility == Visibility::Visible);
    Ok(visible.ok_or_else(|| protocol::Error::task_not_found(id))?)
}
