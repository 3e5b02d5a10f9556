//! What has been told of a task so far, and what of a later state of it has not.

use protocol::{
    Artifact, ArtifactId, Content, Event, Part, Task, TaskState, TaskStatus,
    model::{ArtifactUpdate, StatusUpdate},
};

/// The task as its events tell it.
#[derive(Default)]
pub(crate) struct Seen(Option<Task>);

impl Seen {
    pub(crate) fn task(&self) -> Option<&Task> {
        self.0.as_ref()
    }

    pub(crate) fn status(&self) -> Option<&TaskStatus> {
        self.0.as_ref().map(|task| &task.status)
    }

    pub(crate) fn knows(&self, artifact: &ArtifactId) -> bool {
        self.artifact(artifact).is_some()
    }

    /// Takes in an event.
    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::Message(_) => {}
            Event::Task(task) => {
                let before = self.0.replace(task.clone()).map(|before| before.artifacts);
                // Some agents show a task without what it has made so far.
                if let (Some(before), Some(task)) = (before, &mut self.0)
                    && task.artifacts.is_empty()
                {
                    task.artifacts = before;
                }
            }
            Event::Status(update) => {
                let task = self.0.get_or_insert_with(|| unknown(&update.task_id, &update.context_id));
                task.status = update.status.clone();
            }
            Event::Artifact(update) => {
                let task = self.0.get_or_insert_with(|| unknown(&update.task_id, &update.context_id));
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

    /// The status of a later state, where it is news.
    pub(crate) fn new_status(&self, now: &Task) -> Option<StatusUpdate> {
        (self.status() != Some(&now.status)).then(|| status_of(now, now.status.clone()))
    }

    /// What a later state has made that has not been told: what was added where something was added, and the whole
    /// artifact where it is new or another.
    pub(crate) fn missing(&self, now: &Task) -> Vec<ArtifactUpdate> {
        now.artifacts.iter().filter_map(|artifact| self.missing_of(now, artifact)).collect()
    }

    fn missing_of(&self, now: &Task, artifact: &Artifact) -> Option<ArtifactUpdate> {
        let (parts, append) = match self.artifact(&artifact.id) {
            None => (artifact.parts.clone(), false),
            Some(known) => added(&known.parts, &artifact.parts)
                .map_or_else(|| (artifact.parts.clone(), false), |added| (added, true)),
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

/// This status as the event that tells it.
pub(crate) fn status_of(task: &Task, status: TaskStatus) -> StatusUpdate {
    StatusUpdate { task_id: task.id.clone(), context_id: task.context_id.clone(), status, metadata: None }
}

/// What was added to a list of parts; `None` where it is another list. Agents may join the chunks of a text.
fn added(known: &[Part], now: &[Part]) -> Option<Vec<Part>> {
    if now.starts_with(known) {
        return Some(now[known.len()..].to_vec());
    }
    let rest = joined(now)?.strip_prefix(joined(known)?.as_str())?.to_owned();
    Some(if rest.is_empty() { Vec::new() } else { vec![Part::text(rest)] })
}

/// The parts as one text, when they are nothing else.
fn joined(parts: &[Part]) -> Option<String> {
    let text = |part: &Part| match &part.content {
        Content::Text(text) => Some(text.clone()),
        _ => None,
    };
    parts.iter().map(text).collect()
}

fn unknown(id: &protocol::TaskId, context_id: &protocol::ContextId) -> Task {
    Task {
        id: id.clone(),
        context_id: context_id.clone(),
        status: TaskStatus { state: TaskState::Unspecified, message: None, timestamp: None },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(artifacts: &[(&str, &[&str])]) -> Task {
        let artifact = |(id, texts): &(&str, &[&str])| {
            Artifact::new(*id, texts.iter().map(|text| Part::text(*text)).collect())
        };
        Task { artifacts: artifacts.iter().map(artifact).collect(), ..unknown(&"t".into(), &"c".into()) }
    }

    /// What of `now` is missing where `before` was seen, as (artifact, appended, text).
    fn missing(before: &Task, now: &Task) -> Vec<(String, bool, String)> {
        let mut seen = Seen::default();
        seen.take(&Event::Task(before.clone()));
        let updates = seen.missing(now);
        for update in &updates {
            seen.take(&Event::Artifact(update.clone()));
        }
        let texts = |task: &Task| -> Vec<_> { task.artifacts.iter().map(|one| joined(&one.parts)).collect() };
        assert_eq!(texts(seen.task().unwrap()), texts(now), "what was missing makes it whole");
        let told = |update: ArtifactUpdate| {
            (update.artifact.id.to_string(), update.append, joined(&update.artifact.parts).unwrap())
        };
        updates.into_iter().map(told).collect()
    }

    #[test]
    fn only_what_was_added_is_missing() {
        let before = task(&[("a", &["1", "2"])]);
        assert_eq!(missing(&before, &before), []);
        let now = task(&[("a", &["1", "2", "3", "4"]), ("b", &["x"])]);
        assert_eq!(
            missing(&before, &now),
            [("a".into(), true, "34".into()), ("b".into(), false, "x".into())]
        );
    }

    #[test]
    fn chunks_that_were_joined_are_the_same_text() {
        let before = task(&[("a", &["one ", "two "])]);
        assert_eq!(missing(&before, &task(&[("a", &["one two "])])), []);
        let now = task(&[("a", &["one two three"])]);
        assert_eq!(missing(&before, &now), [("a".into(), true, "three".into())]);
    }

    #[test]
    fn what_became_another_is_told_as_a_whole() {
        let before = task(&[("a", &["one"])]);
        assert_eq!(missing(&before, &task(&[("a", &["two"])])), [("a".into(), false, "two".into())]);
    }
}
