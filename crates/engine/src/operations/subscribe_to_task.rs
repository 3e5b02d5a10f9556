//! Watches a task (A2A 3.1.6).

use protocol::{ErrorKind, Json, SubscribeToTask, Task, dialect::v1};

use super::get_task::load;
use crate::{
    engine::{Call, Parts, Resume},
    error::{Error, Result},
    feed::Patience,
    store::Snapshot,
    stream::{TaskStream, Until},
    task::fold,
};

/// Starts with the task as it stands, then every later event until the task is over, however many turns away.
///
/// A caller whose stream broke off gets what it missed instead, also of a task that is over by now: first the
/// task with its status only, so that chunks are not added twice, then the events behind the one it saw last.
pub(super) async fn subscribe_to_task(
    engine: &Parts,
    call: Call,
    req: SubscribeToTask,
) -> Result<TaskStream> {
    let found = load(engine, &call, &req.id).await?;
    let resume = call.resume;
    refuse_if_over(&found, resume)?;
    // Watching starts before the snapshot that counts is read, so that nothing falls between the two.
    let store = engine.store.clone();
    let mut watcher = engine.feed.watch(store, call.scope.clone(), found.row.no, Patience::Stream);
    let snapshot = load(engine, &call, &req.id).await?;
    refuse_if_over(&snapshot, resume)?;
    let last = snapshot.row.last_seq;
    let mut task = fold::snapshot(&engine.ids, &snapshot)?;
    let from = match resume {
        Some(Resume::After(seen)) if seen <= last => {
            task = Task { artifacts: Vec::new(), history: Vec::new(), ..task };
            seen
        }
        Some(_) => {
            task.metadata = Some(gap(task.metadata.as_ref()));
            last
        }
        None => last,
    };
    watcher.seek(from, last);
    Ok(TaskStream::new(from, task, Until::Terminal, Some(watcher)))
}

/// Says that events may be missing between what the caller saw and this snapshot.
fn gap(metadata: Option<&Json>) -> Json {
    let gap = Json::parse(r#"{"gap":true}"#).expect("this is JSON");
    metadata.and_then(|metadata| Json::merge_objects(metadata, &gap)).unwrap_or(gap)
}

fn refuse_if_over(snapshot: &Snapshot, resume: Option<Resume>) -> Result<()> {
    let missed = matches!(resume, Some(Resume::After(seen)) if seen < snapshot.row.last_seq);
    if snapshot.row.state.is_terminal() && !missed {
        let state = v1::task::state_name(snapshot.row.state);
        let text = format!("the task is {state}, nothing more will happen to it; get it instead");
        return Err(Error::refused(ErrorKind::UnsupportedOperation, text));
    }
    Ok(())
}
