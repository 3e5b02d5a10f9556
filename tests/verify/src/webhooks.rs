//! What the proofs of push notifications have in common: tasks with a webhook each, a receiver in this process, and the
//! ledger of what arrived there.
//!
//! HTTP is written here, and signatures are verified from their definition; other libraries verify them in
//! `tests/interop/push/`. Each task has a number; its webhook has the number in its path, and a token of its own, which is the key of its signatures.
//! Deliberately not here: when the server is killed, and when a receiver fails.

pub(crate) mod ledger;
pub(crate) mod receiver;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::json::task_id;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use crate::kill_under_load::load::Stage;
use crate::rpc::{Caller, Failure, message};
use crate::writer::{self, Document};

const RETRY_PAUSE: Duration = Duration::from_millis(20);
const DOCUMENT: Document = Document { sections: 3, delay_millis: 20 };

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Ends at once.
    Echo,
    /// Asks for input, and ends after it.
    Approve,
    /// Writes for a while.
    Write,
}

impl Work {
    pub(crate) fn agent(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Approve => "approver",
            Self::Write => writer::AGENT,
        }
    }

    /// The notifications that no later one may replace.
    pub(crate) fn required(self) -> u64 {
        match self {
            Self::Echo | Self::Write => 1,
            Self::Approve => 2,
        }
    }
}

/// A task to be made, with its webhook.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) number: u64,
    pub(crate) work: Work,
    /// Host and port of the receiver.
    pub(crate) host: String,
    /// The idempotency keys of its two messages.
    pub(crate) messages: [Uuid; 2],
}

/// The key of the signatures of a webhook: a token of more than 24 bytes is used as it is.
fn token(number: u64) -> String {
    format!("the-token-of-webhook-{number:08}")
}

impl Planned {
    /// Makes the task, and gives the input that it asks for. Each call is repeated until it is acknowledged, also by later
    /// processes of the server. Returns the id of the task.
    pub(crate) async fn run(&self, stages: &watch::Receiver<Stage>) -> Result<String, String> {
        let text = match self.work {
            Work::Write => DOCUMENT.text(),
            Work::Echo | Work::Approve => format!("work {}", self.number),
        };
        let mut params = message(self.messages[0], &text, self.work == Work::Write);
        params["configuration"]["taskPushNotificationConfig"] =
            json!({"url": format!("http://{}/{}", self.host, self.number), "token": token(self.number)});
        let task = task_id(&self.call(stages, &params).await?["task"])?;
        if self.work == Work::Approve {
            let mut params = message(self.messages[1], "approve", false);
            params["message"]["taskId"] = task.as_str().into();
            self.call(stages, &params).await?;
        }
        Ok(task)
    }

    async fn call(&self, stages: &watch::Receiver<Stage>, params: &Value) -> Result<Value, String> {
        let mut stages = stages.clone();
        loop {
            let stage = stages.wait_for(|stage| *stage != Stage::Down).await.map(|stage| *stage);
            let Ok(Stage::Up { address, .. }) = stage else {
                return Err(format!("task {} was not acknowledged until the end", self.number));
            };
            match Caller::new(address).call(self.work.agent(), "SendMessage", params.clone()).await {
                Ok(result) => return Ok(result),
                Err(Failure::Cut(_)) => {}
                Err(failure) if failure.is_retryable() => {}
                Err(failure) => return Err(format!("task {}: {failure}", self.number)),
            }
            sleep(RETRY_PAUSE).await;
        }
    }
}

/// A delivery that the program lists as not delivered.
pub(crate) struct Undelivered {
    pub(crate) task: String,
    pub(crate) is_dead: bool,
    /// As it was listed.
    pub(crate) line: String,
}

/// The output of `a2ad deliveries ls` for a store that no server uses.
pub(crate) async fn undelivered(program: &Path, store: &Path) -> Result<Vec<Undelivered>> {
    let mut command = Command::new(program);
    command.args(["deliveries", "ls", "--json", "--limit", "0", "--store"]).arg(store);
    let output = command.kill_on_drop(true).output().await.context("cannot list deliveries")?;
    ensure!(output.status.success(), "a2ad deliveries ls: {}", String::from_utf8_lossy(&output.stderr));
    let listed: Value = serde_json::from_slice(&output.stdout).context("a2ad deliveries ls --json")?;
    let deliveries = listed["deliveries"].as_array().context("a list of deliveries")?;
    let read = deliveries.iter().map(|delivery| Undelivered {
        task: delivery["task"].as_str().unwrap_or_default().to_owned(),
        is_dead: delivery["state"] == "dead",
        line: delivery.to_string(),
    });
    Ok(read.collect())
}
