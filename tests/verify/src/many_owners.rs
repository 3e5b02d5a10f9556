//! many_owners: a store whose tasks belong to very many owners.
//!
//! The store is filled without the server, one finished task for each owner. Lists and counts are timed on the open
//! store. Then the tasks expire under a running server, which must delete all of them and all owners while it answers
//! live calls.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use engine::{
    Clock, Scope, ScopeParts, Store,
    store::{Expiry, ListQuery, TenantAgent, View, WaitingSince},
};
use protocol::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::extra_options::{ExtraOptions, TimeLimits};
use super::filled_store;
use super::random::Random;
use super::rpc::{Caller, message};
use super::trial::{ProofResult, Setup, Trial, stop};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--owners N] [--seed S] [--binary PATH] [--relaxed]";

/// Calls of each kind that are timed on the open store.
const SAMPLE: usize = 500;
/// Goal for each of them, except the first after the start.
const CALL_GOAL: Duration = Duration::from_millis(5);
/// Goal for the deletion of one task and its owner.
const DELETE_GOAL: Duration = Duration::from_micros(500);
const POLL: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let time_limits = extras.time_limits();
    let trial = Trial::parse("many_owners", "--owners", 1_000_000, &extras.rest())?;
    trial.run(async |setup| measure(&trial, time_limits, setup).await)
}

async fn measure(trial: &Trial, time_limits: TimeLimits, setup: &Setup) -> Result<ProofResult> {
    let mut findings = Vec::new();
    let owners = i64::try_from(trial.size)?;
    let started = Instant::now();
    let mut figures = fill_and_time(&setup.store, owners, time_limits, &mut findings).await?;
    figures["fill_s"] = (started.elapsed().as_secs()).into();
    figures["store_mib"] = (std::fs::metadata(&setup.store)?.len() >> 20).into();

    let config = "[store]\nretention = { max_age = \"1s\", keys = \"1s\" }\n";
    let launch = Launch::with_config(&setup.store, config)?;
    let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let started = Instant::now();
    let limit = time_limits.limit(DELETE_GOAL * u32::try_from(owners)?) + Duration::from_secs(10);
    let mut random = Random::new(trial.seed);
    let mut times = live_calls_until(server.address, &mut random, async || {
        Ok(started.elapsed() > limit || owners_left(&setup.store)? <= 1)
    })
    .await?;
    let purge = started.elapsed();
    let left = owners_left(&setup.store)?;
    if left > 1 {
        findings.push(format!("stuck: {left} owners are left after {purge:?}"));
    }
    let ready = server.ready_after;
    stop(server, &mut findings).await?;
    times.sort_unstable();
    let p99 = times.get(times.len() * 99 / 100).copied().context("no live call was made")?;
    figures["owners"] = owners.into();
    figures["ready_ms"] = u64::try_from(ready.as_millis())?.into();
    figures["purge_s"] = purge.as_secs_f64().into();
    figures["purged_per_s"] = (trial.size as f64 / purge.as_secs_f64()).round().into();
    figures["live_calls"] = times.len().into();
    figures["live_p99_ms"] = (p99.as_secs_f64() * 1e3).into();
    figures["relaxed"] = (!time_limits.is_strict()).into();
    Ok(ProofResult { figures, findings })
}

fn owner(index: i64) -> Scope {
    Scope::new(ScopeParts {
        tenant: "default".into(),
        principal: format!("owner-{index}"),
        agent: "echo".into(),
        end_user: String::new(),
    })
}

/// Fills the store, and times the calls whose cost could depend on the number of owners.
async fn fill_and_time(
    path: &Path,
    owners: i64,
    time_limits: TimeLimits,
    findings: &mut Vec<String>,
) -> Result<Value> {
    let clock = Clock::system();
    let store = filled_store::open(path, &clock)?;
    filled_store::fill(&store, owners, clock.now(), |index| (owner(index), None)).await?;
    let agent = TenantAgent::of(&owner(0));
    let sampled = |sample: usize| owner(sample as i64 * owners / SAMPLE as i64);
    let mut figures = json!({});
    let mut record = |name: &str, mut times: Vec<Duration>| {
        times.sort_unstable();
        let p99 = times[times.len() * 99 / 100];
        figures[format!("{name}_p50_us")] =
            u64::try_from(times[times.len() / 2].as_micros()).unwrap_or(u64::MAX).into();
        figures[format!("{name}_p99_us")] = u64::try_from(p99.as_micros()).unwrap_or(u64::MAX).into();
        if p99 > time_limits.limit(CALL_GOAL) {
            findings.push(format!("slow: {name} takes {p99:?}"));
        }
    };
    let mut times = Vec::new();
    for sample in 0..SAMPLE {
        let began = Instant::now();
        let query = ListQuery {
            context: None,
            state: None,
            since: None,
            after: None,
            size: 50,
            view: View::default(),
        };
        let page = store.list(&sampled(sample), query).await?;
        times.push(began.elapsed());
        anyhow::ensure!(page.total == 1, "an owner has {} tasks", page.total);
    }
    record("list", std::mem::take(&mut times));
    for _ in 0..SAMPLE {
        let began = Instant::now();
        store.count_open(&agent).await?;
        times.push(began.elapsed());
    }
    record("count_open", std::mem::take(&mut times));
    for _ in 0..SAMPLE {
        let began = Instant::now();
        store.agents().await?;
        times.push(began.elapsed());
    }
    record("agents", std::mem::take(&mut times));
    for _ in 0..SAMPLE {
        let began = Instant::now();
        let nothing = Timestamp::from_millis(0);
        store
            .expired(Expiry {
                owner: agent.clone(),
                now: clock.now(),
                ended_before: nothing,
                max_tasks: Some(u64::MAX),
                waiting_since: WaitingSince { default: nothing, skills: Vec::new() },
                max: 64,
            })
            .await?;
        times.push(began.elapsed());
    }
    record("expired", times);
    Ok(figures)
}

/// The number of owners, counted up to a hundred.
fn owners_left(path: &Path) -> Result<u32> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    let query = "SELECT count(*) FROM (SELECT 1 FROM scopes LIMIT 100)";
    Ok(connection.query_row(query, [], |row| row.get(0))?)
}

/// Calls the server at intervals until something is true; returns the latencies.
async fn live_calls_until(
    address: SocketAddr,
    random: &mut Random,
    mut over: impl AsyncFnMut() -> Result<bool>,
) -> Result<Vec<Duration>> {
    let (mut caller, mut times) = (Caller::new(address), Vec::new());
    while !over().await? {
        let began = Instant::now();
        caller.call("echo", "SendMessage", message(random.uuid(), "hello", false)).await?;
        times.push(began.elapsed());
        sleep(POLL).await;
    }
    Ok(times)
}
