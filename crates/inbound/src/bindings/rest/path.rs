//! Resolves a path of the HTTP+JSON binding to an agent and a resource.

use std::borrow::Cow;

use protocol::rest::{ResourcePath, percent_decode};

#[derive(Debug, PartialEq)]
pub(crate) struct ResolvedPath<'a> {
    /// The agent that the path names; `None` is the default agent.
    pub(crate) agent: Option<Cow<'a, str>>,
    pub(crate) place: ResourcePath<'a>,
}

/// Prefix of every agent's paths; the default agent is served directly below it too.
const AGENTS: &str = "/a2a";

/// Names that are used or reserved at the root and below [`AGENTS`]: neither tenants nor agents may have them.
const RESERVED: [&str; 6] = ["rpc", "mcp", "run", "_process-task", "approvals", ".well-known"];

/// Names that are used or reserved at the root only: no tenant may have them.
const RESERVED_AT_ROOT: [&str; 8] =
    ["a2a", "_a2a", "_agent-native", "api", "console", "healthz", "readyz", "metrics"];

/// Whether a name is used or reserved below [`AGENTS`] for something other than an agent.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Resolves a path; `None` if it is not one of this binding.
pub(crate) fn resolve_path(path: &str) -> Option<ResolvedPath<'_>> {
    let not_reserved = |name: &str| !RESERVED.contains(&name) && !RESERVED_AT_ROOT.contains(&name);
    let tenant_is_allowed = |place: &ResourcePath<'_>| place.tenant.is_none_or(not_reserved);
    let Some(below) = path.strip_prefix(AGENTS).filter(|below| below.starts_with('/')) else {
        let place = ResourcePath::parse(path).filter(tenant_is_allowed)?;
        return Some(ResolvedPath { agent: None, place });
    };
    if let Some(place) = ResourcePath::parse(below).filter(|place| place.tenant.is_none()) {
        return Some(ResolvedPath { agent: None, place });
    }
    let end = below[1..].find('/')? + 1;
    let place = ResourcePath::parse(&below[end..]).filter(tenant_is_allowed)?;
    // An agent name that is not UTF-8 becomes empty, which matches no agent.
    let agent = percent_decode(&below[1..end]).unwrap_or_default();
    Some(ResolvedPath { agent: Some(agent), place })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(path: &str) -> Option<(Option<String>, Option<&str>, Option<&str>)> {
        resolve_path(path)
            .map(|ResolvedPath { agent, place }| (agent.map(Cow::into_owned), place.tenant, place.task))
    }

    #[test]
    fn agent_follows_a2a_prefix_and_tenant_follows_agent() {
        let agent = |name: &str| Some(name.to_owned());
        assert_eq!(resolved("/tasks/t"), Some((None, None, Some("t"))));
        assert_eq!(resolved("/acme/tasks/t"), Some((None, Some("acme"), Some("t"))));
        assert_eq!(resolved("/a2a/tasks/t"), Some((None, None, Some("t"))));
        assert_eq!(resolved("/a2a/v1/tasks/t"), Some((None, None, Some("t"))));
        assert_eq!(resolved("/a2a/echo/tasks/t"), Some((agent("echo"), None, Some("t"))));
        assert_eq!(resolved("/a2a/echo/v1/tasks/t"), Some((agent("echo"), None, Some("t"))));
        assert_eq!(resolved("/a2a/echo/acme/tasks/t"), Some((agent("echo"), Some("acme"), Some("t"))));
        assert_eq!(resolved("/a2a/%65cho/message:send"), Some((agent("echo"), None, None)));
        assert_eq!(resolved("/a2a/%ff/message:send"), Some((agent(""), None, None)));
    }

    #[test]
    fn reserved_names_are_not_tenants() {
        for path in ["/", "/a2a", "/a2a/", "/a2a/echo", "/a2a/echo/", "/a2ab", "/a2a/echo/x/y/tasks"] {
            assert_eq!(resolved(path), None, "{path}");
        }
        for name in RESERVED.into_iter().chain(RESERVED_AT_ROOT) {
            assert_eq!(resolved(&format!("/a2a/echo/{name}/tasks")), None, "{name}");
            assert!(name == "a2a" || resolved(&format!("/{name}/tasks")).is_none(), "{name}");
        }
    }
}
