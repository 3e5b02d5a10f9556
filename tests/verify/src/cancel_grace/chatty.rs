//! The agent: it records progress until its token fires or its update is rejected, then cleans up for some milliseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::{Agent, AgentResult, Outcome, Turn};
use protocol::TaskId;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;

/// Time between two updates: shorter than a commit, so that a change is usually in flight when the run is ended.
const UPDATE_INTERVAL: Duration = Duration::from_millis(1);
/// The checkpoint of an agent that was asked to stop.
pub(super) const STOPPED: &str = "stopped";

/// Reports each run when its future ends or is dropped.
#[derive(Clone)]
pub(super) struct Chatty {
    reports: UnboundedSender<RunReport>,
    started: Arc<AtomicU64>,
}

/// What one run has seen.
pub(super) struct RunReport {
    pub(super) task: TaskId,
    pub(super) attempt: u32,
    /// The checkpoint with which it began.
    pub(super) began_with: Option<String>,
    /// The token had fired when the agent noticed the end of its run.
    pub(super) token_fired: bool,
    /// It noticed the end of its run by a rejected update.
    pub(super) was_rejected: bool,
    /// The agent was polled until it had cleaned up.
    pub(super) cleaned_up: bool,
    /// The checkpoint that it saved after its token had fired was accepted.
    pub(super) saved: bool,
}

impl Chatty {
    pub(super) fn new(reports: UnboundedSender<RunReport>) -> Self {
        Self { reports, started: Arc::default() }
    }

    /// How many runs have begun.
    pub(super) fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }
}

impl Agent for Chatty {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let began_with = turn.saved::<String>()?;
        let report = RunReport {
            task: turn.task_id.clone(),
            attempt: turn.attempt,
            began_with,
            token_fired: false,
            was_rejected: false,
            cleaned_up: false,
            saved: false,
        };
        let mut reported = Reported { reports: self.reports.clone(), report: Some(report) };
        let rejected = chat(&turn, number).await;
        let Some(report) = &mut reported.report else { return Ok(Outcome::done()) };
        report.token_fired = turn.cancel.is_cancelled();
        report.was_rejected = rejected;
        sleep(Duration::from_millis(1 + number % 15)).await;
        report.saved = turn.save(STOPPED).await.is_ok();
        report.cleaned_up = true;
        Ok(Outcome::done_with("an outcome that must be ignored"))
    }
}

/// Records progress until the run is ended; returns whether that was noticed by a rejected update. Every second agent waits
/// for its token too.
async fn chat(turn: &Turn, number: u64) -> bool {
    for step in 0_u64.. {
        let record = turn.record().progress(format!("step {step}"));
        let recorded =
            if step.is_multiple_of(8) { record.chunk("text", "more ").await } else { record.await };
        if recorded.is_err() {
            return true;
        }
        if number.is_multiple_of(2) {
            if tokio::time::timeout(UPDATE_INTERVAL, turn.cancel.cancelled()).await.is_ok() {
                return false;
            }
        } else {
            sleep(UPDATE_INTERVAL).await;
            // In a drain nothing is rejected.
            if turn.cancel.is_cancelled() && step.is_multiple_of(4) {
                return false;
            }
        }
    }
    false
}

/// Sends its report when the run ends, whether it returns or is dropped.
struct Reported {
    reports: UnboundedSender<RunReport>,
    report: Option<RunReport>,
}

impl Drop for Reported {
    fn drop(&mut self) {
        if let Some(report) = self.report.take() {
            let _ = self.reports.send(report);
        }
    }
}
