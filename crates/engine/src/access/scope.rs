//! Ownership: which caller owns which tasks.

use std::{
    hash::{BuildHasher as _, Hash, Hasher, RandomState},
    sync::{Arc, LazyLock},
};

/// The principal of callers without a credential.
const ANONYMOUS: &str = "anonymous";

/// The owner of tasks, contexts, idempotency keys and page tokens. A parameter of every query: what is
/// outside a caller's scope does not exist for it. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope(Arc<Hashed>);

/// The parts with their hash: a call looks its scope up in several maps.
#[derive(Debug, PartialEq, Eq)]
struct Hashed {
    hash: u64,
    parts: ScopeParts,
}

/// Random, because callers choose parts of their scope.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Hash for Scope {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

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
        Self(Arc::new(Hashed { hash: HASHER.hash_one(&parts), parts }))
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
        self.0.parts.principal == ANONYMOUS
    }

    /// All four parts.
    pub fn parts(&self) -> &ScopeParts {
        &self.0.parts
    }

    /// Isolated organisation.
    pub fn tenant(&self) -> &str {
        &self.0.parts.tenant
    }

    /// Id of the called agent.
    pub fn agent(&self) -> &str {
        &self.0.parts.agent
    }
}
