//! One driver for all tests, proofs and checks: HTTP/1.1 ([`http1`]), HTTP/2 and gRPC ([`http2`]), server-sent events
//! ([`sse`]), JSON-RPC calls of A2A 1.0 ([`rpc`]), tasks as JSON ([`json`]) and the program as a process
//! ([`process`]).
//!
//! It uses no crate of ours, so that a fault shared by server and driver cannot hide; HTTP/1.1 and server-sent events
//! are its own code, HTTP/2 is hyper's. It never panics: every
//! failure is an [`Error`], which distinguishes what a checker must distinguish. Each wait has a time limit.
//! Deliberately not here: TLS, redirects, compression, proxies, retries, and what a response should contain.

#![allow(
    clippy::disallowed_types,
    reason = "the test driver inspects responses as JSON values; it needs no exact numbers"
)]

pub mod http1;
pub mod http2;
pub mod json;
pub mod process;
pub mod rpc;
pub mod sse;

use std::{io, time::Duration};

/// The limit of a single wait, unless a caller sets another one: far longer than any response should take, so that a
/// hang becomes an error.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection was lost or refused; whether the request took effect is unknown.
    #[error("the connection was lost: {0}")]
    Cut(#[from] io::Error),
    /// The server sent something that the protocol does not allow.
    #[error("the response is malformed: {0}")]
    Malformed(String),
    /// Nothing happened within the limit.
    #[error("no response within {0:?}")]
    TimedOut(Duration),
    /// The program did not start or stop as it should.
    #[error("{0}")]
    Process(String),
}

impl From<hyper::Error> for Error {
    fn from(error: hyper::Error) -> Self {
        Self::Cut(io::Error::other(error))
    }
}

fn malformed(what: impl Into<String>) -> Error {
    Error::Malformed(what.into())
}

async fn limited<T, E: Into<Error>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Error> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(Error::TimedOut(limit)),
    }
}
