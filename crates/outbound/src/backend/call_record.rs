//! What the calls of one backend have shown about its health: how many there were, how many failed, and the last error.
//!
//! It is in memory only, for operators and for the metrics that have the names of backends as labels.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use engine::AgentResult;
use protocol::{Content, Part};

use super::{Failure, Reply};

/// The most characters of an error that are kept.
const MAX_ERROR: usize = 300;

/// The calls of one backend since the process has started. Several skills can share a record, such as the tools of one
/// server.
#[derive(Debug, Default)]
pub struct CallRecord(Mutex<CallSummary>);

/// What a [`CallRecord`] has at some moment.
#[derive(Clone, Debug, Default)]
pub struct CallSummary {
    /// Calls that have begun.
    pub calls: u64,
    /// Calls that have failed. Those that were canceled, and rejected arguments, are no failures of a backend.
    pub failures: u64,
    /// Whether the last call that has ended failed; `None` if none has ended.
    pub last_failed: Option<bool>,
    /// The last failure.
    pub last_error: Option<RecordedError>,
}

/// Why something failed, and when.
#[derive(Clone, Debug)]
pub struct RecordedError {
    /// The beginning of the text that the client got, in one line.
    pub text: String,
    /// When it happened.
    pub at: Instant,
}

impl RecordedError {
    /// An error that happens now.
    fn now(text: &str) -> Self {
        Self { text: in_one_line(text), at: Instant::now() }
    }
}

/// The beginning of a text, without control characters.
pub(crate) fn in_one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(MAX_ERROR).map(plain).collect()
}

impl CallRecord {
    /// The numbers at this moment.
    pub fn summary(&self) -> CallSummary {
        self.lock().clone()
    }

    pub(crate) fn begin(&self) {
        self.lock().calls += 1;
    }

    /// The call has ended by itself. Not for a cancelled call, whose end is no failure of the backend.
    pub(crate) fn end(&self, result: &AgentResult<Reply>) {
        let error = match result {
            Ok(Reply::Failed(failure)) => Some(text_of(failure)),
            Err(error) => Some(error.to_string()),
            Ok(
                Reply::Done(_)
                | Reply::Streamed
                | Reply::Rejected(_)
                | Reply::Ask(_)
                | Reply::AskForCredentials(_),
            ) => None,
        };
        let mut summary = self.lock();
        summary.last_failed = Some(error.is_some());
        if let Some(error) = error {
            summary.failures += 1;
            summary.last_error = Some(RecordedError::now(&error));
        }
    }

    fn lock(&self) -> MutexGuard<'_, CallSummary> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text of a failure that the client gets.
pub(crate) fn text_of(failure: &Failure) -> String {
    let text = |part: &Part| match &part.content {
        Content::Text(text) => Some(text.clone()),
        _ => None,
    };
    failure.parts.iter().find_map(text).unwrap_or_else(|| "the call failed".to_owned())
}
