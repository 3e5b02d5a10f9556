//! The witness of T-R7: sends one message after the other and remembers when the last acknowledged one was sent.
//!
//! A call that is begun after a disk has died can only be acknowledged falsely. What it sends goes into the
//! ledger like every other call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::disk::Moment;
use crate::verify::kill::ledger::{Fact, Ledger, Operation};
use crate::verify::kill::load::message;
use crate::verify::random::Random;
use crate::verify::rpc::{Caller, Failure};
use crate::verify::view::View;

const POSTPONED_PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Witness(JoinSet<Testimony>);

/// What the witness has seen.
#[derive(Default)]
pub(crate) struct Testimony {
    pub(crate) acknowledged: u64,
    /// When the last acknowledged message was sent.
    pub(crate) last_sent: Option<Moment>,
    pub(crate) findings: Vec<String>,
}

impl Witness {
    pub(crate) fn begin(address: SocketAddr, random: Random, ledger: Arc<Ledger>) -> Self {
        let mut witness = JoinSet::new();
        witness.spawn(watch(address, random, ledger));
        Self(witness)
    }

    /// What was seen, once the server is gone.
    pub(crate) async fn testify(mut self) -> Result<Testimony> {
        let testimony = self.0.join_next().await.context("there is a witness")?;
        testimony.context("the witness failed")
    }
}

async fn watch(address: SocketAddr, mut random: Random, ledger: Arc<Ledger>) -> Testimony {
    let mut caller = Caller::new(address);
    let mut testimony = Testimony::default();
    loop {
        let sent = Moment::now();
        match send(&mut caller, random.uuid(), &ledger).await {
            Ok(()) => {
                testimony.acknowledged += 1;
                testimony.last_sent = Some(sent);
            }
            Err(Failure::Cut(_)) => return testimony,
            Err(failure) if failure.is_passing() => sleep(POSTPONED_PAUSE).await,
            Err(failure) => {
                testimony.findings.push(format!("refused: the witness: {failure}"));
                return testimony;
            }
        }
    }
}

async fn send(caller: &mut Caller, call: uuid::Uuid, ledger: &Ledger) -> Result<(), Failure> {
    let text = format!("echo {call}");
    ledger.record(Fact::Called { call, operation: Operation::Send, text: text.clone() });
    let answer = caller.call("echo", "SendMessage", message(call, &text, false)).await?;
    let view = View::of(&answer["task"]).map_err(Failure::Unusable)?;
    ledger.record(Fact::Accepted { call, task: view.task.clone() });
    let outcome = view.outcome().ok_or_else(|| Failure::Unusable(format!("no end in {answer}")))?;
    ledger.record(Fact::Ended { task: view.task, outcome });
    Ok(())
}
