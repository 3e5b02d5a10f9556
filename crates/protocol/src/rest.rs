//! HTTP+JSON requests beside their bodies: verb, path and query, both ways.
//!
//! A path is taken apart as it came and its pieces are percent-decoded afterwards, so that an id may hold slashes,
//! colons and anything else. What is below `/v1` is 0.3, everything else is 1.0; what stands in the bodies is the
//! dialects' business.

mod place;
mod text;

pub use place::{Place, Resource};
pub use text::percent_decode;

use crate::{
    Dialect, Error, ErrorKind, Operation, Violation,
    dialect::{v1, v03_proto},
    json::Raw,
};

/// What a request says beside its body, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The tenant before the path of 1.0.
    pub tenant: Option<String>,
    /// The task in the path.
    pub task: Option<String>,
    /// The webhook in the path.
    pub config: Option<String>,
    /// The pairs of the query. Of equal names the last one counts.
    pub query: Vec<(String, String)>,
}

impl Address {
    /// What a place and a query say.
    pub fn read(place: &Place<'_>, query: Option<&str>) -> Result<Self, Violation> {
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
            _ => (v03_proto::operation::TASK, v03_proto::operation::CONFIG),
        };
        Ok(Self {
            tenant: decode(place.tenant, "tenant")?,
            task: decode(place.task, task)?,
            config: decode(place.config, config)?,
            query: query.map_or(Ok(Vec::new()), text::pairs)?,
        })
    }
}

/// The document that is a body. One that is empty or null says nothing.
pub fn document(body: &[u8]) -> Result<Option<Raw<'_>>, Error> {
    if body.is_empty() {
        return Ok(None);
    }
    let raw = Raw::parse(body).map_err(|fault| {
        Error::new(ErrorKind::Parse, format!("the body is not JSON: {fault}: expected one object"))
    })?;
    Ok(Some(raw).filter(|raw| !raw.is_null()))
}

/// The verb and the target of an operation, below the address of its agent; `None` where the dialect has no such
/// binding.
pub fn target(dialect: Dialect, operation: &Operation) -> Option<(&'static str, String)> {
    let address = match dialect {
        Dialect::V1 => v1::address::address(operation),
        Dialect::V03Proto => v03_proto::operation::address(operation),
        Dialect::Draft | Dialect::V03 => return None,
    };
    let (verb, resource) = Resource::of(operation.kind());
    let mut target = String::new();
    if let Some(tenant) = &address.tenant {
        target.push('/');
        text::percent_encode(&mut target, tenant);
    }
    if dialect == Dialect::V03Proto {
        target.push_str("/v1");
    }
    resource.write(&mut target, dialect, &address);
    for (at, (name, value)) in address.query.iter().enumerate() {
        target.push(if at == 0 { '?' } else { '&' });
        text::percent_encode(&mut target, name);
        target.push('=');
        text::percent_encode(&mut target, value);
    }
    Some((verb, target))
}
