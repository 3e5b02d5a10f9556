//! The probe of disk_faults: sends one message after another and keeps the time at which the last acknowledged one
//! was sent.
//!
//! A call sent after the disk has failed cannot be acknowledged correctly. Its messages are recorded in the history
//! like those of other clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::disk::Moment;
use crate::kill_under_load::history::{Fact, History, Operation};
use crate::random::Random;
use crate::rpc::{Caller, Failure, message};
use crate::view::View;

const POSTPONED_PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Probe(JoinSet<ProbeReport>);

/// What the probe observed.
#[derive(Default)]
pub(crate) struct ProbeReport {
    /// When the last acknowledged message was sent.
    pub(crate) last_sent: Option<Moment>,
    pub(crate) findings: Vec<String>,
}

impl Probe {
    pub(crate) fn begin(address: SocketAddr, random: Random, history: Arc<History>) -> Self {
        let mut probe = JoinSet::new();
        probe.spawn(watch(address, random, history));
        Self(probe)
    }

    /// The observations, once the server is gone.
    pub(crate) async fn finish(mut self) -> Result<ProbeReport> {
        let report = self.0.join_next().await.context("the probe was started")?;
        report.context("the probe failed")
    }
}

async fn watch(address: SocketAddr, mut random: Random, history: Arc<History>) -> ProbeReport {
    let mut caller = Caller::new(address);
    let mut report = ProbeReport::default();
    loop {
        let sent = Moment::now();
        match send(&mut caller, random.uuid(), &history).await {
            Ok(()) => report.last_sent = Some(sent),
            Err(Failure::Cut(_)) => return report,
            Err(failure) if failure.is_retryable() => sleep(POSTPONED_PAUSE).await,
            Err(failure) => {
                report.findings.push(format!("refused: the probe: {failure}"));
                return report;
            }
        }
    }
}

async fn send(caller: &mut Caller, call: uuid::Uuid, history: &History) -> Result<(), Failure> {
    let text = format!("echo {call}");
    history.record(Fact::Called { call, operation: Operation::Send, text: text.clone() });
    let response = caller.call("echo", "SendMessage", message(call, &text, false)).await?;
    let view = View::of(&response["task"]).map_err(Failure::Unusable)?;
    history.record(Fact::Accepted { call, task: view.task.clone() });
    let outcome =
        view.outcome().ok_or_else(|| Failure::Unusable(format!("the task has not ended: {response}")))?;
    history.record(Fact::Ended { task: view.task, outcome });
    Ok(())
}
