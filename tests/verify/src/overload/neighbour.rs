//! Slow runs of one agent, as many as there are slots, beside calls to another: its latency stays.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use tokio::time::timeout;

use super::super::extra_options::TimeLimits;
use super::super::fill;
use super::super::random::Random;
use super::super::rpc::{Caller, message};
use super::super::trial::{Setup, in_parallel};
use super::super::writer::{AGENT, Document};
use super::{Part, millis, start};

const SLOTS: usize = 256;
const CLIENTS: usize = 8;
/// The neighbour's runs, longer than this part.
const SLOW: Document = Document { sections: 1, delay_millis: 60_000 };
const MAX_FACTOR: u32 = 2;
/// Latencies below this are noise of the machine.
const MIN_P99: Duration = Duration::from_millis(2);
/// After this time a call counts as unanswered.
const CALL_LIMIT: Duration = Duration::from_secs(2);

pub(super) async fn run(
    setup: &Setup,
    time: Duration,
    limits: TimeLimits,
    random: &mut Random,
) -> Result<Part> {
    let server = start(setup, "neighbour", SLOTS).await?;
    let time = time.clamp(Duration::from_secs(1), Duration::from_secs(10));
    measure(server.address, Duration::from_secs(1), random).await;
    let alone = measure(server.address, time, random).await;
    fill::begun(server.address, AGENT, &SLOW.text(), SLOTS as u64, random).await?;
    let beside = measure(server.address, time, random).await;
    server.kill().await?;

    let mut findings = Vec::new();
    if beside.unanswered > 0 {
        findings.push(format!("stopped: {} calls beside slow runs were not answered", beside.unanswered));
    }
    let limit = MAX_FACTOR * alone.p99().max(MIN_P99);
    if limits.is_strict() && beside.p99() > limit {
        findings.push(format!("slow: p99 {:?} beside slow runs, {:?} alone", beside.p99(), alone.p99()));
    }
    let figures = json!({
        "slow_runs": SLOTS,
        "calls_alone": alone.times.len(),
        "calls_beside": beside.times.len(),
        "unanswered_beside": beside.unanswered,
        "p99_alone_ms": millis(alone.p99()),
        "p99_beside_ms": millis(beside.p99()),
    });
    Ok(Part { figures, findings })
}

/// The latencies of answered calls, sorted, and how many were not answered.
#[derive(Default)]
struct Measured {
    times: Vec<Duration>,
    unanswered: usize,
}

impl Measured {
    fn p99(&self) -> Duration {
        self.times.get(self.times.len() * 99 / 100).copied().unwrap_or_default()
    }
}

async fn measure(address: SocketAddr, time: Duration, random: &mut Random) -> Measured {
    let until = Instant::now() + time;
    let clients = (0..CLIENTS).map(|_| client(address, until, random.branch())).collect::<Vec<_>>();
    let mut all = Measured::default();
    for one in in_parallel(clients.into_iter()).await {
        all.times.extend(one.times);
        all.unanswered += one.unanswered;
    }
    all.times.sort_unstable();
    all
}

async fn client(address: SocketAddr, until: Instant, mut random: Random) -> Measured {
    let (mut caller, mut measured) = (Caller::new(address), Measured::default());
    while Instant::now() < until {
        let started = Instant::now();
        let call = caller.call("echo", "SendMessage", message(random.uuid(), "hello", false));
        match timeout(CALL_LIMIT, call).await {
            Ok(Ok(_)) => measured.times.push(started.elapsed()),
            _ => {
                measured.unanswered += 1;
                caller = Caller::new(address);
            }
        }
    }
    measured
}
