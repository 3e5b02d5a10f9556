//! The progress messages of a call.

use std::time::Duration;

use engine::AgentResult;
use tokio::time::Instant;

use crate::{
    backend::Call,
    backends::mcp::{messages::Progress, reply},
};

/// Minimum time between two messages; of the notices between them, the last one is reported.
const INTERVAL: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Reports {
    /// Not sent yet.
    last: Option<Progress>,
    sent_at: Option<Instant>,
}

impl Reports {
    pub(super) fn add(&mut self, notice: Progress) {
        self.last = Some(notice);
    }

    /// There is something to send.
    pub(super) fn is_due(&self) -> bool {
        self.last.is_some()
    }

    pub(super) fn next_at(&self) -> Instant {
        self.sent_at.map_or_else(Instant::now, |at| at + INTERVAL)
    }

    pub(super) async fn send(&mut self, call: &Call<'_>) -> AgentResult<()> {
        if let Some(notice) = self.last.take() {
            self.sent_at = Some(Instant::now());
            let (parts, metadata) = reply::progress(&notice);
            call.progress_with(parts, metadata).await?;
        }
        Ok(())
    }
}
