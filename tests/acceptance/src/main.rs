//! `a2ad-acceptance --binary PROGRAM [ITEM…] [--verbose]`: checks the program against the list of its requirements.
//! `cargo xtask acceptance` builds the program and passes its path.
//!
//! The list is `requirements.txt`. It has five groups, S0 to S4: S0 is the profile `fold`, S1 the draft of the protocol with its published schema
//! and sample, S2 the profile `pinkfish`, S3 the profile `agent-native`, S4 the profile `agentos`. An id such as `S1-49`
//! never changes its meaning. Each item is checked over the wire, or names the ordinary test that checks it, or the step
//! of the plan that will build it; an item of the last kind never counts as passed. Items about the client and the library
//! use these directly. What agents do is checked with users' own tools of each kind too ([`backend`]).
//!
//! The servers are processes with embedded configurations. Their tools, API keys, signed tokens and the issuer of tokens
//! are made for the run. Requests are made with `testkit`, so that a fault of the server cannot hide itself. The checks
//! are checked themselves: [`controls`] has wrong configurations, and the items that must fail with each.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(
    clippy::disallowed_types,
    reason = "checks look into small responses; those about exact numbers compare the text"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "data to stdout, messages to stderr")]

mod backend;
mod card_server;
mod controls;
mod crash;
mod fixture;
mod function_server;
mod http;
mod item;
mod json;
mod library;
mod loopback;
mod mcp;
mod report;
mod s0;
mod s1;
mod s2;
mod s3;
mod s4;
mod schema;
mod server_process;
mod test_client;
mod tools;
mod webhook_receiver;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tokio::{sync::Semaphore, task::JoinSet};

use backend::Backend;
use fixture::{Fixture, Servers};
use item::{Check, CheckError, CheckFn, CheckResult, ITEMS, Item, agents, mismatch, wire};
use report::{ItemResult, Report, Verdict};
use tools::{command, mcp_server};

/// The number of checks that run concurrently.
const MAX_CONCURRENT_CHECKS: usize = 8;

/// The time limit of one check, including the wait for a server that only one check may use at a time.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// The arguments of this program.
struct Options {
    /// The program under test.
    program: PathBuf,
    /// Prints a line for every item.
    verbose: bool,
    /// Ids of the items to check; empty means all.
    only: Vec<String>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    // The tools of the servers under test.
    if arguments.next_if(|first| first == mcp_server::COMMAND).is_some() {
        return mcp_server::run(arguments);
    }
    if arguments.next_if(|first| first == command::COMMAND).is_some() {
        return command::run(arguments);
    }
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run(arguments))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

/// Checks the selected items and prints the results. Returns whether no item failed.
async fn run(arguments: impl Iterator<Item = String>) -> Result<bool> {
    let Options { program, verbose, only } = options(arguments)?;
    let report = check_items(&program, &[], &only).await?;
    if verbose {
        print!("{}", report.lines());
    }
    print!("{}", report.summary());
    eprint!("{}", report.failures());
    let mut passed = report.is_success();
    if only.is_empty() {
        let wrong = controls::run(&program).await?;
        println!("controls {}/{}", controls::CONTROLS.len() - wrong.len(), controls::CONTROLS.len());
        eprint!("{}", wrong.concat());
        passed &= wrong.is_empty();
    }
    println!("{}", report.verdict_line());
    Ok(passed)
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let (mut program, mut verbose, mut only) = (None, false, Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--binary" => program = arguments.next().map(std::path::absolute).transpose()?,
            "--verbose" => verbose = true,
            id if ITEMS.iter().any(|item| has_id(id, item)) => only.push(argument),
            id => bail!("there is no item {id:?}; items are S0-1 to S4-46"),
        }
    }
    Ok(Options { program: program.context("--binary PROGRAM is missing")?, verbose, only })
}

/// Checks the selected items, with text replacements (from, to) in the configurations.
async fn check_items(
    program: &Path,
    changes: &[(&'static str, &'static str)],
    only: &[impl AsRef<str>],
) -> Result<Report> {
    let servers = Arc::new(Servers::new(program, changes)?);
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_CHECKS));
    let mut checks = JoinSet::new();
    let mut results = Vec::new();
    let mut start = |index, backend, run| {
        let (servers, permits) = (Arc::clone(&servers), Arc::clone(&permits));
        checks.spawn(async move { (index, backend, check(servers, backend, run, &permits).await) });
    };
    for item in ITEMS.iter().filter(|item| is_selected(only, item)) {
        let index = results.len();
        let verdict = match item.check {
            Check::Test(name) => Verdict::Test(name),
            Check::NotYet(step) => Verdict::NotYet(step, Vec::new()),
            Check::Wire(run) => {
                start(index, Backend::Builtin, run);
                Verdict::Passed
            }
            Check::Agents { run, on, until } => {
                on.iter().for_each(|backend| start(index, *backend, run));
                match until.backends {
                    [] => Verdict::Passed,
                    backends => Verdict::NotYet(until.step, backends.to_vec()),
                }
            }
        };
        results.push(ItemResult { item, verdict });
    }
    while let Some(done) = checks.join_next().await {
        let (index, backend, checked) = done.context("a check panicked")?;
        results[index].verdict.add(backend, checked);
    }
    Ok(Report::new(results))
}

async fn check(servers: Arc<Servers>, backend: Backend, run: CheckFn, permits: &Semaphore) -> CheckResult {
    let _permit = permits.acquire().await.map_err(|error| mismatch("a permit to run", error))?;
    let fixture = Fixture::new(servers, backend).await?;
    let checking = tokio::time::timeout(CHECK_TIMEOUT, run(&fixture)).await;
    checking.unwrap_or_else(|_| {
        Err(mismatch(format!("a result within {} seconds", CHECK_TIMEOUT.as_secs()), "a timeout"))
    })
}

fn is_selected(only: &[impl AsRef<str>], item: &Item) -> bool {
    only.is_empty() || only.iter().any(|id| has_id(id.as_ref(), item))
}

fn has_id(id: &str, item: &Item) -> bool {
    id.eq_ignore_ascii_case(&item.id())
}
