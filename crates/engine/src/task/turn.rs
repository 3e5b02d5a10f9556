//! Decides what one attempt at a turn records: the events and the step of each change, up to the one that
//! ends the turn. The runner commits what is decided here and nothing else.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use protocol::{Artifact, ArtifactId, Event, Message, TaskState, Timestamp};

use super::{
    CurrentState, PublicIds, Reason,
    advance::{self, Advanced},
    artifact_log::ArtifactLog,
    earlier_artifacts::EarlierArtifacts,
    journal::{TurnEnd, TurnJournal},
};
use crate::{
    agent::{OnCrash, Outcome, Update, agent_message},
    ids::TaskNo,
    log::{Corrupt, Entry, Log},
    runner::Limits,
    store::{Advance, Conflict, JournalChange, SavedState, Step, TaskRow, Visibility},
};

/// The right to write for one attempt at a turn.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    /// The fencing token.
    pub fence: i64,
    /// Attempt number, from 1.
    pub attempt: i64,
}

/// One attempt at a turn: what is known about the task, and what the next change records.
#[derive(Clone, Debug)]
pub struct TurnState {
    /// The task's number.
    pub no: TaskNo,
    /// The public ids of the task.
    pub names: PublicIds,
    /// State and visibility after everything that was recorded.
    pub current: CurrentState,
    /// Size of the task's log without progress messages, in bytes.
    pub size: u64,
    /// Size of the progress messages in the task's log, in bytes.
    pub progress_size: u64,
    /// The task's skill.
    pub skill: Option<String>,
    /// The client has named it: results are named after it.
    pub is_skill_named: bool,
    /// Artifacts whose last chunk is not recorded: a further chunk is appended to them. A chunk of any other
    /// artifact is its first one.
    pub open_artifacts: HashSet<ArtifactId>,
    /// Artifacts of earlier turns of a reopened task.
    pub earlier_artifacts: EarlierArtifacts,
    /// The client's dialect has no bare messages, and the agent has not sent an update yet.
    pub tasks_only: bool,
    /// The steps that are recorded for the turn.
    pub journal: TurnJournal,
    /// The checkpoint with which the attempt begins.
    pub saved: Option<Bytes>,
    /// Checkpoints and artifacts are progress too, because the turn is resumed from them ([`OnCrash::Resume`]).
    pub resumes: bool,
    /// Attempts and crashes are counted anew when the turn makes progress, because there were some.
    pub counted: bool,
    /// The turn has made progress that is recorded: this is the first attempt since.
    pub progressed: bool,
    /// The run starts after a crash; its first change records that.
    pub crashed: bool,
    /// Progress messages were dropped, and this is logged.
    pub drops_progress: bool,
    /// Maximum attempts, the first included.
    pub attempts: u32,
}

/// What is remembered of a change while it is committed.
#[derive(Debug)]
pub struct TurnChange {
    /// The step of the change.
    pub step: Step,
    /// Whether it ends the counting of attempts and crashes so far.
    pub progress: bool,
    /// Of a pause: what it records, to be recorded again if the pause is rejected.
    pause: Option<Advanced>,
}

impl TurnChange {
    /// A change that the runner makes itself.
    pub(crate) fn of(step: Step) -> Self {
        Self { step, progress: false, pause: None }
    }

    /// Whether the run ends with this change.
    pub fn ends_run(&self) -> bool {
        !matches!(self.step, Step::Report { .. })
    }
}

impl TurnState {
    /// An attempt at a turn of a task without earlier artifacts.
    pub fn new(no: TaskNo, names: PublicIds, current: CurrentState) -> Self {
        Self {
            no,
            names,
            current,
            size: 0,
            progress_size: 0,
            skill: None,
            is_skill_named: false,
            open_artifacts: HashSet::new(),
            earlier_artifacts: EarlierArtifacts::default(),
            tasks_only: false,
            journal: TurnJournal::default(),
            saved: None,
            resumes: false,
            counted: false,
            progressed: false,
            crashed: false,
            drops_progress: false,
            attempts: Limits::default().attempts,
        }
    }

    /// What joins the commit that starts the turn, and the outcome that is left for [`record`](Self::record):
    /// whether a failure is retried is decided there.
    pub fn record_first(
        &mut self,
        updates: Vec<Update>,
        outcome: Option<Outcome>,
        limits: &Limits,
        now: Timestamp,
    ) -> (Advanced, Option<Outcome>) {
        let (updates, mut outcome) = self.prepare(updates, outcome, limits);
        let later = outcome.take_if(|outcome| is_retryable(outcome));
        self.progress_size += updates.iter().map(Update::progress_size).sum::<u64>();
        (self.advance(updates, outcome, now), later)
    }

    /// What the next change records: the updates, and the outcome if there is one. `None` when there is
    /// nothing to record. A retry is due at `retry_at` of the number of attempts made.
    pub fn record(
        &mut self,
        lease: Lease,
        updates: Vec<Update>,
        outcome: Option<Outcome>,
        limits: &Limits,
        now: Timestamp,
        retry_at: impl FnOnce(i64) -> Timestamp,
    ) -> Option<(Advance, TurnChange)> {
        let fence = lease.fence;
        let (mut updates, mut outcome) = self.prepare(updates, outcome, limits);
        let progress = self.counted && updates.iter().any(|update| self.is_progress(update));
        if progress {
            (self.counted, self.progressed) = (false, true);
        }
        let attempt = if self.progressed { 1 } else { lease.attempt };
        let retries = self.decide_retry((attempt, self.attempts), &mut updates, &mut outcome);
        if std::mem::take(&mut self.crashed) {
            let text = format!("attempt {attempt} of {}: the server stopped while this ran", self.attempts);
            let note = self.names.explain(text, Reason::Crashed, Some((attempt, self.attempts)));
            updates.insert(0, Update::Working(Some(note)));
        }
        let before = self.current.visibility;
        let advanced = self.advance(updates, outcome, now);
        let step = match advanced.ended {
            true if self.current.state.is_interrupted() => Step::Pause { fence },
            true => Step::Finish { fence },
            // A run that was repeated before it made progress waits, so that it is not repeated all the time.
            false if retries => {
                Step::Retry { fence, at: retry_at(if self.progressed { 2 } else { attempt }) }
            }
            false => Step::Report { fence },
        };
        if advanced.is_empty() && matches!(step, Step::Report { .. }) {
            return None;
        }
        let pause = matches!(step, Step::Pause { .. }).then(|| advanced.clone());
        let visibility = (before != self.current.visibility).then_some(self.current.visibility);
        let change = Advance { progress, ..self.change(step, advanced, visibility, now) };
        Some((change, TurnChange { step, progress, pause }))
    }

    /// Decides whether a retryable failure is tried again: then it becomes a progress message. The last one is the
    /// outcome.
    fn decide_retry(
        &self,
        attempt: (i64, u32),
        updates: &mut Vec<Update>,
        outcome: &mut Option<Outcome>,
    ) -> bool {
        let Some(Outcome::Failed { message, retryable: true }) = outcome else { return false };
        let (made, max) = attempt;
        if made < i64::from(max) {
            let text = format!("attempt {made} of {max} failed, trying again");
            updates.push(Update::Working(Some(self.names.explain(text, Reason::Retry, Some(attempt)))));
            *outcome = None;
            return true;
        }
        let given =
            message.take().unwrap_or_else(|| self.names.message(format!("gave up after {max} attempts")));
        *message = Some(self.names.with_reason(given, Reason::Attempts, Some(attempt)));
        false
    }

    /// Whether an update is progress of the turn: a finished step, or what a resumed turn goes on from. A checkpoint that
    /// equals the one with which this attempt began is none: an agent may save the same at the start of each attempt.
    fn is_progress(&self, update: &Update) -> bool {
        match update {
            Update::Step(step) => step.is_progress(),
            Update::Save(state) => self.resumes && *state != self.saved.as_deref().unwrap_or_default(),
            Update::Artifact { .. } => self.resumes,
            Update::Working(_) | Update::Message(_) => false,
        }
    }

    /// What to record after a change was rejected. Only a pause is recorded in another form: when the client
    /// has sent a message meanwhile, the question becomes a progress message, because the client may have
    /// answered it already, and the turn is due again. Any other conflict has ended the run.
    pub fn after_conflict(
        &mut self,
        rejected: TurnChange,
        met: Conflict,
        lease: Lease,
        now: Timestamp,
    ) -> Option<Advance> {
        let pause = rejected.pause.filter(|_| met.fence == lease.fence && met.unanswered > 0)?;
        self.current = CurrentState { state: TaskState::Working, visibility: Visibility::Visible };
        let events = pause.events.into_iter().map(|event| self.as_progress(event, now)).collect();
        let step = Step::Requeue { fence: lease.fence, at: now };
        let change = self.change(step, Advanced { events, ..pause }, Some(Visibility::Visible), now);
        // The next turn has a message that came while this one worked.
        Some(Advance { admitted: Some(false), ..change })
    }

    /// What to record when the process ends before the turn: the next process on this store runs the turn
    /// again, unless it must not run twice.
    pub fn release(&self, fence: i64, on_crash: OnCrash, now: Timestamp) -> Advance {
        let interruption = match on_crash {
            OnCrash::Fail => self.journal.interruption(&self.names),
            OnCrash::Retry | OnCrash::Resume => None,
        };
        match interruption {
            Some(message) => failure(self.no, &self.names, fence, message, now),
            None => Advance::new(self.no, Step::Release { fence, at: now }),
        }
    }

    fn advance(&mut self, updates: Vec<Update>, outcome: Option<Outcome>, now: Timestamp) -> Advanced {
        let advanced = advance::advance(&self.names, self.current, updates, outcome, now);
        self.current = advanced.current;
        let end = match advanced.ended {
            false => TurnEnd::Open,
            true if self.current.state.is_interrupted() => TurnEnd::Interrupted,
            true => TurnEnd::Terminal,
        };
        let journal = self.journal.change(advanced.journal, end);
        Advanced { journal, ..advanced }
    }

    /// Brings an agent's updates and outcome into the form in which they are recorded. If they are too large,
    /// they are replaced by a failure.
    fn prepare(
        &mut self,
        mut updates: Vec<Update>,
        outcome: Option<Outcome>,
        limits: &Limits,
    ) -> (Vec<Update>, Option<Outcome>) {
        let outcome = outcome.map(|outcome| self.split_outcome(&mut updates, outcome));
        self.drop_excess_progress(&mut updates, limits);
        self.add_answer_artifact(&mut updates);
        self.earlier_artifacts.rename_reused(&mut updates);
        self.begin_artifacts(&mut updates);
        self.name_results(&mut updates);
        match self.size_limit_outcome(&updates, outcome.as_ref(), limits) {
            Some(too_large) => (Vec::new(), Some(too_large)),
            None => (updates, outcome),
        }
    }

    /// Moves an outcome's artifacts and bare message to the updates, where the rules for updates apply to them.
    fn split_outcome(&self, updates: &mut Vec<Update>, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Done { artifacts, message } => {
                updates.extend(artifacts.into_iter().map(|mut artifact| {
                    if artifact.name.is_none() && !self.is_skill_named {
                        artifact.name = Some(artifact.id.to_string());
                    }
                    Update::Artifact { artifact, append: false, last: true }
                }));
                Outcome::Done { artifacts: Vec::new(), message }
            }
            Outcome::Message(message) => {
                updates.push(Update::Message(message));
                Outcome::done()
            }
            Outcome::With { updates: more, outcome } => {
                updates.extend(more);
                self.split_outcome(updates, *outcome)
            }
            outcome => outcome,
        }
    }

    /// Drops progress messages beyond the size that a task may have without them: they do not count towards its limit,
    /// and the log has to be bounded.
    fn drop_excess_progress(&mut self, updates: &mut [Update], limits: &Limits) {
        let mut size = self.progress_size;
        for update in updates.iter_mut().filter(|update| update.progress_size() > 0) {
            if size + update.progress_size() <= limits.max_task {
                size += update.progress_size();
                continue;
            }
            *update = Update::Working(None);
            if !std::mem::replace(&mut self.drops_progress, true) {
                let max = limits.max_task;
                tracing::warn!(task = %self.names.task, "a task has more than {max} bytes of progress messages; further ones are dropped");
            }
        }
    }

    /// For a dialect without bare messages, a bare message also becomes the task's only artifact.
    fn add_answer_artifact(&mut self, updates: &mut Vec<Update>) {
        // Checkpoints and steps are not visible to the client.
        let is_hidden = |update: &Update| matches!(update, Update::Save(_) | Update::Step(_));
        let first_visible = updates.iter().position(|update| !is_hidden(update));
        let Some(at) = first_visible.filter(|_| std::mem::take(&mut self.tasks_only)) else { return };
        if let Update::Message(message) = &updates[at] {
            let artifact = Artifact { name: None, ..Artifact::new("answer", message.parts.clone()) };
            updates.insert(at, Update::Artifact { artifact, append: false, last: true });
        }
    }

    /// The first chunk of an artifact is not appended; in a retried run it replaces what the previous attempt
    /// recorded.
    fn begin_artifacts(&mut self, updates: &mut [Update]) {
        for update in updates {
            if let Update::Artifact { artifact, append, last } = update {
                *append &= self.open_artifacts.contains(&artifact.id);
                if *last {
                    self.open_artifacts.remove(&artifact.id);
                } else {
                    self.open_artifacts.insert(artifact.id.clone());
                }
            }
        }
    }

    /// Names an unnamed artifact after the skill that the client has named. Appended chunks keep the name of the first.
    fn name_results(&self, updates: &mut [Update]) {
        let Some(skill) = self.skill.as_ref().filter(|_| self.is_skill_named) else { return };
        for update in updates {
            if let Update::Artifact {
                artifact: artifact @ Artifact { name: None, .. }, append: false, ..
            } = update
            {
                artifact.name = Some(format!("{skill}-result"));
            }
        }
    }

    /// A failure, if the updates and the outcome would exceed the task's size limit.
    fn size_limit_outcome(
        &self,
        updates: &[Update],
        outcome: Option<&Outcome>,
        limits: &Limits,
    ) -> Option<Outcome> {
        let max = limits.max_task;
        let more = updates.iter().map(Update::size).sum::<u64>() + outcome.map_or(0, Outcome::size);
        // An outcome without a message always fits, because the size is an estimate and may be exceeded
        // slightly.
        if more == 0 || self.size + more <= max {
            return None;
        }
        let text = format!("the task is larger than {max} bytes");
        let message = Some(self.names.explain(text, Reason::TooLarge, None));
        Some(Outcome::Failed { message, retryable: false })
    }

    fn change(
        &mut self,
        step: Step,
        advanced: Advanced,
        visibility: Option<Visibility>,
        now: Timestamp,
    ) -> Advance {
        let Advanced { events, saved, journal, .. } = advanced;
        // A bare message has neither state nor timestamp.
        let bare = events.iter().any(|event| matches!(event, Event::Message(_)));
        let log = Log::pack(events.into_iter().map(|event| (event, None)));
        self.progress_size += log.progress_size();
        Advance {
            status: log.status().or_else(|| bare.then_some((self.current.state, now))),
            progress_size: log.progress_size(),
            log,
            visibility,
            saved: saved.map(|state| SavedState::new(self.skill.as_deref(), state)),
            journal,
            ..Advance::new(self.no, step)
        }
    }

    fn as_progress(&self, event: Event, now: Timestamp) -> Event {
        match event {
            Event::Status(update) if update.status.state.is_interrupted() => {
                self.names.status(TaskState::Working, update.status.message, now)
            }
            other => other,
        }
    }
}

/// The artifacts of a log whose last chunk is not recorded.
pub fn open_artifacts(log: &[Arc<Entry>]) -> Result<HashSet<ArtifactId>, Corrupt> {
    Ok(ArtifactLog::of(log)?.open)
}

/// The change that fails a task whose agent cannot run.
pub fn failure(no: TaskNo, names: &PublicIds, fence: i64, message: Message, now: Timestamp) -> Advance {
    let event = names.status(TaskState::Failed, Some(message), now);
    Advance {
        log: Log::pack([(event, None)]),
        status: Some((TaskState::Failed, now)),
        visibility: Some(Visibility::Visible),
        journal: JournalChange::Clear,
        ..Advance::new(no, Step::Finish { fence })
    }
}

/// The change that fails a task that no process runs, unless it continues before.
pub fn expiry(row: &TaskRow, names: &PublicIds, why: Message, now: Timestamp) -> Advance {
    let event = names.status(TaskState::Failed, Some(why), now);
    Advance {
        log: Log::pack([(event, None)]),
        status: Some((TaskState::Failed, now)),
        visibility: Some(Visibility::Visible),
        journal: JournalChange::Clear,
        ..Advance::new(row.no, Step::Expire { fence: row.fence })
    }
}

fn is_retryable(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { retryable: true, .. })
}

impl PublicIds {
    /// A message of the engine to the client, in the agent's role.
    pub fn message(&self, text: impl Into<String>) -> Message {
        self.assign(agent_message(text.into()))
    }

    /// Assigns an agent's message to the task, where it names none.
    pub(super) fn assign(&self, message: Message) -> Message {
        Message {
            context_id: message.context_id.or_else(|| Some(self.context.clone())),
            task_id: message.task_id.or_else(|| Some(self.task.clone())),
            ..message
        }
    }
}
