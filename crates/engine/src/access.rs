//! Who may do what: tenants, scopes of callers, API keys, what one principal may have, and the switches of operators.

pub(crate) mod access_changes;
pub(crate) mod agent_switches;
pub(crate) mod api_keys;
pub(crate) mod principal_caps;
pub(crate) mod scope;
pub(crate) mod tenant;
