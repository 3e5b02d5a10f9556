//! One campaign of disk_faults: a store on one disk, a server that meets one failure after another under load, and
//! the oracle of kill_under_load for what is stored afterwards.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::Instant;

use super::disk::{Disk, Moment};
use super::integrity;
use super::probe::{Probe, ProbeReport};
use crate::extra_options::TimeLimits;
use crate::kill_under_load::load::Stage;
use crate::kill_under_load::oracle::{BootsEnd, Oracle};
use crate::random::Random;
use crate::server::{Launch, Server};
use crate::trial::stop;

const CLIENTS: usize = 12;
/// Delay between ready and the failure, in milliseconds, for disks that do not fail by themselves.
const BREAK_AFTER: RangeInclusive<u64> = 100..=1_500;
/// Time limit for the exit of a server whose writes fail. It includes reaching the number of syncs after which one
/// fails.
const EXIT_GOAL: Duration = Duration::from_secs(15);
const STORE_FAILED: i32 = 70;
const LOG_LINE: &str = "the store cannot write any more";

/// The counts of one campaign, or of several.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) faults: u64,
    /// The reasons in the log, and how often each occurred.
    pub(crate) reasons: BTreeMap<String, u64>,
    pub(crate) slowest_exit: Duration,
    pub(crate) acknowledged: u64,
    pub(crate) findings: Vec<String>,
}

pub(crate) struct Campaign<'a> {
    program: &'a Path,
    disk: Box<dyn Disk>,
    random: Random,
    time_limits: TimeLimits,
    oracle: Oracle,
    tally: Tally,
}

impl<'a> Campaign<'a> {
    pub(crate) fn begin(
        program: &'a Path,
        disk: Box<dyn Disk>,
        mut random: Random,
        time_limits: TimeLimits,
    ) -> Self {
        let oracle = Oracle::begin(CLIENTS, &mut random, BootsEnd::Failing, None);
        Self { program, disk, random, time_limits, oracle, tally: Tally::default() }
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
            self.check_refusal(&server, status);
            return Ok(());
        }
        self.oracle.booted(boot);
        let probe = Probe::begin(server.address, self.random.branch(), self.oracle.history.clone());
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
        let moment = Instant::now() + Duration::from_millis(self.random.within(BREAK_AFTER));
        self.oracle.load_until(moment, boot, server.address).await;
        if server.ended()?.is_none() {
            self.disk.break_disk(server, &mut self.random)?;
        }
        let struck = Moment::now();
        let status = server.wait(self.time_limits.limit(EXIT_GOAL)).await?;
        let took = self.disk.failed_since().unwrap_or(struck).elapsed();
        self.tally.slowest_exit = self.tally.slowest_exit.max(took);
        self.oracle.stage.send_replace(Stage::Down);
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
            Some(status) => self.check_refusal(&server, status),
            None => self.add_finding("a start on a broken disk was not refused".to_owned()),
        }
        Ok(())
    }

    /// Nothing sent after the disk failed may have been acknowledged.
    fn check_probe(&mut self, report: ProbeReport) {
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
        self.oracle.end_load().await?;
        let launch = Launch { log: self.log(), ..Launch::default() };
        let server = Server::start_with(&launch, self.program, &self.store()).await?;
        self.oracle.booted(boot);
        self.oracle.compare(server.address).await;
        stop(server, &mut self.tally.findings).await
    }

    fn conclude(mut self) -> Tally {
        if let Some(damage) = integrity::damage(&self.store()) {
            self.add_finding(format!("SQLite finds damage: {damage}"));
        }
        let (mut tally, checker) = (self.tally, self.oracle.checker);
        tally.acknowledged = checker.tally.acknowledged.values().sum();
        let checked = checker.findings.iter().map(|finding| format!("{:?}: {}", finding.kind, finding.what));
        tally.findings.extend(checked);
        tally
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
        for (reason, count) in other.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
        self.slowest_exit = self.slowest_exit.max(other.slowest_exit);
        self.acknowledged += other.acknowledged;
        self.findings.extend(other.findings.into_iter().map(|finding| format!("{kind}: {finding}")));
    }
}

/// The reason in the server's last log line.
fn reason(line: &str) -> String {
    let cause = line.split(LOG_LINE).nth(1).unwrap_or_default().trim_start_matches(':');
    cause.split(';').next().unwrap_or_default().trim().to_owned()
}
