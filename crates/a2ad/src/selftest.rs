//! `a2ad selftest`: the mission as a list of tests, asked of a live server.
//!
//! The catalogue has every item of the five documents (S0 to S4) that a2ad is made from. Each is checked over the
//! wire, or names the ordinary test that checks it, or names the step of the roadmap that will. What is not there yet
//! never counts as passed.
//!
//! Without a URL, the program starts servers of its own: processes of the same executable with a configuration that is
//! built in. A server at a URL is taken as it is, and items that need an agent or a skill it has not got are not
//! applicable. The client that asks is this module's own, down to HTTP and JSON: nothing that the server is made of
//! has a say in whether the server is right. A few items are about our own client or library; those meet servers that
//! are put up for them in this process.

mod crash;
mod door;
mod fixture;
mod flags;
mod http;
mod item;
mod json;
mod program;
mod report;
mod s0;
mod s1;
mod s2;
mod s3;
mod s4;
mod schema;
mod stage;
mod started;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::{sync::Semaphore, task::JoinSet};

use fixture::Fixture;
pub(crate) use flags::Flags;
use http::Server;
use item::{Check, Checked, Item, Run, Seed, Step, Trouble, not_yet, test, wire, wrong};
pub use report::Report;
use report::{Found, Verdict};

use crate::{address, cli::connection};

/// How many checks run at a time.
const AT_A_TIME: usize = 8;

/// How long one check may take, waiting for its turn at a server included.
const PATIENCE: Duration = Duration::from_secs(18);

/// The documents in their order.
static SEEDS: [Seed; 5] = [s0::SEED, s1::SEED, s2::SEED, s3::SEED, s4::SEED];

/// What to check, and how to tell.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The origin of a server to check, such as `http://127.0.0.1:4242`; none is one of our own.
    pub url: Option<String>,
    /// A line for every item.
    pub verbose: bool,
    /// Everything as JSON.
    pub json: bool,
    /// Only these items, such as `S1-49`; none is all.
    pub only: Vec<String>,
    /// The program whose servers are started; none is this one.
    pub program: Option<PathBuf>,
    /// What to replace in the configuration of our own server, and by what.
    pub changes: Vec<(String, String)>,
}

/// What was asked for makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(String);

/// Checks, prints the report and gives the exit code: 0 when nothing failed, 1 when something did.
///
/// # Errors
///
/// [`Usage`] for an unknown item or a URL that is none; others where nothing could be checked.
pub fn run(options: &Options) -> anyhow::Result<u8> {
    use std::io::Write as _;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(examine(options))?;
    let text = match (options.json, options.verbose) {
        (true, _) => report.to_json() + "\n",
        (false, true) => report.lines() + &report.summary() + &report.sentence() + "\n",
        (false, false) => report.summary() + &report.sentence() + "\n",
    };
    // The failures first, so that the verdict is the last line on a terminal.
    if !options.json {
        std::io::stderr().write_all(report.failures().as_bytes())?;
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(u8::from(!report.is_good()))
}

/// Checks every item.
pub async fn examine(options: &Options) -> anyhow::Result<Report> {
    let exists = |asked: &&String| catalogue().any(|(seed, item)| is_named(asked, seed, item));
    if let Some(unknown) = options.only.iter().find(|asked| !exists(asked)) {
        return Err(Usage(format!("there is no item {unknown:?}; items are S0-1 to S4-42")).into());
    }
    let fixture = Arc::new(fixture(options).await?);
    let turns = Arc::new(Semaphore::new(AT_A_TIME));
    let mut checks = JoinSet::new();
    let mut found = Vec::new();
    for (place, (seed, item)) in catalogue().enumerate() {
        let verdict = match item.check {
            _ if !is_asked(&options.only, seed, item) => Verdict::LeftOut,
            Check::Test(name) => Verdict::Test(name),
            Check::NotYet(step) => Verdict::NotYet(step.to_string()),
            Check::Wire(run) => {
                let (fixture, turns) = (Arc::clone(&fixture), Arc::clone(&turns));
                checks.spawn(async move { (place, check(&fixture, run, &turns).await) });
                Verdict::LeftOut
            }
        };
        found.push(Found { seed: seed.name, number: item.number, what: item.what, verdict });
    }
    while let Some(done) = checks.join_next().await {
        let (place, checked) = done.context("a check broke")?;
        found[place].verdict = Verdict::of(checked, fixture.is_ours());
    }
    // What was started on somebody else's server and is still open ends with the selftest.
    let left_open = if fixture.is_ours() { Vec::new() } else { fixture.server.started.cancel_all().await };
    Ok(Report::new(found).with_left_open(left_open))
}

async fn fixture(options: &Options) -> anyhow::Result<Fixture> {
    match &options.url {
        Some(url) => {
            let full = address::url(url).unwrap_or_else(|| url.clone());
            if full.starts_with("https://") {
                let text = format!("{full}: the selftest connects without TLS; give an http:// address");
                return Err(Usage(text).into());
            }
            let server = Server::of(&full).ok_or_else(|| {
                Usage(format!("{url:?} is no origin such as http://127.0.0.1:4242 or 127.0.0.1:4242"))
            })?;
            let cause = connection::advice_before_calls(&full).await;
            let checked = match cause {
                Some(cause) => Err(anyhow::anyhow!(cause)),
                None => Fixture::of(server).await,
            };
            checked.with_context(|| format!("cannot check {full}"))
        }
        None => {
            let own = || std::env::current_exe().context("cannot tell where this program is");
            let program = options.program.clone().map_or_else(own, Ok)?;
            Fixture::start(program, &options.changes).await
        }
    }
}

async fn check(fixture: &Fixture, run: Run, turns: &Semaphore) -> Checked {
    let _turn = turns.acquire().await.map_err(|error| wrong("a turn", error))?;
    let checking = tokio::time::timeout(PATIENCE, run(fixture)).await;
    checking.unwrap_or_else(|_| Err(wrong(format!("an end within {} seconds", PATIENCE.as_secs()), "none")))
}

fn catalogue() -> impl Iterator<Item = (&'static Seed, &'static Item)> {
    SEEDS.iter().flat_map(|seed| seed.items.iter().map(move |item| (seed, item)))
}

fn is_asked(only: &[String], seed: &Seed, item: &Item) -> bool {
    only.is_empty() || only.iter().any(|asked| is_named(asked, seed, item))
}

fn is_named(asked: &str, seed: &Seed, item: &Item) -> bool {
    asked.eq_ignore_ascii_case(&format!("{}-{}", seed.name, item.number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_one_entry_in_order() {
        let expected = [("S0", 46), ("S1", 89), ("S2", 49), ("S3", 68), ("S4", 42)];
        for (seed, (name, count)) in SEEDS.iter().zip(expected) {
            let numbers: Vec<u16> = seed.items.iter().map(|item| item.number).collect();
            assert_eq!((seed.name, numbers), (name, (1..=count).collect()));
        }
    }
}
