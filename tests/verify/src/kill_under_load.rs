//! kill_under_load: the server is killed with SIGKILL repeatedly while clients send, stream and cancel, and is
//! started again on the same store. Nothing that was acknowledged may be lost, duplicated or incomplete.
//!
//! The oracle is outside the server: `load.rs` records in `history.rs` what clients received, `read_back.rs` reads
//! the restarted server, `checker.rs` compares. The control run (`--control`) uses a server that replies before it
//! commits, and succeeds only if the loss is found: it proves that the check can fail.
//!
//! Deliberately not here: power loss (SIGKILL leaves the page cache intact), kills at specific points of the code,
//! replicas.

pub(super) mod checker;
pub(super) mod history;
pub(super) mod load;
pub(super) mod read_back;
mod report;

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout, timeout_at};

use self::checker::{Checker, Kind};
use self::history::{Fact, History};
use self::load::{Client, Stage};
use self::read_back::TaskRef;
use self::report::Report;
use super::extra_options::ExtraOptions;
use super::random::Random;
use super::rpc::Failure;
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
/// Time limit for accepted tasks to end after the last restart.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let (name, kills, control) = match extras.flag("--control") {
        true => ("kill_under_load-control", DEFAULT_CONTROL_KILLS, true),
        false => ("kill_under_load", DEFAULT_KILLS, false),
    };
    let trial = Trial::parse(name, "--kills", kills, &extras.rest())?;
    trial.run(async |setup| campaign(&trial, control, setup).await)
}

/// Kills and restarts the server as often as requested, waits until all tasks have ended, and compares everything.
async fn campaign(trial: &Trial, control: bool, setup: &Setup) -> Result<ProofResult> {
    let (program, store) = (setup.program.as_path(), setup.store.as_path());
    let mut campaign = Campaign::begin(trial.seed, control);
    for boot in 1..=trial.size {
        campaign.boot_and_kill(boot, program, store).await?;
        if control && campaign.checker.count(Kind::Lost) > 0 {
            break;
        }
    }
    let settled = campaign.finish(program, store).await?;
    let Campaign { checker, kills, slowest_ready, .. } = campaign;
    Ok(Report { checker, kills, slowest_ready, settled, control }.result())
}

struct Campaign {
    random: Random,
    always_aim: bool,
    history: Arc<History>,
    /// Number of history entries the checker has processed.
    checked: usize,
    checker: Checker,
    /// Acknowledged tasks that have not been read since the last restart, or were still open then.
    due: VecDeque<TaskRef>,
    stage: watch::Sender<Stage>,
    clients: JoinSet<()>,
    kills: u64,
    slowest_ready: Duration,
}

impl Campaign {
    fn begin(seed: u64, always_aim: bool) -> Self {
        let mut random = Random::new(seed);
        let history = Arc::new(History::default());
        let (stage, stages) = watch::channel(Stage::Down);
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(Client::new(random.branch(), stages.clone(), history.clone()).run());
        }
        Self {
            random,
            always_aim,
            history,
            checked: 0,
            checker: Checker::default(),
            due: VecDeque::new(),
            stage,
            clients,
            kills: 0,
            slowest_ready: Duration::ZERO,
        }
    }

    async fn boot_and_kill(&mut self, boot: u64, program: &Path, store: &Path) -> Result<()> {
        let mut server = self.start(boot, program, store).await?;
        let moment = tokio::time::Instant::now() + Duration::from_millis(self.random.within(KILL_AFTER));
        // Before the clients see the server, so that everything due was acknowledged in an earlier boot.
        self.catch_up();
        self.stage.send_replace(Stage::Up { boot, address: server.address });
        let check = read_back::after_restart(&mut self.checker, &self.history, &mut self.due, server.address);
        if let Ok(Err(failure)) = timeout_at(moment, check).await {
            self.note(&failure);
        }
        sleep_until(moment).await;
        if self.always_aim || self.random.within(0..=1) == 0 {
            self.aim().await;
        }
        if let Some(status) = server.ended()? {
            self.checker
                .record_failure(format!("the server ended by itself ({status}):\n{}", server.log_tail()));
        }
        self.stage.send_replace(Stage::Down);
        server.kill().await?;
        self.kills += 1;
        Ok(())
    }

    /// Waits for the moment at which an early reply does the most harm: right after a client has received it. Half
    /// of the kills are timed like this, the others are at random times; the control run times them all.
    async fn aim(&self) {
        // Without an acknowledgement in that time, any moment is as good.
        let _ = timeout(AIM_LIMIT, self.history.next_acknowledgement()).await;
    }

    /// A last boot without load: everything accepted must end, and then everything is compared.
    async fn finish(&mut self, program: &Path, store: &Path) -> Result<Duration> {
        self.stage.send_replace(Stage::Over);
        while let Some(client) = self.clients.join_next().await {
            client.context("a test client failed")?;
        }
        let server = self.start(self.kills + 1, program, store).await?;
        self.catch_up();
        let settled =
            match read_back::settle(&mut self.checker, &self.history, server.address, SETTLE_LIMIT).await {
                Ok(settled) => settled,
                Err(failure) => {
                    self.note(&failure);
                    SETTLE_LIMIT
                }
            };
        self.catch_up();
        if let Err(failure) = read_back::compare_everything(&mut self.checker, server.address).await {
            self.note(&failure);
        }
        let mut findings = Vec::new();
        stop(server, &mut findings).await?;
        for finding in findings {
            self.checker.record_failure(finding);
        }
        Ok(settled)
    }

    async fn start(&mut self, boot: u64, program: &Path, store: &Path) -> Result<Server> {
        let server = Server::start(program, store).await.with_context(|| format!("boot {boot}"))?;
        self.slowest_ready = self.slowest_ready.max(server.ready_after);
        self.history.record(Fact::Booted { boot });
        Ok(server)
    }

    /// Passes the history entries since the last call to the checker.
    fn catch_up(&mut self) {
        let facts = self.history.since(self.checked);
        self.checked += facts.len();
        for fact in &facts {
            self.checker.observe(fact);
            if let Fact::Accepted { task, .. } = fact
                && let Some(agent) = self.checker.agent_of(task)
            {
                self.due.push_back((agent, task.clone()));
            }
        }
    }

    fn note(&mut self, failure: &Failure) {
        self.checker.record_failure(format!("a read after a restart failed: {failure}"));
    }
}
