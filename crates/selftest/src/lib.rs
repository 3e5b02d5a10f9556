//! `a2ad selftest`: checks a running server against a catalogue of requirements.
//!
//! The catalogue has five groups, S0 to S4; `docs/selftest.md` explains the ids. Each item is checked over the wire, or
//! names the ordinary test that checks it, or names the feature that it depends on and that is not built yet. An item
//! of the last kind never counts as passed.
//!
//! Without a URL, the selftest starts servers itself: processes of the same executable with an embedded configuration.
//! A server at a URL is checked as it is; items that need an agent or a skill it does not offer are not applicable.
//! Requests are made with `testkit`; no crate of the server is used, so that a server bug cannot hide
//! itself. A few items check the program's own client or library; the program passes those in as a [`Program`]. The
//! MCP server of the items about tools is the program again, as [`tool_server`].

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(
    clippy::disallowed_types,
    reason = "checks look into small responses; those about exact numbers compare the text"
)]

mod card_server;
mod counted_function;
mod crash;
mod credentials;
mod fixture;
mod function_server;
mod http;
mod item;
mod json;
mod loopback;
mod mcp;
mod program;
mod rate_limits;
mod report;
mod s0;
mod s1;
mod s2;
mod s3;
mod s4;
mod schema;
mod server_process;
mod started;
mod test_client;
mod token;
mod token_issuer;
pub mod tool_server;
mod webhook_receiver;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::{sync::Semaphore, task::JoinSet};

use fixture::Fixture;
use http::Server;
use item::{Check, CheckError, CheckFn, CheckResult, Feature, Group, Item, mismatch, not_yet, test, wire};
pub use program::{App, AppServer, Program};
pub use report::Report;
use report::{ItemResult, Verdict};

/// The number of checks that run concurrently.
const MAX_CONCURRENT_CHECKS: usize = 8;

/// The time limit of one check, including the wait for a server that only one check may use at a time.
const CHECK_TIMEOUT: Duration = Duration::from_secs(18);

/// The groups of the catalogue in order.
static GROUPS: [Group; 5] = [s0::GROUP, s1::GROUP, s2::GROUP, s3::GROUP, s4::GROUP];

/// What to check, and how to print the result.
#[derive(Clone, Debug, Default)]
pub struct SelftestOptions {
    /// The origin of the server to check, such as `http://127.0.0.1:4242`; `None` starts servers.
    pub url: Option<String>,
    /// Prints a line for every item.
    pub verbose: bool,
    /// Prints the whole report as JSON.
    pub json: bool,
    /// Ids of the items to check, such as `S1-49`; empty means all.
    pub only: Vec<String>,
    /// The executable whose servers are started; `None` means the current executable.
    pub executable: Option<PathBuf>,
    /// Text replacements (from, to) in the configurations of the main server and of those with tools, functions and
    /// credentials.
    pub changes: Vec<(String, String)>,
}

/// The arguments are invalid: an unknown item or a URL that is not an origin.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

/// Checks the selected items, prints the report and returns the exit code: 0 when no item failed, 1 otherwise.
///
/// # Errors
///
/// [`UsageError`] for an unknown item or an invalid URL; other errors when nothing could be checked.
pub fn run(program: Arc<dyn Program>, options: &SelftestOptions) -> anyhow::Result<u8> {
    use std::io::Write as _;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(run_checks(program, options))?;
    let text = match (options.json, options.verbose) {
        (true, _) => report.to_json() + "\n",
        (false, true) => report.lines() + &report.summary() + &report.verdict_line() + "\n",
        (false, false) => report.summary() + &report.verdict_line() + "\n",
    };
    // Failures are written first, so that the verdict is the last line on a terminal.
    if !options.json {
        std::io::stderr().write_all(report.failures().as_bytes())?;
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(u8::from(!report.is_success()))
}

/// Checks the selected items and returns the report without printing it.
pub async fn run_checks(program: Arc<dyn Program>, options: &SelftestOptions) -> anyhow::Result<Report> {
    let exists = |id: &&String| catalogue().any(|(group, item)| has_id(id, group, item));
    if let Some(unknown) = options.only.iter().find(|id| !exists(id)) {
        return Err(UsageError(format!("there is no item {unknown:?}; items are S0-1 to S4-42")).into());
    }
    let fixture = Arc::new(fixture(program, options).await?);
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_CHECKS));
    let mut checks = JoinSet::new();
    let mut results = Vec::new();
    for (index, (group, item)) in catalogue().enumerate() {
        let verdict = match item.check {
            _ if !is_selected(&options.only, group, item) => Verdict::LeftOut,
            Check::Test(name) => Verdict::Test(name),
            Check::NotYet(feature) => Verdict::NotYet(feature.to_string()),
            Check::Wire(run) => {
                let (fixture, permits) = (Arc::clone(&fixture), Arc::clone(&permits));
                checks.spawn(async move { (index, check(&fixture, run, &permits).await) });
                Verdict::LeftOut
            }
        };
        results.push(ItemResult { group: group.name, number: item.number, what: item.what, verdict });
    }
    while let Some(done) = checks.join_next().await {
        let (index, checked) = done.context("a check panicked")?;
        results[index].verdict = Verdict::of(checked, fixture.is_self_started());
    }
    // Tasks that are still open on a server that the selftest did not start are cancelled.
    let left_open =
        if fixture.is_self_started() { Vec::new() } else { fixture.server.started.cancel_all().await };
    Ok(Report::new(results).with_left_open(left_open))
}

async fn fixture(program: Arc<dyn Program>, options: &SelftestOptions) -> anyhow::Result<Fixture> {
    match &options.url {
        Some(url) => {
            let full = program.url(url).unwrap_or_else(|| url.clone());
            if full.starts_with("https://") {
                let text = format!("{full}: the selftest connects without TLS; give an http:// address");
                return Err(UsageError(text).into());
            }
            let server = Server::of(&full).ok_or_else(|| {
                UsageError(format!("{url:?} is no origin such as http://127.0.0.1:4242 or 127.0.0.1:4242"))
            })?;
            let cause = program.diagnose(&full).await;
            let checked = match cause {
                Some(cause) => Err(anyhow::anyhow!(cause)),
                None => Fixture::at_url(program, server).await,
            };
            checked.with_context(|| format!("cannot check {full}"))
        }
        None => {
            let own = || std::env::current_exe().context("cannot determine the path of this executable");
            let executable = options.executable.clone().map_or_else(own, Ok)?;
            Fixture::start(program, executable, &options.changes).await
        }
    }
}

async fn check(fixture: &Fixture, run: CheckFn, permits: &Semaphore) -> CheckResult {
    let _permit = permits.acquire().await.map_err(|error| mismatch("a permit to run", error))?;
    let checking = tokio::time::timeout(CHECK_TIMEOUT, run(fixture)).await;
    checking.unwrap_or_else(|_| {
        Err(mismatch(format!("a result within {} seconds", CHECK_TIMEOUT.as_secs()), "a timeout"))
    })
}

fn catalogue() -> impl Iterator<Item = (&'static Group, &'static Item)> {
    GROUPS.iter().flat_map(|group| group.items.iter().map(move |item| (group, item)))
}

fn is_selected(only: &[String], group: &Group, item: &Item) -> bool {
    only.is_empty() || only.iter().any(|id| has_id(id, group, item))
}

fn has_id(id: &str, group: &Group, item: &Item) -> bool {
    id.eq_ignore_ascii_case(&format!("{}-{}", group.name, item.number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_one_entry_in_order() {
        let expected = [("S0", 46), ("S1", 89), ("S2", 49), ("S3", 68), ("S4", 42)];
        for (group, (name, count)) in GROUPS.iter().zip(expected) {
            let numbers: Vec<u16> = group.items.iter().map(|item| item.number).collect();
            assert_eq!((group.name, numbers), (name, (1..=count).collect()));
        }
    }
}
