//! Watches a task (A2A 3.1.6).

use protocol::{ErrorKind, Event, Json, SubscribeToTask, TaskStatus, dialect::v1};

use super::get_task::load;
use crate::{
    engine::{Call, Parts, Resume},
    error::{Error, Result},
    log::{Entry, Kind, Seq},
    store::Snapshot,
    stream::{TaskStream, Until},
    task::fold,
};

/// Starts with the task as it stands, then every later event: until the task is over, or in the older dialects until
/// it waits for its client.
///
/// A caller whose stream broke off gets what it missed instead, also of a task that is over by now: first the
/// task with nothing but its status as of the event it saw last, then the events behind that one. So chunks are not added
/// twice, and a client that stops at a terminal status has everything before it.
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
    let resumed = match call.resume {
        Some(Resume::After(seen)) if seen <= last => {
            status_as_of(engine, &call, &snapshot, seen).await?.map(|status| (seen, status))
        }
        _ => None,
    };
    if let Some((seen, status)) = resumed {
        watcher.seek(seen, last);
        return Ok(TaskStream::new(seen, task, until, Some(watcher)).not_before(last).status_only(status));
    }
    if call.resume.is_some() {
        task.metadata = Some(gap(task.metadata.as_ref()));
    }
    watcher.seek(last, last);
    Ok(TaskStream::new(last, task, until, Some(watcher)).not_before(last))
}

/// The status that the entry of this number left the task in, and before the first entry the one it began with. `None`
/// where the log does not reach back that far.
async fn status_as_of(
    engine: &Parts,
    call: &Call,
    snapshot: &Snapshot,
    seq: Seq,
) -> Result<Option<TaskStatus>> {
    let seq = seq.max(1);
    let folded = snapshot.row.last_seq - snapshot.log.len() as Seq;
    let entry = if seq < folded {
        engine.store.last_status(&call.scope, snapshot.row.no, seq).await?
    } else {
        let behind = usize::try_from(seq - folded).unwrap_or(usize::MAX);
        let status = snapshot.log.iter().take(behind).rfind(|entry| matches!(entry.kind(), Kind::Status(_)));
        if status.is_none() {
            // It has not changed since the doc was written.
            return Ok(snapshot.doc.as_ref().map(|doc| doc.status.clone()));
        }
        status.cloned()
    };
    match entry.as_deref().map(Entry::event).transpose()? {
        Some(Event::Status(update)) => Ok(Some(update.status.clone())),
        _ => Ok(None),
    }
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
