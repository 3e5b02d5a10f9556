//! The last part: all finished tasks expire at once and are purged. They must be gone, the keys of their messages must
//! still be known, and open tasks must be as they were.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use super::choices::{NOT_FOUND, index};
use super::driver::{Divergence, Driver, Outcome};
use super::reference::Verdict;

/// Makes every finished task expire.
pub(crate) const CONFIG: &str = "[store]\nretention = { max_age = \"1s\" }\n";
/// Number of tasks and of messages of each kind that are tried.
const SAMPLE: u64 = 1_000;
const LEAST_LIMIT: Duration = Duration::from_secs(60);
/// Tasks that a busy machine purges in a second at least.
const SLOW_PURGE_PER_SECOND: u64 = 500;
const POLL: Duration = Duration::from_millis(100);

impl Driver {
    /// Waits for the purge and compares what is left.
    pub(crate) async fn check_purged(&mut self) -> Outcome {
        let (finished, open): (Vec<usize>, Vec<usize>) = (0..self.reference.tasks.len())
            .partition(|task| self.reference.tasks[*task].state().is_terminal());
        self.until_listed(open.len()).await?;
        for task in open {
            self.get(task, None).await?;
        }
        for _ in 0..SAMPLE.min(finished.len() as u64) {
            let task = finished[index(self.random.within(0..=finished.len() as u64 - 1))];
            let params = json!({"id": self.reference.tasks[task].id});
            self.refused(self.agent, "GetTask", params, NOT_FOUND).await?;
        }
        for _ in 0..SAMPLE.min(self.sent.len() as u64) {
            self.resend_to_purged().await?;
        }
        Ok(())
    }

    /// Waits until the list has this many tasks.
    async fn until_listed(&mut self, expected: usize) -> Outcome {
        let tasks = self.reference.tasks.len() as u64;
        let limit = LEAST_LIMIT + Duration::from_secs(tasks / SLOW_PURGE_PER_SECOND);
        let started = Instant::now();
        loop {
            let page = self.caller.call(self.agent, "ListTasks", json!({"pageSize": 1})).await?;
            if page["totalSize"] == expected {
                return Ok(());
            }
            if started.elapsed() > limit {
                let found = &page["totalSize"];
                return Err(Divergence(format!("{found} tasks after {limit:?}, {expected} are open")));
            }
            sleep(POLL).await;
        }
    }

    /// Sends a message again that a purged task has recorded: it must not become a new task.
    async fn resend_to_purged(&mut self) -> Outcome {
        let outgoing = self.sent[index(self.random.within(0..=self.sent.len() as u64 - 1))].clone();
        let Verdict::Replay(task, _) = self.reference.verdict_for(&outgoing) else { return Ok(()) };
        if !self.reference.tasks[task].state().is_terminal() {
            return Ok(());
        }
        let key = outgoing.key.as_ref().filter(|key| **key != outgoing.id);
        let headers: Vec<_> = key.iter().map(|key| ("Idempotency-Key", key.as_str())).collect();
        let params = json!({"message": outgoing.message});
        self.refused_with(&headers, self.agent, "SendMessage", params, NOT_FOUND).await
    }
}
