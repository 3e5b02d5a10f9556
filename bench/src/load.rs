//! One measurement: many keep-alive connections, each making one call after the other, or over gRPC several at once.
//!
//! Connections are divided among a few threads with one runtime each, so that no call moves between threads on the
//! load generator's side. All are open before the clock starts; a call that has begun is finished and counted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::call::{Calls, Mode};
use crate::client::Response;
use crate::connection::LoadConnection;
use crate::report::{Report, Tally};
use crate::request::AgentEndpoint;

/// Timeout of one call, after which it counts as an error.
const CALL_LIMIT: Duration = Duration::from_secs(10);
/// Calls in progress on each connection of a multiplexed load.
const CALLS_AT_ONCE: usize = 8;

/// What to call, from how many connections, for how long.
pub struct Load {
    /// The call to make.
    pub mode: Mode,
    /// Endpoint of the agent.
    pub endpoint: AgentEndpoint,
    /// Connections that call concurrently.
    pub connections: usize,
    /// Number of threads that share the connections.
    pub threads: usize,
    /// When to stop.
    pub until: Until,
    /// The tasks or times to request, or the URLs of webhooks.
    pub known: Arc<[String]>,
    /// A connection keeps every how many of the ids of the tasks it creates; `None` keeps none.
    pub keep_every: Option<usize>,
}

/// When a load stops.
#[derive(Clone, Copy)]
pub enum Until {
    /// No call begins later than this after the start.
    Elapsed(Duration),
    /// This many calls have been made.
    Calls(u64),
}

impl Load {
    /// Runs the load to its end.
    pub fn run(&self) -> Result<Report> {
        let threads = self.threads.min(self.connections);
        let start = &Barrier::new(threads);
        let budget = &Arc::new(AtomicU64::new(match self.until {
            Until::Calls(calls) => calls,
            Until::Elapsed(_) => u64::MAX,
        }));
        thread::scope(|scope| {
            let shares: Vec<_> = (0..threads)
                .map(|n| self.connections / threads + usize::from(n < self.connections % threads))
                .map(|connections| scope.spawn(move || self.run_share(connections, start, budget)))
                .collect();
            let shares = shares.into_iter().map(|share| match share.join() {
                Ok(tally) => tally,
                Err(_) => Err(anyhow!("a load thread panicked")),
            });
            Ok(Report::of(shares.collect::<Result<Vec<_>>>()?))
        })
    }

    /// Runs `connections` of them on this thread; returns their results and how long it took.
    fn run_share(
        &self,
        connections: usize,
        start: &Barrier,
        budget: &Arc<AtomicU64>,
    ) -> Result<(Tally, Duration)> {
        let opened = self.open(connections);
        // Also if opening failed, or the other threads would wait forever.
        start.wait();
        let (runtime, opened) = opened?;
        let started = Instant::now();
        let deadline = match self.until {
            Until::Elapsed(time) => Some(started + time),
            Until::Calls(_) => None,
        };
        let callers = opened.into_iter().map(|connection| {
            Ok(Caller {
                connection,
                mode: self.mode,
                calls: Calls::new(
                    self.mode,
                    self.endpoint.clone(),
                    Arc::clone(&self.known),
                    self.keep_every,
                )?,
                endpoint: self.endpoint.clone(),
                deadline,
                budget: Arc::clone(budget),
            })
        });
        let callers = callers.collect::<Result<Vec<_>>>()?;
        let tallies = runtime.block_on(async {
            callers.into_iter().map(Caller::run).collect::<JoinSet<_>>().join_all().await
        });
        Ok((tallies.into_iter().fold(Tally::default(), Tally::join), started.elapsed()))
    }

    /// A runtime for this thread, and its connections.
    fn open(&self, connections: usize) -> Result<(Runtime, Vec<LoadConnection>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let open = || runtime.block_on(LoadConnection::open(self.mode, self.endpoint.address));
        let opened = std::iter::repeat_with(open).take(connections).collect::<io::Result<_>>();
        Ok((runtime, opened.context("cannot connect to the server")?))
    }
}

/// One connection and its calls.
struct Caller {
    connection: LoadConnection,
    mode: Mode,
    calls: Calls,
    endpoint: AgentEndpoint,
    deadline: Option<Instant>,
    /// Remaining calls of all callers together.
    budget: Arc<AtomicU64>,
}

impl Caller {
    async fn run(mut self) -> Tally {
        let mut tally = Tally::default();
        if self.mode == Mode::SendGrpcMultiplexed {
            if let Err(error) = self.run_multiplexed(&mut tally).await {
                tally.failed(error);
            }
            return tally.with_kept(self.calls.into_kept());
        }
        let mut began = Instant::now();
        while may_call(self.deadline, &self.budget, began) {
            let outcome = self.call().await;
            let ended = Instant::now();
            match outcome {
                Ok(()) => tally.succeeded(ended - began),
                Err(error) => {
                    tally.failed(error);
                    // A new connection, because the rest of a failed exchange could be mistaken for the next
                    // response.
                    match LoadConnection::open(self.mode, self.endpoint.address).await {
                        Ok(connection) => self.connection = connection,
                        Err(_) => break,
                    }
                }
            }
            began = Instant::now();
        }
        tally.with_kept(self.calls.into_kept())
    }

    /// Keeps several calls open on the connection until an error or the end.
    async fn run_multiplexed(&mut self, tally: &mut Tally) -> Result<()> {
        let LoadConnection::Http2(connection) = &mut self.connection else { bail!("gRPC needs HTTP/2") };
        let mut open: Vec<(u32, Instant)> = Vec::with_capacity(CALLS_AT_ONCE);
        loop {
            let now = Instant::now();
            while open.len() < CALLS_AT_ONCE && may_call(self.deadline, &self.budget, now) {
                open.push((connection.begin(self.calls.next_request()).await?, now));
            }
            if open.is_empty() {
                return Ok(());
            }
            // All responses that have been received, so that the next calls leave in one write.
            loop {
                let response = timeout(CALL_LIMIT, connection.next_response());
                let (stream, body) = response.await.context("the call timed out")??;
                self.calls.check_response(&Response { status: 200, body })?;
                let index = open.iter().position(|call| call.0 == stream).context("an unknown call")?;
                tally.succeeded(open.swap_remove(index).1.elapsed());
                if open.is_empty() || connection.has_read_all() {
                    break;
                }
            }
        }
    }

    async fn call(&mut self) -> Result<()> {
        let exchange = self.connection.exchange(self.calls.next_request());
        let response = timeout(CALL_LIMIT, exchange).await.context("the call timed out")??;
        self.calls.check_response(&response)
    }
}

/// Whether another call may begin; it is taken from the budget.
fn may_call(deadline: Option<Instant>, budget: &AtomicU64, now: Instant) -> bool {
    match deadline {
        Some(deadline) => now < deadline,
        None => {
            let take = |left: u64| left.checked_sub(1);
            budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
        }
    }
}
