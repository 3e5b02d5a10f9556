//! Who asks, and what is therefore theirs.

use std::sync::Arc;

/// Owns tasks, contexts, keys and page tokens. A parameter of every query: what lies outside a caller's scope
/// does not exist for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope(Arc<ScopeParts>);

/// The four parts of a scope. None is ever missing: an anonymous caller is a principal of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScopeParts {
    /// The organisation.
    pub tenant: String,
    /// The credential's owner.
    pub principal: String,
    /// The agent that is asked.
    pub agent: String,
    /// The person behind the caller; empty when that is off.
    pub end_user: String,
}

impl Scope {
    /// A scope of these parts.
    pub fn new(parts: ScopeParts) -> Self {
        Self(Arc::new(parts))
    }

    /// The scope all callers without a credential share on one agent of one tenant.
    pub fn anonymous(tenant: &str, agent: &str) -> Self {
        Self::new(ScopeParts {
            tenant: tenant.into(),
            principal: "anonymous".into(),
            agent: agent.into(),
            end_user: String::new(),
        })
    }

    /// The parts.
    pub fn parts(&self) -> &ScopeParts {
        &self.0
    }

    /// The agent that is asked.
    pub fn agent(&self) -> &str {
        &self.0.agent
    }
}
