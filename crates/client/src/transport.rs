//! How requests reach an agent. A [`Client`](crate::Client) decides what is sent; a [`Transport`] has the connections.
//!
//! The default is HTTP/1.1 or HTTP/2 through the proxies of the environment (`http.rs`). A program that restricts where its
//! requests go passes a transport of its own with [`ClientOptions::with_transport`](crate::ClientOptions::with_transport).

mod connect;
mod http;
mod proxy;
mod retry_after;

use std::{error::Error, fmt::Debug, pin::Pin};

use ::http::Uri;
use bytes::Bytes;
use http_body_util::{Full, combinators::BoxBody};

pub(crate) use self::{http::HttpTransport, retry_after::RetryAfter};

/// A request with an absolute URL. With the version HTTP/2, a connection that has another version is an error.
pub type Request = ::http::Request<Full<Bytes>>;
/// The head of a response, and its body as it arrives.
pub type Response = ::http::Response<Body>;
/// The body of a response, with its trailers.
pub type Body = BoxBody<Bytes, TransportError>;
/// A response that has not arrived.
pub type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Result<Response, TransportError>> + Send + 'a>>;

type BoxError = Box<dyn Error + Send + Sync>;

/// Sends requests over connections that it opens and keeps.
pub trait Transport: Debug + Send + Sync + 'static {
    /// Sends a request; the future is ready when the head of the response has arrived. Redirects are responses.
    ///
    /// Opening a connection has a timeout, and nothing else has one. Dropping the future or the body cancels the request.
    fn send(&self, request: Request) -> ResponseFuture<'_>;
}

/// Why a request has no response, or only the beginning of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The transport sends no requests to this URL. Nothing was sent.
    #[error("requests to {origin} are not allowed")]
    Forbidden {
        /// Scheme, host and port of the URL.
        origin: String,
        /// Why not.
        source: BoxError,
    },
    /// No connection could be opened. Nothing was sent.
    #[error("cannot connect to {origin}")]
    Unreachable {
        /// Scheme, host and port of the URL.
        origin: String,
        /// Why not.
        source: BoxError,
    },
    /// The connection was lost. The agent may have received the request.
    #[error("the connection to {origin} failed")]
    Lost {
        /// Scheme, host and port of the URL.
        origin: String,
        /// How it was lost.
        source: BoxError,
    },
}

/// Scheme, host and port of a URL, for [`TransportError`].
pub fn origin(uri: &Uri) -> String {
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    format!("{}://{authority}", uri.scheme_str().unwrap_or_default())
}
