//! The program under test as a process: built, started on a free loopback port with its own store, stopped by
//! SIGKILL or SIGTERM.
//!
//! Only the process started here is ever signalled, by its own id while it is still our unreaped child.
//! Deliberately not here: the requests sent to it, and what its responses mean.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command as Blocking, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::http::Connection;

const READY_LIMIT: Duration = Duration::from_secs(30);
const READY_POLL: Duration = Duration::from_millis(5);

/// A running a2ad. Dropping it kills the process.
pub(crate) struct Server {
    child: Child,
    log: PathBuf,
    /// Length of the log when this process was started; earlier processes may have written to it.
    log_start: usize,
    pub(crate) address: SocketAddr,
    /// From the start of the process to the first successful `/readyz`.
    pub(crate) ready_after: Duration,
}

/// Optional differences from the standard start.
#[derive(Default)]
pub(crate) struct Launch {
    /// Arguments before the program: a wrapper that executes it, such as `strace -D`.
    pub(crate) wrapper: Vec<OsString>,
    /// Arguments after the standard ones.
    pub(crate) arguments: Vec<OsString>,
    /// Environment variables.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// File for the program's output, if not next to the store.
    pub(crate) log: Option<PathBuf>,
}

impl Launch {
    /// A start with a configuration file, which is written next to the store.
    pub(crate) fn with_config(store: &Path, text: &str) -> Result<Self> {
        let config = store.with_extension("toml");
        fs::write(&config, text).context("cannot write a configuration")?;
        Ok(Self { arguments: vec!["--config".into(), config.into()], ..Self::default() })
    }
}

impl Server {
    /// Starts `program` on `store` and returns once it is ready. Its output goes to a file next to the store.
    pub(crate) async fn start(program: &Path, store: &Path) -> Result<Self> {
        Self::start_with(&Launch::default(), program, store).await
    }

    /// Starts `program` on `store` as `launch` describes and returns once it is ready.
    pub(crate) async fn start_with(launch: &Launch, program: &Path, store: &Path) -> Result<Self> {
        let started = Instant::now();
        let mut server = Self::spawn(launch, program, store)?;
        if let Some(status) = server.ended_before_ready().await? {
            bail!("the server ended before it was ready ({status})\n{}", server.log_tail());
        }
        server.ready_after = started.elapsed();
        Ok(server)
    }

    /// Starts `program` on `store` and does not wait until it is ready.
    pub(crate) fn spawn(launch: &Launch, program: &Path, store: &Path) -> Result<Self> {
        let address = free_address()?;
        let log = launch.log.clone().unwrap_or_else(|| store.with_extension("log"));
        let output = File::options().create(true).append(true).open(&log)?;
        let log_start = usize::try_from(output.metadata()?.len())?;
        let mut arguments = launch.wrapper.iter().map(OsString::as_os_str).chain([program.as_os_str()]);
        let mut command = Command::new(arguments.next().expect("the program is the last argument"));
        command
            .args(arguments)
            .arg("serve")
            .args(["--listen", &address.to_string()])
            .arg("--store")
            .arg(store)
            .args(&launch.arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true);
        for name in a2ad_variables() {
            command.env_remove(name);
        }
        command.envs(launch.variables.iter().map(|(name, value)| (name, value)));
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, log, log_start, address, ready_after: Duration::ZERO })
    }

    /// Waits until the program is ready; returns the exit status if it ends before.
    pub(crate) async fn ended_before_ready(&mut self) -> Result<Option<ExitStatus>> {
        match timeout(READY_LIMIT, self.wait_ready()).await {
            Ok(ended) => ended,
            Err(_) => bail!("the server was not ready within {READY_LIMIT:?}\n{}", self.log_tail()),
        }
    }

    /// The process id, while the process runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The exit status, if the program ends by itself within `limit`.
    pub(crate) async fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        match timeout(limit, self.child.wait()).await {
            Ok(status) => Ok(Some(status.context("cannot wait for the server")?)),
            Err(_) => Ok(None),
        }
    }

    /// The exit status, if the program has ended by itself.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Sends SIGKILL: no code of the program runs after it.
    pub(crate) async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Sends SIGTERM; returns the exit status if the program ends within `limit`.
    pub(crate) async fn terminate(mut self, limit: Duration) -> Result<ExitStatus> {
        let id = self.child.id().context("the server has already ended")?;
        let sent = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &id.to_string()]).status().await?;
        ensure!(sent.success(), "SIGTERM could not be sent");
        timeout(limit, self.child.wait())
            .await
            .map_err(|_| anyhow!("the server did not stop within {limit:?} of SIGTERM"))?
            .context("cannot wait for the server")
    }

    /// What this process has written to the log.
    pub(crate) fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(bytes.get(self.log_start..).unwrap_or_default()).into_owned()
    }

    /// The end of the log, for messages to the user.
    pub(crate) fn log_tail(&self) -> String {
        last_lines(&self.log())
    }

    async fn wait_ready(&mut self) -> Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            if is_ready(self.address).await {
                return Ok(None);
            }
            sleep(READY_POLL).await;
        }
    }
}

/// The last lines of a log, without the lines for each call.
pub(crate) fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.contains(r#""target":"a2ad::call""#)).collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// Builds the program with the test profile and returns its path as reported by cargo, so that every setting that
/// moves the target directory is honoured.
pub(crate) fn build() -> Result<PathBuf> {
    cargo_build(&[])
}

/// Builds the program with a fault compiled in (a cargo feature) and copies it to a separate directory. Only crates
/// with that feature are compiled again.
pub(crate) fn build_with(fault: &str) -> Result<PathBuf> {
    let built = cargo_build(&["--features", fault])?;
    let apart = target()?.join("faults");
    fs::create_dir_all(&apart).context("cannot create the directory of the program")?;
    let program = apart.join(format!("a2ad-{fault}"));
    fs::copy(&built, &program).context("cannot copy the program")?;
    Ok(program)
}

fn cargo_build(options: &[&str]) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Blocking::new(cargo);
    command.current_dir(workspace()).args([
        "build",
        "-p",
        "a2ad-cli",
        "--message-format=json-render-diagnostics",
    ]);
    let output = command.args(options).stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "a2ad could not be built");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(executable)
        .context("cargo built no program named a2ad")
}

pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a directory of the workspace")
}

/// The directory for build products and files of tests.
pub(crate) fn target() -> Result<PathBuf> {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(path) => Ok(std::path::absolute(PathBuf::from(path))?),
        None => Ok(workspace().join("target")),
    }
}

#[expect(clippy::disallowed_types, reason = "cargo's messages are parsed once; no numbers matter")]
fn executable(line: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["target"]["name"] != "a2ad" {
        return None;
    }
    message["executable"].as_str().map(PathBuf::from)
}

/// `A2AD_` variables of the developer's environment, which must not reach the program under test.
fn a2ad_variables() -> Vec<OsString> {
    std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.to_string_lossy().starts_with("A2AD_"))
        .collect()
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

async fn is_ready(address: SocketAddr) -> bool {
    match Connection::open(address).await {
        Ok(mut connection) => connection.get("/readyz").await.is_ok_and(|response| response.status == 200),
        Err(_) => false,
    }
}
