//! webhook_kills: the server is killed with SIGKILL repeatedly while notifications of tasks are on their way, and is started
//! again on the same store. No notification may be lost or out of order, and none may arrive twice, except those that were
//! in flight at a kill.
//!
//! Clients make tasks with a webhook each, at a steady rate, until all kills are done. The receiver of this process keeps a
//! ledger of what arrives (`webhooks/ledger.rs`). Deliberately not here: receivers that fail (`webhook_outage`).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::json::{is_terminal, state};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

use super::extra_options::{ExtraOptions, TimeLimits};
use super::kill_under_load::load::Stage;
use super::random::Random;
use super::rpc::Caller;
use super::trial::{ProofResult, Setup, Trial, stop};
use super::webhooks::ledger::{Duplicate, Ledger};
use super::webhooks::receiver::{Answer, Receiver};
use super::webhooks::{Planned, Work, undelivered};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--kills N] [--deliveries N] [--seed S] [--binary PATH] [--relaxed]";

const CONFIG: &str = r#"
[outbound]
allow = ["127.0.0.0/8"]
allow_http = true
[push]
retry_after = ["500ms", "500ms", "1s", "2s"]
probe_after = "1s"
"#;
/// Four tasks of these kinds have five notifications that no later one may replace.
const MIX: [Work; 4] = [Work::Echo, Work::Approve, Work::Echo, Work::Write];
const MIX_DELIVERIES: u64 = 5;
/// Delay between ready and kill, in milliseconds.
const KILL_AFTER: RangeInclusive<u64> = 100..=2_500;
/// How long the receiver takes, in milliseconds, so that kills find requests in flight.
const RESPONSE_DELAY: RangeInclusive<u64> = 0..=4;
/// One task of so many has notifications that are refused the first time, so that kills find some that wait.
const REFUSED_ONE_OF: u64 = 5;
/// The most requests that the server sends to a host at a time: as many may be repeated after a kill.
const MAX_IN_FLIGHT: usize = 16;
/// A notification that arrived this long before a kill was not in flight any more.
const IN_FLIGHT: Duration = Duration::from_secs(1);
/// The share of notifications that arrive twice.
const MAX_DUPLICATES: f64 = 0.02;
/// With `--relaxed`: few kills are no sample.
const MAX_DUPLICATES_RELAXED: f64 = 0.05;
/// How long the last notifications may take after the last start.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);
/// Time for notifications that should not come.
const QUIET: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let (deliveries, limits) = (extras.number("--deliveries", 5_000)?, extras.time_limits());
    let trial = Trial::parse("webhook_kills", "--kills", 200, &extras.rest())?;
    trial.run(async |setup| campaign(&trial, deliveries, limits, setup).await)
}

async fn campaign(trial: &Trial, deliveries: u64, limits: TimeLimits, setup: &Setup) -> Result<ProofResult> {
    let mut random = Random::new(trial.seed);
    let ledger = Arc::new(Ledger::default());
    let delays = std::sync::Mutex::new(random.branch());
    let decide = move |number: u64, earlier| {
        if number.is_multiple_of(REFUSED_ONE_OF) && earlier == 0 {
            return Answer::Refuse(503, None);
        }
        let mut delays = delays.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Answer::Accept(Duration::from_millis(delays.within(RESPONSE_DELAY)))
    };
    let receiver = Receiver::start(None, Arc::clone(&ledger), Arc::new(decide)).await?;
    let planned: Vec<Planned> = (0..deliveries * MIX.len() as u64 / MIX_DELIVERIES)
        .map(|number| Planned {
            number,
            work: MIX[(number % MIX.len() as u64) as usize],
            host: receiver.address.to_string(),
            messages: [random.uuid(), random.uuid()],
        })
        .collect();
    let (stage, stages) = watch::channel(Stage::Down);
    let pace = Duration::from_millis(KILL_AFTER.end().midpoint(*KILL_AFTER.start()))
        * u32::try_from(trial.size)?
        / u32::try_from(planned.len())?;
    let clients = Clients::start(planned.clone(), stages, pace);

    let launch = Launch::with_config(&setup.store, CONFIG)?;
    let mut findings = Vec::new();
    let mut kills = Vec::new();
    for boot in 1..=trial.size {
        let mut server = start(&launch, setup, &ledger, &stage, boot).await?;
        sleep(Duration::from_millis(random.within(KILL_AFTER))).await;
        if let Some(status) = server.ended()? {
            findings.push(format!("the server ended by itself ({status}):\n{}", server.log_tail()));
        }
        stage.send_replace(Stage::Down);
        kills.push(Instant::now());
        server.kill().await?;
    }
    let server = start(&launch, setup, &ledger, &stage, trial.size + 1).await?;
    let (tasks, failed) = clients.finish().await?;
    findings.extend(failed);
    let drained = drain(&ledger, &planned, limits).await;
    findings.extend(compare(&ledger, &planned, &tasks, &server).await?);
    stop(server, &mut findings).await?;
    for left in undelivered(&setup.program, &setup.store).await? {
        findings.push(format!("not delivered: {}", left.line));
    }
    findings.extend(ledger.faults());
    let duplicates = ledger.duplicates();
    findings.extend(duplicate_faults(&duplicates, &kills, ledger.taken(), limits));
    let required: u64 = planned.iter().map(|planned| planned.work.required()).sum();
    let figures = json!({
        "kills": kills.len(),
        "tasks": tasks.len(),
        "required": required,
        "delivered": ledger.taken(),
        "requests": ledger.requests(),
        "duplicates": duplicates.len(),
        "duplicates_percent": (duplicates.len() as f64 / ledger.taken().max(1) as f64 * 1e4).round() / 100.0,
        "most_duplicates_of_a_kill": per_kill(&duplicates).values().max(),
        "drained_ms": drained.as_millis() as u64,
    });
    Ok(ProofResult { figures, findings })
}

async fn start(
    launch: &Launch,
    setup: &Setup,
    ledger: &Ledger,
    stage: &watch::Sender<Stage>,
    boot: u64,
) -> Result<Server> {
    ledger.begin_boot(boot);
    let server = Server::start_with(launch, &setup.program, &setup.store).await;
    let server = server.with_context(|| format!("boot {boot}"))?;
    stage.send_replace(Stage::Up { boot, address: server.address });
    Ok(server)
}

/// Makes the tasks, one in each interval.
struct Clients(JoinSet<(BTreeMap<u64, String>, Vec<String>)>);

impl Clients {
    fn start(planned: Vec<Planned>, stages: watch::Receiver<Stage>, pace: Duration) -> Self {
        let mut clients = JoinSet::new();
        clients.spawn(async move {
            let (tasks, failed) = (Arc::new(Mutex::new(BTreeMap::new())), Arc::new(Mutex::new(Vec::new())));
            let mut running = JoinSet::new();
            let mut ticks = interval(pace.max(Duration::from_micros(100)));
            for planned in planned {
                ticks.tick().await;
                let (stages, tasks, failed) = (stages.clone(), Arc::clone(&tasks), Arc::clone(&failed));
                running.spawn(async move {
                    match planned.run(&stages).await {
                        Ok(task) => drop(tasks.lock().await.insert(planned.number, task)),
                        Err(error) => failed.lock().await.push(error),
                    }
                });
            }
            running.join_all().await;
            let (tasks, failed) = (tasks.lock().await.clone(), failed.lock().await.clone());
            (tasks, failed)
        });
        Self(clients)
    }

    /// The ids of the tasks by their numbers, and what failed.
    async fn finish(mut self) -> Result<(BTreeMap<u64, String>, Vec<String>)> {
        self.0.join_next().await.context("the clients")?.context("the clients failed")
    }
}

/// Waits until all webhooks have got a terminal state, and a little longer.
async fn drain(ledger: &Ledger, planned: &[Planned], limits: TimeLimits) -> Duration {
    let begun = Instant::now();
    let finished = async {
        while !ledger.unfinished(planned.iter().map(|planned| planned.number)).is_empty() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    // What is missing is found by the comparison.
    let _ = timeout(limits.limit(DRAIN_LIMIT), finished).await;
    let drained = begun.elapsed();
    sleep(QUIET).await;
    drained
}

/// Compares the notifications with the tasks of the server: none that had to be sent is missing.
async fn compare(
    ledger: &Ledger,
    planned: &[Planned],
    tasks: &BTreeMap<u64, String>,
    server: &Server,
) -> Result<Vec<String>> {
    let mut caller = Caller::new(server.address);
    let mut found = Vec::new();
    for planned in planned {
        let Some(id) = tasks.get(&planned.number) else { continue };
        let task = caller.call(planned.work.agent(), "GetTask", json!({"id": id})).await?;
        let arrivals = ledger.arrivals().get(&planned.number).cloned().unwrap_or_default();
        found.extend(missing(planned, id, &task, &arrivals));
    }
    Ok(found)
}

fn missing(
    planned: &Planned,
    id: &str,
    task: &Value,
    arrivals: &[super::webhooks::ledger::Arrival],
) -> Vec<String> {
    let (number, work, now) = (planned.number, planned.work, state(task));
    // What was refused and not sent again is lost.
    let taken = arrivals.iter().filter(|arrival| arrival.accepted);
    let states: Vec<&str> = taken.map(|arrival| arrival.state.as_str()).collect();
    let mut found = Vec::new();
    if !is_terminal(now) || states.last() != Some(&now) {
        found.push(format!(
            "lost: task {number} ({work:?}, {id}) is {now}, its notifications were {states:?}"
        ));
    }
    if work == Work::Approve && !states.contains(&"TASK_STATE_INPUT_REQUIRED") {
        found.push(format!("lost: task {number} asked for input, its notifications were {states:?}"));
    }
    if let Some(other) = arrivals.iter().find(|arrival| arrival.task != id) {
        found.push(format!("task {number} is {id}, a notification was about {}", other.task));
    }
    found
}

/// The number of duplicates by the process that had sent the first one.
fn per_kill(duplicates: &[Duplicate]) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for duplicate in duplicates {
        *counts.entry(duplicate.first.boot).or_default() += 1;
    }
    counts
}

/// A notification may arrive twice only if it was in flight at a kill.
fn duplicate_faults(
    duplicates: &[Duplicate],
    kills: &[Instant],
    taken: usize,
    limits: TimeLimits,
) -> Vec<String> {
    let mut found = Vec::new();
    for Duplicate { id, first, again } in duplicates {
        let kill = usize::try_from(first.boot).ok().and_then(|boot| kills.get(boot - 1));
        match kill {
            Some(kill) if again.boot > first.boot => {
                let before = kill.saturating_duration_since(first.at);
                if before > IN_FLIGHT {
                    found.push(format!(
                        "duplicate: {id} arrived {before:?} before a kill, and after it again"
                    ));
                }
            }
            _ => found.push(format!("duplicate: {id} arrived twice without a kill")),
        }
    }
    for (boot, count) in per_kill(duplicates).into_iter().filter(|(_, count)| *count > MAX_IN_FLIGHT) {
        found.push(format!(
            "duplicates: kill {boot} repeated {count}, at most {MAX_IN_FLIGHT} were in flight"
        ));
    }
    let share = if limits.is_strict() { MAX_DUPLICATES } else { MAX_DUPLICATES_RELAXED };
    if duplicates.len() as f64 >= (share * taken as f64).max(1.0) {
        found.push(format!("duplicates: {} of {taken} notifications", duplicates.len()));
    }
    found
}
