//! cancel_races: cancellation races with completion. Each task of `slow-writer` is about to complete when a cancel
//! is sent, up to 20 ms before or after that moment; sometimes two are. One side wins, all clients see the same
//! outcome, and no event follows it.
//!
//! `race.rs` runs one race, `checker.rs` compares what its clients received. The whole log of every task is read
//! again after all races, so that late writes would show. Deliberately not here: agents with processes of their
//! own, which must also be stopped.

mod checker;
mod race;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::time::sleep;

use self::checker::Race;
use self::race::{Worker, follow};
use super::random::Random;
use super::rpc::{Caller, Failure};
use super::trial::{ProofResult, Setup, Trial, in_parallel, stop};
use super::writer::AGENT;
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--races N] [--seed S] [--binary PATH]";

const DEFAULT_RACES: u64 = 10_000;
/// Races that run concurrently.
const WORKERS: u64 = 32;
/// Longer than a run that lost its race can take to notice it.
const LATE_WRITE_PAUSE: Duration = Duration::from_millis(500);
/// If either side wins a smaller share of the races, the cancels were not sent close enough to the completion.
const LEAST_SHARE_PERCENT: u64 = 5;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let trial = Trial::parse("cancel_races", "--races", DEFAULT_RACES, args)?;
    trial.run(async |setup| campaign(&trial, setup).await)
}

async fn campaign(trial: &Trial, setup: &Setup) -> Result<ProofResult> {
    let server = Server::start(&setup.program, &setup.store).await?;
    let mut random = Random::new(trial.seed);
    let left = Arc::new(AtomicU64::new(trial.size));
    let (mut races, mut findings) = (Vec::new(), Vec::new());
    let address = server.address;
    for (ran, failures) in
        in_parallel((0..WORKERS).map(|_| run_races(random.branch(), Arc::clone(&left), address))).await
    {
        races.extend(ran);
        findings.extend(failures);
    }
    sleep(LATE_WRITE_PAUSE).await;
    let share = races.len().div_ceil(usize::try_from(WORKERS)?).max(1);
    let shares: Vec<Vec<Race>> = races.chunks(share).map(<[Race]>::to_vec).collect();
    for found in in_parallel(shares.into_iter().map(|share| compare(share, address))).await {
        findings.extend(found);
    }
    stop(server, &mut findings).await?;
    Ok(proof_result(&races, findings))
}

/// Runs races until none is left; a race that could not be finished is a finding.
async fn run_races(
    mut random: Random,
    left: Arc<AtomicU64>,
    address: SocketAddr,
) -> (Vec<Race>, Vec<String>) {
    let (mut races, mut failures) = (Vec::new(), Vec::new());
    let mut worker = Worker::new(address);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        match worker.race(&mut random).await {
            Ok(race) => races.push(race),
            Err(failure) => failures.push(format!("a race was not finished: {failure}")),
        }
    }
    (races, failures)
}

/// Reads each task and its whole log again and compares them with what its clients received.
async fn compare(races: Vec<Race>, address: SocketAddr) -> Vec<String> {
    let mut caller = Caller::new(address);
    let mut findings = Vec::new();
    for race in races {
        match read(&mut caller, &race).await {
            Ok(found) => findings.extend(found),
            Err(failure) => findings.push(format!("task {}: cannot be read again: {failure}", race.task)),
        }
    }
    findings
}

async fn read(caller: &mut Caller, race: &Race) -> Result<Vec<String>, Failure> {
    let task = caller.call(AGENT, "GetTask", json!({"id": race.task})).await?;
    let mut frames = caller
        .stream_with(&[("Last-Event-ID", "0")], AGENT, "SubscribeToTask", json!({"id": race.task}))
        .await?;
    let log = follow(&mut frames, |_| {}).await?;
    Ok(race.compare(&task, &log))
}

fn proof_result(races: &[Race], mut findings: Vec<String>) -> ProofResult {
    let canceled = races.iter().filter(|race| race.was_canceled()).count() as u64;
    let total = races.len() as u64;
    let least = total * LEAST_SHARE_PERCENT / 100;
    if canceled < least || total - canceled < least {
        findings.push(format!("nothing is proved: {canceled} of {total} races were won by a cancel"));
    }
    let close: RangeInclusive<i64> = -2_000..=2_000;
    let figures = json!({
        "races": total,
        "canceled": canceled,
        "completed": total - canceled,
        "with_two_cancels": races.iter().filter(|race| race.cancels.len() > 1).count(),
        "streamed": races.iter().filter(|race| race.streamed.is_some()).count(),
        "within_2_ms": races.iter().filter(|race| close.contains(&race.offset_micros)).count(),
    });
    ProofResult { figures, findings }
}
