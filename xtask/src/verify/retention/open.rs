//! Open tasks of T-R16, which no purge may touch: some that are held at work, some that wait for an answer.

use std::net::SocketAddr;

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::verify::fill;
use crate::verify::random::Random;
use crate::verify::rpc::Caller;

const OF_EACH: u64 = 20;

/// A kind of open task: its agent, what it is asked, and the state it stays in.
const HELD: (&str, &str, &str) = ("echo", "hold until the end", "TASK_STATE_WORKING");
const WAITING: (&str, &str, &str) = ("approver", "leave it", "TASK_STATE_INPUT_REQUIRED");

pub(crate) struct Open {
    held: Vec<String>,
    waiting: Vec<String>,
}

impl Open {
    pub(crate) async fn begin(address: SocketAddr, random: &mut Random) -> Result<Self> {
        let mut begun = [Vec::new(), Vec::new()];
        for (ids, (agent, text, _)) in begun.iter_mut().zip([HELD, WAITING]) {
            let sent = fill::begun(address, agent, text, OF_EACH, random).await?;
            ids.extend(sent.into_iter().map(|sent| sent.task));
        }
        let [held, waiting] = begun;
        Ok(Self { held, waiting })
    }

    /// One of those held by `echo`.
    pub(crate) fn any(&self) -> &str {
        &self.held[0]
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len() + self.waiting.len()
    }

    /// Each must be there, in its state.
    pub(crate) async fn check(&self, address: SocketAddr) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        for (ids, (agent, _, state)) in [(&self.held, HELD), (&self.waiting, WAITING)] {
            for (id, task) in fill::read(address, agent, ids).await? {
                match task {
                    None => findings.push(format!("lost: open task {id} is gone")),
                    Some(task) if task["status"]["state"] != state => {
                        findings.push(format!("wrong: open task {id} is {}", task["status"]["state"]));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(findings)
    }

    /// Each can still be ended.
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
