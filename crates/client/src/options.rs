//! Settings for all calls of a client.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue};
use protocol::{Dialect, TraceContext};

use url::Url;

use crate::{
    ClientTls, Error, Transport,
    exchange::uri,
    transport::{HttpTransport, RetryAfter},
};

/// Settings of a [`Client`](crate::Client).
///
/// ```
/// # use a2ad_client::ClientOptions;
/// # use http::{HeaderMap, HeaderValue};
/// # use protocol::Dialect;
/// let mut headers = HeaderMap::new();
/// headers.insert("authorization", HeaderValue::from_static("Bearer s3cret"));
/// let options = ClientOptions::default().with_headers(headers).with_dialect(Dialect::V03);
/// assert_eq!(options.dialect, Some(Dialect::V03));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Sent with every request, such as credentials. Never sent to another origin than the given URL's.
    pub headers: HeaderMap,
    /// Forces a dialect instead of the one the card prefers.
    pub dialect: Option<Dialect>,
    /// Maximum size of a response or a card. The default is 64 MiB.
    pub max_response_bytes: usize,
    /// Maximum size of one event of a stream. The default is 16 MiB.
    pub max_event_bytes: usize,
    /// Which servers are trusted, and the certificate of the client, which only the given URL's origin gets.
    pub tls: ClientTls,
    /// Sends all requests, to whichever URL. The default connects with [`tls`](Self::tls) through the proxies of the environment;
    /// another transport has TLS settings of its own.
    pub transport: Option<Arc<dyn Transport>>,
    /// How long a request is repeated that the server refuses for now, because it starts or by a rate limit, after the time
    /// that it names in `Retry-After`. The default is not at all.
    pub patience: Duration,
}

impl ClientOptions {
    /// Replaces [`headers`](Self::headers).
    #[must_use]
    pub fn with_headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
    }

    /// Adds the headers of a trace (W3C Trace Context), so that the calls belong to it. An agent passes on the span of its
    /// run, `Turn::trace_context`.
    #[must_use]
    pub fn with_trace_context(mut self, trace: &TraceContext) -> Self {
        let texts =
            [("traceparent", Some(trace.to_string())), ("tracestate", trace.state().map(str::to_owned))];
        for (name, text) in texts {
            // A valid state is printable ASCII, which a header can contain.
            if let Some(value) = text.and_then(|text| HeaderValue::try_from(text).ok()) {
                self.headers.insert(name, value);
            }
        }
        self
    }

    /// Replaces [`dialect`](Self::dialect); `None` uses the one the card prefers.
    #[must_use]
    pub fn with_dialect(self, dialect: impl Into<Option<Dialect>>) -> Self {
        Self { dialect: dialect.into(), ..self }
    }

    /// Replaces [`max_response_bytes`](Self::max_response_bytes).
    #[must_use]
    pub fn with_max_response_bytes(self, max_response_bytes: usize) -> Self {
        Self { max_response_bytes, ..self }
    }

    /// Replaces [`max_event_bytes`](Self::max_event_bytes).
    #[must_use]
    pub fn with_max_event_bytes(self, max_event_bytes: usize) -> Self {
        Self { max_event_bytes, ..self }
    }

    /// Replaces [`tls`](Self::tls).
    #[must_use]
    pub fn with_tls(self, tls: ClientTls) -> Self {
        Self { tls, ..self }
    }

    /// Replaces [`transport`](Self::transport).
    #[must_use]
    pub fn with_transport(self, transport: Arc<dyn Transport>) -> Self {
        Self { transport: Some(transport), ..self }
    }

    /// Replaces [`patience`](Self::patience).
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The transport to the URL that the caller gave.
    pub(crate) fn transport_to(&self, url: &Url) -> Result<Arc<dyn Transport>, Error> {
        self.transport_with(url, &self.tls)
    }

    /// The transport to a URL on another origin, which does not get the client's certificate.
    pub(crate) fn transport_to_other_origin(&self, url: &Url) -> Result<Arc<dyn Transport>, Error> {
        self.transport_with(url, &self.tls.without_certificate())
    }

    fn transport_with(&self, url: &Url, tls: &ClientTls) -> Result<Arc<dyn Transport>, Error> {
        let transport: Arc<dyn Transport> = match &self.transport {
            Some(transport) => Arc::clone(transport),
            None => Arc::new(HttpTransport::new(&uri(url)?, tls)?),
        };
        Ok(match self.patience {
            Duration::ZERO => transport,
            patience => Arc::new(RetryAfter { transport, patience }),
        })
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            headers: HeaderMap::new(),
            dialect: None,
            max_response_bytes: 64 * 1024 * 1024,
            max_event_bytes: 16 * 1024 * 1024,
            tls: ClientTls::default(),
            transport: None,
            patience: Duration::ZERO,
        }
    }
}
