//! retention_under_load: finished tasks expire by the thousand while clients are served. Expired tasks are purged,
//! open tasks stay, the files do not grow from cycle to cycle, and live calls are hardly slower.
//!
//! A cycle fills the store with finished tasks, waits until they expire, and watches the purge; live calls
//! (`live.rs`) are made all the time at a constant rate. Their latencies are compared between two periods of the
//! same run: the first cycle before anything expires, when the store is full, and the periods in which tasks
//! expire.
//!
//! The day for which the keys of a purged task are kept is scaled like the age at which tasks expire.
//!
//! Deliberately not here: retention by number of tasks.

pub(crate) mod live;
mod open;
mod sizes;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use self::live::{LiveLoad, Times};
use self::open::OpenTasks;
use self::sizes::Sizes;
use super::extra_options::{ExtraOptions, TimeLimits};
use super::fill::{self, Sent};
use super::random::Random;
use super::trial::{ProofResult, Setup, Trial, stop};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--tasks N] [--cycles N] [--seed S] [--binary PATH] [--relaxed]";

/// Tasks per second that a busy machine can create at least; determines the age at which tasks expire.
const SLOW_FILL_PER_SECOND: u64 = 2_000;
/// Time between the last task of a fill and the first expiry, in seconds.
const QUIET_SECONDS: u64 = 5;
/// How long a task may still exist after its expiry.
const LAG_GOAL: Duration = Duration::from_secs(10);
const MARGIN: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(100);
/// Number of tasks of each cycle that are read individually.
const SAMPLE: usize = 400;
/// Tolerated difference between a file size and the first steady size, in percent.
const SIZE_TOLERANCE_PERCENT: u64 = 10;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let (cycles, time_limits) = (extras.number("--cycles", 10)?, extras.time_limits());
    let trial = Trial::parse("retention_under_load", "--tasks", 200_000, &extras.rest())?;
    ensure!(cycles >= 2, "--cycles must be at least 2: one to fill and one to compare");
    ensure!(trial.size >= cycles, "--tasks must be at least the number of cycles");
    trial.run(async |setup| watch(&trial, cycles, time_limits, setup).await)
}

async fn watch(trial: &Trial, cycles: u64, time_limits: TimeLimits, setup: &Setup) -> Result<ProofResult> {
    let mut random = Random::new(trial.seed);
    let tasks = trial.size / cycles;
    let max_age = Duration::from_secs(QUIET_SECONDS + tasks / SLOW_FILL_PER_SECOND);
    let config = format!(
        "[store]\nretention = {{ max_age = \"{0}s\", keys = \"{0}s\" }}\n[limits]\nrun_time = \"24h\"\n",
        max_age.as_secs()
    );
    let launch = Launch::with_config(&setup.store, &config)?;
    let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let open = OpenTasks::begin(server.address, &mut random).await?;
    let mut run = Run {
        address: server.address,
        random,
        tasks,
        max_age,
        time_limits,
        sizes: Sizes::watch(&setup.store),
        live: None,
        open,
        before: Times::default(),
        expiring: Times::default(),
        cycles: Vec::new(),
        findings: Vec::new(),
    };
    for _ in 0..cycles {
        run.cycle().await?;
    }
    run.finish().await?;
    stop(server, &mut run.findings).await?;
    run.check_growth_and_latency();
    Ok(ProofResult { figures: run.figures(), findings: run.findings })
}

struct Run {
    address: SocketAddr,
    random: Random,
    /// Tasks in each cycle.
    tasks: u64,
    max_age: Duration,
    time_limits: TimeLimits,
    sizes: Sizes,
    live: Option<LiveLoad>,
    open: OpenTasks,
    /// Latencies of live calls before anything expired.
    before: Times,
    /// Latencies of live calls while tasks expired.
    expiring: Times,
    cycles: Vec<Cycle>,
    findings: Vec<String>,
}

struct Cycle {
    fill: Duration,
    /// From the expiry of the last task until all were purged.
    lag: Duration,
    /// Of all files together.
    peak_bytes: u64,
    /// Of the database file alone, after the purge.
    database_bytes: u64,
    /// Tasks created up to the end of the cycle, open ones not counted.
    made: u64,
}

impl Run {
    async fn cycle(&mut self) -> Result<()> {
        let started = Instant::now();
        let sent = fill::finished(self.address, self.tasks, &mut self.random).await?;
        let filled = Instant::now();
        let live = match self.live.take() {
            Some(live) => live,
            None => LiveLoad::begin(self.address, self.open.any(), &mut self.random),
        };
        let first_due = started + self.max_age;
        let sample: Vec<Sent> = sent.iter().step_by(sent.len().div_ceil(SAMPLE).max(1)).cloned().collect();

        sleep_until(first_due - 3 * MARGIN).await;
        if self.cycles.is_empty() {
            live.drain_into(&mut self.before);
        }
        self.expect_present(&sample, first_due).await?;
        sleep_until(first_due).await;
        live.drain_into(&mut Times::default());
        let gone = self.until_purged(&sent, filled + self.max_age).await?;
        live.drain_into(&mut self.expiring);
        let made = self.tasks * (self.cycles.len() as u64 + 1) + live.sent();
        self.live = Some(live);
        self.expect_purged(&sample).await?;

        self.findings.extend(self.open.check(self.address).await?);
        let (peak_bytes, database_bytes) = (self.sizes.take_peak(), self.sizes.database());
        let lag = gone.saturating_duration_since(filled + self.max_age);
        eprintln!(
            "retention_under_load: cycle {}: filled in {:?}, all purged {lag:?} after expiry, {peak_bytes} bytes",
            self.cycles.len() + 1,
            filled - started,
        );
        self.cycles.push(Cycle { fill: filled - started, lag, peak_bytes, database_bytes, made });
        Ok(())
    }

    /// No task may be purged before its expiry. If reading the sample takes longer than the time left, nothing is
    /// checked.
    async fn expect_present(&mut self, sample: &[Sent], first_due: Instant) -> Result<()> {
        let found = fill::read(self.address, "echo", &ids(sample)).await?;
        if Instant::now() > first_due {
            return Ok(());
        }
        for (id, _) in found.iter().filter(|(_, task)| task.is_none()) {
            self.findings.push(format!("lost: task {id} was purged before its expiry"));
        }
        Ok(())
    }

    /// Waits until the task that was sent last is unknown, with few requests: the live calls are timed meanwhile. A
    /// task left at the limit is a finding.
    async fn until_purged(&mut self, sent: &[Sent], due: Instant) -> Result<Instant> {
        let last = sent.last().map(|sent| sent.task.clone());
        let last = last.context("a cycle has at least one task")?;
        let limit = self.time_limits.limit(LAG_GOAL);
        while fill::read(self.address, "echo", std::slice::from_ref(&last)).await?[0].1.is_some() {
            if Instant::now() > due + limit {
                self.findings.push(format!("stuck: task {last} still exists {limit:?} after its expiry"));
                break;
            }
            sleep(POLL).await;
        }
        Ok(Instant::now())
    }

    async fn expect_purged(&mut self, sample: &[Sent]) -> Result<()> {
        let found = fill::read(self.address, "echo", &ids(sample)).await?;
        for (id, _) in found.iter().filter(|(_, task)| task.is_some()) {
            self.findings.push(format!("stuck: task {id} still exists and a later one is purged"));
        }
        Ok(())
    }

    /// After the live calls have stopped, every finished task must be purged, and the open tasks must end as
    /// requested.
    async fn finish(&mut self) -> Result<()> {
        if let Some(live) = self.live.take() {
            self.findings.extend(live.end().await?);
        }
        self.findings.extend(self.open.end(self.address).await?);
        let limit = Instant::now() + self.max_age + self.time_limits.limit(LAG_GOAL);
        let mut caller = super::rpc::Caller::new(self.address);
        loop {
            let left = fill::count(&mut caller, "echo", "TASK_STATE_COMPLETED").await?
                + fill::count(&mut caller, "echo", "TASK_STATE_CANCELED").await?;
            if left == 0 {
                return Ok(());
            }
            if Instant::now() > limit {
                self.findings.push(format!("stuck: {left} tasks are listed long after their expiry"));
                return Ok(());
            }
            sleep(POLL).await;
        }
    }

    fn check_growth_and_latency(&mut self) {
        // The first cycle begins with an empty store; from the second on, freed space is reused.
        let steady = &self.cycles[self.cycles.len() / 2..];
        let first = &steady[0];
        for cycle in steady {
            self.findings.extend(growth("the database", first.database_bytes, cycle.database_bytes));
            // The maximum size of the WAL before it is reset also depends on timing.
            if self.time_limits.is_strict() {
                self.findings.extend(growth("all files", first.peak_bytes, cycle.peak_bytes));
            }
        }
        let (before, expiring) = (self.before.p99(), self.expiring.p99());
        if self.before.len() < 200 || self.expiring.len() < 200 {
            self.findings.push("retention_under_load proves nothing: too few live calls".to_owned());
        }
        if expiring >= 2 * before && self.time_limits.is_strict() {
            self.findings.push(format!("slow: p99 of live calls {expiring:?} with purge, {before:?} before"));
        }
    }

    fn figures(&self) -> Value {
        let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
        let of = |each: &dyn Fn(&Cycle) -> Value| self.cycles.iter().map(each).collect::<Vec<Value>>();
        json!({
            "cycles": self.cycles.len(),
            "tasks_per_cycle": self.tasks,
            "max_age_s": self.max_age.as_secs(),
            "open_tasks": self.open.len(),
            "fill_ms": of(&|cycle| millis(cycle.fill).round().into()),
            "lag_ms": of(&|cycle| millis(cycle.lag).round().into()),
            "peak_bytes": of(&|cycle| cycle.peak_bytes.into()),
            "database_bytes": of(&|cycle| cycle.database_bytes.into()),
            "made": self.cycles.last().map_or(0, |cycle| cycle.made),
            "live_calls_before": self.before.len(),
            "live_calls_expiring": self.expiring.len(),
            "p99_before_ms": millis(self.before.p99()),
            "p99_expiring_ms": millis(self.expiring.p99()),
            "max_before_ms": millis(self.before.max()),
            "max_expiring_ms": millis(self.expiring.max()),
            "relaxed": !self.time_limits.is_strict(),
        })
    }
}

/// The finding for a size that should be the same as before, if it is not.
fn growth(what: &str, before: u64, now: u64) -> Option<String> {
    let allowed = before * SIZE_TOLERANCE_PERCENT / 100;
    let flat = now <= before + allowed && now + allowed >= before;
    (!flat).then(|| format!("growth: {what} took {before} bytes and then {now}"))
}

fn ids(sent: &[Sent]) -> Vec<String> {
    sent.iter().map(|sent| sent.task.clone()).collect()
}
