//! The public API of the library: custom agents, served or mounted into another app, and called through a socket.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

mod api;
#[cfg(all(feature = "mcp", feature = "openapi"))]
mod backends;
mod credentials;
mod listen;
mod watchdog;

use std::time::Duration;

/// The time limit of one operation.
const TIMEOUT: Duration = Duration::from_secs(30);

async fn with_timeout<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.expect("the operation timed out")
}
