//! One request of any binding and the expected response.

use super::errors::{Dialect, ErrorRow, NO_AGENT};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
}

/// The result of a valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValidOutcome {
    Result,
    Events,
    Refused(&'static ErrorRow),
}

/// The request headers, with names in lower case.
pub(crate) type Headers = Vec<(&'static str, Vec<u8>)>;

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) binding: Binding,
    pub(crate) dialect: Dialect,
    pub(crate) valid_outcome: ValidOutcome,
    /// What is wrong with it, for findings.
    pub(crate) name: String,
    pub(crate) verb: &'static str,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: Headers,
    /// Everything after the headers; of gRPC, the message with its prefix.
    pub(crate) body: Vec<u8>,
    /// `None` for a valid request.
    pub(crate) refusal: Option<Refusal>,
}

/// An expected error response.
#[derive(Clone)]
pub(crate) struct Refusal {
    pub(crate) error: &'static ErrorRow,
    /// The generation whose error format is used.
    pub(crate) shape: Dialect,
    pub(crate) http: u16,
    /// The field that must be named; `None` if no single field is at fault.
    pub(crate) field: Option<String>,
    /// The id of a JSON-RPC response.
    pub(crate) id: ExpectedId,
    /// The header `Allow` of HTTP+JSON.
    pub(crate) allow: Option<&'static str>,
    /// The status of gRPC, where gRPC itself defines it.
    pub(crate) grpc_status: Option<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedId {
    /// The id of every request here.
    Own,
    Null,
    /// Either of two ids in the request.
    Either,
}

impl Refusal {
    pub(crate) fn new(binding: Binding, shape: Dialect, error: &'static ErrorRow) -> Self {
        let http = if binding == Binding::HttpJson || binding == Binding::JsonRpc && error == NO_AGENT {
            error.http
        } else {
            200
        };
        Self { error, shape, http, field: None, id: ExpectedId::Own, allow: None, grpc_status: None }
    }

    pub(crate) fn grpc_status(&self) -> u8 {
        self.grpc_status.unwrap_or(self.error.grpc_status(self.shape))
    }
}

impl Case {
    /// A valid POST request.
    pub(crate) fn valid(
        (binding, dialect): (Binding, Dialect),
        valid_outcome: ValidOutcome,
        target: String,
        headers: &[(&'static str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            binding,
            dialect,
            valid_outcome,
            name: "a valid request".to_owned(),
            verb: "POST",
            target,
            headers: headers.iter().map(|(name, value)| (*name, value.as_bytes().to_vec())).collect(),
            body: body.into(),
            refusal: None,
        }
    }

    /// The same request, which is refused with this error; the caller makes it invalid.
    pub(crate) fn refused(&self, name: impl Into<String>, error: &'static ErrorRow) -> Self {
        let refusal = Some(Refusal::new(self.binding, self.dialect, error));
        Self { name: name.into(), refusal, ..self.clone() }
    }

    pub(crate) fn with_body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub(crate) fn with_verb(self, verb: &'static str) -> Self {
        Self { verb, ..self }
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

    pub(crate) fn with_header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref().to_vec();
        match self.headers.iter_mut().find(|header| header.0 == name) {
            Some(header) => header.1 = value,
            None => self.headers.push((name, value)),
        }
        self
    }

    pub(crate) fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|header| header.0 != name);
        self
    }

    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|header| header.0 == name).map(|header| &header.1[..])
    }

    pub(crate) fn with_version(self, version: impl AsRef<[u8]>) -> Self {
        self.with_header("a2a-version", version)
    }

    pub(crate) fn without_version(self) -> Self {
        self.without_header("a2a-version")
    }

    pub(crate) fn naming_field(self, field: impl Into<String>) -> Self {
        self.with(|refusal| refusal.field = Some(field.into()))
    }

    pub(crate) fn in_dialect(self, shape: Dialect) -> Self {
        self.with(|refusal| refusal.shape = shape)
    }

    pub(crate) fn with_http(self, http: u16) -> Self {
        self.with(|refusal| refusal.http = http)
    }

    /// Changes the expected error, if it is one.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Refusal)) -> Self {
        self.refusal.as_mut().map(change);
        self
    }

    /// What distinguishes it from other requests.
    pub(crate) fn key(&self) -> (&'static str, String, Headers, Vec<u8>) {
        (self.verb, self.target.clone(), self.headers.clone(), self.body.clone())
    }
}
