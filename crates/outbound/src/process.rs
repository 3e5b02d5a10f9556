//! Child processes of backends: a clean environment, pipes, and an end that includes everything they have started.
//!
//! With a supervisor ([`supervise`]) a command runs below a small process that ends the command and all of its
//! descendants when it is asked to, when the command has ended, and when the server dies. Without one, only the process
//! group of the command is ended, and nothing ends it when the server is killed.

mod descendants;
mod program;
mod stdin_transfer;
pub mod supervise;

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net::UnixStream, process::ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// What a command gets of the server's environment.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
/// The name of a supervisor in its own arguments, which process lists show.
const SUPERVISOR_NAME: &str = "a2ad";
/// How long killed processes may take to disappear, in addition to the grace period.
const KILL_TIME: Duration = Duration::from_secs(1);
/// An exit code above it is a signal, as shells report it.
const SIGNAL_BASE: i32 = 128;
/// Largest signal number.
const MAX_SIGNAL: i32 = 64;

/// A command to start: no shell, and only the listed environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// The program and its arguments; at least the program. A program without a slash is searched in `PATH`, a relative
    /// path starts at `cwd`.
    pub argv: Vec<String>,
    /// The environment beside `PATH`, `HOME`, `LANG` and `TMPDIR` of the server, which it may replace.
    pub env: BTreeMap<String, String>,
    /// The working directory; `None`: that of the server.
    pub cwd: Option<PathBuf>,
    /// Maximum memory for data (`RLIMIT_DATA`) of each process, in bytes. Linux only.
    pub memory: Option<u64>,
}

impl Launch {
    /// The path of the program that would be started.
    ///
    /// # Errors
    ///
    /// There is none. The text names the program.
    pub fn program(&self) -> io::Result<PathBuf> {
        let name = self.argv.first().ok_or_else(|| io::Error::other("the command is empty"))?;
        program::find(name, self)
    }
}

/// Starts processes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Launcher {
    /// The program that calls [`supervise::run`] if its first argument is [`supervise::COMMAND`]; `None`: children are
    /// started directly.
    pub supervisor: Option<PathBuf>,
}

/// A running process with everything it has started. Dropping it ends all of that in the background.
pub struct Process {
    child: Child,
    parent: Parent,
    /// Standard input; dropped to close it.
    pub stdin: Option<ChildStdin>,
    /// Standard output.
    pub stdout: Option<ChildStdout>,
    /// Standard error.
    pub stderr: Option<ChildStderr>,
}

/// Who started the command, and how it is reached.
enum Parent {
    /// The supervisor, which ends everything when this connection is closed.
    Supervisor { connection: UnixStream },
    /// This process. The process group of the command; `None` after its end.
    Server { group: Option<Pid> },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(out, "with exit code {code}"),
            Self::Signal(signal) => write!(out, "by signal {signal}"),
        }
    }
}

impl Launcher {
    /// Supervises with the running program.
    ///
    /// # Errors
    ///
    /// The path of the program is unknown. Not on Linux.
    pub fn supervised_by_this_program() -> io::Result<Self> {
        Ok(Self { supervisor: Some(supervise::this_program()?) })
    }

    /// Starts a command in a process group of its own.
    ///
    /// # Errors
    ///
    /// The program does not exist or cannot be executed; the text names the program. With a supervisor, some problems
    /// are only found by it: then the process ends with exit code 126 and a text on standard error.
    pub fn start(&self, launch: &Launch) -> io::Result<Process> {
        self.start_with_folder(launch, None)
    }

    /// Like [`start`](Self::start), for a command that uses files in a folder: the supervisor removes it at the end, so
    /// that it is removed even if the server dies. Without a supervisor this is left to the caller.
    pub(crate) fn start_with_folder(&self, launch: &Launch, folder: Option<&Path>) -> io::Result<Process> {
        let (name, arguments) =
            launch.argv.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
        if let Some(cwd) = launch.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
            let text = format!("the working directory {} of {name:?} does not exist", cwd.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let program = program::find(name, launch)?;
        let started = match &self.supervisor {
            Some(supervisor) => start_supervised(supervisor, &program, arguments, launch, folder),
            None => start_directly(&program, arguments, launch),
        };
        started.map_err(|error| io::Error::new(error.kind(), format!("cannot start {name:?}: {error}")))
    }
}

/// Starts the supervisor. Its standard input is the connection to it, through which it gets the standard input of the
/// command.
fn start_supervised(
    supervisor: &Path,
    program: &Path,
    arguments: &[String],
    launch: &Launch,
    folder: Option<&Path>,
) -> io::Result<Process> {
    // Both ends are closed in every other child: the supervisor sees the end of the stream when this process dies.
    let (connection, remote) = UnixStream::pair()?;
    let (stdin, stdin_writer) = io::pipe()?;
    stdin_transfer::send(&connection, stdin.as_fd())?;
    let mut command = command(supervisor, launch);
    command.arg0(SUPERVISOR_NAME).arg(supervise::COMMAND);
    if let Some(memory) = launch.memory {
        command.arg(supervise::MEMORY).arg(memory.to_string());
    }
    if let Some(folder) = folder {
        command.arg(supervise::REMOVE).arg(folder);
    }
    command.arg("--").arg(program).args(arguments).stdin(OwnedFd::from(remote));
    let mut child = command.spawn()?;
    let stdin = ChildStdin::from_std(OwnedFd::from(stdin_writer).into())?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    Ok(Process { child, parent: Parent::Supervisor { connection }, stdin: Some(stdin), stdout, stderr })
}

fn start_directly(program: &Path, arguments: &[String], launch: &Launch) -> io::Result<Process> {
    let mut command = command(program, launch);
    command.args(arguments).stdin(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let (Some(pid), Some(bytes)) = (group, launch.memory) {
        supervise::limit_memory(pid, bytes)?;
    }
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    Ok(Process { child, parent: Parent::Server { group }, stdin, stdout, stderr })
}

/// What both ways to start have in common.
fn command(program: &Path, launch: &Launch) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(&launch.env).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name).filter(|_| !launch.env.contains_key(name)) {
            command.env(name, value);
        }
    }
    if let Some(cwd) = &launch.cwd {
        command.current_dir(cwd);
    }
    command
}

impl Process {
    /// Waits for its end; the exit code, or `None` if a signal ended it. Cancel safe.
    pub async fn wait(&mut self) -> io::Result<Option<i32>> {
        match self.exit().await? {
            Exit::Code(code) => Ok(Some(code)),
            Exit::Signal(_) => Ok(None),
        }
    }

    /// Waits for its end and that of everything it has started, which is ended with it. Cancel safe.
    ///
    /// # Errors
    ///
    /// The supervisor was killed. Then the process group of the command is killed too.
    pub async fn exit(&mut self) -> io::Result<Exit> {
        let status = self.child.wait().await?;
        self.kill_group();
        match (&self.parent, status.signal()) {
            // The signal that ended a command is an exit code of its supervisor.
            (Parent::Supervisor { .. }, Some(signal)) => {
                Err(io::Error::other(format!("the supervisor of the command was ended by signal {signal}")))
            }
            _ => Ok(Exit::from(status)),
        }
    }

    /// Asks everything to end (SIGTERM), and kills what is left after `grace`. Returns when it is gone, or after another
    /// second; then the supervisor goes on.
    pub async fn stop(&mut self, grace: Duration) {
        match &mut self.parent {
            Parent::Supervisor { connection } => {
                // Without a supervisor to read it, there is nothing left to stop.
                let _ = connection.write_all(&supervise::stop_request(grace));
                let _ = timeout(grace + KILL_TIME, self.exit()).await;
            }
            Parent::Server { group } => {
                if let Some(group) = *group {
                    let _ = kill_process_group(group, Signal::TERM);
                }
                let _ = timeout(grace, self.child.wait()).await;
                self.kill_group();
                let _ = timeout(KILL_TIME, self.child.wait()).await;
            }
        }
    }

    /// Kills what only this process can end: the process group of a command without supervisor, or of one whose
    /// supervisor has ended, which has left nothing unless it was killed. Once: later the group's id may be that of
    /// another group.
    fn kill_group(&mut self) {
        let group = match &mut self.parent {
            Parent::Server { group } => group.take(),
            Parent::Supervisor { connection } => match self.child.try_wait() {
                Ok(Some(status)) if status.signal().is_some() => received_pid(connection),
                _ => None,
            },
        };
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The process id that a supervisor has sent; `None` if it has started nothing, and when called again.
fn received_pid(connection: &mut UnixStream) -> Option<Pid> {
    let mut pid = [0; 4];
    connection.set_nonblocking(true).ok()?;
    connection.read_exact(&mut pid).ok()?;
    Pid::from_raw(i32::from_le_bytes(pid))
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) if (SIGNAL_BASE + 1..=SIGNAL_BASE + MAX_SIGNAL).contains(&code) => {
                Self::Signal(code - SIGNAL_BASE)
            }
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}
