//! The generations of the protocol, and every expected error in the formats of all bindings.

/// A generation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Draft,
    V03,
    V1,
}

impl Dialect {
    /// The value of `A2A-Version`.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Draft => "0.1",
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::V03 => "v03",
            Self::V1 => "v1",
        }
    }
}

/// A gRPC status; HTTP+JSON uses its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) number: u8,
    pub(crate) name: &'static str,
}

/// An error in all formats.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ErrorRow {
    /// Reason in the details of 1.0.
    pub(crate) reason: &'static str,
    /// JSON-RPC code of 1.0.
    code: i64,
    /// JSON-RPC code before 1.0.
    old_code: i64,
    /// Message of the generations before 1.0; gRPC adds the cause to it.
    pub(crate) old_text: &'static str,
    /// HTTP status of HTTP+JSON.
    pub(crate) http: u16,
    /// Status by the table of 1.0.1.
    pub(crate) status: &'static Status,
    /// Status by the table of 1.0.0, which gRPC clients of 0.3 use.
    old_status: &'static Status,
}

impl ErrorRow {
    pub(crate) fn code(&self, dialect: Dialect) -> i64 {
        if dialect == Dialect::V1 { self.code } else { self.old_code }
    }

    pub(crate) fn grpc_status(&self, dialect: Dialect) -> u8 {
        if dialect == Dialect::V1 { self.status.number } else { self.old_status.number }
    }
}

const ARGUMENT: &Status = &Status { number: 3, name: "INVALID_ARGUMENT" };
const NOT_FOUND: &Status = &Status { number: 5, name: "NOT_FOUND" };
const EXHAUSTED: &Status = &Status { number: 8, name: "RESOURCE_EXHAUSTED" };
const PRECONDITION: &Status = &Status { number: 9, name: "FAILED_PRECONDITION" };
pub(crate) const UNIMPLEMENTED: &Status = &Status { number: 12, name: "UNIMPLEMENTED" };

const INVALID: &str = "Request payload validation error";
const NOT_SUPPORTED: &str = "This operation is not supported";
const PUSH: &str = "Push Notification is not supported";

pub(crate) const PARSE: &ErrorRow = &row("PARSE_ERROR", -32700, 400, ARGUMENT, "Invalid JSON payload");
pub(crate) const INVALID_REQUEST: &ErrorRow = &row("INVALID_REQUEST", -32600, 400, ARGUMENT, INVALID);
pub(crate) const INVALID_PARAMS: &ErrorRow =
    &row("INVALID_PARAMS", -32602, 400, ARGUMENT, "Invalid parameters");
pub(crate) const MEDIA_TYPE: &ErrorRow = &row("UNSUPPORTED_MEDIA_TYPE", -32600, 415, ARGUMENT, INVALID);
pub(crate) const BODY_TOO_LARGE: &ErrorRow = &row("BODY_TOO_LARGE", -32600, 413, EXHAUSTED, INVALID);
pub(crate) const METHOD_NOT_FOUND: &ErrorRow =
    &row("METHOD_NOT_FOUND", -32601, 404, UNIMPLEMENTED, "Method not found");
/// An unknown agent or tenant.
pub(crate) const NO_AGENT: &ErrorRow =
    &ErrorRow { old_code: -32011, ..row("AGENT_DISABLED", -32000, 404, NOT_FOUND, "Agent is not enabled") };
pub(crate) const NO_TASK: &ErrorRow = &row("TASK_NOT_FOUND", -32001, 404, NOT_FOUND, "Task not found");
pub(crate) const NOT_CANCELABLE: &ErrorRow =
    &row("TASK_NOT_CANCELABLE", -32002, 400, PRECONDITION, "Task cannot be canceled");
pub(crate) const NO_PUSH: &ErrorRow = &unsupported("PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, PUSH);
pub(crate) const UNSUPPORTED: &ErrorRow = &unsupported("UNSUPPORTED_OPERATION", -32004, NOT_SUPPORTED);
pub(crate) const VERSION: &ErrorRow = &unsupported("VERSION_NOT_SUPPORTED", -32009, NOT_SUPPORTED);

const fn row(
    reason: &'static str,
    code: i64,
    http: u16,
    status: &'static Status,
    old_text: &'static str,
) -> ErrorRow {
    ErrorRow { reason, code, old_code: code, old_text, http, status, old_status: status }
}

const fn unsupported(reason: &'static str, code: i64, old_text: &'static str) -> ErrorRow {
    ErrorRow { old_status: UNIMPLEMENTED, ..row(reason, code, 400, PRECONDITION, old_text) }
}
