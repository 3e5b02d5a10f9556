//! Ownership: which caller owns which tasks.

use std::sync::Arc;

/// The principal of callers without a credential.
const ANONYMOUS: &str = "anonymous";

/// The owner of tasks, contexts, idempotency keys and page tokens. A parameter of every query: what is
/// outside a caller's scope does not exist for it. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope(Arc<ScopeParts>);

/// The four parts of a scope. All are always set: an anonymous caller has the principal `anonymous`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScopeParts {
    /// Isolated organisation.
    pub tenant: String,
    /// Owner of the credential.
    pub principal: String,
    /// Id of the called agent.
    pub agent: String,
    /// End user on whose behalf the caller acts; empty when end users are not distinguished.
    pub end_user: String,
}

impl Scope {
    /// A scope of these parts.
    pub fn new(parts: ScopeParts) -> Self {
        Self(Arc::new(parts))
    }

    /// The scope shared by all callers without a credential, per agent and tenant.
    pub fn anonymous(tenant: &str, agent: &str) -> Self {
        Self::new(ScopeParts {
            tenant: tenant.into(),
            principal: ANONYMOUS.into(),
            agent: agent.into(),
            end_user: String::new(),
        })
    }

    /// Whether its callers have no credential.
    pub fn is_anonymous(&self) -> bool {
        self.0.principal == ANONYMOUS
    }

    /// All four parts.
    pub fn parts(&self) -> &ScopeParts {
        &self.0
    }

    /// Isolated organisation.
    pub fn tenant(&self) -> &str {
        &self.0.tenant
    }

    /// Id of the called agent.
    pub fn agent(&self) -> &str {
        &self.0.agent
    }
}
