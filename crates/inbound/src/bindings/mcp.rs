//! The MCP binding: skills as tools and the cards of agents as resources, over streamable HTTP or a pair of byte streams.
//!
//! The library that speaks MCP is used in `mcp/sdk.rs` and below only. It gets the request after the exchange has
//! decided about host, origin and credential and has read the body; its handler takes the exchange of the request and
//! calls the agent with a [`DecodedRequest`](crate::request::decoded_request::DecodedRequest), like every other binding. Progress,
//! questions and cancellation of a call are those of its task.

mod call;
mod cards;
mod message;
mod sdk;
mod tools;

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{Method, StatusCode};
use protocol::{
    Dialect, Error, ErrorKind,
    error::excerpt,
    jsonrpc::{Id, Refusal},
};

use self::message::Head;
use crate::{
    request::exchange::Exchange,
    response::respond::{self, Envelope, ResponseFormat},
};
pub use sdk::McpError;
pub(crate) use sdk::{McpEndpoint, serve};

/// The name of this binding in the access log.
const NAME: &str = "mcp";

/// Handles one request.
pub(crate) async fn handle(mut exchange: Exchange, body: Body) -> Response {
    if exchange.endpoint.registered().is_none() {
        let shown = excerpt(exchange.endpoint.agent());
        let text = format!("there is no agent {shown:?} here");
        return refuse(exchange, Error::new(ErrorKind::AgentDisabled, text).into());
    }
    let (head, body) = match read(&exchange, body).await {
        Ok(read) => read,
        Err(refused) => return refuse(exchange, refused),
    };
    exchange.log_entry.set_method(head.method);
    sdk::respond(exchange, &head, body).await
}

/// A request that is answered before or instead of the library.
struct RefusedRequest {
    /// That of the message, if it could be read.
    id: Id,
    status: StatusCode,
    error: Error,
}

impl From<Refusal> for RefusedRequest {
    fn from(Refusal { id, error }: Refusal) -> Self {
        let status = match error.kind {
            // Clients read the error of a request only with this status.
            ErrorKind::InvalidParams => StatusCode::OK,
            kind => StatusCode::from_u16(kind.row().http).unwrap_or(StatusCode::BAD_REQUEST),
        };
        Self { id, status, error }
    }
}

impl From<Error> for RefusedRequest {
    fn from(error: Error) -> Self {
        Refusal { id: Id::null(), error }.into()
    }
}

/// Reads the message of a request. Only POST has one.
async fn read(exchange: &Exchange, body: Body) -> Result<(Head, Bytes), RefusedRequest> {
    let method = &exchange.head.method;
    message::check_headers(method, &exchange.head.headers).map_err(|(status, error)| RefusedRequest {
        id: Id::null(),
        status,
        error,
    })?;
    match *method {
        Method::POST => {
            let body = exchange.read_body(body).await?;
            Ok((message::read(&body)?, body))
        }
        Method::DELETE => Ok((Head::without_message("session/delete"), Bytes::new())),
        _ => Ok((Head::without_message("session/stream"), Bytes::new())),
    }
}

/// Responds with an error of JSON-RPC.
fn refuse(mut exchange: Exchange, refused: RefusedRequest) -> Response {
    let RefusedRequest { id, status, error } = refused;
    let format = ResponseFormat {
        envelope: Envelope::Rpc(id),
        dialect: Dialect::V1,
        profile: exchange.endpoint.profile(),
    };
    let response = respond::error_response_with_status(&format, &error, status.as_u16(), exchange.now());
    exchange.log_entry.set_error(&error);
    exchange.log_entry.finish_without_dialect(NAME);
    response
}
