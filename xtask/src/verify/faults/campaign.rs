//! One campaign of T-R7: a store on one disk, a server that meets one failure after the other under load, and
//! the judgement of T-R1 on what is there afterwards.

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
use super::integrity::{self, Opinion};
use super::witness::{Testimony, Witness};
use crate::server::{Launch, Server};
use crate::verify::extras::Pace;
use crate::verify::kill::check::{self, Place};
use crate::verify::kill::judge::Judge;
use crate::verify::kill::ledger::{Fact, Ledger};
use crate::verify::kill::load::{Client, Stage};
use crate::verify::random::Random;
use crate::verify::rpc::Failure;

const CLIENTS: usize = 12;
/// How long after ready a disk is broken, in milliseconds, unless it breaks by itself.
const STRIKE_AFTER: RangeInclusive<u64> = 100..=1_500;
/// How long a server that meets failing writes may go on. A sync that fails at a given count has to be reached.
const EXIT_GOAL: Duration = Duration::from_secs(15);
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);
const STORE_FAILED: i32 = 70;
const LOG_LINE: &str = "the store cannot write any more";

/// What a campaign has seen, or several.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) faults: u64,
    /// Faults met before the server was ready.
    pub(crate) at_start: u64,
    /// Starts on a broken disk, refused in words.
    pub(crate) refused_starts: u64,
    /// What the log says, and how often.
    pub(crate) reasons: BTreeMap<String, u64>,
    pub(crate) slowest_exit: Duration,
    pub(crate) tasks: u64,
    pub(crate) acknowledged: u64,
    pub(crate) witnessed: u64,
    pub(crate) cuts: u64,
    pub(crate) postponed: u64,
    pub(crate) failed_tasks: u64,
    /// What SQLite's own check says, by kind.
    pub(crate) integrity: BTreeMap<String, &'static str>,
    pub(crate) findings: Vec<String>,
}

pub(crate) struct Campaign<'a> {
    program: &'a Path,
    disk: Box<dyn Disk>,
    random: Random,
    pace: Pace,
    ledger: Arc<Ledger>,
    /// How much of the ledger the judge has seen.
    judged: usize,
    judge: Judge,
    due: VecDeque<Place>,
    stage: watch::Sender<Stage>,
    clients: JoinSet<()>,
    tally: Tally,
}

impl<'a> Campaign<'a> {
    pub(crate) fn begin(program: &'a Path, disk: Box<dyn Disk>, mut random: Random, pace: Pace) -> Self {
        let ledger = Arc::new(Ledger::default());
        let (stage, stages) = watch::channel(Stage::Down);
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(Client::new(random.branch(), stages.clone(), ledger.clone()).run());
        }
        Self {
            program,
            disk,
            random,
            pace,
            ledger,
            judged: 0,
            judge: Judge::default(),
            due: VecDeque::new(),
            stage,
            clients,
            tally: Tally::default(),
        }
    }

    pub(crate) async fn run(mut self, faults: u64) -> Result<Tally> {
        for boot in 1..=faults {
            self.boot_and_break(boot).await.with_context(|| format!("fault {boot}"))?;
            self.disk.mend().context("the disk cannot be mended")?;
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
            // A disk that fails by count may do so before anybody is let in.
            self.tally.at_start += 1;
            self.judge_refusal(&server, status);
            return Ok(());
        }
        self.ledger.record(Fact::Booted { boot });
        self.catch_up();
        let witness = Witness::begin(server.address, self.random.branch(), self.ledger.clone());
        match self.break_under_load(&mut server, boot).await? {
            Some(status) => self.judge_exit(&server, status),
            None => {
                self.find(format!("the server goes on although its disk failed\n{}", server.log_tail()));
                server.kill().await?;
            }
        }
        let testimony = witness.testify().await?;
        self.judge_testimony(testimony);
        if self.disk.refuses_starts() {
            self.start_in_vain(&launch).await?;
        }
        Ok(())
    }

    /// Lets the clients in, breaks the disk at some moment, and waits for the server to stop.
    async fn break_under_load(&mut self, server: &mut Server, boot: u64) -> Result<Option<ExitStatus>> {
        let address = server.address;
        self.stage.send_replace(Stage::Up { boot, address });
        let moment = tokio::time::Instant::now() + Duration::from_millis(self.random.within(STRIKE_AFTER));
        let check = check::after_restart(&mut self.judge, &self.ledger, &mut self.due, address);
        if let Ok(Err(failure)) = timeout_at(moment, check).await {
            self.note(&failure);
        }
        sleep_until(moment).await;
        if server.ended()?.is_none() {
            self.disk.strike(server, &mut self.random)?;
        }
        let struck = Moment::now();
        let status = server.wait(self.pace.limit(EXIT_GOAL)).await?;
        let took = self.disk.dead_since().unwrap_or(struck).elapsed();
        self.tally.slowest_exit = self.tally.slowest_exit.max(took);
        self.stage.send_replace(Stage::Down);
        Ok(status)
    }

    /// The exit code and the log line of a server whose disk has failed.
    fn judge_exit(&mut self, server: &Server, status: ExitStatus) {
        if status.code() != Some(STORE_FAILED) {
            self.find(format!("the server ended by {status}, not 70\n{}", server.log_tail()));
        }
        let log = server.log();
        let line = log.lines().rev().find(|line| line.contains(LOG_LINE));
        match line.map(reason) {
            Some(reason) if !reason.is_empty() => {
                *self.tally.reasons.entry(reason).or_default() += 1;
            }
            _ => self.find(format!("the log does not say why\n{}", server.log_tail())),
        }
    }

    /// A server that does not start because of its disk says so and is gone; its code may say either.
    fn judge_refusal(&mut self, server: &Server, status: ExitStatus) {
        if !matches!(status.code(), Some(1 | STORE_FAILED)) || !server.log().contains("the store") {
            self.find(format!("a start on a broken disk ended by {status}\n{}", server.log_tail()));
        }
    }

    async fn start_in_vain(&mut self, launch: &Launch) -> Result<()> {
        let mut server = Server::spawn(launch, self.program, &self.store())?;
        match server.ended_before_ready().await? {
            Some(status) => {
                self.tally.refused_starts += 1;
                self.judge_refusal(&server, status);
            }
            None => self.find("a start on a broken disk was not refused".to_owned()),
        }
        Ok(())
    }

    /// Nothing that was sent after the disk had died may have been acknowledged.
    fn judge_testimony(&mut self, testimony: Testimony) {
        self.tally.witnessed += testimony.acknowledged;
        self.tally.findings.extend(testimony.findings);
        if let (Some(dead), Some(sent)) = (self.disk.dead_since(), testimony.last_sent)
            && sent > dead
        {
            self.find(format!("acknowledged falsely: dead since {dead:?}, sent at {sent:?}"));
        }
    }

    /// A last boot on a disk that is whole: everything accepted ends, and then everything is compared.
    async fn finish(&mut self, boot: u64) -> Result<()> {
        self.stage.send_replace(Stage::Over);
        while let Some(client) = self.clients.join_next().await {
            client.context("a client of the harness failed")?;
        }
        let launch = Launch { log: self.log(), ..Launch::default() };
        let server = Server::start_by(&launch, self.program, &self.store()).await?;
        self.ledger.record(Fact::Booted { boot });
        self.catch_up();
        match check::settle(&mut self.judge, &self.ledger, server.address, SETTLE_LIMIT).await {
            Ok(_) => {}
            Err(failure) => self.note(&failure),
        }
        self.catch_up();
        if let Err(failure) = check::everything(&mut self.judge, server.address).await {
            self.note(&failure);
        }
        let status = server.terminate(STOP_LIMIT).await?;
        if !status.success() {
            self.find(format!("the server answered SIGTERM with {status}"));
        }
        Ok(())
    }

    fn conclude(mut self) -> Tally {
        let opinion = match integrity::check(&self.store()) {
            Opinion::Sound => "ok",
            Opinion::None => "nobody to ask",
            Opinion::Damaged(damage) => {
                self.find(format!("SQLite finds damage: {damage}"));
                "damaged"
            }
        };
        let mut tally = self.tally;
        tally.integrity.insert(String::new(), opinion);
        tally.tasks = self.judge.tasks() as u64;
        tally.acknowledged = self.judge.tally.acknowledged.values().sum();
        tally.cuts = self.judge.tally.cuts;
        tally.postponed = self.judge.tally.postponed;
        tally.failed_tasks = self.judge.failed() as u64;
        let judged =
            self.judge.findings.iter().map(|finding| format!("{:?}: {}", finding.kind, finding.what));
        tally.findings.extend(judged);
        tally
    }

    /// Has the judge take what the clients have written down since the last time. Every boot ends with a fault, so
    /// a connection that the server cut or a stream that it closed before its time is no news.
    fn catch_up(&mut self) {
        let facts = self.ledger.since(self.judged);
        self.judged += facts.len();
        for fact in facts {
            let fact = match fact {
                Fact::CutByLivingServer | Fact::ClosedEarly { .. } => Fact::Cut,
                fact => fact,
            };
            self.judge.take(&fact);
            if let Fact::Accepted { task, .. } = fact
                && let Some(agent) = self.judge.agent_of(&task)
            {
                self.due.push_back((agent, task));
            }
        }
    }

    /// A read that the fault itself has cut off says nothing.
    fn note(&mut self, failure: &Failure) {
        if !matches!(failure, Failure::Cut(_)) && !failure.is_passing() {
            self.judge.refuse(format!("a read after a restart failed: {failure}"));
        }
    }

    fn store(&self) -> PathBuf {
        self.disk.store().to_owned()
    }

    fn log(&self) -> Option<PathBuf> {
        self.disk.log().map(Path::to_owned)
    }

    fn find(&mut self, what: String) {
        self.tally.findings.push(what);
    }
}

impl Tally {
    /// Takes over what another campaign has seen.
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

/// The cause in the line that the server ends with.
fn reason(line: &str) -> String {
    let cause = line.split(LOG_LINE).nth(1).unwrap_or_default().trim_start_matches(':');
    cause.split(';').next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_read_off_the_last_line() {
        let line = "a2ad: the store cannot write any more: disk I/O error; every acknowledged task is safe";
        assert_eq!(reason(line), "disk I/O error");
    }
}
