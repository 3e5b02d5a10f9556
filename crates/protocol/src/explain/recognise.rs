//! Recognises the type and the dialect of a document by its members.
//!
//! 1.0 and the protobuf JSON of 0.3 (`v03-proto`) use enum names (`ROLE_USER`, `TASK_STATE_WORKING`) and wrap events in
//! a member that names their type; of the two, only `v03-proto` has `content`, `final` and nested file objects. The
//! JSON-RPC form of 0.2 and 0.3 has `kind`, `messageId` and `contextId`; the draft has none of them.

mod error;

use super::Error;
use crate::{
    AgentCard, Dialect, Event, Message, Operation, OperationKind, Reply, Task, Violation,
    dialect::{Leniency, MethodFamily, draft, of_method, read_card, v1, v03, v03_proto},
    json::{
        Raw,
        read::{Node, Object, Path, Read},
    },
    jsonrpc,
};

/// A recognised document.
pub(super) struct Recognition<'a> {
    pub(super) dialect: Dialect,
    /// The type for display, such as "a message" or "a request, GetTask,".
    pub(super) what: String,
    pub(super) value: ModelValue,
    /// The part of the document that holds the value, without its JSON-RPC envelope.
    pub(super) input: Raw<'a>,
}

/// A value of the model.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ModelValue {
    Operation(Operation),
    Message(Message),
    Task(Task),
    /// A frame of a stream, or the result of a send.
    Event(Event),
    /// The result of another operation of this kind.
    Reply(OperationKind, Reply),
    /// The error object of a JSON-RPC response.
    Error(crate::Error),
    /// The body of an HTTP+JSON error response.
    HttpError(crate::Error),
    Card(Box<AgentCard>),
}

impl ModelValue {
    pub(super) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_) | Self::HttpError(_))
    }
}

/// Accepts what any compatibility profile accepts: a document can be explained even if a strict server rejects it.
pub(super) const LENIENT: Leniency =
    Leniency { task_id_optional: true, message_id_optional: true, key_in_params: true };

pub(super) fn recognise(raw: Raw<'_>) -> Result<Recognition<'_>, Error> {
    let object = Node::new(raw, &Path::Root).object().map_err(|_| {
        Error("expected one JSON object: a message, task, event, request, response or card".into())
    })?;
    let has = |name| is_set(&object, name);
    if has("method") {
        return request(raw);
    }
    if has("jsonrpc") || has("result") {
        return response(&object);
    }
    if let Some(bare_error) = error::bare_error(&object, raw) {
        return bare_error;
    }
    recognise_object(raw, Envelope::None)
}

/// A JSON-RPC request.
fn request(raw: Raw<'_>) -> Result<Recognition<'_>, Error> {
    let request =
        jsonrpc::decode(raw.get().as_bytes()).map_err(|rejection| Error(rejection.error.message))?;
    let method = request.method.as_ref();
    let params = request.params.unwrap_or(Raw::EMPTY_OBJECT);
    let draft = || Dialect::Draft.decode_operation_with(method, Some(params), LENIENT);
    let dialect = match of_method(method) {
        MethodFamily::V1 => Dialect::V1,
        MethodFamily::V03 => Dialect::V03,
        MethodFamily::Draft => Dialect::Draft,
        // Three method names are shared by the draft and 0.3; only the draft allows requests without `jsonrpc`.
        MethodFamily::Shared if !request.versioned && draft().is_ok() => Dialect::Draft,
        MethodFamily::Shared => Dialect::V03,
        MethodFamily::Unknown => {
            return Err(Error(format!("method: {method:?} is not a method of any version")));
        }
    };
    let operation = dialect
        .decode_operation_with(method, Some(params), LENIENT)
        .map_err(|error| Error(format!("as a request of {}: params.{}", dialect.label(), error.message)))?;
    let what = format!("a request, {method},");
    Ok(Recognition { dialect, what, value: ModelValue::Operation(operation), input: params })
}

/// A JSON-RPC response.
fn response<'a>(object: &Object<'a, '_>) -> Result<Recognition<'a>, Error> {
    if let Some(raw) = object.present("error").filter(|raw| !raw.is_null()) {
        return error::response_error("error", raw);
    }
    match object.present("result") {
        Some(raw) if raw.get().starts_with('{') => recognise_object(raw, Envelope::JsonRpcResult),
        Some(_) => Err(Error("result: expected an object with known members".into())),
        None => Err(Error("expected one of method, result, error next to jsonrpc".into())),
    }
}

/// The envelope of an object.
#[derive(Clone, Copy, PartialEq)]
enum Envelope {
    /// No envelope.
    None,
    /// The result of a JSON-RPC response, where tasks and messages are stream frames or results of a send.
    JsonRpcResult,
}

impl Envelope {
    fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::JsonRpcResult => "result",
        }
    }
}

/// An object whose envelope was removed.
fn recognise_object(raw: Raw<'_>, envelope: Envelope) -> Result<Recognition<'_>, Error> {
    let node = Node::new(raw, &Path::Root);
    let object = node.object().map_err(|violation| Error(violation.problem))?;
    let has = |name| is_set(&object, name);
    let from = envelope.name();
    let done = |dialect, what: &str, value| Ok(Recognition { dialect, what: what.into(), value, input: raw });
    if has("skills") || has("supportedInterfaces") {
        let (dialect, card) = decode_at(from, Dialect::V1, "a card", raw, read_card)?;
        return done(dialect, "a card", ModelValue::Card(Box::new(card)));
    }
    if has("tasks") {
        let first = object.list("tasks", |task| Ok(is_protobuf_enum(Some(task.text()))));
        let dialect =
            if first.is_ok_and(|tasks| !tasks.contains(&false)) { Dialect::V1 } else { Dialect::V03 };
        let kind = OperationKind::ListTasks;
        let reply =
            decode_at(from, dialect, "a page of tasks", raw, |node| dialect.decode_reply(kind, node))?;
        return done(dialect, "a page of tasks", ModelValue::Reply(kind, reply));
    }
    if let Some(message) = object.present("message").filter(|raw| raw.get().starts_with('{'))
        && is_send(&object, message)
    {
        let dialect = dialect_of_send(&object, message);
        let operation = send(dialect, raw).map_err(|error| {
            Error(format!("as the parameters of a send of {}: {}", dialect.label(), error.message))
        })?;
        return done(dialect, "the parameters of a send", ModelValue::Operation(operation));
    }
    if let Some(dialect) = config_dialect(&object) {
        let kind = OperationKind::GetPushConfig;
        let reply = decode_at(from, dialect, "a webhook", raw, |node| dialect.decode_reply(kind, node))?;
        return done(dialect, "a webhook", ModelValue::Reply(kind, reply));
    }
    let what = shape_of(&object).ok_or_else(|| unknown_shape(from))?;
    let dialect = dialect_of(&object, what);
    let name = what.name();
    if what == Shape::WrappedEvent
        || envelope == Envelope::JsonRpcResult && dialect.rules().supports_message_replies
        || what.is_update()
    {
        let event = decode_at(from, dialect, name, raw, |node| dialect.decode_event(node))?;
        let name = if what == Shape::WrappedEvent { event_name(&event) } else { name };
        return done(dialect, name, ModelValue::Event(event));
    }
    let value = decode_at(from, dialect, name, raw, |node| match what {
        Shape::Message => decode_message(dialect, node).map(ModelValue::Message),
        _ => decode_task(dialect, node).map(ModelValue::Task),
    })?;
    done(dialect, name, value)
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// A frame of 1.0 or `v03-proto`: one member that names the event's type.
    WrappedEvent,
    Message,
    Task,
    Status,
    Artifact,
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Self::WrappedEvent => "an event",
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

fn event_name(event: &Event) -> &'static str {
    match event {
        Event::Task(_) => "a task as an event or response",
        Event::Message(_) => "a message as an event or response",
        Event::Status(_) => Shape::Status.name(),
        Event::Artifact(_) => Shape::Artifact.name(),
    }
}

/// The members in which 1.0 and `v03-proto` wrap events.
const EVENT_WRAPPERS: [&str; 5] = ["task", "message", "msg", "statusUpdate", "artifactUpdate"];

fn shape_of(object: &Object<'_, '_>) -> Option<Shape> {
    let has = |name| is_set(object, name);
    if EVENT_WRAPPERS.into_iter().any(has) {
        return Some(Shape::WrappedEvent);
    }
    let kind = object.maybe("kind", |node| node.string()).ok().flatten();
    match kind.as_deref() {
        Some("task") => return Some(Shape::Task),
        Some("message") => return Some(Shape::Message),
        Some("status-update") => return Some(Shape::Status),
        Some("artifact-update") => return Some(Shape::Artifact),
        _ => {}
    }
    if has("artifact") {
        Some(Shape::Artifact)
    } else if has("status") {
        let update = has("final") || has("taskId");
        Some(if update { Shape::Status } else { Shape::Task })
    } else if has("role") || has("parts") || has("content") {
        Some(Shape::Message)
    } else {
        None
    }
}

/// The dialect of a message, task or event.
fn dialect_of(object: &Object<'_, '_>, what: Shape) -> Dialect {
    let has = |name| is_set(object, name);
    if what == Shape::WrappedEvent {
        let name = EVENT_WRAPPERS.into_iter().find(|name| has(name));
        let inner = name.and_then(|name| object.present(name)).map(Raw::get);
        return if has("msg") { Dialect::V03Proto } else { protobuf_dialect(inner) };
    }
    if has("kind") {
        return Dialect::V03;
    }
    let text = object.present(match what {
        Shape::Message => "role",
        _ => "status",
    });
    let whole = match what {
        Shape::Message if has("content") && !has("parts") => Some(r#"{"content":[]}"#),
        _ => None,
    };
    if is_protobuf_enum(text.map(Raw::get)) {
        let rest = ["history", "artifacts", "status"].into_iter().filter_map(|name| object.present(name));
        let older = whole.is_some() || rest.map(Raw::get).any(is_v03_proto);
        return if older { Dialect::V03Proto } else { Dialect::V1 };
    }
    let newer = match what {
        Shape::Message => has("messageId") || parts_have_kind(object),
        Shape::Task => has("contextId"),
        _ => has("taskId"),
    };
    if newer { Dialect::V03 } else { Dialect::Draft }
}

/// Decides between the two protobuf-based dialects by the member names in a text.
fn protobuf_dialect(text: Option<&str>) -> Dialect {
    if text.is_some_and(is_v03_proto) { Dialect::V03Proto } else { Dialect::V1 }
}

/// Whether an object has member names or values of `v03-proto`. Quotes inside JSON strings are escaped, so the patterns
/// cannot match inside a string.
fn is_v03_proto(text: &str) -> bool {
    let compact = crate::Json::parse(text).map(|json| json.as_str().to_owned()).unwrap_or_default();
    [r#""content":["#, r#""final":"#, r#""fileWith"#, r#""TASK_STATE_CANCELLED""#, r#"{"data":{"data":"#]
        .iter()
        .any(|pattern| compact.contains(pattern))
}

/// Whether an enum has protobuf's spelling: a prefixed name such as `ROLE_USER`, or a number.
fn is_protobuf_enum(text: Option<&str>) -> bool {
    let Some(text) = text else { return false };
    let name = text.trim_start().trim_start_matches('"');
    name.starts_with("ROLE_")
        || name.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
        || text.contains("\"TASK_STATE_")
}

/// Whether the first part has a `kind`, as in 0.2 and 0.3.
fn parts_have_kind(object: &Object<'_, '_>) -> bool {
    let tags = object.list("parts", |part| Ok(part.object()?.present("kind").is_some()));
    tags.is_ok_and(|tags| tags.first() == Some(&true))
}

/// Whether an object with a message is the parameters of a send and not a frame that holds a message.
fn is_send(object: &Object<'_, '_>, message: Raw<'_>) -> bool {
    let configured = ["configuration", "id", "sessionId", "skill", "tenant", "metadata"];
    let by_agent = Node::new(message, &Path::Root)
        .object()
        .ok()
        .and_then(|message| message.present("role"))
        .is_some_and(|role| matches!(role.get(), "\"ROLE_AGENT\"" | "\"agent\"" | "2"));
    !is_set(object, "status") && (configured.into_iter().any(|name| is_set(object, name)) || !by_agent)
}

fn dialect_of_send(object: &Object<'_, '_>, message: Raw<'_>) -> Dialect {
    if is_set(object, "id") || is_set(object, "sessionId") {
        return Dialect::Draft;
    }
    let Ok(message) = Node::new(message, &Path::Root).object() else { return Dialect::V1 };
    dialect_of(&message, Shape::Message)
}

fn send(dialect: Dialect, raw: Raw<'_>) -> Result<Operation, crate::Error> {
    let kind = OperationKind::SendMessage;
    match dialect.method(kind) {
        Some(method) => dialect.decode_operation_with(method, Some(raw), LENIENT),
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

/// Decodes a value below a path; errors name the field from the root of the input.
fn decode_at<'a, T>(
    member: &str,
    dialect: Dialect,
    what: &str,
    raw: Raw<'a>,
    read: impl FnOnce(Node<'a, '_>) -> Read<T>,
) -> Result<T, Error> {
    let root = Path::Root;
    let path = if member.is_empty() { root } else { Path::Field(&root, member) };
    read(Node::new(raw, &path)).map_err(|Violation { field, problem }| {
        let field = if field.is_empty() { String::new() } else { format!("{field}: ") };
        Error(format!("as {what} of {}: {field}{problem}", dialect.label()))
    })
}

fn unknown_shape(member: &str) -> Error {
    let member = if member.is_empty() { String::new() } else { format!("{member}: ") };
    let expected = "expected one of role and parts (a message), status (a task or event), artifact, task, \
                    statusUpdate, artifactUpdate (an event), message (a send), skills (a card), method (a request), \
                    error, or code and message (an error)";
    Error(format!("{member}{expected}"))
}
