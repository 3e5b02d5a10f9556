//! Keeps the list of a server's tools up to date.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::Server;
use crate::backends::mcp::{Tool, Transport, slots::Slots};

/// Changes of the list within this time are one.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Time between attempts to list the tools for the first time.
const RETRY: Duration = Duration::from_secs(2);
/// How often the tools behind a URL are listed unasked: the server may have restarted, or a notice was lost.
const INTERVAL: Duration = Duration::from_secs(300);

impl Server {
    pub(in super::super) fn tools(&self) -> watch::Receiver<Option<Arc<[Tool]>>> {
        self.tools.subscribe()
    }

    /// Lists the tools again, soon.
    pub(in super::super) fn refresh_tools(&self) {
        self.tools_changed.notify_one();
    }

    pub(super) async fn keep_tools(self: Arc<Self>) {
        let interval = match self.config.transport {
            Transport::Http { .. } => INTERVAL,
            Transport::Stdio(_) => Duration::MAX,
        };
        loop {
            tokio::select! {
                _ = timeout(interval, self.tools_changed.notified()) => {}
                () = self.stop.cancelled() => return,
            }
            tokio::select! {
                () = self.update_tools() => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    async fn update_tools(self: &Arc<Self>) {
        let known = self.tools.borrow().is_some();
        if known {
            sleep(DEBOUNCE).await;
        }
        let Some(endpoint) = self.lock().any_ready() else { return };
        match endpoint.connection.tools().await {
            Ok(tools) => self.publish(tools),
            // Its successor lists them.
            Err(_) if endpoint.connection.is_closed() => {}
            Err(error) => {
                let server = &self.config.name;
                tracing::warn!(server, %error, "the tools of an MCP server cannot be listed");
                if !known {
                    sleep(RETRY).await;
                    self.refresh_tools();
                }
            }
        }
    }

    fn publish(self: &Arc<Self>, tools: Vec<Tool>) {
        self.change(Slots::tools_are_known);
        let tools: Arc<[Tool]> = tools.into();
        self.tools.send_if_modified(|known| {
            let changed = known.as_ref() != Some(&tools);
            *known = Some(tools);
            changed
        });
    }
}
