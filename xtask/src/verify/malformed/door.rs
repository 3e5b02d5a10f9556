//! What is refused before there is a method: other verbs, paths that lead nowhere, agents that are not there. It is
//! told as JSON-RPC tells it all the same.

use super::case::{AGENT_DISABLED, Echo, METHOD_NOT_FOUND, NOT_FOUND, Refusal};
use super::methods::Dialect;

/// A request line and what it must be answered with.
pub(crate) struct Knock {
    pub(crate) verb: &'static str,
    pub(crate) path: &'static str,
    pub(crate) version: &'static str,
    /// Nothing is wrong with it.
    pub(crate) body: &'static str,
    pub(crate) expected: Refusal,
}

const NOT_ALLOWED: u16 = 405;
const AGENT_UNKNOWN: i64 = -32011;

pub(crate) fn knocks() -> Vec<Knock> {
    let mut knocks = Vec::new();
    for dialect in [Dialect::Draft, Dialect::V03, Dialect::V1] {
        let body = match dialect {
            Dialect::V1 => r#"{"jsonrpc":"2.0","id":null,"method":"GetTask","params":{"id":"x"}}"#,
            _ => r#"{"jsonrpc":"2.0","id":null,"method":"tasks/get","params":{"id":"x"}}"#,
        };
        let knock = |verb, path, status, code| {
            let expected = Refusal { status, code, shape: dialect, field: None, id: Echo::Null };
            Knock { verb, path, version: dialect.version(), body, expected }
        };
        for verb in ["GET", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
            knocks.push(knock(verb, "/a2a/echo", NOT_ALLOWED, METHOD_NOT_FOUND));
        }
        for path in
            ["/nothing", "/a2a/echo/nothing", "/../../etc/passwd", "/a2a/echo/%2e%2e/%2e%2e", "/%00", "//"]
        {
            knocks.push(knock("POST", path, NOT_FOUND, METHOD_NOT_FOUND));
        }
        let code = if dialect == Dialect::V1 { AGENT_DISABLED } else { AGENT_UNKNOWN };
        for agent in
            ["/a2a/nobody", "/a2a/%2e%2e", "/a2a/%ff", "/a2a/%00", "/a2a/%0d%0aX:%20y", "/a2a/'%20OR%201=1"]
        {
            knocks.push(knock("POST", agent, NOT_FOUND, code));
        }
    }
    knocks
}
