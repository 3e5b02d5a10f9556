//! The open tasks of retention_under_load, which must not be purged: some held in progress, some waiting for input.

use std::net::SocketAddr;

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::fill;
use crate::random::Random;
use crate::rpc::Caller;

const OF_EACH: u64 = 20;

/// A kind of open task: agent, text of its message, and the state it stays in.
const HELD: (&str, &str, &str) = ("echo", "hold until the end", "TASK_STATE_WORKING");
const WAITING: (&str, &str, &str) = ("approver", "leave it", "TASK_STATE_INPUT_REQUIRED");

pub(crate) struct OpenTasks {
    held: Vec<String>,
    waiting: Vec<String>,
}

impl OpenTasks {
    pub(crate) async fn begin(address: SocketAddr, random: &mut Random) -> Result<Self> {
        let mut begun = [Vec::new(), Vec::new()];
        for (ids, (agent, text, _)) in begun.iter_mut().zip([HELD, WAITING]) {
            let sent = fill::begun(address, agent, text, OF_EACH, random).await?;
            ids.extend(sent.into_iter().map(|sent| sent.task));
        }
        let [held, waiting] = begun;
        Ok(Self { held, waiting })
    }

    /// One of the tasks held by `echo`.
    pub(crate) fn any(&self) -> &str {
        &self.held[0]
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len() + self.waiting.len()
    }

    /// Checks that each task exists and is in its state.
    pub(crate) async fn check(&self, address: SocketAddr) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        for (ids, (agent, _, state)) in [(&self.held, HELD), (&self.waiting, WAITING)] {
            for (id, task) in fill::read(address, agent, ids).await? {
                match task {
                    None => findings.push(format!("lost: open task {id} is missing")),
                    Some(task) if task["status"]["state"] != state => {
                        findings.push(format!("wrong: open task {id} is {}", task["status"]["state"]));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(findings)
    }

    /// Ends each task by a cancel.
    pub(crate) async fn end(&self, address: SocketAddr) -> Result<Vec<String>> {
        let mut findings = self.check(address).await?;
        let mut caller = Caller::new(address);
        for (ids, (agent, ..)) in [(&self.held, HELD), (&self.waiting, WAITING)] {
            for id in ids {
                let canceled = caller.call(agent, "CancelTask", json!({"id": id})).await;
                let canceled = canceled.map_err(|failure| anyhow!("open task {id}: {failure}"))?;
                if canceled["status"]["state"] != "TASK_STATE_CANCELED" {
                    findings
                        .push(format!("wrong: open task {id} was cancelled and is {}", canceled["status"]));
                }
            }
        }
        Ok(findings)
    }
}
