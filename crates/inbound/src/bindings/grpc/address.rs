//! The agent a call addresses. A gRPC path cannot name one, so the request's `tenant` is a tenant, or a tenant and one
//! of its agents as in `default/echo`; the metadata `a2a-agent` is an agent, with or without its tenant.

use engine::Tenant;
use http::{HeaderMap, HeaderName};
use protocol::{Error, Violation};

use crate::request::endpoint::check_tenant;

const NAME: HeaderName = HeaderName::from_static("a2a-agent");

/// The agent a call names; `None` is the default agent.
pub(super) fn agent(
    tenant: &Tenant,
    headers: &HeaderMap,
    in_body: Option<&str>,
) -> Result<Option<String>, Error> {
    let in_body = match in_body {
        None => None,
        Some(whole) => {
            let (named, agent) = whole.split_once('/').unwrap_or((whole, ""));
            known(tenant, named, agent)?
        }
    };
    let metadata = headers.get(&NAME).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let in_metadata = match metadata.as_deref().map(str::trim) {
        None => None,
        Some(whole) => {
            let (named, agent) = whole.split_once('/').unwrap_or(("", whole));
            known(tenant, named, agent)?
        }
    };
    match (in_body, in_metadata) {
        (Some(one), Some(other)) if one != other => {
            let problem = format!(
                "names the agent {one:?}, but the metadata a2a-agent names {other:?}; name one agent"
            );
            Err(Violation::new("tenant", problem).into())
        }
        (one, other) => Ok(one.or(other).map(str::to_owned)),
    }
}

/// The tenant value by which a card names an agent for this binding.
pub(super) fn of(tenant: &Tenant, agent: &str) -> String {
    format!("{}/{agent}", tenant.id())
}

/// Checks the tenant and returns the agent; an empty name is the default agent.
fn known<'a>(tenant: &Tenant, named: &str, agent: &'a str) -> Result<Option<&'a str>, Error> {
    check_tenant(tenant, Some(named)).map_err(|error| {
        let message = format!("{}, or name an agent as in \"{}/echo\"", error.message, tenant.id());
        Error { message, ..error }
    })?;
    Ok(Some(agent).filter(|agent| !agent.is_empty()))
}
