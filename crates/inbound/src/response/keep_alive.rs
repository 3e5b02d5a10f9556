//! Replies that take long: a response to a blocking send that begins before the reply is known.
//!
//! HTTP clients give up when a response is silent for longer than their read timeout, often 5 s. JSON may begin with
//! spaces, so after each interval of `server.keep_alive` one is sent, and then the reply. Only a send that waits for longer
//! than the first interval is answered so; any other response has its status and its length.
//!
//! With the first space the status is 200, and the headers are those that are known when the message is recorded. A later
//! error is in the body over JSON-RPC. HTTP+JSON has no place for it: a shutdown is answered with the task in its current
//! state, and after any other error the body ends incomplete, so that no client takes it for a reply.

use std::io;

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{CallResponse, PendingReply};
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use http::HeaderValue;
use http_body_util::BodyExt as _;
use protocol::Dialect;
use tokio::time::timeout;

use crate::{
    access::audit,
    request::exchange::{Exchange, set_activated_header},
    response::respond::{self, Envelope},
};

/// Whitespace, which every JSON parser skips.
const SPACE: Bytes = Bytes::from_static(b" ");

/// Responds with a space now and after each interval, and then with the reply.
pub(crate) fn respond(
    exchange: Exchange,
    envelope: Envelope,
    dialect: Dialect,
    pending: PendingReply,
) -> Response {
    let interval = exchange.server.keep_alive;
    let mut response = respond::response_of(envelope.media_type(), Body::empty());
    respond::set_dialect_header(&mut response, dialect, exchange.endpoint.profile());
    // Proxies that collect responses would hold the spaces back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    let response = set_activated_header(response, &exchange.endpoint, dialect, &exchange.head.headers);
    let reply: BoxFuture<'static, io::Result<Bytes>> = Box::pin(reply(exchange, envelope, dialect, pending));
    let first = stream::iter([Ok(SPACE)]);
    // `None` after the reply.
    let rest = stream::unfold(Some(reply), move |reply| async move {
        let mut reply = reply?;
        match timeout(interval, &mut reply).await {
            Err(_) => Some((Ok(SPACE), Some(reply))),
            Ok(encoded) => Some((encoded, None)),
        }
    });
    response.map(|_| Body::from_stream(first.chain(rest)))
}

/// The encoded reply; an error if the body has to end incomplete.
async fn reply(
    mut exchange: Exchange,
    envelope: Envelope,
    dialect: Dialect,
    pending: PendingReply,
) -> io::Result<Bytes> {
    let has_errors = matches!(envelope, Envelope::Rpc(_));
    let pending = if has_errors { pending } else { pending.with_task_at_shutdown() };
    let watch = exchange.sender.watch(&exchange.server, &exchange.endpoint);
    let result = tokio::select! {
        biased;
        reply = exchange.server.engine.reply(pending) => {
            reply.map_err(|error| respond::to_caller_error(error, exchange.request_id))
        }
        error = watch.revoked() => Err(error),
    };
    let mut result = result.map(CallResponse::Reply);
    if let (Ok(answer), Some(additions)) = (&mut result, &exchange.reply_additions) {
        additions.add_to(answer);
    }
    exchange.log_entry.set_result(&result);
    if let Err(error) = &result {
        audit::refused_call(&exchange, error.kind);
    }
    let response = exchange.respond(envelope, dialect, result);
    if !has_errors && !response.status().is_success() {
        return Err(io::Error::other("the call has failed after its response had begun"));
    }
    let body = response.into_body().collect().await.map_err(io::Error::other)?;
    Ok(body.to_bytes())
}
