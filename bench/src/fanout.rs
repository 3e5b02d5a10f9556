//! One task with many events, read by many subscribers.
//!
//! It is read twice: live, by subscribers that are connected while the slow writer writes and so cannot be faster
//! than it, and afterwards from the log, as fast as the server sends. Every subscriber requests all events from the
//! first one on, and all must receive the same: each sequence number once, in order, with the same bytes.

use std::hash::{DefaultHasher, Hasher as _};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use memchr::memmem;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client::Connection;
use crate::events::Events;
use crate::report::rounded;
use crate::request::{AgentEndpoint, excerpt};

/// Timeout for all subscribers together.
const LIMIT: Duration = Duration::from_secs(300);

/// A task and its subscribers.
pub struct Fanout {
    /// Endpoint of the slow-writer agent.
    pub endpoint: AgentEndpoint,
    /// Number of subscribers.
    pub subscribers: usize,
    /// Approximate number of events to read.
    pub events: u64,
    /// Number of threads that share the subscribers.
    pub threads: usize,
}

/// Summary of what one subscriber received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Received {
    events: u64,
    bytes: u64,
    digest: u64,
}

impl Fanout {
    /// Reads live and then from the log; returns one JSON object for both.
    pub fn run(&self) -> Result<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Each section causes two events: an announcement and the text.
        let text = format!("sections={} delay=0ms", self.events.div_ceil(2));
        let task =
            runtime.block_on(self.endpoint.start_task(&text)).context("cannot start the slow-writer task")?;
        let live = self.read(&task).context("live")?;
        let stored = self.read(&task).context("from the log")?;
        ensure!(live.0 == stored.0, "received {:?} live but {:?} from the log", live.0, stored.0);
        let Received { events, bytes, .. } = live.0;
        let readers = self.subscribers as f64;
        let rate = |time: Duration| rounded(events as f64 * readers / time.as_secs_f64());
        Ok(json!({
            "subscribers": self.subscribers,
            "events": events,
            "bytes_an_event": bytes / events.max(1),
            "live_s": rounded(live.1.as_secs_f64()),
            "live_deliveries_per_s": rate(live.1),
            "stored_s": rounded(stored.1.as_secs_f64()),
            "stored_deliveries_per_s": rate(stored.1),
        })
        .to_string())
    }

    /// Lets all subscribers read the task to its end; returns what each of them received, and how long it took.
    fn read(&self, task: &str) -> Result<(Received, Duration)> {
        let began = Instant::now();
        let threads = self.threads.clamp(1, self.subscribers);
        let received: Vec<Received> = thread::scope(|scope| {
            let shares: Vec<_> = (0..threads)
                .map(|n| self.subscribers / threads + usize::from(n < self.subscribers % threads))
                .map(|readers| scope.spawn(move || self.read_share(task, readers)))
                .collect();
            let shares = shares.into_iter().map(|share| match share.join() {
                Ok(received) => received,
                Err(_) => Err(anyhow!("a subscriber thread panicked")),
            });
            shares.collect::<Result<Vec<_>>>().map(|shares| shares.concat())
        })?;
        let took = began.elapsed();
        let [first, others @ ..] = received.as_slice() else { bail!("there are no subscribers") };
        match others.iter().find(|other| *other != first) {
            Some(other) => bail!("one subscriber got {first:?}, another {other:?}"),
            None => Ok((*first, took)),
        }
    }

    fn read_share(&self, task: &str, readers: usize) -> Result<Vec<Received>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let request = self.endpoint.subscription(task, Some(0));
            let mut reading = JoinSet::new();
            for _ in 0..readers {
                let connection = Connection::open(self.endpoint.address).await.context("cannot connect")?;
                reading.spawn(read_one(connection, request.clone()));
            }
            let all = timeout(LIMIT, reading.join_all()).await.context("the subscribers timed out")?;
            all.into_iter().collect()
        })
    }
}

async fn read_one(connection: Connection, request: Vec<u8>) -> Result<Received> {
    let mut events = Events::of(connection.stream(&request).await?);
    let opening = events.next().await?.context("the stream has no first event")?;
    ensure!(opening.id == Some(0), "the stream begins at {:?}: {}", opening.id, excerpt(opening.data));
    let mut received = Received { events: 0, bytes: 0, digest: 0 };
    let mut hasher = DefaultHasher::new();
    let mut completed = false;
    while let Some(event) = events.next().await? {
        received.events += 1;
        ensure!(event.id == Some(received.events), "got event {:?}, expected {}", event.id, received.events);
        received.bytes += event.data.len() as u64;
        hasher.write(event.data);
        completed = memmem::find(event.data, b"\"TASK_STATE_COMPLETED\"").is_some();
    }
    ensure!(completed, "the stream ended with event {}, before the task completed", received.events);
    received.digest = hasher.finish();
    Ok(received)
}
