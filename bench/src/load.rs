//! One measurement: many keep-alive connections, each making one call after the other.
//!
//! Connections are shared out among a few threads with a runtime each, so that no call hops threads on the
//! loader's side. All are open before the clock starts; a call that has begun is finished and counted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::call::{Calls, Mode};
use crate::line::Line;
use crate::report::{Report, Tally};
use crate::request::Door;

/// How long one call may take before it is given up as an error.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// What to call, from how many connections, for how long.
pub struct Load {
    /// The call.
    pub mode: Mode,
    /// The agent.
    pub door: Door,
    /// How many connections call at the same time.
    pub connections: usize,
    /// How many threads they are shared out to.
    pub threads: usize,
    /// When to stop.
    pub until: Until,
    /// The tasks to ask for.
    pub known: Arc<[String]>,
    /// Of each how many tasks a connection makes it keeps the id of one.
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
                Err(_) => Err(anyhow!("a thread of the load panicked")),
            });
            Ok(Report::of(shares.collect::<Result<Vec<_>>>()?))
        })
    }

    /// Runs `connections` of them on this thread; returns what they did and how long it took.
    fn run_share(
        &self,
        connections: usize,
        start: &Barrier,
        budget: &Arc<AtomicU64>,
    ) -> Result<(Tally, Duration)> {
        let opened = self.open(connections);
        // Also with nothing opened, or the other threads would wait for ever.
        start.wait();
        let (runtime, opened) = opened?;
        let started = Instant::now();
        let deadline = match self.until {
            Until::Elapsed(time) => Some(started + time),
            Until::Calls(_) => None,
        };
        let callers = opened.into_iter().map(|line| {
            Ok(Caller {
                line,
                mode: self.mode,
                calls: Calls::new(self.mode, self.door.clone(), Arc::clone(&self.known), self.keep_every)?,
                door: self.door.clone(),
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
    fn open(&self, connections: usize) -> Result<(Runtime, Vec<Line>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let open = || runtime.block_on(Line::open(self.mode, self.door.address));
        let opened = std::iter::repeat_with(open).take(connections).collect::<io::Result<_>>();
        Ok((runtime, opened.context("cannot connect to the server")?))
    }
}

/// One connection at work.
struct Caller {
    line: Line,
    mode: Mode,
    calls: Calls,
    door: Door,
    deadline: Option<Instant>,
    /// Calls left to all callers together.
    budget: Arc<AtomicU64>,
}

impl Caller {
    async fn run(mut self) -> Tally {
        let mut tally = Tally::default();
        let mut began = Instant::now();
        while self.may_call(began) {
            let outcome = self.call().await;
            let ended = Instant::now();
            match outcome {
                Ok(()) => tally.answered(ended - began),
                Err(error) => {
                    tally.failed(error);
                    // What is left of the failed exchange must not be taken for the next answer.
                    match Line::open(self.mode, self.door.address).await {
                        Ok(line) => self.line = line,
                        Err(_) => break,
                    }
                }
            }
            began = Instant::now();
        }
        tally.kept(self.calls.into_kept())
    }

    fn may_call(&self, now: Instant) -> bool {
        match self.deadline {
            Some(deadline) => now < deadline,
            None => {
                let take = |left: u64| left.checked_sub(1);
                self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
            }
        }
    }

    async fn call(&mut self) -> Result<()> {
        let exchange = self.line.exchange(self.calls.fresh());
        let response = timeout(CALL_LIMIT, exchange).await.context("no answer in time")??;
        self.calls.heard(&response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::net::SocketAddr;

    use tokio::net::TcpListener;

    use crate::bare;

    fn load(mode: Mode, address: SocketAddr, calls: u64) -> Load {
        Load {
            mode,
            door: Door { address, path: "/".into() },
            connections: 3,
            threads: 2,
            until: Until::Calls(calls),
            known: Arc::new([]),
            keep_every: None,
        }
    }

    #[tokio::test]
    async fn every_call_of_the_budget_is_made_and_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(bare::serve(listener, bare::router()));
        for mode in [Mode::Send, Mode::Stream] {
            let load = load(mode, address, 100);
            let report = tokio::task::spawn_blocking(move || load.run()).await.unwrap().unwrap();
            assert!(report.line().contains("\"calls\":100,"), "{}", report.line());
            assert!(report.first_error.is_none(), "{:?}", report.first_error);
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_an_error() {
        let address = "127.0.0.1:1".parse().unwrap();
        assert!(load(Mode::Send, address, 1).run().is_err());
    }
}
