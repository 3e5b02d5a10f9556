//! The oracle of a campaign over many boots: clients that put the server under load, the record of what they received,
//! and its comparison with what the server returns after each restart.
//!
//! Deliberately not here: how each boot ends.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::checker::Checker;
use super::history::{Fact, History, Operation};
use super::load::{Client, Stage};
use super::read_back::{self, TaskRef};
use crate::random::Random;
use crate::rpc::Failure;
use crate::step_reports::{ReportFile, StepReports};

/// Time limit for accepted tasks to end after the last restart.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Oracle {
    pub(crate) history: Arc<History>,
    pub(crate) checker: Checker,
    pub(crate) stage: watch::Sender<Stage>,
    /// Number of history entries the checker has processed.
    checked: usize,
    /// Acknowledged tasks that have not been read since the last restart, or were still open then.
    due: VecDeque<TaskRef>,
    clients: JoinSet<()>,
    boots_end: BootsEnd,
    /// Where the steps of `journal-writer` are reported, if it is part of the load.
    reports: Option<Arc<ReportFile>>,
}

/// How each boot ends, which decides what a server may do to its clients.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BootsEnd {
    /// By SIGKILL, before which the stage changes: a server that is up closes no connection.
    Killed,
    /// By a fault of the server's disk: lost connections, closed streams and failed reads are expected.
    Failing,
}

impl Oracle {
    pub(crate) fn begin(
        clients: usize,
        random: &mut Random,
        boots_end: BootsEnd,
        reports: Option<ReportFile>,
    ) -> Self {
        let history = Arc::new(History::default());
        let reports = reports.map(Arc::new);
        let (stage, stages) = watch::channel(Stage::Down);
        let client = |_| Client::new(random.branch(), stages.clone(), history.clone(), reports.clone()).run();
        let clients = (0..clients).map(client).collect();
        let (checker, due) = (Checker::default(), VecDeque::new());
        Self { history, checker, stage, checked: 0, due, clients, boots_end, reports }
    }

    /// Records that the server is about to be started.
    pub(crate) fn starting(&self) -> Result<()> {
        self.reports.as_ref().map_or(Ok(()), |reports| reports.add_boot())
    }

    /// The operations of the clients.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let is_used = |operation: &Operation| *operation != Operation::Journal || self.reports.is_some();
        Operation::ALL.into_iter().filter(is_used).collect()
    }

    /// Records a boot. Before the clients see the server, so that everything due was acknowledged in an earlier boot.
    pub(crate) fn booted(&mut self, boot: u64) {
        self.history.record(Fact::Booted { boot });
        self.catch_up();
    }

    /// Lets the clients call the server until `moment`, and meanwhile reads what earlier boots acknowledged.
    pub(crate) async fn load_until(&mut self, moment: Instant, boot: u64, address: SocketAddr) {
        self.stage.send_replace(Stage::Up { boot, address });
        let check = read_back::after_restart(&mut self.checker, &self.history, &mut self.due, address);
        if let Ok(Err(failure)) = timeout_at(moment, check).await {
            self.note(&failure);
        }
        sleep_until(moment).await;
    }

    /// Stops the clients.
    pub(crate) async fn end_load(&mut self) -> Result<()> {
        self.stage.send_replace(Stage::Over);
        while let Some(client) = self.clients.join_next().await {
            client.context("a test client failed")?;
        }
        Ok(())
    }

    /// After the last boot: everything accepted must end, and then everything is compared. Returns how long the tasks
    /// took to end.
    pub(crate) async fn compare(&mut self, address: SocketAddr) -> Duration {
        let mut agents: Vec<&'static str> = self.operations().into_iter().map(Operation::agent).collect();
        agents.sort_unstable();
        agents.dedup();
        let settled =
            read_back::settle(&mut self.checker, &self.history, &agents, address, SETTLE_LIMIT).await;
        let settled = settled.unwrap_or_else(|failure| {
            self.note(&failure);
            SETTLE_LIMIT
        });
        self.catch_up();
        if let Err(failure) = read_back::compare_everything(&mut self.checker, &agents, address).await {
            self.note(&failure);
        }
        settled
    }

    /// Compares the tasks of `journal-writer` with what its steps have reported.
    pub(crate) fn check_steps(&mut self) -> Result<StepReports> {
        let Some(reports) = &self.reports else { return Ok(StepReports::default()) };
        let reports = reports.read()?;
        self.checker.check_steps(&reports);
        Ok(reports)
    }

    /// Passes the history entries since the last call to the checker.
    fn catch_up(&mut self) {
        let facts = self.history.since(self.checked);
        self.checked += facts.len();
        for fact in facts {
            let fact = match fact {
                Fact::CutByLivingServer | Fact::ClosedEarly { .. } if self.boots_end == BootsEnd::Failing => {
                    Fact::Cut
                }
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

    fn note(&mut self, failure: &Failure) {
        let interrupted = matches!(failure, Failure::Cut(_)) || failure.is_retryable();
        if self.boots_end == BootsEnd::Killed || !interrupted {
            self.checker.record_failure(format!("a read after a restart failed: {failure}"));
        }
    }
}
