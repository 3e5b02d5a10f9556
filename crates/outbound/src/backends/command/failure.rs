//! How a call fails, as the client reads it.

use std::time::Duration;

use protocol::error::excerpt;

use super::output::Tail;
use crate::{backend::Reply, process::Exit};

/// The exit code of a failure that is temporary (`EX_TEMPFAIL` of `sysexits.h`).
const TEMPORARY: i32 = 75;

/// The command has ended without success.
pub(super) fn ended(exit: Exit, stderr: &Tail) -> Reply {
    let how = match exit {
        Exit::Code(code) => format!("the command ended with exit code {code}{}", meaning(code)),
        Exit::Signal(signal) => format!("the command was ended by {}", signal_name(signal)),
    };
    let text = stderr.appended_to(how);
    if exit == Exit::Code(TEMPORARY) { Reply::retry(text) } else { Reply::fail(text) }
}

pub(super) fn timed_out(timeout: Duration) -> String {
    format!("the command took longer than {} s and was ended", timeout.as_secs_f64())
}

pub(super) fn too_much_output(max: u64) -> String {
    format!("the command wrote more than {max} bytes of output and was ended")
}

/// A line of the JSON lines protocol that cannot be used.
pub(super) fn invalid_line(number: u64, line: &[u8], problem: &str) -> String {
    let line = excerpt(String::from_utf8_lossy(line.trim_ascii()).as_ref());
    format!("line {number} of the command's output, {line:?}: {problem}")
}

/// What shells, and the supervisor, mean by an exit code.
fn meaning(code: i32) -> &'static str {
    match code {
        TEMPORARY => " (a temporary failure)",
        126 => " (a program cannot be executed)",
        127 => " (a program was not found)",
        _ => "",
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}
