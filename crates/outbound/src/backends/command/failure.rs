//! How a call fails, as the client reads it.

use std::time::Duration;

use super::output::Tail;
use crate::{backend::Reply, process::Exit};

/// The exit code of a failure that is temporary (`EX_TEMPFAIL` of `sysexits.h`).
const TEMPORARY: i32 = 75;

/// The command has ended without success.
pub(super) fn ended(exit: Exit, stderr: &Tail) -> Reply {
    let how = match exit {
        Exit::Code(code) => format!("the command ended with exit code {code}"),
        Exit::Signal(signal) => format!("the command was ended by {}", signal_name(signal)),
    };
    let text = if stderr.text().is_empty() { how } else { format!("{how}: {}", stderr.text()) };
    if exit == Exit::Code(TEMPORARY) { Reply::retry(text) } else { Reply::fail(text) }
}

pub(super) fn timed_out(timeout: Duration) -> Reply {
    Reply::fail(format!("the command took longer than {} s and was ended", timeout.as_secs_f64()))
}

pub(super) fn too_much_output(max: u64) -> Reply {
    Reply::fail(format!("the command wrote more than {max} bytes of output and was ended"))
}

/// A line of the JSON lines protocol that cannot be used.
pub(super) fn invalid_line(number: u64, problem: &str) -> Reply {
    Reply::fail(format!("line {number} of the command's output: {problem}"))
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}
