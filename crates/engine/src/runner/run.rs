//! Drives one attempt at one turn of a task.
//!
//! One change is in flight at a time; updates that the agent sends meanwhile join the next one. Every change
//! carries the run's fencing token: when another writer has changed the task, usually by a cancel, the change
//! is rejected and the run ends without recording anything. The agent keeps running during a commit.
//!
//! A run that ends before its agent is stopped ([`super::stop`]): whatever ends it is committed at once, and the
//! agent is polled meanwhile and afterwards until it has ended or its grace period is over.

use std::{
    collections::HashSet,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use protocol::{ArtifactId, Message, TaskState, Timestamp, TraceContext};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::{
    AskingTurn, AskingTurns, Registration, Runner, Slot,
    claimed::Probation,
    deadline_in,
    panic_guard::{PanicGuard, Panicked},
    stop::{Stop, StopReason},
    time_limit::TimeLimit,
};
use crate::{
    access::scope::Scope,
    agent::{
        AgentError, AgentResult, CallQuestion, CheckpointTooLarge, Journal, JournalTooLarge, OnCrash,
        Outcome, Turn, Update, UpdateReceiver, outcome_of_error, queue,
    },
    context::Conversation,
    ids::TaskNo,
    log::Seq,
    metrics::{RunMetrics, RunOutcome},
    origin::Origin,
    skill::{Calls, RunPolicy, call::SkillCall},
    store::{Change, Committed, JournalStep, NotCommitted, Receipt, Step, Visibility},
    task::{
        CurrentState, PublicIds, Reason,
        advance::Advanced,
        earlier_artifacts::EarlierArtifacts,
        journal::TurnJournal,
        panic_metadata,
        turn::{Lease, TurnChange, TurnState, failure},
    },
    trace::{commit_span, random_span_id},
};

/// One turn that this process holds, or will hold after the pending commit.
pub(crate) struct Run {
    no: TaskNo,
    state: TurnState,
    policy: RunPolicy,
    /// `None` when the agent has ended.
    agent: Option<PanicGuard>,
    updates: UpdateReceiver,
    outcome: Option<Outcome>,
    /// Set when the run is ended from outside.
    stop: Option<Stop>,
    cancel: CancellationToken,
    limit: TimeLimit,
    reveal_at: Option<Instant>,
    registration: Option<Registration>,
    /// The run was stopped before the agent was called.
    never_started: bool,
    /// Of a suspect that has not made progress yet.
    probation: Option<Probation>,
    /// `None` if the turn was given to nobody: then the run does not count.
    slot: Option<Slot>,
    /// Of an agent that may ask. Dropped after the commit that ends the turn, with which the task itself counts.
    asking: Option<Arc<AskingTurn>>,
    /// The step with which the run has ended its turn.
    last_step: Option<Step>,
    /// Whether the metrics count the run when it is dropped.
    is_counted: bool,
    metrics: Arc<RunMetrics>,
    /// The span of the run in its trace.
    trace: TraceContext,
    /// Ends with the run.
    _span: Span,
    started: std::time::Instant,
}

/// The input of a turn, whether it starts with its message or is claimed later.
pub(crate) struct TurnInput {
    pub(crate) no: TaskNo,
    pub(crate) names: PublicIds,
    pub(crate) scope: Scope,
    /// What runs.
    pub(crate) call: SkillCall,
    /// When the task fails unless it is terminal by then.
    pub(crate) deadline: Option<Timestamp>,
    /// The origin of the client's call; after a claim, that of the task.
    pub(crate) origin: Origin,
    /// Sequence number of the status update that its message caused; distinguishes this turn from the task's
    /// other turns.
    pub(crate) seq: Seq,
    /// Earlier messages of the task.
    pub(crate) history: Vec<Message>,
    pub(crate) conversation: Conversation,
    /// Size of the task's log in bytes, with the message and without progress messages.
    pub(crate) size: u64,
    /// Size of the progress messages in the task's log, in bytes.
    pub(crate) progress_size: u64,
    /// Artifacts whose last chunk is not recorded: a further chunk is appended to them.
    pub(crate) open_artifacts: HashSet<ArtifactId>,
    /// Artifacts of earlier turns of a reopened task.
    pub(crate) earlier_artifacts: EarlierArtifacts,
    /// The steps that earlier attempts have recorded.
    pub(crate) journal: Vec<JournalStep>,
    /// How many processes crashed while they ran the turn, since its last progress.
    pub(crate) deaths: i64,
    /// The span that has caused the run.
    pub(crate) trace: TraceContext,
}

impl Run {
    /// Prepares an attempt at a turn; the agent is not called yet.
    pub(crate) fn new(
        runner: &Arc<Runner>,
        mut slot: Option<Slot>,
        mut input: TurnInput,
        current: CurrentState,
        attempt: u32,
        registration: Option<Registration>,
    ) -> Self {
        let (sender, updates) = queue();
        let cancel = registration.as_ref().map_or_else(CancellationToken::new, |made| made.cancel.clone());
        let limit = TimeLimit::new(input.call.policy.run_time, input.deadline, runner.clock());
        let policy = input.call.policy;
        let trace = input.trace.child(random_span_id());
        let span = tracing::debug_span!(
            target: "a2ad::run",
            "run",
            traceparent = %trace,
            parent = format_args!("{:016x}", input.trace.span_id()),
            attempt,
        );
        let journal = TurnJournal::new(&input.journal);
        let may_ask = policy.may_ask && !limit.has_passed();
        let waited = slot.as_mut().and_then(|slot| slot.asking.take());
        let asking = waited.filter(|asking| may_ask && asking.counts());
        let begin = || may_ask.then(|| AskingTurns::begin(runner.asking_turns(), &input.scope));
        let asking = asking.or_else(begin);
        let skill = input.call.skill.as_ref().map(|skill| skill.id().to_owned());
        let is_skill_named = input.call.is_skill_named();
        let turn = Turn {
            // A client-chosen task id is unique only in its scope, and message ids may be reused; so the key
            // has the task number and the sequence number.
            idempotency_key: format!("a2ad:{}:{}:{}", input.no.0, input.names.task, input.seq),
            task_id: input.names.task.clone(),
            context_id: input.names.context.clone(),
            skill: skill.clone(),
            is_skill_named,
            message: Arc::clone(&input.call.message),
            arguments: input.call.arguments.take(),
            history: input.history,
            conversation: input.conversation,
            scope: input.scope,
            attempt,
            on_crash: policy.on_crash,
            // The agent may cancel its own token; that must not look like a cancel by the client.
            cancel: cancel.child_token(),
            deadline: limit.at,
            saved: input.call.saved.clone(),
            updates: sender,
            journal: Arc::new(Journal::new(input.seq, input.journal, runner.limits().max_journal)),
            trace: trace.clone(),
            asking: asking.clone(),
            call_id: None,
            calls: Calls::new(Arc::clone(runner), Arc::clone(&input.call.agent)),
        };
        let state = TurnState {
            size: input.size,
            progress_size: input.progress_size,
            skill,
            is_skill_named,
            open_artifacts: input.open_artifacts,
            earlier_artifacts: input.earlier_artifacts,
            tasks_only: !input.origin.supports_message_replies(),
            journal,
            saved: input.call.saved.take(),
            resumes: policy.on_crash == OnCrash::Resume,
            counted: attempt > 1 || input.deaths > 0,
            crashed: input.deaths > 0,
            attempts: policy.attempts,
            ..TurnState::new(input.no, input.names, current)
        };
        // A run whose deadline has passed ends without calling its agent, and so does a call that is decided.
        let outcome =
            limit.has_passed().then(|| limit.outcome(&state.names)).or_else(|| input.call.take_verdict());
        Self {
            no: input.no,
            state,
            policy,
            agent: if outcome.is_none() { input.call.start(turn).map(PanicGuard::new) } else { None },
            updates,
            outcome,
            stop: None,
            cancel,
            limit,
            reveal_at: None,
            registration,
            never_started: false,
            probation: None,
            slot,
            asking,
            last_step: None,
            is_counted: true,
            metrics: Arc::clone(runner.metrics()),
            trace,
            _span: span,
            started: std::time::Instant::now(),
        }
    }

    /// The number of its task.
    pub(crate) fn no(&self) -> TaskNo {
        self.no
    }

    /// The public ids of its task.
    pub(crate) fn names(&self) -> &PublicIds {
        &self.state.names
    }

    /// The skill of its task.
    pub(crate) fn skill(&self) -> Option<&str> {
        self.state.skill.as_deref()
    }

    /// What applies to this run.
    pub(crate) fn policy(&self) -> RunPolicy {
        self.policy
    }

    /// The turns of its principal that may ask and had begun before this one; `None` if this one does not ask.
    pub(crate) fn asking_before(&self) -> Option<u64> {
        self.asking.as_ref().map(|turn| turn.before())
    }

    /// Keeps other suspects from starting while this run is on probation.
    pub(super) fn set_probation(&mut self, probation: Option<Probation>) {
        self.probation = probation;
    }

    /// The task is due again after this step of the run.
    fn requeue_after(&self, step: Step) {
        let (at, suspect) = match step {
            Step::Retry { at, .. } => (at, self.probation.is_some()),
            // The next turn: crashes are counted anew.
            Step::Requeue { at, .. } => (at, false),
            _ => return,
        };
        if let Some(slot) = &self.slot {
            if let Step::Retry { .. } = step {
                slot.keep_trace(self.no, &self.trace);
            }
            slot.requeue(self.no, at, suspect, self.asking.clone());
        }
    }

    /// Makes the run cancellable; must be called before the change that gives this process the work.
    pub(crate) fn register(&mut self, runner: &Arc<Runner>) {
        self.registration = Some(runner.register(self.no, self.cancel.clone()));
    }

    /// Sets the state and visibility at the start of the agent, if they changed since the run was prepared.
    pub(crate) fn set_standing(&mut self, current: CurrentState) {
        self.state.current = current;
    }

    /// Makes an undecided task visible after this time, because a client waits for it.
    pub(crate) fn reveal_after(&mut self, timeout: Duration) {
        self.reveal_at = Some(deadline_in(timeout));
    }

    /// Polls the agent once, inside the caller's own task. Returns its updates as events, and whether the
    /// turn has ended.
    pub(crate) async fn poll_early(&mut self, runner: &Runner) -> Advanced {
        if self.outcome.is_none()
            && let Poll::Ready(ended) = poll_fn(|cx| Poll::Ready(poll_agent(&mut self.agent, cx))).await
        {
            self.outcome = Some(self.outcome_of(ended));
        }
        let (updates, failure) = self.updates.take();
        let outcome = self.outcome.take();
        let outcome = failure.map(|error| self.outcome_of(Ok(Err(error)))).or(outcome);
        let (advanced, later) =
            self.state.record_first(updates, outcome, runner.limits(), runner.clock().now());
        self.outcome = later;
        advanced
    }

    /// Drives the turn to its end; `held` is the commit that gave it to this process.
    pub(crate) async fn drive(mut self, runner: &Arc<Runner>, held: Committed) {
        let lease = Lease { fence: held.fence, attempt: held.attempt };
        self.state.size = held.size;
        // What the agent recorded in `poll_early`.
        self.updates.committed();
        if runner.is_stopping() {
            // The run was registered after all agents were asked to stop.
            self.cancel.cancel();
        }
        self.work(runner, lease).await;
        self.stop_agent(runner).await;
    }

    /// Ends a run whose turn this process did not get.
    pub(crate) async fn reject(mut self, runner: &Runner) {
        self.is_counted = false;
        if self.agent.as_ref().is_some_and(PanicGuard::is_started) {
            self.begin_stop(StopReason::Lost);
            self.slot = None;
            self.stop_agent(runner).await;
        }
    }

    /// Ends a run whose turn has ended with the commit that starts it.
    pub(crate) fn end_early(mut self, runner: &Arc<Runner>) {
        if self.agent.is_some() {
            self.begin_stop(self.ended_by());
            runner.await_stop(self);
        }
    }

    /// Records what the agent does until the turn ends or another process or writer gets it.
    async fn work(&mut self, runner: &Runner, lease: Lease) {
        let mut in_flight: Option<InFlight> = None;
        loop {
            if in_flight.is_none() {
                in_flight = self.commit_updates(runner, lease);
            }
            let idle = in_flight.is_none();
            if idle && self.is_drained() {
                return self.release(runner, lease).await;
            }
            // What ends the turn is decided.
            let over = self.outcome.is_some()
                || in_flight.as_ref().is_some_and(|in_flight| in_flight.change.ends_run());
            let agent_deadline = self.agent_deadline();
            tokio::select! {
                biased;
                result = receipt(&mut in_flight) => {
                    let Some(InFlight { change, last_resort, .. }) = in_flight.take() else { continue };
                    match result {
                        Ok(committed) if !change.ends_run() => self.committed(&change, committed),
                        Err(NotCommitted::TooLarge(reason)) if !last_resort => {
                            in_flight = Some(self.fail(runner, lease, &reason));
                        }
                        result => return self.end(runner, lease, change, result).await,
                    }
                }
                () = self.cancel.cancelled(), if self.stop.is_none() && !over => {
                    if !runner.is_stopping() {
                        return self.begin_stop(StopReason::Canceled);
                    }
                    self.begin_stop(StopReason::Drain);
                }
                () = runner.halted.cancelled(), if !over => return self.halt(runner, lease, in_flight).await,
                ended = poll_fn(|cx| poll_agent(&mut self.agent, cx)) => self.agent_ended(ended),
                () = self.updates.ready(), if idle && !over => {}
                () = tokio::time::sleep_until(agent_deadline), if self.agent.is_some() => {
                    self.end_agent_time();
                }
                () = reveal(self.reveal_at), if idle && self.is_undecided() => {}
            }
        }
    }

    /// A change of the run is committed, and the run continues.
    fn committed(&mut self, change: &TurnChange, committed: Committed) {
        self.state.size = committed.size;
        self.updates.committed();
        if change.progress {
            self.probation = None;
        }
    }

    /// Ends the run after its last change, or after one that was rejected.
    async fn end(
        &mut self,
        runner: &Runner,
        lease: Lease,
        change: TurnChange,
        result: Result<Committed, NotCommitted>,
    ) {
        if change.progress {
            self.probation = None;
        }
        self.last_step = Some(change.step);
        match result {
            Ok(_) => self.requeue_after(change.step),
            Err(NotCommitted::Conflict(met)) => {
                let now = runner.clock().now();
                let Some(again) = self.state.after_conflict(change, met, lease, now) else {
                    tracing::debug!(task = %self.state.names.task, "lost_race: the task was changed by another writer, the run's last update is dropped");
                    let canceled = self.cancel.is_cancelled();
                    return self.begin_stop(if canceled { StopReason::Canceled } else { StopReason::Lost });
                };
                let step = again.step;
                match runner.store().commit(Change::Advance(Box::new(again))).await {
                    Ok(_) => self.requeue_after(step),
                    Err(NotCommitted::TooLarge(reason)) => {
                        let _ = self.fail(runner, lease, &reason).receipt.await;
                    }
                    Err(_) => {}
                }
            }
            Err(_) => self.begin_stop(StopReason::StoreUnavailable),
        }
    }

    /// The process ends: records what the agent has recorded before, and releases the work.
    async fn halt(&mut self, runner: &Runner, lease: Lease, in_flight: Option<InFlight>) {
        self.begin_stop(StopReason::Drain);
        self.updates.close();
        if let Some(InFlight { receipt, .. }) = in_flight
            && receipt.await.is_err()
        {
            return;
        }
        match self.commit_updates(runner, lease) {
            Some(InFlight { receipt, change, .. }) if change.ends_run() => drop(receipt.await),
            _ => self.release(runner, lease).await,
        }
    }

    async fn release(&mut self, runner: &Runner, lease: Lease) {
        // An agent that was never called has nothing that must not happen twice.
        let on_crash = if self.never_started { OnCrash::Retry } else { self.policy.on_crash };
        let release = self.state.release(lease.fence, on_crash, runner.clock().now());
        let _ = runner.store().commit(Change::Advance(Box::new(release))).await;
    }

    /// Asks the agent to stop. From now on its outcome is ignored, and what it records is rejected, except in a drain.
    fn begin_stop(&mut self, reason: StopReason) {
        if self.stop.is_some() {
            return;
        }
        self.stop = Some(Stop::now(reason));
        // Before the queue is closed: an agent whose update is rejected finds its token cancelled.
        self.cancel.cancel();
        if reason != StopReason::Drain {
            self.updates.close();
        }
        // An agent that has not started has nothing to stop.
        self.never_started |= self.agent.take_if(|agent| !agent.is_started()).is_some();
    }

    /// Waits until an agent that was asked to stop has ended or its time is over. An agent that has ended the turn by
    /// itself is not waited for.
    pub(super) async fn stop_agent(mut self, runner: &Runner) {
        self.registration = None;
        self.updates.close();
        let Some(Stop { reason, until, .. }) = self.stop else { return };
        if self.agent.is_some() {
            tokio::select! {
                biased;
                ended = poll_fn(|cx| poll_agent(&mut self.agent, cx)) => self.agent_ended(ended),
                () = tokio::time::sleep_until(until) => self.drop_agent(),
                () = runner.halted.cancelled() => self.drop_agent(),
            }
        }
        let (task, confirmed) = (&self.state.names.task, self.stop.is_some_and(|stop| !stop.timed_out));
        tracing::info!(%task, reason = reason.code(), stopConfirmed = confirmed, "a run was stopped");
    }

    /// When the agent has to have ended: at the end of its run time, or of its grace period.
    fn agent_deadline(&self) -> Instant {
        self.stop.map_or(self.limit.at, |stop| stop.until)
    }

    /// The agent has not ended in time: asks it to stop, or drops it.
    fn end_agent_time(&mut self) {
        if self.stop.is_some() {
            return self.drop_agent();
        }
        self.begin_stop(self.limit.stop_reason());
        self.outcome = Some(self.limit.outcome(&self.state.names));
    }

    /// Drops the future of an agent that has not stopped in time.
    fn drop_agent(&mut self) {
        self.updates.close();
        if let Some(stop) = &mut self.stop {
            stop.timed_out = true;
        }
        if let Some(Panicked(text)) = self.agent.take().and_then(PanicGuard::discard) {
            tracing::error!(task = %self.state.names.task, panic = text, "an agent panicked when it was dropped");
        }
    }

    /// Whether a drain has nothing to wait for: the agent has ended.
    fn is_drained(&self) -> bool {
        self.agent.is_none() && self.stop.is_some_and(|stop| stop.reason == StopReason::Drain)
    }

    /// Why the turn has ended although the agent has not returned.
    fn ended_by(&self) -> StopReason {
        match self.state.current.state {
            TaskState::Failed => StopReason::TooLarge,
            _ => StopReason::TurnEnded,
        }
    }

    /// The agent has returned or panicked. Its outcome counts unless it was asked to stop.
    fn agent_ended(&mut self, ended: Result<AgentResult<Outcome>, Panicked>) {
        if self.stop.is_none() {
            self.outcome = Some(self.outcome_of(ended));
        } else if let Err(Panicked(text)) = ended {
            tracing::error!(task = %self.state.names.task, panic = text, "an agent panicked while it was stopped");
        }
    }

    /// The outcome of an agent that has returned or panicked.
    fn outcome_of(&self, ended: Result<AgentResult<Outcome>, Panicked>) -> Outcome {
        let task = &self.state.names.task;
        match ended {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) if error.downcast_ref::<CallQuestion>().is_some() => outcome_of_error(&error),
            Ok(Err(error)) => {
                let skill = self.state.skill.as_deref();
                tracing::warn!(%task, skill, error = %WithCauses(&error), "an agent failed");
                if is_too_large(&error) {
                    return self.failed(error.to_string(), Reason::TooLarge);
                }
                outcome_of_error(&error)
            }
            Err(Panicked(text)) => {
                tracing::error!(%task, panic = text, "an agent panicked");
                let message = self.state.names.message("the agent stopped unexpectedly");
                let message = Some(Message { metadata: Some(panic_metadata()), ..message });
                Outcome::Failed { message, retryable: false }
            }
        }
    }

    /// A failure with its reason.
    fn failed(&self, text: String, reason: Reason) -> Outcome {
        Outcome::Failed { message: Some(self.state.names.explain(text, reason, None)), retryable: false }
    }

    /// Commits the agent's updates, and the outcome if there is one; `None` when there is nothing to record.
    fn commit_updates(&mut self, runner: &Runner, lease: Lease) -> Option<InFlight> {
        let (mut updates, failure) = self.updates.take();
        let outcome = self.outcome.take();
        let outcome = failure.map(|error| self.outcome_of(Ok(Err(error)))).or(outcome);
        if updates.is_empty() && outcome.is_none() && !self.state.crashed {
            if !self.must_reveal() {
                // An empty record needs no commit.
                self.updates.committed();
                return None;
            }
            updates.push(Update::Working(None));
        }
        let retry_at = |made| runner.next_attempt(made);
        let now = runner.clock().now();
        let recorded = self.state.record(lease, updates, outcome, runner.limits(), now, retry_at);
        let Some((advance, change)) = recorded else {
            // There is nothing to commit in what was taken.
            self.updates.committed();
            return None;
        };
        let span = commit_span(&self.trace);
        let receipt = runner.store().commit(Change::Advance(Box::new(advance)));
        if change.ends_run() {
            if self.agent.is_some() {
                self.begin_stop(self.ended_by());
            }
            self.updates.close();
        }
        Some(InFlight { receipt, change, last_resort: false, _span: span })
    }

    /// Fails the task because the store cannot hold what the run records.
    fn fail(&mut self, runner: &Runner, lease: Lease, reason: &str) -> InFlight {
        let names = &self.state.names;
        let message = names.explain(reason, Reason::TooLarge, None);
        let failed = failure(self.no, names, lease.fence, message, runner.clock().now());
        let change = TurnChange::of(failed.step);
        let span = commit_span(&self.trace);
        let receipt = runner.store().commit(Change::Advance(Box::new(failed)));
        if self.agent.is_some() {
            self.begin_stop(StopReason::TooLarge);
        }
        self.updates.close();
        InFlight { receipt, change, last_resort: true, _span: span }
    }

    /// How the run has ended, for the metrics.
    fn run_outcome(&self) -> RunOutcome {
        match (self.last_step, self.stop.map(|stop| stop.reason)) {
            (Some(Step::Retry { .. }), _) => RunOutcome::Retry,
            (_, Some(StopReason::Canceled)) => RunOutcome::Canceled,
            (_, Some(StopReason::Drain)) => RunOutcome::Released,
            (_, Some(StopReason::Lost | StopReason::StoreUnavailable)) => RunOutcome::Lost,
            (
                _,
                Some(
                    StopReason::RunTime | StopReason::Deadline | StopReason::TooLarge | StopReason::TurnEnded,
                )
                | None,
            ) => match self.state.current.state {
                TaskState::Failed => RunOutcome::Failed,
                TaskState::Rejected => RunOutcome::Rejected,
                TaskState::Canceled => RunOutcome::Canceled,
                TaskState::InputRequired | TaskState::AuthRequired => RunOutcome::Interrupted,
                // The task of a bare message stays as it was.
                TaskState::Completed | TaskState::Submitted | TaskState::Working | TaskState::Unspecified => {
                    RunOutcome::Completed
                }
            },
        }
    }

    fn must_reveal(&self) -> bool {
        self.is_undecided() && self.reveal_at.is_some_and(|at| at <= Instant::now())
    }

    fn is_undecided(&self) -> bool {
        self.state.current.visibility == Visibility::Undecided
    }
}

/// Counts the run.
impl Drop for Run {
    fn drop(&mut self) {
        if self.is_counted {
            self.metrics.ended[self.run_outcome() as usize].increment();
            self.metrics.duration.observe_duration(self.started.elapsed());
        }
    }
}

/// Whether the agent recorded more than a limit allows.
fn is_too_large(error: &AgentError) -> bool {
    error.downcast_ref::<CheckpointTooLarge>().is_some() || error.downcast_ref::<JournalTooLarge>().is_some()
}

/// An error and its causes in one line, for the log.
struct WithCauses<'a>(&'a AgentError);

impl std::fmt::Display for WithCauses<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        self.0.causes().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

/// Polls the agent; sets it to `None` when it has ended.
fn poll_agent(
    agent: &mut Option<PanicGuard>,
    cx: &mut Context<'_>,
) -> Poll<Result<AgentResult<Outcome>, Panicked>> {
    let Some(running) = agent else { return Poll::Pending };
    let polled = Pin::new(running).poll(cx);
    if polled.is_ready() {
        *agent = None;
    }
    polled
}

struct InFlight {
    receipt: Receipt,
    change: TurnChange,
    /// It fails the task because an earlier change was rejected as too large; there is no smaller one.
    last_resort: bool,
    /// Ends when the change is on disk.
    _span: Span,
}

async fn receipt(in_flight: &mut Option<InFlight>) -> Result<Committed, NotCommitted> {
    match in_flight {
        Some(in_flight) => (&mut in_flight.receipt).await,
        None => std::future::pending().await,
    }
}

async fn reveal(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
