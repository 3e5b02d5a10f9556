//! A tenant: an isolated organisation, whose agents, tasks, keys and rates no other one sees. There is one today.

/// The id of the one tenant.
pub const DEFAULT_TENANT: &str = "default";

/// A tenant of this server; the default is that of requests that name none. What needs the tenant of a request gets it
/// from the endpoint that the route lookup has found.
#[derive(Debug, PartialEq, Eq)]
pub struct Tenant {
    id: String,
}

impl Default for Tenant {
    fn default() -> Self {
        Self { id: DEFAULT_TENANT.to_owned() }
    }
}

impl Tenant {
    /// As scopes and the store have it.
    pub fn id(&self) -> &str {
        &self.id
    }
}
