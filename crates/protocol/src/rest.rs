//! HTTP+JSON requests except for their bodies: method, path and query, decoding and encoding.
//!
//! A path is split first and its segments are percent-decoded afterwards, so that an id may contain slashes,
//! colons and any other character. Paths below `/v1` are 0.3, all others 1.0. Bodies are handled by the
//! dialects.

mod resource_path;
mod text;

pub use resource_path::{Resource, ResourcePath};
pub use text::{percent_decode, percent_encode};

use crate::{
    Dialect, Error, ErrorKind, Operation, Violation,
    dialect::{v1, v03_proto},
    json::Raw,
};

/// Path and query parameters of a request, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The tenant segment of a 1.0 path.
    pub tenant: Option<String>,
    /// The task id in the path.
    pub task: Option<String>,
    /// The push notification config id in the path.
    pub config: Option<String>,
    /// Query parameters in order. If a name is repeated, the last one wins.
    pub query: Vec<(String, String)>,
}

impl Address {
    /// Decodes the parameters of a matched path and a query.
    pub fn read(place: &ResourcePath<'_>, query: Option<&str>) -> Result<Self, Violation> {
        let decode = |piece: Option<&str>, field: &str| {
            let decode = |piece| {
                let expected = || Violation::new(field, text::EXPECTED);
                percent_decode(piece).map(std::borrow::Cow::into_owned).ok_or_else(expected)
            };
            piece.map(decode).transpose()
        };
        let of_config = matches!(place.resource, Some(Resource::Configs | Resource::Config));
        let (task, config) = match place.dialect {
            Dialect::V1 if of_config => ("taskId", "id"),
            Dialect::Draft | Dialect::V03 | Dialect::V03Proto | Dialect::V1 => {
                (v03_proto::operation::TASK, v03_proto::operation::CONFIG)
            }
        };
        Ok(Self {
            tenant: decode(place.tenant, "tenant")?,
            task: decode(place.task, task)?,
            config: decode(place.config, config)?,
            query: query.map_or(Ok(Vec::new()), text::pairs)?,
        })
    }
}

/// Parses a body as one JSON document. `None` if the body is empty or null.
pub fn document(body: &[u8]) -> Result<Option<Raw<'_>>, Error> {
    if body.is_empty() {
        return Ok(None);
    }
    let raw = Raw::parse(body).map_err(|fault| {
        Error::new(ErrorKind::Parse, format!("the body is not JSON: {fault}: expected one object"))
    })?;
    Ok(Some(raw).filter(|raw| !raw.is_null()))
}

/// The HTTP method and the request target of an operation, relative to the agent's URL; `None` if the dialect
/// has no HTTP+JSON binding.
pub fn target(dialect: Dialect, operation: &Operation) -> Option<(&'static str, String)> {
    let (address, prefix) = match dialect {
        Dialect::V1 => (v1::address::address(operation), ""),
        Dialect::V03Proto => (v03_proto::operation::address(operation), "/v1"),
        Dialect::Draft | Dialect::V03 => return None,
    };
    let (verb, resource) = Resource::of(operation.kind());
    let mut target = String::new();
    if let Some(tenant) = &address.tenant {
        target.push('/');
        text::percent_encode(&mut target, tenant);
    }
    target.push_str(prefix);
    resource.write(&mut target, dialect, &address);
    for (at, (name, value)) in address.query.iter().enumerate() {
        target.push(if at == 0 { '?' } else { '&' });
        text::percent_encode(&mut target, name);
        target.push('=');
        text::percent_encode(&mut target, value);
    }
    Some((verb, target))
}
