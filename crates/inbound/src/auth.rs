//! Authentication: turns a request's credential into the caller's scope.
//!
//! No credential can be checked yet, so every caller is the anonymous principal of the default tenant. For that reason
//! the command line refuses to listen on addresses other than loopback.

use engine::Scope;
use protocol::{Error, ErrorKind, error::excerpt};

/// Used where a request names no tenant.
pub(crate) const DEFAULT_TENANT: &str = "default";

/// Rejects every tenant but the default one.
pub(crate) fn check_tenant(tenant: Option<&str>) -> Result<(), Error> {
    match tenant {
        None | Some("" | DEFAULT_TENANT) => Ok(()),
        Some(tenant) => {
            let shown = excerpt(tenant);
            let text = format!("unknown tenant {shown:?}; omit it");
            Err(Error::new(ErrorKind::AgentDisabled, text))
        }
    }
}

/// The scope of a caller without a credential.
pub(crate) fn anonymous(agent: &str) -> Scope {
    Scope::anonymous(DEFAULT_TENANT, agent)
}
