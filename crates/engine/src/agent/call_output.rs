//! What a called skill records: its artifacts are kept for its caller, and the rest goes on to the task.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{
    AgentError, AgentResult, Journal, Lost, Outcome, Update,
    call::outcome_of_error,
    call_state::{CallState, saved_id},
    outcome::artifact_size,
};
use crate::store::{JournalStep, StepOwner};

/// The output of one call.
pub(crate) struct CallOutput {
    /// Id of the call in the journal.
    call: String,
    journal: Arc<Journal>,
    /// A later attempt goes on from the last checkpoint, so that the artifacts are recorded with it.
    resumes: bool,
    state: Mutex<State>,
}

struct State {
    call: CallState,
    /// Size of the artifacts, in bytes.
    size: u64,
    /// The skill has ended with a bare message.
    message: Option<Outcome>,
    /// Why the call has failed, whatever the skill returns.
    failure: Option<AgentError>,
    is_closed: bool,
}

impl CallOutput {
    /// For a call in this state.
    pub(crate) fn new(call: String, state: CallState, journal: Arc<Journal>, resumes: bool) -> Self {
        let state = State { call: state, size: 0, message: None, failure: None, is_closed: false };
        Self { call, journal, resumes, state: Mutex::new(state) }
    }

    /// Keeps the output among the updates, and returns what goes on: progress messages and steps. What was taken and could
    /// not be sent can be taken again.
    pub(super) fn take(&self, updates: Vec<Update>) -> Result<Vec<Update>, Lost> {
        let mut state = self.state();
        if state.is_closed {
            return Err(Lost);
        }
        let mut sent = Vec::new();
        let mut checkpoint = None;
        for update in updates {
            match update {
                Update::Artifact { artifact, append, last } => {
                    state.size += artifact_size(&artifact);
                    state.call.add(&artifact, append, last);
                }
                Update::Message(message) => {
                    (state.message, state.is_closed) = (Some(Outcome::Message(message)), true);
                }
                Update::Save(bytes) => checkpoint = Some(bytes),
                Update::Working(None) => {}
                update => sent.push(update),
            }
        }
        sent.extend(checkpoint.into_iter().flat_map(|saved| self.checkpoint(&state, saved)));
        let max = self.journal.max();
        let failure = if state.size > max {
            let text = format!("the output of a called skill is larger than limits.max_journal, {max} bytes");
            Some(AgentError::new(text))
        } else {
            self.journal.count(&Update::steps(&sent)).err().map(AgentError::from)
        };
        match failure {
            None => Ok(sent),
            Some(failure) => {
                (state.failure, state.is_closed) = (Some(failure), true);
                Err(Lost)
            }
        }
    }

    /// A checkpoint; of a call that is resumed, with the artifacts so far.
    fn checkpoint(&self, state: &State, saved: Bytes) -> impl Iterator<Item = Update> + use<> {
        let step = JournalStep { owner: StepOwner::Task, id: saved_id(&self.call), output: Some(saved) };
        let artifacts = self.resumes.then(|| state.call.step(&self.call));
        [step].into_iter().chain(artifacts).map(Update::Step)
    }

    /// These steps are in a batch of updates.
    pub(super) fn sent(&self, steps: Vec<JournalStep>, batch: u64) {
        if !steps.is_empty() {
            self.journal.finish(steps, batch);
        }
    }

    /// Ends the call with an error of the skill, whatever it returns.
    pub(super) fn fail(&self, error: AgentError) {
        let mut state = self.state();
        if !state.is_closed {
            (state.failure, state.is_closed) = (Some(error), true);
        }
    }

    /// The skill has returned this: the state of the call before that, its outcome, and what is recorded with it.
    ///
    /// # Errors
    ///
    /// The turn is lost.
    pub(crate) fn end(&self, result: AgentResult<Outcome>) -> AgentResult<(CallState, Outcome, Vec<Update>)> {
        let mut outcome = match result {
            Ok(outcome) => outcome,
            Err(error) if error.is_lost() && !self.state().is_closed => return Err(error),
            Err(error) => outcome_of_error(&error),
        };
        let mut updates = Vec::new();
        while let Outcome::With { updates: more, outcome: inner } = outcome {
            // What is rejected is the failure below.
            updates.extend(self.take(more).unwrap_or_default());
            outcome = *inner;
        }
        let mut state = self.state();
        state.is_closed = true;
        if let Some(failure) = state.failure.take() {
            return Ok((state.call.clone(), Outcome::fail(failure.to_string()), Vec::new()));
        }
        Ok((state.call.clone(), state.message.take().unwrap_or(outcome), updates))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
