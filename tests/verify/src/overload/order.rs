//! Two slots, a queue, and clients that send as fast as they get responses: the queue starts in order and first.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::extra_options::TimeLimits;
use super::super::random::Random;
use super::super::rpc::{Caller, Frames, message};
use super::super::trial::{Setup, in_parallel};
use super::super::writer::{AGENT, Document};
use super::{Part, millis, start};

const SLOTS: usize = 2;
const QUEUED: usize = 200;
const CLIENTS: usize = 64;
/// Takes the slots while the queue is filled.
const FILLER: Document = Document { sections: 1, delay_millis: 3_000 };
const WORK: Document = Document { sections: 1, delay_millis: 20 };
/// Time goal for the start of the whole queue, from when the slots are free.
const GOAL: Duration = Duration::from_secs(20);

/// Work of the queue that has started.
struct Started {
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
    for _ in 0..SLOTS {
        caller.call(AGENT, "SendMessage", message(random.uuid(), &FILLER.text(), true)).await?;
    }
    let free_at = Instant::now() + Duration::from_millis(FILLER.delay_millis);
    let mut queue = Vec::new();
    for place in 1..=QUEUED {
        let params = message(random.uuid(), &WORK.text(), false);
        let mut frames = caller.stream(AGENT, "SendStreamingMessage", params).await?;
        let first = frames.first().await?.result;
        if first["task"]["metadata"]["a2ad"]["queued"] != place {
            findings.push(format!("wrong: the task at place {place} shows {}", first["task"]["metadata"]));
        }
        queue.push(frames);
    }
    let clients = spawn_clients(address, time, random);
    let started = in_parallel(queue.into_iter().map(until_started)).await;
    let sent = finished_calls(clients).await?;
    server.kill().await?;

    let never = started.iter().filter(|one| one.is_none()).count();
    let started: Vec<Started> = started.into_iter().flatten().collect();
    let last = started.iter().map(|one| one.seen).max().context("no queued task started")?;
    let took = last.saturating_duration_since(free_at);
    let overtaken = sent.iter().filter(|ended| **ended < last).count();
    let disorder = disorder(&started);
    if never > 0 {
        findings.push(format!("starved: {never} of {QUEUED} queued tasks did not start"));
    }
    // A message may run beside the last task of the queue, in the other slots.
    if overtaken > SLOTS {
        findings.push(format!("overtaken: {overtaken} later messages ended before the queue had started"));
    }
    if disorder > SLOTS {
        findings.push(format!("out of order: a task started {disorder} places too late"));
    }
    if took > limits.limit(GOAL) {
        findings.push(format!("slow: the queue took {took:?} to start"));
    }
    Ok(Part { figures: figures(never, took, overtaken, disorder, sent.len()), findings })
}

fn figures(never: usize, took: Duration, overtaken: usize, disorder: usize, sent: usize) -> Value {
    json!({
        "queued": QUEUED,
        "never_started": never,
        "all_started_after_ms": millis(took),
        "overtaken_by": overtaken,
        "largest_displacement": disorder,
        "calls_of_clients": sent,
    })
}

/// How many places a task started after one that was queued behind it, at most. Tasks that start in the same
/// millisecond are in order.
fn disorder(started: &[Started]) -> usize {
    let mut order: Vec<usize> = (0..started.len()).collect();
    order.sort_by_key(|place| (&started[*place].timestamp, *place));
    order.iter().enumerate().map(|(at, place)| at.abs_diff(*place)).max().unwrap_or_default()
}

/// Follows a task until it runs; `None` if it did not start.
async fn until_started(mut frames: Frames) -> Option<Started> {
    loop {
        let frame = frames.next().await.ok()??;
        let status = &frame.result["statusUpdate"]["status"];
        if status["state"] == "TASK_STATE_WORKING" {
            let timestamp = status["timestamp"].as_str().unwrap_or_default().to_owned();
            return Some(Started { seen: Instant::now(), timestamp });
        }
    }
}

/// Clients that send one message after the other, and wait for each.
fn spawn_clients(address: SocketAddr, time: Duration, random: &mut Random) -> JoinSet<Result<Vec<Instant>>> {
    let until = Instant::now() + time;
    let client = |mut random: Random| async move {
        let (mut caller, mut ended) = (Caller::new(address), Vec::new());
        while Instant::now() < until {
            let params = message(random.uuid(), &WORK.text(), false);
            caller.call(AGENT, "SendMessage", params).await?;
            ended.push(Instant::now());
        }
        Ok(ended)
    };
    (0..CLIENTS).map(|_| client(random.branch())).collect()
}

/// When the calls of all clients ended.
async fn finished_calls(mut clients: JoinSet<Result<Vec<Instant>>>) -> Result<Vec<Instant>> {
    let mut ended = Vec::new();
    while let Some(client) = clients.join_next().await {
        ended.extend(client??);
    }
    Ok(ended)
}
