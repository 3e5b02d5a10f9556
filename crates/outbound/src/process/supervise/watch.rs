//! Waits for the end of a command or of the server, then ends everything that is left.
//!
//! There is no async runtime here and there are no signal handlers: two threads wait, one for the connection and one for
//! children.

use std::{
    collections::HashSet,
    io::Read as _,
    os::unix::net::UnixStream,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{
        Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, test_kill_process_group, wait,
    },
};

use super::NOT_STARTED;
use crate::process::{SIGNAL_BASE, descendants};

/// Time between SIGTERM and SIGKILL where no stop request gives another.
const DEFAULT_GRACE: Duration = Duration::from_secs(3);
/// How often processes are looked for while everything is being ended, and how long those that a command has left may
/// take to end by themselves.
const INTERVAL: Duration = Duration::from_millis(20);

/// What the threads report.
enum Event {
    /// The server requests the end, or is gone.
    Stop(Duration),
    /// A child has ended and is reaped.
    Ended(Pid, WaitStatus),
    /// There is no child any more.
    NoChildLeft,
}

/// Returns the exit code of the command when it and all of its descendants have ended.
pub(super) fn until_nothing_is_left(command: Pid, connection: UnixStream) -> u8 {
    let (events, inbox) = mpsc::channel();
    let reaped = events.clone();
    thread::spawn(move || await_stop(connection, &events));
    thread::spawn(move || reap(&reaped));

    let mut exit_code = NOT_STARTED;
    let mut no_child_left = false;
    let mut ending: Option<Ending> = None;
    loop {
        let event = match &ending {
            Some(ending) => inbox.recv_timeout(ending.next.saturating_duration_since(Instant::now())),
            None => inbox.recv().map_err(RecvTimeoutError::from),
        };
        let now = Instant::now();
        match event {
            Ok(Event::Stop(grace)) => {
                ending.get_or_insert_with(|| Ending::new(command, now)).kill_at_latest(now + grace);
            }
            Ok(Event::Ended(pid, status)) if pid == command => {
                exit_code = code(status);
                let ending = ending.get_or_insert_with(|| Ending::new(command, now + INTERVAL));
                ending.kill_at_latest(now + DEFAULT_GRACE);
            }
            Ok(Event::NoChildLeft) => no_child_left = true,
            Ok(Event::Ended(..)) | Err(_) => {}
        }
        // Where orphans are not our children, the process group is all that is known.
        if no_child_left && (cfg!(target_os = "linux") || test_kill_process_group(command).is_err()) {
            return exit_code;
        }
        if let Some(ending) = &mut ending {
            ending.signal_if_due(now);
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
    /// When the next signals are due.
    next: Instant,
    /// When SIGTERM is followed by SIGKILL.
    kill_at: Option<Instant>,
    /// Whom SIGTERM was sent: once, because many programs treat a second one as a request to give up their cleanup.
    terminated: HashSet<Pid>,
}

impl Ending {
    fn new(group: Pid, next: Instant) -> Self {
        Self { group, next, kill_at: None, terminated: HashSet::new() }
    }

    /// The earliest request counts.
    fn kill_at_latest(&mut self, at: Instant) {
        self.kill_at = Some(self.kill_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Sends the signal that is due to everybody who has not received it.
    fn signal_if_due(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        let is_kill = self.kill_at.is_some_and(|at| at <= now);
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
