//! stream_resume: streams that are cut repeatedly and resumed with `Last-Event-ID`, also across SIGKILL and restart
//! of the server, and also after the task has finished. No event may be missing, repeated or out of order.
//!
//! Each task has one reader (`reader.rs`) that cuts its own stream at random times and resumes; the events it
//! receives go to a track (`track.rs`), which is pure and has the rules. When the task has ended, the reader
//! replays the whole log and makes the requests that must be refused or flagged (`ended.rs`).
//!
//! Deliberately not here: idempotent sends and cancels (duplicate_sends, cancel_races), replicas.

mod ended;
mod reader;
mod track;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::reader::{Followed, Reader};
use super::extra_options::ExtraOptions;
use super::kill_under_load::load::Stage;
use super::random::Random;
use super::trial::{ProofResult, Setup, Trial, stop};
use super::writer::Document;
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--tasks N] [--kills N] [--seed S] [--binary PATH] [--relaxed]";

/// Two events for each section, one for the start and one for the end: about fifty.
const DOCUMENT: Document = Document { sections: 24, delay_millis: 25 };
/// Number of tasks followed concurrently.
const READERS: usize = 64;
/// Time between two kills, in milliseconds: longer than most tasks run, so that few fail as poisoned.
const BETWEEN_KILLS: RangeInclusive<u64> = 1_500..=3_000;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    // This proof has no time goals, so `--relaxed` changes nothing.
    let (kills, _) = (extras.number("--kills", 4)?, extras.time_limits());
    let trial = Trial::parse("stream_resume", "--tasks", 1_000, &extras.rest())?;
    trial.run(async |setup| campaign(&trial, kills, setup).await)
}

async fn campaign(trial: &Trial, kills: u64, setup: &Setup) -> Result<ProofResult> {
    let mut random = Random::new(trial.seed);
    let (stage, stages) = watch::channel(Stage::Down);
    let turns = Arc::new(Semaphore::new(READERS));
    let mut readers = JoinSet::new();
    for _ in 0..trial.size {
        let reader = Reader::new(DOCUMENT, random.branch(), stages.clone());
        let turns = turns.clone();
        readers.spawn(async move {
            let _turn = turns.acquire().await;
            reader.run().await
        });
    }
    let mut total = Total::default();
    let mut killed = 0;
    let mut server = boot(setup, &stage, 1).await?;
    while !readers.is_empty() {
        let moment = sleep(Duration::from_millis(random.within(BETWEEN_KILLS)));
        tokio::pin!(moment);
        loop {
            tokio::select! {
                reader = readers.join_next() => match reader {
                    Some(followed) => total.add(followed.context("a reader failed")?),
                    None => break,
                },
                () = &mut moment, if killed < kills => {
                    stage.send_replace(Stage::Down);
                    server.kill().await?;
                    killed += 1;
                    server = boot(setup, &stage, killed + 1).await?;
                    break;
                }
            }
        }
    }
    if let Some(status) = server.ended()? {
        total.findings.push(format!("the server ended by itself ({status}):\n{}", server.log_tail()));
    } else {
        stop(server, &mut total.findings).await?;
    }
    Ok(total.into_result(trial.size, killed))
}

async fn boot(setup: &Setup, stage: &watch::Sender<Stage>, boot: u64) -> Result<Server> {
    let server = Server::start(&setup.program, &setup.store).await.with_context(|| format!("boot {boot}"))?;
    stage.send_replace(Stage::Up { boot, address: server.address });
    Ok(server)
}

/// The sums over all readers.
#[derive(Default)]
struct Total {
    cuts: u64,
    cuts_by_kill: u64,
    resumed_finished: u64,
    gaps_flagged: u64,
    findings: Vec<String>,
}

impl Total {
    fn add(&mut self, followed: Followed) {
        self.cuts += followed.cuts;
        self.cuts_by_kill += followed.cuts_by_kill;
        self.resumed_finished += followed.resumed_finished;
        self.gaps_flagged += followed.gaps_flagged;
        self.findings.extend(followed.findings);
    }

    fn into_result(mut self, tasks: u64, kills: u64) -> ProofResult {
        // Without these events a run without findings would prove nothing.
        for (count, what) in [
            (self.cuts, "no stream was cut"),
            (self.cuts_by_kill, "no kill interrupted a stream"),
            (self.resumed_finished, "no stream was resumed after its task had finished"),
            (self.gaps_flagged, "no gap was flagged"),
        ] {
            if count == 0 {
                self.findings.push(format!("stream_resume proves nothing: {what}"));
            }
        }
        let figures = json!({
            "tasks": tasks, "kills": kills, "cuts": self.cuts, "cuts_by_kill": self.cuts_by_kill,
            "resumed_after_the_end": self.resumed_finished, "gaps_flagged": self.gaps_flagged,
        });
        ProofResult { figures, findings: self.findings }
    }
}
