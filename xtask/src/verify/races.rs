//! T-R10: cancel races. Each task of the slow writer is about to end by itself when a cancel is fired, up to 20 ms
//! before or behind that moment; sometimes two are. One of them wins, everybody is told the same, and nothing
//! follows.
//!
//! `race.rs` runs one race, `judge.rs` compares what its parts were told. The whole log of every task is read
//! again when all races are over, when a late writer has had its time. Deliberately not here: agents with
//! processes of their own, which must also be gone.

mod judge;
mod race;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::judge::Race;
use self::race::{Lane, follow};
use super::random::Random;
use super::rpc::{Caller, Failure};
use super::trial::{Seen, Stand, Trial};
use super::writer::AGENT;
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--races N] [--seed S] [--binary PATH]";

const DEFAULT_RACES: u64 = 10_000;
/// Races run at a time.
const LANES: u64 = 32;
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Longer than a run that lost its race can take to find out.
const LATE_WRITERS: Duration = Duration::from_millis(500);
/// When each side wins less than this share of the races, the cancels were not fired around the end.
const LEAST_SHARE_PERCENT: u64 = 5;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let trial = Trial::parse("T-R10", "--races", DEFAULT_RACES, args)?;
    trial.run(async |stand| campaign(&trial, stand).await)
}

async fn campaign(trial: &Trial, stand: &Stand) -> Result<Seen> {
    let server = Server::start(&stand.program, &stand.store).await?;
    let mut random = Random::new(trial.seed);
    let left = Arc::new(AtomicU64::new(trial.size));
    let (mut races, mut findings) = (Vec::new(), Vec::new());
    let address = server.address;
    for (ran, failures) in
        in_lanes((0..LANES).map(|_| race_on(random.branch(), Arc::clone(&left), address))).await
    {
        races.extend(ran);
        findings.extend(failures);
    }
    sleep(LATE_WRITERS).await;
    let share = races.len().div_ceil(usize::try_from(LANES)?).max(1);
    let shares: Vec<Vec<Race>> = races.chunks(share).map(<[Race]>::to_vec).collect();
    for found in in_lanes(shares.into_iter().map(|share| compare(share, address))).await {
        findings.extend(found);
    }
    let status = server.terminate(STOP_LIMIT).await?;
    if !status.success() {
        findings.push(format!("the server answered SIGTERM with {status}"));
    }
    Ok(seen(&races, findings))
}

/// Does all of them at once and collects what they give.
async fn in_lanes<T: Send + 'static>(
    lanes: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let lanes: JoinSet<T> = lanes.collect();
    lanes.join_all().await
}

/// Runs races until none is left; those that could not be run to their end are findings.
async fn race_on(mut random: Random, left: Arc<AtomicU64>, address: SocketAddr) -> (Vec<Race>, Vec<String>) {
    let (mut races, mut failures) = (Vec::new(), Vec::new());
    let mut lane = Lane::new(address);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        match lane.race(&mut random).await {
            Ok(race) => races.push(race),
            Err(failure) => failures.push(format!("a race was not run to its end: {failure}")),
        }
    }
    (races, failures)
}

/// Reads each task and its whole log again and compares them with what was told in the race.
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

fn seen(races: &[Race], mut findings: Vec<String>) -> Seen {
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
    Seen { figures, findings }
}
