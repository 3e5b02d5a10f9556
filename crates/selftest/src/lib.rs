//! `a2ad selftest`: a small check of a server, for its users. In each version of the protocol that the card of an agent
//! offers: the card, a message, a stream, a cancellation, and a stream that is resumed.
//!
//! Without a URL it starts a server of its own, a process of the same executable with the demo agents. At a URL it uses an
//! agent that the server has, and reports what that agent cannot show. Requests are made with `testkit`; no crate of the
//! server is used, so that a fault of the server cannot hide itself. Deliberately not here: credentials, bindings other
//! than JSON-RPC, and the project's own list of requirements, which is in `tests/acceptance`.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(clippy::disallowed_types, reason = "checks look into small responses; exact numbers do not matter")]

mod checks;
mod report;
mod server;
mod version;

use std::{io::Write as _, path::PathBuf};

use anyhow::Context as _;

pub use report::{CheckResult, Report, Verdict};
use server::{OwnServer, Server};

/// What to check, and how to print the result.
#[derive(Clone, Debug, Default)]
pub struct SelftestOptions {
    /// The origin of the server to check, such as `http://127.0.0.1:4242`; `None` starts a server.
    pub url: Option<String>,
    /// Prints the report as JSON.
    pub json: bool,
    /// The executable that is started as a server; `None` means the current executable.
    pub executable: Option<PathBuf>,
}

/// The URL is not the origin of a server.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

/// Makes the checks, prints the report and returns the exit code: 0 if no check failed and at least one passed, else 1.
///
/// # Errors
///
/// [`UsageError`] for an invalid URL; other errors when nothing could be checked.
pub async fn run(options: &SelftestOptions) -> anyhow::Result<u8> {
    let report = check(options).await?;
    let text = if options.json { report.to_json() + "\n" } else { report.lines() };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(u8::from(!report.is_success()))
}

/// Makes the checks and returns the report without printing it.
///
/// # Errors
///
/// As [`run`].
pub async fn check(options: &SelftestOptions) -> anyhow::Result<Report> {
    let Some(url) = &options.url else {
        let own = || std::env::current_exe().context("cannot determine the path of this executable");
        let executable = options.executable.clone().map_or_else(own, Ok)?;
        let own = OwnServer::start(executable).await?;
        return checks::all(&own.server, checks::Strictness::Everything).await;
    };
    let server = server_at(url)?;
    checks::all(&server, checks::Strictness::WhatIsOffered)
        .await
        .with_context(|| format!("cannot check {url}"))
}

/// Checks that a URL is the origin of a server that the selftest can connect to.
///
/// # Errors
///
/// [`UsageError`] says why it is not.
pub fn check_url(url: &str) -> Result<(), UsageError> {
    server_at(url).map(drop)
}

fn server_at(url: &str) -> Result<Server, UsageError> {
    if url.starts_with("https://") {
        return Err(UsageError(format!("{url}: the selftest connects without TLS; give an http:// address")));
    }
    let invalid =
        || UsageError(format!("{url:?} is no origin such as http://127.0.0.1:4242 or 127.0.0.1:4242"));
    Server::of(url).ok_or_else(invalid)
}
