//! purge_large_tasks: many large tasks are purged at once while clients send and read. Purging is cut into small
//! commits, so live calls are hardly slower.
//!
//! The large tasks belong to an agent that keeps a limited number of finished tasks: as many small tasks evict all of
//! them together. Live calls to another agent are timed before and meanwhile.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::extra_options::ExtraOptions;
use super::fill;
use super::random::Random;
use super::retention_under_load::live::{LiveLoad, Times};
use super::rpc::{Caller, message};
use super::trial::{ProofResult, Setup, Trial, in_parallel, stop};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--tasks N] [--mib N] [--seed S] [--binary PATH] [--relaxed]";

/// How long live calls are timed before the purge.
const BASELINE: Duration = Duration::from_secs(10);
/// How long the purge may take.
const PURGE_LIMIT: Duration = Duration::from_secs(60);
/// The last rows are deleted shortly after the last task has disappeared from lists.
const LAST_ROWS: Duration = Duration::from_millis(500);
/// Tolerated factor between the p99 latencies of live calls with and without purge.
const MAX_FACTOR: u32 = 3;
const SENDERS: u64 = 4;
const POLL: Duration = Duration::from_millis(20);
const COMPLETED: &str = "TASK_STATE_COMPLETED";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let (mib, strict) = (extras.number("--mib", 30)?, extras.time_limits().is_strict());
    let trial = Trial::parse("purge_large_tasks", "--tasks", 64, &extras.rest())?;
    ensure!((2..=60).contains(&mib), "--mib must be between 2 and 60");
    trial.run(async |setup| watch(&trial, mib, strict, setup).await)
}

async fn watch(trial: &Trial, mib: u64, strict: bool, setup: &Setup) -> Result<ProofResult> {
    let mut random = Random::new(trial.seed);
    let launch = Launch::with_config(&setup.store, &config(trial.size))?;
    let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let address = server.address;
    // The log of a task holds the message and its echo.
    let text = "text ".repeat(usize::try_from(mib << 20)? / 10);
    send(address, trial.size, &text, &mut random).await?;
    let open = fill::finished(address, 1, &mut random).await?;
    let open = open.first().context("one task was sent")?.task.clone();
    until_quiet(&setup.store).await?;
    let file_bytes = fs::metadata(&setup.store)?.len();

    let live = LiveLoad::begin(address, &open, &mut random);
    sleep(BASELINE).await;
    let (mut before, mut purging) = (Times::default(), Times::default());
    live.drain_into(&mut before);
    let started = Instant::now();
    send(address, trial.size, "small", &mut random).await?;
    until_purged(address, trial.size).await?;
    let took = started.elapsed();
    sleep(LAST_ROWS).await;
    live.drain_into(&mut purging);

    let mut findings = live.end().await?;
    stop(server, &mut findings).await?;
    if before.len() < 200 || purging.len() < 200 {
        findings.push("purge_large_tasks proves nothing: too few live calls".to_owned());
    }
    let (usual, during) = (before.p99(), purging.p99());
    if strict && during > MAX_FACTOR * usual {
        findings.push(format!("slow: p99 of live calls {during:?} with purge, {usual:?} before"));
    }
    let figures = figures(trial.size, mib, file_bytes, took, &before, &purging);
    Ok(ProofResult { figures, findings })
}

fn figures(tasks: u64, mib: u64, file_bytes: u64, took: Duration, before: &Times, purging: &Times) -> Value {
    let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
    json!({
        "tasks": tasks,
        "task_mib": mib,
        "file_bytes": file_bytes,
        "purge_ms": millis(took).round(),
        "live_calls_before": before.len(),
        "live_calls_purging": purging.len(),
        "p99_before_ms": millis(before.p99()),
        "p99_purging_ms": millis(purging.p99()),
        "max_before_ms": millis(before.max()),
        "max_purging_ms": millis(purging.max()),
    })
}

/// `bulk` keeps as many finished tasks as there are large ones. The short time of its keys makes purges frequent.
fn config(tasks: u64) -> String {
    format!(
        "[limits]\nmax_body = \"64MiB\"\n[skills.echo]\nbuiltin = \"echo\"\n[agents.echo]\nskills = [\"echo\"]\n\
         [agents.bulk]\nskills = [\"echo\"]\nretention = {{ max_tasks = {tasks}, keys = \"5s\" }}\n\
         [server]\ndefault_agent = \"echo\"\n"
    )
}

/// Sends `tasks` messages to `bulk` over a few connections.
async fn send(address: SocketAddr, tasks: u64, text: &str, random: &mut Random) -> Result<()> {
    let senders = (0..SENDERS).map(|sender| {
        let share = (tasks + sender) / SENDERS;
        let (text, mut random) = (text.to_owned(), random.branch());
        async move {
            let mut caller = Caller::new(address);
            for _ in 0..share {
                caller.call("bulk", "SendMessage", message(random.uuid(), &text, false)).await?;
            }
            Ok(())
        }
    });
    in_parallel(senders).await.into_iter().collect()
}

/// Waits until the store has written everything, also what it writes in the background.
async fn until_quiet(store: &Path) -> Result<()> {
    let mut quiet_since = Instant::now();
    let mut last = fs::metadata(store)?.modified()?;
    while quiet_since.elapsed() < Duration::from_secs(5) {
        sleep(POLL).await;
        let now = fs::metadata(store)?.modified()?;
        if now != last {
            (last, quiet_since) = (now, Instant::now());
        }
    }
    Ok(())
}

/// Waits until only the small tasks are left.
async fn until_purged(address: SocketAddr, tasks: u64) -> Result<()> {
    let mut caller = Caller::new(address);
    let limit = Instant::now() + PURGE_LIMIT;
    while fill::count(&mut caller, "bulk", COMPLETED).await? > tasks {
        ensure!(Instant::now() < limit, "the large tasks are not purged after {PURGE_LIMIT:?}");
        sleep(POLL).await;
    }
    Ok(())
}
