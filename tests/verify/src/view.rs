//! A client's view of a task: a snapshot with the later events applied to it, reduced to an [`Outcome`] once the
//! task has ended.
//!
//! Two reads of one task are compared by outcome, which omits only what may legitimately differ: how a text was
//! divided into chunks. Deliberately not here: the expected outcome.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};
use testkit::json::{is_terminal, reason, task_id, texts};

/// A task as one client sees it.
pub(crate) struct View {
    pub(crate) task: String,
    status: Value,
    artifacts: Vec<Value>,
}

/// The end of a task: everything two reads must agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) state: String,
    /// The code with which the server explains a failure of its own; empty if there is none.
    pub(crate) reason: String,
    /// Digest of the whole status including its timestamp, so that a terminal state that was lost and reached again
    /// is detected.
    pub(crate) status: u64,
    /// Digest of the artifacts with their ids.
    pub(crate) artifacts: u64,
    /// Digest of the artifacts' text alone, comparable between tasks.
    pub(crate) text: u64,
}

impl View {
    /// From a task object: a response or the first frame of a stream.
    pub(crate) fn of(task: &Value) -> Result<Self, String> {
        let mut view = Self { task: task_id(task)?, status: Value::Null, artifacts: Vec::new() };
        view.set_status(&task["status"])?;
        for artifact in task["artifacts"].as_array().into_iter().flatten() {
            view.add_artifact(artifact, false)?;
        }
        Ok(view)
    }

    /// Applies one event of a stream.
    pub(crate) fn apply(&mut self, event: &Value) -> Result<(), String> {
        let members = event.as_object().map_or(0, serde_json::Map::len);
        let (status, artifact) = (&event["statusUpdate"], &event["artifactUpdate"]);
        let update = if status.is_object() { status } else { artifact };
        if members != 1 || update["taskId"] != self.task.as_str() {
            return Err(format!("not an update of task {}: {event}", self.task));
        }
        if status.is_object() {
            return self.set_status(&status["status"]);
        }
        self.add_artifact(&artifact["artifact"], artifact["append"] == true)
    }

    pub(crate) fn state(&self) -> &str {
        self.status["state"].as_str().unwrap_or_default()
    }

    /// The outcome, if the task has ended.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        if !is_terminal(self.state()) {
            return None;
        }
        let contents: Vec<Value> = self
            .artifacts
            .iter()
            .map(|artifact| json!([artifact["artifactId"], joined_parts(artifact)]))
            .collect();
        let text: String = self.artifacts.iter().map(texts).collect();
        Some(Outcome {
            state: self.state().to_owned(),
            reason: reason(&self.status).unwrap_or_default().to_owned(),
            status: digest(&self.status),
            artifacts: digest(&Value::Array(contents)),
            text: text_digest(&text),
        })
    }

    fn set_status(&mut self, status: &Value) -> Result<(), String> {
        if !status["state"].is_string() {
            return Err(format!("the status has no state: {status}"));
        }
        self.status = status.clone();
        Ok(())
    }

    fn add_artifact(&mut self, artifact: &Value, append: bool) -> Result<(), String> {
        let id = &artifact["artifactId"];
        let known = self.artifacts.iter_mut().find(|known| known["artifactId"] == *id);
        match known {
            _ if !id.is_string() => return Err(format!("the artifact has no id: {artifact}")),
            Some(known) if append => {
                let more = artifact["parts"].as_array().cloned().unwrap_or_default();
                match known["parts"].as_array_mut() {
                    Some(parts) => parts.extend(more),
                    None => known["parts"] = Value::Array(more),
                }
            }
            Some(known) => *known = artifact.clone(),
            None if append => return Err(format!("chunk appended to an unknown artifact: {artifact}")),
            None => self.artifacts.push(artifact.clone()),
        }
        Ok(())
    }
}

/// A digest that does not depend on the order of an object's members.
pub(crate) fn digest(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    add_to(&mut hasher, value);
    hasher.finish()
}

/// The [`Outcome::text`] expected for a complete text.
pub(crate) fn text_digest(text: &str) -> u64 {
    digest(&Value::from(text))
}

fn add_to(hasher: &mut DefaultHasher, value: &Value) {
    match value {
        Value::Array(items) => {
            ("array", items.len()).hash(hasher);
            items.iter().for_each(|item| add_to(hasher, item));
        }
        Value::Object(members) => {
            ("object", members.len()).hash(hasher);
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            for name in names {
                name.hash(hasher);
                add_to(hasher, &members[name]);
            }
        }
        scalar => scalar.to_string().hash(hasher),
    }
}

/// The parts, with adjacent texts that have otherwise equal members joined.
fn joined_parts(artifact: &Value) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for part in artifact["parts"].as_array().into_iter().flatten() {
        let text = part["text"].as_str();
        match (joined.last_mut(), text) {
            (Some(last), Some(text)) if last["text"].is_string() && same_but_text(last, part) => {
                let whole = last["text"].as_str().unwrap_or_default().to_owned() + text;
                last["text"] = Value::from(whole);
            }
            _ => joined.push(part.clone()),
        }
    }
    joined
}

fn same_but_text(one: &Value, other: &Value) -> bool {
    let rest = |part: &Value| {
        let mut rest = part.clone();
        rest["text"] = Value::Null;
        rest
    };
    rest(one) == rest(other)
}
