//! OpenAPI documents: one skill for each operation of a description in OpenAPI 3.0 or 3.1.
//!
//! [`parse`] reads a document; [`Document::operations`] selects operations by the configuration and describes each with
//! JSON Schemas; [`Operation::skill`] makes a skill of one. All of that, and [`Operation::request`], is pure: the only
//! modules that do I/O are `call` and `fetch`.
//!
//! A document is trusted as little as a peer. Its size, its nesting, its references and the schemas made of it are
//! bounded, and nothing in it or in the arguments of a call changes where a request goes: always to the origin of
//! `base_url`, below its path. Without a `base_url`, `servers[0]` of the document is used; a document that was fetched
//! can only name the origin it was fetched from, so that it cannot send credentials elsewhere.

mod body;
mod call;
mod document;
mod fetch;
mod id;
mod operation;
mod parameter;
mod path;
mod refs;
mod request;
mod responses;
mod schema;
mod security;
mod select;
mod serialize;
mod server;

use std::time::Duration;

use http::HeaderName;
use protocol::model::Secret;

use crate::skill::Interface;

pub use self::{
    document::{Document, parse},
    fetch::fetch,
    operation::{Operation, Operations, Skipped},
    request::InvalidArgument,
};

/// A parsed document. Arguments and results never pass through this type.
#[expect(
    clippy::disallowed_types,
    reason = "references lead anywhere in a document, so it is kept as a tree"
)]
type Tree = serde_json::Value;

/// Settings of one document.
#[derive(PartialEq)]
pub struct OpenApiConfig {
    /// Name of the section, for messages to the operator.
    pub name: String,
    /// Absolute URL that paths are appended to; `None`: `servers[0]` of the document.
    pub base_url: Option<String>,
    /// Where the document was fetched: a relative server is resolved against it.
    pub document_url: Option<String>,
    /// The operations that become skills: ids or `METHOD /path`, in which `*` stands for any text.
    pub operations: Vec<String>,
    /// Sent with every request.
    pub headers: Vec<(HeaderName, Secret)>,
    /// Credentials by name of a security scheme, sent with the operations that require that scheme.
    pub security: Vec<(String, Credential)>,
    /// Maximum time until the head of a response, and between two pieces of its body.
    pub timeout: Duration,
    /// Maximum size of a response body, in bytes.
    pub max_response: usize,
    /// How operations take messages. The whole message is the body of those with a JSON body; others get arguments.
    pub interface: Interface,
}

impl OpenApiConfig {
    /// All operations, without credentials.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_url: None,
            document_url: None,
            operations: vec!["*".into()],
            headers: Vec::new(),
            security: Vec::new(),
            timeout: Duration::from_secs(30),
            max_response: 16 << 20,
            interface: Interface::default(),
        }
    }
}

/// A credential for one security scheme.
#[derive(PartialEq)]
pub enum Credential {
    /// The value of an `apiKey` scheme, or the token of an `http` bearer, `oauth2` or `openIdConnect` scheme.
    Token(Secret),
    /// User name and password of an `http` basic scheme.
    Basic {
        /// Without a colon.
        user: String,
        /// May be empty.
        password: Secret,
    },
}

/// Why a document or its configuration cannot be used. The text is for the operator and contains no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenApiError {
    /// Larger than the limit.
    #[error("the document has {size} bytes; at most {max} are read")]
    TooLarge {
        /// In bytes, as far as it was read.
        size: usize,
        /// In bytes.
        max: usize,
    },
    /// Neither JSON nor YAML.
    #[error("the document is not valid {format}: {problem}")]
    Syntax {
        /// `JSON` or `YAML`.
        format: &'static str,
        /// With line and column, where they are known.
        problem: String,
    },
    /// Another kind or version of document.
    #[error("expected a document of OpenAPI 3.0 or 3.1, found {0}")]
    Version(String),
    /// There is no usable URL to send requests to.
    #[error("{field}: {problem}")]
    BaseUrl {
        /// `base_url` or `servers[0].url`.
        field: &'static str,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// An entry of `operations` selects nothing.
    #[error("operations: {}", missing.join("; "))]
    NoMatch {
        /// What is wrong with each such entry.
        missing: Vec<String>,
    },
    /// More operations than skills are made of.
    #[error("the document has {count} operations; at most {max} are supported")]
    TooManyOperations {
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// A credential does not fit the document.
    #[error("security.{scheme}: {problem}")]
    Security {
        /// The scheme.
        scheme: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A header cannot be sent.
    #[error("headers.{name}: {problem}")]
    Header {
        /// The header.
        name: String,
        /// What is wrong with its name or value.
        problem: String,
    },
    /// The document could not be fetched.
    #[error("the document cannot be fetched: {0}")]
    Fetch(String),
}
