//! The errors of a call: one closed list with one table.
//!
//! [`ErrorKind`] is the list; [`ErrorKind::row`] is the table with its code, status and reason in every wire
//! form. No code branches on a number or a text. An agent's failure is not an error here: it produces a
//! failed task, and the call itself succeeds.

use std::fmt;

/// A rejected or failed call, independent of the binding that encodes it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Selects code, status and reason.
    pub kind: ErrorKind,
    /// Text for the caller: what is wrong and what to do.
    pub message: String,
    /// The invalid fields, if the request was invalid.
    pub violations: Vec<Violation>,
    /// Machine-readable details: `taskId`, `supportedVersions`, ….
    pub facts: Vec<(&'static str, String)>,
    /// Overrides the table's code for the versions before 1.0, where a compatibility profile needs
    /// another.
    pub legacy_code: Option<i32>,
}

/// An invalid field and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The field's path, as in `message.parts[0].raw`; empty for the document itself.
    pub field: String,
    /// What was expected.
    pub problem: String,
}

impl Violation {
    /// A violation at this field path.
    pub fn new(field: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self { field: field.to_string(), problem: problem.to_string() }
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::invalid_params(violation)
    }
}

/// The closed list of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the specification's; the table defines each")]
pub enum ErrorKind {
    Parse,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    TaskNotFound,
    TaskNotCancelable,
    PushNotificationNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    InvalidAgentResponse,
    ExtendedCardNotConfigured,
    ExtensionSupportRequired,
    VersionNotSupported,
    Unauthenticated,
    PermissionDenied,
    AgentDisabled,
    GuardrailBlocked,
    RateLimited,
    Unavailable,
    DeadlineExceeded,
    BodyTooLarge,
    UnsupportedMediaType,
    MessageIdReused,
    NotFound,
    Conflict,
}

/// One row of the error table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorRow {
    /// The machine-readable reason (A2A 1.0 ErrorInfo).
    pub reason: &'static str,
    /// JSON-RPC code in A2A 1.0.
    pub code: i32,
    /// JSON-RPC code in the versions before 1.0.
    pub legacy_code: i32,
    /// The fixed text of the versions before 1.0; clients compare it.
    pub legacy_message: &'static str,
    /// HTTP status of the REST binding by A2A 1.0.1.
    pub http: u16,
    /// HTTP status by A2A 1.0.0.
    pub http_1_0_0: u16,
    /// gRPC status by A2A 1.0.1.
    pub grpc: GrpcStatus,
    /// gRPC status by A2A 1.0.0.
    pub grpc_1_0_0: GrpcStatus,
    /// HTTP status of a JSON-RPC response: 200 except for errors raised before dispatch.
    pub rpc_http: u16,
}

/// Which release's statuses apply where the two differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorTable {
    /// A2A 1.0.0: several errors have other statuses than in 1.0.1.
    V1_0_0,
    /// A2A 1.0.1.
    #[default]
    V1_0_1,
}

impl ErrorRow {
    /// HTTP status of the REST binding.
    pub fn http_of(&self, table: ErrorTable) -> u16 {
        match table {
            ErrorTable::V1_0_0 => self.http_1_0_0,
            ErrorTable::V1_0_1 => self.http,
        }
    }

    /// gRPC status.
    pub fn grpc_of(&self, table: ErrorTable) -> GrpcStatus {
        match table {
            ErrorTable::V1_0_0 => self.grpc_1_0_0,
            ErrorTable::V1_0_1 => self.grpc,
        }
    }
}

/// gRPC status codes that occur in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are gRPC's")]
pub enum GrpcStatus {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl GrpcStatus {
    /// Its name, as `google.rpc.Code` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl ErrorKind {
    /// Every kind, in table order.
    pub const ALL: [Self; 26] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::AgentDisabled,
        Self::GuardrailBlocked,
        Self::RateLimited,
        Self::Unavailable,
        Self::DeadlineExceeded,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::MessageIdReused,
        Self::NotFound,
        Self::Conflict,
    ];

    /// The error table: A2A 5.4, plus project-specific rows where the specification has none.
    #[rustfmt::skip]
    pub fn row(self) -> ErrorRow {
        use GrpcStatus::*;
        // reason, code, legacy code, legacy message, http 1.0.1, http 1.0.0, grpc 1.0.1, grpc 1.0.0, http of JSON-RPC
        let (reason, code, legacy_code, legacy_message, http, http_1_0_0, grpc, grpc_1_0_0, rpc_http) = match self {
            Self::Parse                        => ("PARSE_ERROR",                        -32700, -32700, "Invalid JSON payload",                           400, 400, InvalidArgument,    InvalidArgument,    200),
            Self::InvalidRequest               => ("INVALID_REQUEST",                    -32600, -32600, "Request payload validation error",               400, 400, InvalidArgument,    InvalidArgument,    200),
            Self::MethodNotFound               => ("METHOD_NOT_FOUND",                   -32601, -32601, "Method not found",                               404, 404, Unimplemented,      Unimplemented,      200),
            Self::InvalidParams                => ("INVALID_PARAMS",                     -32602, -32602, "Invalid parameters",                             400, 400, InvalidArgument,    InvalidArgument,    200),
            Self::Internal                     => ("INTERNAL_ERROR",                     -32603, -32603, "Internal error",                                 500, 500, Internal,           Internal,           200),
            Self::TaskNotFound                 => ("TASK_NOT_FOUND",                     -32001, -32001, "Task not found",                                 404, 404, NotFound,           NotFound,           200),
            Self::TaskNotCancelable            => ("TASK_NOT_CANCELABLE",                -32002, -32002, "Task cannot be canceled",                        400, 409, FailedPrecondition, FailedPrecondition, 200),
            Self::PushNotificationNotSupported => ("PUSH_NOTIFICATION_NOT_SUPPORTED",    -32003, -32003, "Push Notification is not supported",             400, 400, FailedPrecondition, Unimplemented,      200),
            Self::UnsupportedOperation         => ("UNSUPPORTED_OPERATION",              -32004, -32004, "This operation is not supported",                400, 400, FailedPrecondition, Unimplemented,      200),
            Self::ContentTypeNotSupported      => ("CONTENT_TYPE_NOT_SUPPORTED",         -32005, -32005, "Incompatible content types",                     400, 415, InvalidArgument,    InvalidArgument,    200),
            Self::InvalidAgentResponse         => ("INVALID_AGENT_RESPONSE",             -32006, -32006, "Invalid agent response",                         500, 502, Internal,           Internal,           200),
            Self::ExtendedCardNotConfigured    => ("EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, -32007, "Authenticated Extended Card is not configured",  400, 400, FailedPrecondition, FailedPrecondition, 200),
            Self::ExtensionSupportRequired     => ("EXTENSION_SUPPORT_REQUIRED",         -32008, -32004, "This operation is not supported",                400, 400, FailedPrecondition, FailedPrecondition, 200),
            Self::VersionNotSupported          => ("VERSION_NOT_SUPPORTED",              -32009, -32004, "This operation is not supported",                400, 400, FailedPrecondition, Unimplemented,      200),
            Self::Unauthenticated              => ("UNAUTHENTICATED",                    -32000, -32010, "Authentication required",                        401, 401, Unauthenticated,    Unauthenticated,    401),
            Self::PermissionDenied             => ("PERMISSION_DENIED",                  -32000, -32010, "Authorization failed",                           403, 403, PermissionDenied,   PermissionDenied,   403),
            Self::AgentDisabled                => ("AGENT_DISABLED",                     -32000, -32011, "Agent is not enabled",                           404, 404, NotFound,           NotFound,           404),
            Self::GuardrailBlocked             => ("GUARDRAIL_BLOCKED",                  -32013, -32013, "Blocked by guardrail",                           422, 422, FailedPrecondition, FailedPrecondition, 200),
            Self::RateLimited                  => ("RATE_LIMITED",                       -32000, -32012, "Rate limit exceeded",                            429, 429, ResourceExhausted,  ResourceExhausted,  429),
            Self::Unavailable                  => ("UNAVAILABLE",                        -32000, -32000, "Service unavailable",                            503, 503, Unavailable,        Unavailable,        503),
            Self::DeadlineExceeded             => ("DEADLINE_EXCEEDED",                  -32000, -32000, "Deadline exceeded",                              408, 408, DeadlineExceeded,   DeadlineExceeded,   408),
            Self::BodyTooLarge                 => ("BODY_TOO_LARGE",                     -32600, -32600, "Request payload validation error",               413, 413, ResourceExhausted,  ResourceExhausted,  413),
            Self::UnsupportedMediaType         => ("UNSUPPORTED_MEDIA_TYPE",             -32600, -32600, "Request payload validation error",               415, 415, InvalidArgument,    InvalidArgument,    415),
            Self::MessageIdReused              => ("MESSAGE_ID_REUSED",                  -32602, -32602, "Invalid parameters",                             409, 409, AlreadyExists,      AlreadyExists,      200),
            // The next two are errors of the operators' API.
            Self::NotFound                     => ("NOT_FOUND",                          -32000, -32000, "Not found",                                      404, 404, NotFound,           NotFound,           404),
            Self::Conflict                     => ("CONFLICT",                           -32000, -32000, "Conflict",                                       409, 409, FailedPrecondition, FailedPrecondition, 409),
        };
        ErrorRow { reason, code, legacy_code, legacy_message, http, http_1_0_0, grpc, grpc_1_0_0, rpc_http }
    }
}

/// Name of the detail with the number of seconds after which a call may be repeated.
pub const RETRY_AFTER: &str = "retryAfter";

/// Truncates caller-supplied text before it is quoted in a message.
pub fn excerpt(text: &str) -> String {
    const LONGEST: usize = 64;
    text.chars().take(LONGEST).collect()
}

impl Error {
    /// An error with a message for the caller.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), violations: Vec::new(), facts: Vec::new(), legacy_code: None }
    }

    /// Adds a machine-readable detail.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.facts.push((name, value.to_string()));
        self
    }

    /// Adds after how many seconds the call may be repeated: the header `Retry-After`, and `RetryInfo` over gRPC.
    #[must_use]
    pub fn with_retry_after(self, seconds: u64) -> Self {
        self.with(RETRY_AFTER, seconds.max(1))
    }

    /// After how many seconds the call may be repeated, if that is known.
    pub fn retry_after(&self) -> Option<u64> {
        self.facts.iter().find(|fact| fact.0 == RETRY_AFTER)?.1.parse().ok()
    }

    /// An invalid parameter.
    pub fn invalid_params(violation: Violation) -> Self {
        Self::violated(ErrorKind::InvalidParams, violation)
    }

    /// An invalid request envelope.
    pub fn invalid_request(violation: Violation) -> Self {
        Self::violated(ErrorKind::InvalidRequest, violation)
    }

    /// A task that does not exist or is not visible to this caller.
    pub fn task_not_found(id: &crate::TaskId) -> Self {
        Self::new(ErrorKind::TaskNotFound, format!("task not found: {id}")).with("taskId", id)
    }

    fn violated(kind: ErrorKind, violation: Violation) -> Self {
        let message = match violation.field.as_str() {
            "" => violation.problem.clone(),
            field => format!("{field}: {}", violation.problem),
        };
        Self { violations: vec![violation], ..Self::new(kind, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorKind;

    #[test]
    fn own_codes_stay_in_the_reserved_range_and_reasons_are_unique() {
        for (at, kind) in ErrorKind::ALL.into_iter().enumerate() {
            let row = kind.row();
            let standard = matches!(row.code, -32700 | -32603..=-32600);
            assert!(standard || (-32099..=-32000).contains(&row.code), "{kind:?}");
            assert!(ErrorKind::ALL[..at].iter().all(|other| other.row().reason != row.reason), "{kind:?}");
        }
    }
}
