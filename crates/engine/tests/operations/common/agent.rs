//! An agent whose updates and outcome are scripted by the test.

use std::{
    collections::VecDeque,
    ops::Deref,
    sync::{Arc, Mutex},
};

use a2ad_engine::{Agent, AgentError, AgentResult, ExecutionPolicy, Outcome, Record, Turn, Update};
use protocol::{Artifact, Message, Part, Role};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// What the agent does next.
enum Command {
    Send(Vec<Update>),
    /// Return `Pending` once.
    Yield,
    End(Outcome),
    Fail(AgentError),
    Panic(String),
}

/// Hands each turn to the test and executes its commands. Without commands it stays pending.
pub(super) struct ScriptedAgent {
    policy: ExecutionPolicy,
    turns: UnboundedSender<RunningTurn>,
    prepared: Arc<Mutex<VecDeque<Vec<Command>>>>,
}

/// The test's handle to the agent.
pub(crate) struct AgentHandle {
    turns: UnboundedReceiver<RunningTurn>,
    prepared: Arc<Mutex<VecDeque<Vec<Command>>>>,
}

/// A turn the agent is running. Dropping it leaves the agent pending forever.
pub(crate) struct RunningTurn {
    turn: Arc<Turn>,
    commands: UnboundedSender<Command>,
}

pub(super) fn scripted_agent(policy: ExecutionPolicy) -> (ScriptedAgent, AgentHandle) {
    let (started, turns) = mpsc::unbounded_channel();
    let prepared = Arc::default();
    (
        ScriptedAgent { policy, turns: started, prepared: Arc::clone(&prepared) },
        AgentHandle { turns, prepared },
    )
}

impl Agent for ScriptedAgent {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let (commands, mut todo) = mpsc::unbounded_channel();
        for command in self.prepared.lock().unwrap().pop_front().unwrap_or_default() {
            commands.send(command).ok();
        }
        let turn = Arc::new(turn);
        self.turns.send(RunningTurn { turn: Arc::clone(&turn), commands }).ok();
        while let Some(command) = todo.recv().await {
            match command {
                Command::Send(updates) => {
                    updates.into_iter().fold(turn.record(), Record::update).await?;
                }
                Command::Yield => tokio::task::yield_now().await,
                Command::End(outcome) => return Ok(outcome),
                Command::Fail(error) => return Err(error),
                Command::Panic(text) => panic!("{text}"),
            }
        }
        std::future::pending().await
    }

    fn policy(&self) -> ExecutionPolicy {
        self.policy
    }
}

impl AgentHandle {
    /// Waits for the next turn the agent starts.
    pub(crate) async fn turn(&mut self) -> RunningTurn {
        super::with_timeout(self.turns.recv()).await.expect("the agent is still registered")
    }

    /// Whether the agent has started no turn that the test has not received.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.turns.try_recv().is_err()
    }

    /// Queues commands for the next turn that has none: if they end the turn, the agent is ready at its first
    /// poll.
    fn prepare(&self, commands: impl IntoIterator<Item = Command>) {
        self.prepared.lock().unwrap().push_back(commands.into_iter().collect());
    }

    /// The next turn sends these updates and ends with this outcome.
    pub(crate) fn prepare_turn(&self, updates: impl IntoIterator<Item = Update>, outcome: Outcome) {
        self.prepare([Command::Send(updates.into_iter().collect()), Command::End(outcome)]);
    }

    /// Like [`Self::prepare_turn`], but the turn is pending at its first poll.
    pub(crate) fn prepare_slow_turn(&self, updates: impl IntoIterator<Item = Update>, outcome: Outcome) {
        self.prepare([Command::Yield, Command::Send(updates.into_iter().collect()), Command::End(outcome)]);
    }

    /// The next turn sends these updates and waits for commands.
    pub(crate) fn prepare_updates(&self, updates: impl IntoIterator<Item = Update>) {
        self.prepare([Command::Send(updates.into_iter().collect())]);
    }

    /// Removes commands that no turn has used.
    pub(crate) fn clear_prepared(&self) {
        self.prepared.lock().unwrap().clear();
    }

    /// The next turn panics at its first poll.
    pub(crate) fn prepare_panic(&self, text: &str) {
        self.prepare([Command::Panic(text.into())]);
    }
}

impl Deref for RunningTurn {
    type Target = Turn;

    fn deref(&self) -> &Turn {
        &self.turn
    }
}

impl RunningTurn {
    /// The checkpoint the turn starts from.
    pub(crate) fn saved_text(&self) -> Option<&str> {
        self.saved_bytes().map(|bytes| std::str::from_utf8(bytes).unwrap())
    }

    /// Sends updates in one batch.
    pub(crate) fn send(&self, updates: impl IntoIterator<Item = Update>) {
        self.commands.send(Command::Send(updates.into_iter().collect())).ok();
    }

    pub(crate) fn end(&self, outcome: Outcome) {
        self.commands.send(Command::End(outcome)).ok();
    }

    /// The agent returns an error.
    pub(crate) fn fail(&self, error: impl Into<AgentError>) {
        self.commands.send(Command::Fail(error.into())).ok();
    }

    pub(crate) fn panic(&self, text: &str) {
        self.commands.send(Command::Panic(text.into())).ok();
    }

    /// Resolves when the agent's future has been dropped.
    pub(crate) async fn dropped(&self) {
        super::with_timeout(self.commands.closed()).await;
    }
}

/// A text message of the agent.
pub(crate) fn agent_message(text: &str) -> Message {
    Message::new(uuid::Uuid::new_v4().to_string(), Role::Agent, vec![Part::text(text)])
}

pub(crate) fn working() -> Update {
    Update::Working(None)
}

pub(crate) fn progress(text: &str) -> Update {
    Update::Working(Some(agent_message(text)))
}

pub(crate) fn artifact(id: &str, text: &str) -> Update {
    Update::Artifact { artifact: Artifact::new(id, vec![Part::text(text)]), append: false, last: true }
}

pub(crate) fn chunk(id: &str, text: &str) -> Update {
    Update::Artifact { artifact: Artifact::new(id, vec![Part::text(text)]), append: true, last: false }
}

pub(crate) fn save(bytes: &'static str) -> Update {
    Update::Save(bytes.into())
}

pub(crate) fn bare_message(text: &str) -> Update {
    Update::Message(agent_message(text))
}

pub(crate) fn done() -> Outcome {
    Outcome::done()
}

pub(crate) fn done_with(text: &str) -> Outcome {
    Outcome::done_with(text)
}

pub(crate) fn failed(text: &str) -> Outcome {
    Outcome::fail(text)
}

pub(crate) fn retryable_failure(text: &str) -> Outcome {
    Outcome::retry(text)
}

pub(crate) fn need_input(text: &str) -> Outcome {
    Outcome::ask(text)
}
