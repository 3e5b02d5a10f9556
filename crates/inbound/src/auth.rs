//! Credentials become a caller.
//!
//! No credential can be checked yet, so everybody is the anonymous principal of the default tenant; the
//! command line refuses to listen beyond loopback for that reason.

use engine::Scope;

/// The tenant of requests that name none.
const DEFAULT_TENANT: &str = "default";

/// The caller of a request to this agent.
pub(crate) fn anonymous(agent: &str) -> Scope {
    Scope::anonymous(DEFAULT_TENANT, agent)
}
