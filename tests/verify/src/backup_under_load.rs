//! backup_under_load: `a2ad backup` beside a server under full load, `a2ad restore` elsewhere, and a server on the
//! restored store. Every task that was acknowledged before the backup began must be there, with the same outcome as in
//! the response that acknowledged it.
//!
//! Clients send while the copy is made and pause while it is compared, so that the size of the store is bounded by the
//! rounds. Deliberately not here: refusals of the two commands, and stores of stopped servers (the tests of the program).

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::fill;
use super::random::Random;
use super::rpc::{Caller, message};
use super::trial::{ProofResult, Setup, Trial, stop};
use super::view::{Outcome, View};
use super::writer::{self, Document};
use crate::server::{Launch, Server, command};

pub(crate) const OPTIONS: &str = "[--rounds N] [--seed S] [--binary PATH]";

const CLIENTS: usize = 32;
/// One in so many messages requests a document, whose task is still running when the copy is made.
const DOCUMENT_EVERY: u64 = 16;
const DOCUMENT: Document = Document { sections: 3, delay_millis: 150 };
/// Documents must not take the place of other calls.
const CONFIG: &str = "[limits]\nconcurrent = 2000\n";
/// The load before a backup begins, in milliseconds.
const LOAD_MILLIS: std::ops::RangeInclusive<u64> = 100..=600;
/// Number of tasks of earlier rounds that are read again in each round.
const SAMPLE: usize = 500;
/// The limit for a command, and for the documents to end after the restore.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let trial = Trial::parse("backup_under_load", "--rounds", 20, args)?;
    trial.run(async |setup| back_up(&trial, setup).await)
}

async fn back_up(trial: &Trial, setup: &Setup) -> Result<ProofResult> {
    let mut random = Random::new(trial.seed);
    let launch = Launch::with_config(&setup.store, CONFIG)?;
    let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let mut load = Load::start(&server, &mut random);
    let (mut findings, mut compared, mut longest, mut bytes) = (Vec::new(), 0, Duration::ZERO, 0);
    for round in 1..=trial.size {
        load.resume();
        sleep(Duration::from_millis(random.within(LOAD_MILLIS))).await;
        let before = load.acknowledged();
        let started = Instant::now();
        let folder = setup.store.with_extension(format!("round-{round}"));
        std::fs::create_dir(&folder).context("cannot create the directory of a round")?;
        let backup = folder.join("backup.db");
        let shown = a2ad(&setup.program, &["backup", "--json"], &setup.store, &backup).await?;
        longest = longest.max(started.elapsed());
        bytes = shown["bytes"].as_u64().context("the backup has no size")?;
        load.pause();
        load.check()?;
        ensure!(load.acknowledged().len() > before.len(), "no task was acknowledged during the backup");
        let restored = folder.join("restored.db");
        a2ad(&setup.program, &["restore", "--json"], &restored, &backup).await?;
        let chosen = choose(&before, compared, &mut random);
        findings.extend(compare(&setup.program, &restored, &chosen).await?);
        compared = before.len();
        std::fs::remove_dir_all(&folder).context("cannot remove the directory of a round")?;
    }
    let acknowledged = load.end().await?.len();
    stop(server, &mut findings).await?;
    let figures = json!({
        "rounds": trial.size,
        "acknowledged": acknowledged,
        "compared": compared,
        "longest_backup_ms": u64::try_from(longest.as_millis())?,
        "last_backup_bytes": bytes,
    });
    Ok(ProofResult { figures, findings })
}

/// Runs a command that copies between `store` and `file`; returns its JSON.
async fn a2ad(program: &Path, arguments: &[&str], store: &Path, file: &Path) -> Result<Value> {
    let mut command = command(program);
    command.args(arguments).arg(file).arg("--store").arg(store);
    let output = timeout(LIMIT, command.output()).await.context("a command does not end")??;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "a2ad {} failed: {error}", arguments[0]);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A task that was acknowledged.
#[derive(Clone)]
struct Acknowledged {
    agent: &'static str,
    task: String,
    /// The end of the task, if the response had it.
    outcome: Option<Outcome>,
}

/// The tasks to compare: those acknowledged since the last round, and some of the earlier ones.
fn choose(acknowledged: &[Acknowledged], compared: usize, random: &mut Random) -> Vec<Acknowledged> {
    let (earlier, new) = acknowledged.split_at(compared);
    let sample = (0..SAMPLE.min(earlier.len()))
        .map(|_| earlier[random.within(0..=earlier.len() as u64 - 1) as usize].clone());
    new.iter().cloned().chain(sample).collect()
}

/// Starts a server on the restored store and compares the tasks.
async fn compare(program: &Path, store: &Path, expected: &[Acknowledged]) -> Result<Vec<String>> {
    let server = Server::start(program, store).await?;
    let mut findings = Vec::new();
    for agent in ["echo", writer::AGENT] {
        let expected: Vec<&Acknowledged> = expected.iter().filter(|task| task.agent == agent).collect();
        let ids: Vec<String> = expected.iter().map(|task| task.task.clone()).collect();
        if agent == writer::AGENT {
            wait_until_ended(&server).await?;
        }
        let found: HashMap<_, _> = fill::read(server.address, agent, &ids).await?.into_iter().collect();
        for expected in expected {
            let id = &expected.task;
            match found.get(id).and_then(Option::as_ref) {
                None => findings.push(format!("lost: task {id} of {agent} is unknown")),
                Some(task) => findings.extend(
                    expected.fault_in(task).map(|fault| format!("wrong: task {id} of {agent} {fault}")),
                ),
            }
        }
    }
    server.kill().await?;
    Ok(findings)
}

impl Acknowledged {
    /// The fault in the task as read, if any.
    fn fault_in(&self, task: &Value) -> Option<String> {
        let Some(expected) = &self.outcome else { return DOCUMENT.fault_in(task) };
        let found = View::of(task).ok().and_then(|view| view.outcome());
        (found.as_ref() != Some(expected)).then(|| format!("ended with {expected:?}, now it is {found:?}"))
    }
}

/// Waits for the documents that were being written when the copy was made.
async fn wait_until_ended(server: &Server) -> Result<()> {
    let mut caller = Caller::new(server.address);
    let ended = async {
        for state in ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"] {
            while fill::count(&mut caller, writer::AGENT, state).await? > 0 {
                sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    };
    timeout(LIMIT, ended).await.context("documents do not end after the restore")?
}

/// Clients that send without pause until they are paused.
struct Load {
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
    running: watch::Sender<Mode>,
    clients: JoinSet<Result<()>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Sending,
    Paused,
    Ended,
}

impl Load {
    fn start(server: &Server, random: &mut Random) -> Self {
        let (running, mode) = watch::channel(Mode::Paused);
        let acknowledged = Arc::<Mutex<Vec<Acknowledged>>>::default();
        let clients = (0..CLIENTS)
            .map(|_| {
                let (caller, random) = (Caller::new(server.address), random.branch());
                send(caller, random, mode.clone(), Arc::clone(&acknowledged))
            })
            .collect();
        Self { acknowledged, running, clients }
    }

    fn resume(&self) {
        self.running.send_replace(Mode::Sending);
    }

    fn pause(&self) {
        self.running.send_replace(Mode::Paused);
    }

    fn acknowledged(&self) -> Vec<Acknowledged> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the error of a client that has ended.
    fn check(&mut self) -> Result<()> {
        self.clients.try_join_next().map_or(Ok(()), |client| client?)
    }

    async fn end(mut self) -> Result<Vec<Acknowledged>> {
        self.running.send_replace(Mode::Ended);
        while let Some(client) = self.clients.join_next().await {
            client??;
        }
        Ok(self.acknowledged())
    }
}

/// One client.
async fn send(
    mut caller: Caller,
    mut random: Random,
    mut mode: watch::Receiver<Mode>,
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
) -> Result<()> {
    loop {
        if *mode.wait_for(|mode| *mode != Mode::Paused).await? == Mode::Ended {
            return Ok(());
        }
        let call = random.uuid();
        let is_document = random.within(1..=DOCUMENT_EVERY) == 1;
        let (agent, text) =
            if is_document { (writer::AGENT, DOCUMENT.text()) } else { ("echo", format!("text {call}")) };
        let response = caller.call(agent, "SendMessage", message(call, &text, is_document)).await?;
        let view = View::of(&response["task"]).map_err(anyhow::Error::msg)?;
        let outcome = view.outcome();
        let task = Acknowledged { agent, task: view.task, outcome };
        acknowledged.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }
}
