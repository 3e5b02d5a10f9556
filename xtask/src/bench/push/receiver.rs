//! The process that receives notifications, the program `receiver` of `bench/`.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::super::dirs::BenchDirs;
use super::super::figures::Fields;
use super::super::server::CpuTimes;

/// A running receiver; dropping it kills the process.
pub(super) struct Receiver {
    child: Child,
    commands: ChildStdin,
    reports: Lines<BufReader<ChildStdout>>,
    urls: String,
}

/// The notifications that arrived after responses were released.
pub(super) struct Arrived {
    pub(super) notifications: f64,
    seconds: f64,
}

impl Arrived {
    pub(super) fn rate(&self) -> f64 {
        self.notifications / self.seconds
    }
}

impl Receiver {
    pub(super) async fn start(dirs: &BenchDirs, ports: usize) -> Result<Self> {
        let mut child = Command::new(dirs.bench.join("receiver"))
            .args(["--ports", &ports.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the receiver")?;
        let commands = child.stdin.take().context("the receiver has no input")?;
        let mut reports = BufReader::new(child.stdout.take().context("the receiver has no output")?).lines();
        let urls = reports.next_line().await?.context("the receiver did not start")?;
        Ok(Self { child, commands, reports, urls })
    }

    /// The URLs of all ports, separated by commas. Each port is a host of its own for the server.
    pub(super) fn urls(&self) -> String {
        self.urls.clone()
    }

    /// The URL of the first port.
    pub(super) fn url(&self) -> String {
        self.urls.split(',').next().unwrap_or_default().to_owned()
    }

    /// Forgets what has arrived and holds responses back.
    pub(super) async fn hold(&mut self) -> Result<()> {
        self.command("hold").await
    }

    /// Responds to what was held back and to what follows.
    pub(super) async fn release(&mut self) -> Result<()> {
        self.command("release").await
    }

    /// Waits until this many notifications have arrived since responses were held back.
    pub(super) async fn wait(&mut self, notifications: u64) -> Result<Arrived> {
        self.command(&format!("wait {notifications}")).await?;
        let line = self.reports.next_line().await?.context("not all notifications have arrived")?;
        let fields = Fields::decode(line.as_bytes())?;
        let arrived =
            Arrived { notifications: fields.get("notifications")?, seconds: fields.get("seconds")? };
        ensure!(arrived.notifications > 0.0 && arrived.seconds > 0.0, "too few notifications: {line}");
        Ok(arrived)
    }

    pub(super) fn cpu_time(&self) -> Result<Duration> {
        let pid = self.child.id().context("the receiver has ended")?;
        Ok(CpuTimes::of(&pid.to_string())?.own)
    }

    async fn command(&mut self, line: &str) -> Result<()> {
        let sent = self.commands.write_all(format!("{line}\n").as_bytes()).await;
        sent.context("the receiver has ended")
    }
}
