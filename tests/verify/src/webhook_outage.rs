//! webhook_outage: receivers of notifications that are down for an hour, respond with errors, ask for fewer requests, stall,
//! reset connections or refuse for good. Nothing is lost or out of order, and what cannot be delivered is a dead letter.
//!
//! The schedule of the server is that of the defaults, 60 times as fast: an hour is a minute, and a host that fails is tested
//! once a second. One receiver (`outage.rs`) is down from the beginning: first its port is closed, then it resets every
//! connection and counts them, then it works. The others (`fault.rs`) fail in one way each, all at the same time.
//! Deliberately not here: kills of the server (`webhook_kills`), and the guard of addresses.

mod fault;
mod outage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::fault::{FAULTS, Fault};
use self::outage::{Outage, Outcome};
use super::extra_options::{ExtraOptions, TimeLimits};
use super::kill_under_load::load::Stage;
use super::random::Random;
use super::trial::{ProofResult, Setup, Trial, stop};
use super::webhooks::ledger::Ledger;
use super::webhooks::receiver::Receiver;
use super::webhooks::{Planned, Work, undelivered};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--deliveries N] [--down-seconds N] [--seed S] [--binary PATH] [--relaxed]";

/// The defaults up to the fifth attempt, 60 times as fast. The time limit is not scaled as much, because this machine is not
/// 60 times as fast as others.
const CONFIG: &str = r#"
[outbound]
allow = ["127.0.0.0/8"]
allow_http = true
[push]
retry_after = ["83ms", "1s", "5s", "15s"]
timeout = "2s"
probe_after = "1s"
"#;
/// The number of attempts in that schedule, and how long two notifications take, one after another, with jitter.
const ATTEMPTS: usize = 5;
const SCHEDULE: Duration = Duration::from_secs(60);
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// A minute for the probe, and a minute for the first delivery.
const MAX_UNNOTICED: Duration = Duration::from_secs(2);
/// From the recovery to the last delivery of the backlog. It is work and not waiting, so it is not scaled.
const MAX_DRAIN: Duration = Duration::from_secs(120);
/// A receiver that works gets its notifications beside those that fail within this time.
const MAX_LAG: Duration = Duration::from_secs(5);
/// Of ten tasks, this many notify the receiver that is down; the others have the faults in turn.
const DOWN_OF_TEN: u64 = 6;
/// Three notifications in two tasks.
const MIX: [Work; 2] = [Work::Echo, Work::Approve];
const CLIENTS: usize = 32;
const POLL: Duration = Duration::from_millis(50);
/// Time for notifications that should not come.
const QUIET: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let (down, limits) = (extras.number("--down-seconds", 60)?, extras.time_limits());
    let trial = Trial::parse("webhook_outage", "--deliveries", 10_000, &extras.rest())?;
    trial.run(async |setup| campaign(&trial, Duration::from_secs(down), limits, setup).await)
}

/// A task, and how its receiver fails; `None` for the receiver that is down.
struct Target {
    planned: Planned,
    fault: Option<&'static Fault>,
}

impl Target {
    /// For tasks whose notifications cannot be delivered: how many requests there are at least.
    fn requests_until_death(&self) -> Option<usize> {
        let Planned { number, work, .. } = self.planned;
        self.fault?.requests_until_death(number, ATTEMPTS * work.required() as usize)
    }
}

/// A task that was made.
struct Made {
    task: String,
    at: Instant,
}

async fn campaign(trial: &Trial, down: Duration, limits: TimeLimits, setup: &Setup) -> Result<ProofResult> {
    let mut random = Random::new(trial.seed);
    let ledger = Arc::new(Ledger::default());
    ledger.begin_boot(1);
    let outage = Outage::begin(down).await?;
    let mut receivers = Vec::new();
    for fault in FAULTS {
        let decide = Arc::new(|number, earlier| fault.answer(number, earlier));
        receivers.push((fault, Receiver::start(None, Arc::clone(&ledger), decide).await?));
    }
    let targets: Vec<Target> = (0..trial.size * MIX.len() as u64 / 3)
        .map(|number| {
            let (fault, receiver) = &receivers[(number % receivers.len() as u64) as usize];
            let (fault, host) = match (number / 3) % 10 < DOWN_OF_TEN {
                true => (None, outage.address),
                false => (Some(*fault), receiver.address),
            };
            let work = MIX[(number % MIX.len() as u64) as usize];
            let messages = [random.uuid(), random.uuid()];
            Target { planned: Planned { number, work, host: host.to_string(), messages }, fault }
        })
        .collect();

    let launch = Launch::with_config(&setup.store, CONFIG)?;
    let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let (_stage, stages) = watch::channel(Stage::Up { boot: 1, address: server.address });
    let down_targets: Vec<u64> =
        targets.iter().filter(|target| target.fault.is_none()).map(|target| target.planned.number).collect();
    let (made, outage) =
        tokio::join!(make(&targets, &stages), outage.run(Arc::clone(&ledger), &down_targets, limits));
    let (outcome, _receiver) = outage?;
    let (made, mut findings) = made?;
    let deadline = Instant::now() + limits.limit(SCHEDULE);
    wait_for_rest(&ledger, &targets, deadline).await;
    stop(server, &mut findings).await?;

    let lags = check_targets(&ledger, &targets, &made, limits, &mut findings);
    let dead = check_dead_letters(setup, &targets, &made, &mut findings).await?;
    check_outage(&outcome, limits, &mut findings);
    findings.extend(ledger.faults());
    let duplicates = ledger.duplicates();
    findings
        .extend(duplicates.iter().map(|twice| format!("duplicate: {} arrived after it was taken", twice.id)));
    let figures = json!({
        "tasks": made.len(),
        "required": targets.iter().map(|target| target.planned.work.required()).sum::<u64>(),
        "delivered": ledger.taken(),
        "requests": ledger.requests(),
        "duplicates": duplicates.len(),
        "dead_letters": dead,
        "backlog": outcome.backlog,
        "probes": outcome.probes.len(),
        "counted_ms": outcome.counted.as_millis() as u64,
        "shortest_probe_interval_ms": outcome.shortest_interval().map(|time| time.as_millis() as u64),
        "noticed_after_ms": outcome.noticed_after.map(|time| time.as_millis() as u64),
        "drained_after_ms": outcome.drained_after.map(|time| time.as_millis() as u64),
        "longest_lag_beside_ms": lags.as_millis() as u64,
    });
    Ok(ProofResult { figures, findings })
}

/// Makes all tasks, and returns them by their numbers, and what failed.
async fn make(
    targets: &[Target],
    stages: &watch::Receiver<Stage>,
) -> Result<(BTreeMap<u64, Made>, Vec<String>)> {
    let turns = Arc::new(Semaphore::new(CLIENTS));
    let mut running = JoinSet::new();
    for target in targets {
        let (planned, stages, turns) = (target.planned.clone(), stages.clone(), Arc::clone(&turns));
        running.spawn(async move {
            let _turn = turns.acquire().await;
            (planned.number, planned.run(&stages).await, Instant::now())
        });
    }
    let (mut made, mut failed) = (BTreeMap::new(), Vec::new());
    while let Some(ended) = running.join_next().await {
        let (number, result, at) = ended.context("a client failed")?;
        match result {
            Ok(task) => drop(made.insert(number, Made { task, at })),
            Err(error) => failed.push(error),
        }
    }
    Ok((made, failed))
}

/// Waits until each webhook has got what it is to get, and a little longer. What is missing is found by the checks.
async fn wait_for_rest(ledger: &Ledger, targets: &[Target], deadline: Instant) {
    let rest = async {
        while !targets.iter().all(|target| is_settled(ledger, target)) {
            sleep(POLL).await;
        }
    };
    let _ = timeout(deadline.saturating_duration_since(Instant::now()), rest).await;
    sleep(QUIET).await;
}

fn is_settled(ledger: &Ledger, target: &Target) -> bool {
    let number = target.planned.number;
    match target.requests_until_death() {
        None => ledger.unfinished([number]).is_empty(),
        Some(count) => ledger.arrivals().get(&number).is_some_and(|arrivals| arrivals.len() >= count),
    }
}

/// Whether each webhook got what it should. Returns the longest time that a receiver without faults had to wait.
fn check_targets(
    ledger: &Ledger,
    targets: &[Target],
    made: &BTreeMap<u64, Made>,
    limits: TimeLimits,
    findings: &mut Vec<String>,
) -> Duration {
    let mut longest = Duration::ZERO;
    let arrivals = ledger.arrivals();
    for target in targets {
        let Planned { number, work, .. } = target.planned;
        let Some(made) = made.get(&number) else { continue };
        let arrivals = arrivals.get(&number).map_or(&[][..], Vec::as_slice);
        let states: Vec<&str> = arrivals
            .iter()
            .filter(|arrival| arrival.accepted)
            .map(|arrival| arrival.state.as_str())
            .collect();
        if let Some(fault) = target.fault
            && let Some(problem) = fault.problem(number, arrivals, ATTEMPTS)
        {
            findings.push(format!("task {number} ({}): {problem}", fault.name));
        }
        if target.requests_until_death().is_some() {
            continue;
        }
        let asked = work != Work::Approve || states.contains(&"TASK_STATE_INPUT_REQUIRED");
        if states.last() != Some(&"TASK_STATE_COMPLETED") || !asked {
            let name = target.fault.map_or("down", |fault| fault.name);
            findings
                .push(format!("lost: task {number} ({work:?}, {name}): {states:?} of {}", arrivals.len()));
        }
        if target.fault.is_some_and(|fault| fault.is_prompt && !fault.hits(number)) {
            let last =
                arrivals.last().map_or(Duration::ZERO, |last| last.at.saturating_duration_since(made.at));
            longest = longest.max(last);
        }
    }
    if longest > limits.limit(MAX_LAG) {
        findings.push(format!("a receiver that works waited {longest:?} beside those that fail"));
    }
    longest
}

/// Whether the dead letters are those that must be, and nothing is pending. Returns their number.
async fn check_dead_letters(
    setup: &Setup,
    targets: &[Target],
    made: &BTreeMap<u64, Made>,
    findings: &mut Vec<String>,
) -> Result<usize> {
    let dies = |target: &&Target| target.requests_until_death().is_some();
    let doomed = targets.iter().filter(dies).filter_map(|target| made.get(&target.planned.number));
    let doomed: BTreeSet<&str> = doomed.map(|made| made.task.as_str()).collect();
    let left = undelivered(&setup.program, &setup.store).await?;
    for left in left.iter().filter(|left| !left.is_dead || !doomed.contains(left.task.as_str())) {
        findings.push(format!("not delivered: {}", left.line));
    }
    let dead: BTreeSet<&str> =
        left.iter().filter(|left| left.is_dead).map(|left| left.task.as_str()).collect();
    for task in doomed.difference(&dead) {
        findings.push(format!("{task} has no dead letter"));
    }
    Ok(left.iter().filter(|left| left.is_dead).count())
}

fn check_outage(outcome: &Outcome, limits: TimeLimits, findings: &mut Vec<String>) {
    let probes = outcome.probes.len() as f64;
    let intervals = outcome.counted.as_secs_f64() / PROBE_INTERVAL.as_secs_f64();
    // The first one may be at the beginning of the time that is counted.
    if probes > intervals + 1.0
        || outcome.shortest_interval().is_some_and(|time| time < PROBE_INTERVAL.mul_f64(0.95))
    {
        let shortest = outcome.shortest_interval();
        findings.push(format!(
            "{probes} probes in {intervals} intervals, the shortest interval was {shortest:?}"
        ));
    }
    if probes < intervals / 2.0 {
        findings.push(format!("nothing is proved: {probes} probes in {intervals} intervals"));
    }
    match outcome.noticed_after {
        Some(time) if time <= limits.limit(MAX_UNNOTICED) => {}
        time => findings.push(format!("the recovery was noticed after {time:?}, at most {MAX_UNNOTICED:?}")),
    }
    match outcome.drained_after {
        Some(time) if time <= limits.limit(MAX_DRAIN) => {}
        time => findings.push(format!("the backlog was drained after {time:?}, at most {MAX_DRAIN:?}")),
    }
}
