//! What something is and which dialect it speaks, told by the members it has.
//!
//! The marks of the dialects: 1.0 and the older protobuf file name enums (`ROLE_USER`, `TASK_STATE_WORKING`) and wrap
//! events in a member that says what they are; of the two, the older one has `content`, `final` and files in messages
//! of their own. 0.2 and 0.3 say `kind`, `messageId` and `contextId`; the draft says none of them.

mod error;

use protocol::json::Raw;
use protocol::{
    AgentCard, Dialect, Event, Message, Operation, OperationKind, Reply, Task, Violation,
    dialect::{Leniency, MethodFamily, draft, of_method, read_card, v1, v03, v03_proto},
    json::read::{Node, Object, Path, Read},
    jsonrpc,
};

use super::Error;

/// What was given.
pub(super) struct Recognised<'a> {
    pub(super) dialect: Dialect,
    /// For people: "a message", "a request".
    pub(super) what: String,
    pub(super) thing: Thing,
    /// The part of the input that holds it.
    pub(super) given: Raw<'a>,
}

/// One thing of the model.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Thing {
    Operation(Operation),
    Message(Message),
    Task(Task),
    /// A frame of a stream, or the answer to a send.
    Event(Event),
    /// Another answer, to an operation of this kind.
    Reply(OperationKind, Reply),
    /// The error object of a JSON-RPC answer.
    Error(protocol::Error),
    /// The body of a refused HTTP+JSON request.
    Refusal(protocol::Error),
    Card(Box<AgentCard>),
}

impl Thing {
    pub(super) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_) | Self::Refusal(_))
    }
}

/// Lets pass what some house does: what is explained need not be what a strict server takes.
pub(super) const LENIENT: Leniency = Leniency { task_id_optional: true, message_id_optional: true };

/// Finds out what a document is.
pub(super) fn recognise(raw: Raw<'_>) -> Result<Recognised<'_>, Error> {
    let object = Node::new(raw, &Path::Root).object().map_err(|_| {
        Error("expected one JSON object: a message, task, event, request, answer or card".into())
    })?;
    let has = |name| is_set(&object, name);
    if has("method") {
        return request(raw);
    }
    if has("jsonrpc") || has("result") {
        return answer(&object);
    }
    if let Some(refused) = error::refused(&object, raw) {
        return refused;
    }
    bare(raw, Place::Bare)
}

/// A JSON-RPC request.
fn request(raw: Raw<'_>) -> Result<Recognised<'_>, Error> {
    let request = jsonrpc::decode(raw.get().as_bytes()).map_err(|refusal| Error(refusal.error.message))?;
    let method = request.method.as_ref();
    let params = request.params.unwrap_or(Raw::EMPTY_OBJECT);
    let draft = || Dialect::Draft.decode_operation_leniently(method, Some(params), LENIENT);
    let dialect = match of_method(method) {
        MethodFamily::V1 => Dialect::V1,
        MethodFamily::V03 => Dialect::V03,
        MethodFamily::Draft => Dialect::Draft,
        // Three names are the draft's and its successors'; only the draft leaves out the envelope's version.
        MethodFamily::Shared if !request.versioned && draft().is_ok() => Dialect::Draft,
        MethodFamily::Shared => Dialect::V03,
        MethodFamily::Unknown => {
            return Err(Error(format!("method: {method:?} is a method of no generation")));
        }
    };
    let operation = dialect
        .decode_operation_leniently(method, Some(params), LENIENT)
        .map_err(|error| Error(format!("as a request of {}: params.{}", dialect.name(), error.message)))?;
    let what = format!("a request, {method},");
    Ok(Recognised { dialect, what, thing: Thing::Operation(operation), given: params })
}

/// A JSON-RPC answer.
fn answer<'a>(object: &Object<'a, '_>) -> Result<Recognised<'a>, Error> {
    if let Some(raw) = object.present("error").filter(|raw| !raw.is_null()) {
        return error::answered("error", raw);
    }
    match object.present("result") {
        Some(raw) if raw.get().starts_with('{') => bare(raw, Place::Result),
        Some(_) => Err(Error("result: expected an object that can be told by its members".into())),
        None => Err(Error("expected one of method, result, error beside jsonrpc".into())),
    }
}

/// Where an object stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// By itself.
    Bare,
    /// As the result of an answer, where tasks and messages are frames or answers to a send.
    Result,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Bare => "",
            Self::Result => "result",
        }
    }
}

/// An object without an envelope.
fn bare(raw: Raw<'_>, place: Place) -> Result<Recognised<'_>, Error> {
    let node = Node::new(raw, &Path::Root);
    let object = node.object().map_err(|violation| Error(violation.problem))?;
    let has = |name| is_set(&object, name);
    let from = place.name();
    let done = |dialect, what: &str, thing| Ok(Recognised { dialect, what: what.into(), thing, given: raw });
    if has("skills") || has("supportedInterfaces") {
        let (dialect, card) = at(from, Dialect::V1, "a card", raw, read_card)?;
        return done(dialect, "a card", Thing::Card(Box::new(card)));
    }
    if has("tasks") {
        let first = object.list("tasks", |task| Ok(proto(Some(task.text()))));
        let dialect =
            if first.is_ok_and(|tasks| !tasks.contains(&false)) { Dialect::V1 } else { Dialect::V03 };
        let kind = OperationKind::ListTasks;
        let reply = at(from, dialect, "a page of tasks", raw, |node| dialect.decode_reply(kind, node))?;
        return done(dialect, "a page of tasks", Thing::Reply(kind, reply));
    }
    if let Some(message) = object.present("message").filter(|raw| raw.get().starts_with('{'))
        && is_send(&object, message)
    {
        let dialect = speaker_of_send(&object, message);
        let operation = send(dialect, raw).map_err(|error| {
            Error(format!("as the parameters of a send of {}: {}", dialect.name(), error.message))
        })?;
        return done(dialect, "the parameters of a send", Thing::Operation(operation));
    }
    if let Some(dialect) = config_dialect(&object) {
        let kind = OperationKind::GetPushConfig;
        let reply = at(from, dialect, "a webhook", raw, |node| dialect.decode_reply(kind, node))?;
        return done(dialect, "a webhook", Thing::Reply(kind, reply));
    }
    let what = what_is(&object).ok_or_else(|| unknown(from))?;
    let dialect = speaker(&object, what);
    let name = what.name();
    if what == What::Wrapped || place == Place::Result && dialect != Dialect::Draft || what.is_update() {
        let event = at(from, dialect, name, raw, |node| dialect.decode_event(node))?;
        let name = if what == What::Wrapped { wrapped(&event) } else { name };
        return done(dialect, name, Thing::Event(event));
    }
    let thing = at(from, dialect, name, raw, |node| match what {
        What::Message => decode_message(dialect, node).map(Thing::Message),
        _ => decode_task(dialect, node).map(Thing::Task),
    })?;
    done(dialect, name, thing)
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    /// A frame of the protobuf files: one member that says what it is.
    Wrapped,
    Message,
    Task,
    Status,
    Artifact,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Wrapped => "an event",
            Self::Message => "a message",
            Self::Task => "a task",
            Self::Status => "a status event",
            Self::Artifact => "an artifact event",
        }
    }

    fn is_update(self) -> bool {
        matches!(self, Self::Status | Self::Artifact)
    }
}

fn wrapped(event: &Event) -> &'static str {
    match event {
        Event::Task(_) => "a task as an event or answer",
        Event::Message(_) => "a message as an event or answer",
        Event::Status(_) => What::Status.name(),
        Event::Artifact(_) => What::Artifact.name(),
    }
}

/// The members in which the protobuf files wrap events.
const WRAPPINGS: [&str; 5] = ["task", "message", "msg", "statusUpdate", "artifactUpdate"];

fn what_is(object: &Object<'_, '_>) -> Option<What> {
    let has = |name| is_set(object, name);
    if WRAPPINGS.into_iter().any(has) {
        return Some(What::Wrapped);
    }
    let kind = object.maybe("kind", |node| node.string()).ok().flatten();
    match kind.as_deref() {
        Some("task") => return Some(What::Task),
        Some("message") => return Some(What::Message),
        Some("status-update") => return Some(What::Status),
        Some("artifact-update") => return Some(What::Artifact),
        _ => {}
    }
    if has("artifact") {
        Some(What::Artifact)
    } else if has("status") {
        let update = has("final") || has("taskId");
        Some(if update { What::Status } else { What::Task })
    } else if has("role") || has("parts") || has("content") {
        Some(What::Message)
    } else {
        None
    }
}

/// The dialect of what is no request, answer or card.
fn speaker(object: &Object<'_, '_>, what: What) -> Dialect {
    let has = |name| is_set(object, name);
    if what == What::Wrapped {
        let name = WRAPPINGS.into_iter().find(|name| has(name));
        let inner = name.and_then(|name| object.present(name)).map(Raw::get);
        return if has("msg") { Dialect::V03Proto } else { newer_or_older(inner) };
    }
    if has("kind") {
        return Dialect::V03;
    }
    let text = object.present(match what {
        What::Message => "role",
        _ => "status",
    });
    let whole = match what {
        What::Message if has("content") && !has("parts") => Some(r#"{"content":[]}"#),
        _ => None,
    };
    if proto(text.map(Raw::get)) {
        let rest = ["history", "artifacts", "status"].into_iter().filter_map(|name| object.present(name));
        let older = whole.is_some() || rest.map(Raw::get).any(is_older);
        return if older { Dialect::V03Proto } else { Dialect::V1 };
    }
    let newer = match what {
        What::Message => has("messageId") || tagged_kind(object),
        What::Task => has("contextId"),
        _ => has("taskId"),
    };
    if newer { Dialect::V03 } else { Dialect::Draft }
}

/// Of the two protobuf files, the one that has these words.
fn newer_or_older(text: Option<&str>) -> Dialect {
    if text.is_some_and(is_older) { Dialect::V03Proto } else { Dialect::V1 }
}

/// Whether the words of an object are those of the older protobuf file. Inside strings quotes are escaped, so what is
/// looked for is a name.
fn is_older(text: &str) -> bool {
    let compact = protocol::Json::parse(text).map(|json| json.as_str().to_owned()).unwrap_or_default();
    [r#""content":["#, r#""final":"#, r#""fileWith"#, r#""TASK_STATE_CANCELLED""#, r#"{"data":{"data":"#]
        .iter()
        .any(|word| compact.contains(word))
}

/// Whether an enum is spelled as protobuf spells it: a long name, or a number.
fn proto(text: Option<&str>) -> bool {
    let Some(text) = text else { return false };
    let word = text.trim_start().trim_start_matches('"');
    word.starts_with("ROLE_")
        || word.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
        || text.contains("\"TASK_STATE_")
}

/// Whether the first part says what it holds as 0.2 and 0.3 do.
fn tagged_kind(object: &Object<'_, '_>) -> bool {
    let tags = object.list("parts", |part| Ok(part.object()?.present("kind").is_some()));
    tags.is_ok_and(|tags| tags.first() == Some(&true))
}

/// Whether an object with a message is what a client sends, and not a frame that holds a message.
fn is_send(object: &Object<'_, '_>, message: Raw<'_>) -> bool {
    let configured = ["configuration", "id", "sessionId", "skill", "tenant", "metadata"];
    let by_agent = Node::new(message, &Path::Root)
        .object()
        .ok()
        .and_then(|message| message.present("role"))
        .is_some_and(|role| matches!(role.get(), "\"ROLE_AGENT\"" | "\"agent\"" | "2"));
    !is_set(object, "status") && (configured.into_iter().any(|name| is_set(object, name)) || !by_agent)
}

fn speaker_of_send(object: &Object<'_, '_>, message: Raw<'_>) -> Dialect {
    if is_set(object, "id") || is_set(object, "sessionId") {
        return Dialect::Draft;
    }
    let Ok(message) = Node::new(message, &Path::Root).object() else { return Dialect::V1 };
    speaker(&message, What::Message)
}

fn send(dialect: Dialect, raw: Raw<'_>) -> Result<Operation, protocol::Error> {
    let kind = OperationKind::SendMessage;
    match dialect.method(kind) {
        Some(method) => dialect.decode_operation_leniently(method, Some(raw), LENIENT),
        None => v03_proto::operation::decode(kind, &v03_proto::operation::Address::default(), Some(raw)),
    }
}

fn config_dialect(object: &Object<'_, '_>) -> Option<Dialect> {
    let has = |name| is_set(object, name);
    if has("pushNotificationConfig") {
        return Some(match (has("name"), has("taskId")) {
            (true, _) => Dialect::V03Proto,
            (_, true) => Dialect::V03,
            _ => Dialect::Draft,
        });
    }
    (has("url") && (has("taskId") || has("token") || has("authentication"))).then_some(Dialect::V1)
}

pub(super) fn decode_message(dialect: Dialect, node: Node<'_, '_>) -> Read<Message> {
    match dialect {
        Dialect::Draft => draft::message::decode(node),
        Dialect::V03 => v03::message::decode(node),
        Dialect::V03Proto => v03_proto::message::decode(node),
        Dialect::V1 => v1::message::decode(node),
    }
}

pub(super) fn decode_task(dialect: Dialect, node: Node<'_, '_>) -> Read<Task> {
    match dialect {
        Dialect::Draft => draft::task::decode(node),
        Dialect::V03 => v03::task::decode(node),
        Dialect::V03Proto => v03_proto::task::decode(node),
        Dialect::V1 => v1::task::decode(node),
    }
}

fn is_set(object: &Object<'_, '_>, name: &str) -> bool {
    object.present(name).is_some_and(|raw| !raw.is_null())
}

/// Reads something at a place; what is wrong names its field from the root of the input.
fn at<'a, T>(
    place: &str,
    dialect: Dialect,
    what: &str,
    raw: Raw<'a>,
    read: impl FnOnce(Node<'a, '_>) -> Read<T>,
) -> Result<T, Error> {
    let root = Path::Root;
    let path = if place.is_empty() { root } else { Path::Field(&root, place) };
    read(Node::new(raw, &path)).map_err(|Violation { field, problem }| {
        let field = if field.is_empty() { String::new() } else { format!("{field}: ") };
        Error(format!("as {what} of {}: {field}{problem}", dialect.name()))
    })
}

fn unknown(place: &str) -> Error {
    let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
    let expected = "expected one of role and parts (a message), status (a task or event), artifact, task, \
                    statusUpdate, artifactUpdate (an event), message (a send), skills (a card), method (a request), \
                    error, or code and message (an error)";
    Error(format!("{place}{expected}"))
}
