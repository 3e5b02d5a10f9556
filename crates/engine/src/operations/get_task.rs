//! Reads one task (A2A 3.1.3).

use protocol::{GetTask, Reply, Task, TaskId};

use super::{show_place, trim_history};
use crate::{
    engine::{Call, EngineInner},
    error::Result,
    store::{Snapshot, TaskRow, View, Visibility},
    task::fold,
};

pub(super) async fn get_task(engine: &EngineInner, call: Call, req: GetTask) -> Result<Reply> {
    load_task(engine, &call, &req.id, req.history_length).await.map(Reply::Task)
}

/// Loads a task with its artifacts and the newest `history` messages; all of them for `None`.
pub(crate) async fn load_task(
    engine: &EngineInner,
    call: &Call,
    id: &TaskId,
    history: Option<u32>,
) -> Result<Task> {
    let snapshot = load(engine, call, id, View { history, ..View::default() }).await?;
    let no = snapshot.row.no;
    let mut task = fold::into_task(&engine.ids, snapshot)?;
    show_place(engine, no, &mut task);
    trim_history(&mut task, history);
    Ok(task)
}

/// Loads what a view shows of a task that is visible to the caller. A hidden, purged or foreign task gives the
/// same error as a missing one.
pub(super) async fn load(engine: &EngineInner, call: &Call, id: &TaskId, view: View) -> Result<Snapshot> {
    let view = View { memory: call.memory.clone(), ..view };
    let snapshot = engine.store.read(&call.scope, engine.lookup(id), view).await?;
    let visible = snapshot.filter(|snapshot| snapshot.row.visibility == Visibility::Visible);
    Ok(visible.ok_or_else(|| protocol::Error::task_not_found(id))?)
}

/// Loads the row of a task that is visible to the caller, like [`load`].
pub(super) async fn load_row(engine: &EngineInner, call: &Call, id: &TaskId) -> Result<TaskRow> {
    let row = engine.store.row(&call.scope, engine.lookup(id)).await?;
    let visible = row.filter(|row| row.visibility == Visibility::Visible);
    Ok(visible.ok_or_else(|| protocol::Error::task_not_found(id))?)
}
