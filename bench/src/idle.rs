//! Streams on which nothing happens: many subscriptions to one task that waits to be cancelled.
//!
//! Whoever measures what they cost the server is told when all are open, has the given time to look, and is
//! told at the end how many were still open then.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::time::{sleep, timeout};

use crate::client::Connection;
use crate::events::Events;
use crate::request::Door;

/// How many are opened at a time.
const AT_A_TIME: usize = 64;
/// How long one may take to open.
const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// Subscriptions to a task that does nothing.
pub struct Idle {
    /// The echo agent.
    pub door: Door,
    /// How many.
    pub streams: usize,
    /// For how long.
    pub time: Duration,
}

impl Idle {
    /// Opens the streams, says so with one line of JSON, holds them, and returns how many were never cut.
    pub fn run(&self, out: &mut impl io::Write) -> Result<usize> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.hold(out))
    }

    async fn hold(&self, out: &mut impl io::Write) -> Result<usize> {
        let task = self.door.start_task("hold").await.context("cannot start a task that waits")?;
        let opening = stream::iter(0..self.streams).map(|_| self.open(&task));
        let mut streams: Vec<Events> = opening.buffer_unordered(AT_A_TIME).try_collect().await?;
        writeln!(out, "{}", serde_json::json!({ "open": streams.len() }))?;
        out.flush()?;
        sleep(self.time).await;
        let mut kept = 0;
        for stream in &mut streams {
            // Comments may have come meanwhile, an event or the end may not.
            kept += usize::from(timeout(Duration::ZERO, stream.next()).await.is_err());
        }
        self.door.cancel_task(&task).await.context("cannot cancel the task")?;
        Ok(kept)
    }

    /// One subscription, read up to the task it begins with.
    async fn open(&self, task: &str) -> Result<Events> {
        let open = async {
            let connection = Connection::open(self.door.address).await?;
            let mut events = Events::of(connection.stream(&self.door.subscription(task, None)).await?);
            ensure!(events.next().await?.is_some(), "the stream has no beginning");
            Ok(events)
        };
        timeout(OPEN_LIMIT, open).await.context("a stream does not open")?
    }
}
