//! A running contender: start, load, memory and CPU readings, stop.
//!
//! Only processes started here are ever signalled, by their own id while they are still our unreaped children.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use testkit::http1::Connection;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::contender::{Contender, program};
use super::dirs::BenchDirs;
use super::figures::Sample;

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// How long the load runs before the server is killed under it.
const BEFORE_KILL: Duration = Duration::from_millis(500);

/// A running server; dropping it kills the process.
pub(super) struct Server {
    contender: Contender,
    child: Child,
    address: SocketAddr,
    /// From the start of the process to its first successful response.
    pub(super) ready_after: Duration,
}

/// Mode of the load generator and number of connections.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    pub(super) mode: &'static str,
    pub(super) connections: usize,
}

/// When the load ends.
#[derive(Clone, Copy)]
pub(super) enum Limit {
    Seconds(f64),
    Calls(u64),
}

impl Server {
    /// Starts `contender` with its files in `folder` and waits until it is ready.
    pub(super) async fn start(
        dirs: &BenchDirs,
        contender: Contender,
        folder: &Path,
        open_files: Option<u64>,
    ) -> Result<Self> {
        Self::start_with(dirs, contender, folder, open_files, &[]).await
    }

    /// The same with environment variables, which are settings of `a2ad`.
    pub(super) async fn start_with(
        dirs: &BenchDirs,
        contender: Contender,
        folder: &Path,
        open_files: Option<u64>,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let address = free_address()?;
        let log = folder.join("log");
        let mut command = contender.command(dirs, address, folder, open_files);
        command
            .env_clear()
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .kill_on_drop(true);
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {}", contender.name()))?;
        let mut server = Self { contender, child, address, ready_after: Duration::ZERO };
        let ready = timeout(START_LIMIT, server.ready()).await;
        ready.context("it is not ready").flatten().with_context(|| {
            format!("{} did not start: {}", contender.name(), fs::read_to_string(&log).unwrap_or_default())
        })?;
        server.ready_after = started.elapsed();
        Ok(server)
    }

    async fn ready(&mut self) -> Result<()> {
        while !self.is_ready().await {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}");
            }
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    async fn is_ready(&self) -> bool {
        let Ok(mut connection) = Connection::open(self.address).await else { return false };
        self.contender != Contender::A2ad
            || connection.get("/readyz").await.is_ok_and(|response| response.status == 200)
    }

    /// The load generator's command for the agent at `path`; the caller adds further arguments.
    pub(super) fn load_command(
        &self,
        dirs: &BenchDirs,
        mode: &str,
        path: &str,
        open_files: Option<u64>,
    ) -> Command {
        let mut command = program(&dirs.bench.join("load"), open_files);
        command.args([mode, "--address", &self.address.to_string(), "--path", path]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Calls the echo agent until `limit`. Mode `send` writes task ids to the file `ids`, mode `get` reads them.
    pub(super) async fn load(
        &self,
        dirs: &BenchDirs,
        cell: Cell,
        limit: Limit,
        ids: Option<&Path>,
    ) -> Result<Sample> {
        self.sample(cell, self.calls(dirs, cell, limit, ids)).await
    }

    /// Sends to the echo agent until `limit`, each time with one of the webhooks, which are separated by commas.
    pub(super) async fn load_with_webhooks(
        &self,
        dirs: &BenchDirs,
        connections: usize,
        limit: Limit,
        webhooks: &str,
    ) -> Result<Sample> {
        let cell = Cell { mode: "send-push", connections };
        let mut command = self.calls(dirs, cell, limit, None);
        command.args(["--webhooks", webhooks]);
        self.sample(cell, command).await
    }

    async fn sample(&self, cell: Cell, mut load: Command) -> Result<Sample> {
        let output = load.output().await.context("cannot start the load")?;
        let Cell { mode, connections } = cell;
        let what = || format!("{} at {mode}, {connections}", self.contender.name());
        ensure!(output.status.success(), "{}: the load failed", what());
        Sample::decode(&output.stdout).with_context(what)
    }

    fn calls(&self, dirs: &BenchDirs, cell: Cell, limit: Limit, ids: Option<&Path>) -> Command {
        let mut command = self.load_command(dirs, cell.mode, self.contender.path(cell.mode), None);
        command.args(["--connections", &cell.connections.to_string()]);
        match limit {
            Limit::Seconds(seconds) => command.args(["--seconds", &seconds.to_string()]),
            Limit::Calls(calls) => command.args(["--calls", &calls.to_string()]),
        };
        command.args(ids.into_iter().flat_map(|file| [OsStr::new("--ids"), file.as_os_str()]));
        command
    }

    /// Resident memory in KiB.
    pub(super) fn resident(&self) -> Result<u64> {
        let pid = self.child.id().context("it has ended")?;
        let status =
            fs::read_to_string(format!("/proc/{pid}/status")).context("cannot read its memory use")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    /// CPU time of all its threads.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        let pid = self.child.id().context("it has ended")?;
        Ok(CpuTimes::of(&pid.to_string())?.own)
    }

    pub(super) async fn kill(mut self) -> Result<()> {
        self.child.kill().await.with_context(|| format!("cannot stop {}", self.contender.name()))
    }

    /// Sends SIGKILL in the middle of a load, whose failed calls are expected.
    pub(super) async fn kill_under_load(self, dirs: &BenchDirs, cell: Cell) -> Result<()> {
        let mut command = self.calls(dirs, cell, Limit::Seconds(2.0 * BEFORE_KILL.as_secs_f64()), None);
        let mut load =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start the load")?;
        sleep(BEFORE_KILL).await;
        self.kill().await?;
        load.wait().await?;
        Ok(())
    }

    /// Sends SIGTERM and expects exit code 0.
    pub(super) async fn terminate(mut self) -> Result<()> {
        let id = self.child.id().context("it has already ended")?;
        let sent = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &id.to_string()]).status().await?;
        ensure!(sent.success(), "SIGTERM could not be sent");
        let status = timeout(STOP_LIMIT, self.child.wait()).await.context("it did not stop in time")??;
        ensure!(status.success(), "{} ended with {status}", self.contender.name());
        Ok(())
    }
}

/// CPU times of a process from `/proc`, including threads that have ended.
pub(super) struct CpuTimes {
    pub(super) own: Duration,
    /// Of its terminated children.
    pub(super) children: Duration,
}

impl CpuTimes {
    /// `process` is a process id or `self`.
    pub(super) fn of(process: &str) -> Result<Self> {
        /// Times in `/proc` are in units of 1/100 s, whatever the kernel's own tick is.
        const TICK: Duration = Duration::from_millis(10);
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).context("cannot read its times")?;
        // The process name may contain any character and is in parentheses; after it comes field 3, the state.
        let (_, fields) = stat.rsplit_once(')').context("no name")?;
        let ticks = fields.split_whitespace().skip(14 - 3).take(4).map(str::parse);
        let ticks = ticks.collect::<Result<Vec<u32>, _>>()?;
        ensure!(ticks.len() == 4, "no times");
        Ok(Self { own: TICK * (ticks[0] + ticks[1]), children: TICK * (ticks[2] + ticks[3]) })
    }
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr())?)
}
