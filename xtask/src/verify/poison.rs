//! T-R14: a task whose run kills the whole process. The service survives it: a supervisor starts the server again
//! as often as it dies, the task is given up as poisoned at its third death, and every other task ends well.
//!
//! The others are pieces of the slow writer: some at work when the trouble begins, so that they share the first
//! deaths and are suspects too, and some begun after each death. Deliberately not here: agents that panic or
//! hang, which kill no process and are tests of the engine.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::extras::{Extras, Pace};
use super::fill;
use super::kill::load::message;
use super::lists::walk;
use super::random::Random;
use super::rpc::{Caller, Failure};
use super::trial::{Seen, Stand, Trial};
use super::view::is_terminal;
use super::writer::{self, Piece, status_text};
use crate::server::{self, Launch, Server};

pub(crate) const OPTIONS: &str = "[--poisons N] [--writers N] [--seed S] [--binary PATH] [--relaxed]";

const AGENT: &str = "abort";
const ABORTED: i32 = 6;
/// At this death a task is given up.
const DEATHS_TO_FAIL: u64 = 3;
const PIECE: Piece = Piece { sections: 10, delay_millis: 50 };
/// The whole of it, from the first start to the last end.
const GOAL: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// How long the server must stay up when the trouble is over.
const CALM: Duration = Duration::from_secs(3);
const STOP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = Extras::of(args);
    let (writers, pace) = (extras.number("--writers", 12)?, extras.pace());
    if !extras.has("--binary") {
        extras.add("--binary", &server::build_with("fault-agents")?.to_string_lossy());
    }
    let trial = Trial::parse("T-R14", "--poisons", 1, &extras.rest())?;
    trial.run(async |stand| Ward::admit(&trial, writers, pace, stand).await?.treat().await)
}

/// A server that dies, the supervisor that starts it again, and what must survive.
struct Ward<'a> {
    stand: &'a Stand,
    random: Random,
    poisons: u64,
    writers: u64,
    limit: Duration,
    started: Instant,
    server: Server,
    pieces: Vec<String>,
    deaths: u64,
    findings: Vec<String>,
}

impl<'a> Ward<'a> {
    async fn admit(trial: &Trial, writers: u64, pace: Pace, stand: &'a Stand) -> Result<Self> {
        Ok(Self {
            stand,
            random: Random::new(trial.seed),
            poisons: trial.size,
            writers,
            limit: pace.limit(GOAL),
            started: Instant::now(),
            server: Server::start(&stand.program, &stand.store).await?,
            pieces: Vec::new(),
            deaths: 0,
            findings: Vec::new(),
        })
    }

    async fn treat(mut self) -> Result<Seen> {
        self.begin_pieces(self.writers).await;
        poison(self.server.address, self.poisons, &mut self.random).await;
        while !self.is_over().await? {
            if self.started.elapsed() > self.limit {
                bail!("T-R14: not over after {:?} and {} deaths", self.limit, self.deaths);
            }
            self.restart_if_dead().await?;
            sleep(POLL).await;
        }
        self.check_pieces().await?;
        let poisoned = self.check_poisoned().await?;
        self.check_calm().await?;
        let status = self.server.terminate(STOP_LIMIT).await?;
        if !status.success() {
            self.findings.push(format!("the server answered SIGTERM with {status}"));
        }
        let figures = json!({
            "poisoned": poisoned,
            "deaths": self.deaths,
            "pieces": self.pieces.len(),
        });
        Ok(Seen { figures, findings: self.findings })
    }

    /// Starts the server again, as often as it dies before it is ready; new pieces come with each start.
    async fn restart_if_dead(&mut self) -> Result<()> {
        let mut ended = self.server.ended()?;
        while let Some(status) = ended {
            self.count_death(status)?;
            self.server = Server::spawn(&Launch::default(), &self.stand.program, &self.stand.store)?;
            ended = self.server.ended_before_ready().await?;
            if ended.is_none() {
                self.begin_pieces(self.writers.div_ceil(4)).await;
            }
        }
        Ok(())
    }

    fn count_death(&mut self, status: ExitStatus) -> Result<()> {
        if status.signal() != Some(ABORTED) {
            bail!("the server ended by {status}, which nobody asked for\n{}", self.server.log_tail());
        }
        self.deaths += 1;
        if self.deaths > DEATHS_TO_FAIL * self.poisons {
            bail!("{} deaths by {} poisoned tasks: they are not given up", self.deaths, self.poisons);
        }
        Ok(())
    }

    /// Begins pieces one by one; a death on the way costs those that were not acknowledged.
    async fn begin_pieces(&mut self, count: u64) {
        let mut caller = Caller::new(self.server.address);
        for _ in 0..count {
            let params = message(self.random.uuid(), &PIECE.text(), true);
            let Ok(answer) = caller.call(writer::AGENT, "SendMessage", params).await else { return };
            self.pieces.extend(answer["task"]["id"].as_str().map(str::to_owned));
        }
    }

    /// Whether everything has ended, as far as a server that may die at any moment can say.
    async fn is_over(&mut self) -> Result<bool> {
        let mut caller = Caller::new(self.server.address);
        let mut open = 0;
        for agent in [AGENT, writer::AGENT] {
            let walked = walk(&mut caller, agent, json!({}), |task| {
                open += u64::from(!is_terminal(task["status"]["state"].as_str().unwrap_or_default()));
            });
            match walked.await {
                // The process died of nothing, or the poison died with it before it was accepted.
                Ok(0) if agent == AGENT => {
                    poison(self.server.address, self.poisons, &mut self.random).await;
                    return Ok(false);
                }
                Ok(_) => {}
                Err(Failure::Cut(_)) => return Ok(false),
                Err(failure) if failure.is_passing() => return Ok(false),
                Err(failure) => bail!("the list of {agent}: {failure}"),
            }
        }
        Ok(open == 0)
    }

    async fn check_pieces(&mut self) -> Result<()> {
        for (id, task) in fill::read(self.server.address, writer::AGENT, &self.pieces).await? {
            match task.map(|task| PIECE.fault_in(&task)) {
                None => self.findings.push(format!("lost: piece {id} is unknown")),
                Some(Some(fault)) => self.findings.push(format!("wrong: piece {id} {fault}")),
                Some(None) => {}
            }
        }
        Ok(())
    }

    /// Each poisoned task must have been given up under that name, at its third death and not before.
    async fn check_poisoned(&mut self) -> Result<usize> {
        let mut poisoned: Vec<Value> = Vec::new();
        let mut caller = Caller::new(self.server.address);
        if let Err(failure) = walk(&mut caller, AGENT, json!({}), |task| poisoned.push(task)).await {
            bail!("the list of {AGENT}: {failure}");
        }
        for task in &poisoned {
            let (state, text) = (&task["status"]["state"], status_text(task));
            if state != "TASK_STATE_FAILED" || !text.contains("poisoned") {
                self.findings.push(format!("wrong: task {} is {state} and says {text:?}", task["id"]));
            }
        }
        if self.deaths < DEATHS_TO_FAIL {
            self.findings.push(format!("wrong: given up after {} deaths", self.deaths));
        }
        Ok(poisoned.len())
    }

    /// The server stays up, and the agent that was poisoned still serves.
    async fn check_calm(&mut self) -> Result<()> {
        let params = message(self.random.uuid(), "be well", false);
        let answer = Caller::new(self.server.address).call(AGENT, "SendMessage", params).await;
        match answer {
            Ok(answer) if answer["task"]["status"]["state"] == "TASK_STATE_COMPLETED" => {}
            Ok(answer) => self.findings.push(format!("wrong: the agent answers {answer}")),
            Err(failure) => self.findings.push(format!("refused: {failure}")),
        }
        if let Some(status) = self.server.wait(CALM).await? {
            bail!("the server ended by {status} although the trouble was over\n{}", self.server.log_tail());
        }
        Ok(())
    }
}

/// Sends what aborts. The answers are not waited for long: the process that would give them dies.
async fn poison(address: SocketAddr, poisons: u64, random: &mut Random) {
    let mut sent = tokio::task::JoinSet::new();
    for _ in 0..poisons {
        let params = message(random.uuid(), "abort now", true);
        sent.spawn(async move { Caller::new(address).call(AGENT, "SendMessage", params).await });
    }
    // Whether a cut call was accepted is seen in the list afterwards.
    while sent.join_next().await.is_some() {}
}
