//! Requests that are refused before a method is found: wrong HTTP methods, unknown paths, unknown agents. The error
//! has the JSON-RPC format nevertheless.

use super::case::{Case, ExpectedId, ValidOutcome};
use super::errors::{Dialect, METHOD_NOT_FOUND, NO_AGENT};
use super::methods;

const NOT_ALLOWED: u16 = 405;

pub(crate) fn cases() -> Vec<Case> {
    [Dialect::Draft, Dialect::V03, Dialect::V1].into_iter().flat_map(cases_of).collect()
}

fn cases_of(dialect: Dialect) -> Vec<Case> {
    let method = if dialect == Dialect::V1 { "GetTask" } else { "tasks/get" };
    let body = format!(r#"{{"jsonrpc":"2.0","id":null,"method":"{method}","params":{{"id":"x"}}}}"#);
    let good = methods::good(dialect, ValidOutcome::Result, body);
    let refuse = |verb, path: &str, http, error| {
        let name = format!("{verb} {path} of {}", dialect.version());
        let case = good.refused(name, error).with_verb(verb).to(path).with_http(http);
        case.with(|refusal| refusal.id = ExpectedId::Null)
    };
    let verbs = ["GET", "PUT", "DELETE", "PATCH", "TRACE", "BREW"];
    let verbs = verbs.map(|verb| refuse(verb, "/a2a/echo", NOT_ALLOWED, METHOD_NOT_FOUND));
    let paths =
        ["/nothing", "/a2a/echo/nothing", "/../../etc/passwd", "/a2a/echo/%2e%2e/%2e%2e", "/%00", "//"];
    let paths = paths.map(|path| refuse("POST", path, METHOD_NOT_FOUND.http, METHOD_NOT_FOUND));
    let agents = ["nobody", "%2e%2e", "%ff", "%00", "%0d%0aX:%20y", "'%20OR%201=1"];
    let agents = agents.map(|agent| refuse("POST", &format!("/a2a/{agent}"), NO_AGENT.http, NO_AGENT));
    [verbs, paths, agents].concat()
}
