//! The MCP binding: skills as tools and the cards of agents as resources, over streamable HTTP or a pair of byte streams.
//!
//! The library that speaks MCP is used in `mcp/sdk.rs` and below only. It gets the request after the exchange has
//! decided about host, origin and credential and has read the body; its handler takes the exchange of the request and
//! calls the agent with [`Exchange::run`], like every other binding. Progress, questions and cancellation of a call are
//! those of its task.

mod call;
mod cards;
mod sdk;
mod tools;

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{Method, StatusCode};
use protocol::{
    Dialect, Error, ErrorKind, Json,
    error::excerpt,
    json::{
        Raw,
        read::{Node, Path},
    },
    jsonrpc::Id,
};

use crate::{
    exchange::Exchange,
    respond::{self, Envelope, ResponseFormat},
};
pub use sdk::McpError;
pub(crate) use sdk::{McpEndpoint, serve};

/// The name of this binding in the access log.
const NAME: &str = "mcp";

/// The methods of MCP that this server has, and whether their handlers need the exchange. Other names are the caller's
/// own text and not logged.
const METHODS: [(&str, Handling); 13] = [
    ("initialize", Handling::Library),
    ("server/discover", Handling::Library),
    ("ping", Handling::Library),
    ("subscriptions/listen", Handling::Library),
    ("notifications/initialized", Handling::Library),
    ("notifications/cancelled", Handling::Library),
    ("notifications/progress", Handling::Library),
    ("notifications/roots/list_changed", Handling::Library),
    ("tools/list", Handling::Exchange),
    ("tools/call", Handling::Exchange),
    ("resources/list", Handling::Exchange),
    ("resources/templates/list", Handling::Library),
    ("resources/read", Handling::Exchange),
];

/// Who handles a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handling {
    /// The library alone.
    Library,
    /// A handler of ours, with the exchange of the request.
    Exchange,
}

/// Handles one request.
pub(crate) async fn handle(mut exchange: Exchange, body: Body) -> Response {
    if exchange.endpoint.registered().is_none() {
        let shown = excerpt(exchange.endpoint.agent());
        let text = format!("there is no agent {shown:?} here");
        return refuse(exchange, &Error::new(ErrorKind::AgentDisabled, text));
    }
    let (method, handling, body) = match exchange.head.method {
        Method::POST => match exchange.read_body(body).await {
            Ok(body) => match method_of(&body) {
                Ok((method, handling)) => (method, handling, body),
                Err(error) => return refuse(exchange, &error),
            },
            Err(error) => return refuse(exchange, &error),
        },
        Method::DELETE => ("session/delete", Handling::Library, Bytes::new()),
        _ => ("session/stream", Handling::Library, Bytes::new()),
    };
    exchange.log_entry.set_method(method);
    sdk::respond(exchange, handling, body).await
}

/// The method that a message names. What is not a message of MCP is reported by the library.
fn method_of(body: &[u8]) -> Result<(&'static str, Handling), Error> {
    let document = Raw::parse(body)
        .map_err(|fault| Error::new(ErrorKind::Parse, format!("the body is not JSON: {fault}")))?;
    // The library makes a tree of the whole message, which takes far more memory than its text.
    Json::from_raw(document).map_err(|problem| {
        Error::new(ErrorKind::InvalidRequest, format!("the message is too large: expected {problem}"))
    })?;
    let message = Node::new(document, &Path::Root).object().map_err(|_| {
        Error::new(ErrorKind::InvalidRequest, "the body is not one message: expected an object")
    })?;
    let named = message.text("method").ok().flatten();
    let known = METHODS.into_iter().find(|(method, _)| Some(*method) == named.as_deref());
    Ok(known.unwrap_or(("unknown", Handling::Library)))
}

/// Responds with an error before the library has seen the request.
fn refuse(mut exchange: Exchange, error: &Error) -> Response {
    let format = ResponseFormat {
        envelope: Envelope::Rpc(Id::null()),
        dialect: Dialect::V1,
        profile: exchange.endpoint.profile(),
    };
    let status = StatusCode::from_u16(error.kind.row().http).unwrap_or(StatusCode::BAD_REQUEST);
    let response = respond::error_response_with_status(&format, error, status.as_u16(), exchange.now());
    exchange.log_entry.set_error(error);
    exchange.log_entry.finish_without_dialect(NAME);
    response
}
