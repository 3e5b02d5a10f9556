//! What a delivery contains: the body in whichever version of A2A it is. Pure.

use client::text;
use protocol::{
    Dialect, Event, TaskStatus, Violation,
    dialect::draft,
    json::{
        Raw,
        read::{Node, Path, Read},
    },
};

use crate::cli::calls::outcome::state_name;

/// A notification about a task.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Notification {
    /// Empty for a message without a task.
    pub(super) task: String,
    /// Empty if it has no state.
    pub(super) state: &'static str,
    /// `task`, `status`, `artifact` or `message`.
    pub(super) event: &'static str,
    /// Of A2A.
    pub(super) version: &'static str,
    /// The text of the status, or of an artifact or message.
    pub(super) text: String,
}

impl Notification {
    /// Reads a body: an event of 1.0 or of 0.3, or a task of the draft. The error names what is wrong with it.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        let raw = Raw::parse(body).map_err(|fault| format!("the body is not JSON: {fault}"))?;
        let (dialect, event) =
            read_event(Node::new(raw, &Path::Root)).map_err(|violation| describe(&violation))?;
        Ok(Self::of(dialect, &event))
    }

    fn of(dialect: Dialect, event: &Event) -> Self {
        let version = dialect.label();
        let of_status = |status: &TaskStatus| {
            (state_name(status.state), status.message.as_ref().map(text::of_message).unwrap_or_default())
        };
        let (event, task, (state, text)) = match event {
            Event::Task(task) => ("task", task.id.to_string(), of_status(&task.status)),
            Event::Status(update) => ("status", update.task_id.to_string(), of_status(&update.status)),
            Event::Artifact(update) => {
                ("artifact", update.task_id.to_string(), ("", text::of_parts(&update.artifact.parts)))
            }
            Event::Message(message) => {
                let task = message.task_id.as_ref().map(ToString::to_string);
                ("message", task.unwrap_or_default(), ("", text::of_message(message)))
            }
        };
        Self { task, state, event, version, text }
    }
}

fn describe(violation: &Violation) -> String {
    match violation.field.as_str() {
        "" => format!("the body is no notification: {}", violation.problem),
        field => format!("the body is no notification: {field}: {}", violation.problem),
    }
}

fn read_event(node: Node<'_, '_>) -> Read<(Dialect, Event)> {
    let object = node.object()?;
    let has = |name: &str| object.present(name).is_some();
    if ["task", "statusUpdate", "artifactUpdate", "message", "status_update", "artifact_update"]
        .into_iter()
        .any(has)
    {
        return Ok((Dialect::V1, Dialect::V1.decode_event(node)?));
    }
    if has("kind") {
        return Ok((Dialect::V03, Dialect::V03.decode_event(node)?));
    }
    if has("id") && has("status") {
        return Ok((Dialect::Draft, Event::Task(draft::task::decode(node)?)));
    }
    Err(object.expected(
        "an event of A2A 1.0 (task, statusUpdate or artifactUpdate), or a task of 0.3 or the draft",
    ))
}

/// A JSON document without line breaks; `None` if it is no JSON.
pub(super) fn on_one_line(body: &[u8]) -> Option<String> {
    // Line breaks within strings are escaped.
    Raw::parse(body).ok().map(|raw| raw.get().replace(['\r', '\n'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_every_version_are_read() {
        let read = |body: &str| {
            let Notification { task, state, event, version, text } =
                Notification::read(body.as_bytes()).unwrap();
            format!("{event} {task} {state} {version} {text}")
        };
        let message = r#"{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"done"}]}"#;
        let status = format!(r#"{{"state":"TASK_STATE_COMPLETED","message":{message}}}"#);
        let task = format!(r#"{{"task":{{"id":"t","contextId":"c","status":{status}}}}}"#);
        assert_eq!(read(&task), "task t completed 1.0 done");
        let update = format!(r#"{{"statusUpdate":{{"taskId":"t","contextId":"c","status":{status}}}}}"#);
        assert_eq!(read(&update), "status t completed 1.0 done");
        let artifact = r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}]}}}"#;
        assert_eq!(read(artifact), "artifact t  1.0 x");
        let old = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"input-required","message":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"Which?"}]}}}"#;
        assert_eq!(read(old), "task t input-required 0.3 Which?");
        let draft = r#"{"id":"t","sessionId":"s","status":{"state":"failed","message":{"role":"agent","parts":[{"type":"text","text":"no"}]}}}"#;
        assert_eq!(read(draft), "task t failed draft no");
    }

    #[test]
    fn other_bodies_are_refused() {
        for body in
            ["", "hello", "[]", "{}", r#"{"id":"t"}"#, r#"{"task":{"id":"t"}}"#, r#"{"kind":"other"}"#]
        {
            let problem = Notification::read(body.as_bytes()).unwrap_err();
            assert!(problem.contains("expected") || problem.contains("not JSON"), "{body}: {problem}");
        }
    }
}
