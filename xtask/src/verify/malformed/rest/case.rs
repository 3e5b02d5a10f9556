//! One request and what it must be answered with.

use super::super::case as rpc;
use super::super::methods::{NO_PUSH, TASK_NOT_CANCELABLE, TASK_NOT_FOUND, UNSUPPORTED};
use super::operations::{Generation, Operation};

/// A request as it goes out.
#[derive(Clone)]
pub(crate) struct Case {
    /// What is odd about it.
    pub(crate) name: String,
    pub(crate) verb: String,
    /// Path and query.
    pub(crate) target: String,
    /// What it says in `A2A-Version`.
    pub(crate) version: Option<String>,
    /// What it calls its body.
    pub(crate) content_type: Option<&'static str>,
    /// What it wants to be given.
    pub(crate) accept: Option<&'static str>,
    /// How its body is packed.
    pub(crate) encoding: Option<&'static str>,
    pub(crate) body: Vec<u8>,
    pub(crate) expected: Expected,
}

#[derive(Clone)]
pub(crate) enum Expected {
    Refused(Refusal),
    /// Answered as a good request is: odd, and right by this ruling.
    Taken(&'static str),
}

/// A refusal as the caller must read it.
#[derive(Clone)]
pub(crate) struct Refusal {
    pub(crate) error: &'static ErrorRow,
    /// The generation whose error it is.
    pub(crate) shape: Generation,
    /// The field that must be named; where nothing is, no single field is at fault.
    pub(crate) field: Option<String>,
    /// What `Allow` must say.
    pub(crate) allow: Option<&'static str>,
}

/// An error in the words of both generations.
pub(crate) struct ErrorRow {
    pub(crate) http: u16,
    /// 0.3 tells it by the code of JSON-RPC.
    pub(crate) code: i64,
    /// 1.0 by a status and a reason.
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
static TASKLESS: ErrorRow = row(404, TASK_NOT_FOUND, "NOT_FOUND", "TASK_NOT_FOUND");
static OVER: ErrorRow = row(400, TASK_NOT_CANCELABLE, PRECONDITION, "TASK_NOT_CANCELABLE");
static PUSHLESS: ErrorRow = row(400, NO_PUSH, PRECONDITION, "PUSH_NOTIFICATION_NOT_SUPPORTED");
static NOT_OFFERED: ErrorRow = row(400, UNSUPPORTED, PRECONDITION, "UNSUPPORTED_OPERATION");

const AGENT_DISABLED_BEFORE_1_0: i64 = -32011;

/// The error that a description of parameters means by a code of JSON-RPC in 1.0.
pub(crate) fn of_code(code: i64) -> &'static ErrorRow {
    match code {
        rpc::INVALID_PARAMS => &INVALID_PARAMS,
        rpc::AGENT_DISABLED => &NO_AGENT,
        TASK_NOT_FOUND => &TASKLESS,
        TASK_NOT_CANCELABLE => &OVER,
        NO_PUSH => &PUSHLESS,
        UNSUPPORTED => &NOT_OFFERED,
        other => unreachable!("no description of parameters says {other}"),
    }
}

/// What makes a request another one than the others.
pub(crate) type Key = (String, String, Option<String>, [Option<&'static str>; 3], Vec<u8>);

impl Case {
    /// A good request that is odd in some respect yet to be put in, and taken.
    pub(crate) fn taken(operation: &Operation, name: impl Into<String>, why: &'static str) -> Self {
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
            expected: Expected::Taken(why),
        }
    }

    /// A good request that is yet to be made wrong, and then refused like this.
    pub(crate) fn refused(operation: &Operation, name: impl Into<String>, error: &'static ErrorRow) -> Self {
        let refusal = Refusal { error, shape: operation.generation, field: None, allow: None };
        Self { expected: Expected::Refused(refusal), ..Self::taken(operation, name, "") }
    }

    pub(crate) fn naming(self, field: impl Into<String>) -> Self {
        self.with(|refusal| refusal.field = Some(field.into()))
    }

    pub(crate) fn allowing(self, allow: &'static str) -> Self {
        self.with(|refusal| refusal.allow = Some(allow))
    }

    pub(crate) fn told_in(self, shape: Generation) -> Self {
        self.with(|refusal| refusal.shape = shape)
    }

    /// Goes to this path below the agent's address.
    pub(crate) fn at(self, generation: Generation, path: &str) -> Self {
        Self { target: address(generation, path), ..self }
    }

    /// Goes to this address.
    pub(crate) fn to(self, target: impl Into<String>) -> Self {
        Self { target: target.into(), ..self }
    }

    pub(crate) fn asking(mut self, query: &str) -> Self {
        self.target.push('?');
        self.target.push_str(query);
        self
    }

    pub(crate) fn saying(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub(crate) fn by(self, verb: &str) -> Self {
        Self { verb: verb.to_owned(), ..self }
    }

    pub(crate) fn of_version(self, version: Option<&str>) -> Self {
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

/// The address of a path of a generation.
fn address(generation: Generation, path: &str) -> String {
    format!("/a2a/{}{}{path}", super::super::AGENT, generation.prefix())
}

/// Text as it stands in a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    // What is put there when the request goes out needs no escapes.
    if matches!(text, "$TASK" | "$CONFIG" | "$NEW") {
        return text.to_owned();
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let piece = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(piece).collect()
}

/// The text of a JSON value where everything is text; `None` where it is none.
pub(crate) fn spoken(json: &str) -> Option<String> {
    if json.starts_with('"') { serde_json::from_str(json).ok() } else { Some(json.to_owned()) }
}
