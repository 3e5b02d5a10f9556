//! T-R20: random calls against a reference of a few hundred lines. Whatever a sequential client asks, the server
//! answers as the reference says, down to the number of each event and the order of each list.
//!
//! `reference.rs` says what must be, `choices.rs` what is asked next, `driver.rs` asks and compares, `wire.rs`
//! reduces answers to what the reference knows. Tasks are seen by their agent's callers only, so the agents are
//! driven in parallel, each by one client; half-way the server is stopped and started again. Deliberately not
//! here: races, which have rows of their own.

mod choices;
mod driver;
mod reference;
mod wire;

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use tokio::task::JoinSet;

use self::driver::{Divergence, Driver};
use super::random::Random;
use super::rpc::Caller;
use super::trial::{Seen, Stand, Trial};
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--operations N] [--seed S] [--binary PATH]";

const DEFAULT_OPERATIONS: u64 = 100_000;
/// The agents, and how many of a hundred operations each gets.
const AGENTS: [(&str, u64); 3] = [("echo", 55), ("approver", 40), ("slow-writer", 5)];
const STOP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let trial = Trial::parse("T-R20", "--operations", DEFAULT_OPERATIONS, args)?;
    trial.run(async |stand| campaign(&trial, stand).await)
}

async fn campaign(trial: &Trial, stand: &Stand) -> Result<Seen> {
    let started = Instant::now();
    let mut random = Random::new(trial.seed);
    let mut server = Server::start(&stand.program, &stand.store).await?;
    let address = server.address;
    let mut drivers: Vec<Driver> =
        AGENTS.iter().map(|(agent, _)| Driver::new(agent, random.branch(), address)).collect();
    let mut findings = drive(&mut drivers, trial.size / 2).await;
    if findings.is_empty() {
        stop(server, &mut findings).await?;
        server = Server::start(&stand.program, &stand.store).await?;
        drivers.iter_mut().for_each(|driver| driver.caller = Caller::new(server.address));
        findings.extend(drive(&mut drivers, trial.size).await);
    }
    // After a divergence nobody lets go of what is held, and stopping would wait for it.
    if findings.is_empty() {
        stop(server, &mut findings).await?
    } else {
        server.kill().await?
    }
    let done: u64 = drivers.iter().map(|driver| driver.done).sum();
    let seconds = started.elapsed().as_secs_f64();
    let figures = json!({
        "operations": done,
        "tasks": drivers.iter().map(|driver| driver.reference.tasks.len()).sum::<usize>(),
        "events": drivers.iter().flat_map(|driver| &driver.reference.tasks).map(|task| task.log.len()).sum::<usize>(),
        "operations_per_second": (done as f64 / seconds).round(),
    });
    Ok(Seen { figures, findings })
}

/// Drives each agent until it has had its share of so many operations; those that diverge stop early.
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
        outcome = driver.let_go().await;
    }
    let finding = outcome.err().map(|Divergence(what)| {
        let calls: Vec<String> = driver.calls.iter().map(|call| format!("  {call}")).collect();
        let place = format!("{} diverged at operation {}", driver.agent, driver.done);
        format!("{place}, the last of these:\n{}\n{what}", calls.join("\n"))
    });
    (driver, finding)
}

async fn stop(server: Server, findings: &mut Vec<String>) -> Result<()> {
    let status = server.terminate(STOP_LIMIT).await?;
    if !status.success() {
        findings.push(format!("the server answered SIGTERM with {status}"));
    }
    Ok(())
}
