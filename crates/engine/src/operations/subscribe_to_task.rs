//! Watches a task (A2A 3.1.6).

use protocol::{ErrorKind, Json, SubscribeToTask, dialect::v1};

use super::get_task::load;
use crate::{
    engine::{Call, Parts, Resume},
    error::{Error, Result},
    store::Snapshot,
    stream::{TaskStream, Until},
    task::fold,
};

/// Starts with the task as it stands, then every later event: until the task is over, or in the older dialects until
/// it waits for its client.
///
/// A caller whose stream broke off gets what it missed instead, also of a task that is over by now: first the
/// task with its status only, so that chunks are not added twice, then the events behind the one it saw last.
pub(super) async fn subscribe_to_task(
    engine: &Parts,
    call: Call,
    req: SubscribeToTask,
) -> Result<TaskStream> {
    let until = if call.dialect.subscribes_beyond_turns() { Until::Terminal } else { Until::Settled };
    let found = load(engine, &call, &req.id).await?;
    if is_over(&found, call.resume) {
        return last_event(engine, &call, &found, until).await;
    }
    // Watching starts before the snapshot that counts is read, so that nothing falls between the two.
    let store = engine.store.clone();
    let mut watcher = engine.feed.watch(store, call.scope.clone(), found.row.no);
    let snapshot = load(engine, &call, &req.id).await?;
    if is_over(&snapshot, call.resume) {
        return last_event(engine, &call, &snapshot, until).await;
    }
    let last = snapshot.row.last_seq;
    let mut task = fold::snapshot(&engine.ids, &snapshot)?;
    let from = match call.resume {
        Some(Resume::After(seen)) if seen <= last => seen,
        Some(_) => {
            task.metadata = Some(gap(task.metadata.as_ref()));
            last
        }
        None => last,
    };
    watcher.seek(from, last);
    let resumed = matches!(call.resume, Some(Resume::After(seen)) if seen <= last);
    let stream = TaskStream::new(from, task, until, Some(watcher)).not_before(last);
    Ok(if resumed { stream.status_only() } else { stream })
}

/// Says that events may be missing between what the caller saw and this snapshot.
fn gap(metadata: Option<&Json>) -> Json {
    let gap = Json::parse(r#"{"gap":true}"#).expect("this is JSON");
    metadata.and_then(|metadata| Json::merge_objects(metadata, &gap)).unwrap_or(gap)
}

/// Whether the task is over and the caller has seen everything of it.
fn is_over(snapshot: &Snapshot, resume: Option<Resume>) -> bool {
    let missed = matches!(resume, Some(Resume::After(seen)) if seen < snapshot.row.last_seq);
    snapshot.row.state.is_terminal() && !missed
}

/// What is left to show of a task that is over: its last status in the older dialects, nothing in 1.0.
async fn last_event(engine: &Parts, call: &Call, snapshot: &Snapshot, until: Until) -> Result<TaskStream> {
    let row = &snapshot.row;
    if call.dialect.shows_the_end_again() {
        // Nothing follows a terminal status, so the last entry is that.
        let entries = engine.store.entries(&call.scope, row.no, row.last_seq - 1, 1).await?;
        return Ok(TaskStream::of(entries, until));
    }
    let state = v1::task::state_name(row.state);
    let text = format!("the task is {state}, nothing more will happen to it; get it instead");
    Err(Error::refused(ErrorKind::UnsupportedOperation, text))
}
