//! Decides what one attempt at a turn records: the events and the step of each change, up to the one that
//! ends the turn. The runner commits what is decided here and nothing else.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use protocol::{Artifact, ArtifactId, Event, Message, TaskState, Timestamp};

use super::{
    CurrentState, PublicIds,
    advance::{self, Advanced},
    artifact_log::ArtifactLog,
    earlier_artifacts::EarlierArtifacts,
};
use crate::{
    agent::{OnCrash, Outcome, Update, agent_message},
    ids::TaskNo,
    log::{Corrupt, Entry, Log},
    runner::Limits,
    store::{Advance, Conflict, JournalChange, Step, Visibility},
};

/// Failure text of an interrupted turn with [`OnCrash::Fail`].
pub const INTERRUPTED: &str = "interrupted: the server stopped while this ran, and it must not run twice";

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
    /// Size of the task's log, in bytes.
    pub size: u64,
    /// The requested skill.
    pub skill: Option<String>,
    /// Artifacts whose last chunk is not recorded: a further chunk is appended to them. A chunk of any other
    /// artifact is its first one.
    pub open_artifacts: HashSet<ArtifactId>,
    /// Artifacts of earlier turns of a reopened task.
    pub earlier_artifacts: EarlierArtifacts,
    /// The client's dialect has no bare messages, and the agent has not sent an update yet.
    pub tasks_only: bool,
}

/// What is remembered of a change while it is committed.
#[derive(Debug)]
pub struct TurnChange {
    /// The step of the change.
    pub step: Step,
    /// Of a pause: the content, to be recorded again if the pause is rejected.
    pause: Option<(Vec<Event>, Option<Bytes>)>,
}

impl TurnChange {
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
            skill: None,
            open_artifacts: HashSet::new(),
            earlier_artifacts: EarlierArtifacts::default(),
            tasks_only: false,
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
        (self.advance(updates, outcome, now), later)
    }

    /// What the next change records: the updates, and the outcome if there is one. `None` when there is
    /// nothing to record. A retry is due at `retry_at`.
    pub fn record(
        &mut self,
        lease: Lease,
        updates: Vec<Update>,
        outcome: Option<Outcome>,
        limits: &Limits,
        now: Timestamp,
        retry_at: impl FnOnce() -> Timestamp,
    ) -> Option<(Advance, TurnChange)> {
        let Lease { fence, attempt } = lease;
        let (mut updates, mut outcome) = self.prepare(updates, outcome, limits);
        let retries = outcome.as_ref().is_some_and(is_retryable) && attempt < i64::from(limits.attempts);
        if retries {
            let text = format!("attempt {attempt} of {} failed, trying again", limits.attempts);
            updates.push(Update::Working(Some(self.names.message(text))));
            outcome = None;
        }
        let before = self.current.visibility;
        let Advanced { events, saved, ended, .. } = self.advance(updates, outcome, now);
        let step = match ended {
            true if self.current.state.is_interrupted() => Step::Pause { fence },
            true => Step::Finish { fence },
            false if retries => Step::Retry { fence, at: retry_at() },
            false => Step::Report { fence },
        };
        if events.is_empty() && saved.is_none() && matches!(step, Step::Report { .. }) {
            return None;
        }
        let pause = matches!(step, Step::Pause { .. }).then(|| (events.clone(), saved.clone()));
        let visibility = (before != self.current.visibility).then_some(self.current.visibility);
        Some((self.change(step, events, saved, visibility, now), TurnChange { step, pause }))
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
        let (events, saved) = rejected.pause.filter(|_| met.fence == lease.fence && met.unanswered > 0)?;
        self.current = CurrentState { state: TaskState::Working, visibility: Visibility::Visible };
        let events = events.into_iter().map(|event| self.as_progress(event, now)).collect();
        let step = Step::Requeue { fence: lease.fence, at: now };
        Some(self.change(step, events, saved, Some(Visibility::Visible), now))
    }

    /// What to record when the process ends before the turn: the next process on this store runs the turn
    /// again, unless it must not run twice.
    pub fn release(&self, fence: i64, on_crash: OnCrash, now: Timestamp) -> Advance {
        match on_crash {
            OnCrash::Fail => failure(self.no, &self.names, fence, INTERRUPTED, now),
            OnCrash::Retry | OnCrash::Resume => {
                self.change(Step::Release { fence, at: now }, Vec::new(), None, None, now)
            }
        }
    }

    fn advance(&mut self, updates: Vec<Update>, outcome: Option<Outcome>, now: Timestamp) -> Advanced {
        let advanced = advance::advance(&self.names, self.current, updates, outcome, now);
        self.current = advanced.current;
        advanced
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
                    if artifact.name.is_none() && self.skill.is_none() {
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
            outcome => outcome,
        }
    }

    /// For a dialect without bare messages, a bare message also becomes the task's only artifact.
    fn add_answer_artifact(&mut self, updates: &mut Vec<Update>) {
        // Checkpoints are not visible to the client.
        let first_visible = updates.iter().position(|update| !matches!(update, Update::Save(_)));
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
        Some(Outcome::fail(format!("the task is larger than {max} bytes")))
    }

    fn change(
        &self,
        step: Step,
        events: Vec<Event>,
        saved: Option<Bytes>,
        visibility: Option<Visibility>,
        now: Timestamp,
    ) -> Advance {
        // A bare message has neither state nor timestamp.
        let bare = events.iter().any(|event| matches!(event, Event::Message(_)));
        let log = Log::pack(events.into_iter().map(|event| (event, None)));
        Advance {
            status: log.status().or_else(|| bare.then_some((self.current.state, now))),
            log,
            visibility,
            saved,
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
pub fn failure(no: TaskNo, names: &PublicIds, fence: i64, reason: &str, now: Timestamp) -> Advance {
    let event = names.status(TaskState::Failed, Some(names.message(reason)), now);
    Advance {
        log: Log::pack([(event, None)]),
        status: Some((TaskState::Failed, now)),
        visibility: Some(Visibility::Visible),
        journal: JournalChange::Clear,
        ..Advance::new(no, Step::Finish { fence })
    }
}

fn is_retryable(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { retryable: true, .. })
}

impl PublicIds {
    /// A message of the engine to the client, in the agent's role.
    pub(crate) fn message(&self, text: impl Into<String>) -> Message {
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
