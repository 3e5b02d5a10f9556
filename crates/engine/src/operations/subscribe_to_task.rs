//! Subscribes to a task's events (A2A 3.1.6).

use std::collections::HashSet;

use protocol::{ArtifactId, ErrorKind, Event, Json, SubscribeToTask, Task, dialect::v1};

use super::{
    add_metadata,
    get_task::{load, load_row},
    show_place,
};
use crate::{
    engine::{Call, EngineInner, Resume},
    error::{Error, Result},
    log::{Entry, Seq},
    store::{LogReader, TaskRow, View},
    stream::{TaskStream, Until},
    task::{PublicIds, fold},
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
    let until = if call.dialect().rules().subscription_survives_interruption {
        Until::Terminal
    } else {
        Until::Settled
    };
    let row = load_row(engine, &call, &req.id).await?;
    if is_over(&row, call.resume) {
        return last_event(engine, &call, &row, until).await;
    }
    // The watcher is created before the authoritative snapshot is read, so that no event is missed between
    // the two.
    let store = engine.store.clone();
    let mut watcher = engine.feed.watch(store, call.scope.clone(), row.no);
    if let Some(Resume::After(seen)) = call.resume {
        let row = load_row(engine, &call, &req.id).await?;
        if is_over(&row, call.resume) {
            return last_event(engine, &call, &row, until).await;
        }
        if let Some(mut task) = task_as_of(engine, &call, &row, seen).await? {
            show_place(engine, row.no, &mut task);
            let artifacts = artifacts_as_of(engine, &call, &row, seen).await?;
            watcher.seek(seen, row.last_seq);
            let stream = TaskStream::new(seen, task, until, Some(watcher));
            return Ok(stream.knowing(artifacts).through(row.last_seq));
        }
    }
    let snapshot = load(engine, &call, &req.id, View::default()).await?;
    if is_over(&snapshot.row, call.resume) {
        return last_event(engine, &call, &snapshot.row, until).await;
    }
    let last = snapshot.row.last_seq;
    let mut task = fold::into_task(&engine.ids, snapshot)?;
    show_place(engine, row.no, &mut task);
    if call.resume.is_some() {
        add_metadata(&mut task, gap());
    }
    watcher.seek(last, last);
    Ok(TaskStream::new(last, task, until, Some(watcher)).through(last))
}

/// The task with only the status it had after the entry with this number; for 0 the first status. `None` if
/// there is no such entry.
async fn task_as_of(engine: &EngineInner, call: &Call, row: &TaskRow, seq: Seq) -> Result<Option<Task>> {
    if seq > row.last_seq {
        return Ok(None);
    }
    let entry = engine.store.last_status(&call.scope, row.no, seq.max(1)).await?;
    let Some(Event::Status(update)) = entry.as_deref().map(Entry::event).transpose()? else {
        return Ok(None);
    };
    let task = fold::begin(&PublicIds::of(&engine.ids, row));
    Ok(Some(Task { status: update.status.clone(), ..task }))
}

/// The artifacts that the task had after the entry with this number, in order of first appearance. Read only
/// for streams that identify artifacts by their index or repeat their text.
async fn artifacts_as_of(
    engine: &EngineInner,
    call: &Call,
    row: &TaskRow,
    seq: Seq,
) -> Result<Vec<ArtifactId>> {
    let (mut artifacts, mut known) = (Vec::new(), HashSet::new());
    if !(call.dialect().rules().streams_artifact_indexes || call.style.answer_in_status) {
        return Ok(artifacts);
    }
    let mut reader = LogReader::new(&*engine.store, &call.scope, row, seq);
    while let Some(slice) = reader.next().await? {
        for (_, entry) in &slice {
            if let Some(chunk) = entry.chunk()?
                && known.insert(chunk.artifact_id.clone())
            {
                artifacts.push(chunk.artifact_id);
            }
        }
    }
    Ok(artifacts)
}

/// Marks the snapshot: events may be missing between what the caller received and this snapshot.
fn gap() -> Json {
    Json::parse(r#"{"gap":true}"#).expect("this is JSON")
}

/// Whether the task is terminal and the caller has received all its events.
fn is_over(row: &TaskRow, resume: Option<Resume>) -> bool {
    let missed = matches!(resume, Some(Resume::After(seen)) if seen < row.last_seq);
    row.state.is_terminal() && !missed
}

/// The reply for a terminal task: a stream with its last status in the older dialects, an error in 1.0.
async fn last_event(engine: &EngineInner, call: &Call, row: &TaskRow, until: Until) -> Result<TaskStream> {
    if call.dialect().rules().replays_final_status {
        // Nothing follows a terminal status, so the last entry is the terminal status.
        let entries = engine.store.entries(&call.scope, row.no, row.last_seq - 1, 1).await?;
        return Ok(TaskStream::of(entries, until));
    }
    let state = v1::task::state_name(row.state);
    let text = format!("the task is {state} and will not change any more; get it instead");
    Err(Error::refused(ErrorKind::UnsupportedOperation, text))
}
