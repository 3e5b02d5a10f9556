//! One HTTP exchange: the only place that knows how an agent is dialled.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri, uri::Scheme};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

use crate::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A pool of connections.
pub(crate) struct Transport(legacy::Client<HttpConnector, Full<Bytes>>);

impl Transport {
    pub(crate) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        Self(builder.pool_timer(TokioTimer::new()).build(connector))
    }

    /// Sends a request and returns as soon as the head of the answer is there.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Error> {
        self.0.request(request).await.map_err(Error::transport)
    }
}

/// Reads a URL that can be dialled.
pub(crate) fn parse_url(url: &str) -> Result<Uri, Error> {
    let refuse = |problem| Error::Url { url: url.to_owned(), problem };
    let uri: Uri = url.parse().map_err(|_| refuse("it is not a URL"))?;
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => Ok(uri),
        Some(scheme) if *scheme == Scheme::HTTPS => Err(refuse("this client has no TLS yet, use http")),
        Some(_) => Err(refuse("its scheme is not http")),
        None => Err(refuse("it is not absolute, begin it with http://")),
    }
}

/// Reads a body to its end, unless that is too far.
pub(crate) async fn read_body(body: Incoming, limit_bytes: usize) -> Result<Bytes, Error> {
    match Limited::new(body, limit_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::TooLarge { limit_bytes }),
        Err(error) => Err(Error::transport(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_cannot_be_dialled_says_why() {
        let cases = [
            ("https://agent.example/", "no TLS"),
            ("HTTPS://agent.example/", "no TLS"),
            ("ftp://agent.example/", "not http"),
            ("agent.example:80", "not absolute"),
            ("/rpc", "not absolute"),
            ("", "not a URL"),
            ("http://", "not a URL"),
            ("http://a b/", "not a URL"),
        ];
        for (url, expected) in cases {
            let problem = parse_url(url).unwrap_err().to_string();
            assert!(problem.contains(expected), "{url}: {problem}");
        }
        assert_eq!(parse_url("http://127.0.0.1:8080/a?b=c").unwrap(), "http://127.0.0.1:8080/a?b=c");
    }
}
