//! One turn of one task, from the agent's first word to its last.
//!
//! One change is in flight at a time; what the agent says meanwhile joins the next. Every change carries the
//! run's fence: when somebody else has moved the task on, a cancel above all, the change is refused, and the
//! run ends without having said anything. The agent works on while a commit is under way, but for one that ends the
//! turn.

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
    Registration, Runner, Slot,
    fence::{Fenced, Panicked},
    later,
};
use crate::{
    agent::{Agent, OnCrash, Outbox, Outcome, Turn, Update},
    context::Conversation,
    ids::TaskNo,
    log::{Log, Seq},
    scope::Scope,
    store::{Advance, Change, Committed, Conflict, NotCommitted, Receipt, Step, Visibility},
    task::{Names, Standing, advance, after_panic, closed::Closed},
};

/// What a task is told that stopped half-way and must not run twice.
pub(super) const INTERRUPTED: &str =
    "interrupted: the server stopped while this ran, and it must not run twice";
/// How long an agent that is told to stop may take to do so.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// One turn that this process holds, or is about to.
pub(crate) struct Run {
    no: TaskNo,
    names: Names,
    standing: Standing,
    /// Gone when the agent has ended.
    agent: Option<Fenced>,
    on_crash: OnCrash,
    /// Bytes of the task's log.
    size: u64,
    /// Artifacts that earlier runs of this turn have left, to be begun anew.
    stale: HashSet<ArtifactId>,
    closed: Closed,
    /// The skill that was asked for.
    skill: Option<String>,
    outbox: Arc<Outbox>,
    outcome: Option<Outcome>,
    cancel: CancellationToken,
    deadline: Instant,
    reveal_at: Option<Instant>,
    /// The client can be given tasks only, and the agent has not said anything yet.
    tasks_only: bool,
    registration: Option<Registration>,
    _slot: Slot,
}

/// What a run begins with.
pub(crate) struct Begin {
    pub(crate) no: TaskNo,
    pub(crate) names: Names,
    pub(crate) standing: Standing,
    pub(crate) scope: Scope,
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) skill: Option<String>,
    /// What its client speaks, as far as that is known.
    pub(crate) dialect: Dialect,
    pub(crate) message: Arc<Message>,
    /// The number of the status that message caused: it tells this turn from the task's others.
    pub(crate) seq: Seq,
    pub(crate) history: Vec<Message>,
    pub(crate) conversation: Conversation,
    pub(crate) attempt: u32,
    pub(crate) size: u64,
    pub(crate) on_crash: OnCrash,
    /// Artifacts that earlier runs of this turn have left, where this one starts over.
    pub(crate) stale: HashSet<ArtifactId>,
    /// What the task had when it was opened again.
    pub(crate) closed: Closed,
    pub(crate) saved: Option<Bytes>,
}

impl Run {
    /// Prepares a turn; nothing of the agent runs yet.
    pub(crate) fn new(runner: &Runner, slot: Slot, begin: Begin, registration: Option<Registration>) -> Self {
        let (outbox, updates) = Outbox::open();
        let cancel = registration.as_ref().map_or_else(CancellationToken::new, |made| made.cancel.clone());
        let deadline = runner.deadline();
        let turn = Turn {
            // A name that a client chose is its own in its scope only, and that of a message may be used again.
            idempotency_key: format!("a2ad:{}:{}:{}", begin.no.0, begin.names.task, begin.seq),
            task_id: begin.names.task.clone(),
            context_id: begin.names.context.clone(),
            skill: begin.skill.clone(),
            message: begin.message,
            history: begin.history,
            conversation: begin.conversation,
            scope: begin.scope,
            attempt: begin.attempt,
            cancel: cancel.clone(),
            deadline,
            saved: begin.saved,
        };
        Self {
            no: begin.no,
            names: begin.names,
            standing: begin.standing,
            agent: Some(Fenced::new(begin.agent, turn, updates)),
            on_crash: begin.on_crash,
            size: begin.size,
            stale: begin.stale,
            closed: begin.closed,
            skill: begin.skill,
            outbox,
            outcome: None,
            cancel,
            deadline,
            reveal_at: None,
            tasks_only: !begin.dialect.has_bare_messages(),
            registration,
            _slot: slot,
        }
    }

    /// Makes the run known to cancels; to be called before the change that gives this process the work.
    pub(crate) fn register(&mut self, runner: &Arc<Runner>) {
        self.registration = Some(runner.register(self.no, self.cancel.clone()));
    }

    /// Where the task stands when the agent begins, if that is no longer where the run was prepared.
    pub(crate) fn stands(&mut self, standing: Standing) {
        self.standing = standing;
    }

    /// Somebody waits, and not for ever: what is undecided by then is a task.
    pub(crate) fn reveal_after(&mut self, patience: Duration) {
        self.reveal_at = Some(later(patience));
    }

    /// Polls the agent once, inside the caller's own task. Gives what it said, and whether the turn is over.
    pub(crate) async fn first_look(&mut self, runner: &Runner) -> advance::Advanced {
        let polled = poll_fn(|cx| Poll::Ready(poll_agent(&mut self.agent, cx))).await;
        let mut outcome = match polled {
            Poll::Ready(ended) => Some(self.outcome_of(ended)),
            Poll::Pending => None,
        };
        // An outcome that wants another attempt is the runner's to judge.
        if matches!(outcome, Some(Outcome::Failed { retryable: true, .. })) {
            self.outcome = outcome.take();
        }
        let mut said = self.spell_out(self.outbox.take());
        self.name_results(&mut said);
        self.closed.keep(&mut said);
        if let Some(too_large) = self.outgrown(runner, &said, outcome.as_ref().or(self.outcome.as_ref())) {
            said.clear();
            (self.agent, self.outcome, outcome) = (None, None, Some(too_large));
        }
        let advanced = advance::advance(&self.names, self.standing, said, outcome, runner.clock().now());
        self.standing = advanced.standing;
        advanced
    }

    /// Drives the turn to its end; this process holds it by this change.
    pub(crate) async fn drive(mut self, runner: &Arc<Runner>, held: Committed) {
        let fence = held.fence;
        self.size = held.size;
        let ending = self.work(runner, fence, held.attempt).await;
        self.registration = None;
        match ending {
            Ending::Over => {}
            Ending::Cancelled => self.let_stop(runner).await,
            Ending::Halted => self.release(runner, fence).await,
        }
    }

    async fn work(&mut self, runner: &Runner, fence: i64, attempt: i64) -> Ending {
        let mut in_flight: Option<InFlight> = None;
        loop {
            if in_flight.is_none() {
                let said = self.outbox.take();
                if self.outcome.is_some() || !said.is_empty() || self.must_reveal() {
                    in_flight = self.hand_over(runner, fence, attempt, said);
                }
            }
            let idle = in_flight.is_none();
            let over = self.outcome.is_some()
                || in_flight.as_ref().is_some_and(|change| !matches!(change.step, Step::Report { .. }));
            tokio::select! {
                biased;
                result = receipt(&mut in_flight) => {
                    let Some(InFlight { step, pausing, .. }) = in_flight.take() else { continue };
                    match result {
                        Ok(committed) if matches!(step, Step::Report { .. }) => self.size = committed.size,
                        Ok(_) => {
                            if matches!(step, Step::Retry { .. }) {
                                runner.wake();
                            }
                            return Ending::Over;
                        }
                        Err(NotCommitted::Conflict(met)) => {
                            self.lost(runner, fence, met, pausing).await;
                            return Ending::Over;
                        }
                        Err(NotCommitted::Unavailable(_) | NotCommitted::KeyUsed(_)) => return Ending::Over,
                    }
                }
                () = self.cancel.cancelled() => return Ending::Cancelled,
                () = runner.halted.cancelled() => return Ending::Halted,
                ended = poll_fn(|cx| poll_agent(&mut self.agent, cx)), if !over => {
                    self.outcome = Some(self.outcome_of(ended));
                }
                () = self.outbox.something(), if idle && !over => {}
                () = tokio::time::sleep_until(self.deadline), if !over => {
                    let text = format!("the turn took longer than {:?}", runner.limits.run_time);
                    self.outcome = Some(Outcome::Failed { message: Some(self.word(text)), retryable: false });
                }
                () = reveal(self.reveal_at), if idle && self.standing.visibility == Visibility::Undecided => {}
            }
        }
    }

    /// The outcome of an agent that has ended, one way or the other.
    fn outcome_of(&self, ended: Result<Outcome, Panicked>) -> Outcome {
        ended.unwrap_or_else(|Panicked(text)| {
            tracing::error!(task = %self.names.task, panic = text, "an agent panicked");
            let said = self.word("the agent stopped unexpectedly");
            let message = Some(Message { metadata: Some(after_panic()), ..said });
            Outcome::Failed { message, retryable: false }
        })
    }

    /// Makes the change out of what has been said, and the outcome if there is one; `None` when nothing is left.
    fn hand_over(
        &mut self,
        runner: &Runner,
        fence: i64,
        attempt: i64,
        said: Vec<Update>,
    ) -> Option<InFlight> {
        let now = runner.clock().now();
        let mut said = self.spell_out(said);
        if self.must_reveal() && said.is_empty() && self.outcome.is_none() {
            said.push(Update::Working(None));
        }
        self.closed.keep(&mut said);
        self.begin_anew(&mut said);
        self.name_results(&mut said);
        if let Some(too_large) = self.outgrown(runner, &said, self.outcome.as_ref()) {
            said.clear();
            (self.agent, self.outcome) = (None, Some(too_large));
        }
        let mut outcome = self.outcome.take();
        let mut retry = None;
        if matches!(outcome, Some(Outcome::Failed { retryable: true, .. }))
            && attempt < i64::from(runner.limits.attempts)
        {
            let text = format!("attempt {attempt} of {} failed, trying again", runner.limits.attempts);
            said.push(Update::Working(Some(self.word(text))));
            retry = Some(Step::Retry { fence, at: runner.next_attempt(attempt) });
            outcome = None;
        }
        let before = self.standing;
        let advanced = advance::advance(&self.names, before, said, outcome, now);
        self.standing = advanced.standing;
        let step = match (retry, advanced.ended) {
            (_, true) if self.standing.state.is_interrupted() => Step::Pause { fence },
            (_, true) => Step::Finish { fence },
            (Some(retry), false) => retry,
            (None, false) => Step::Report { fence },
        };
        if advanced.events.is_empty() && advanced.saved.is_none() && step == (Step::Report { fence }) {
            return None;
        }
        // A pause can be refused because the client said more meanwhile; what was said with it is said again then.
        let pausing =
            matches!(step, Step::Pause { .. }).then(|| (advanced.events.clone(), advanced.saved.clone()));
        let visibility = (before.visibility != self.standing.visibility).then_some(self.standing.visibility);
        let change = self.change(step, advanced.events, advanced.saved, visibility, now);
        Some(InFlight { receipt: runner.store().commit(change), step, pausing })
    }

    /// The outcome of a turn with which the task would be larger than it may be.
    fn outgrown(&self, runner: &Runner, said: &[Update], outcome: Option<&Outcome>) -> Option<Outcome> {
        let max = runner.limits.max_task;
        let more = said.iter().map(Update::size).sum::<u64>() + outcome.map_or(0, Outcome::size);
        // An end that says nothing always fits: what was recorded may be a little more than was reckoned.
        if more == 0 || self.size + more <= max {
            return None;
        }
        let text = format!("the task is larger than {max} bytes");
        Some(Outcome::Failed { message: Some(self.word(text)), retryable: false })
    }

    /// A bare answer to a client that can be given tasks only is the task's one artifact too.
    fn spell_out(&mut self, mut said: Vec<Update>) -> Vec<Update> {
        // Saving says nothing to the client.
        let word = said.iter().position(|update| !matches!(update, Update::Save(_)));
        let Some(at) = word.filter(|_| std::mem::take(&mut self.tasks_only)) else { return said };
        if let Update::Message(message) = &said[at] {
            let artifact = Artifact { name: None, ..Artifact::new("answer", message.parts.clone()) };
            said.insert(at, Update::Artifact { artifact, append: false, last: true });
        }
        said
    }

    /// An artifact that its agent leaves without a name has that of the skill that was asked for. Chunks that are
    /// appended keep the name of the first.
    fn name_results(&self, said: &mut [Update]) {
        let Some(skill) = &self.skill else { return };
        for update in said {
            if let Update::Artifact {
                artifact: artifact @ Artifact { name: None, .. }, append: false, ..
            } = update
            {
                artifact.name = Some(format!("{skill}-result"));
            }
        }
    }

    /// A run that starts over begins every artifact anew, so that clients replace what the run before left
    /// unfinished instead of adding to it.
    fn begin_anew(&mut self, said: &mut [Update]) {
        for update in said {
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
        // A bare message says nothing about the state it leads to, nor since when.
        let bare = events.iter().any(|event| matches!(event, Event::Message(_)));
        let log = Log::pack(events.into_iter().map(|event| (event, None)));
        Change::Advance(Box::new(Advance {
            no: self.no,
            step,
            status: log.status().or_else(|| bare.then_some((self.standing.state, now))),
            log,
            visibility,
            saved,
            skill: None,
            key: None,
        }))
    }

    /// The row was not as expected: somebody moved the task on, or said more to one that wanted to pause.
    async fn lost(&mut self, runner: &Runner, fence: i64, met: Conflict, pausing: Option<Pausing>) {
        match pausing {
            Some((events, saved)) if met.fence == fence && met.unanswered > 0 => {
                let now = runner.clock().now();
                self.standing = Standing { state: TaskState::Working, visibility: Visibility::Visible };
                let events = events.into_iter().map(|event| self.keep_working(event, now)).collect();
                let step = Step::Again { fence, at: now };
                let again = self.change(step, events, saved, Some(Visibility::Visible), now);
                let _ = runner.store().commit(again).await;
                runner.wake();
            }
            _ => {
                tracing::debug!(task = %self.names.task, "lost_race: the task has moved on, the run's last word is dropped")
            }
        }
    }

    /// The question of a pause that is passed over becomes progress: the answer may be there already.
    fn keep_working(&self, event: Event, now: Timestamp) -> Event {
        match event {
            Event::Status(update) if update.status.state.is_interrupted() => {
                self.names.status(TaskState::Working, update.status.message, now)
            }
            other => other,
        }
    }

    /// The work is no longer wanted: the agent has been told and gets a moment to stop by itself, unless the process ends.
    async fn let_stop(mut self, runner: &Runner) {
        if let Some(agent) = self.agent.take() {
            tokio::select! {
                _ = tokio::time::timeout(STOP_GRACE, agent) => {}
                () = runner.halted.cancelled() => {}
            }
        }
    }

    /// The process ends: this store's next process takes the turn up again, unless it must not run twice.
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
        due && self.standing.visibility == Visibility::Undecided
    }

    /// Something the runner itself has to say, in the agent's name.
    fn word(&self, text: impl Into<String>) -> Message {
        word(&self.names, text)
    }
}

/// Polls an agent that has not ended yet; it is gone when it has.
fn poll_agent(agent: &mut Option<Fenced>, cx: &mut Context<'_>) -> Poll<Result<Outcome, Panicked>> {
    let Some(running) = agent else { return Poll::Pending };
    let polled = Pin::new(running).poll(cx);
    if polled.is_ready() {
        *agent = None;
    }
    polled
}

/// A message in the agent's name.
pub(crate) fn word(names: &Names, text: impl Into<String>) -> Message {
    Message {
        context_id: Some(names.context.clone()),
        task_id: Some(names.task.clone()),
        ..Message::new(uuid::Uuid::new_v4().to_string(), Role::Agent, vec![Part::text(text)])
    }
}

/// Records that a task failed before its agent could run.
pub(super) fn failed(names: &Names, no: TaskNo, fence: i64, text: &str, now: Timestamp) -> Change {
    let event = names.status(TaskState::Failed, Some(word(names, text)), now);
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
    /// The last change is in, or is not ours to make.
    Over,
    /// A client ended the task.
    Cancelled,
    /// The process ends.
    Halted,
}

struct InFlight {
    receipt: Receipt,
    step: Step,
    pausing: Option<Pausing>,
}

/// What was said together with a pause.
type Pausing = (Vec<Event>, Option<Bytes>);

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
