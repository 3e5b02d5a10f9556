//! Notices that the agents of a server have changed, by looking at its list of agents every few seconds.
//!
//! The list does not have every skill, so its date counts beside its entity tag: it is that of the server's last reload.
//! A date has whole seconds, so the agents are read once more at the next look after a change.

use std::{convert::Infallible, time::Duration};

use a2ad::internal::ReloadedSettings;
use client::{ClientOptions, Error, Validators, WatchedDocument};
use tokio::{
    sync::mpsc,
    task::block_in_place,
    time::{sleep, timeout},
};

use super::RemoteAgents;

/// How often the list is looked at. More than a second, see above.
const INTERVAL: Duration = Duration::from_secs(2);
/// A server without a list is read at every so many looks.
const UNLISTED_LOOKS: u32 = 15;
/// How long one look, or reading the agents, may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The list of agents, as it was seen last.
pub(in crate::cli::mcp) struct ListWatch {
    document: WatchedDocument,
    /// `None` if it has not been seen, or if the agents have to be read again.
    seen: Option<Validators>,
    /// The agents are read again at the next look.
    is_recent: bool,
    looks: u32,
}

impl ListWatch {
    /// To be called before the agents are read: later changes are noticed.
    pub(in crate::cli::mcp) async fn begin(url: &str, options: &ClientOptions) -> Result<Self, Error> {
        let document = WatchedDocument::at(&format!("{url}/.well-known/agents.json"), options)?;
        let mut watch = Self { document, seen: None, is_recent: true, looks: 0 };
        watch.look().await;
        watch.is_recent = true;
        Ok(watch)
    }

    /// Whether the agents may have changed since the last look.
    async fn look(&mut self) -> bool {
        self.looks = self.looks.wrapping_add(1);
        match timeout(TIMEOUT, self.document.validators()).await {
            Ok(Ok(Some(now))) => {
                let is_new = self.seen.replace(now) != self.seen;
                std::mem::replace(&mut self.is_recent, is_new) || is_new
            }
            Ok(Ok(None)) => self.looks.is_multiple_of(UNLISTED_LOOKS),
            // The server is away, or starts. When it is back, its list has another date.
            Ok(Err(error)) => {
                tracing::debug!(%error, "the list of agents cannot be read");
                false
            }
            Err(_) => false,
        }
    }
}

/// Sends a new catalog whenever the agents have changed.
pub(in crate::cli::mcp) async fn follow(
    mut agents: RemoteAgents,
    mut watch: ListWatch,
    reloads: mpsc::Sender<ReloadedSettings>,
) -> Infallible {
    loop {
        sleep(INTERVAL).await;
        if !watch.look().await {
            continue;
        }
        let refreshed = timeout(TIMEOUT, agents.refresh()).await;
        let is_complete = matches!(&refreshed, Ok(Ok(refreshed)) if refreshed.unusable.is_empty());
        if !is_complete {
            tracing::debug!("some agents of the server cannot be read; they stay as they were");
            watch.seen = None;
        }
        if matches!(&refreshed, Ok(Ok(refreshed)) if refreshed.is_changed) {
            tracing::info!(agents = agents.agents.len(), "the agents of the server have changed");
            let catalog = block_in_place(|| agents.catalog());
            if reloads.send(catalog.into()).await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}
