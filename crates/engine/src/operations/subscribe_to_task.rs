//! Watches a task (A2A 3.1.6).

use protocol::{ErrorKind, SubscribeToTask, dialect::v1};

use super::get_task::load;
use crate::{
    engine::{Call, Parts},
    error::{Error, Result},
    feed::Patience,
    store::Snapshot,
    stream::{TaskStream, Until},
    task::fold,
};

/// Starts with the task as it stands, then every later event until the task is over, however many turns away.
pub(super) async fn subscribe_to_task(
    engine: &Parts,
    call: Call,
    req: SubscribeToTask,
) -> Result<TaskStream> {
    let found = load(engine, &call, &req.id).await?;
    refuse_if_over(&found)?;
    // Watching starts before the snapshot that counts is read, so that nothing falls between the two.
    let store = engine.store.clone();
    let mut watcher = engine.feed.watch(store, call.scope.clone(), found.row.no, Patience::Stream);
    let snapshot = load(engine, &call, &req.id).await?;
    refuse_if_over(&snapshot)?;
    watcher.seek(snapshot.row.last_seq);
    let task = fold::snapshot(&engine.ids, &snapshot)?;
    Ok(TaskStream::new(snapshot.row.last_seq, task, Until::Terminal, Some(watcher)))
}

fn refuse_if_over(snapshot: &Snapshot) -> Result<()> {
    if snapshot.row.state.is_terminal() {
        let state = v1::task::state_name(snapshot.row.state);
        let text = format!("the task is {state}, nothing more will happen to it; get it instead");
        return Err(Error::refused(ErrorKind::UnsupportedOperation, text));
    }
    Ok(())
}
