//! Steps of a turn: the output of a finished step is kept, so that no later attempt runs it again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use serde_core::{Serialize, de::DeserializeOwned};

use super::{AgentError, AgentResult, Lost, Turn, Update, UpdateSender, turn::rejected};
use crate::{store::JournalStep, task::journal::GUARD_PREFIX};

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
        let step = match self.journal.begin(id.into())? {
            Begun::Finished { output, batch } => {
                self.updates.committed(batch).await?;
                return Ok(serde_json::from_slice(&output).map_err(UnreadableOutput)?);
            }
            Begun::Running(step) => step,
        };
        if self.journal.records_starts {
            step.write(&self.updates, None).await?;
        }
        let output = match work.await {
            Ok(output) => Bytes::from(serde_json::to_vec(&output).map_err(UnsavableOutput)?),
            Err(error) => {
                if self.journal.records_starts {
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
        OutcomeJournal { journal: Arc::clone(&self.journal), updates: self.updates.clone() }
    }
}

/// The connection to the task that is left when the work of a skill has ended.
pub(crate) struct OutcomeJournal {
    journal: Arc<Journal>,
    updates: UpdateSender,
}

impl OutcomeJournal {
    /// [`Turn::guard`].
    pub(crate) async fn guard<T>(&self, id: &str, work: impl Future<Output = T>) -> AgentResult<T> {
        let Begun::Running(step) = self.journal.begin(format!("{GUARD_PREFIX}{id}"))? else {
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

/// The steps of a turn, as its run knows them.
pub(crate) struct Journal {
    /// `None` until there is a step: most turns have none.
    steps: Mutex<Option<Box<Steps>>>,
    /// The start of each step is recorded too.
    records_starts: bool,
    /// Maximum size of the journal, in bytes.
    max: u64,
}

#[derive(Default)]
struct Steps {
    by_id: HashMap<String, Step>,
    /// Approximate size of the journal in the store, in bytes.
    size: u64,
}

#[derive(Default)]
struct Step {
    running: bool,
    /// The journal has an entry for it.
    recorded: bool,
    /// The output of a finished step, and the batch of updates with it; 0 if an earlier attempt has recorded it.
    output: Option<(Bytes, u64)>,
}

enum Begun<'a> {
    Finished { output: Bytes, batch: u64 },
    Running(RunningStep<'a>),
}

/// A step whose future runs; another one with the same id may start when it is dropped.
struct RunningStep<'a> {
    journal: &'a Journal,
    id: String,
}

impl Journal {
    /// The journal of a turn with what earlier attempts have recorded.
    pub(crate) fn new(recorded: Vec<JournalStep>, records_starts: bool, max: u64) -> Self {
        let mut steps = None;
        for JournalStep { id, output } in recorded {
            let steps: &mut Box<Steps> = steps.get_or_insert_default();
            steps.size += (STEP_SIZE + id.len() + output.as_ref().map_or(0, Bytes::len)) as u64;
            let output = output.filter(|output| !output.is_empty()).map(|output| (output, 0));
            steps.by_id.insert(id, Step { running: false, recorded: true, output });
        }
        Self { steps: Mutex::new(steps), records_starts, max }
    }

    fn begin(&self, id: String) -> AgentResult<Begun<'_>> {
        if id.is_empty() || id.len() > MAX_ID {
            let text = format!("expected a step id of 1 to {MAX_ID} bytes, not {}", id.len());
            return Err(AgentError::new(text));
        }
        let mut steps = self.lock();
        let step = steps.get_or_insert_default().by_id.entry(id.clone()).or_default();
        if let Some((output, batch)) = step.output.clone() {
            return Ok(Begun::Finished { output, batch });
        }
        if std::mem::replace(&mut step.running, true) {
            let text = format!("step {id:?} is running already; give each step of a turn its own id");
            return Err(AgentError::new(text));
        }
        drop(steps);
        Ok(Begun::Running(RunningStep { journal: self, id }))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Steps>>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningStep<'_> {
    /// Records the start of a step or its output; resolves when it is on disk.
    async fn write(&self, updates: &UpdateSender, output: Option<Bytes>) -> Result<(), Lost> {
        if let Err(too_large) = self.reserve(output.as_ref()) {
            updates.fail(too_large.into());
            return Err(Lost);
        }
        let update = Update::Step { id: self.id.clone(), output: output.clone() };
        let batch = match updates.send(vec![update]).await {
            Ok(batch) => batch,
            Err(lost) => return rejected(lost).await.map(drop),
        };
        if let Some(output) = output.filter(|output| !output.is_empty()) {
            self.finish(output, batch);
        }
        updates.committed(batch).await
    }

    /// Counts what is about to be recorded.
    fn reserve(&self, output: Option<&Bytes>) -> Result<(), JournalTooLarge> {
        self.update(|step, size| {
            let id = if std::mem::replace(&mut step.recorded, true) { 0 } else { STEP_SIZE + self.id.len() };
            *size += (id + output.map_or(0, Bytes::len)) as u64;
            let (size, max) = (*size, self.journal.max);
            if size > max { Err(JournalTooLarge { size, max }) } else { Ok(()) }
        })
    }

    fn finish(&self, output: Bytes, batch: u64) {
        self.update(|step, _| step.output = Some((output, batch)));
    }

    fn update<T>(&self, update: impl FnOnce(&mut Step, &mut u64) -> T) -> T {
        let mut steps = self.journal.lock();
        let Steps { by_id, size } = &mut **steps.get_or_insert_default();
        update(by_id.entry(self.id.clone()).or_default(), size)
    }
}

impl Drop for RunningStep<'_> {
    fn drop(&mut self) {
        self.update(|step, _| step.running = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_id_is_bounded_and_runs_once_at_a_time() {
        let journal = Journal::new(Vec::new(), false, 1_000);
        for id in [String::new(), "x".repeat(MAX_ID + 1)] {
            let Err(error) = journal.begin(id.clone()) else { panic!("{id:?} is accepted") };
            assert_eq!(error.to_string(), format!("expected a step id of 1 to 200 bytes, not {}", id.len()));
        }
        let Ok(Begun::Running(first)) = journal.begin("x".repeat(MAX_ID)) else { panic!("rejected") };
        let Err(error) = journal.begin("x".repeat(MAX_ID)) else { panic!("two steps have the same id") };
        assert!(error.to_string().ends_with("is running already; give each step of a turn its own id"));
        drop(first);
        assert!(matches!(journal.begin("x".repeat(MAX_ID)), Ok(Begun::Running(_))));
    }

    #[test]
    fn recorded_steps_count_towards_the_limit_and_their_ids_count_once() {
        let step = |id: &str, output: Option<&'static str>| JournalStep {
            id: id.into(),
            output: output.map(Bytes::from),
        };
        let journal = Journal::new(vec![step("a", Some("12")), step("b", None)], true, 266);
        assert!(
            matches!(journal.begin("a".into()), Ok(Begun::Finished { output, batch: 0 }) if output == "12")
        );
        let Ok(Begun::Running(begun)) = journal.begin("b".into()) else { panic!("no output is recorded") };
        // 260 bytes are recorded: both steps, their ids and the output.
        assert!(begun.reserve(None).is_ok() && begun.reserve(Some(&"123456".into())).is_ok());
        let too_large = begun.reserve(Some(&"7".into())).unwrap_err();
        assert_eq!((too_large.size, too_large.max), (267, 266));
    }
}
