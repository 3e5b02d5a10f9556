//! Steps of a turn and of its task: the output of a finished step is kept, so that no later attempt runs it again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use serde_core::{Serialize, de::DeserializeOwned};

use super::{AgentError, AgentResult, Lost, OnCrash, Turn, Update, UpdateSender, turn::rejected};
use crate::{
    log::Seq,
    store::{JournalStep, StepOwner},
    task::journal::GUARD_PREFIX,
};

/// Maximum length of a step id, in bytes.
const MAX_ID: usize = 200;
/// What a step counts in addition to its id and output, in bytes: its row and its entry in memory.
const STEP_SIZE: usize = 128;

impl Turn {
    /// Runs a part of the turn at most once to its end. If an earlier attempt has finished the step with this id, its
    /// output is returned and the future is never polled. Otherwise the future runs, and its output is on disk when this
    /// returns. An error is returned and not recorded: the next attempt runs the step again.
    ///
    /// Artifacts are not part of a step: with [`OnCrash::Retry`](super::OnCrash::Retry) the next attempt begins them
    /// anew, so an agent that writes an artifact between its steps needs [`OnCrash::Resume`](super::OnCrash::Resume).
    ///
    /// ```
    /// # async fn pay(key: String) -> a2ad_engine::AgentResult<String> { Ok(key) }
    /// # async fn run(turn: a2ad_engine::Turn) -> a2ad_engine::AgentResult<()> {
    /// let receipt: String = turn.step("pay", pay(turn.step_key("pay"))).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A crash between the end of the future and the commit runs the step again: pass [`step_key`](Self::step_key) to a
    /// backend that can deduplicate, or choose [`OnCrash::Fail`](super::OnCrash::Fail). The id is unique in the turn and
    /// the same in every attempt. Several steps may run at the same time. Cancel safe: a dropped step is recorded with
    /// its output or not at all.
    ///
    /// # Errors
    ///
    /// The error of the future; [`Lost`]; the id is empty, longer than 200 bytes, or that of a step that is running; the
    /// output cannot be written as JSON, or an earlier attempt has recorded another type. Outputs of more than
    /// `limits.max_journal` in one turn fail the turn with that reason, and this is answered with `Lost`.
    pub async fn step<T, F>(&self, id: impl Into<String>, work: F) -> AgentResult<T>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = AgentResult<T>>,
    {
        let id = id.into();
        if id.is_empty() || id.len() > MAX_ID {
            let text = format!("expected a step id of 1 to {MAX_ID} bytes, not {}", id.len());
            return Err(AgentError::new(text));
        }
        let step = match self.journal.begin(self.journal.turn, self.step_id(id))? {
            Begun::Finished { output, batch } => {
                self.updates.committed(batch).await?;
                return Ok(serde_json::from_slice(&output).map_err(UnreadableOutput)?);
            }
            Begun::Running(step) => step,
        };
        let records_start = self.on_crash == OnCrash::Fail;
        if records_start {
            step.write(&self.updates, None).await?;
        }
        let output = match work.await {
            Ok(output) => Bytes::from(serde_json::to_vec(&output).map_err(UnsavableOutput)?),
            Err(error) => {
                if records_start {
                    // It has ended: only a step that was interrupted must not run again.
                    step.write(&self.updates, Some(Bytes::new())).await?;
                }
                return Err(error);
            }
        };
        step.write(&self.updates, Some(output.clone())).await?;
        // What was recorded, so that this attempt and later ones have the same.
        Ok(serde_json::from_slice(&output).map_err(UnreadableOutput)?)
    }

    /// The idempotency key of a step, the same for all attempts of this turn.
    pub fn step_key(&self, id: &str) -> String {
        format!("{}:{id}", self.idempotency_key)
    }

    /// Runs work that may end the process, such as a check of a value that was made to exhaust it. Its start is on disk
    /// before the future is polled; if the process crashes meanwhile, the next one fails the task, whatever its
    /// [`OnCrash`](super::OnCrash) is, instead of crashing again.
    ///
    /// # Errors
    ///
    /// As for [`step`](Self::step), except those of the output. Cancel safe: the work counts as ended when the turn ends.
    pub async fn guard<T>(&self, id: &str, work: impl Future<Output = T>) -> AgentResult<T> {
        self.outcome_journal().guard(id, work).await
    }

    /// What a call of a skill needs after its work has ended.
    pub(crate) fn outcome_journal(&self) -> OutcomeJournal {
        let (journal, updates) = (Arc::clone(&self.journal), self.updates.clone());
        OutcomeJournal { journal, updates, call_id: self.call_id.clone() }
    }
}

/// The connection to the task that is left when the work of a skill has ended.
pub(crate) struct OutcomeJournal {
    journal: Arc<Journal>,
    updates: UpdateSender,
    /// Of a skill that other work of the task has called.
    call_id: Option<String>,
}

impl OutcomeJournal {
    /// [`Turn::guard`].
    pub(crate) async fn guard<T>(&self, id: &str, work: impl Future<Output = T>) -> AgentResult<T> {
        let call = self.call_id.as_ref().map(|call| format!(" of {call}")).unwrap_or_default();
        let Begun::Running(step) =
            self.journal.begin(self.journal.turn, format!("{GUARD_PREFIX}{id}{call}"))?
        else {
            return Err(AgentError::new(format!("a step has the id of the guard {id:?}")));
        };
        step.write(&self.updates, None).await?;
        let output = work.await;
        step.write(&self.updates, Some(Bytes::new())).await?;
        Ok(output)
    }

    /// Keeps the output of the run in its queue, until [`release_output`](Self::release_output).
    pub(crate) fn hold_output(&self) {
        self.updates.hold_output();
    }

    /// Lets the output of the run be recorded.
    pub(crate) fn release_output(&self) {
        self.updates.release_output();
    }
}

/// The text is for the client, the cause for the log.
#[derive(Debug, thiserror::Error)]
#[error("the recorded output of a step has another form than the agent expects")]
struct UnreadableOutput(#[source] serde_json::Error);

#[derive(Debug, thiserror::Error)]
#[error("the output of a step cannot be recorded")]
struct UnsavableOutput(#[source] serde_json::Error);

#[derive(Debug, thiserror::Error)]
#[error("the steps of this turn have an output of {size} bytes and limits.max_journal is {max} bytes")]
pub(crate) struct JournalTooLarge {
    size: u64,
    max: u64,
}

/// The steps of a turn and its task, as its run knows them.
pub(crate) struct Journal {
    /// The turn, as the owner of its steps.
    pub(crate) turn: StepOwner,
    /// `None` until there is a step: most turns have none.
    steps: Mutex<Option<Box<Steps>>>,
    /// Maximum size of the journal, in bytes.
    max: u64,
}

#[derive(Default)]
struct Steps {
    by_id: HashMap<StepKey, Step>,
    /// Approximate size of the journal in the store, in bytes.
    size: u64,
}

/// A step by its owner and its id.
type StepKey = (StepOwner, String);

#[derive(Default)]
struct Step {
    running: bool,
    /// It has begun in an earlier attempt, and not ended.
    is_interrupted: bool,
    /// Approximate size in the store, in bytes.
    size: u64,
    /// The output of a finished step, and the batch of updates with it; 0 if an earlier attempt has recorded it.
    output: Option<(Bytes, u64)>,
}

pub(crate) enum Begun<'a> {
    Finished { output: Bytes, batch: u64 },
    Running(RunningStep<'a>),
}

/// A step whose future runs; another one with the same id may start when it is dropped.
pub(crate) struct RunningStep<'a> {
    journal: &'a Journal,
    key: StepKey,
    /// It has begun in an earlier attempt, and not ended.
    pub(crate) is_interrupted: bool,
}

impl Journal {
    /// The journal of a turn with what earlier attempts have recorded.
    pub(crate) fn new(turn: Seq, recorded: Vec<JournalStep>, max: u64) -> Self {
        let steps = (!recorded.is_empty()).then(|| Box::new(Steps::recorded(recorded)));
        Self { turn: StepOwner::Turn(turn), steps: Mutex::new(steps), max }
    }

    /// Begins a step of the turn, or of the task, unless it is finished or running.
    pub(crate) fn begin(&self, owner: StepOwner, id: String) -> AgentResult<Begun<'_>> {
        let key = (owner, id);
        let mut steps = self.lock();
        let step = steps.get_or_insert_default().by_id.entry(key.clone()).or_default();
        if let Some((output, batch)) = step.output.clone() {
            return Ok(Begun::Finished { output, batch });
        }
        if std::mem::replace(&mut step.running, true) {
            let text = format!("step {:?} is running already; give each step of a turn its own id", key.1);
            return Err(AgentError::new(text));
        }
        let is_interrupted = step.is_interrupted;
        drop(steps);
        Ok(Begun::Running(RunningStep { journal: self, key, is_interrupted }))
    }

    /// Maximum size of the journal, in bytes.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The output of a finished step.
    pub(crate) fn output(&self, owner: StepOwner, id: &str) -> Option<Bytes> {
        let steps = self.lock();
        let step = steps.as_ref()?.by_id.get(&(owner, id.to_owned()))?;
        step.output.as_ref().map(|(output, _)| output.clone())
    }

    /// Records updates with steps; resolves when they are on disk.
    pub(crate) async fn write(&self, sender: &UpdateSender, updates: Vec<Update>) -> Result<(), Lost> {
        let steps = Update::steps(&updates);
        if let Err(too_large) = self.count(&steps) {
            sender.fail(too_large.into());
            return Err(Lost);
        }
        let batch = match sender.send(updates).await {
            Ok(batch) => batch,
            Err(lost) => return rejected(lost).await.map(drop),
        };
        self.finish(steps, batch);
        sender.committed(batch).await
    }

    /// Counts what is about to be recorded.
    pub(crate) fn count(&self, steps: &[JournalStep]) -> Result<(), JournalTooLarge> {
        let mut known = self.lock();
        let known = known.get_or_insert_default();
        steps.iter().for_each(|step| known.count(step));
        let (size, max) = (known.size, self.max);
        if size > max { Err(JournalTooLarge { size, max }) } else { Ok(()) }
    }

    /// Keeps the outputs of steps that are in this batch of updates.
    pub(crate) fn finish(&self, steps: Vec<JournalStep>, batch: u64) {
        let mut known = self.lock();
        let known = known.get_or_insert_default();
        for JournalStep { owner, id, output } in steps {
            let output = output.filter(|output| !output.is_empty()).map(|output| (output, batch));
            known.by_id.entry((owner, id)).or_default().output = output;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Steps>>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steps {
    fn recorded(recorded: Vec<JournalStep>) -> Self {
        let mut steps = Self::default();
        for step in recorded {
            steps.count(&step);
            let known = steps.by_id.entry((step.owner, step.id)).or_default();
            known.is_interrupted = step.output.is_none();
            known.output = step.output.filter(|output| !output.is_empty()).map(|output| (output, 0));
        }
        steps
    }

    /// Counts a step instead of what is recorded of it.
    fn count(&mut self, step: &JournalStep) {
        let size = (STEP_SIZE + step.size()) as u64;
        let known = self.by_id.entry((step.owner, step.id.clone())).or_default();
        self.size = self.size + size - std::mem::replace(&mut known.size, size);
    }
}

impl RunningStep<'_> {
    /// The step with this output; without one, its start.
    pub(crate) fn with_output(&self, output: Option<Bytes>) -> JournalStep {
        let (owner, id) = self.key.clone();
        JournalStep { owner, id, output }
    }

    /// Records the start of a step or its output; resolves when it is on disk.
    pub(crate) async fn write(&self, updates: &UpdateSender, output: Option<Bytes>) -> Result<(), Lost> {
        self.journal.write(updates, vec![Update::Step(self.with_output(output))]).await
    }
}

impl Drop for RunningStep<'_> {
    fn drop(&mut self) {
        if let Some(step) = self.journal.lock().as_mut().and_then(|steps| steps.by_id.get_mut(&self.key)) {
            step.running = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: StepOwner = StepOwner::Turn(1);

    fn step(id: &str, output: Option<&'static str>) -> JournalStep {
        JournalStep { owner: TURN, id: id.into(), output: output.map(Bytes::from) }
    }

    #[test]
    fn step_runs_once_at_a_time() {
        let journal = Journal::new(1, Vec::new(), 1_000);
        let Ok(Begun::Running(first)) = journal.begin(TURN, "a".into()) else { panic!("rejected") };
        let Err(error) = journal.begin(TURN, "a".into()) else { panic!("two steps have the same id") };
        assert!(error.to_string().ends_with("is running already; give each step of a turn its own id"));
        assert!(matches!(journal.begin(StepOwner::Task, "a".into()), Ok(Begun::Running(_))));
        drop(first);
        assert!(matches!(journal.begin(TURN, "a".into()), Ok(Begun::Running(_))));
    }

    #[test]
    fn recorded_steps_count_towards_the_limit_once() {
        let journal = Journal::new(1, vec![step("a", Some("12")), step("b", None)], 266);
        assert!(
            matches!(journal.begin(TURN, "a".into()), Ok(Begun::Finished { output, batch: 0 }) if output == "12")
        );
        let Ok(Begun::Running(begun)) = journal.begin(TURN, "b".into()) else {
            panic!("no output is recorded")
        };
        assert!(begun.is_interrupted);
        // 260 bytes are recorded: both steps, their ids and the output.
        assert!(
            journal.count(&[step("b", None)]).is_ok() && journal.count(&[step("b", Some("123456"))]).is_ok()
        );
        let too_large = journal.count(&[step("b", Some("1234567"))]).unwrap_err();
        assert_eq!((too_large.size, too_large.max), (267, 266));
    }
}
