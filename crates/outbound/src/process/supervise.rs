//! The supervisor: a small process that runs one command and lets nothing of it survive.
//!
//! The program `a2ad` runs [`run`] as its hidden command `supervise`; a library user names a program that does the same
//! in [`Launcher::supervisor`](super::Launcher::supervisor). Standard input is the connection to the server: it first
//! carries the standard input of the command, then at most one stop request, and its end means that the server has
//! closed it or has died. Everything is ended then, and also when the command itself has ended.
//!
//! The supervisor is a child subreaper: a process whose parent ends becomes its child, also one that is in another
//! session. So all that the command has started are descendants, and `wait` reports when none is left. On systems other
//! than Linux only the process group of the command is ended.
//!
//! There is no async runtime here and there are no signal handlers: two threads wait, one for the connection and one for
//! children.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::OpenOptions,
    io::{self, Read as _, Write as _},
    os::{
        fd::AsFd as _,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::Path,
    process::{Child, Command, ExitCode},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{
        Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getrlimit, kill_process, kill_process_group,
        setrlimit, test_kill_process_group, wait,
    },
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};

use super::{SIGNAL_BASE, descendants, stdin_transfer};

/// The hidden command of the program `a2ad`.
pub const COMMAND: &str = "supervise";

const USAGE: &str = "usage: supervise [--memory BYTES] -- PROGRAM [ARGUMENT]...
This command is started by the server, which is connected to its standard input.";
/// Exit code if the command cannot be started, as in shells.
const NOT_STARTED: u8 = 126;
/// Exit code of invalid arguments.
const INVALID_ARGUMENTS: u8 = 2;
/// Time between SIGTERM and SIGKILL where no stop request gives another.
const DEFAULT_GRACE: Duration = Duration::from_secs(3);
/// How often processes are looked for while everything is being ended.
const INTERVAL: Duration = Duration::from_millis(20);

/// Runs the supervisor with the arguments after its name, until everything below it has ended. The exit code is that of
/// the command, or 128 and the number of the signal that ended it.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some(options) = Options::parse(arguments) else {
        report(USAGE);
        return INVALID_ARGUMENTS.into();
    };
    match options.start() {
        Ok((child, connection)) => watch(&child, connection).into(),
        Err(error) => {
            let program = Path::new(&options.program).file_name().unwrap_or(&options.program);
            report(&format!("cannot start {}: {error}", program.display()));
            NOT_STARTED.into()
        }
    }
}

/// What is written to the connection to stop the command with this grace period.
pub(super) fn stop_request(grace: Duration) -> [u8; 4] {
    u32::try_from(grace.as_millis()).unwrap_or(u32::MAX).to_le_bytes()
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

fn report(text: &str) {
    // If standard error is closed, there is nobody to read it.
    let _ = writeln!(io::stderr(), "{text}");
}

struct Options {
    memory: Option<u64>,
    program: OsString,
    arguments: Vec<OsString>,
}

impl Options {
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let mut memory = None;
        loop {
            match arguments.next()?.to_str()? {
                "--memory" => memory = Some(arguments.next()?.to_str()?.parse().ok()?),
                "--" => break,
                _ => return None,
            }
        }
        Some(Self { memory, program: arguments.next()?, arguments: arguments.collect() })
    }

    /// Starts the command; returns it and the connection to the server.
    fn start(&self) -> io::Result<(Child, UnixStream)> {
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        // The duplicate is closed in the command, whose own standard input replaces the original.
        let connection = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let stdin = stdin_transfer::receive(&connection)?;
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).process_group(0).stdin(stdin);
        let child = spawn(&mut command, self.memory)?;
        // So that the server sees the end of the streams when the command and its descendants close them.
        for replaced in [dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null)] {
            debug_assert!(replaced.is_ok(), "both descriptors are open");
        }
        Ok((child, connection))
    }
}

/// Starts a command under a memory limit. The soft limit is inherited from this process, which has it only meanwhile: it
/// must not itself run out of memory later. The hard limit follows at once.
fn spawn(command: &mut Command, memory: Option<u64>) -> io::Result<Child> {
    let Some(bytes) = memory else { return command.spawn() };
    let own = getrlimit(Resource::Data);
    setrlimit(Resource::Data, Rlimit { current: Some(bytes), ..own })?;
    let spawned = command.spawn();
    setrlimit(Resource::Data, own)?;
    let child = spawned?;
    if let Err(error) = limit_memory(Pid::from_child(&child), bytes) {
        // An error of `kill` or `wait` means that it has ended.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        return Err(error);
    }
    Ok(child)
}

/// What the threads report.
enum Event {
    /// The server requests the end, or is gone.
    Stop(Duration),
    /// A child has ended and is reaped.
    Ended(Pid, WaitStatus),
    /// There is no child any more.
    NoChildLeft,
}

/// Waits for the end of the command or of the server, then ends everything. Returns the exit code.
fn watch(child: &Child, connection: UnixStream) -> u8 {
    let command = Pid::from_child(child);
    let (events, inbox) = mpsc::channel();
    let reaped = events.clone();
    thread::spawn(move || await_stop(connection, &events));
    thread::spawn(move || reap(&reaped));

    let mut exit_code = NOT_STARTED;
    let mut no_child_left = false;
    let mut ending: Option<Ending> = None;
    loop {
        let event = match ending {
            Some(_) => inbox.recv_timeout(INTERVAL),
            None => inbox.recv().map_err(RecvTimeoutError::from),
        };
        match event {
            Ok(Event::Stop(grace)) => ending.get_or_insert_with(|| Ending::new(command)).kill_after(grace),
            Ok(Event::Ended(pid, status)) if pid == command => {
                exit_code = code(status);
                ending.get_or_insert_with(|| Ending::new(command)).kill_after(DEFAULT_GRACE);
            }
            Ok(Event::NoChildLeft) => no_child_left = true,
            Ok(Event::Ended(..)) | Err(_) => {}
        }
        // Where orphans are not our children, the process group is all that is known.
        if no_child_left && (cfg!(target_os = "linux") || test_kill_process_group(command).is_err()) {
            return exit_code;
        }
        if let Some(ending) = &mut ending {
            ending.signal();
        }
    }
}

/// Reads the connection: a stop request, or its end.
fn await_stop(mut connection: UnixStream, events: &Sender<Event>) {
    let mut request = [0; 4];
    let grace = match connection.read_exact(&mut request) {
        Ok(()) => Duration::from_millis(u32::from_le_bytes(request).into()),
        Err(_) => DEFAULT_GRACE,
    };
    // The main thread receives until the process ends.
    let _ = events.send(Event::Stop(grace));
}

/// Reaps children until none is left. The children of a process that ends become ours before it can be reaped, so none
/// is missed.
fn reap(events: &Sender<Event>) {
    loop {
        let event = match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => Event::Ended(pid, status),
            Ok(None) | Err(Errno::INTR) => continue,
            Err(_) => {
                let _ = events.send(Event::NoChildLeft);
                return;
            }
        };
        let _ = events.send(event);
    }
}

/// Everything is being ended.
struct Ending {
    group: Pid,
    /// When SIGTERM is followed by SIGKILL.
    kill_at: Option<Instant>,
    /// Whom SIGTERM was sent: once, because many programs treat a second one as a request to give up their cleanup.
    terminated: HashSet<Pid>,
}

impl Ending {
    fn new(group: Pid) -> Self {
        Self { group, kill_at: None, terminated: HashSet::new() }
    }

    /// The earliest request counts.
    fn kill_after(&mut self, grace: Duration) {
        let at = Instant::now() + grace;
        self.kill_at = Some(self.kill_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Sends the signal that is due to everybody who has not received it.
    fn signal(&mut self) {
        let is_kill = self.kill_at.is_some_and(|at| at <= Instant::now());
        let Some(descendants) = descendants::list() else {
            if is_kill || self.terminated.insert(self.group) {
                let _ = kill_process_group(self.group, if is_kill { Signal::KILL } else { Signal::TERM });
            }
            return;
        };
        if is_kill && descendants.iter().any(|process| process.group == self.group.as_raw_pid()) {
            // Also reaches what a member of the group starts at this moment.
            let _ = kill_process_group(self.group, Signal::KILL);
        }
        for process in descendants {
            // An error means that it has ended meanwhile, or has another user; it is looked for again.
            if is_kill {
                let _ = kill_process(process.pid, Signal::KILL);
            } else if self.terminated.insert(process.pid) {
                let _ = kill_process(process.pid, Signal::TERM);
            }
        }
    }
}

fn code(status: WaitStatus) -> u8 {
    let signal = || Some(SIGNAL_BASE + status.terminating_signal()?);
    let code = status.exit_status().or_else(signal).unwrap_or_default();
    u8::try_from(code).unwrap_or(u8::MAX)
}
