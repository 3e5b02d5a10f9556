//! Live calls of retention_under_load: a few clients that send and read at a constant rate, and the latency of each
//! call.
//!
//! A latency is measured from the scheduled start of the call, so that a stall of the server counts for every call
//! that had to wait, and not only for the one in progress.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

use crate::random::Random;
use crate::rpc::{Caller, Failure, message};

const CLIENTS: u64 = 4;
/// Interval between two calls of one client.
const CALL_INTERVAL: Duration = Duration::from_millis(8);

pub(crate) struct LiveLoad {
    times: Arc<Mutex<Vec<Duration>>>,
    sent: Arc<AtomicU64>,
    over: watch::Sender<bool>,
    clients: JoinSet<Vec<String>>,
}

#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl LiveLoad {
    /// Starts the clients; they read `open`, a task that stays open.
    pub(crate) fn begin(address: SocketAddr, open: &str, random: &mut Random) -> Self {
        let times = Arc::new(Mutex::new(Vec::new()));
        let sent = Arc::new(AtomicU64::new(0));
        let (over, stop) = watch::channel(false);
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let client = Client {
                caller: Caller::new(address),
                open: open.to_owned(),
                random: random.branch(),
                times: times.clone(),
                sent: sent.clone(),
            };
            clients.spawn(client.run(stop.clone()));
        }
        Self { times, sent, over, clients }
    }

    /// Moves the latencies measured since the last call.
    pub(crate) fn drain_into(&self, times: &mut Times) {
        times.0.append(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner));
        times.0.sort_unstable();
    }

    /// The number of tasks the clients have created.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Stops the clients and returns their findings.
    pub(crate) async fn end(mut self) -> Result<Vec<String>> {
        self.over.send_replace(true);
        let mut findings = Vec::new();
        while let Some(client) = self.clients.join_next().await {
            findings.extend(client.context("a live client failed")?);
        }
        Ok(findings)
    }
}

struct Client {
    caller: Caller,
    open: String,
    random: Random,
    times: Arc<Mutex<Vec<Duration>>>,
    sent: Arc<AtomicU64>,
}

impl Client {
    async fn run(mut self, stop: watch::Receiver<bool>) -> Vec<String> {
        let mut findings = Vec::new();
        let mut beat = interval(CALL_INTERVAL);
        while !*stop.borrow() {
            let meant: Instant = beat.tick().await;
            match self.call().await {
                Ok(()) => {
                    let took = meant.elapsed();
                    self.times.lock().unwrap_or_else(PoisonError::into_inner).push(took);
                }
                Err(failure) => findings.push(format!("refused: a live call: {failure}")),
            }
        }
        findings
    }

    async fn call(&mut self) -> Result<(), Failure> {
        if self.random.within(0..=1) == 0 {
            self.sent.fetch_add(1, Ordering::Relaxed);
            let params = message(self.random.uuid(), "live", false);
            return self.caller.call("echo", "SendMessage", params).await.map(drop);
        }
        self.caller.call("echo", "GetTask", json!({"id": self.open})).await.map(drop)
    }
}

impl Times {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The 99th percentile.
    pub(crate) fn p99(&self) -> Duration {
        let at = (self.0.len() * 99).div_ceil(100).saturating_sub(1);
        self.0.get(at).copied().unwrap_or_default()
    }

    pub(crate) fn max(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }
}
