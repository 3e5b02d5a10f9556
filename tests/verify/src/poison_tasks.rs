//! poison_tasks: a task whose run crashes the whole process. A supervisor restarts the server each time; the task
//! must fail as poisoned at its third crash, and every other task must complete.
//!
//! Two crashes without progress make a task a suspect; suspects start one at a time on probation, and the one that
//! crashes the process on probation is the poisoned one. The other tasks are documents of `slow-writer`: some in
//! progress at the first crash, so that they share the first crashes and are suspects too, and some started after each
//! crash. Deliberately not here: agents that panic or hang, which crash no process and are tests of the engine.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use testkit::json::{is_terminal, reason, state, status_text};
use tokio::time::sleep;

use super::extra_options::{ExtraOptions, TimeLimits};
use super::fill;
use super::random::Random;
use super::rpc::{Caller, Failure, message};
use super::trial::{ProofResult, Setup, Trial, stop};
use super::writer::{self, Document};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--poisons N] [--writers N] [--seed S] [--binary PATH] [--relaxed]";

pub(crate) const AGENT: &str = "abort";
const ABORTED: i32 = 6;
/// Number of crashes after which a task fails: two that make it a suspect, and one on probation.
pub(crate) const CRASHES_TO_FAIL: u64 = 3;
const DOCUMENT: Document = Document { sections: 10, delay_millis: 50 };
/// Time goal for the whole run, from the first start to the last terminal state.
const GOAL: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// How long the server must stay up after the poisoned tasks have failed.
const STAYS_UP: Duration = Duration::from_secs(3);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let (writers, time_limits) = (extras.number("--writers", 12)?, extras.time_limits());
    let trial = Trial::parse("poison_tasks", "--poisons", 1, &extras.rest())?;
    trial.run(async |setup| Supervisor::start(&trial, writers, time_limits, setup).await?.run().await)
}

/// The supervisor that restarts the crashing server, and the tasks that must survive.
struct Supervisor<'a> {
    setup: &'a Setup,
    random: Random,
    poisons: u64,
    writers: u64,
    limit: Duration,
    started: Instant,
    server: Server,
    documents: Vec<String>,
    crashes: u64,
    findings: Vec<String>,
}

impl<'a> Supervisor<'a> {
    async fn start(trial: &Trial, writers: u64, time_limits: TimeLimits, setup: &'a Setup) -> Result<Self> {
        Ok(Self {
            setup,
            random: Random::new(trial.seed),
            poisons: trial.size,
            writers,
            limit: time_limits.limit(GOAL),
            started: Instant::now(),
            server: Server::start(&setup.program, &setup.store).await?,
            documents: Vec::new(),
            crashes: 0,
            findings: Vec::new(),
        })
    }

    async fn run(mut self) -> Result<ProofResult> {
        self.begin_documents(self.writers).await;
        poison(self.server.address, self.poisons, &mut self.random).await;
        while !self.is_finished().await? {
            if self.started.elapsed() > self.limit {
                bail!("poison_tasks: not finished after {:?} and {} crashes", self.limit, self.crashes);
            }
            self.restart_if_crashed().await?;
            sleep(POLL).await;
        }
        self.check_documents().await?;
        let poisoned = self.check_poisoned().await?;
        self.check_stays_up().await?;
        stop(self.server, &mut self.findings).await?;
        let figures = json!({
            "poisoned": poisoned,
            "deaths": self.crashes,
            "pieces": self.documents.len(),
        });
        Ok(ProofResult { figures, findings: self.findings })
    }

    /// Restarts the server, also when it crashes before it is ready; starts new documents after each restart.
    async fn restart_if_crashed(&mut self) -> Result<()> {
        let mut crashed = has_crashed(&mut self.server)?;
        while crashed {
            self.crashes += 1;
            if self.crashes > CRASHES_TO_FAIL * self.poisons {
                bail!("{} crashes by {} poisoned tasks: they are not failed", self.crashes, self.poisons);
            }
            self.server = Server::spawn(&Launch::default(), &self.setup.program, &self.setup.store)?;
            self.server.ended_before_ready().await?;
            crashed = has_crashed(&mut self.server)?;
            if !crashed {
                self.begin_documents(self.writers.div_ceil(4)).await;
            }
        }
        Ok(())
    }

    /// Starts documents one by one; after a crash the remaining ones are not counted.
    async fn begin_documents(&mut self, count: u64) {
        let mut caller = Caller::new(self.server.address);
        for _ in 0..count {
            let params = message(self.random.uuid(), &DOCUMENT.text(), true);
            let Ok(response) = caller.call(writer::AGENT, "SendMessage", params).await else { return };
            self.documents.extend(response["task"]["id"].as_str().map(str::to_owned));
        }
    }

    /// Whether every task has ended. The server may crash at any time during the check.
    async fn is_finished(&mut self) -> Result<bool> {
        let mut caller = Caller::new(self.server.address);
        let mut open = 0;
        for agent in [AGENT, writer::AGENT] {
            let walked = caller.list(agent, json!({}), |task| {
                open += u64::from(!is_terminal(state(&task)));
            });
            match walked.await {
                // No poisoned task is listed: the crash came before it was accepted, or had another cause.
                Ok(0) if agent == AGENT => {
                    poison(self.server.address, self.poisons, &mut self.random).await;
                    return Ok(false);
                }
                Ok(_) => {}
                Err(Failure::Cut(_)) => return Ok(false),
                Err(failure) if failure.is_retryable() => return Ok(false),
                Err(failure) => bail!("the list of {agent}: {failure}"),
            }
        }
        Ok(open == 0)
    }

    async fn check_documents(&mut self) -> Result<()> {
        for (id, task) in fill::read(self.server.address, writer::AGENT, &self.documents).await? {
            match task.map(|task| DOCUMENT.fault_in(&task)) {
                None => self.findings.push(format!("lost: document {id} is unknown")),
                Some(Some(fault)) => self.findings.push(format!("wrong: document {id} {fault}")),
                Some(None) => {}
            }
        }
        Ok(())
    }

    /// Each poisoned task must have failed with that reason, at its third crash and not before.
    async fn check_poisoned(&mut self) -> Result<usize> {
        let mut poisoned: Vec<Value> = Vec::new();
        let mut caller = Caller::new(self.server.address);
        if let Err(failure) = caller.list(AGENT, json!({}), |task| poisoned.push(task)).await {
            bail!("the list of {AGENT}: {failure}");
        }
        for task in &poisoned {
            let (state, text, reason) =
                (&task["status"]["state"], status_text(task), reason(&task["status"]));
            if state != "TASK_STATE_FAILED" || !text.contains("poisoned") || reason != Some("poisoned") {
                self.findings.push(format!(
                    "wrong: task {} is {state} with the text {text:?} and the reason {reason:?}",
                    task["id"]
                ));
            }
        }
        if self.crashes < CRASHES_TO_FAIL {
            self.findings.push(format!("wrong: failed after {} crashes", self.crashes));
        }
        Ok(poisoned.len())
    }

    /// The server stays up, and the agent of the poisoned tasks still serves.
    async fn check_stays_up(&mut self) -> Result<()> {
        let params = message(self.random.uuid(), "be well", false);
        let response = Caller::new(self.server.address).call(AGENT, "SendMessage", params).await;
        match response {
            Ok(response) if response["task"]["status"]["state"] == "TASK_STATE_COMPLETED" => {}
            Ok(response) => self.findings.push(format!("wrong: the agent returned {response}")),
            Err(failure) => self.findings.push(format!("refused: {failure}")),
        }
        if let Some(status) = self.server.wait(STAYS_UP).await? {
            bail!(
                "the server ended with {status} although no poisoned task was left\n{}",
                self.server.log_tail()
            );
        }
        Ok(())
    }
}

/// Whether the server has ended by the crash of its agent; an error if it has ended otherwise.
pub(crate) fn has_crashed(server: &mut Server) -> Result<bool> {
    match server.ended()? {
        None => Ok(false),
        Some(status) if status.signal() == Some(ABORTED) => Ok(true),
        Some(status) => bail!("the server ended unexpectedly with {status}\n{}", server.log_tail()),
    }
}

/// Sends the messages whose runs abort the process. Responses are not required: the process that would send them
/// crashes.
pub(crate) async fn poison(address: SocketAddr, poisons: u64, random: &mut Random) {
    let mut sent = tokio::task::JoinSet::new();
    for _ in 0..poisons {
        let params = message(random.uuid(), "abort now", true);
        sent.spawn(async move { Caller::new(address).call(AGENT, "SendMessage", params).await });
    }
    // The list shows later whether a call without response was accepted.
    while sent.join_next().await.is_some() {}
}
