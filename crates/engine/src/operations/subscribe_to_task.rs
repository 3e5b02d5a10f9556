//! Subscribes to a task's events (A2A 3.1.6).

use protocol::{ErrorKind, Event, Json, SubscribeToTask, TaskStatus, dialect::v1};

use super::get_task::load;
use crate::{
    engine::{Call, EngineInner, Resume},
    error::{Error, Result},
    log::{Entry, Kind, Seq},
    store::Snapshot,
    stream::{TaskStream, Until},
    task::fold,
};

/// Streams a snapshot of the task, then every later event: until the task is terminal, or in the older
/// dialects until it is terminal or interrupted.
///
/// A caller that resumes a broken stream gets the events it missed instead, also when the task has ended
/// meanwhile: first the task with only the status it had at the last seen event, then the events after that
/// one. So artifact chunks are not delivered twice, and a client that stops at a terminal status has received
/// everything before it.
pub(super) async fn subscribe_to_task(
    engine: &EngineInner,
    call: Call,
    req: SubscribeToTask,
) -> Result<TaskStream> {
    let until =
        if call.dialect.subscription_survives_interruption() { Until::Terminal } else { Until::Settled };
    let found = load(engine, &call, &req.id).await?;
    if is_over(&found, call.resume) {
        return last_event(engine, &call, &found, until).await;
    }
    // The watcher is created before the authoritative snapshot is read, so that no event is missed between
    // the two.
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
        return Ok(TaskStream::new(seen, task, until, Some(watcher)).through(last).status_only(status));
    }
    if call.resume.is_some() {
        task.metadata = Some(gap(task.metadata.as_ref()));
    }
    watcher.seek(last, last);
    Ok(TaskStream::new(last, task, until, Some(watcher)).through(last))
}

/// The task's status after the entry with this number; for 0 the first status. `None` if the log does not
/// reach back that far.
async fn status_as_of(
    engine: &EngineInner,
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
            // The status has not changed since the folded document was written.
            return Ok(snapshot.doc.as_ref().map(|doc| doc.status.clone()));
        }
        status.cloned()
    };
    match entry.as_deref().map(Entry::event).transpose()? {
        Some(Event::Status(update)) => Ok(Some(update.status.clone())),
        _ => Ok(None),
    }
}

/// Marks the snapshot: events may be missing between what the caller received and this snapshot.
fn gap(metadata: Option<&Json>) -> Json {
    let gap = Json::parse(r#"{"gap":true}"#).expect("this is JSON");
    metadata.and_then(|metadata| Json::merge_objects(metadata, &gap)).unwrap_or(gap)
}

/// Whether the task is terminal and the caller has received all its events.
fn is_over(snapshot: &Snapshot, resume: Option<Resume>) -> bool {
    let missed = matches!(resume, Some(Resume::After(seen)) if seen < snapshot.row.last_seq);
    snapshot.row.state.is_terminal() && !missed
}

/// The reply for a terminal task: a stream with its last status in the older dialects, an error in 1.0.
async fn last_event(
    engine: &EngineInner,
    call: &Call,
    snapshot: &Snapshot,
    until: Until,
) -> Result<TaskStream> {
    let row = &snapshot.row;
    if call.dialect.replays_final_status() {
        // Nothing follows a terminal status, so the last entry is the terminal status.
        let entries = engine.store.entries(&call.scope, row.no, row.last_seq - 1, 1).await?;
        return Ok(TaskStream::of(entries, until));
    }
    let state = v1::task::state_name(row.state);
    let text = format!("the task is {state} and will not change any more; get it instead");
    Err(Error::refused(ErrorKind::UnsupportedOperation, text))
}
