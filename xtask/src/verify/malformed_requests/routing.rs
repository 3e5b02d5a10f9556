//! Requests that are refused before a method is found: wrong HTTP methods, unknown paths, unknown agents. The error
//! has the JSON-RPC format nevertheless.

use super::case::{AGENT_DISABLED, ExpectedId, METHOD_NOT_FOUND, NOT_FOUND, Refusal};
use super::methods::Dialect;

/// A request line and the expected response.
pub(crate) struct RoutingCase {
    pub(crate) verb: &'static str,
    pub(crate) path: &'static str,
    pub(crate) version: &'static str,
    /// Always a valid body.
    pub(crate) body: &'static str,
    pub(crate) expected: Refusal,
}

const NOT_ALLOWED: u16 = 405;
const AGENT_UNKNOWN: i64 = -32011;

pub(crate) fn cases() -> Vec<RoutingCase> {
    let mut cases = Vec::new();
    for dialect in [Dialect::Draft, Dialect::V03, Dialect::V1] {
        let body = match dialect {
            Dialect::V1 => r#"{"jsonrpc":"2.0","id":null,"method":"GetTask","params":{"id":"x"}}"#,
            _ => r#"{"jsonrpc":"2.0","id":null,"method":"tasks/get","params":{"id":"x"}}"#,
        };
        let case = |verb, path, status, code| {
            let expected = Refusal { status, code, shape: dialect, field: None, id: ExpectedId::Null };
            RoutingCase { verb, path, version: dialect.version(), body, expected }
        };
        for verb in ["GET", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
            cases.push(case(verb, "/a2a/echo", NOT_ALLOWED, METHOD_NOT_FOUND));
        }
        for path in
            ["/nothing", "/a2a/echo/nothing", "/../../etc/passwd", "/a2a/echo/%2e%2e/%2e%2e", "/%00", "//"]
        {
            cases.push(case("POST", path, NOT_FOUND, METHOD_NOT_FOUND));
        }
        let code = if dialect == Dialect::V1 { AGENT_DISABLED } else { AGENT_UNKNOWN };
        for agent in
            ["/a2a/nobody", "/a2a/%2e%2e", "/a2a/%ff", "/a2a/%00", "/a2a/%0d%0aX:%20y", "/a2a/'%20OR%201=1"]
        {
            cases.push(case("POST", agent, NOT_FOUND, code));
        }
    }
    cases
}
