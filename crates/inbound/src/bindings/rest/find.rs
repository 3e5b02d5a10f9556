//! Which agent a path means, and what is there.

use std::borrow::Cow;

use protocol::rest::{Place, percent_decode};

/// Where a path leads.
#[derive(Debug, PartialEq)]
pub(crate) struct Found<'a> {
    /// The agent it names; else the default one is meant.
    pub(crate) agent: Option<Cow<'a, str>>,
    pub(crate) place: Place<'a>,
}

/// Below this is each agent under its name, and the default agent too.
const AGENTS: &str = "/a2a";

/// What is at the root and below [`AGENTS`], or will be: no tenants and no agents.
const TAKEN: [&str; 6] = ["rpc", "mcp", "run", "_process-task", "approvals", ".well-known"];

/// What is at the root only, or will be: no tenants.
const TAKEN_AT_ROOT: [&str; 8] =
    ["a2a", "_a2a", "_agent-native", "api", "console", "healthz", "readyz", "metrics"];

/// Whether something else than an agent is at this name below [`AGENTS`], or will be.
pub(crate) fn is_taken(name: &str) -> bool {
    TAKEN.contains(&name)
}

/// Where a path of HTTP+JSON leads; `None` where it is none.
pub(crate) fn find(path: &str) -> Option<Found<'_>> {
    let is_free = |name: &str| !TAKEN.contains(&name) && !TAKEN_AT_ROOT.contains(&name);
    let tenant_may_be = |place: &Place<'_>| place.tenant.is_none_or(is_free);
    let Some(below) = path.strip_prefix(AGENTS).filter(|below| below.starts_with('/')) else {
        let place = Place::parse(path).filter(tenant_may_be)?;
        return Some(Found { agent: None, place });
    };
    if let Some(place) = Place::parse(below).filter(|place| place.tenant.is_none()) {
        return Some(Found { agent: None, place });
    }
    let end = below[1..].find('/')? + 1;
    let place = Place::parse(&below[end..]).filter(tenant_may_be)?;
    // What is no text names no agent there is.
    let agent = percent_decode(&below[1..end]).unwrap_or_default();
    Some(Found { agent: Some(agent), place })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str) -> Option<(Option<String>, Option<&str>, Option<&str>)> {
        find(path).map(|Found { agent, place }| (agent.map(Cow::into_owned), place.tenant, place.task))
    }

    #[test]
    fn an_agent_is_named_below_a2a_and_a_tenant_after_it() {
        let agent = |name: &str| Some(name.to_owned());
        assert_eq!(found("/tasks/t"), Some((None, None, Some("t"))));
        assert_eq!(found("/acme/tasks/t"), Some((None, Some("acme"), Some("t"))));
        assert_eq!(found("/a2a/tasks/t"), Some((None, None, Some("t"))));
        assert_eq!(found("/a2a/v1/tasks/t"), Some((None, None, Some("t"))));
        assert_eq!(found("/a2a/echo/tasks/t"), Some((agent("echo"), None, Some("t"))));
        assert_eq!(found("/a2a/echo/v1/tasks/t"), Some((agent("echo"), None, Some("t"))));
        assert_eq!(found("/a2a/echo/acme/tasks/t"), Some((agent("echo"), Some("acme"), Some("t"))));
        assert_eq!(found("/a2a/%65cho/message:send"), Some((agent("echo"), None, None)));
        assert_eq!(found("/a2a/%ff/message:send"), Some((agent(""), None, None)));
    }

    #[test]
    fn what_is_something_else_is_no_tenant() {
        for path in ["/", "/a2a", "/a2a/", "/a2a/echo", "/a2a/echo/", "/a2ab", "/a2a/echo/x/y/tasks"] {
            assert_eq!(found(path), None, "{path}");
        }
        for name in TAKEN.into_iter().chain(TAKEN_AT_ROOT) {
            assert_eq!(found(&format!("/a2a/echo/{name}/tasks")), None, "{name}");
            assert!(name == "a2a" || found(&format!("/{name}/tasks")).is_none(), "{name}");
        }
    }
}
