//! Operators' decisions whether an agent is enabled. They are kept in the store, override the configuration, and stay in
//! force over restarts and reloads until the next decision about the same agent.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use protocol::Timestamp;

use crate::{access::api_keys::ApiKeyError, store::StoreError};

/// One decision of an operator about one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSwitch {
    /// Isolated organisation.
    pub tenant: String,
    /// Id of the agent, registered or not.
    pub agent: String,
    /// What was decided.
    pub state: SwitchState,
    /// When.
    pub at: Timestamp,
    /// Who decided it.
    pub by: String,
}

/// Whether new calls of an agent are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchState {
    /// They are.
    Enabled,
    /// The agent does not exist for callers, and what they have open with it ends; work that was accepted before goes on.
    Disabled,
}

/// Why an agent was not switched.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// There is no agent with this id.
    #[error("there is no agent {0:?}")]
    UnknownAgent(String),
    /// The id of the agent cannot be used.
    #[error("{}", ApiKeyError::Agent)]
    InvalidAgent,
    /// The store has failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The decisions in force, by tenant and agent.
#[derive(Default)]
pub(crate) struct Switches(Mutex<SwitchesByAgent>);

pub(crate) type SwitchesByAgent = HashMap<(String, String), AgentSwitch>;

impl Switches {
    pub(crate) fn new(switches: Vec<AgentSwitch>) -> Self {
        let by_agent = |switch: AgentSwitch| ((switch.tenant.clone(), switch.agent.clone()), switch);
        Self(Mutex::new(switches.into_iter().map(by_agent).collect()))
    }

    /// Held while a catalog is replaced, so that no catalog misses a decision.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SwitchesByAgent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
