//! The library that speaks MCP, behind the exchange. Nothing else in this crate uses it.

mod ask;
mod convert;
mod handler;
mod lines;
mod question;
mod sessions;
mod tool_call;

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{Reservation, StreamEnd};
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyDataStream, BodyExt as _, Full, combinators::BoxBody};
use protocol::{
    Dialect, Error, ErrorKind, Timestamp,
    jsonrpc::{Id, Refusal},
};
use rmcp::{
    serve_server,
    transport::{StreamableHttpServerConfig, StreamableHttpService},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::{
    handler::{SkillServer, Source},
    lines::LineTransport,
    sessions::{CallerSessions, OpenSession, Sessions},
};
use super::{
    NAME, RefusedRequest,
    message::{self, Head, MethodHandler},
};
use crate::{
    access::{access_watch::AccessWatch, audit, open_streams::OpenStream},
    request::exchange::Exchange,
    response::{respond::Envelope, sse},
    server_state::ServerState,
};

/// The sessions of all callers. When it is dropped, they end.
#[derive(Default)]
pub(crate) struct McpEndpoint(Arc<Sessions>);

impl Drop for McpEndpoint {
    fn drop(&mut self) {
        self.0.close_all();
    }
}

/// Why a connection over a pair of byte streams ended before its peer closed it.
#[derive(Debug, thiserror::Error)]
#[error("the MCP connection could not be established: {0}")]
pub struct McpError(String);

/// A request on its way through the library to the handler, which takes its content.
#[derive(Clone)]
struct HttpRequest {
    content: Arc<Mutex<Option<(Exchange, Bytes)>>>,
    /// The session is in use until the handler has ended, also if the client has disconnected.
    _open: Option<Arc<OpenSession>>,
}

impl HttpRequest {
    /// The exchange and the body. The arguments of a call are read from that: a tree of the library loses digits of
    /// numbers.
    fn take(&self) -> Option<(Exchange, Bytes)> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Responds to a request whose message has been read.
pub(super) async fn respond(exchange: Exchange, head: &Head, body: Bytes) -> Response {
    let server = Arc::clone(&exchange.server);
    // A stream that waits for notices; those of calls are counted with their operations.
    let is_standing = exchange.head.method == Method::GET || head.method == message::LISTEN;
    let stream = match is_standing.then(|| exchange.open_stream()).transpose() {
        Ok(stream) => stream,
        Err(error) => {
            audit::refused_call(&exchange, error.kind);
            return super::refuse(exchange, Refusal { id: head.response_id(), error }.into());
        }
    };
    let watch = exchange.sender.watch(&server, &exchange.endpoint);
    let sessions = CallerSessions::new(
        Arc::clone(&server.mcp.0),
        exchange.sender.scope(&exchange.endpoint),
        watch.clone(),
    );
    let open = exchange.head.headers.get(SESSION_ID).and_then(|id| sessions.open(id)).map(Arc::new);
    let memory = Arc::clone(&exchange.memory);
    let service = {
        let changes = server.engine.catalog().changes();
        let handler = move || Ok(SkillServer::new(Source::Http, changes.clone()));
        StreamableHttpService::new(handler, Arc::new(sessions), config(&exchange))
    };
    let mut request = Request::new(Full::new(body.clone()));
    *request.method_mut() = exchange.head.method.clone();
    *request.uri_mut() = exchange.head.uri.clone();
    *request.headers_mut() = exchange.head.headers.clone();
    message::normalize_headers(request.headers_mut());
    let mut kept = None;
    let slot = HttpRequest { content: Arc::default(), _open: open.clone() };
    match head.handling {
        MethodHandler::Library => kept = Some(exchange),
        MethodHandler::Exchange => {
            *slot.content.lock().unwrap_or_else(PoisonError::into_inner) = Some((exchange, body));
            request.extensions_mut().insert(slot.clone());
        }
    }
    let ends_session = *request.method() == Method::DELETE;
    let mut response = service.handle(request).await;
    if ends_session && response.status() == StatusCode::ACCEPTED {
        // The session has ended when the library responds. Clients report 202 as a session that may still be open.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    // A request that the library has refused did not reach its handler.
    let refused = response.status().is_client_error() || response.status().is_server_error();
    if refused {
        kept = kept.or_else(|| slot.take().map(|(exchange, _)| exchange));
    }
    if let Some(exchange) = kept {
        if refused && !is_json(&response) {
            return refuse(exchange, head, response).await;
        }
        log(exchange, response.status());
    }
    let held = ResponseResources { _open: open, _memory: memory, _stream: stream };
    complete(response, &server, head, watch, held)
}

/// Responds as the library does, with an error of JSON-RPC instead of its text.
async fn refuse(
    exchange: Exchange,
    head: &Head,
    response: http::Response<BoxBody<Bytes, Infallible>>,
) -> Response {
    let (parts, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    let id = head.response_id();
    if parts.status.is_server_error() {
        tracing::warn!(reason = text, "the MCP library has failed");
        let text = "the session cannot be used or begun; try again later";
        return super::refuse(
            exchange,
            Refusal { id, error: Error::new(ErrorKind::Unavailable, text) }.into(),
        );
    }
    let text = match parts.status {
        StatusCode::NOT_FOUND => "the session is unknown or has ended; begin a new one with initialize",
        StatusCode::METHOD_NOT_ALLOWED => "the method is not allowed for this revision of MCP",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "the message cannot be read as one of MCP",
        _ => text.trim_start_matches("Bad Request: "),
    };
    let error = Error::new(ErrorKind::InvalidRequest, text);
    let status = match parts.status {
        // Of the message, not of its media type.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
        status => status,
    };
    let mut response = super::refuse(exchange, RefusedRequest { id, status, error });
    if let Some(allow) = parts.headers.get(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, allow.clone());
    }
    response
}

fn is_json<B>(response: &http::Response<B>) -> bool {
    let media_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type.is_some_and(|media_type| media_type.starts_with("application/json"))
}

/// The header that names a session.
const SESSION_ID: &str = "mcp-session-id";

/// Host, origin and body have been checked before.
fn config(exchange: &Exchange) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_sse_keep_alive(Some(exchange.server.keep_alive))
        .with_json_response(true)
        .with_max_request_body_bytes(exchange.max_body_bytes())
}

fn log(mut exchange: Exchange, status: StatusCode) {
    let kind = match status {
        StatusCode::NOT_FOUND => Some(ErrorKind::TaskNotFound),
        _ if status.is_server_error() => Some(ErrorKind::Unavailable),
        _ if status.is_client_error() => Some(ErrorKind::InvalidRequest),
        _ => None,
    };
    if let Some(kind) = kind {
        exchange.log_entry.set_error(&Error::new(kind, "refused by the MCP library"));
    }
    exchange.log_entry.finish_without_dialect(NAME);
}

/// What a response keeps until its last byte has left: its session in use, the memory that is reserved for it, and its
/// place among the streams of its caller.
struct ResponseResources {
    _open: Option<Arc<OpenSession>>,
    _memory: Arc<Reservation>,
    _stream: Option<OpenStream>,
}

/// Streams that only wait for notices end when the server shuts down, and when their caller may not have them any more. The
/// stream of a call ends with its result, which then reports that; without its body the library would cancel the call.
fn complete(
    response: http::Response<BoxBody<Bytes, Infallible>>,
    server: &ServerState,
    head: &Head,
    watch: AccessWatch,
    held: ResponseResources,
) -> Response {
    const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
    let is_stream = response.headers().get(header::CONTENT_TYPE) == Some(&EVENTS);
    if !is_stream || head.handling == MethodHandler::Exchange {
        return response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                // Owned by the body.
                let _ = &held;
                frame
            }))
        });
    }
    let (ready, clock) = (server.ready.clone(), server.engine.clock().clone());
    let id = head.id.clone();
    let end = async move {
        tokio::select! {
            () = ready.closing() => None,
            end = watch.ended() => last_event(id, end, clock.now()),
        }
    };
    response.map(|body| {
        let open = (BodyDataStream::new(body), Box::pin(end), held);
        Body::from_stream(stream::unfold(Some(open), async |open| {
            let (mut pieces, mut end, held) = open?;
            tokio::select! {
                biased;
                last = &mut end => last.map(|last| (Ok(last), None)),
                piece = pieces.next() => piece.map(|piece| (piece, Some((pieces, end, held)))),
            }
        }))
    })
}

/// The last event of a stream that ends with the access of its caller. A stream that no message has opened has no place
/// for an error; the next request of its client is refused.
fn last_event(id: Option<Id>, end: StreamEnd, now: Timestamp) -> Option<Bytes> {
    match (end, id) {
        (StreamEnd::Expired, _) => Some(Bytes::from_static(sse::RETRY)),
        (StreamEnd::Revoked(error), Some(id)) => {
            Some(sse::error_event(&Envelope::Rpc(id), Dialect::V1, &error, now).into())
        }
        (StreamEnd::Revoked(_), None) => None,
    }
}

/// How long cancelled calls may take to end.
const CALLS_LIMIT: Duration = Duration::from_secs(3);

/// Serves all agents over a pair of byte streams, until the peer closes its side or `stop` is cancelled. The caller is
/// whoever holds the other end. Calls that are open when the peer closes its side have 5 seconds to end, a time of the
/// library; then they are cancelled, and those that are open at a stop at once.
pub(crate) async fn serve(
    server: Arc<ServerState>,
    host: HeaderValue,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> Result<(), McpError> {
    let changes = server.engine.catalog().changes();
    let transport = LineTransport::new(input, output, server.max_body_bytes, server.engine.clock().clone());
    let handler = SkillServer::new(Source::Local { server, host }, changes);
    let calls = handler.calls();
    let served = tokio::select! {
        served = serve_server(handler, transport) => served,
        () = stop.cancelled() => return Ok(()),
    };
    let running = match served {
        Ok(running) => running,
        // The peer has closed its side before the first message.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(McpError(error.to_string())),
    };
    let cancel = running.cancellation_token();
    let mut waiting = std::pin::pin!(running.waiting());
    tokio::select! {
        _ = &mut waiting => {}
        () = stop.cancelled() => {
            cancel.cancel();
            let _ = waiting.await;
        }
    }
    // The library has cancelled the calls that were open; their tasks are canceled before the engine stops.
    calls.close();
    let _ = tokio::time::timeout(CALLS_LIMIT, calls.wait()).await;
    Ok(())
}
