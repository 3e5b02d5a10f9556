//! Fault injection with strace: system calls of the server on certain files fail from a given one on.
//!
//! strace runs as a separate process (`-D`), so that the server stays our child with its own exit status. Calls are
//! counted per thread. strace's output contains the time of the first injected failure.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::disk::Moment;
use crate::package;
use crate::server::Launch;

/// Which calls fail, and with which error.
pub(crate) struct FaultInjection<'a> {
    pub(crate) calls: &'a str,
    pub(crate) error: &'a str,
    /// Number of the first call that fails.
    pub(crate) first: u64,
    /// Whether all later calls fail too.
    pub(crate) lasting: bool,
    /// The affected files; empty for all.
    pub(crate) files: &'a [PathBuf],
}

/// Makes sure that strace is installed; tries to install it otherwise.
pub(crate) fn ensure_strace() -> Result<()> {
    package::ensure_installed("strace", || can_run("strace", "--version"))
}

/// A start under strace with this fault; strace's output goes to `trace`.
pub(crate) fn launch(injection: &FaultInjection<'_>, trace: &Path) -> Launch {
    let FaultInjection { calls, error, first, lasting, files } = injection;
    let when = if *lasting { format!("{first}+") } else { first.to_string() };
    // Only the selected calls stop the server, so that it runs at its normal speed.
    let mut wrapper: Vec<OsString> = ["strace", "-D", "-f", "-qq", "--seccomp-bpf", "-ttt", "-o"]
        .iter()
        .map(OsString::from)
        .chain([trace.into()])
        .collect();
    for option in [format!("trace={calls}"), format!("inject={calls}:error={error}:when={when}")] {
        wrapper.extend(["-e".into(), option.into()]);
    }
    for file in *files {
        wrapper.extend(["-P".into(), file.into()]);
    }
    Launch { wrapper, ..Launch::default() }
}

/// The time of the first injected failure, if there was one.
pub(crate) fn first_failure(trace: &Path) -> Result<Option<Moment>> {
    let trace_text = fs::read(trace).context("strace has written no output")?;
    Ok(read_first_failure(&String::from_utf8_lossy(&trace_text)))
}

fn read_first_failure(trace_text: &str) -> Option<Moment> {
    let line = trace_text.lines().find(|line| line.contains("(INJECTED)"))?;
    let seconds = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(Moment::from_seconds(seconds))
}

fn can_run(program: &str, argument: &str) -> bool {
    let run = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}
