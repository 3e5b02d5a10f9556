//! cancel_grace: runs of agents that record progress all the time are ended from outside, by a cancel, at the end of
//! their run time, and by a drain. Each agent's cancellation token must fire, the agent must be able to clean up for some
//! milliseconds, and the task must have exactly one terminal event. A drained run must not end at all: its checkpoint of the
//! last moment is there when the next engine continues it, in the same attempt.
//!
//! The engine runs in this process with the store in a file, so that the agent's side of each run can be checked too. The
//! whole log of every task is read again after all runs of a phase have ended, so that late writes would show. Deliberately
//! not here: agents that do not look at their token, which are tests of the engine.

mod chatty;
mod phase;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use engine::{AgentInfo, Catalog, Clock, DynAgent, Engine, Feed, Limits, RegisteredAgent};
use serde_json::json;
use store::{OpenError, Sqlite, SqliteOptions};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use self::chatty::{Chatty, RunReport};
use self::phase::Phase;
use super::random::Random;
use super::trial::{ProofResult, Setup, Trial};

pub(crate) const OPTIONS: &str = "[--cancels N] [--seed S] [--binary PATH]";

const DEFAULT_CANCELS: u64 = 10_000;
const AGENT: &str = "chatty";
/// Runs that are active at the same time.
const CONCURRENT: u64 = 64;
/// Runs that one drain ends.
const DRAINED: u64 = 50;
/// The grace of a drain: the agents are asked to stop at its begin.
const DRAIN_GRACE: Duration = Duration::from_secs(5);
/// The run time in the phase in which it ends the runs.
const RUN_TIME: Duration = Duration::from_millis(30);
/// How long a closed store may take to be unlocked.
const UNLOCK_LIMIT: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let trial = Trial::parse("cancel_grace", "--cancels", DEFAULT_CANCELS, args)?;
    trial.run(async |setup| campaign(&trial, setup).await)
}

/// The cancels, and a tenth as many runs that end at their run time and in drains.
async fn campaign(trial: &Trial, setup: &Setup) -> Result<ProofResult> {
    let mut random = Random::new(trial.seed);
    let mut findings = Vec::new();
    let (cancels, others) = (trial.size, trial.size.div_ceil(10));

    let host = Host::open(&setup.store, Limits::default()).await?;
    findings.extend(cancel(Phase::new("cancel", host), cancels, &mut random).await?);
    let host = Host::open(&setup.store, Limits { run_time: RUN_TIME, ..Limits::default() }).await?;
    findings.extend(run_out(Phase::new("run time", host), others, &mut random).await?);
    let (drains, mut longest) = (others.div_ceil(DRAINED), Duration::ZERO);
    for _ in 0..drains {
        let host = Host::open(&setup.store, Limits::default()).await?;
        let (found, took) = drain(host, &setup.store, others.min(DRAINED), &mut random).await?;
        findings.extend(found);
        longest = longest.max(took);
    }
    let figures = json!({
        "cancels": cancels,
        "run_times": others,
        "drains": drains,
        "drained": drains * others.min(DRAINED),
        "longest_drain_ms": u64::try_from(longest.as_millis())?,
    });
    Ok(ProofResult { figures, findings })
}

/// Runs that their clients cancel.
async fn cancel(mut phase: Phase, count: u64, random: &mut Random) -> Result<Vec<String>> {
    let mut left = count;
    while left > 0 {
        let batch = left.min(CONCURRENT);
        let tasks = phase.start(batch, random).await?;
        phase.cancel(&tasks, random).await;
        phase.check_stopped(batch).await?;
        left -= batch;
    }
    phase.check_logs("TASK_STATE_CANCELED").await?;
    Ok(phase.close().await)
}

/// Runs that take longer than they may.
async fn run_out(mut phase: Phase, count: u64, random: &mut Random) -> Result<Vec<String>> {
    let mut left = count;
    while left > 0 {
        let batch = left.min(CONCURRENT);
        phase.start(batch, random).await?;
        phase.check_stopped(batch).await?;
        left -= batch;
    }
    phase.check_logs("TASK_STATE_FAILED").await?;
    Ok(phase.close().await)
}

/// Runs that a drain releases, and that the next engine continues; their clients cancel them then.
async fn drain(host: Host, store: &Path, count: u64, random: &mut Random) -> Result<(Vec<String>, Duration)> {
    let mut phase = Phase::new("drain", host);
    let tasks = phase.start(count, random).await?;
    let started = Instant::now();
    phase.host().engine.drain(DRAIN_GRACE).await;
    let took = started.elapsed();
    phase.check_stopped(count).await?;
    phase.check_checkpoints();
    phase.check_open().await?;
    let mut findings = phase.close().await;
    if took >= DRAIN_GRACE {
        findings.push(format!("a drain took {took:?} although every agent stopped"));
    }

    let mut phase = Phase::new("continued", Host::open(store, Limits::default()).await?);
    phase.expect(&tasks);
    phase.until_running(count).await?;
    phase.cancel(&tasks, random).await;
    phase.check_stopped(count).await?;
    phase.check_continued();
    phase.check_logs("TASK_STATE_CANCELED").await?;
    findings.extend(phase.close().await);
    Ok((findings, took))
}

/// An engine with the agent, and what its runs report.
struct Host {
    engine: Engine,
    reports: UnboundedReceiver<RunReport>,
    agent: Chatty,
}

impl Host {
    async fn open(path: &Path, limits: Limits) -> Result<Self> {
        let (clock, feed) = (Clock::system(), Feed::default());
        let store = unlocked(path, &feed, &clock).await?;
        let (sender, reports) = mpsc::unbounded_channel();
        let agent = Chatty::new(sender);
        let info = AgentInfo {
            id: AGENT.into(),
            name: AGENT.into(),
            description: String::new(),
            version: "1".into(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
        };
        let registered = RegisteredAgent::new(info, DynAgent::new(agent.clone()));
        let catalog = Catalog::new(AGENT, [registered]);
        Ok(Self { engine: Engine::start(Arc::new(store), feed, catalog, clock, limits), reports, agent })
    }
}

/// Opens the store; the engine that had it open before may still be closing it.
async fn unlocked(path: &Path, feed: &Feed, clock: &Clock) -> Result<Sqlite> {
    let started = Instant::now();
    loop {
        match Sqlite::open(&SqliteOptions::at(path), feed.clone(), clock) {
            Err(OpenError::InUse { .. } | OpenError::Locked { .. }) if started.elapsed() < UNLOCK_LIMIT => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            opened => return opened.context("cannot open the store"),
        }
    }
}
