//! The first part of long_turns: a task that crashes the process beside documents in progress. It must fail with the
//! reason `poisoned` at its third crash, or with `attempts` when they are used up. The documents are finished later.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use testkit::json::{is_terminal, reason, state};
use tokio::time::sleep;

use super::{Campaign, POLL};
use crate::poison_tasks::{AGENT, CRASHES_TO_FAIL, has_crashed, poison};
use crate::rpc::{Caller, Failure};
use crate::server::Server;

/// The default of `limits.attempts`.
const ATTEMPTS: u64 = 6;
/// Time goal from the message to the failure of its task.
const GOAL: Duration = Duration::from_secs(60);
/// Documents beside the task that crashes the process: after two crashes all of them are suspects, which start one
/// after the other.
const MAX_NEIGHBOURS: u64 = 20;

/// Number of documents beside the task that crashes the process.
pub(super) fn neighbours(tasks: u64) -> u64 {
    tasks.div_ceil(2).min(MAX_NEIGHBOURS)
}

impl Campaign<'_> {
    /// Sends the message whose run aborts the process, restarts the server until its task has failed, and returns the
    /// figures.
    pub(super) async fn poison(&mut self) -> Result<Value> {
        self.until_progress().await?;
        let (started, limit) = (Instant::now(), self.time_limits.limit(GOAL));
        poison(self.server.address, 1, &mut self.random).await;
        let mut crashes = 0;
        let task = loop {
            crashes += self.restart_if_crashed().await?;
            ensure!(
                crashes <= ATTEMPTS,
                "the task has crashed the process {crashes} times and is not failed"
            );
            match self.poisoned_task().await {
                Ok(Some(task)) if is_terminal(state(&task)) => break task,
                Ok(Some(_)) | Err(Failure::Cut(_)) => {}
                // The process crashed before the message was recorded.
                Ok(None) => poison(self.server.address, 1, &mut self.random).await,
                Err(failure) if failure.is_retryable() => {}
                Err(failure) => bail!("the list of {AGENT}: {failure}"),
            }
            ensure!(started.elapsed() < limit, "not failed within {limit:?} after {crashes} crashes");
            sleep(POLL).await;
        };
        let reason = reason(&task["status"]).unwrap_or_default();
        let expected = match reason {
            "poisoned" => Some(CRASHES_TO_FAIL),
            "attempts" => Some(ATTEMPTS),
            _ => None,
        };
        if state(&task) != "TASK_STATE_FAILED" || expected != Some(crashes) {
            let status = &task["status"];
            self.findings
                .push(format!("wrong: the task that crashed {crashes} times has the status {status}"));
        }
        Ok(json!({"reason": reason, "crashes": crashes, "ms": u64::try_from(started.elapsed().as_millis())?}))
    }

    /// Restarts the server, also when it crashes before it is ready; returns the number of crashes.
    async fn restart_if_crashed(&mut self) -> Result<u64> {
        let mut crashes = 0;
        while has_crashed(&mut self.server)? {
            crashes += 1;
            ensure!(crashes <= ATTEMPTS, "the server crashes at every start");
            self.reports.add_boot()?;
            self.server = Server::spawn(&self.launch, &self.setup.program, &self.setup.store)?;
            self.server.ended_before_ready().await?;
        }
        Ok(crashes)
    }

    async fn poisoned_task(&self) -> Result<Option<Value>, Failure> {
        let mut found = None;
        Caller::new(self.server.address).list(AGENT, json!({}), |task| found = Some(task)).await?;
        Ok(found)
    }
}
