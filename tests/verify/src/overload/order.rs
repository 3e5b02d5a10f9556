//! Two slots, a queue, and clients that send without waiting for their tasks: the queue starts in order and first.
//!
//! Messages arrive faster than the slots can run them, so that from the first to the last message others wait: none may
//! get a slot at once. All have the same agent and caller, so that their order is strict.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result};
use serde_json::{Value, json};
use testkit::json::{state, task_id};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::extra_options::TimeLimits;
use super::super::random::Random;
use super::super::rpc::{Caller, Frames, message};
use super::super::trial::{Setup, in_parallel};
use super::super::writer::{AGENT, Document};
use super::{Part, millis, start};

const SLOTS: usize = 2;
const QUEUED: usize = 200;
const CLIENTS: usize = 64;
/// How long a client waits between two messages, in milliseconds.
const PAUSE: RangeInclusive<u64> = 50..=150;
/// Takes the slots while the queue is filled.
const FILLER: Document = Document { sections: 1, delay_millis: 3_000 };
const WORK: Document = Document { sections: 1, delay_millis: 20 };
/// Time goal for the start of the whole queue, from when the slots are free.
const GOAL: Duration = Duration::from_secs(20);

/// Work of the queue that has started.
struct Started {
    /// In the queue, from 0.
    place: usize,
    seen: Instant,
    /// Of the status `working`, as the server sends it.
    timestamp: String,
}

pub(super) async fn run(
    setup: &Setup,
    time: Duration,
    limits: TimeLimits,
    random: &mut Random,
) -> Result<Part> {
    let server = start(setup, "order", SLOTS).await?;
    let address = server.address;
    let mut findings = Vec::new();
    let mut caller = Caller::new(address);
    let mut first_ids = HashSet::new();
    for _ in 0..SLOTS {
        let sent = caller.call(AGENT, "SendMessage", message(random.uuid(), &FILLER.text(), true)).await?;
        first_ids.insert(task_id(&sent["task"]).map_err(Error::msg)?);
    }
    let free_at = Instant::now() + Duration::from_millis(FILLER.delay_millis);
    let (mut queue, mut misplaced) = (Vec::new(), Vec::new());
    for place in 1..=QUEUED {
        let params = message(random.uuid(), &WORK.text(), false);
        let mut frames = caller.stream(AGENT, "SendStreamingMessage", params).await?;
        let first = frames.first().await?.result;
        if first["task"]["metadata"]["a2ad"]["queued"] != place {
            misplaced.push(format!("the task at place {place} shows {}", first["task"]["metadata"]));
        }
        first_ids.insert(task_id(&first["task"]).map_err(Error::msg)?);
        queue.push(frames);
    }
    if let Some(first) = misplaced.first() {
        findings.push(format!("wrong: {} tasks show another place in the queue: {first}", misplaced.len()));
    }
    let clients = spawn_clients(address, time, random);
    let queue = queue.into_iter().enumerate().map(|(place, frames)| until_started(place, frames));
    let started: Vec<Started> = in_parallel(queue).await.into_iter().flatten().collect();
    let last = started.iter().map(|one| one.timestamp.as_str()).max().context("no queued task started")?;
    let overtaken = started_before(&mut caller, last, &first_ids).await?;
    let sent = all_sent(clients).await?;
    server.kill().await?;

    let seen = started.iter().map(|one| one.seen).max().context("no queued task started")?;
    let outcome = Outcome {
        never_started: QUEUED - started.len(),
        took: seen.saturating_duration_since(free_at),
        overtaken,
        disorder: disorder(started),
        sent,
    };
    findings.extend(outcome.findings(time, limits));
    Ok(Part { figures: outcome.figures(), findings })
}

/// What was measured.
struct Outcome {
    never_started: usize,
    /// How long it took to start the whole queue.
    took: Duration,
    /// Messages of clients that started before the last task of the queue.
    overtaken: usize,
    disorder: usize,
    sent: Sent,
}

impl Outcome {
    fn findings(&self, time: Duration, limits: TimeLimits) -> Vec<String> {
        let Self { never_started, took, overtaken, disorder, sent } = self;
        let mut findings = Vec::new();
        if *never_started > 0 {
            findings.push(format!("starved: {never_started} of {QUEUED} queued tasks did not start"));
        }
        // A message may start beside the last task of the queue, in another slot.
        if *overtaken >= SLOTS {
            findings
                .push(format!("overtaken: {overtaken} later messages started before the queue had started"));
        }
        if sent.at_once > 0 {
            findings
                .push(format!("overtaken: {} messages got a slot at once while others waited", sent.at_once));
        }
        if *disorder > SLOTS {
            findings.push(format!("out of order: a task started {disorder} places too early or too late"));
        }
        if *took > limits.limit(GOAL) {
            findings.push(format!("slow: the queue took {took:?} to start"));
        }
        let capacity = SLOTS as u128 * time.as_millis() / u128::from(WORK.delay_millis);
        if sent.accepted as u128 <= capacity {
            findings.push(format!(
                "too little load: {} messages accepted, {SLOTS} slots can run {capacity} in {time:?}",
                sent.accepted
            ));
        }
        findings
    }

    fn figures(&self) -> Value {
        json!({
            "queued": QUEUED,
            "never_started": self.never_started,
            "all_started_after_ms": millis(self.took),
            "overtaken_by": self.overtaken,
            "largest_displacement": self.disorder,
            "accepted_of_clients": self.sent.accepted,
            "refused_of_clients": self.sent.refused,
            "started_at_once": self.sent.at_once,
        })
    }
}

/// How many places the start of a task differs from its place in the queue, at most. Tasks that start in the same
/// millisecond are in order.
fn disorder(mut started: Vec<Started>) -> usize {
    started.sort_by_key(|one| one.place);
    let mut order: Vec<usize> = (0..started.len()).collect();
    order.sort_by_key(|place| (&started[*place].timestamp, *place));
    order.iter().enumerate().map(|(at, place)| at.abs_diff(*place)).max().unwrap_or_default()
}

/// Follows a task until it runs; `None` if it did not start.
async fn until_started(place: usize, mut frames: Frames) -> Option<Started> {
    loop {
        let frame = frames.next().await.ok()??;
        let status = &frame.result["statusUpdate"]["status"];
        if status["state"] == "TASK_STATE_WORKING" {
            let timestamp = status["timestamp"].as_str().unwrap_or_default().to_owned();
            return Some(Started { place, seen: Instant::now(), timestamp });
        }
    }
}

/// How many tasks that are not among `first_ids` started before `timestamp`. One that was running then and has ended
/// since is not counted.
async fn started_before(caller: &mut Caller, timestamp: &str, first_ids: &HashSet<String>) -> Result<usize> {
    let mut count = 0;
    for state in ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"] {
        let each = |task: Value| {
            let is_early = task["status"]["timestamp"].as_str().is_none_or(|at| at < timestamp);
            let is_first = task["id"].as_str().is_some_and(|id| first_ids.contains(id));
            count += usize::from(is_early && !is_first);
        };
        caller.list(AGENT, json!({"status": state}), each).await?;
    }
    Ok(count)
}

/// What became of the messages of clients.
#[derive(Default)]
struct Sent {
    accepted: usize,
    /// By a full queue.
    refused: usize,
    /// Of the accepted messages, those that did not wait for a slot.
    at_once: usize,
}

/// Clients that send one message after the other, and do not wait for the tasks.
fn spawn_clients(address: SocketAddr, time: Duration, random: &mut Random) -> JoinSet<Result<Sent>> {
    let until = Instant::now() + time;
    (0..CLIENTS).map(|_| client(address, until, random.branch())).collect()
}

async fn client(address: SocketAddr, until: Instant, mut random: Random) -> Result<Sent> {
    let (mut caller, mut sent) = (Caller::new(address), Sent::default());
    while Instant::now() < until {
        match caller.call(AGENT, "SendMessage", message(random.uuid(), &WORK.text(), true)).await {
            Ok(reply) => {
                sent.accepted += 1;
                sent.at_once += usize::from(state(&reply["task"]) != "TASK_STATE_SUBMITTED");
            }
            Err(failure) if failure.is_retryable() => sent.refused += 1,
            Err(failure) => return Err(failure.into()),
        }
        sleep(Duration::from_millis(random.within(PAUSE))).await;
    }
    Ok(sent)
}

/// The messages of all clients.
async fn all_sent(mut clients: JoinSet<Result<Sent>>) -> Result<Sent> {
    let mut all = Sent::default();
    while let Some(client) = clients.join_next().await {
        let one = client??;
        all.accepted += one.accepted;
        all.refused += one.refused;
        all.at_once += one.at_once;
    }
    Ok(all)
}
