//! `a2ad-acceptance --binary PROGRAM [ITEM…] [--verbose]`: checks the program against the list of its requirements.
//! `cargo xtask acceptance` builds the program and passes its path.
//!
//! The list has five groups, S0 to S4: S0 is the profile `fold`, S1 the draft of the protocol with its published schema
//! and sample, S2 the profile `pinkfish`, S3 the profile `agent-native`, S4 the profile `agentos`. An id such as `S1-49`
//! never changes its meaning. Each item is checked over the wire, or names the ordinary test that checks it, or the step
//! of the plan that will build it; an item of the last kind never counts as passed. Items about the client and the library
//! use these directly.
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
use item::{Check, CheckError, CheckFn, CheckResult, Group, Item, agents, mismatch, not_yet, test, wire};
use report::{ItemResult, Report, Verdict};
use tools::{command, mcp_server};

/// The number of checks that run concurrently.
const MAX_CONCURRENT_CHECKS: usize = 8;

/// The time limit of one check, including the wait for a server that only one check may use at a time.
const CHECK_TIMEOUT: Duration = Duration::from_secs(18);

/// The groups of the list in order.
static GROUPS: [Group; 5] = [s0::GROUP, s1::GROUP, s2::GROUP, s3::GROUP, s4::GROUP];

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
            id if items().any(|(group, item)| has_id(id, group, item)) => only.push(argument),
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
    for (group, item) in items().filter(|(group, item)| is_selected(only, group, item)) {
        let index = results.len();
        let verdict = match item.check {
            Check::Test(name) => Verdict::Test(name),
            Check::NotYet(step) => Verdict::NotYet(step, Vec::new()),
            Check::Wire(run) => {
                start(index, Backend::Builtin, run);
                Verdict::Passed
            }
            Check::Agents { run, on, until } => {
                on.iter().chain(until.backends).for_each(|backend| start(index, *backend, run));
                match until.backends {
                    [] => Verdict::Passed,
                    backends => Verdict::NotYet(until.step, backends.to_vec()),
                }
            }
        };
        results.push(ItemResult { group: group.name, number: item.number, what: item.what, verdict });
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

fn items() -> impl Iterator<Item = (&'static Group, &'static Item)> {
    GROUPS.iter().flat_map(|group| group.items.iter().map(move |item| (group, item)))
}

fn is_selected(only: &[impl AsRef<str>], group: &Group, item: &Item) -> bool {
    only.is_empty() || only.iter().any(|id| has_id(id.as_ref(), group, item))
}

fn has_id(id: &str, group: &Group, item: &Item) -> bool {
    id.eq_ignore_ascii_case(&format!("{}-{}", group.name, item.number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_one_entry_in_order() {
        let expected = [("S0", 50), ("S1", 93), ("S2", 51), ("S3", 74), ("S4", 46)];
        for (group, (name, count)) in GROUPS.iter().zip(expected) {
            let numbers: Vec<u16> = group.items.iter().map(|item| item.number).collect();
            assert_eq!((group.name, numbers), (name, (1..=count).collect()));
        }
    }

    #[test]
    fn every_named_test_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (group, item) in items() {
            let Check::Test(name) = item.check else { continue };
            let (file, function) = name.split_once("::").unwrap();
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            assert!(text.contains(&format!("fn {function}(")), "{}-{}: {name}", group.name, item.number);
        }
    }
}
