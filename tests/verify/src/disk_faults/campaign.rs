//! One campaign of disk_faults: a store on one disk, a server that meets one failure after another under load, and
//! the checker of kill_under_load for what is stored afterwards.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout_at};

use super::disk::{Disk, Moment};
use super::integrity::{self, IntegrityCheck};
use super::probe::{Probe, ProbeReport};
use crate::extra_options::TimeLimits;
use crate::kill_under_load::checker::Checker;
use crate::kill_under_load::history::{Fact, History};
use crate::kill_under_load::load::{Client, Stage};
use crate::kill_under_load::read_back::{self, TaskRef};
use crate::random::Random;
use crate::rpc::Failure;
use crate::server::{Launch, Server};
use crate::trial::stop;

const CLIENTS: usize = 12;
/// Delay between ready and the failure, in milliseconds, for disks that do not fail by themselves.
const BREAK_AFTER: RangeInclusive<u64> = 100..=1_500;
/// Time limit for the exit of a server whose writes fail. It includes reaching the number of syncs after which one
/// fails.
const EXIT_GOAL: Duration = Duration::from_secs(15);
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
const STORE_FAILED: i32 = 70;
const LOG_LINE: &str = "the store cannot write any more";

/// The counts of one campaign, or of several.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) faults: u64,
    /// Faults that occurred before the server was ready.
    pub(crate) at_start: u64,
    /// Starts on a broken disk that were refused with a message.
    pub(crate) refused_starts: u64,
    /// The reasons in the log, and how often each occurred.
    pub(crate) reasons: BTreeMap<String, u64>,
    pub(crate) slowest_exit: Duration,
    pub(crate) tasks: u64,
    pub(crate) acknowledged: u64,
    pub(crate) witnessed: u64,
    pub(crate) cuts: u64,
    pub(crate) postponed: u64,
    pub(crate) failed_tasks: u64,
    /// Result of SQLite's integrity check, by kind of fault.
    pub(crate) integrity: BTreeMap<String, &'static str>,
    pub(crate) findings: Vec<String>,
}

pub(crate) struct Campaign<'a> {
    program: &'a Path,
    disk: Box<dyn Disk>,
    random: Random,
    time_limits: TimeLimits,
    history: Arc<History>,
    /// Number of history entries the checker has processed.
    checked: usize,
    checker: Checker,
    due: VecDeque<TaskRef>,
    stage: watch::Sender<Stage>,
    clients: JoinSet<()>,
    tally: Tally,
}

impl<'a> Campaign<'a> {
    pub(crate) fn begin(
        program: &'a Path,
        disk: Box<dyn Disk>,
        mut random: Random,
        time_limits: TimeLimits,
    ) -> Self {
        let history = Arc::new(History::default());
        let (stage, stages) = watch::channel(Stage::Down);
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(Client::new(random.branch(), stages.clone(), history.clone()).run());
        }
        Self {
            program,
            disk,
            random,
            time_limits,
            history,
            checked: 0,
            checker: Checker::default(),
            due: VecDeque::new(),
            stage,
            clients,
            tally: Tally::default(),
        }
    }

    pub(crate) async fn run(mut self, faults: u64) -> Result<Tally> {
        for boot in 1..=faults {
            self.boot_and_break(boot).await.with_context(|| format!("fault {boot}"))?;
            self.disk.repair().context("the disk cannot be repaired")?;
        }
        self.finish(faults + 1).await?;
        Ok(self.conclude())
    }

    async fn boot_and_break(&mut self, boot: u64) -> Result<()> {
        self.tally.faults += 1;
        let launch = self.disk.launch(&mut self.random);
        let launch = Launch { log: self.log(), ..launch };
        let mut server = Server::spawn(&launch, self.program, &self.store())?;
        if let Some(status) = server.ended_before_ready().await? {
            // A disk that fails after a number of calls may do so before the server is ready.
            self.tally.at_start += 1;
            self.check_refusal(&server, status);
            return Ok(());
        }
        self.history.record(Fact::Booted { boot });
        self.catch_up();
        let probe = Probe::begin(server.address, self.random.branch(), self.history.clone());
        match self.break_under_load(&mut server, boot).await? {
            Some(status) => self.check_exit(&server, status),
            None => {
                self.add_finding(format!(
                    "the server still runs although its disk failed\n{}",
                    server.log_tail()
                ));
                server.kill().await?;
            }
        }
        let report = probe.finish().await?;
        self.check_probe(report);
        if self.disk.refuses_starts() {
            self.start_on_broken_disk(&launch).await?;
        }
        Ok(())
    }

    /// Starts the load, breaks the disk at a random time, and waits for the server to exit.
    async fn break_under_load(&mut self, server: &mut Server, boot: u64) -> Result<Option<ExitStatus>> {
        let address = server.address;
        self.stage.send_replace(Stage::Up { boot, address });
        let moment = tokio::time::Instant::now() + Duration::from_millis(self.random.within(BREAK_AFTER));
        let check = read_back::after_restart(&mut self.checker, &self.history, &mut self.due, address);
        if let Ok(Err(failure)) = timeout_at(moment, check).await {
            self.note(&failure);
        }
        sleep_until(moment).await;
        if server.ended()?.is_none() {
            self.disk.break_disk(server, &mut self.random)?;
        }
        let struck = Moment::now();
        let status = server.wait(self.time_limits.limit(EXIT_GOAL)).await?;
        let took = self.disk.failed_since().unwrap_or(struck).elapsed();
        self.tally.slowest_exit = self.tally.slowest_exit.max(took);
        self.stage.send_replace(Stage::Down);
        Ok(status)
    }

    /// Checks the exit code and the log line of a server whose disk has failed.
    fn check_exit(&mut self, server: &Server, status: ExitStatus) {
        if status.code() != Some(STORE_FAILED) {
            self.add_finding(format!("the server exited with {status}, not 70\n{}", server.log_tail()));
        }
        let log = server.log();
        let line = log.lines().rev().find(|line| line.contains(LOG_LINE));
        match line.map(reason) {
            Some(reason) if !reason.is_empty() => {
                *self.tally.reasons.entry(reason).or_default() += 1;
            }
            _ => self.add_finding(format!("the log has no reason\n{}", server.log_tail())),
        }
    }

    /// Checks a start that failed because of the disk: it must log the reason; exit codes 70 and 1 are both
    /// accepted.
    fn check_refusal(&mut self, server: &Server, status: ExitStatus) {
        if !matches!(status.code(), Some(1 | STORE_FAILED)) || !server.log().contains("the store") {
            self.add_finding(format!("a start on a broken disk exited with {status}\n{}", server.log_tail()));
        }
    }

    async fn start_on_broken_disk(&mut self, launch: &Launch) -> Result<()> {
        let mut server = Server::spawn(launch, self.program, &self.store())?;
        match server.ended_before_ready().await? {
            Some(status) => {
                self.tally.refused_starts += 1;
                self.check_refusal(&server, status);
            }
            None => self.add_finding("a start on a broken disk was not refused".to_owned()),
        }
        Ok(())
    }

    /// Nothing sent after the disk failed may have been acknowledged.
    fn check_probe(&mut self, report: ProbeReport) {
        self.tally.witnessed += report.acknowledged;
        self.tally.findings.extend(report.findings);
        if let (Some(dead), Some(sent)) = (self.disk.failed_since(), report.last_sent)
            && sent > dead
        {
            self.add_finding(format!(
                "false acknowledgement: the disk failed at {dead:?}, the message was sent at {sent:?}"
            ));
        }
    }

    /// A last boot on a repaired disk: everything accepted must end, and then everything is compared.
    async fn finish(&mut self, boot: u64) -> Result<()> {
        self.stage.send_replace(Stage::Over);
        while let Some(client) = self.clients.join_next().await {
            client.context("a test client failed")?;
        }
        let launch = Launch { log: self.log(), ..Launch::default() };
        let server = Server::start_with(&launch, self.program, &self.store()).await?;
        self.history.record(Fact::Booted { boot });
        self.catch_up();
        match read_back::settle(&mut self.checker, &self.history, server.address, SETTLE_LIMIT).await {
            Ok(_) => {}
            Err(failure) => self.note(&failure),
        }
        self.catch_up();
        if let Err(failure) = read_back::compare_everything(&mut self.checker, server.address).await {
            self.note(&failure);
        }
        stop(server, &mut self.tally.findings).await?;
        Ok(())
    }

    fn conclude(mut self) -> Tally {
        let opinion = match integrity::check(&self.store()) {
            IntegrityCheck::Passed => "ok",
            IntegrityCheck::Unavailable => "not available",
            IntegrityCheck::Damaged(damage) => {
                self.add_finding(format!("SQLite finds damage: {damage}"));
                "damaged"
            }
        };
        let mut tally = self.tally;
        tally.integrity.insert(String::new(), opinion);
        tally.tasks = self.checker.tasks() as u64;
        tally.acknowledged = self.checker.tally.acknowledged.values().sum();
        tally.cuts = self.checker.tally.cuts;
        tally.postponed = self.checker.tally.postponed;
        tally.failed_tasks = self.checker.failed() as u64;
        let checked =
            self.checker.findings.iter().map(|finding| format!("{:?}: {}", finding.kind, finding.what));
        tally.findings.extend(checked);
        tally
    }

    /// Passes the history entries since the last call to the checker. Every boot ends with a fault, so connections
    /// lost and streams closed by the server are expected.
    fn catch_up(&mut self) {
        let facts = self.history.since(self.checked);
        self.checked += facts.len();
        for fact in facts {
            let fact = match fact {
                Fact::CutByLivingServer | Fact::ClosedEarly { .. } => Fact::Cut,
                fact => fact,
            };
            self.checker.observe(&fact);
            if let Fact::Accepted { task, .. } = fact
                && let Some(agent) = self.checker.agent_of(&task)
            {
                self.due.push_back((agent, task));
            }
        }
    }

    /// Ignores reads that the fault interrupted.
    fn note(&mut self, failure: &Failure) {
        if !matches!(failure, Failure::Cut(_)) && !failure.is_retryable() {
            self.checker.record_failure(format!("a read after a restart failed: {failure}"));
        }
    }

    fn store(&self) -> PathBuf {
        self.disk.store().to_owned()
    }

    fn log(&self) -> Option<PathBuf> {
        self.disk.log().map(Path::to_owned)
    }

    fn add_finding(&mut self, what: String) {
        self.tally.findings.push(what);
    }
}

impl Tally {
    /// Adds the counts of another campaign.
    pub(crate) fn add(&mut self, kind: &str, other: Self) {
        self.faults += other.faults;
        self.at_start += other.at_start;
        self.refused_starts += other.refused_starts;
        for (reason, count) in other.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
        self.slowest_exit = self.slowest_exit.max(other.slowest_exit);
        self.tasks += other.tasks;
        self.acknowledged += other.acknowledged;
        self.witnessed += other.witnessed;
        self.cuts += other.cuts;
        self.postponed += other.postponed;
        self.failed_tasks += other.failed_tasks;
        self.integrity.extend(other.integrity.into_values().map(|opinion| (kind.to_owned(), opinion)));
        self.findings.extend(other.findings.into_iter().map(|finding| format!("{kind}: {finding}")));
    }
}

/// The reason in the server's last log line.
fn reason(line: &str) -> String {
    let cause = line.split(LOG_LINE).nth(1).unwrap_or_default().trim_start_matches(':');
    cause.split(';').next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_parsed_from_the_last_line() {
        let line = "a2ad: the store cannot write any more: disk I/O error; every acknowledged task is safe";
        assert_eq!(reason(line), "disk I/O error");
    }
}
