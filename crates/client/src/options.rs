//! Settings for all calls of a client.

use http::HeaderMap;
use protocol::Dialect;

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
}

impl ClientOptions {
    /// Replaces [`headers`](Self::headers).
    #[must_use]
    pub fn with_headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
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
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            headers: HeaderMap::new(),
            dialect: None,
            max_response_bytes: 64 * 1024 * 1024,
            max_event_bytes: 16 * 1024 * 1024,
        }
    }
}
