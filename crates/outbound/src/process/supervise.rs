//! The supervisor: a small process that runs one command and lets nothing of it survive.
//!
//! The program `a2ad` runs [`run`] as its hidden command `supervise`; a library user names a program that does the same
//! in [`Launcher::supervisor`](super::Launcher::supervisor). Standard input is the connection to the server. It first
//! carries the standard input of the command, then at most one stop request, and its end means that the server has
//! closed it or has died. Everything is ended then, and also when the command itself has ended. In the other direction it
//! carries the process id of the command, for a server whose supervisor was killed.
//!
//! The supervisor is a child subreaper: a process whose parent ends becomes its child, also one that is in another
//! session. So all that the command has started are descendants, and `wait` reports when none is left. On systems other
//! than Linux only the process group of the command is ended.

mod watch;

use std::{
    env,
    ffi::OsString,
    fs::{OpenOptions, remove_dir_all},
    io::{self, Write as _},
    os::{
        fd::AsFd as _,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode},
    time::Duration,
};

use rustix::{
    process::{Pid, Resource, Rlimit, setrlimit},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};

use super::stdin_transfer;

/// The hidden command of the program `a2ad`.
pub const COMMAND: &str = "supervise";

/// The maximum memory of the command, in bytes.
pub(super) const MEMORY: &str = "--memory";
/// A folder that is removed at the end.
pub(super) const REMOVE: &str = "--remove";
/// Instead of supervising: limits this process to so many bytes of memory and becomes the command.
const BECOME: &str = "--become-with-memory";

const USAGE: &str = "usage: supervise [--memory BYTES] [--remove FOLDER] -- PROGRAM [ARGUMENT]...
This command is started by the server, which is connected to its standard input.";
/// The name of the process in process lists. With that of the server, `killall -9 a2ad` would also end those who have to
/// clean up after it.
const PROCESS_NAME: &str = "supervise";
/// Exit code if the command cannot be started, as in shells.
const NOT_STARTED: u8 = 126;
/// Exit code of invalid arguments.
const INVALID_ARGUMENTS: u8 = 2;

/// Runs the supervisor with the arguments after its name, until everything below it has ended. The exit code is that of
/// the command, or 128 and the number of the signal that ended it.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some(options) = Options::parse(arguments) else {
        report(USAGE);
        return INVALID_ARGUMENTS.into();
    };
    let started = match options.become_with {
        Some(memory) => Err(options.become_command(memory)),
        None => options.start(),
    };
    let code = match started {
        Ok((child, connection)) => watch::until_nothing_is_left(Pid::from_child(&child), connection),
        Err(error) => {
            let program = Path::new(&options.program).file_name().unwrap_or(&options.program);
            report(&format!("cannot start {}: {error}", program.display()));
            NOT_STARTED
        }
    };
    if let Some(folder) = &options.remove {
        // The server may have removed it.
        let _ = remove_dir_all(folder);
    }
    code.into()
}

/// What is written to the connection to stop the command with this grace period.
pub(super) fn stop_request(grace: Duration) -> [u8; 4] {
    u32::try_from(grace.as_millis()).unwrap_or(u32::MAX).to_le_bytes()
}

fn report(text: &str) {
    // If standard error is closed, there is nobody to read it.
    let _ = writeln!(io::stderr(), "{text}");
}

#[derive(Default)]
struct Options {
    memory: Option<u64>,
    remove: Option<PathBuf>,
    become_with: Option<u64>,
    program: OsString,
    arguments: Vec<OsString>,
}

impl Options {
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let mut options = Self::default();
        let bytes = |value: Option<OsString>| value?.to_str()?.parse().ok();
        loop {
            match arguments.next()?.to_str()? {
                MEMORY => options.memory = Some(bytes(arguments.next())?),
                BECOME => options.become_with = Some(bytes(arguments.next())?),
                REMOVE => options.remove = Some(arguments.next()?.into()),
                "--" => break,
                _ => return None,
            }
        }
        Some(Self { program: arguments.next()?, arguments: arguments.collect(), ..options })
    }

    /// Starts the command; returns it and the connection to the server.
    fn start(&self) -> io::Result<(Child, UnixStream)> {
        set_process_name();
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        // The duplicate is closed in the command, whose own standard input replaces the original.
        let mut connection = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let stdin = stdin_transfer::receive(&connection)?;
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        let child = self.command()?.process_group(0).stdin(stdin).spawn()?;
        // A server that is gone needs no process id.
        let _ = connection.write_all(&child.id().to_le_bytes());
        // So that the server sees the end of the streams when the command and its descendants close them.
        for replaced in [dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null)] {
            debug_assert!(replaced.is_ok(), "both descriptors are open");
        }
        Ok((child, connection))
    }

    /// A limit must hold from the first instruction of the command, but not for the supervisor, which may need more. So a
    /// second process of this program limits itself and becomes the command.
    fn command(&self) -> io::Result<Command> {
        let mut command = match self.memory {
            None => Command::new(&self.program),
            Some(memory) => {
                let mut command = Command::new(this_program()?);
                command.args([COMMAND, BECOME, &memory.to_string(), "--"]).arg(&self.program);
                command
            }
        };
        command.args(&self.arguments);
        Ok(command)
    }

    /// Returns only if it fails.
    fn become_command(&self, memory: u64) -> io::Error {
        let limit = Rlimit { current: Some(memory), maximum: Some(memory) };
        match setrlimit(Resource::Data, limit) {
            Ok(()) => Command::new(&self.program).args(&self.arguments).exec(),
            Err(error) => error.into(),
        }
    }
}

/// The program that runs now, even if its file was replaced or deleted meanwhile.
pub(super) fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { env::current_exe() }
}

fn set_process_name() {
    if cfg!(target_os = "linux") {
        // Only the name is lost otherwise.
        let _ = std::fs::write("/proc/self/comm", PROCESS_NAME);
    }
}

/// Limits the memory for data of a process that runs already. Processes that it has started before keep their limit.
#[cfg(target_os = "linux")]
pub(super) fn limit_memory(pid: Pid, bytes: u64) -> io::Result<()> {
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    rustix::process::prlimit(Some(pid), Resource::Data, limit)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn limit_memory(_: Pid, _: u64) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "a memory limit needs Linux; remove `memory`"))
}
