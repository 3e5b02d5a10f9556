//! fair_limits: one API key floods the server with sends, questions and lists; nine others call at a polite pace. The
//! rate limit refuses the flood with 429 and `Retry-After`, holds further refusals back, and the others are served as if
//! they were alone.
//!
//! Latencies are compared within one run: the polite callers alone, then beside the flood. Deliberately not here: the
//! form of a refusal in each binding, which tests of `inbound` compare.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::extra_options::{ExtraOptions, TimeLimits};
use super::http::Connection;
use super::random::Random;
use super::rpc::message;
use super::trial::{ProofResult, Setup, Trial, in_parallel, stop};
use crate::server::{self, Launch, Server};

pub(crate) const OPTIONS: &str = "[--seconds N] [--seed S] [--binary PATH] [--relaxed]";

const POLITE: usize = 9;
/// Between two calls of a polite caller: a third of its rate.
const PACE: Duration = Duration::from_millis(100);
/// Connections of the flood, each of which sends the next call as soon as it has a response.
const FLOOD: usize = 8;
const MAX_FACTOR: u32 = 2;
/// Latencies below this are noise of the machine.
const MIN_P99: Duration = Duration::from_millis(5);
/// Of a thousand polite calls, at most one may fail.
const MAX_FAILED: f64 = 0.001;

/// 1,800 calls at once, and then 30 a second.
const CONFIG: &str = r#"
[limits.rate]
per_key = "1800/min"
[agents.main]
auth = ["api-key"]
skills = ["echo", "approver"]
[skills.echo]
builtin = "echo"
[skills.approver]
builtin = "approver"
"#;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let limits = extras.time_limits();
    let trial = Trial::parse("fair_limits", "--seconds", 30, &extras.rest())?;
    trial.run(async |setup| prove(setup, Duration::from_secs(trial.size), limits, trial.seed).await)
}

async fn prove(setup: &Setup, time: Duration, limits: TimeLimits, seed: u64) -> Result<ProofResult> {
    let launch = Launch::with_config(&setup.store, CONFIG)?;
    let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let mut random = Random::new(seed);
    let mut keys = Vec::new();
    for owner in 0..=POLITE {
        keys.push(new_key(setup, &setup.store, owner).await?);
    }
    let flooder = keys.pop().context("a key for the flood")?;
    let address = server.address;
    let polite = async |random: &mut Random, time| {
        let until = Instant::now() + time;
        let callers = keys.iter().map(|key| polite_caller(address, key.clone(), until, random.branch()));
        Polite::of(in_parallel(callers.collect::<Vec<_>>().into_iter()).await)
    };
    polite(&mut random, Duration::from_secs(1)).await;
    let alone = polite(&mut random, time / 2).await;
    let until = Instant::now() + time / 2;
    let flood = (0..FLOOD).map(|number| flood(address, flooder.clone(), number, until, random.branch()));
    let flood = flood.collect::<Vec<_>>();
    let (beside, flooded) = tokio::join!(polite(&mut random, time / 2), in_parallel(flood.into_iter()));
    let flooded = flooded.into_iter().fold(Flooded::default(), Flooded::add);

    let mut findings = Vec::new();
    stop(server, &mut findings).await?;
    for (name, polite) in [("alone", &alone), ("beside the flood", &beside)] {
        if polite.failed as f64 > MAX_FAILED * (polite.times.len() + polite.failed) as f64 {
            findings.push(format!("unfair: {} polite calls {name} failed", polite.failed));
        }
    }
    if flooded.refused == 0 || flooded.without_time > 0 {
        findings.push(format!("the flood was not refused with 429 and Retry-After: {flooded:?}"));
    }
    if flooded.other > 0 {
        findings.push(format!("the flood had {} other responses than 200 and 429", flooded.other));
    }
    let limit = MAX_FACTOR * alone.p99().max(MIN_P99);
    if limits.is_strict() && beside.p99() > limit {
        findings.push(format!("slow: p99 {:?} beside the flood, {:?} alone", beside.p99(), alone.p99()));
    }
    let millis = |duration: Duration| (duration.as_secs_f64() * 1e4).round() / 10.0;
    let figures = json!({
        "polite_calls_alone": alone.times.len(),
        "polite_calls_beside": beside.times.len(),
        "polite_failed": alone.failed + beside.failed,
        "p99_alone_ms": millis(alone.p99()),
        "p99_beside_ms": millis(beside.p99()),
        "flood_served": flooded.served,
        "flood_refused": flooded.refused,
    });
    Ok(ProofResult { figures, findings })
}

/// Makes an API key with the command line.
async fn new_key(setup: &Setup, store: &Path, owner: usize) -> Result<String> {
    let mut command = server::command(&setup.program);
    command.args(["keys", "new", "main", "--owner", &format!("caller-{owner}"), "--store"]).arg(store);
    let output = command.output().await.context("a2ad keys cannot be started")?;
    ensure!(output.status.success(), "a2ad keys new: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The latencies of successful calls, sorted, and how many failed.
struct Polite {
    times: Vec<Duration>,
    failed: usize,
}

impl Polite {
    fn of(callers: Vec<Self>) -> Self {
        let failed = callers.iter().map(|one| one.failed).sum();
        let mut times: Vec<Duration> = callers.into_iter().flat_map(|one| one.times).collect();
        times.sort_unstable();
        Self { times, failed }
    }

    fn p99(&self) -> Duration {
        self.times.get(self.times.len() * 99 / 100).copied().unwrap_or_default()
    }
}

async fn polite_caller(address: SocketAddr, key: String, until: Instant, mut random: Random) -> Polite {
    let mut seen = Polite { times: Vec::new(), failed: 0 };
    let mut connection = None;
    let mut pace = tokio::time::interval(PACE);
    while Instant::now() < until {
        pace.tick().await;
        let started = Instant::now();
        let body = call("SendMessage", &message(random.uuid(), "hello", false));
        match post(&mut connection, address, &key, &body).await {
            Ok((200, _)) => seen.times.push(started.elapsed()),
            Ok(_) | Err(_) => seen.failed += 1,
        }
    }
    seen
}

/// The responses to the flood.
#[derive(Clone, Copy, Debug, Default)]
struct Flooded {
    served: u64,
    refused: u64,
    /// Refused without a valid `Retry-After`.
    without_time: u64,
    other: u64,
}

impl Flooded {
    fn add(self, other: Self) -> Self {
        Self {
            served: self.served + other.served,
            refused: self.refused + other.refused,
            without_time: self.without_time + other.without_time,
            other: self.other + other.other,
        }
    }
}

/// Sends, questions that nobody answers, and lists.
async fn flood(
    address: SocketAddr,
    key: String,
    number: usize,
    until: Instant,
    mut random: Random,
) -> Flooded {
    let mut seen = Flooded::default();
    let mut connection = None;
    while Instant::now() < until {
        let body = match number % 3 {
            0 => call("SendMessage", &message(random.uuid(), "hello", false)),
            1 => call("SendMessage", &message(random.uuid(), "approve the purchase", true)),
            _ => call("ListTasks", &json!({})),
        };
        match post(&mut connection, address, &key, &body).await {
            Ok((200, _)) => seen.served += 1,
            Ok((429, retry_after)) => {
                seen.refused += 1;
                seen.without_time += u64::from(retry_after.is_none_or(|seconds| seconds == 0));
            }
            Ok(_) | Err(_) => seen.other += 1,
        }
    }
    seen
}

fn call(method: &str, params: &Value) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string().into_bytes()
}

/// Posts a call; the connection is opened again when it was closed. Returns the status and `Retry-After`.
async fn post(
    connection: &mut Option<Connection>,
    address: SocketAddr,
    key: &str,
    body: &[u8],
) -> Result<(u16, Option<u64>)> {
    let mut open = match connection.take() {
        Some(open) => open,
        None => Connection::open(address).await?,
    };
    let headers = [("A2A-Version", "1.0"), ("X-Api-Key", key)];
    let response = open.post_json("/a2a/main", &headers, body).await?;
    let closes = response.headers.get("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    *connection = Some(open).filter(|_| !closes);
    let retry_after = response.headers.get("retry-after").and_then(|value| value.parse().ok());
    Ok((response.status, retry_after))
}
