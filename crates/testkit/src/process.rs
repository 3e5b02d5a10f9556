//! The program under test as a process: started on a free loopback port with its own store and its output in a file,
//! stopped by SIGKILL or SIGTERM.
//!
//! Only the process started here is ever signalled, by its own id while it is still our unreaped child.
//! Deliberately not here: the build of the program, the requests sent to it, and what its responses mean.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::{Error, LIMIT, http1};

/// Lets the system choose a free port.
pub const ANY_PORT: &str = "127.0.0.1:0";

/// The extension of the file for stdout.
const OUTPUT: &str = "out";
const POLL: Duration = Duration::from_millis(5);
/// Lines at the end of a log that are shown to the user.
const TAIL_LINES: usize = 20;

/// A running a2ad. Dropping it kills the process.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: PathBuf,
    /// Length of the log when this process was started; earlier processes may have written to it.
    log_start: usize,
    /// The address in the log; port 0 until the process is ready.
    pub address: SocketAddr,
    started: Instant,
    /// From the start of the process to the first successful `/readyz`.
    pub ready_after: Duration,
    /// The limit of the start.
    limit: Duration,
    /// The directory of the log, if it is temporary.
    _folder: Option<TempDir>,
}

/// Optional differences from the standard start.
#[derive(Debug, Default)]
pub struct Launch {
    /// Arguments before the program: a wrapper that executes it, such as `strace -D`.
    pub wrapper: Vec<OsString>,
    /// Arguments after the standard ones.
    pub arguments: Vec<OsString>,
    /// Environment variables.
    pub variables: Vec<(OsString, OsString)>,
    /// File for the program's output, if not next to the store.
    pub log: Option<PathBuf>,
}

impl Launch {
    /// A start with a configuration file, which is written next to the store.
    pub fn with_config(store: &Path, text: &str) -> Result<Self, Error> {
        let config = store.with_extension("toml");
        fs::write(&config, text).map_err(|error| failed("cannot write a configuration", error))?;
        Ok(Self { arguments: vec!["--config".into(), config.into()], ..Self::default() })
    }
}

/// A program without input and without the variables of the developer's environment that change what a2ad does. It is
/// killed when its handle is dropped.
pub fn command(program: impl Into<OsString>) -> Command {
    /// The shared secret, and the variables of hosting providers that mean production.
    const OTHERS: [&str; 9] = [
        "A2A_SECRET",
        "NETLIFY",
        "AWS_LAMBDA_FUNCTION_NAME",
        "CF_PAGES",
        "CLOUDFLARE_WORKERS",
        "VERCEL",
        "RENDER",
        "FLY_APP_NAME",
        "K_SERVICE",
    ];
    let mut command = Command::new(program.into());
    command.stdin(Stdio::null()).kill_on_drop(true);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("A2AD_")) {
        command.env_remove(name);
    }
    for name in OTHERS {
        command.env_remove(name);
    }
    command
}

impl Server {
    /// Starts `program` on `store` and returns once it is ready. Its output goes to a file next to the store.
    pub async fn start(program: &Path, store: &Path) -> Result<Self, Error> {
        Self::start_with(&Launch::default(), program, store).await
    }

    /// Starts `program` on `store` as `launch` describes and returns once it is ready.
    pub async fn start_with(launch: &Launch, program: &Path, store: &Path) -> Result<Self, Error> {
        Self::spawn(launch, program, store)?.ready().await
    }

    /// Starts `program` on `store` and does not wait until it is ready.
    pub fn spawn(launch: &Launch, program: &Path, store: &Path) -> Result<Self, Error> {
        let mut arguments = launch.wrapper.iter().cloned().chain([program.into()]);
        let mut command = command(arguments.next().unwrap_or_default());
        command.args(arguments).args(["serve", "--listen", ANY_PORT, "--store"]).arg(store);
        command.args(&launch.arguments).envs(launch.variables.iter().map(|(name, value)| (name, value)));
        let log = launch.log.clone().unwrap_or_else(|| store.with_extension("log"));
        Self::spawn_command(command, log)
    }

    /// Starts a command that serves, with its output in temporary files, and returns once it is ready.
    pub async fn start_command(command: Command) -> Result<Self, Error> {
        Self::start_command_within(LIMIT, command).await
    }

    /// Like [`Self::start_command`], with another limit of the start.
    pub async fn start_command_within(limit: Duration, command: Command) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let server = Self::spawn_command(command, folder.path().join("server.log"))?;
        Self { _folder: Some(folder), limit, ..server }.ready().await
    }

    /// Starts a command that serves. Its log is appended to the file `log`, its other output to a file next to it.
    pub fn spawn_command(mut command: Command, log: PathBuf) -> Result<Self, Error> {
        let (stdout, stderr) = (append(&log.with_extension(OUTPUT))?, append(&log)?);
        let log_start = usize::try_from(stderr.metadata()?.len()).unwrap_or(usize::MAX);
        let started = Instant::now();
        let child = command.stdout(stdout).stderr(stderr).kill_on_drop(true).spawn();
        let child = child.map_err(|error| failed(&format!("cannot start {command:?}"), error))?;
        let (address, ready_after) = (SocketAddr::from(([127, 0, 0, 1], 0)), Duration::ZERO);
        Ok(Self { child, log, log_start, address, started, ready_after, limit: LIMIT, _folder: None })
    }

    /// Returns once the program is ready; an error if it ends before.
    pub async fn ready(mut self) -> Result<Self, Error> {
        match self.ended_before_ready().await? {
            None => Ok(self),
            Some(status) => Err(self.failed(&format!("the server ended before it was ready ({status})"))),
        }
    }

    /// Waits until the program is ready; returns the exit status if it ends before.
    pub async fn ended_before_ready(&mut self) -> Result<Option<ExitStatus>, Error> {
        match timeout(self.limit, self.wait_ready()).await {
            Ok(ended) => ended,
            Err(_) => Err(self.failed(&format!("the server was not ready within {:?}", self.limit))),
        }
    }

    /// Waits until this process has logged a text.
    pub async fn wait_for_log(&self, text: &str) -> Result<(), Error> {
        let logged = async {
            while !self.log().contains(text) {
                sleep(POLL).await;
            }
        };
        let logged = timeout(LIMIT, logged).await;
        logged.map_err(|_| self.failed(&format!("the server did not log {text:?} within {LIMIT:?}")))
    }

    /// The process id, while the process runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The origin of its URLs.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The exit status, if the program ends by itself within `limit`.
    pub async fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>, Error> {
        timeout(limit, self.child.wait()).await.ok().transpose().map_err(Into::into)
    }

    /// The exit status, if the program has ended by itself.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        Ok(self.child.try_wait()?)
    }

    /// Sends SIGKILL: no code of the program runs after it.
    pub async fn kill(mut self) -> Result<(), Error> {
        Ok(self.child.kill().await?)
    }

    /// Sends SIGTERM; returns the exit status if the program ends within `limit`.
    pub async fn terminate(mut self, limit: Duration) -> Result<ExitStatus, Error> {
        self.signal(Signal::TERM)?;
        let status = self.wait(limit).await?;
        status.ok_or_else(|| self.failed(&format!("the server did not stop within {limit:?} of SIGTERM")))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), Error> {
        let id = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| self.failed("the server has already ended"))?;
        kill_process(id, signal).map_err(|error| failed("cannot send a signal", error))
    }

    /// What this process has written to the log.
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(bytes.get(self.log_start..).unwrap_or_default()).into_owned()
    }

    /// What has been written to stdout.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log.with_extension(OUTPUT)).unwrap_or_default()).into_owned()
    }

    /// The end of the log, for messages to the user.
    pub fn log_tail(&self) -> String {
        last_lines(&self.log())
    }

    async fn wait_ready(&mut self) -> Result<Option<ExitStatus>, Error> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            if self.address.port() == 0 {
                self.address = address_in(&self.log()).unwrap_or(self.address);
            }
            if self.address.port() != 0 && is_ready(self.address).await {
                self.ready_after = self.started.elapsed();
                return Ok(None);
            }
            sleep(POLL).await;
        }
    }

    fn failed(&self, what: &str) -> Error {
        Error::Process(format!("{what}\n{}", self.log_tail()))
    }
}

fn append(path: &Path) -> Result<File, Error> {
    let file = File::options().create(true).append(true).open(path);
    file.map_err(|error| failed(&format!("cannot open {}", path.display()), error))
}

/// The last lines of a log, without the lines for each call.
pub fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.contains(r#""target":"a2ad::call""#)).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// The address in the log line of a server that has begun to listen.
fn address_in(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once(r#""url":"http://"#)?;
    rest.split_once('"')?.0.parse().ok()
}

async fn is_ready(address: SocketAddr) -> bool {
    http1::request(address, "GET", "/readyz", &[], &[]).await.is_ok_and(|response| response.status == 200)
}

fn failed(what: &str, error: impl std::fmt::Display) -> Error {
    Error::Process(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_found_in_a_complete_line() {
        let log = "{\"level\":\"INFO\"}\n{\"url\":\"http://127.0.0.1:4242\",\"x\":1}\n";
        assert_eq!(address_in(log), Some(SocketAddr::from(([127, 0, 0, 1], 4242))));
        assert_eq!(address_in(&log[..log.len() - 10]), None);
        assert_eq!(address_in(""), None);
    }
}
