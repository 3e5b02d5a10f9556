//! Settings for all calls of a client.

use http::HeaderMap;
use protocol::Dialect;

/// Settings of a [`Client`](crate::Client).
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Sent with every request, such as credentials. Never sent to another origin than the given URL's.
    pub headers: HeaderMap,
    /// Forces a dialect instead of the one the card prefers.
    pub dialect: Option<Dialect>,
    /// Maximum size of a response or a card.
    pub max_response_bytes: usize,
    /// Maximum size of one event of a stream.
    pub max_event_bytes: usize,
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
