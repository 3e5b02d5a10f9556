//! Builds a task by folding its log.

use protocol::{Artifact, Event, Json, Message, Task, TaskState, TaskStatus};

use super::PublicIds;
use crate::{
    ids::Ids,
    log::{Corrupt, Entry, Kind},
    store::Snapshot,
};

/// Maximum number of messages in a task's history; the oldest are removed first.
pub const MAX_HISTORY: usize = 1_000;

/// The task before its first entry.
pub fn begin(names: &PublicIds) -> Task {
    Task {
        id: names.task.clone(),
        context_id: names.context.clone(),
        status: TaskStatus { state: TaskState::Unspecified, message: None, timestamp: None },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        created_at: None,
    }
}

/// Folds a snapshot.
pub fn snapshot(ids: &Ids, snapshot: &Snapshot) -> Result<Task, Corrupt> {
    into_task(ids, snapshot.clone())
}

/// Folds a snapshot that is not needed any more, without a copy of its document.
pub fn into_task(ids: &Ids, snapshot: Snapshot) -> Result<Task, Corrupt> {
    let mut task = snapshot.doc.unwrap_or_else(|| begin(&PublicIds::of(ids, &snapshot.row)));
    for entry in &snapshot.log {
        apply(&mut task, entry)?;
    }
    Ok(task)
}

/// Applies one entry.
///
/// The history contains user messages and the agent messages of interrupted and terminal statuses; progress
/// messages are events only.
pub fn apply(task: &mut Task, entry: &Entry) -> Result<(), Corrupt> {
    for message in messages(entry)?.into_iter().flatten() {
        push_history(task, message);
    }
    match entry.event()? {
        Event::Status(update) => {
            // Task metadata is sent by clients together with a message.
            if entry.has_user_message() && update.metadata.is_some() {
                task.metadata = merge(task.metadata.take(), update.metadata.as_ref());
            }
            task.status = update.status.clone();
        }
        Event::Artifact(update) => add_artifact(&mut task.artifacts, &update.artifact, update.append),
        Event::Message(_) => task.status.state = TaskState::Completed,
        Event::Task(_) => {}
    }
    Ok(())
}

/// The messages that an entry adds to the history: the user's, then the agent's.
pub(crate) fn messages(entry: &Entry) -> Result<[Option<&Message>; 2], Corrupt> {
    let agent_message = match entry.kind() {
        Kind::Status(state) if !state.is_settled() => None,
        Kind::Artifact => None,
        Kind::Status(_) | Kind::Message => match entry.event()? {
            Event::Status(update) => update.status.message.as_ref(),
            Event::Message(message) => Some(message),
            Event::Artifact(_) | Event::Task(_) => None,
        },
    };
    Ok([entry.user_message()?, agent_message])
}

fn push_history(task: &mut Task, message: &Message) {
    if task.history.len() == MAX_HISTORY {
        task.history.remove(0);
    }
    task.history.push(message.clone());
}

/// Adds an artifact, or its next chunk.
pub(crate) fn add_artifact(artifacts: &mut Vec<Artifact>, new: &Artifact, append: bool) {
    match artifacts.iter_mut().find(|artifact| artifact.id == new.id) {
        None => artifacts.push(new.clone()),
        Some(there) if append => {
            there.parts.extend(new.parts.iter().cloned());
            there.metadata = merge(there.metadata.take(), new.metadata.as_ref());
        }
        Some(there) => *there = new.clone(),
    }
}

/// Merges two objects; the newer value wins. If the result would be too large, the old object is kept.
fn merge(old: Option<Json>, new: Option<&Json>) -> Option<Json> {
    match (old, new) {
        (Some(old), Some(new)) => Some(Json::merge_objects(&old, new).unwrap_or(old)),
        (old, new) => old.or_else(|| new.cloned()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::{Part, Role, Timestamp, model::ArtifactUpdate};

    use super::*;
    use crate::log::{Log, NewEntry};

    fn names() -> PublicIds {
        PublicIds { task: "t".into(), context: "c".into() }
    }

    fn fold(events: Vec<NewEntry>) -> Task {
        let mut task = begin(&names());
        for entry in Log::pack(events).entries() {
            apply(&mut task, entry).unwrap();
        }
        task
    }

    fn message(role: Role, text: &str) -> Message {
        Message::new(text, role, vec![Part::text(text)])
    }

    fn chunk(text: &str, append: bool, metadata: Option<&str>) -> NewEntry {
        let mut artifact = Artifact::new("a", vec![Part::text(text)]);
        artifact.metadata = metadata.map(|text| Json::parse(text).unwrap());
        let update = ArtifactUpdate {
            task_id: "t".into(),
            context_id: "c".into(),
            artifact,
            append,
            last_chunk: false,
            metadata: None,
        };
        (Event::Artifact(update), None)
    }

    #[test]
    fn history_excludes_progress_messages() {
        let now = Timestamp::from_millis(0);
        let task = fold(vec![
            (names().status(TaskState::Submitted, None, now), Some(Arc::new(message(Role::User, "one")))),
            (names().status(TaskState::Working, Some(message(Role::Agent, "progress")), now), None),
            (names().status(TaskState::InputRequired, Some(message(Role::Agent, "which")), now), None),
            (names().status(TaskState::Working, None, now), Some(Arc::new(message(Role::User, "that")))),
            (names().status(TaskState::Completed, Some(message(Role::Agent, "done")), now), None),
        ]);
        let texts: Vec<_> = task.history.iter().map(Message::text).collect();
        assert_eq!(texts, ["one", "which", "that", "done"]);
        assert_eq!(task.status.message.as_ref(), task.history.last());
    }

    #[test]
    fn appended_chunks_are_added_and_a_new_first_chunk_replaces() {
        let task = fold(vec![
            chunk("a", false, Some(r#"{"k":1,"l":1}"#)),
            chunk("b", true, Some(r#"{"k":2,"m":3}"#)),
        ]);
        assert_eq!(task.artifacts[0].parts.len(), 2);
        assert_eq!(task.artifacts[0].metadata.as_ref().unwrap().as_str(), r#"{"k":2,"l":1,"m":3}"#);
        let task = fold(vec![chunk("a", true, None), chunk("b", true, None), chunk("c", false, None)]);
        assert_eq!(task.artifacts.len(), 1);
        assert_eq!(task.artifacts[0].parts, [Part::text("c")]);
    }
}
