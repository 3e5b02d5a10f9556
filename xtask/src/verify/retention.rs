//! T-R16: finished tasks expire by the thousand while clients are served. What expired is gone, what is open
//! stays, the files do not grow from cycle to cycle, and live calls hardly notice.
//!
//! A cycle fills the store with finished tasks, waits until they are due, and watches them go; live calls
//! (`live.rs`) are made all the time at one pace. Their times are compared between two spans of the same run: the
//! first cycle's, when the store is full and nothing has expired yet, and those in which tasks expire.
//!
//! The day for which the keys of a purged task are kept is scaled like the age at which tasks expire.
//!
//! Deliberately not here: the cap by number.

mod live;
mod open;
mod sizes;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use self::live::{Live, Times};
use self::open::Open;
use self::sizes::Sizes;
use super::extras::{Extras, Pace};
use super::fill::{self, Sent};
use super::random::Random;
use super::trial::{Seen, Stand, Trial};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--tasks N] [--cycles N] [--seed S] [--binary PATH] [--relaxed]";

/// How many tasks a busy machine surely makes in a second; sets the age at which tasks expire.
const SLOW_FILL_PER_SECOND: u64 = 2_000;
/// The quiet time between the last task of a fill and the first one that expires, in seconds.
const QUIET_SECONDS: u64 = 5;
/// How long after it is due a task may still be there.
const LAG_GOAL: Duration = Duration::from_secs(10);
const MARGIN: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(100);
/// How many tasks of each cycle are looked for one by one.
const SAMPLE: usize = 400;
/// By how much a steady file may differ from the first steady one, in percent.
const FLAT_PERCENT: u64 = 10;
const STOP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = Extras::of(args);
    let (cycles, pace) = (extras.number("--cycles", 10)?, extras.pace());
    let trial = Trial::parse("T-R16", "--tasks", 200_000, &extras.rest())?;
    ensure!(cycles >= 2, "--cycles wants at least 2: one to fill and one to compare");
    ensure!(trial.size >= cycles, "--tasks wants at least one task in each cycle");
    trial.run(async |stand| watch(&trial, cycles, pace, stand).await)
}

async fn watch(trial: &Trial, cycles: u64, pace: Pace, stand: &Stand) -> Result<Seen> {
    let mut random = Random::new(trial.seed);
    let tasks = trial.size / cycles;
    let max_age = Duration::from_secs(QUIET_SECONDS + tasks / SLOW_FILL_PER_SECOND);
    let config = format!(
        "[store]\nretention = {{ max_age = \"{0}s\", keys = \"{0}s\" }}\n[limits]\nrun_time = \"24h\"\n",
        max_age.as_secs()
    );
    let launch = Launch::with_config(&stand.store, &config)?;
    let server = Server::start_by(&launch, &stand.program, &stand.store).await?;
    let open = Open::begin(server.address, &mut random).await?;
    let mut run = Run {
        address: server.address,
        random,
        tasks,
        max_age,
        pace,
        sizes: Sizes::watch(&stand.store),
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
    let status = server.terminate(STOP_LIMIT).await?;
    if !status.success() {
        run.findings.push(format!("the server answered SIGTERM with {status}"));
    }
    run.judge();
    Ok(Seen { figures: run.figures(), findings: run.findings })
}

struct Run {
    address: SocketAddr,
    random: Random,
    /// In each cycle.
    tasks: u64,
    max_age: Duration,
    pace: Pace,
    sizes: Sizes,
    live: Option<Live>,
    open: Open,
    /// Of live calls while nothing had expired yet.
    before: Times,
    /// Of live calls while tasks expired.
    expiring: Times,
    cycles: Vec<Cycle>,
    findings: Vec<String>,
}

struct Cycle {
    fill: Duration,
    /// From the moment the last task was due to the moment all were gone.
    lag: Duration,
    /// Of all files together.
    peak_bytes: u64,
    /// Of the database alone, when all were gone.
    database_bytes: u64,
    /// Tasks made up to the end of the cycle, other than open ones.
    made: u64,
}

impl Run {
    async fn cycle(&mut self) -> Result<()> {
        let started = Instant::now();
        let sent = fill::finished(self.address, self.tasks, &mut self.random).await?;
        let filled = Instant::now();
        let live = match self.live.take() {
            Some(live) => live,
            None => Live::begin(self.address, self.open.any(), &mut self.random),
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
        let gone = self.until_gone(&sent, filled + self.max_age).await?;
        live.drain_into(&mut self.expiring);
        let made = self.tasks * (self.cycles.len() as u64 + 1) + live.sent();
        self.live = Some(live);
        self.expect_gone(&sample).await?;

        self.findings.extend(self.open.check(self.address).await?);
        let (peak_bytes, database_bytes) = (self.sizes.take_peak(), self.sizes.database());
        let lag = gone.saturating_duration_since(filled + self.max_age);
        eprintln!(
            "T-R16: cycle {}: filled in {:?}, all gone {lag:?} after they were due, {peak_bytes} bytes",
            self.cycles.len() + 1,
            filled - started,
        );
        self.cycles.push(Cycle { fill: filled - started, lag, peak_bytes, database_bytes, made });
        Ok(())
    }

    /// Nothing may go before its time. What takes longer to look for than the time there is proves nothing.
    async fn expect_present(&mut self, sample: &[Sent], first_due: Instant) -> Result<()> {
        let found = fill::read(self.address, "echo", &ids(sample)).await?;
        if Instant::now() > first_due {
            return Ok(());
        }
        for (id, _) in found.iter().filter(|(_, task)| task.is_none()) {
            self.findings.push(format!("lost: task {id} is gone before its time"));
        }
        Ok(())
    }

    /// Waits until the task that was sent last is unknown, asking little meanwhile: this is when live calls are
    /// timed. What is left at the limit is a finding.
    async fn until_gone(&mut self, sent: &[Sent], due: Instant) -> Result<Instant> {
        let last = sent.last().map(|sent| sent.task.clone());
        let last = last.context("a cycle has tasks")?;
        let limit = self.pace.limit(LAG_GOAL);
        while fill::read(self.address, "echo", std::slice::from_ref(&last)).await?[0].1.is_some() {
            if Instant::now() > due + limit {
                self.findings.push(format!("stuck: task {last} is still there {limit:?} after it was due"));
                break;
            }
            sleep(POLL).await;
        }
        Ok(Instant::now())
    }

    async fn expect_gone(&mut self, sample: &[Sent]) -> Result<()> {
        let found = fill::read(self.address, "echo", &ids(sample)).await?;
        for (id, _) in found.iter().filter(|(_, task)| task.is_some()) {
            self.findings.push(format!("stuck: task {id} is still there and a later one is gone"));
        }
        Ok(())
    }

    /// When live calls have stopped, everything that can expire must; the open tasks end as they should.
    async fn finish(&mut self) -> Result<()> {
        if let Some(live) = self.live.take() {
            self.findings.extend(live.end().await?);
        }
        self.findings.extend(self.open.end(self.address).await?);
        let limit = Instant::now() + self.max_age + self.pace.limit(LAG_GOAL);
        let mut caller = super::rpc::Caller::new(self.address);
        loop {
            let left = fill::count(&mut caller, "echo", "TASK_STATE_COMPLETED").await?
                + fill::count(&mut caller, "echo", "TASK_STATE_CANCELED").await?;
            if left == 0 {
                return Ok(());
            }
            if Instant::now() > limit {
                self.findings.push(format!("stuck: {left} tasks are in the list long after they were due"));
                return Ok(());
            }
            sleep(POLL).await;
        }
    }

    fn judge(&mut self) {
        // The first cycle begins with an empty store; from the second on the room of the last one is used again.
        let steady = &self.cycles[self.cycles.len() / 2..];
        let first = &steady[0];
        for cycle in steady {
            self.findings.extend(growth("the database", first.database_bytes, cycle.database_bytes));
            // How long the log of writes becomes before it starts over is a matter of time too.
            if self.pace.is_strict() {
                self.findings.extend(growth("all files", first.peak_bytes, cycle.peak_bytes));
            }
        }
        let (before, expiring) = (self.before.p99(), self.expiring.p99());
        if self.before.len() < 200 || self.expiring.len() < 200 {
            self.findings.push("T-R16 proves nothing: too few live calls".to_owned());
        }
        if expiring >= 2 * before && self.pace.is_strict() {
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
            "relaxed": !self.pace.is_strict(),
        })
    }
}

/// What is wrong with a size that should be the same as before.
fn growth(what: &str, before: u64, now: u64) -> Option<String> {
    let allowed = before * FLAT_PERCENT / 100;
    let flat = now <= before + allowed && now + allowed >= before;
    (!flat).then(|| format!("growth: {what} took {before} bytes and then {now}"))
}

fn ids(sent: &[Sent]) -> Vec<String> {
    sent.iter().map(|sent| sent.task.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_more_or_less_is_flat() {
        for (now, flat) in [(110, true), (90, true), (111, false), (89, false)] {
            assert_eq!(growth("a file", 100, now).is_none(), flat, "{now}");
        }
    }
}
