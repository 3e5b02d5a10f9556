//! A plain async function as an agent.

use super::{Agent, AgentResult, ExecutionPolicy, IntoOutcome, Outcome, Turn};

/// Makes an agent of an async function. The function may return anything that is [`IntoOutcome`]: an
/// [`Outcome`], a text, an artifact, nothing, or a `Result` of these.
///
/// ```
/// # use a2ad_engine::{Turn, agent_fn};
/// async fn shout(turn: Turn) -> String {
///     turn.text().to_uppercase()
/// }
/// let agent = agent_fn(shout);
/// ```
pub fn agent_fn<F, Fut>(function: F) -> AgentFn<F>
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    AgentFn { function, policy: ExecutionPolicy::default() }
}

/// An agent made by [`agent_fn`].
#[derive(Clone)]
pub struct AgentFn<F> {
    function: F,
    policy: ExecutionPolicy,
}

impl<F> AgentFn<F> {
    /// Sets the execution policy.
    #[must_use]
    pub fn with_policy(self, policy: ExecutionPolicy) -> Self {
        Self { policy, ..self }
    }
}

impl<F, Fut> Agent for AgentFn<F>
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        (self.function)(turn).await.into_outcome()
    }

    fn policy(&self) -> ExecutionPolicy {
        self.policy
    }
}
