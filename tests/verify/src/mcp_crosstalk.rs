//! mcp_crosstalk: two agents share one MCP server that answers late, twice, out of order and under ids of other calls
//! (`fake_server.rs`). Every text has a mark of its call; whatever a client receives for a call must have no other mark.
//!
//! Most calls run many at a time in one process. Some go to a second process that asks the client, also for calls that
//! were canceled before. Deliberately not here: real MCP servers, none of which behaves like this.

mod fake_server;

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testkit::json::{artifact_text, state, task_id};

use super::random::Random;
use super::rpc::{Caller, Failure, message};
use super::trial::{ProofResult, Setup, Trial, in_parallel, stop};
use crate::server::{Launch, Server};

pub(crate) use fake_server::{COMMAND, serve};

pub(crate) const OPTIONS: &str = "[--calls N] [--seed S] [--binary PATH]";

const AGENTS: [&str; 2] = ["one", "two"];
/// Clients at a time, half of them for each agent.
const CLIENTS: u64 = 64;
/// One in so many calls is answered after its timeout.
const LATE: u64 = 500;
/// One in so many calls asks its client; one in four of these is canceled before.
const QUESTIONS: u64 = 100;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let trial = Trial::parse("mcp_crosstalk", "--calls", 100_000, args)?;
    trial.run(async |setup| campaign(&trial, setup).await)
}

async fn campaign(trial: &Trial, setup: &Setup) -> Result<ProofResult> {
    let launch = Launch::with_config(&setup.store, &config(trial.seed)?)?;
    let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let mut random = Random::new(trial.seed);
    let share = trial.size.div_ceil(CLIENTS);
    let clients = (0..CLIENTS).map(|number| {
        let client = Client {
            caller: Caller::new(server.address),
            agent: AGENTS[usize::from(number % 2 == 0)],
            random: random.branch(),
            seen: Seen::default(),
        };
        client.run(number * share..((number + 1) * share).min(trial.size))
    });
    let mut seen = Seen::default();
    for client in in_parallel(clients.collect::<Vec<_>>().into_iter()).await {
        seen.add(client);
    }
    let address = server.address;
    let figures = seen.figures(address).await.context("after the calls")?;
    let Seen { mut findings, .. } = seen;
    stop(server, &mut findings).await?;
    Ok(ProofResult { figures, findings })
}

/// Both agents have the tools of both processes.
fn config(seed: u64) -> Result<String> {
    let this = std::env::current_exe()?;
    let command = json!([this.to_string_lossy(), COMMAND, seed.to_string()]);
    let agents: String = AGENTS
        .iter()
        .map(|agent| format!("[agents.{agent}]\nskills = [\"mcp:mixed/echo\", \"mcp:asking/ask\"]\n"))
        .collect();
    Ok(format!(
        "[server]\ndefault_agent = \"{}\"\n[mcp.mixed]\ncommand = {command}\nelicitation = false\ntimeout = \"2s\"\npool = {{ max = 1 }}\n\
         [mcp.asking]\ncommand = {command}\npool = {{ max = {} }}\n{agents}",
        AGENTS[0],
        // All clients are one principal, whose questions may hold half of the processes.
        2 * CLIENTS,
    ))
}

/// What one client, or all of them, received.
#[derive(Default)]
struct Seen {
    completed: u64,
    timed_out: u64,
    answered: u64,
    canceled: u64,
    progress: u64,
    findings: Vec<String>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.completed += other.completed;
        self.timed_out += other.timed_out;
        self.answered += other.answered;
        self.canceled += other.canceled;
        self.progress += other.progress;
        self.findings.extend(other.findings);
    }

    /// Reports what belongs to another call.
    fn check(&mut self, own: &str, received: &Value) {
        let text = received.to_string();
        for mark in text.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(mark, _)| mark) {
            if mark != own {
                self.findings.push(format!("crossed: the call {own} received something of {mark}: {text}"));
            }
        }
    }

    async fn figures(&mut self, address: SocketAddr) -> Result<Value> {
        for (what, count) in [
            ("completed", self.completed),
            ("timed out", self.timed_out),
            ("reported progress", self.progress),
        ] {
            if count == 0 {
                self.findings.push(format!("nothing is proved: no call {what}"));
            }
        }
        // The server still answers.
        let mut last = Client {
            caller: Caller::new(address),
            agent: AGENTS[0],
            random: Random::new(0),
            seen: Self::default(),
        };
        last.echo("last").await?;
        self.add(last.seen);
        Ok(json!({
            "completed": self.completed,
            "timed_out": self.timed_out,
            "answered_questions": self.answered,
            "canceled": self.canceled,
            "progress": self.progress,
        }))
    }
}

struct Client {
    caller: Caller,
    agent: &'static str,
    random: Random,
    seen: Seen,
}

impl Client {
    async fn run(mut self, numbers: std::ops::Range<u64>) -> Seen {
        for number in numbers {
            let done = match number {
                _ if number % (4 * QUESTIONS) == 0 => self.cancel(&format!("canceled-{number}")).await,
                _ if number % QUESTIONS == 0 => self.ask(&format!("asking-{number}")).await,
                _ if number % LATE == 1 => self.echo(&format!("late-{number}")).await,
                _ => self.echo(&format!("{}-{number}", self.agent)).await,
            };
            if let Err(failure) = done {
                self.seen.findings.push(format!("call {number}: {failure}"));
            }
        }
        self.seen
    }

    /// A call that many others run beside.
    async fn echo(&mut self, mark: &str) -> Result<(), Failure> {
        let params = self.message("echo", mark);
        let mut frames = self.caller.stream(self.agent, "SendStreamingMessage", params).await?;
        let (mut ended, mut result) = (String::new(), String::new());
        while let Some(frame) = frames.next().await? {
            self.seen.check(mark, &frame.result);
            let status = &frame.result["statusUpdate"]["status"];
            self.seen.progress += u64::from(status["message"]["metadata"]["a2ad"]["progress"].is_number());
            ended = status["state"].as_str().map_or(ended, str::to_owned);
            result.push_str(&testkit::json::texts(&frame.result["artifactUpdate"]["artifact"]));
        }
        match ended.as_str() {
            "TASK_STATE_COMPLETED" if result == format!("echo <{mark}>") => self.seen.completed += 1,
            "TASK_STATE_FAILED" if mark.starts_with("late") => self.seen.timed_out += 1,
            _ => self.seen.findings.push(format!("the call {mark} ended as {ended} with {result:?}")),
        }
        Ok(())
    }

    /// A call that asks its client.
    async fn ask(&mut self, mark: &str) -> Result<(), Failure> {
        let params = self.message("ask", mark);
        let asked = self.caller.call(self.agent, "SendMessage", params).await?["task"].take();
        self.seen.check(mark, &asked);
        let mut answer = self.message("ask", mark);
        answer["message"]["taskId"] = asked["id"].clone();
        let done = self.caller.call(self.agent, "SendMessage", answer).await?["task"].take();
        self.seen.check(mark, &done);
        let states = (state(&asked), state(&done));
        if states == ("TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED")
            && artifact_text(&done) == format!("answered <{mark}>")
        {
            self.seen.answered += 1;
        } else {
            self.seen.findings.push(format!("the call {mark} ended as {states:?}: {done}"));
        }
        Ok(())
    }

    /// A call that is canceled; the server asks its question afterwards.
    async fn cancel(&mut self, mark: &str) -> Result<(), Failure> {
        let mut params = self.message("ask", mark);
        params["configuration"]["returnImmediately"] = true.into();
        let task = self.caller.call(self.agent, "SendMessage", params).await?["task"].take();
        let id = task_id(&task).map_err(Failure::Unusable)?;
        let canceled = self.caller.call(self.agent, "CancelTask", json!({"id": id})).await?;
        self.seen.check(mark, &canceled);
        self.seen.canceled += 1;
        Ok(())
    }

    fn message(&mut self, skill: &str, mark: &str) -> Value {
        let mut params = message(self.random.uuid(), &format!("<{mark}>"), false);
        params["metadata"] = json!({"skillId": skill});
        params
    }
}
