//! The task as built from delivered events, and its difference to a later snapshot.

use protocol::{
    Artifact, ArtifactId, Content, Event, Part, Task, TaskState, TaskStatus,
    model::{ArtifactUpdate, StatusUpdate},
};

/// The task that results from the events delivered so far.
#[derive(Default)]
pub(crate) struct DeliveredTask(Option<Task>);

impl DeliveredTask {
    pub(crate) fn task(&self) -> Option<&Task> {
        self.0.as_ref()
    }

    pub(crate) fn status(&self) -> Option<&TaskStatus> {
        self.0.as_ref().map(|task| &task.status)
    }

    pub(crate) fn has_artifact(&self, artifact: &ArtifactId) -> bool {
        self.artifact(artifact).is_some()
    }

    /// Applies an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Message(_) => {}
            Event::Task(task) => {
                let before = self.0.replace(task.clone()).map(|before| before.artifacts);
                // Some agents send a task without its artifacts.
                if let (Some(before), Some(task)) = (before, &mut self.0)
                    && task.artifacts.is_empty()
                {
                    task.artifacts = before;
                }
            }
            Event::Status(update) => {
                let task = self.0.get_or_insert_with(|| empty_task(&update.task_id, &update.context_id));
                task.status = update.status.clone();
            }
            Event::Artifact(update) => {
                let task = self.0.get_or_insert_with(|| empty_task(&update.task_id, &update.context_id));
                match task.artifacts.iter_mut().find(|artifact| artifact.id == update.artifact.id) {
                    Some(artifact) if update.append => {
                        artifact.parts.extend(update.artifact.parts.iter().cloned());
                    }
                    Some(artifact) => *artifact = update.artifact.clone(),
                    None => task.artifacts.push(update.artifact.clone()),
                }
            }
        }
    }

    /// The status of a later snapshot, if it differs.
    pub(crate) fn new_status(&self, now: &Task) -> Option<StatusUpdate> {
        (self.status() != Some(&now.status)).then(|| status_of(now, now.status.clone()))
    }

    /// The artifact updates that lead to a later snapshot: only the added parts if parts were appended, the
    /// whole artifact if it is new or was replaced.
    pub(crate) fn difference(&self, now: &Task) -> Vec<ArtifactUpdate> {
        now.artifacts.iter().filter_map(|artifact| self.artifact_difference(now, artifact)).collect()
    }

    fn artifact_difference(&self, now: &Task, artifact: &Artifact) -> Option<ArtifactUpdate> {
        let (parts, append) = match self.artifact(&artifact.id) {
            None => (artifact.parts.clone(), false),
            Some(known) => appended(&known.parts, &artifact.parts)
                .map_or_else(|| (artifact.parts.clone(), false), |appended| (appended, true)),
        };
        if append && parts.is_empty() {
            return None;
        }
        Some(ArtifactUpdate {
            task_id: now.id.clone(),
            context_id: now.context_id.clone(),
            artifact: Artifact { parts, ..artifact.clone() },
            append,
            last_chunk: now.status.state.is_terminal(),
            metadata: None,
        })
    }

    fn artifact(&self, id: &ArtifactId) -> Option<&Artifact> {
        self.0.as_ref()?.artifacts.iter().find(|artifact| artifact.id == *id)
    }
}

/// This status as an event.
pub(crate) fn status_of(task: &Task, status: TaskStatus) -> StatusUpdate {
    StatusUpdate { task_id: task.id.clone(), context_id: task.context_id.clone(), status, metadata: None }
}

/// The parts appended to a list; `None` if the list was replaced. Agents may join text chunks.
fn appended(known: &[Part], now: &[Part]) -> Option<Vec<Part>> {
    if now.starts_with(known) {
        return Some(now[known.len()..].to_vec());
    }
    let rest = joined(now)?.strip_prefix(joined(known)?.as_str())?.to_owned();
    Some(if rest.is_empty() { Vec::new() } else { vec![Part::text(rest)] })
}

/// The concatenated text of the parts; `None` if any part is not text.
fn joined(parts: &[Part]) -> Option<String> {
    let text = |part: &Part| match &part.content {
        Content::Text(text) => Some(text.clone()),
        _ => None,
    };
    parts.iter().map(text).collect()
}

fn empty_task(id: &protocol::TaskId, context_id: &protocol::ContextId) -> Task {
    Task {
        id: id.clone(),
        context_id: context_id.clone(),
        status: TaskStatus { state: TaskState::Unspecified, message: None, timestamp: None },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        created_at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(artifacts: &[(&str, &[&str])]) -> Task {
        let artifact = |(id, texts): &(&str, &[&str])| {
            Artifact::new(*id, texts.iter().map(|text| Part::text(*text)).collect())
        };
        Task { artifacts: artifacts.iter().map(artifact).collect(), ..empty_task(&"t".into(), &"c".into()) }
    }

    /// The updates from `before` to `now`, as (artifact, append, text).
    fn difference(before: &Task, now: &Task) -> Vec<(String, bool, String)> {
        let mut delivered = DeliveredTask::default();
        delivered.apply(&Event::Task(before.clone()));
        let updates = delivered.difference(now);
        for update in &updates {
            delivered.apply(&Event::Artifact(update.clone()));
        }
        let texts = |task: &Task| -> Vec<_> { task.artifacts.iter().map(|one| joined(&one.parts)).collect() };
        assert_eq!(texts(delivered.task().unwrap()), texts(now), "the updates complete the task");
        let summary = |update: ArtifactUpdate| {
            (update.artifact.id.to_string(), update.append, joined(&update.artifact.parts).unwrap())
        };
        updates.into_iter().map(summary).collect()
    }

    #[test]
    fn only_appended_parts_are_missing() {
        let before = task(&[("a", &["1", "2"])]);
        assert_eq!(difference(&before, &before), []);
        let now = task(&[("a", &["1", "2", "3", "4"]), ("b", &["x"])]);
        assert_eq!(
            difference(&before, &now),
            [("a".into(), true, "34".into()), ("b".into(), false, "x".into())]
        );
    }

    #[test]
    fn joined_chunks_are_the_same_text() {
        let before = task(&[("a", &["one ", "two "])]);
        assert_eq!(difference(&before, &task(&[("a", &["one two "])])), []);
        let now = task(&[("a", &["one two three"])]);
        assert_eq!(difference(&before, &now), [("a".into(), true, "three".into())]);
    }

    #[test]
    fn replaced_artifact_is_sent_whole() {
        let before = task(&[("a", &["one"])]);
        assert_eq!(difference(&before, &task(&[("a", &["two"])])), [("a".into(), false, "two".into())]);
    }
}
