//! Three times as many messages as the slots can run: the rest is refused at once, and what is done in a second stays.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::super::extra_options::TimeLimits;
use super::super::random::Random;
use super::super::rpc::{Caller, Failure, message};
use super::super::trial::{Setup, in_parallel};
use super::super::writer::{AGENT, Document};
use super::{Part, millis, store};
use crate::server::{Launch, Server};

const SLOTS: usize = 8;
/// More than this waits: the next message is refused.
const QUEUED: usize = 24;
/// Clients that keep all slots busy and wait for each result.
const CLIENTS: usize = 16;
const RUN: Document = Document { sections: 1, delay_millis: 40 };
const FACTOR: f64 = 3.0;
const MIN_GOODPUT: f64 = 0.8;
const RECOVERY_GOAL: Duration = Duration::from_secs(5);

pub(super) async fn run(
    setup: &Setup,
    time: Duration,
    limits: TimeLimits,
    random: &mut Random,
) -> Result<Part> {
    let variable = |name: &str, value: usize| (name.into(), value.to_string().into());
    let variables = vec![variable("A2AD_LIMITS__CONCURRENT", SLOTS), variable("A2AD_LIMITS__QUEUED", QUEUED)];
    let launch = Launch { variables, ..Launch::default() };
    let mut server = Server::start_with(&launch, &setup.program, &store(setup, "goodput")).await?;
    let peak = peak(server.address, (time / 6).clamp(Duration::from_secs(2), time), random).await;
    let shed = overload(server.address, peak * FACTOR, time, random).await?;
    let begun = Instant::now();
    let after = send(server.address, random.branch()).await;
    let recovered = begun.elapsed();
    let goodput = shed.completed as f64 / time.as_secs_f64();

    let mut findings = Vec::new();
    if let Some(status) = server.ended()? {
        findings.push(format!("the server ended with {status}"));
    }
    if shed.refused == 0 || shed.other > 0 {
        findings.push(format!("refused: {} messages, {} other failures", shed.refused, shed.other));
    }
    if limits.is_strict() && goodput < MIN_GOODPUT * peak {
        findings.push(format!("slow: {goodput:.0} tasks a second under overload, {peak:.0} without"));
    }
    if after.is_err() || recovered > limits.limit(RECOVERY_GOAL) {
        findings.push(format!("slow: a message after the overload took {recovered:?}"));
    }
    server.kill().await?;
    let figures = json!({
        "peak_per_s": peak.round(),
        "offered_per_s": (shed.completed + shed.refused + shed.other) / time.as_secs().max(1),
        "goodput_per_s": goodput.round(),
        "goodput_ratio": (goodput / peak * 100.0).round() / 100.0,
        "refused": shed.refused,
        "recovered_ms": millis(recovered),
    });
    Ok(Part { figures, findings })
}

/// Tasks a second when clients wait for each result.
async fn peak(address: SocketAddr, time: Duration, random: &mut Random) -> f64 {
    let until = Instant::now() + time;
    let clients = (0..CLIENTS).map(|_| {
        let mut random = random.branch();
        async move {
            let mut completed = 0_u64;
            while Instant::now() < until {
                completed += u64::from(send(address, random.branch()).await.is_ok());
            }
            completed
        }
    });
    let completed: u64 = in_parallel(clients.collect::<Vec<_>>().into_iter()).await.into_iter().sum();
    completed as f64 / time.as_secs_f64()
}

#[derive(Default)]
struct Shed {
    /// Within the time of the overload.
    completed: u64,
    refused: u64,
    other: u64,
}

/// Sends this many messages a second, whether or not they are answered.
async fn overload(address: SocketAddr, rate: f64, time: Duration, random: &mut Random) -> Result<Shed> {
    let until = Instant::now() + time;
    let mut ticks = interval(Duration::from_secs_f64(1.0 / rate.max(1.0)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut sends = JoinSet::new();
    while Instant::now() < until {
        ticks.tick().await;
        sends.spawn(send(address, random.branch()));
    }
    let mut shed = Shed::default();
    while let Some(sent) = sends.join_next().await {
        match sent.context("a client panicked")? {
            Ok(at) => shed.completed += u64::from(at <= until),
            Err(Failure::Error { reason, .. }) if reason == "UNAVAILABLE" || reason == "RATE_LIMITED" => {
                shed.refused += 1;
            }
            Err(error) => {
                eprintln!("overload: {error}");
                shed.other += 1;
            }
        }
    }
    Ok(shed)
}

/// Sends a message and waits for its result; returns when it came.
async fn send(address: SocketAddr, mut random: Random) -> Result<Instant, Failure> {
    let message = message(random.uuid(), &RUN.text(), false);
    Caller::new(address).call(AGENT, "SendMessage", message).await.map(|_| Instant::now())
}
