//! One HTTP+JSON request and the expected response.

use super::super::case as rpc;
use super::super::methods::{NO_PUSH, TASK_NOT_CANCELABLE, TASK_NOT_FOUND, UNSUPPORTED};
use super::operations::{Generation, Operation};

#[derive(Clone)]
pub(crate) struct Case {
    /// What is unusual about it, for findings.
    pub(crate) name: String,
    pub(crate) verb: String,
    /// Path and query.
    pub(crate) target: String,
    /// The header `A2A-Version`.
    pub(crate) version: Option<String>,
    /// The header `Content-Type`.
    pub(crate) content_type: Option<&'static str>,
    /// The header `Accept`.
    pub(crate) accept: Option<&'static str>,
    /// The header `Content-Encoding`.
    pub(crate) encoding: Option<&'static str>,
    pub(crate) body: Vec<u8>,
    pub(crate) expected: Expected,
}

#[derive(Clone)]
pub(crate) enum Expected {
    Refused(Refusal),
    /// Answered like a valid request, by the given rule.
    Accepted(&'static str),
}

/// An expected error response.
#[derive(Clone)]
pub(crate) struct Refusal {
    pub(crate) error: &'static ErrorRow,
    /// The generation whose error format is used.
    pub(crate) shape: Generation,
    /// The field that must be named; `None` if no single field is at fault.
    pub(crate) field: Option<String>,
    /// The expected header `Allow`.
    pub(crate) allow: Option<&'static str>,
}

/// An error in the formats of both generations.
pub(crate) struct ErrorRow {
    pub(crate) http: u16,
    /// JSON-RPC code, used by 0.3.
    pub(crate) code: i64,
    /// Status and reason, used by 1.0.
    pub(crate) status: &'static str,
    pub(crate) reason: &'static str,
}

const fn row(http: u16, code: i64, status: &'static str, reason: &'static str) -> ErrorRow {
    ErrorRow { http, code, status, reason }
}

const ARGUMENT: &str = "INVALID_ARGUMENT";
const PRECONDITION: &str = "FAILED_PRECONDITION";

pub(crate) static PARSE: ErrorRow = row(400, rpc::PARSE, ARGUMENT, "PARSE_ERROR");
pub(crate) static INVALID_REQUEST: ErrorRow = row(400, rpc::INVALID_REQUEST, ARGUMENT, "INVALID_REQUEST");
pub(crate) static INVALID_PARAMS: ErrorRow = row(400, rpc::INVALID_PARAMS, ARGUMENT, "INVALID_PARAMS");
pub(crate) static MEDIA_TYPE: ErrorRow = row(415, rpc::INVALID_REQUEST, ARGUMENT, "UNSUPPORTED_MEDIA_TYPE");
pub(crate) static NO_PATH: ErrorRow = row(404, rpc::METHOD_NOT_FOUND, "UNIMPLEMENTED", "METHOD_NOT_FOUND");
pub(crate) static NO_VERB: ErrorRow = row(405, rpc::METHOD_NOT_FOUND, "UNIMPLEMENTED", "METHOD_NOT_FOUND");
pub(crate) static NO_AGENT: ErrorRow = row(404, AGENT_DISABLED_BEFORE_1_0, "NOT_FOUND", "AGENT_DISABLED");
pub(crate) static VERSION: ErrorRow =
    row(400, rpc::VERSION_NOT_SUPPORTED, PRECONDITION, "VERSION_NOT_SUPPORTED");
static NO_TASK: ErrorRow = row(404, TASK_NOT_FOUND, "NOT_FOUND", "TASK_NOT_FOUND");
static TASK_ENDED: ErrorRow = row(400, TASK_NOT_CANCELABLE, PRECONDITION, "TASK_NOT_CANCELABLE");
static PUSH_UNSUPPORTED: ErrorRow = row(400, NO_PUSH, PRECONDITION, "PUSH_NOTIFICATION_NOT_SUPPORTED");
static NOT_SUPPORTED: ErrorRow = row(400, UNSUPPORTED, PRECONDITION, "UNSUPPORTED_OPERATION");

const AGENT_DISABLED_BEFORE_1_0: i64 = -32011;

/// The error for a JSON-RPC code of 1.0 in a description of parameters.
pub(crate) fn of_code(code: i64) -> &'static ErrorRow {
    match code {
        rpc::INVALID_PARAMS => &INVALID_PARAMS,
        rpc::AGENT_DISABLED => &NO_AGENT,
        TASK_NOT_FOUND => &NO_TASK,
        TASK_NOT_CANCELABLE => &TASK_ENDED,
        NO_PUSH => &PUSH_UNSUPPORTED,
        UNSUPPORTED => &NOT_SUPPORTED,
        other => unreachable!("no description of parameters uses {other}"),
    }
}

/// What distinguishes a request from others.
pub(crate) type Key = (String, String, Option<String>, [Option<&'static str>; 3], Vec<u8>);

impl Case {
    /// A valid request that is accepted; the caller makes it unusual.
    pub(crate) fn accepted(operation: &Operation, name: impl Into<String>, why: &'static str) -> Self {
        let body = operation.good_body();
        let generation = operation.generation;
        Self {
            name: name.into(),
            verb: operation.verb.to_owned(),
            target: address(generation, operation.path),
            version: Some(generation.version().to_owned()),
            content_type: Some(generation.media_type()),
            accept: None,
            encoding: None,
            body: body.into(),
            expected: Expected::Accepted(why),
        }
    }

    /// A request that is refused with this error; the caller makes it invalid.
    pub(crate) fn refused(operation: &Operation, name: impl Into<String>, error: &'static ErrorRow) -> Self {
        let refusal = Refusal { error, shape: operation.generation, field: None, allow: None };
        Self { expected: Expected::Refused(refusal), ..Self::accepted(operation, name, "") }
    }

    pub(crate) fn naming_field(self, field: impl Into<String>) -> Self {
        self.with(|refusal| refusal.field = Some(field.into()))
    }

    pub(crate) fn with_allow(self, allow: &'static str) -> Self {
        self.with(|refusal| refusal.allow = Some(allow))
    }

    pub(crate) fn in_dialect(self, shape: Generation) -> Self {
        self.with(|refusal| refusal.shape = shape)
    }

    /// Uses this path below the agent's URL.
    pub(crate) fn at(self, generation: Generation, path: &str) -> Self {
        Self { target: address(generation, path), ..self }
    }

    /// Uses this request target.
    pub(crate) fn to(self, target: impl Into<String>) -> Self {
        Self { target: target.into(), ..self }
    }

    pub(crate) fn with_query(mut self, query: &str) -> Self {
        self.target.push('?');
        self.target.push_str(query);
        self
    }

    pub(crate) fn with_body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub(crate) fn with_verb(self, verb: &str) -> Self {
        Self { verb: verb.to_owned(), ..self }
    }

    pub(crate) fn with_version(self, version: Option<&str>) -> Self {
        Self { version: version.map(str::to_owned), ..self }
    }

    pub(crate) fn key(&self) -> Key {
        (
            self.verb.clone(),
            self.target.clone(),
            self.version.clone(),
            [self.content_type, self.accept, self.encoding],
            self.body.clone(),
        )
    }

    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.expected, Expected::Refused(_))
    }

    fn with(mut self, change: impl FnOnce(&mut Refusal)) -> Self {
        if let Expected::Refused(refusal) = &mut self.expected {
            change(refusal);
        }
        self
    }
}

/// The request target of a path.
fn address(generation: Generation, path: &str) -> String {
    format!("/a2a/{}{}{path}", super::super::AGENT, generation.prefix())
}

/// Percent-encodes a text for a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    // Placeholders are replaced when the request is sent.
    if matches!(text, "$TASK" | "$CONFIG" | "$NEW") {
        return text.to_owned();
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let segment = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(segment).collect()
}

/// A JSON value as text of a query: a string without its quotes; `None` for an invalid string.
pub(crate) fn as_text(json: &str) -> Option<String> {
    if json.starts_with('"') { serde_json::from_str(json).ok() } else { Some(json.to_owned()) }
}
