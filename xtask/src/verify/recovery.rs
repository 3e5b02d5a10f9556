//! T-R8: how long the server needs to be back. A store full of finished tasks and many at work, SIGKILL, and a
//! start on the same store: ready soon, and all that was at work ended soon after.
//!
//! What remains to be written is short, so that the time is the server's and not the agent's: the kill comes when
//! each piece has a section or more, and at most [`PIECE`]'s other sections are left.
//!
//! Deliberately not here: load during the kill and many kills (T-R1).

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::sleep;

use super::extras::{Extras, Pace};
use super::fill::{self, Sent};
use super::random::Random;
use super::rpc::Caller;
use super::trial::{Seen, Stand, Trial};
use super::writer::{self, Piece};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--tasks N] [--open N] [--seed S] [--binary PATH] [--relaxed]";

const READY_GOAL: Duration = Duration::from_secs(2);
const HANDLED_GOAL: Duration = Duration::from_secs(5);
const PIECE: Piece = Piece { sections: 4, delay_millis: 1_000 };
/// Behind the last accepted piece: time for its first section.
const KILL_AFTER: Duration = Duration::from_millis(1_300);
const POLL: Duration = Duration::from_millis(20);
/// How many of the finished tasks are read again.
const SAMPLE: usize = 1_000;
const STOP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = Extras::of(args);
    let (open, pace) = (extras.number("--open", 1_000)?, extras.pace());
    let trial = Trial::parse("T-R8", "--tasks", 100_000, &extras.rest())?;
    trial.run(async |stand| recover(&trial, open, pace, stand).await)
}

async fn recover(trial: &Trial, open: u64, pace: Pace, stand: &Stand) -> Result<Seen> {
    let mut random = Random::new(trial.seed);
    let config = format!("[limits]\nconcurrent = {}\n", open + 64);
    let launch = Launch::with_config(&stand.store, &config)?;

    let server = Server::start_by(&launch, &stand.program, &stand.store).await?;
    let stored = fill::finished(server.address, trial.size, &mut random).await?;
    let begun = fill::begun(server.address, writer::AGENT, &PIECE.text(), open, &mut random).await?;
    sleep(KILL_AFTER).await;
    let working = at_work(&mut Caller::new(server.address)).await?;
    ensure!(working > open * 9 / 10, "T-R8 proves nothing: {working} of {open} pieces at work at the kill");
    server.kill().await?;

    let server = Server::start_by(&launch, &stand.program, &stand.store).await?;
    let ready = server.ready_after;
    let handled = until_all_ended(&mut Caller::new(server.address), pace.limit(HANDLED_GOAL)).await?;
    let mut findings = Vec::new();
    for (what, took, goal) in [("ready", ready, READY_GOAL), ("all handled", handled, HANDLED_GOAL)] {
        if took > pace.limit(goal) {
            findings.push(format!("slow: {what} after {took:?}, wanted within {:?}", pace.limit(goal)));
        }
    }
    findings.extend(compare(&server, &begun, &stored).await?);
    let status = server.terminate(STOP_LIMIT).await?;
    if !status.success() {
        findings.push(format!("the server answered SIGTERM with {status}"));
    }
    let figures = json!({
        "stored": stored.len(),
        "working_at_kill": working,
        "longest_remaining_work_ms": (PIECE.sections - 1) * PIECE.delay_millis,
        "ready_ms": u64::try_from(ready.as_millis())?,
        "handled_ms": u64::try_from(handled.as_millis())?,
        "relaxed": !pace.is_strict(),
    });
    Ok(Seen { figures, findings })
}

/// How many pieces are not ended.
async fn at_work(caller: &mut Caller) -> Result<u64> {
    let working = fill::count(caller, writer::AGENT, "TASK_STATE_WORKING").await?;
    Ok(working + fill::count(caller, writer::AGENT, "TASK_STATE_SUBMITTED").await?)
}

/// How long the pieces take to end; a little beyond `limit` when they do not.
async fn until_all_ended(caller: &mut Caller, limit: Duration) -> Result<Duration> {
    let started = Instant::now();
    while at_work(caller).await? > 0 && started.elapsed() <= limit {
        sleep(POLL).await;
    }
    Ok(started.elapsed())
}

/// Every piece must be whole, and what was stored must still be there.
async fn compare(server: &Server, begun: &[Sent], stored: &[Sent]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let ids: Vec<String> = begun.iter().map(|sent| sent.task.clone()).collect();
    for (id, task) in fill::read(server.address, writer::AGENT, &ids).await? {
        match task.map(|task| PIECE.fault_in(&task)) {
            None => findings.push(format!("lost: piece {id} is unknown")),
            Some(Some(fault)) => findings.push(format!("wrong: piece {id} {fault}")),
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
