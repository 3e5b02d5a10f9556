//! kill_under_load: the server is killed with SIGKILL repeatedly while clients send, stream and cancel, and is
//! started again on the same store. Nothing that was acknowledged may be lost, duplicated or incomplete.
//!
//! The oracle (`oracle.rs`) is outside the server: `load.rs` records in `history.rs` what clients received,
//! `read_back.rs` reads the restarted server, `checker.rs` compares. Some of the load are documents of `journal-writer`,
//! with a checkpoint and a journaled step for each section; its steps are counted in a file outside the server
//! (`step_reports.rs`). A program without that agent, which only `a2ad-fixtures` has, gets more of `slow-writer`
//! instead. The control run (`--control`) uses a server that replies before it commits, and succeeds only if the loss is
//! found: it proves that the check can fail.
//!
//! Deliberately not here: power loss (SIGKILL leaves the page cache intact), kills at specific points of the code,
//! replicas.

pub(super) mod checker;
pub(super) mod history;
pub(super) mod load;
pub(super) mod oracle;
pub(super) mod read_back;

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};

use self::checker::{Finding, Kind};
use self::history::Operation;
use self::load::Stage;
use self::oracle::{BootsEnd, Oracle};
use super::extra_options::ExtraOptions;
use super::random::Random;
use super::rpc::Caller;
use super::step_reports::{self, ReportFile};
use super::trial::{ProofResult, Setup, Trial, stop};
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--kills N] [--seed S] [--control] [--binary PATH]";

const DEFAULT_KILLS: u64 = 20;
/// The control run stops at the first loss; this is only its upper limit.
const DEFAULT_CONTROL_KILLS: u64 = 60;
const CLIENTS: usize = 64;
/// Delay between ready and kill, in milliseconds.
const KILL_AFTER: RangeInclusive<u64> = 50..=1480;
/// How much longer a kill may wait in order to come right after an acknowledgement.
const AIM_LIMIT: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (trial, control) = parse(args)?;
    trial.run(async |setup| campaign(&trial, control, setup).await)
}

/// The size and seed of the run, and whether it is the control run.
fn parse(args: &[String]) -> Result<(Trial, bool)> {
    let mut extras = ExtraOptions::of(args);
    let (name, kills, control) = match extras.flag("--control") {
        true => ("kill_under_load-control", DEFAULT_CONTROL_KILLS, true),
        false => ("kill_under_load", DEFAULT_KILLS, false),
    };
    Ok((Trial::parse(name, "--kills", kills, &extras.rest())?, control))
}

/// Kills and restarts the server as often as requested, waits until all tasks have ended, and compares everything.
async fn campaign(trial: &Trial, control: bool, setup: &Setup) -> Result<ProofResult> {
    let (program, store) = (setup.program.as_path(), setup.store.as_path());
    let reports = match has_journal_writer(program, store).await? {
        true => Some(ReportFile::new(store.with_file_name("steps.txt"))),
        false => None,
    };
    let mut campaign = Campaign::begin(trial.seed, control, reports);
    for boot in 1..=trial.size {
        campaign.boot_and_kill(boot, program, store).await?;
        if control && campaign.oracle.checker.count(Kind::Lost) > 0 {
            break;
        }
    }
    let settled = campaign.finish(program, store).await?;
    let Campaign { mut oracle, kills, slowest_ready, .. } = campaign;
    let steps = oracle.check_steps()?;
    let tally = &oracle.checker.tally;
    let count = |operation: &Operation| tally.acknowledged.get(operation).copied().unwrap_or_default();
    let counts = oracle.operations().into_iter().map(|operation| (operation.name(), count(&operation)));
    let acknowledged: Map<String, Value> = counts.map(|(name, count)| (name.into(), count.into())).collect();
    let figures = json!({
        "control": control, "kills": kills, "tasks": oracle.checker.tasks(), "acknowledged": acknowledged,
        "failed_tasks": oracle.checker.failed(), "steps_begun": steps.begun, "steps_replayed": steps.replayed,
        "streams": tally.streams, "frames": tally.frames, "cuts": tally.cuts,
        "slowest_ready_ms": slowest_ready.as_millis() as u64, "settled_ms": settled.as_millis() as u64,
    });
    Ok(ProofResult { figures, findings: findings(&oracle, control) })
}

/// The findings. In a control run only a loss that was not found is one.
fn findings(oracle: &Oracle, control: bool) -> Vec<String> {
    let checker = &oracle.checker;
    let shown = |finding: &Finding| format!("{:?}: {}", finding.kind, finding.what);
    let mut found: Vec<String> = checker.findings.iter().map(shown).collect();
    if control {
        eprintln!("the control run found, as it must:\n{}", found.join("\n"));
        let loss = "the control run found no loss although the server replies before it commits".to_owned();
        return if checker.count(Kind::Lost) > 0 { Vec::new() } else { vec![loss] };
    }
    // What must have happened for a run without findings to prove something.
    let is_missing = |operation: &Operation| !checker.tally.acknowledged.contains_key(operation);
    let missing = oracle.operations().into_iter().filter(is_missing);
    found.extend(missing.map(|operation| format!("nothing is proved: no {}", operation.name())));
    if checker.tally.cuts == 0 {
        found.push("nothing is proved: no kill interrupted a call".to_owned());
    }
    found
}

/// Whether the program has the agent whose steps are counted.
async fn has_journal_writer(program: &Path, store: &Path) -> Result<bool> {
    let server = Server::start(program, store).await?;
    let listed = Caller::new(server.address).call(step_reports::AGENT, "ListTasks", json!({})).await;
    server.kill().await?;
    Ok(listed.is_ok())
}

struct Campaign {
    random: Random,
    always_aim: bool,
    oracle: Oracle,
    kills: u64,
    slowest_ready: Duration,
}

impl Campaign {
    fn begin(seed: u64, always_aim: bool, reports: Option<ReportFile>) -> Self {
        let mut random = Random::new(seed);
        let oracle = Oracle::begin(CLIENTS, &mut random, BootsEnd::Killed, reports);
        Self { random, always_aim, oracle, kills: 0, slowest_ready: Duration::ZERO }
    }

    async fn boot_and_kill(&mut self, boot: u64, program: &Path, store: &Path) -> Result<()> {
        let mut server = self.start(boot, program, store).await?;
        let moment = Instant::now() + Duration::from_millis(self.random.within(KILL_AFTER));
        self.oracle.load_until(moment, boot, server.address).await;
        if self.always_aim || self.random.within(0..=1) == 0 {
            self.aim().await;
        }
        if let Some(status) = server.ended()? {
            let checker = &mut self.oracle.checker;
            checker.record_failure(format!("the server ended by itself ({status}):\n{}", server.log_tail()));
        }
        self.oracle.stage.send_replace(Stage::Down);
        server.kill().await?;
        self.kills += 1;
        Ok(())
    }

    /// Waits for the moment at which an early reply does the most harm: right after a client has received it. Half
    /// of the kills are timed like this, the others are at random times; the control run times them all.
    async fn aim(&self) {
        // Without an acknowledgement in that time, any moment is as good.
        let _ = timeout(AIM_LIMIT, self.oracle.history.next_acknowledgement()).await;
    }

    /// A last boot without load, in which everything is compared.
    async fn finish(&mut self, program: &Path, store: &Path) -> Result<Duration> {
        self.oracle.end_load().await?;
        let server = self.start(self.kills + 1, program, store).await?;
        let settled = self.oracle.compare(server.address).await;
        let mut findings = Vec::new();
        stop(server, &mut findings).await?;
        for finding in findings {
            self.oracle.checker.record_failure(finding);
        }
        Ok(settled)
    }

    async fn start(&mut self, boot: u64, program: &Path, store: &Path) -> Result<Server> {
        self.oracle.starting()?;
        let server = Server::start(program, store).await.with_context(|| format!("boot {boot}"))?;
        self.slowest_ready = self.slowest_ready.max(server.ready_after);
        self.oracle.booted(boot);
        Ok(server)
    }
}
