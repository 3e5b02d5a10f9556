//! Writers and tasks that hang survive three kills together: the writers run again soon, although the others hang.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testkit::json::artifact_text;
use tokio::time::sleep;

use super::super::extra_options::TimeLimits;
use super::super::random::Random;
use super::super::rpc::{Caller, message};
use super::super::trial::Setup;
use super::super::writer::{AGENT, Document};
use super::{Part, millis, start};

const SLOTS: usize = 256;
const WRITERS: usize = 20;
const HANGING: usize = 5;
const KILLS: usize = 3;
/// Writes longer than this part takes.
const DOCUMENT: Document = Document { sections: 10_000, delay_millis: 200 };
/// Time goal until all writers run again after the last kill.
const GOAL: Duration = Duration::from_secs(30);
/// How long the server lives between two kills: enough for every writer that runs to write.
const LIFE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(100);

pub(super) async fn run(setup: &Setup, limits: TimeLimits, random: &mut Random) -> Result<Part> {
    let mut server = start(setup, "survivors", SLOTS).await?;
    let mut caller = Caller::new(server.address);
    // First in the queue after each kill.
    for _ in 0..HANGING {
        caller.call("echo", "SendMessage", message(random.uuid(), "hold", true)).await?;
    }
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let sent = caller.call(AGENT, "SendMessage", message(random.uuid(), &DOCUMENT.text(), true)).await?;
        writers.push(sent["task"]["id"].as_str().context("the reply has no task")?.to_owned());
    }
    for _ in 0..KILLS {
        sleep(LIFE).await;
        server.kill().await?;
        server = start(setup, "survivors", SLOTS).await?;
    }
    let (took, running) = until_all_write(server.address, &writers, limits.limit(GOAL)).await?;
    server.kill().await?;

    let mut findings = Vec::new();
    if running < WRITERS {
        findings.push(format!("stopped: only {running} of {WRITERS} writers ran again within {took:?}"));
    }
    let figures = json!({
        "writers": WRITERS,
        "hanging": HANGING,
        "kills": KILLS,
        "running_again": running,
        "all_running_after_ms": millis(took),
    });
    Ok(Part { figures, findings })
}

/// Waits until every writer has written something; returns how long it took, and how many have.
async fn until_all_write(
    address: SocketAddr,
    writers: &[String],
    limit: Duration,
) -> Result<(Duration, usize)> {
    let started = Instant::now();
    let mut caller = Caller::new(address);
    let before = sections(&mut caller, writers).await?;
    loop {
        let now = sections(&mut caller, writers).await?;
        let running = before.iter().zip(&now).filter(|(before, now)| now > before).count();
        if running == writers.len() || started.elapsed() > limit {
            return Ok((started.elapsed(), running));
        }
        sleep(POLL).await;
    }
}

/// How many sections each writer has written.
async fn sections(caller: &mut Caller, writers: &[String]) -> Result<Vec<usize>> {
    let mut all = Vec::new();
    for id in writers {
        let task = caller.get(AGENT, id).await?;
        ensure!(task.is_some(), "task {id} is unknown");
        all.push(task.map_or(0, |task| artifact_text(&task).lines().count()));
    }
    Ok(all)
}
