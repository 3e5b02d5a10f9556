//! A task is the fold of its log.

use protocol::{Artifact, Event, Json, Message, Task, TaskState, TaskStatus};

use super::Names;
use crate::{
    ids::Ids,
    log::{Corrupt, Entry},
    store::Snapshot,
};

/// How many messages a task's history shows; the oldest give way.
pub const MAX_HISTORY: usize = 1_000;

/// A task before its first entry.
pub fn begin(names: &Names) -> Task {
    Task {
        id: names.task.clone(),
        context_id: names.context.clone(),
        status: TaskStatus { state: TaskState::Unspecified, message: None, timestamp: None },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
    }
}

/// The task of a snapshot.
pub fn snapshot(ids: &Ids, snapshot: &Snapshot) -> Result<Task, Corrupt> {
    let mut task = snapshot.doc.clone().unwrap_or_else(|| begin(&Names::of(ids, &snapshot.row)));
    for entry in &snapshot.log {
        apply(&mut task, entry)?;
    }
    Ok(task)
}

/// Adds one entry.
///
/// History holds what users said, and what agents said when they paused or ended a turn; progress messages
/// are events only.
pub fn apply(task: &mut Task, entry: &Entry) -> Result<(), Corrupt> {
    let rider = entry.rider()?;
    if let Some(message) = rider {
        remember(task, message);
    }
    match entry.event()? {
        Event::Status(update) => {
            // What a client says about its task comes with its message.
            if rider.is_some() && update.metadata.is_some() {
                task.metadata = merge(task.metadata.take(), update.metadata.as_ref());
            }
            if let (true, Some(message)) = (update.status.state.is_settled(), &update.status.message) {
                remember(task, message);
            }
            task.status = update.status.clone();
        }
        Event::Artifact(update) => add_artifact(&mut task.artifacts, &update.artifact, update.append),
        Event::Message(message) => {
            remember(task, message);
            task.status.state = TaskState::Completed;
        }
        Event::Task(_) => {}
    }
    Ok(())
}

fn remember(task: &mut Task, message: &Message) {
    if task.history.len() == MAX_HISTORY {
        task.history.remove(0);
    }
    task.history.push(message.clone());
}

fn add_artifact(artifacts: &mut Vec<Artifact>, new: &Artifact, append: bool) {
    match artifacts.iter_mut().find(|artifact| artifact.id == new.id) {
        None => artifacts.push(new.clone()),
        Some(there) if append => {
            there.parts.extend(new.parts.iter().cloned());
            there.metadata = merge(there.metadata.take(), new.metadata.as_ref());
        }
        Some(there) => *there = new.clone(),
    }
}

/// The keys of both objects; where both have one, the newer value. What would grow too large stays as it was.
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
    use crate::log::{Line, Log};

    fn names() -> Names {
        Names { task: "t".into(), context: "c".into() }
    }

    fn fold(events: Vec<Line>) -> Task {
        let mut task = begin(&names());
        for entry in Log::pack(events).entries() {
            apply(&mut task, entry).unwrap();
        }
        task
    }

    fn said(role: Role, text: &str) -> Message {
        Message::new(text, role, vec![Part::text(text)])
    }

    fn chunk(text: &str, append: bool, metadata: Option<&str>) -> Line {
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
    fn history_is_what_was_said_but_for_progress() {
        let now = Timestamp::from_millis(0);
        let task = fold(vec![
            (names().status(TaskState::Submitted, None, now), Some(Arc::new(said(Role::User, "one")))),
            (names().status(TaskState::Working, Some(said(Role::Agent, "progress")), now), None),
            (names().status(TaskState::InputRequired, Some(said(Role::Agent, "which")), now), None),
            (names().status(TaskState::Working, None, now), Some(Arc::new(said(Role::User, "that")))),
            (names().status(TaskState::Completed, Some(said(Role::Agent, "done")), now), None),
        ]);
        let texts: Vec<_> = task.history.iter().map(Message::text).collect();
        assert_eq!(texts, ["one", "which", "that", "done"]);
        assert_eq!(task.status.message.as_ref(), task.history.last());
    }

    #[test]
    fn chunks_append_and_a_new_beginning_replaces() {
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
