//! Credentials become a caller.
//!
//! No credential can be checked yet, so everybody is the anonymous principal of the default tenant; the
//! command line refuses to listen beyond loopback for that reason.

use engine::Scope;
use protocol::{Error, ErrorKind, error::in_short};

/// The tenant of requests that name none.
pub(crate) const DEFAULT_TENANT: &str = "default";

/// Refuses a tenant that is not here.
pub(crate) fn check_tenant(tenant: Option<&str>) -> Result<(), Error> {
    match tenant {
        None | Some("" | DEFAULT_TENANT) => Ok(()),
        Some(tenant) => {
            let shown = in_short(tenant);
            let text = format!("there is no tenant {shown:?} here; leave it out");
            Err(Error::new(ErrorKind::AgentDisabled, text))
        }
    }
}

/// The caller of a request to this agent.
pub(crate) fn anonymous(agent: &str) -> Scope {
    Scope::anonymous(DEFAULT_TENANT, agent)
}
