//! What holds for every call of a client.

use http::HeaderMap;
use protocol::Dialect;

/// How an agent is called.
#[derive(Clone, Debug)]
pub struct Options {
    /// Goes with every request, such as credentials. Never sent to another origin than the one that was named.
    pub headers: HeaderMap,
    /// What to speak, whatever the card prefers.
    pub dialect: Option<Dialect>,
    /// How large an answer or a card may be.
    pub max_answer_bytes: usize,
    /// How large one event of a stream may be.
    pub max_event_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            headers: HeaderMap::new(),
            dialect: None,
            max_answer_bytes: 64 * 1024 * 1024,
            max_event_bytes: 16 * 1024 * 1024,
        }
    }
}
