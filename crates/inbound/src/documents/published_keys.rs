//! `/.well-known/jwks.json`: the public keys with which receivers of webhooks verify that this server has sent them
//! (RFC 7517). Who has the keys implements [`PublishKeys`]; without one, nothing is there.

use std::{fmt::Debug, sync::Arc};

use axum::response::Response;
use bytes::Bytes;
use engine::CardDocument;
use futures_util::future::BoxFuture;
use http::{HeaderValue, StatusCode, header};
use protocol::{Dialect, Error, ErrorKind};

use crate::{
    addresses::cross_origin::ANY_ORIGIN,
    documents::card::{CachePolicy, CacheScope, document_of},
    request::exchange::Exchange,
    response::refusal::{self, Refusal},
};

/// The media type of a key set.
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/jwk-set+json");

/// Has the public keys of the server.
pub trait PublishKeys: Debug + Send + Sync + 'static {
    /// The key set, one JSON document. An error is for the log: why there is none now.
    fn jwks(&self) -> BoxFuture<'static, Result<Bytes, String>>;
}

/// Handles a request for the keys.
pub(crate) async fn handle(exchange: Exchange) -> Response {
    let Some(keys) = exchange.server.published_keys.as_ref().map(Arc::clone) else {
        return refusal::respond(exchange, &Refusal::NotFound);
    };
    let found = match keys.jwks().await {
        Ok(keys) => respond(&exchange, &document_of(keys.to_vec())),
        Err(reason) => {
            tracing::warn!(reason, "the public keys cannot be served");
            Err(Error::new(
                ErrorKind::Unavailable,
                "the keys of this server are not available; try again later",
            ))
        }
    };
    found.unwrap_or_else(|error| {
        let status = StatusCode::from_u16(error.kind.row().http).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        refusal::error_response(&exchange, Dialect::V1, status, &error)
    })
}

fn respond(exchange: &Exchange, document: &CardDocument) -> Result<Response, Error> {
    let caching = CachePolicy {
        // It has no URL of the server.
        scope: CacheScope::Public,
        max_age: exchange.server.card.max_age,
        since: exchange.server.started_at,
        memory: exchange.server.engine.memory(),
    };
    let mut response = caching.respond(document, &exchange.head.headers)?;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, MEDIA_TYPE);
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
    Ok(response)
}
