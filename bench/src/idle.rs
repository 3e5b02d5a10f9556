//! Idle streams: many subscriptions to one task that waits to be cancelled.
//!
//! The measuring process is informed when all streams are open, has the given time to measure the server, and gets
//! the number of streams that were still open at the end.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::time::{sleep, timeout};

use crate::client::Connection;
use crate::events::Events;
use crate::request::AgentEndpoint;

/// Streams opened concurrently.
const AT_A_TIME: usize = 64;
/// Timeout for opening one stream.
const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// Subscriptions to a task without events.
pub struct Idle {
    /// Endpoint of the echo agent.
    pub endpoint: AgentEndpoint,
    /// Number of streams.
    pub streams: usize,
    /// How long they are held open.
    pub time: Duration,
}

impl Idle {
    /// Opens the streams, reports that as one line of JSON, holds them, and returns how many were never closed.
    pub fn run(&self, out: &mut impl io::Write) -> Result<usize> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.hold(out))
    }

    async fn hold(&self, out: &mut impl io::Write) -> Result<usize> {
        let task = self.endpoint.start_task("hold").await.context("cannot start the waiting task")?;
        let opening = stream::iter(0..self.streams).map(|_| self.open(&task));
        let mut streams: Vec<Events> = opening.buffer_unordered(AT_A_TIME).try_collect().await?;
        writeln!(out, "{}", serde_json::json!({ "open": streams.len() }))?;
        out.flush()?;
        sleep(self.time).await;
        let mut kept = 0;
        for stream in &mut streams {
            // Comments may have arrived meanwhile, but no event and no end.
            kept += usize::from(timeout(Duration::ZERO, stream.next()).await.is_err());
        }
        self.endpoint.cancel_task(&task).await.context("cannot cancel the task")?;
        Ok(kept)
    }

    /// Opens one subscription and reads its first event.
    async fn open(&self, task: &str) -> Result<Events> {
        let open = async {
            let connection = Connection::open(self.endpoint.address).await?;
            let mut events = Events::of(connection.stream(&self.endpoint.subscription(task, None)).await?);
            ensure!(events.next().await?.is_some(), "the stream has no first event");
            Ok(events)
        };
        timeout(OPEN_LIMIT, open).await.context("opening a stream timed out")?
    }
}
