//! What a call of a skill has to pass, before its work runs and before its result is recorded (`call.rs`).

use std::sync::Arc;

use futures_util::future::BoxFuture;
use protocol::{Json, Message};

use super::Skill;
use crate::agent::{AgentResult, Outcome};

/// A check of the calls of skills.
pub trait Guard: Send + Sync {
    /// Judges a call before its work runs, once for each message. The outcome ends the turn: the work does not run.
    fn before<'a>(&'a self, call: GuardedCall<'a>) -> BoxFuture<'a, Option<Outcome>>;

    /// Judges what the work has returned, and returns what becomes of it.
    fn after<'a>(
        &'a self,
        skill: &'a Skill,
        result: AgentResult<Outcome>,
    ) -> BoxFuture<'a, AgentResult<Outcome>>;

    /// Whether it judges the whole output. Chunks are then held in the update queue of the run until it has decided.
    fn holds_output(&self) -> bool {
        false
    }
}

/// What a guard sees of a call.
#[derive(Clone, Copy, Debug)]
pub struct GuardedCall<'a> {
    /// The called skill. The id is empty if the agent is called without one.
    pub skill: &'a Skill,
    /// What the work gets.
    pub message: &'a Message,
    /// What it gets of the message if it takes arguments.
    pub arguments: Option<&'a Json>,
}

/// The guards of a skill, in the order in which they are asked.
#[derive(Clone, Default)]
pub struct Guards(Arc<[Arc<dyn Guard>]>);

impl Guards {
    /// These guards.
    pub fn new(guards: impl IntoIterator<Item = Arc<dyn Guard>>) -> Self {
        Self(guards.into_iter().collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a guard judges the whole output.
    pub(super) fn hold_output(&self) -> bool {
        self.0.iter().any(|guard| guard.holds_output())
    }

    /// The outcome of the first guard that blocks the call.
    pub(super) async fn before(&self, call: GuardedCall<'_>) -> Option<Outcome> {
        for guard in &*self.0 {
            if let Some(blocked) = guard.before(call).await {
                return Some(blocked);
            }
        }
        None
    }

    /// What all guards make of a result.
    pub(super) async fn after(
        &self,
        skill: &Skill,
        mut result: AgentResult<Outcome>,
    ) -> AgentResult<Outcome> {
        for guard in &*self.0 {
            result = guard.after(skill, result).await;
        }
        result
    }
}

impl std::fmt::Debug for Guards {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} guards", self.0.len())
    }
}
