//! One gRPC request and the expected response.

/// A service of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// `a2a.v1`: 0.3.
    V03,
    /// `lf.a2a.v1`: 1.0.
    V1,
}

/// Why a request is refused: the reason in its details, the status of each generation, and the prefix of the
/// message in 0.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) name: &'static str,
    /// Status by the table of 1.0.1.
    v1: u8,
    /// Status by the table of 1.0.0, which clients of 0.3 use.
    v03: u8,
    pub(crate) old_text: &'static str,
}

const INVALID_ARGUMENT: u8 = 3;
const NOT_FOUND: u8 = 5;
const RESOURCE_EXHAUSTED: u8 = 8;
const FAILED_PRECONDITION: u8 = 9;
pub(crate) const UNIMPLEMENTED: u8 = 12;
pub(crate) const INTERNAL: u8 = 13;

pub(crate) const INVALID_PARAMS: Reason = same("INVALID_PARAMS", INVALID_ARGUMENT, "Invalid parameters");
pub(crate) const INVALID_REQUEST: Reason =
    same("INVALID_REQUEST", INVALID_ARGUMENT, "Request payload validation error");
pub(crate) const METHOD_NOT_FOUND: Reason = same("METHOD_NOT_FOUND", UNIMPLEMENTED, "Method not found");
pub(crate) const UNSUPPORTED_MEDIA_TYPE: Reason =
    same("UNSUPPORTED_MEDIA_TYPE", UNIMPLEMENTED, "Request payload validation error");
pub(crate) const BODY_TOO_LARGE: Reason =
    same("BODY_TOO_LARGE", RESOURCE_EXHAUSTED, "Request payload validation error");
pub(crate) const TASK_NOT_FOUND: Reason = same("TASK_NOT_FOUND", NOT_FOUND, "Task not found");
pub(crate) const NOT_CANCELABLE: Reason =
    same("TASK_NOT_CANCELABLE", FAILED_PRECONDITION, "Task cannot be canceled");
pub(crate) const AGENT_UNKNOWN: Reason = same("AGENT_DISABLED", NOT_FOUND, "Agent is not enabled");
pub(crate) const NO_PUSH: Reason = Reason {
    name: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    v1: FAILED_PRECONDITION,
    v03: UNIMPLEMENTED,
    old_text: "Push Notification is not supported",
};
pub(crate) const UNSUPPORTED: Reason = Reason {
    name: "UNSUPPORTED_OPERATION",
    v1: FAILED_PRECONDITION,
    v03: UNIMPLEMENTED,
    old_text: "This operation is not supported",
};
pub(crate) const VERSION: Reason = Reason {
    name: "VERSION_NOT_SUPPORTED",
    v1: FAILED_PRECONDITION,
    v03: UNIMPLEMENTED,
    old_text: "This operation is not supported",
};

const fn same(name: &'static str, code: u8, old_text: &'static str) -> Reason {
    Reason { name, v1: code, v03: code, old_text }
}

/// The request headers.
type Headers = Vec<(&'static str, Vec<u8>)>;

#[derive(Clone)]
pub(crate) struct Case {
    /// What is unusual about it, for findings.
    pub(crate) name: String,
    pub(crate) verb: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Headers,
    /// Everything after the headers: the message with its prefix, if any.
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
    pub(crate) http: u16,
    pub(crate) reason: Reason,
    /// The status, where gRPC itself defines it.
    pub(crate) code: Option<u8>,
    /// The field that must be named; `None` if no single field is at fault.
    pub(crate) field: Option<String>,
    /// The service whose error format is used.
    pub(crate) error_format: Service,
}

impl Service {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V03 => "a2a.v1.A2AService",
            Self::V1 => "lf.a2a.v1.A2AService",
        }
    }

    /// The value of `a2a-version`.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }
}

impl Refusal {
    pub(crate) fn new(reason: Reason, error_format: Service) -> Self {
        Self { http: 200, reason, code: None, field: None, error_format }
    }

    pub(crate) fn code(&self) -> u8 {
        self.code.unwrap_or(match self.error_format {
            Service::V03 => self.reason.v03,
            Service::V1 => self.reason.v1,
        })
    }
}

impl Case {
    /// A request with the same headers and a different body.
    pub(crate) fn of(&self, name: impl Into<String>, body: Vec<u8>, expected: Expected) -> Self {
        Self { name: name.into(), body, expected, ..self.clone() }
    }

    /// Sets a header, or removes it.
    pub(crate) fn with_header(mut self, name: &'static str, value: Option<&[u8]>) -> Self {
        self.headers.retain(|header| header.0 != name);
        self.headers.extend(value.map(|value| (name, value.to_vec())));
        self
    }

    pub(crate) fn at(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    pub(crate) fn with_verb(mut self, verb: &'static str) -> Self {
        self.verb = verb;
        self
    }

    pub(crate) fn with_http(self, http: u16) -> Self {
        self.with(|refusal| refusal.http = http)
    }

    pub(crate) fn with_code(self, code: u8) -> Self {
        self.with(|refusal| refusal.code = Some(code))
    }

    pub(crate) fn naming_field(self, field: impl Into<String>) -> Self {
        self.with(|refusal| refusal.field = Some(field.into()))
    }

    pub(crate) fn in_format(self, error_format: Service) -> Self {
        self.with(|refusal| refusal.error_format = error_format)
    }

    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.expected, Expected::Refused(_))
    }

    /// What distinguishes it from other requests.
    pub(crate) fn key(&self) -> (&'static str, String, Headers, Vec<u8>) {
        (self.verb, self.path.clone(), self.headers.clone(), self.body.clone())
    }

    fn with(mut self, change: impl FnOnce(&mut Refusal)) -> Self {
        if let Expected::Refused(refusal) = &mut self.expected {
            change(refusal);
        }
        self
    }
}

/// A message with its prefix.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0], &length.to_be_bytes()[..], message].concat()
}
