//! The operators' API below `/console/api`: JSON in and out, one file for each resource.
//!
//! A request has presented the admin token before it arrives here. Errors have the form of HTTP+JSON 1.0. No response may
//! be cached, because some contain secrets.

pub mod key_document;
mod keys;

use axum::{body::Body, response::Response};
use http::{HeaderValue, StatusCode, header};
use protocol::{
    Dialect, Error, ErrorKind, Violation,
    error::excerpt,
    json::{
        Raw,
        read::{Node, Object, Path, Read},
    },
};

use super::run;
use crate::{body, exchange::Exchange, respond};

/// The most bytes of a request's body.
pub(crate) const MAX_BODY: usize = 4 << 10;

/// A call of the operators' API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleCall {
    ListKeys,
    CreateKey,
    RevokeKey,
}

/// Handles one request.
pub(crate) async fn handle(call: ConsoleCall, exchange: Exchange, body: Body) -> Response {
    let result = match call {
        ConsoleCall::ListKeys => keys::list(&exchange).await,
        ConsoleCall::CreateKey => keys::create(&exchange, body).await,
        ConsoleCall::RevokeKey => keys::revoke(&exchange).await,
    };
    without_caching(result.unwrap_or_else(|error| run::error_response(&exchange, &error)))
}

pub(crate) fn without_caching(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn respond(status: StatusCode, document: Vec<u8>) -> Response {
    let mut response = respond::json(document);
    *response.status_mut() = status;
    response
}

/// Reads a body that is an object with no other members than these.
async fn read_object<T>(
    exchange: &Exchange,
    body: Body,
    members: &[&str],
    read: impl FnOnce(&Object<'_, '_>) -> Read<T>,
) -> Result<T, Error> {
    body::check_media_type(&exchange.head.headers, Dialect::V1, exchange.server.errors)?;
    let bytes = exchange.read_body(body).await?;
    let raw = Raw::parse(&bytes).map_err(|fault| {
        Error::new(ErrorKind::Parse, format!("the body is not JSON: {fault}: expected an object"))
    })?;
    let object = Node::new(raw, &Path::Root).bounded().object()?;
    object.entries(|name, _| {
        if members.contains(&name) {
            return Ok(());
        }
        let known = members.join(", ");
        Err(Violation::new(excerpt(name), format_args!("unknown member; the members are {known}")))
    })?;
    if let Some(name) = object.repeated() {
        return Err(Violation::new(name, "the member is repeated; send it once").into());
    }
    Ok(read(&object)?)
}

/// The only value of the only parameter that a query may have; `None` if it is absent.
fn query_parameter(exchange: &Exchange, name: &str) -> Result<Option<String>, Error> {
    let query = exchange.head.uri.query().unwrap_or_default();
    let mut found = None;
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let problem = match &found {
            _ if key != name => format!("unknown parameter; the only one is {name}"),
            Some(_) => "the parameter is repeated; send it once".to_owned(),
            None if value.is_empty() => "expected a value".to_owned(),
            None => {
                found = Some(value.into_owned());
                continue;
            }
        };
        return Err(Violation::new(excerpt(&key), problem).into());
    }
    Ok(found)
}
