//! The one way out of the process: every HTTP request that a backend sends goes through [`Dialer`].

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use ipnet::IpNet;

/// Who chose the address of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlSource {
    /// The operator, in the configuration: it may be local.
    Operator,
    /// A peer, in a message or document: only public addresses, and what `outbound.allow` lists.
    Peer,
}

/// Which addresses a peer may choose.
#[derive(Clone, Debug, Default)]
pub struct DialPolicy {
    /// Addresses that are allowed although they are not public. The rules for ports and for names such as `localhost`
    /// do not apply to them either.
    pub allow: Vec<IpNet>,
    /// Whether `http` is allowed beside `https`.
    pub allow_http: bool,
    /// The addresses on which this server listens: a peer may not choose them.
    pub own_addresses: Vec<SocketAddr>,
}

/// Sends requests. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Dialer {
    client: Client<HttpConnector, Full<Bytes>>,
}

/// Builds a [`Dialer`].
#[derive(Default)]
pub struct Builder {
    policy: DialPolicy,
}

/// Why a request has no response. The text is for a client: it contains no address; the causes are logged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The URL or its address is not allowed. Nothing was sent.
    #[error("this address is not allowed")]
    Forbidden,
    /// No connection could be opened. Nothing was sent.
    #[error("the server cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The connection was lost before the response. The server may have received the request.
    #[error("the server closed the connection without a response")]
    Lost(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Dialer {
    /// A dialler with the default policy.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A dialler with other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Sends a request with an absolute URL, and returns the head of the response and its body, unread. Redirects are
    /// not followed. There is no timeout but that for opening the connection. Dropping the future or the body closes
    /// the connection (HTTP/1.1) or resets the stream (HTTP/2).
    ///
    /// # Errors
    ///
    /// See [`DialError`]. A response with an error status is not an error.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        _source: UrlSource,
    ) -> Result<Response<Incoming>, DialError> {
        self.client.request(request).await.map_err(|error| {
            if error.is_connect() {
                DialError::Unreachable(error.into())
            } else {
                DialError::Lost(error.into())
            }
        })
    }
}

impl Default for Dialer {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// Which addresses a peer may choose.
    #[must_use]
    pub fn policy(self, policy: DialPolicy) -> Self {
        Self { policy }
    }

    /// The dialler. It opens no connection before the first request.
    pub fn build(self) -> Dialer {
        let Self { policy: _ } = self;
        Dialer { client: Client::builder(TokioExecutor::new()).build_http() }
    }
}
