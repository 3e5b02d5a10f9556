//! Encodes a value of the model in a dialect, and decodes it again.

use super::{
    leaves::document,
    recognise::{LENIENT, ModelValue, decode_message, decode_task},
};
use crate::{
    Dialect, ErrorTable, Event, Operation, Task, Timestamp,
    dialect::{Frames, Leniency, Style, draft, v1, v03, v03_proto},
    json::{
        read::{Node, Path},
        write::Writer,
    },
};

/// The title of an encoded document: the method name, or the HTTP status, path and query that accompany the body.
pub(super) fn title(dialect: Dialect, value: &ModelValue) -> Option<String> {
    let operation = match value {
        ModelValue::Operation(operation) => operation,
        ModelValue::HttpError(error) => {
            return Some(match dialect {
                Dialect::V1 | Dialect::V03Proto => format!("body of status {}", status(error)),
                Dialect::Draft | Dialect::V03 => {
                    "error of a JSON-RPC response, as this dialect has no HTTP+JSON".to_owned()
                }
            });
        }
        _ => return None,
    };
    if let Some(method) = dialect.method(operation.kind()) {
        return Some(method.to_owned());
    }
    let address = v03_proto::operation::address(operation);
    let mut title = format!("body of {:?}", operation.kind());
    for (name, value) in [("task", &address.task), ("config", &address.config)] {
        if let Some(value) = value {
            title += &format!(", {name} {value:?} in the path");
        }
    }
    for (name, value) in &address.query {
        title += &format!(", {name}={value} in the query");
    }
    Some(title)
}

fn status(error: &crate::Error) -> u16 {
    error.kind.row().http_of(ErrorTable::default())
}

/// Encodes a value for a comparison: the timestamp of an error is the time of its encoding, not a part of the error.
pub(super) fn comparable(dialect: Dialect, value: &ModelValue) -> Result<Vec<String>, String> {
    encode(dialect, value, Timestamp::from_millis(0))
}

/// Encodes a value: one document, or several where the dialect splits an event into several frames. The error states
/// why the dialect cannot express the value.
pub(super) fn encode(dialect: Dialect, value: &ModelValue, now: Timestamp) -> Result<Vec<String>, String> {
    let mut writer = Writer::new();
    match value {
        ModelValue::Operation(operation) => {
            let kind = operation.kind();
            let exists = match dialect {
                Dialect::V03Proto => true,
                Dialect::Draft | Dialect::V03 | Dialect::V1 => dialect.method(kind).is_some(),
            };
            if !exists {
                return Err(format!("this version has no method for {kind:?}"));
            }
            dialect.encode_operation(&mut writer, operation);
        }
        ModelValue::Event(event) => {
            let mut frames = Vec::new();
            Frames::new(dialect, Style::default())
                .encode(event, &mut |frame| frames.push(String::from_utf8_lossy(frame).into_owned()));
            return Ok(frames);
        }
        ModelValue::Message(message) => match dialect {
            Dialect::Draft => draft::message::encode(&mut writer, message, Style::default()),
            Dialect::V03 => v03::message::encode(&mut writer, message, Style::default()),
            Dialect::V03Proto => v03_proto::message::encode(&mut writer, message),
            Dialect::V1 => v1::message::encode(&mut writer, message),
        },
        ModelValue::Task(task) => match dialect {
            Dialect::Draft => draft::task::encode(&mut writer, task, Style::default()),
            Dialect::V03 => v03::task::encode(&mut writer, task, Style::default()),
            Dialect::V03Proto => v03_proto::task::encode(&mut writer, task),
            Dialect::V1 => v1::task::encode(&mut writer, task),
        },
        ModelValue::Reply(_, reply) => dialect.encode_reply(&mut writer, reply, Style::default()),
        ModelValue::Error(error) => dialect.encode_error(&mut writer, error, now),
        ModelValue::HttpError(error) => {
            let table = ErrorTable::default();
            dialect.encode_error_body(&mut writer, error, status(error), table, now);
        }
        ModelValue::Card(card) => {
            let not_offered = || Err("the card names no interface of this version".to_owned());
            match dialect {
                Dialect::Draft if !draft::card::offered(card) => return not_offered(),
                Dialect::V03 | Dialect::V03Proto if !v03::card::offered(card) => return not_offered(),
                Dialect::Draft => draft::card::encode(&mut writer, card),
                Dialect::V03 => v03::card::encode(&mut writer, card),
                Dialect::V03Proto => v03_proto::card::encode(&mut writer, card),
                Dialect::V1 => v1::card::encode(&mut writer, card),
            }
        }
    }
    Ok(vec![String::from_utf8_lossy(&writer.finish()).into_owned()])
}

/// Decodes the encoded documents of a value. The error names a missing or invalid member.
pub(super) fn decode(
    dialect: Dialect,
    value: &ModelValue,
    written: &[String],
) -> Result<ModelValue, crate::Error> {
    if let (false, ModelValue::Event(Event::Task(_))) = (dialect.rules().streams_whole_tasks, value) {
        return Ok(ModelValue::Event(Event::Task(task_from_frames(written)?)));
    }
    let Some(first) = written.first() else { return Ok(value.clone()) };
    let raw = document(first);
    let node = Node::new(raw, &Path::Root);
    Ok(match value {
        ModelValue::Operation(operation) => {
            ModelValue::Operation(read_operation(dialect, operation, first, LENIENT)?)
        }
        ModelValue::Event(Event::Message(_)) if !dialect.rules().supports_message_replies => {
            // The draft encodes a bare message as the status message of a final status event.
            let message = match dialect.decode_event(node)? {
                Event::Status(update) => update.status.message,
                _ => None,
            };
            message.map_or_else(|| value.clone(), |message| ModelValue::Event(Event::Message(message)))
        }
        ModelValue::Event(_) => ModelValue::Event(dialect.decode_event(node)?),
        ModelValue::Message(_) => ModelValue::Message(decode_message(dialect, node)?),
        ModelValue::Task(_) => ModelValue::Task(decode_task(dialect, node)?),
        ModelValue::Reply(kind, _) => ModelValue::Reply(*kind, dialect.decode_reply(*kind, node)?),
        ModelValue::Error(_) => ModelValue::Error(dialect.decode_error(node)?),
        ModelValue::HttpError(_) => ModelValue::HttpError(dialect.decode_error_body(node)?),
        ModelValue::Card(_) => ModelValue::Card(Box::new(match dialect {
            Dialect::Draft => draft::card::decode(node)?,
            Dialect::V03 => v03::card::decode(node)?,
            Dialect::V03Proto => v03_proto::card::decode(node)?,
            Dialect::V1 => v1::card::decode(node)?,
        })),
    })
}

/// A parameter that the dialect requires and the input lacks, such as the task id that a client chooses in the draft.
pub(super) fn missing(dialect: Dialect, value: &ModelValue, written: &[String]) -> Option<String> {
    let (ModelValue::Operation(operation), Some(body)) = (value, written.first()) else { return None };
    let strict = read_operation(dialect, operation, body, Leniency::default()).err()?;
    // An error that also a lenient decoder reports is reported by `decode`.
    read_operation(dialect, operation, body, LENIENT).ok().map(|_| strict.message)
}

fn read_operation(
    dialect: Dialect,
    operation: &Operation,
    body: &str,
    leniency: Leniency,
) -> Result<Operation, crate::Error> {
    let kind = operation.kind();
    match dialect.method(kind) {
        Some(method) => dialect.decode_operation_with(method, Some(document(body)), leniency),
        None => {
            let address = v03_proto::operation::address(operation);
            v03_proto::operation::decode(kind, &address, Some(document(body)))
        }
    }
}

/// Rebuilds a task from the frames of the draft: a status event, then one event for each artifact.
fn task_from_frames(frames: &[String]) -> Result<Task, crate::Error> {
    let mut task: Option<Task> = None;
    for frame in frames {
        match (Dialect::Draft.decode_event(Node::new(document(frame), &Path::Root))?, &mut task) {
            (Event::Status(update), _) => {
                task = Some(Task {
                    id: update.task_id,
                    context_id: update.context_id,
                    status: update.status,
                    artifacts: Vec::new(),
                    history: Vec::new(),
                    metadata: update.metadata,
                    created_at: None,
                });
            }
            (Event::Artifact(update), Some(task)) => task.artifacts.push(update.artifact),
            _ => {}
        }
    }
    task.ok_or_else(|| crate::Violation::new("", "expected a status first").into())
}
