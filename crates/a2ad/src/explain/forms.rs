//! One thing of the model as a dialect writes it, and what the dialect reads from that.

use engine::Clock;
use protocol::{
    Dialect, ErrorTable, Event, Operation, Task,
    dialect::{Frames, Leniency, Style, draft, v1, v03, v03_proto},
    json::{
        read::{Node, Path},
        write::Writer,
    },
};

use super::{
    leaves::document,
    recognise::{LENIENT, Thing, decode_message, decode_task},
};

/// What is written above the form: the method, or what stands beside the body.
pub(super) fn title(dialect: Dialect, thing: &Thing) -> Option<String> {
    let operation = match thing {
        Thing::Operation(operation) => operation,
        Thing::Refusal(error) => {
            let over_http = matches!(dialect, Dialect::V1 | Dialect::V03Proto);
            return Some(match over_http {
                true => format!("body of status {}", status(error)),
                false => "error of a JSON-RPC answer, as this dialect has no HTTP+JSON".to_owned(),
            });
        }
        _ => return None,
    };
    if let Some(method) = dialect.method(operation.kind()) {
        return Some(method.to_owned());
    }
    let address = v03_proto::operation::address(operation);
    let mut beside = format!("body of {:?}", operation.kind());
    for (name, value) in [("task", &address.task), ("config", &address.config)] {
        if let Some(value) = value {
            beside += &format!(", {name} {value:?} in the path");
        }
    }
    for (name, value) in &address.query {
        beside += &format!(", {name}={value} in the query");
    }
    Some(beside)
}

/// The HTTP status of an error.
fn status(error: &protocol::Error) -> u16 {
    error.kind.row().http_of(ErrorTable::default())
}

/// The documents a dialect makes of it; several where an event is several frames. The error says why there is none.
pub(super) fn write(dialect: Dialect, thing: &Thing) -> Result<Vec<String>, String> {
    let mut writer = Writer::new();
    match thing {
        Thing::Operation(operation) => {
            let kind = operation.kind();
            if dialect.method(kind).is_none() && dialect != Dialect::V03Proto {
                return Err(format!("this generation has no method for {kind:?}"));
            }
            dialect.encode_operation(&mut writer, operation);
        }
        Thing::Event(event) => {
            let mut frames = Vec::new();
            Frames::new(dialect, Style::default())
                .encode(event, &mut |frame| frames.push(String::from_utf8_lossy(frame).into_owned()));
            return Ok(frames);
        }
        Thing::Message(message) => match dialect {
            Dialect::Draft => draft::message::encode(&mut writer, message, Style::default()),
            Dialect::V03 => v03::message::encode(&mut writer, message, Style::default()),
            Dialect::V03Proto => v03_proto::message::encode(&mut writer, message),
            Dialect::V1 => v1::message::encode(&mut writer, message),
        },
        Thing::Task(task) => match dialect {
            Dialect::Draft => draft::task::encode(&mut writer, task, Style::default()),
            Dialect::V03 => v03::task::encode(&mut writer, task, Style::default()),
            Dialect::V03Proto => v03_proto::task::encode(&mut writer, task),
            Dialect::V1 => v1::task::encode(&mut writer, task),
        },
        Thing::Reply(_, reply) => dialect.encode_reply(&mut writer, reply, Style::default()),
        Thing::Error(error) => dialect.encode_error(&mut writer, error, Clock::system().now()),
        Thing::Refusal(error) => {
            let table = ErrorTable::default();
            dialect.encode_refusal(&mut writer, error, status(error), table, Clock::system().now());
        }
        Thing::Card(card) => {
            let silent = || Err("the card names no interface that speaks this generation".to_owned());
            match dialect {
                Dialect::Draft if !draft::card::offered(card) => return silent(),
                Dialect::V03 | Dialect::V03Proto if !v03::card::offered(card) => return silent(),
                Dialect::Draft => draft::card::encode(&mut writer, card),
                Dialect::V03 => v03::card::encode(&mut writer, card),
                Dialect::V03Proto => v03_proto::card::encode(&mut writer, card),
                Dialect::V1 => v1::card::encode(&mut writer, card),
            }
        }
    }
    Ok(vec![String::from_utf8_lossy(&writer.finish()).into_owned()])
}

/// What a reader of the dialect makes of those documents. The error names what it misses.
pub(super) fn read(dialect: Dialect, thing: &Thing, written: &[String]) -> Result<Thing, protocol::Error> {
    if let (Dialect::Draft, Thing::Event(Event::Task(_))) = (dialect, thing) {
        return Ok(Thing::Event(Event::Task(fold(written)?)));
    }
    let Some(first) = written.first() else { return Ok(thing.clone()) };
    let raw = document(first);
    let node = Node::new(raw, &Path::Root);
    Ok(match thing {
        Thing::Operation(operation) => Thing::Operation(read_operation(dialect, operation, first, LENIENT)?),
        Thing::Event(Event::Message(_)) if dialect == Dialect::Draft => {
            // A bare message ends a task there; what it says is the message of that status.
            let said = match dialect.decode_event(node)? {
                Event::Status(update) => update.status.message,
                _ => None,
            };
            said.map_or_else(|| thing.clone(), |said| Thing::Event(Event::Message(said)))
        }
        Thing::Event(_) => Thing::Event(dialect.decode_event(node)?),
        Thing::Message(_) => Thing::Message(decode_message(dialect, node)?),
        Thing::Task(_) => Thing::Task(decode_task(dialect, node)?),
        Thing::Reply(kind, _) => Thing::Reply(*kind, dialect.decode_reply(*kind, node)?),
        Thing::Error(_) => Thing::Error(dialect.decode_error(node)?),
        Thing::Refusal(_) => Thing::Refusal(dialect.decode_refusal(node)?),
        Thing::Card(_) => Thing::Card(Box::new(match dialect {
            Dialect::Draft => draft::card::decode(node)?,
            Dialect::V03 => v03::card::decode(node)?,
            Dialect::V03Proto => v03_proto::card::decode(node)?,
            Dialect::V1 => v1::card::decode(node)?,
        })),
    })
}

/// What a request has to say there that was not given, such as the name of a task that its client chooses.
pub(super) fn missing(dialect: Dialect, thing: &Thing, written: &[String]) -> Option<String> {
    let (Thing::Operation(operation), Some(body)) = (thing, written.first()) else { return None };
    let strict = read_operation(dialect, operation, body, Leniency::default()).err()?;
    // What not even a lenient reader takes is told by reading it.
    read_operation(dialect, operation, body, LENIENT).ok().map(|_| strict.message)
}

fn read_operation(
    dialect: Dialect,
    operation: &Operation,
    body: &str,
    leniency: Leniency,
) -> Result<Operation, protocol::Error> {
    let kind = operation.kind();
    match dialect.method(kind) {
        Some(method) => dialect.decode_operation_leniently(method, Some(document(body)), leniency),
        None => {
            let address = v03_proto::operation::address(operation);
            v03_proto::operation::decode(kind, &address, Some(document(body)))
        }
    }
}

/// The task that the frames of the draft tell of: its status, then its artifacts one by one.
fn fold(frames: &[String]) -> Result<Task, protocol::Error> {
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
                });
            }
            (Event::Artifact(update), Some(task)) => task.artifacts.push(update.artifact),
            _ => {}
        }
    }
    task.ok_or_else(|| protocol::Violation::new("", "expected a status first").into())
}
