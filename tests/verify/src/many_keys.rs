//! many_keys: sends to a store with millions of idempotency keys cost hardly more than to an empty one.
//!
//! The store is filled without the server. Then servers with the full and with an empty store take turns, each under
//! the same load of new messages, every one of which is looked up among all keys.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use engine::{Clock, Scope, Store, store::MessageKey};
use serde_json::json;

use super::extra_options::{ExtraOptions, TimeLimits};
use super::random::Random;
use super::request_bombs::memory;
use super::rpc::{Caller, Failure, message};
use super::trial::{ProofResult, Setup, Trial, in_parallel, stop};
use super::{filled_store, view::View};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str =
    "[--keys N] [--seconds S] [--rounds N] [--seed S] [--binary PATH] [--relaxed]";

const CONNECTIONS: u64 = 16;
/// Keys that are looked up one by one.
const SAMPLE: i64 = 20_000;
/// Rate of sends with the full store at least, in percent of that with an empty one.
const MIN_PERCENT: f64 = 80.0;
/// Runs of keys at most: eight of each of four sizes, those that are being merged, and those flushed meanwhile.
const MAX_RUNS: u64 = 48;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let (seconds, rounds) = (extras.number("--seconds", 10)?, extras.number("--rounds", 3)?);
    let time_limits = extras.time_limits();
    let trial = Trial::parse("many_keys", "--keys", 10_000_000, &extras.rest())?;
    trial.run(async |setup| measure(&trial, seconds, rounds, time_limits, setup).await)
}

async fn measure(
    trial: &Trial,
    seconds: u64,
    rounds: u64,
    time_limits: TimeLimits,
    setup: &Setup,
) -> Result<ProofResult> {
    let mut findings = Vec::new();
    let keys = i64::try_from(trial.size)?;
    let started = Instant::now();
    let missing = fill(&setup.store, keys, trial.seed).await?;
    let fill_time = started.elapsed();
    if missing > 0 {
        findings.push(format!("lost: {missing} of {SAMPLE} sampled keys are not found"));
    }
    let runs = count_runs(&setup.store)?;
    if runs > MAX_RUNS {
        findings.push(format!("growth: there are {runs} runs of keys"));
    }
    let empty = setup.store.with_file_name("empty.db");
    let mut random = Random::new(trial.seed);
    let mut rates = [Vec::new(), Vec::new()];
    let mut resident = [0, 0];
    let mut ready = Duration::ZERO;
    for _ in 0..rounds {
        for (index, store) in [&empty, &setup.store].into_iter().enumerate() {
            // Nothing expires during the measurement.
            let launch = Launch::with_config(store, "[store]\nretention = { max_age = \"1000h\" }\n")?;
            let server = Server::start_with(&launch, &setup.program, store).await?;
            ready = server.ready_after;
            rates[index].push(rate(server.address, Duration::from_secs(seconds), &mut random).await?);
            let process = server.id().context("the server runs")?;
            resident[index] = resident[index].max(memory::read(process)?.peak);
            stop(server, &mut findings).await?;
        }
    }
    let [empty_rate, full_rate] = rates.each_ref().map(|rates| median(rates));
    let percent = 100.0 * full_rate / empty_rate;
    if percent < MIN_PERCENT && time_limits.is_strict() {
        findings.push(format!("slow: {full_rate:.0} sends/s with all keys, {empty_rate:.0} without"));
    }
    let figures = json!({
        "keys": keys, "runs": runs, "fill_s": fill_time.as_secs(),
        "store_mib": std::fs::metadata(&setup.store)?.len() >> 20,
        "sends_per_s_empty": empty_rate.round(), "sends_per_s_full": full_rate.round(),
        "percent_of_empty": percent.round(),
        "resident_peak_mib_empty": resident[0] >> 20, "resident_peak_mib_full": resident[1] >> 20,
        "ready_ms_full": u64::try_from(ready.as_millis())?,
        "relaxed": !time_limits.is_strict(),
    });
    Ok(ProofResult { figures, findings })
}

/// Fills the store; returns how many of the sampled keys are not found.
async fn fill(path: &Path, keys: i64, seed: u64) -> Result<i64> {
    let clock = Clock::system();
    let store = filled_store::open(path, &clock)?;
    let scope = Scope::anonymous("default", "echo");
    let key = |index: i64| MessageKey { key: digest(seed, index), hash: [0; 16] };
    filled_store::fill(&store, keys, clock.now(), |index| (scope.clone(), Some(key(index)))).await?;
    let mut missing = 0;
    for sample in 0..SAMPLE.min(keys) {
        let known = store.first_use(key(sample * keys / SAMPLE.min(keys))).await?.is_some();
        let unknown = store.first_use(key(-1 - sample)).await?.is_none();
        missing += i64::from(!known || !unknown);
    }
    Ok(missing)
}

/// A key that looks random, the same each time.
fn digest(seed: u64, index: i64) -> [u8; 16] {
    let mut random = Random::new(seed ^ index.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15));
    *random.uuid().as_bytes()
}

fn count_runs(path: &Path) -> Result<u64> {
    let connection = rusqlite::Connection::open(path)?;
    let runs: u32 = connection.query_row("SELECT count(*) FROM key_runs", [], |row| row.get(0))?;
    Ok(runs.into())
}

/// Sends per second of several clients, each with one call at a time and a new key for each call.
async fn rate(address: SocketAddr, time: Duration, random: &mut Random) -> Result<f64> {
    let started = Instant::now();
    let clients = (0..CONNECTIONS).map(|_| {
        let mut random = random.branch();
        async move {
            let (mut caller, mut sent) = (Caller::new(address), 0u32);
            while started.elapsed() < time {
                let response =
                    caller.call("echo", "SendMessage", message(random.uuid(), "hello", false)).await?;
                View::of(&response["task"]).map_err(Failure::Unusable)?;
                sent += 1;
            }
            Ok::<_, Failure>(sent)
        }
    });
    let sent = in_parallel(clients).await.into_iter().sum::<Result<u32, _>>()?;
    Ok(f64::from(sent) / started.elapsed().as_secs_f64())
}

fn median(rates: &[f64]) -> f64 {
    let mut rates = rates.to_vec();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}
