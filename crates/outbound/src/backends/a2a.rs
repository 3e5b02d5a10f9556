//! A remote agent as the work of skills: sends each turn's message with [`client::Client`], turns the reply into an
//! [`Outcome`], and cancels at the remote agent what is given up here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use client::{Client, Follow, FollowEvent};
use engine::{Agent, AgentResult, Outcome, Scope, Turn};
use protocol::{Event, Message, Part, Role, SendMessage, Task, TaskId, TaskState};
use tokio::{task::JoinSet, time::timeout};

/// How long the last cancellations may take.
const FINISH_LIMIT: Duration = Duration::from_secs(3);

/// Passes each turn on to a remote agent.
pub struct RemoteAgent {
    client: Arc<Client>,
    calls: Arc<OpenCalls>,
}

/// What outlives a turn. Agents may share it: one that replaces another, because its card has changed, answers its tasks.
#[derive(Default)]
pub struct OpenCalls {
    /// The remote tasks that wait for an answer, by the id of ours.
    waiting: Mutex<HashMap<TaskId, TaskId>>,
    cancellations: Mutex<JoinSet<()>>,
}

impl OpenCalls {
    /// Waits until what was given up is cancelled at the remote agents, up to a time limit.
    pub async fn finish(&self) {
        let mut cancellations = {
            let mut current = self.cancellations.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *current)
        };
        let ended = async { while cancellations.join_next().await.is_some() {} };
        if timeout(FINISH_LIMIT, ended).await.is_err() {
            tracing::warn!("tasks of the server that wait for an answer were not canceled in time");
        }
    }
}

impl RemoteAgent {
    /// Calls the agent of this client.
    pub fn new(client: Arc<Client>, calls: Arc<OpenCalls>) -> Self {
        Self { client, calls }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<TaskId, TaskId>> {
        self.calls.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message of this turn, for the task that waits for it if there is one.
    fn request(&self, turn: &Turn) -> SendMessage {
        let message = Message::new("", Role::User, turn.message.parts.clone());
        let request = SendMessage { skill: turn.skill.clone(), ..SendMessage::new(message) };
        match self.waiting().remove(&turn.task_id) {
            Some(task) => request.to_task(task),
            None => request,
        }
    }
}

impl Agent for RemoteAgent {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let mut follow = Follow::stream(&self.client, self.request(&turn)).await?;
        loop {
            // A task that is not known yet is cancelled when its first event arrives.
            let event = tokio::select! {
                biased;
                () = turn.cancel.cancelled(), if follow.task_id().is_some() => {
                    if let Some(task) = follow.task_id() {
                        self.client.cancel(task.clone()).await?;
                    }
                    return Ok(Outcome::fail("the call was cancelled"));
                }
                event = follow.next() => event?,
            };
            match event {
                Some(FollowEvent::Event(Event::Message(message))) => {
                    return Ok(Outcome::done_with(message.parts));
                }
                Some(FollowEvent::Event(Event::Status(update)))
                    if update.status.state == TaskState::Working =>
                {
                    if let Some(message) = update.status.message {
                        turn.progress(message.parts).await?;
                    }
                }
                Some(FollowEvent::Event(_) | FollowEvent::Lost) => {}
                None => break,
            }
        }
        let Some(task) = follow.task() else {
            return Ok(Outcome::fail("the agent sent neither a task nor a message"));
        };
        if task.status.state.is_interrupted() {
            self.waiting().insert(turn.task_id.clone(), task.id.clone());
        }
        Ok(outcome(&turn, task))
    }

    /// The question gets no answer, so the remote task is canceled too.
    fn abandoned(&self, _scope: &Scope, task: &TaskId) {
        let Some(task) = self.waiting().remove(task) else { return };
        let client = Arc::clone(&self.client);
        let mut cancellations = self.calls.cancellations.lock().unwrap_or_else(PoisonError::into_inner);
        while cancellations.try_join_next().is_some() {}
        cancellations.spawn(async move {
            if let Err(error) = client.cancel(task).await {
                tracing::warn!(%error, "the task of an unanswered question was not canceled");
            }
        });
    }
}

fn outcome(turn: &Turn, task: &Task) -> Outcome {
    let parts: Vec<Part> = task.status.message.iter().flat_map(|message| message.parts.clone()).collect();
    let or_text = |text: &str| if parts.is_empty() { vec![Part::text(text)] } else { parts.clone() };
    match task.status.state {
        TaskState::Completed => {
            let message = (!parts.is_empty()).then(|| turn.reply(parts));
            Outcome::Done { artifacts: task.artifacts.clone(), message }
        }
        TaskState::InputRequired => Outcome::ask(or_text("the agent asks for input")),
        TaskState::AuthRequired => Outcome::ask_for_credentials(or_text("the agent asks for credentials")),
        TaskState::Rejected => Outcome::reject(or_text("the task was rejected")),
        TaskState::Canceled => Outcome::fail(or_text("the task was canceled at the server")),
        TaskState::Failed | TaskState::Unspecified | TaskState::Submitted | TaskState::Working => {
            Outcome::fail(or_text("the task failed"))
        }
    }
}
