//! The receiver that is down: first its port is closed, then it resets all connections and counts them, then it works.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use super::{MAX_DRAIN, POLL};
use crate::extra_options::TimeLimits;
use crate::webhooks::ledger::Ledger;
use crate::webhooks::receiver::{Answer, Receiver};

/// The part of the time in which the port is closed.
const CLOSED: u32 = 3;

/// A receiver that does not work yet.
pub(super) struct Outage {
    pub(super) address: SocketAddr,
    down: Duration,
}

/// What the server did meanwhile.
pub(super) struct Outcome {
    /// Connections while they were counted.
    pub(super) probes: Vec<Instant>,
    pub(super) counted: Duration,
    /// From the recovery to the first notification.
    pub(super) noticed_after: Option<Duration>,
    /// From the recovery to the last webhook's terminal state.
    pub(super) drained_after: Option<Duration>,
    /// Webhooks that had got nothing at the recovery.
    pub(super) backlog: usize,
}

impl Outcome {
    pub(super) fn shortest_interval(&self) -> Option<Duration> {
        self.probes.windows(2).map(|pair| pair[1].saturating_duration_since(pair[0])).min()
    }
}

impl Outage {
    /// Chooses a port, which is closed.
    pub(super) async fn begin(down: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        Ok(Self { address: listener.local_addr()?, down })
    }

    /// Waits, recovers, and measures how long the webhooks of these tasks take. The receiver works on until it is dropped.
    pub(super) async fn run(
        self,
        ledger: Arc<Ledger>,
        numbers: &[u64],
        limits: TimeLimits,
    ) -> Result<(Outcome, Receiver)> {
        sleep(self.down / CLOSED).await;
        let counted = self.down - self.down / CLOSED;
        let probes = self.count(counted).await?;
        let backlog = ledger.unfinished(numbers.iter().copied()).len();
        let accept = Arc::new(|_, _| Answer::Accept(Duration::ZERO));
        let receiver = Receiver::start(Some(self.address), Arc::clone(&ledger), accept).await?;
        let recovered = Instant::now();
        let drained = async {
            while !ledger.unfinished(numbers.iter().copied()).is_empty() {
                sleep(POLL).await;
            }
        };
        let drained = timeout(limits.limit(MAX_DRAIN) + POLL, drained).await;
        let drained_after = drained.is_ok().then(|| recovered.elapsed());
        let arrivals = ledger.arrivals();
        let first =
            numbers.iter().filter_map(|number| arrivals.get(number)?.first()).map(|first| first.at).min();
        let noticed_after = first.map(|first| first.saturating_duration_since(recovered));
        drop(arrivals);
        Ok((Outcome { probes, counted, noticed_after, drained_after, backlog }, receiver))
    }

    /// Resets the connections of this time, and returns when they came.
    async fn count(&self, time: Duration) -> Result<Vec<Instant>> {
        let listener = TcpListener::bind(self.address).await?;
        let mut seen = Vec::new();
        let counting = async {
            while let Ok((stream, _)) = listener.accept().await {
                seen.push(Instant::now());
                // A connection that cannot be reset is closed, which fails the request too.
                let _ = stream.set_zero_linger();
            }
        };
        let _ = timeout(time, counting).await;
        Ok(seen)
    }
}
