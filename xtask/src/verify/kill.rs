//! T-R1: the server is killed with SIGKILL again and again while clients send, stream and cancel, and is started
//! again on the same store. Nothing that was acknowledged may be lost, doubled or torn.
//!
//! The oracle is outside the server: `load.rs` writes what clients were told into `ledger.rs`, `check.rs` reads
//! the restarted server, `judge.rs` compares. The control (`--control`) runs the same campaign against a server
//! that answers before it commits, and succeeds only if the loss is found: a bar never seen red is not a bar.
//!
//! Deliberately not here: power loss (SIGKILL leaves the page cache intact), kills at named points, replicas.

pub(super) mod check;
pub(super) mod judge;
pub(super) mod ledger;
pub(super) mod load;
mod options;
mod report;

use std::collections::VecDeque;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout, timeout_at};

use self::check::Place;
use self::judge::{Judge, Kind};
use self::ledger::{Fact, Ledger};
use self::load::{Client, Stage};
use self::options::Options;
use self::report::Report;
use super::random::Random;
use super::rpc::Failure;
use super::trial;
use crate::server::{self, Server};

pub(crate) const OPTIONS: &str = options::USAGE;

const CLIENTS: usize = 64;
/// How long after ready the server is killed, in milliseconds.
const KILL_AFTER: RangeInclusive<u64> = 50..=1480;
/// How much longer a kill may wait for an acknowledgement to follow on its heels.
const AIM_LIMIT: Duration = Duration::from_millis(20);
/// How long accepted work may take to end after the last restart.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    eprintln!("T-R1: seed {}, {} kills, {CLIENTS} clients", options.seed, options.kills);
    let program = program(&options)?;
    let name = if options.control { "T-R1-control" } else { "T-R1" };
    let place = trial::fresh_place(name, options.seed)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let verdict = runtime
        .block_on(campaign(&options, &program, &place.join("store.db")))
        .and_then(|report| report.publish(&options));
    match &verdict {
        Ok(()) => fs::remove_dir_all(&place).context("cannot clear the place of the store")?,
        Err(_) => eprintln!("T-R1: the store and the server's log are kept in {}", place.display()),
    }
    verdict
}

fn program(options: &Options) -> Result<PathBuf> {
    match &options.program {
        Some(program) => Ok(std::path::absolute(program)?),
        None if options.control => server::build_with("fault-early-reply"),
        None => server::build(),
    }
}

/// Kills and restarts the server as often as asked, lets it settle, and compares everything.
async fn campaign(options: &Options, program: &Path, store: &Path) -> Result<Report> {
    let started = Instant::now();
    let mut campaign = Campaign::begin(options);
    for boot in 1..=options.kills {
        campaign.boot_and_kill(boot, program, store).await?;
        if options.control && campaign.judge.count(Kind::Lost) > 0 {
            break;
        }
    }
    let settled = campaign.finish(program, store).await?;
    Ok(Report {
        judge: campaign.judge,
        kills: campaign.kills,
        slowest_ready: campaign.slowest_ready,
        settled,
        elapsed: started.elapsed(),
    })
}

struct Campaign {
    random: Random,
    always_aim: bool,
    ledger: Arc<Ledger>,
    /// How much of the ledger the judge has seen.
    judged: usize,
    judge: Judge,
    /// Acknowledged tasks that have not been read since the last restart, or were still open then.
    due: VecDeque<Place>,
    stage: watch::Sender<Stage>,
    clients: JoinSet<()>,
    kills: u64,
    slowest_ready: Duration,
}

impl Campaign {
    fn begin(options: &Options) -> Self {
        let mut random = Random::new(options.seed);
        let ledger = Arc::new(Ledger::default());
        let (stage, stages) = watch::channel(Stage::Down);
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(Client::new(random.branch(), stages.clone(), ledger.clone()).run());
        }
        Self {
            random,
            always_aim: options.control,
            ledger,
            judged: 0,
            judge: Judge::default(),
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
        // Before the clients are let in, so that what is due was acknowledged by an earlier boot.
        self.catch_up();
        self.stage.send_replace(Stage::Up { boot, address: server.address });
        let check = check::after_restart(&mut self.judge, &self.ledger, &mut self.due, server.address);
        if let Ok(Err(failure)) = timeout_at(moment, check).await {
            self.note(&failure);
        }
        sleep_until(moment).await;
        if self.always_aim || self.random.within(0..=1) == 0 {
            self.aim().await;
        }
        if let Some(status) = server.ended()? {
            self.judge.refuse(format!("the server ended by itself ({status}):\n{}", server.log_tail()));
        }
        self.stage.send_replace(Stage::Down);
        server.kill().await?;
        self.kills += 1;
        Ok(())
    }

    /// Waits for the moment at which a reply that came too early hurts most: just after a client has it. Half of
    /// the kills are aimed so, the others fall where they may; the control aims them all.
    async fn aim(&self) {
        // Without an acknowledgement in that time the kill is as good as any other.
        let _ = timeout(AIM_LIMIT, self.ledger.next_acknowledgement()).await;
    }

    /// One last boot without load: everything accepted must end, and then everything is compared.
    async fn finish(&mut self, program: &Path, store: &Path) -> Result<Duration> {
        self.stage.send_replace(Stage::Over);
        while let Some(client) = self.clients.join_next().await {
            client.context("a client of the harness failed")?;
        }
        let server = self.start(self.kills + 1, program, store).await?;
        self.catch_up();
        let settled = match check::settle(&mut self.judge, &self.ledger, server.address, SETTLE_LIMIT).await {
            Ok(settled) => settled,
            Err(failure) => {
                self.note(&failure);
                SETTLE_LIMIT
            }
        };
        self.catch_up();
        if let Err(failure) = check::everything(&mut self.judge, server.address).await {
            self.note(&failure);
        }
        let status = server.terminate(STOP_LIMIT).await?;
        if !status.success() {
            self.judge.refuse(format!("the server answered SIGTERM with {status}"));
        }
        Ok(settled)
    }

    async fn start(&mut self, boot: u64, program: &Path, store: &Path) -> Result<Server> {
        let server = Server::start(program, store).await.with_context(|| format!("boot {boot}"))?;
        self.slowest_ready = self.slowest_ready.max(server.ready_after);
        self.ledger.record(Fact::Booted { boot });
        Ok(server)
    }

    /// Has the judge take what the clients have written down since the last time.
    fn catch_up(&mut self) {
        let facts = self.ledger.since(self.judged);
        self.judged += facts.len();
        for fact in &facts {
            self.judge.take(fact);
            if let Fact::Accepted { task, .. } = fact
                && let Some(agent) = self.judge.agent_of(task)
            {
                self.due.push_back((agent, task.clone()));
            }
        }
    }

    fn note(&mut self, failure: &Failure) {
        self.judge.refuse(format!("a read after a restart failed: {failure}"));
    }
}
