//! The transport of a client that has been given none: a pool of connections over hyper.

use std::{
    error::Error,
    fmt::{self, Debug, Formatter},
};

use bytes::Bytes;
use h2::Reason;
use http::{HeaderValue, Uri, header, uri::Scheme};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::{
        legacy::{self, Client},
        proxy::matcher::Intercept,
    },
    rt::{TokioExecutor, TokioTimer},
};

use super::{
    Request, Response, ResponseFuture, Transport, TransportError, connect::Connector, origin, proxy,
};
use crate::ClientTls;

/// How often a request is sent again that the server has not acted on.
const REPEATS: usize = 2;

/// The connections to one origin: HTTP/1.1, or HTTP/2 where a server with TLS selects it.
pub(crate) struct HttpTransport {
    pool: Client<Connector, Full<Bytes>>,
    /// For a proxy that forwards the requests. One that opens a tunnel gets them with the request for it.
    proxy_credentials: Option<HeaderValue>,
}

impl HttpTransport {
    /// A transport for the origin of this URL. It opens no connection before the first request.
    #[expect(clippy::disallowed_methods, reason = "the one place of this crate that builds an HTTP client")]
    pub(crate) fn new(uri: &Uri, tls: &ClientTls) -> Result<Self, TransportError> {
        let proxy = proxy::from_env(uri);
        let proxy_credentials = proxy.as_ref().filter(|_| uri.scheme() == Some(&Scheme::HTTP));
        let proxy_credentials = proxy_credentials.and_then(Intercept::basic_auth).cloned();
        let connector = Connector::new(uri, tls, proxy)
            .map_err(|error| TransportError::Unreachable { origin: origin(uri), source: error.into() })?;
        let mut pool = Client::builder(TokioExecutor::new());
        pool.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
        Ok(Self { pool: pool.build(connector), proxy_credentials })
    }

    async fn send_again_if_refused(&self, request: Request) -> Result<Response, TransportError> {
        let origin = origin(request.uri());
        for _ in 0..REPEATS {
            match self.pool.request(request.clone()).await {
                Err(error) if is_refused(&error) => {}
                result => return received(result, origin),
            }
        }
        received(self.pool.request(request).await, origin)
    }
}

impl Transport for HttpTransport {
    fn send(&self, mut request: Request) -> ResponseFuture<'_> {
        if let Some(credentials) = &self.proxy_credentials {
            request.headers_mut().entry(header::PROXY_AUTHORIZATION).or_insert(credentials.clone());
        }
        Box::pin(self.send_again_if_refused(request))
    }
}

impl Debug for HttpTransport {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("HttpTransport").finish_non_exhaustive()
    }
}

fn received(
    result: Result<http::Response<Incoming>, legacy::Error>,
    origin: String,
) -> Result<Response, TransportError> {
    match result {
        Ok(response) => Ok(response.map(|body| {
            let lost = move |error: hyper::Error| TransportError::Lost {
                origin: origin.clone(),
                source: error.into(),
            };
            body.map_err(lost).boxed()
        })),
        Err(error) if error.is_connect() => Err(TransportError::Unreachable { origin, source: error.into() }),
        Err(error) => Err(TransportError::Lost { origin, source: error.into() }),
    }
}

/// Whether an HTTP/2 server says that it has not acted on the request, because it shuts down or has too many.
fn is_refused(error: &legacy::Error) -> bool {
    let cause = error.source().and_then(Error::source);
    cause.and_then(|cause| cause.downcast_ref::<h2::Error>()).is_some_and(|error| {
        error.is_remote()
            && match error.reason() {
                Some(Reason::NO_ERROR) => error.is_go_away(),
                Some(Reason::REFUSED_STREAM) => error.is_reset(),
                _ => false,
            }
    })
}
