//! reference_model: random calls against a reference model of a few hundred lines. A sequential client must get
//! from the server exactly what the model predicts, including the number of each event and the order of each list.
//!
//! `reference.rs` is the model, `choices.rs` chooses the next call, `driver.rs` makes it and compares, `wire.rs`
//! reduces responses to what the model knows. Tasks are visible only through their agent, so the agents are driven
//! in parallel, each by one client. One of them (`stepper`, of the program `a2ad-fixtures`) takes journaled steps and saves
//! checkpoints, also across attempts and turns. Half-way the server is stopped and started again. At the end all finished
//! tasks expire (`purged.rs`). Deliberately not here: races, which have proofs of their own.

mod choices;
mod driver;
mod purged;
mod reference;
mod wire;

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::task::JoinSet;

use self::driver::{Divergence, Driver, Outcome};
use self::reference::MAX_TASK;
use super::random::Random;
use super::rpc::Caller;
use super::trial::{ProofResult, Setup, Trial, stop};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--operations N] [--seed S] [--binary PATH]";

const DEFAULT_OPERATIONS: u64 = 100_000;
/// The agents, and the share of the operations each gets, in percent.
const AGENTS: [(&str, u64); 4] = [("echo", 50), ("approver", 30), ("stepper", 15), ("slow-writer", 5)];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let trial = Trial::parse("reference_model", "--operations", DEFAULT_OPERATIONS, args)?;
    trial.run(async |setup| campaign(&trial, setup).await)
}

async fn campaign(trial: &Trial, setup: &Setup) -> Result<ProofResult> {
    let started = Instant::now();
    let mut random = Random::new(trial.seed);
    let launch = Launch::with_config(&setup.store, &format!("[limits]\nmax_task = \"{MAX_TASK}B\"\n"))?;
    let mut server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let address = server.address;
    for (agent, _) in AGENTS {
        let listed = Caller::new(address).call(agent, "ListTasks", json!({})).await;
        listed.with_context(|| format!("{agent} (an agent of the program a2ad-fixtures)"))?;
    }
    let mut drivers: Vec<Driver> =
        AGENTS.iter().map(|(agent, _)| Driver::new(agent, random.branch(), address)).collect();
    let mut findings = drive(&mut drivers, trial.size / 2).await;
    if findings.is_empty() {
        stop(server, &mut findings).await?;
        server = Server::start_with(&launch, &setup.program, &setup.store).await?;
        drivers.iter_mut().for_each(|driver| driver.caller = Caller::new(server.address));
        findings.extend(drive(&mut drivers, trial.size).await);
    }
    if findings.is_empty() {
        stop(server, &mut findings).await?;
        let launch = Launch::with_config(&setup.store, purged::CONFIG)?;
        server = Server::start_with(&launch, &setup.program, &setup.store).await?;
        drivers.iter_mut().for_each(|driver| driver.caller = Caller::new(server.address));
        for driver in &mut drivers {
            let outcome = driver.check_purged().await;
            findings.extend(finding(driver, outcome));
        }
    }
    // After a divergence the held tasks are not cancelled, and a graceful stop would wait for them.
    if findings.is_empty() {
        stop(server, &mut findings).await?
    } else {
        server.kill().await?
    }
    let done: u64 = drivers.iter().map(|driver| driver.done).sum();
    let seconds = started.elapsed().as_secs_f64();
    let figures = json!({
        "operations": done,
        "steps": drivers.iter().map(|driver| driver.reference.steps).sum::<u64>(),
        "tasks": drivers.iter().map(|driver| driver.reference.tasks.len()).sum::<usize>(),
        "events": drivers.iter().flat_map(|driver| &driver.reference.tasks).map(|task| task.log.len()).sum::<usize>(),
        "operations_per_second": (done as f64 / seconds).round(),
    });
    Ok(ProofResult { figures, findings })
}

/// Drives each agent until it has made its share of the operations; a driver that diverges stops early.
async fn drive(drivers: &mut Vec<Driver>, operations: u64) -> Vec<String> {
    let mut running = JoinSet::new();
    for driver in drivers.drain(..) {
        let share = AGENTS.iter().find(|(agent, _)| *agent == driver.agent).map_or(0, |(_, share)| *share);
        running.spawn(drive_one(driver, (operations * share).div_ceil(100)));
    }
    let mut findings = Vec::new();
    for (driver, finding) in running.join_all().await {
        findings.extend(finding);
        drivers.push(driver);
    }
    findings
}

async fn drive_one(mut driver: Driver, until: u64) -> (Driver, Option<String>) {
    let mut outcome = Ok(());
    while outcome.is_ok() && driver.done < until {
        outcome = driver.step().await;
    }
    if outcome.is_ok() {
        outcome = driver.cancel_held().await;
    }
    let finding = finding(&driver, outcome);
    (driver, finding)
}

/// The description of a divergence, with the calls before it.
fn finding(driver: &Driver, outcome: Outcome) -> Option<String> {
    outcome.err().map(|Divergence(what)| {
        let calls: Vec<String> = driver.calls.iter().map(|call| format!("  {call}")).collect();
        let subject = format!("{} diverged at operation {}", driver.agent, driver.done);
        format!("{subject}, the last of these calls:\n{}\n{what}", calls.join("\n"))
    })
}
