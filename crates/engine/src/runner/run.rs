//! Drives one attempt at one turn of a task.
//!
//! One change is in flight at a time; updates that the agent sends meanwhile join the next one. Every change
//! carries the run's fencing token: when another writer has changed the task, usually by a cancel, the change
//! is rejected and the run ends without recording anything. The agent keeps running during a commit, except
//! during the one that ends the turn.

use std::{
    collections::HashSet,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use protocol::{Artifact, ArtifactId, Dialect, Event, Message, Part, Role, TaskState, Timestamp};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Registration, Runner, Slot, deadline_in,
    panic_guard::{PanicGuard, Panicked},
};
use crate::{
    agent::{Agent, OnCrash, Outcome, Turn, Update, UpdateQueue},
    context::Conversation,
    ids::TaskNo,
    log::{Log, Seq},
    scope::Scope,
    store::{Advance, Change, Committed, Conflict, NotCommitted, Receipt, Step, Visibility},
    task::{CurrentState, PublicIds, advance, earlier_artifacts::EarlierArtifacts, panic_metadata},
};

/// Failure text of an interrupted turn with [`OnCrash::Fail`].
pub(super) const INTERRUPTED: &str =
    "interrupted: the server stopped while this ran, and it must not run twice";
/// How long a cancelled agent may take to stop before its future is dropped.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// One turn that this process holds, or will hold after the pending commit.
pub(crate) struct Run {
    no: TaskNo,
    names: PublicIds,
    current: CurrentState,
    /// `None` when the agent has ended.
    agent: Option<PanicGuard>,
    on_crash: OnCrash,
    /// Size of the task's log, in bytes.
    size: u64,
    /// Artifacts recorded by earlier attempts at this turn; their next chunk replaces them.
    stale: HashSet<ArtifactId>,
    earlier_artifacts: EarlierArtifacts,
    /// The requested skill.
    skill: Option<String>,
    queue: Arc<UpdateQueue>,
    outcome: Option<Outcome>,
    cancel: CancellationToken,
    deadline: Instant,
    reveal_at: Option<Instant>,
    /// The client's dialect has no bare messages, and the agent has not sent an update yet.
    tasks_only: bool,
    registration: Option<Registration>,
    _slot: Slot,
}

/// The input of a run.
pub(crate) struct RunInput {
    pub(crate) no: TaskNo,
    pub(crate) names: PublicIds,
    pub(crate) current: CurrentState,
    pub(crate) scope: Scope,
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) skill: Option<String>,
    /// The client's dialect; after a claim, the dialect that created the task.
    pub(crate) dialect: Dialect,
    pub(crate) message: Arc<Message>,
    /// Sequence number of the status update that message caused; distinguishes this turn from the task's
    /// other turns.
    pub(crate) seq: Seq,
    pub(crate) history: Vec<Message>,
    pub(crate) conversation: Conversation,
    pub(crate) attempt: u32,
    pub(crate) size: u64,
    pub(crate) on_crash: OnCrash,
    /// Artifacts recorded by earlier attempts at this turn, when this one starts from the beginning.
    pub(crate) stale: HashSet<ArtifactId>,
    /// Artifacts of earlier turns of a reopened task.
    pub(crate) earlier_artifacts: EarlierArtifacts,
    pub(crate) saved: Option<Bytes>,
}

impl Run {
    /// Prepares a turn; the agent is not called yet.
    pub(crate) fn new(
        runner: &Runner,
        slot: Slot,
        input: RunInput,
        registration: Option<Registration>,
    ) -> Self {
        let (queue, updates) = UpdateQueue::open();
        let cancel = registration.as_ref().map_or_else(CancellationToken::new, |made| made.cancel.clone());
        let deadline = runner.deadline();
        let turn = Turn {
            // A client-chosen task id is unique only in its scope, and message ids may be reused; so the key
            // has the task number and the sequence number.
            idempotency_key: format!("a2ad:{}:{}:{}", input.no.0, input.names.task, input.seq),
            task_id: input.names.task.clone(),
            context_id: input.names.context.clone(),
            skill: input.skill.clone(),
            message: input.message,
            history: input.history,
            conversation: input.conversation,
            scope: input.scope,
            attempt: input.attempt,
            cancel: cancel.clone(),
            deadline,
            saved: input.saved,
        };
        Self {
            no: input.no,
            names: input.names,
            current: input.current,
            agent: Some(PanicGuard::new(input.agent, turn, updates)),
            on_crash: input.on_crash,
            size: input.size,
            stale: input.stale,
            earlier_artifacts: input.earlier_artifacts,
            skill: input.skill,
            queue,
            outcome: None,
            cancel,
            deadline,
            reveal_at: None,
            tasks_only: !input.dialect.supports_message_replies(),
            registration,
            _slot: slot,
        }
    }

    /// Makes the run cancellable; must be called before the change that gives this process the work.
    pub(crate) fn register(&mut self, runner: &Arc<Runner>) {
        self.registration = Some(runner.register(self.no, self.cancel.clone()));
    }

    /// Sets the state and visibility at the start of the agent, if they changed since the run was prepared.
    pub(crate) fn set_standing(&mut self, current: CurrentState) {
        self.current = current;
    }

    /// Makes an undecided task visible after this time, because a client waits for it.
    pub(crate) fn reveal_after(&mut self, timeout: Duration) {
        self.reveal_at = Some(deadline_in(timeout));
    }

    /// Polls the agent once, inside the caller's own task. Returns its updates as events, and whether the
    /// turn has ended.
    pub(crate) async fn poll_early(&mut self, runner: &Runner) -> advance::Advanced {
        let polled = poll_fn(|cx| Poll::Ready(poll_agent(&mut self.agent, cx))).await;
        let mut outcome = match polled {
            Poll::Ready(ended) => Some(self.outcome_of(ended)),
            Poll::Pending => None,
        };
        // Whether a retryable failure is retried is decided later, by `commit_updates`.
        if matches!(outcome, Some(Outcome::Failed { retryable: true, .. })) {
            self.outcome = outcome.take();
        }
        let mut updates = self.add_answer_artifact(self.queue.take());
        self.name_results(&mut updates);
        self.earlier_artifacts.rename_reused(&mut updates);
        if let Some(too_large) =
            self.size_limit_outcome(runner, &updates, outcome.as_ref().or(self.outcome.as_ref()))
        {
            updates.clear();
            (self.agent, self.outcome, outcome) = (None, None, Some(too_large));
        }
        let advanced = advance::advance(&self.names, self.current, updates, outcome, runner.clock().now());
        self.current = advanced.current;
        advanced
    }

    /// Drives the turn to its end; `held` is the commit that gave it to this process.
    pub(crate) async fn drive(mut self, runner: &Arc<Runner>, held: Committed) {
        let fence = held.fence;
        self.size = held.size;
        let ending = self.work(runner, fence, held.attempt).await;
        self.registration = None;
        match ending {
            Ending::Finished => {}
            Ending::Cancelled => self.await_stop(runner).await,
            Ending::Halted => self.release(runner, fence).await,
        }
    }

    async fn work(&mut self, runner: &Runner, fence: i64, attempt: i64) -> Ending {
        let mut in_flight: Option<InFlight> = None;
        loop {
            if in_flight.is_none() {
                let updates = self.queue.take();
                if self.outcome.is_some() || !updates.is_empty() || self.must_reveal() {
                    in_flight = self.commit_updates(runner, fence, attempt, updates);
                }
            }
            let idle = in_flight.is_none();
            let over = self.outcome.is_some()
                || in_flight.as_ref().is_some_and(|change| !matches!(change.step, Step::Report { .. }));
            tokio::select! {
                biased;
                result = receipt(&mut in_flight) => {
                    let Some(InFlight { step, pause_content, .. }) = in_flight.take() else { continue };
                    match result {
                        Ok(committed) if matches!(step, Step::Report { .. }) => self.size = committed.size,
                        Ok(_) => {
                            if matches!(step, Step::Retry { .. }) {
                                runner.wake();
                            }
                            return Ending::Finished;
                        }
                        Err(NotCommitted::Conflict(met)) => {
                            self.resolve_conflict(runner, fence, met, pause_content).await;
                            return Ending::Finished;
                        }
                        Err(NotCommitted::Unavailable(_) | NotCommitted::KeyUsed(_)) => {
                            return Ending::Finished;
                        }
                    }
                }
                () = self.cancel.cancelled() => return Ending::Cancelled,
                () = runner.halted.cancelled() => return Ending::Halted,
                ended = poll_fn(|cx| poll_agent(&mut self.agent, cx)), if !over => {
                    self.outcome = Some(self.outcome_of(ended));
                }
                () = self.queue.ready(), if idle && !over => {}
                () = tokio::time::sleep_until(self.deadline), if !over => {
                    let text = format!("the turn took longer than {:?}", runner.limits.run_time);
                    let message = Some(self.agent_message(text));
                    self.outcome = Some(Outcome::Failed { message, retryable: false });
                }
                () = reveal(self.reveal_at), if idle && self.current.visibility == Visibility::Undecided => {}
            }
        }
    }

    /// The outcome of an agent that has returned or panicked.
    fn outcome_of(&self, ended: Result<Outcome, Panicked>) -> Outcome {
        ended.unwrap_or_else(|Panicked(text)| {
            tracing::error!(task = %self.names.task, panic = text, "an agent panicked");
            let message = self.agent_message("the agent stopped unexpectedly");
            let message = Some(Message { metadata: Some(panic_metadata()), ..message });
            Outcome::Failed { message, retryable: false }
        })
    }

    /// Builds and commits a change from the updates, and the outcome if there is one; `None` when there is
    /// nothing to record.
    fn commit_updates(
        &mut self,
        runner: &Runner,
        fence: i64,
        attempt: i64,
        updates: Vec<Update>,
    ) -> Option<InFlight> {
        let now = runner.clock().now();
        let mut updates = self.add_answer_artifact(updates);
        if self.must_reveal() && updates.is_empty() && self.outcome.is_none() {
            updates.push(Update::Working(None));
        }
        self.earlier_artifacts.rename_reused(&mut updates);
        self.restart_artifacts(&mut updates);
        self.name_results(&mut updates);
        if let Some(too_large) = self.size_limit_outcome(runner, &updates, self.outcome.as_ref()) {
            updates.clear();
            (self.agent, self.outcome) = (None, Some(too_large));
        }
        let mut outcome = self.outcome.take();
        let mut retry = None;
        if matches!(outcome, Some(Outcome::Failed { retryable: true, .. }))
            && attempt < i64::from(runner.limits.attempts)
        {
            let text = format!("attempt {attempt} of {} failed, trying again", runner.limits.attempts);
            updates.push(Update::Working(Some(self.agent_message(text))));
            retry = Some(Step::Retry { fence, at: runner.next_attempt(attempt) });
            outcome = None;
        }
        let before = self.current;
        let advanced = advance::advance(&self.names, before, updates, outcome, now);
        self.current = advanced.current;
        let step = match (retry, advanced.ended) {
            (_, true) if self.current.state.is_interrupted() => Step::Pause { fence },
            (_, true) => Step::Finish { fence },
            (Some(retry), false) => retry,
            (None, false) => Step::Report { fence },
        };
        if advanced.events.is_empty() && advanced.saved.is_none() && step == (Step::Report { fence }) {
            return None;
        }
        // A pause is rejected when the client has sent another message meanwhile; its content is then
        // recorded again with a requeue.
        let pause_content =
            matches!(step, Step::Pause { .. }).then(|| (advanced.events.clone(), advanced.saved.clone()));
        let visibility = (before.visibility != self.current.visibility).then_some(self.current.visibility);
        let change = self.change(step, advanced.events, advanced.saved, visibility, now);
        Some(InFlight { receipt: runner.store().commit(change), step, pause_content })
    }

    /// A failure, if the updates and the outcome would exceed the task's size limit.
    fn size_limit_outcome(
        &self,
        runner: &Runner,
        updates: &[Update],
        outcome: Option<&Outcome>,
    ) -> Option<Outcome> {
        let max = runner.limits.max_task;
        let more = updates.iter().map(Update::size).sum::<u64>() + outcome.map_or(0, Outcome::size);
        // An outcome without a message always fits, because the size is an estimate and may be exceeded
        // slightly.
        if more == 0 || self.size + more <= max {
            return None;
        }
        let text = format!("the task is larger than {max} bytes");
        Some(Outcome::Failed { message: Some(self.agent_message(text)), retryable: false })
    }

    /// For a dialect without bare messages, a bare message also becomes the task's only artifact.
    fn add_answer_artifact(&mut self, mut updates: Vec<Update>) -> Vec<Update> {
        // Checkpoints are not visible to the client.
        let first_visible = updates.iter().position(|update| !matches!(update, Update::Save(_)));
        let Some(at) = first_visible.filter(|_| std::mem::take(&mut self.tasks_only)) else { return updates };
        if let Update::Message(message) = &updates[at] {
            let artifact = Artifact { name: None, ..Artifact::new("answer", message.parts.clone()) };
            updates.insert(at, Update::Artifact { artifact, append: false, last: true });
        }
        updates
    }

    /// Names an unnamed artifact after the requested skill. Appended chunks keep the name of the first.
    fn name_results(&self, updates: &mut [Update]) {
        let Some(skill) = &self.skill else { return };
        for update in updates {
            if let Update::Artifact {
                artifact: artifact @ Artifact { name: None, .. }, append: false, ..
            } = update
            {
                artifact.name = Some(format!("{skill}-result"));
            }
        }
    }

    /// In a retried run, the first chunk of each artifact replaces what the previous attempt recorded instead
    /// of being appended to it.
    fn restart_artifacts(&mut self, updates: &mut [Update]) {
        for update in updates {
            if let Update::Artifact { artifact, append, .. } = update
                && self.stale.remove(&artifact.id)
            {
                *append = false;
            }
        }
    }

    fn change(
        &self,
        step: Step,
        events: Vec<Event>,
        saved: Option<Bytes>,
        visibility: Option<Visibility>,
        now: Timestamp,
    ) -> Change {
        // A bare message has neither state nor timestamp.
        let bare = events.iter().any(|event| matches!(event, Event::Message(_)));
        let log = Log::pack(events.into_iter().map(|event| (event, None)));
        Change::Advance(Box::new(Advance {
            no: self.no,
            step,
            status: log.status().or_else(|| bare.then_some((self.current.state, now))),
            log,
            visibility,
            saved,
            skill: None,
            key: None,
        }))
    }

    /// Handles a rejected change: another writer changed the task, or the client sent a message to a task
    /// that was about to pause.
    async fn resolve_conflict(
        &mut self,
        runner: &Runner,
        fence: i64,
        met: Conflict,
        pause_content: Option<PauseContent>,
    ) {
        match pause_content {
            Some((events, saved)) if met.fence == fence && met.unanswered > 0 => {
                let now = runner.clock().now();
                self.current = CurrentState { state: TaskState::Working, visibility: Visibility::Visible };
                let events = events.into_iter().map(|event| self.as_progress(event, now)).collect();
                let step = Step::Requeue { fence, at: now };
                let again = self.change(step, events, saved, Some(Visibility::Visible), now);
                let _ = runner.store().commit(again).await;
                runner.wake();
            }
            _ => {
                tracing::debug!(task = %self.names.task, "lost_race: the task was changed by another writer, the run's last update is dropped")
            }
        }
    }

    /// When a pause is skipped, its question becomes a progress message, because the client may have answered
    /// it already.
    fn as_progress(&self, event: Event, now: Timestamp) -> Event {
        match event {
            Event::Status(update) if update.status.state.is_interrupted() => {
                self.names.status(TaskState::Working, update.status.message, now)
            }
            other => other,
        }
    }

    /// The task was cancelled: waits a moment for the agent to stop by itself, unless the process is ending.
    async fn await_stop(mut self, runner: &Runner) {
        if let Some(agent) = self.agent.take() {
            tokio::select! {
                _ = tokio::time::timeout(STOP_GRACE, agent) => {}
                () = runner.halted.cancelled() => {}
            }
        }
    }

    /// The process is ending: the next process on this store runs the turn again, unless it must not run
    /// twice.
    async fn release(self, runner: &Runner, fence: i64) {
        let now = runner.clock().now();
        let change = match self.on_crash {
            OnCrash::Fail => failed(&self.names, self.no, fence, INTERRUPTED, now),
            OnCrash::Retry | OnCrash::Resume => {
                self.change(Step::Release { fence, at: now }, Vec::new(), None, None, now)
            }
        };
        let _ = runner.store().commit(change).await;
    }

    fn must_reveal(&self) -> bool {
        let due = self.reveal_at.is_some_and(|at| at <= Instant::now());
        due && self.current.visibility == Visibility::Undecided
    }

    /// A message of the runner, sent in the agent's role.
    fn agent_message(&self, text: impl Into<String>) -> Message {
        agent_message(&self.names, text)
    }
}

/// Polls the agent; sets it to `None` when it has ended.
fn poll_agent(agent: &mut Option<PanicGuard>, cx: &mut Context<'_>) -> Poll<Result<Outcome, Panicked>> {
    let Some(running) = agent else { return Poll::Pending };
    let polled = Pin::new(running).poll(cx);
    if polled.is_ready() {
        *agent = None;
    }
    polled
}

/// A message of the engine, sent in the agent's role.
pub(crate) fn agent_message(names: &PublicIds, text: impl Into<String>) -> Message {
    Message {
        context_id: Some(names.context.clone()),
        task_id: Some(names.task.clone()),
        ..Message::new(uuid::Uuid::new_v4().to_string(), Role::Agent, vec![Part::text(text)])
    }
}

/// The change that fails a task before its agent could run.
pub(super) fn failed(names: &PublicIds, no: TaskNo, fence: i64, text: &str, now: Timestamp) -> Change {
    let event = names.status(TaskState::Failed, Some(agent_message(names, text)), now);
    Change::Advance(Box::new(Advance {
        no,
        step: Step::Finish { fence },
        log: Log::pack([(event, None)]),
        status: Some((TaskState::Failed, now)),
        visibility: Some(Visibility::Visible),
        saved: None,
        skill: None,
        key: None,
    }))
}

enum Ending {
    /// The last change is committed, or another writer owns the task.
    Finished,
    /// The client cancelled the task.
    Cancelled,
    /// The process is ending.
    Halted,
}

struct InFlight {
    receipt: Receipt,
    step: Step,
    pause_content: Option<PauseContent>,
}

/// The events and checkpoint of a pause.
type PauseContent = (Vec<Event>, Option<Bytes>);

async fn receipt(in_flight: &mut Option<InFlight>) -> Result<crate::store::Committed, NotCommitted> {
    match in_flight {
        Some(change) => (&mut change.receipt).await,
        None => std::future::pending().await,
    }
}

async fn reveal(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
