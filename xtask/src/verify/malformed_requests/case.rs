//! One JSON-RPC request and the expected response.

use super::methods::{Dialect, Method};

#[derive(Clone)]
pub(crate) struct Case {
    /// What is unusual about it, for findings.
    pub(crate) name: String,
    pub(crate) body: Vec<u8>,
    /// The `A2A-Version` it sends, in the header or in the query.
    pub(crate) version: Version,
    /// A `Content-Type` other than `application/json`.
    pub(crate) media_type: Option<&'static str>,
    pub(crate) expected: Expected,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Version {
    Header(String),
    Query(String),
    Absent,
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
    pub(crate) status: u16,
    pub(crate) code: i64,
    /// The generation whose error format is used.
    pub(crate) shape: Dialect,
    /// The field that must be named; `None` if no single field is at fault.
    pub(crate) field: Option<String>,
    pub(crate) id: ExpectedId,
}

/// The expected id of the response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedId {
    /// The id of every request here.
    Own,
    Null,
    /// Either of two ids in the request.
    Either,
}

/// The id of every request, except those with an invalid id.
pub(crate) const ID: &str = r#""case-7""#;

pub(crate) const PARSE: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const VERSION_NOT_SUPPORTED: i64 = -32009;
/// The code of 1.0 for an unknown agent or tenant, among others.
pub(crate) const AGENT_DISABLED: i64 = -32000;
/// The HTTP status for it.
pub(crate) const NOT_FOUND: u16 = 404;

impl Case {
    /// A request of the method's own generation that is refused with this code.
    pub(crate) fn refused(
        method: &Method,
        name: impl Into<String>,
        body: impl Into<Vec<u8>>,
        code: i64,
    ) -> Self {
        let refusal = Refusal { status: 200, code, shape: method.dialect, field: None, id: ExpectedId::Own };
        Self::new(method, name, body, Expected::Refused(refusal))
    }

    /// A request of the method's own generation that is accepted.
    pub(crate) fn accepted(
        method: &Method,
        name: impl Into<String>,
        body: impl Into<Vec<u8>>,
        why: &'static str,
    ) -> Self {
        Self::new(method, name, body, Expected::Accepted(why))
    }

    fn new(method: &Method, name: impl Into<String>, body: impl Into<Vec<u8>>, expected: Expected) -> Self {
        let version = Version::Header(method.dialect.version().to_owned());
        Self { name: name.into(), body: body.into(), version, media_type: None, expected }
    }

    pub(crate) fn naming_field(self, field: impl Into<String>) -> Self {
        self.with(|refusal| refusal.field = Some(field.into()))
    }

    pub(crate) fn with_id(self, id: ExpectedId) -> Self {
        self.with(|refusal| refusal.id = id)
    }

    pub(crate) fn in_dialect(self, shape: Dialect) -> Self {
        self.with(|refusal| refusal.shape = shape)
    }

    pub(crate) fn with_status(self, status: u16) -> Self {
        self.with(|refusal| refusal.status = status)
    }

    pub(crate) fn with_version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    pub(crate) fn with_media_type(mut self, media_type: &'static str) -> Self {
        self.media_type = Some(media_type);
        self
    }

    /// What distinguishes it from other requests.
    pub(crate) fn key(&self) -> (Vec<u8>, Version, Option<&'static str>) {
        (self.body.clone(), self.version.clone(), self.media_type)
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

/// A request with these parameters.
pub(crate) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{ID},"method":"{method}","params":{params}}}"#)
}
