//! long_turns: documents of many sections, each with a journaled step and a checkpoint, through repeated SIGKILL. All
//! must complete with every section once; no step may begin again after it was journaled, which a file outside the
//! server shows (`step_reports.rs`); and no task that makes progress may fail.
//!
//! Beside the first documents a task crashes the process itself (`long_turns/poison.rs`): it must fail as poisoned. Then
//! the remaining documents are started and the server is killed at random times, each after every open document has made
//! progress. Only the last kill does not wait for that: with the one before it, every open document has two deaths
//! without progress, so all become suspects, which start one after the other. (One more kill would come during the
//! probation of one of them, which would have to fail.) Most documents are of `journal-writer`, some of `slow-writer`.
//!
//! Deliberately not here: other load (kill_under_load), and many tasks that crash the process (poison_tasks).

mod poison;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use testkit::json::{artifact_text, is_terminal, state};
use tokio::time::sleep;

use super::extra_options::{ExtraOptions, TimeLimits};
use super::fill;
use super::random::Random;
use super::rpc::Caller;
use super::step_reports::{self, ReportFile, StepReports};
use super::trial::{ProofResult, Setup, Trial, stop};
use super::writer::{self, Document};
use crate::server::{Launch, Server, Signal};

pub(crate) const OPTIONS: &str =
    "[--tasks N] [--sections N] [--kills N] [--seed S] [--binary PATH] [--relaxed]";

/// Time for one section: about as long as the server lives, so that a document of 60 sections sees about 50 kills.
const SECTION_MILLIS: u64 = 500;
/// Time between the progress of the last document and a kill, or between ready and the last kill, in milliseconds.
const KILL_AFTER: RangeInclusive<u64> = 0..=200;
/// The server fails a turn with 100 crashes; the task that crashes the process causes some of them.
const MAX_KILLS: u64 = 90;
/// Time goal for every open document to make progress after a start; for suspects, which start one after the other,
/// the time of one section is added for each.
const PROGRESS_GOAL: Duration = Duration::from_secs(10);
/// Every n-th document is one of `slow-writer`.
const SLOW_WRITER_EVERY: u64 = 4;
/// Time for a killed process to end.
const KILL_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let (sections, kills) = (extras.number("--sections", 60)?, extras.number("--kills", 50)?);
    ensure!(kills <= MAX_KILLS, "--kills must be at most {MAX_KILLS}: a turn with 100 crashes fails");
    let time_limits = extras.time_limits();
    let trial = Trial::parse("long_turns", "--tasks", 200, &extras.rest())?;
    trial.run(async |setup| Campaign::start(&trial, sections, time_limits, setup).await?.run(kills).await)
}

struct Campaign<'a> {
    setup: &'a Setup,
    launch: Launch,
    random: Random,
    time_limits: TimeLimits,
    tasks: u64,
    document: Document,
    reports: ReportFile,
    server: Server,
    /// The ids of the documents of each agent.
    documents: HashMap<&'static str, Vec<String>>,
    /// Kills with at least one open document.
    effective_kills: u64,
    slowest_progress: Duration,
    findings: Vec<String>,
}

impl<'a> Campaign<'a> {
    async fn start(trial: &Trial, sections: u64, time_limits: TimeLimits, setup: &'a Setup) -> Result<Self> {
        // A slot for each document, and some for the other calls.
        let launch =
            Launch::with_config(&setup.store, &format!("[limits]\nconcurrent = {}\n", trial.size + 64))?;
        let reports = ReportFile::new(setup.store.with_file_name("steps.txt"));
        reports.add_boot()?;
        Ok(Self {
            setup,
            random: Random::new(trial.seed),
            time_limits,
            tasks: trial.size,
            document: Document { sections, delay_millis: SECTION_MILLIS },
            reports,
            server: Server::start_with(&launch, &setup.program, &setup.store).await?,
            launch,
            documents: HashMap::new(),
            effective_kills: 0,
            slowest_progress: Duration::ZERO,
            findings: Vec::new(),
        })
    }

    async fn run(mut self, kills: u64) -> Result<ProofResult> {
        let neighbours = poison::neighbours(self.tasks);
        self.begin_documents(neighbours).await?;
        let poisoned = self.poison().await?;
        // Before the others are started, which would be finished when all suspects have started.
        self.until_progress().await?;
        self.begin_documents(self.tasks - neighbours).await?;
        self.kill_repeatedly(kills).await?;
        let finishing = Instant::now();
        self.until_ended().await?;
        let finished_after = finishing.elapsed();
        self.check_documents().await?;
        let reports = self.reports.read()?;
        self.check_steps(&reports);
        self.check_effect(&reports, kills);
        stop(self.server, &mut self.findings).await?;
        let survived = reports.crashes_survived();
        let figures = json!({
            "tasks": self.tasks,
            "sections": self.document.sections,
            "kills": kills,
            "kills_with_open_tasks": self.effective_kills,
            "crashes_survived_least": survived.first(),
            "crashes_survived_median": survived.get(survived.len() / 2),
            "crashes_survived_most": survived.last(),
            "steps_begun": reports.begun,
            "steps_begun_again": reports.begun_again,
            "steps_replayed": reports.replayed,
            "steps_repeated": reports.repeated.len(),
            "slowest_progress_ms": u64::try_from(self.slowest_progress.as_millis())?,
            "finished_after_ms": u64::try_from(finished_after.as_millis())?,
            "poisoned": poisoned,
            "relaxed": !self.time_limits.is_strict(),
        });
        Ok(ProofResult { figures, findings: self.findings })
    }

    /// Starts documents; all have been accepted when this returns.
    async fn begin_documents(&mut self, count: u64) -> Result<()> {
        let of_slow_writer = count / SLOW_WRITER_EVERY;
        let texts = [
            (writer::AGENT, self.document.text(), of_slow_writer),
            (step_reports::AGENT, self.reports.request(self.document), count - of_slow_writer),
        ];
        for (agent, text, count) in texts {
            let begun = fill::begun(self.server.address, agent, &text, count, &mut self.random).await;
            let begun = begun.with_context(|| format!("{agent} (an agent of the program a2ad-fixtures)"))?;
            self.documents.entry(agent).or_default().extend(begun.into_iter().map(|sent| sent.task));
        }
        Ok(())
    }

    async fn kill_repeatedly(&mut self, kills: u64) -> Result<()> {
        for kill in 1..=kills {
            if kill < kills {
                self.until_progress().await?;
            }
            sleep(Duration::from_millis(self.random.within(KILL_AFTER))).await;
            if let Some(status) = self.server.ended()? {
                bail!("the server ended by itself ({status}):\n{}", self.server.log_tail());
            }
            self.kill_and_start().await?;
            self.effective_kills += u64::from(!self.open().await?.is_empty());
        }
        Ok(())
    }

    async fn kill_and_start(&mut self) -> Result<()> {
        self.server.signal(Signal::KILL)?;
        self.server.wait(KILL_LIMIT).await?;
        self.reports.add_boot()?;
        self.server = Server::start_with(&self.launch, &self.setup.program, &self.setup.store).await?;
        Ok(())
    }

    /// Waits until every document that is open now has a new section or has ended.
    async fn until_progress(&mut self) -> Result<()> {
        let started = Instant::now();
        let before = self.open().await?;
        let sections = Duration::from_millis(SECTION_MILLIS * before.len() as u64);
        let limit = self.time_limits.limit(PROGRESS_GOAL + sections);
        loop {
            let now = self.open().await?;
            let waiting = before.iter().filter(|(task, sections)| now.get(*task) == Some(*sections)).count();
            if waiting == 0 {
                self.slowest_progress = self.slowest_progress.max(started.elapsed());
                return Ok(());
            }
            ensure!(
                started.elapsed() < limit,
                "{waiting} of {} open documents made no progress within {limit:?}",
                before.len()
            );
            sleep(POLL).await;
        }
    }

    /// Waits until every document has ended.
    async fn until_ended(&mut self) -> Result<()> {
        while !self.open().await?.is_empty() {
            self.until_progress().await?;
        }
        Ok(())
    }

    /// The open documents, each with the number of its sections.
    async fn open(&self) -> Result<HashMap<String, usize>> {
        let mut caller = Caller::new(self.server.address);
        let mut open = HashMap::new();
        for agent in self.documents.keys() {
            let add = |task: Value| {
                let sections = artifact_text(&task).lines().count();
                let id = task["id"].as_str().filter(|_| !is_terminal(state(&task)));
                open.extend(id.map(|id| (id.to_owned(), sections)));
            };
            let filter = json!({"includeArtifacts": true});
            caller.list(agent, filter, add).await.with_context(|| format!("the list of {agent}"))?;
        }
        Ok(open)
    }

    async fn check_documents(&mut self) -> Result<()> {
        for (agent, ids) in &self.documents {
            for (id, task) in fill::read(self.server.address, agent, ids).await? {
                match task.map(|task| self.document.fault_in(&task)) {
                    None => self.findings.push(format!("lost: document {id} is unknown")),
                    Some(Some(fault)) => self.findings.push(format!("wrong: document {id} {fault}")),
                    Some(None) => {}
                }
            }
        }
        Ok(())
    }

    fn check_steps(&mut self, reports: &StepReports) {
        self.findings.extend(reports.repeated.iter().map(|what| format!("duplicate: {what}")));
        for id in self.documents.get(step_reports::AGENT).into_iter().flatten() {
            let journaled = reports.journaled(id);
            if journaled != self.document.sections {
                self.findings.push(format!("wrong: document {id} has {journaled} journaled steps"));
            }
        }
    }

    /// What must have happened for a run without findings to prove something.
    fn check_effect(&mut self, reports: &StepReports, kills: u64) {
        for (holds, what) in [
            (reports.begun_again > 0, "no kill came during a step"),
            (reports.replayed > 0, "no output was read from the journal"),
            (self.effective_kills * 2 > kills, "most kills came when all documents were finished"),
        ] {
            if !holds {
                self.findings.push(format!("long_turns proves nothing: {what}"));
            }
        }
    }
}
