//! One task with many events, read by many subscribers.
//!
//! It is read twice: live, by subscribers who are there while the slow writer writes and so can be no faster
//! than it, and afterwards from the log, as fast as the server gives. Everybody asks for all events from the
//! first on, and everybody must get the same: each number once, in order, with the same bytes.

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
use crate::request::{Door, excerpt};

/// How long all may take together.
const LIMIT: Duration = Duration::from_secs(300);

/// A task and its readers.
pub struct Fanout {
    /// The slow writer.
    pub door: Door,
    /// How many read.
    pub subscribers: usize,
    /// About how many events there are to read.
    pub events: u64,
    /// How many threads the readers are shared out to.
    pub threads: usize,
}

/// What one subscriber got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FollowEvent {
    events: u64,
    bytes: u64,
    digest: u64,
}

impl Fanout {
    /// Reads live and then from the log; one JSON object for both.
    pub fn run(&self) -> Result<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Each section is announced and written.
        let text = format!("sections={} delay=0ms", self.events.div_ceil(2));
        let task = runtime.block_on(self.door.start_task(&text)).context("cannot start the writer")?;
        let live = self.read(&task).context("live")?;
        let stored = self.read(&task).context("from the log")?;
        ensure!(live.0 == stored.0, "live came {:?}, from the log {:?}", live.0, stored.0);
        let FollowEvent { events, bytes, .. } = live.0;
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

    /// Has everybody read the task to its end; what each of them got, and how long it took.
    fn read(&self, task: &str) -> Result<(FollowEvent, Duration)> {
        let began = Instant::now();
        let threads = self.threads.clamp(1, self.subscribers);
        let heard: Vec<FollowEvent> = thread::scope(|scope| {
            let shares: Vec<_> = (0..threads)
                .map(|n| self.subscribers / threads + usize::from(n < self.subscribers % threads))
                .map(|readers| scope.spawn(move || self.read_share(task, readers)))
                .collect();
            let shares = shares.into_iter().map(|share| match share.join() {
                Ok(heard) => heard,
                Err(_) => Err(anyhow!("a thread of readers panicked")),
            });
            shares.collect::<Result<Vec<_>>>().map(|shares| shares.concat())
        })?;
        let took = began.elapsed();
        let [first, others @ ..] = heard.as_slice() else { bail!("nobody reads") };
        match others.iter().find(|other| *other != first) {
            Some(other) => bail!("one subscriber got {first:?}, another {other:?}"),
            None => Ok((*first, took)),
        }
    }

    fn read_share(&self, task: &str, readers: usize) -> Result<Vec<FollowEvent>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let request = self.door.subscription(task, Some(0));
            let mut reading = JoinSet::new();
            for _ in 0..readers {
                let connection = Connection::open(self.door.address).await.context("cannot connect")?;
                reading.spawn(read_one(connection, request.clone()));
            }
            let all = timeout(LIMIT, reading.join_all()).await.context("the readers take too long")?;
            all.into_iter().collect()
        })
    }
}

async fn read_one(connection: Connection, request: Vec<u8>) -> Result<FollowEvent> {
    let mut events = Events::of(connection.stream(&request).await?);
    let opening = events.next().await?.context("the stream has no beginning")?;
    ensure!(opening.id == Some(0), "the stream begins at {:?}: {}", opening.id, excerpt(opening.data));
    let mut heard = FollowEvent { events: 0, bytes: 0, digest: 0 };
    let mut hasher = DefaultHasher::new();
    let mut completed = false;
    while let Some(event) = events.next().await? {
        heard.events += 1;
        ensure!(event.id == Some(heard.events), "event {:?} where {} was due", event.id, heard.events);
        heard.bytes += event.data.len() as u64;
        hasher.write(event.data);
        completed = memmem::find(event.data, b"\"TASK_STATE_COMPLETED\"").is_some();
    }
    ensure!(completed, "the stream ends with event {}, before the task", heard.events);
    heard.digest = hasher.finish();
    Ok(heard)
}
