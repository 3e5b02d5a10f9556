//! recovery_time: how long the server needs to recover from SIGKILL. With a store full of finished tasks and many
//! tasks running, the server is killed and started again on the same store: it must be ready within 2 s, and the
//! interrupted tasks must end within 5 s.
//!
//! The remaining work of each task is short, so that the measured time is the server's and not the agent's: the
//! kill comes when each document has at least one section, so at most the other sections of [`DOCUMENT`] are left.
//!
//! Deliberately not here: load during the kill and repeated kills (kill_under_load).

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::sleep;

use super::extra_options::{ExtraOptions, TimeLimits};
use super::fill::{self, Sent};
use super::random::Random;
use super::rpc::Caller;
use super::trial::{ProofResult, Setup, Trial, stop};
use super::writer::{self, Document};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--tasks N] [--open N] [--seed S] [--binary PATH] [--relaxed]";

const READY_GOAL: Duration = Duration::from_secs(2);
const HANDLED_GOAL: Duration = Duration::from_secs(5);
const DOCUMENT: Document = Document { sections: 4, delay_millis: 1_000 };
/// Delay between the last accepted document and the kill: time for its first section.
const KILL_AFTER: Duration = Duration::from_millis(1_300);
const POLL: Duration = Duration::from_millis(20);
/// Number of finished tasks that are read again.
const SAMPLE: usize = 1_000;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let (open, time_limits) = (extras.number("--open", 1_000)?, extras.time_limits());
    let trial = Trial::parse("recovery_time", "--tasks", 100_000, &extras.rest())?;
    trial.run(async |setup| recover(&trial, open, time_limits, setup).await)
}

async fn recover(trial: &Trial, open: u64, time_limits: TimeLimits, setup: &Setup) -> Result<ProofResult> {
    let mut random = Random::new(trial.seed);
    let config = format!("[limits]\nconcurrent = {}\n", open + 64);
    let launch = Launch::with_config(&setup.store, &config)?;

    let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let stored = fill::finished(server.address, trial.size, &mut random).await?;
    let begun = fill::begun(server.address, writer::AGENT, &DOCUMENT.text(), open, &mut random).await?;
    sleep(KILL_AFTER).await;
    let working = count_unfinished(&mut Caller::new(server.address)).await?;
    ensure!(
        working > open * 9 / 10,
        "recovery_time proves nothing: {working} of {open} documents in progress at the kill"
    );
    server.kill().await?;

    let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let ready = server.ready_after;
    let handled = until_all_ended(&mut Caller::new(server.address), time_limits.limit(HANDLED_GOAL)).await?;
    let mut findings = Vec::new();
    for (what, took, goal) in [("ready", ready, READY_GOAL), ("all handled", handled, HANDLED_GOAL)] {
        if took > time_limits.limit(goal) {
            findings.push(format!("slow: {what} after {took:?}, limit {:?}", time_limits.limit(goal)));
        }
    }
    findings.extend(compare(&server, &begun, &stored).await?);
    stop(server, &mut findings).await?;
    let figures = json!({
        "stored": stored.len(),
        "working_at_kill": working,
        "longest_remaining_work_ms": (DOCUMENT.sections - 1) * DOCUMENT.delay_millis,
        "ready_ms": u64::try_from(ready.as_millis())?,
        "handled_ms": u64::try_from(handled.as_millis())?,
        "relaxed": !time_limits.is_strict(),
    });
    Ok(ProofResult { figures, findings })
}

/// The number of documents that are not finished.
async fn count_unfinished(caller: &mut Caller) -> Result<u64> {
    let working = fill::count(caller, writer::AGENT, "TASK_STATE_WORKING").await?;
    Ok(working + fill::count(caller, writer::AGENT, "TASK_STATE_SUBMITTED").await?)
}

/// How long the documents take to finish; slightly more than `limit` when they do not.
async fn until_all_ended(caller: &mut Caller, limit: Duration) -> Result<Duration> {
    let started = Instant::now();
    while count_unfinished(caller).await? > 0 && started.elapsed() <= limit {
        sleep(POLL).await;
    }
    Ok(started.elapsed())
}

/// Every document must be complete, and the stored tasks must be unchanged.
async fn compare(server: &Server, begun: &[Sent], stored: &[Sent]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let ids: Vec<String> = begun.iter().map(|sent| sent.task.clone()).collect();
    for (id, task) in fill::read(server.address, writer::AGENT, &ids).await? {
        match task.map(|task| DOCUMENT.fault_in(&task)) {
            None => findings.push(format!("lost: document {id} is unknown")),
            Some(Some(fault)) => findings.push(format!("wrong: document {id} {fault}")),
            Some(None) => {}
        }
    }
    let sample: Vec<&Sent> = stored.iter().step_by(stored.len().div_ceil(SAMPLE).max(1)).collect();
    let ids: Vec<String> = sample.iter().map(|sent| sent.task.clone()).collect();
    for (id, task) in fill::read(server.address, "echo", &ids).await? {
        let sent = sample.iter().find(|sent| sent.task == id);
        match task.map(|task| sent.and_then(|sent| sent.fault_in(&task))) {
            None => findings.push(format!("lost: stored task {id} is unknown")),
            Some(Some(fault)) => findings.push(format!("wrong: stored task {id} {fault}")),
            Some(None) => {}
        }
    }
    Ok(findings)
}
