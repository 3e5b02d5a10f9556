//! Failures by strace: system calls of the server that touch certain files fail from a certain one on.
//!
//! strace runs beside the server and not above it (`-D`), so that the server stays our child with its own exit
//! status. Calls are counted by thread. What strace writes says when the first call was made to fail.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::disk::Moment;
use crate::server::Launch;

/// Which calls fail, and how.
pub(crate) struct Tampering<'a> {
    pub(crate) calls: &'a str,
    pub(crate) error: &'a str,
    /// The first call that fails.
    pub(crate) first: u64,
    /// Whether the later ones fail too.
    pub(crate) lasting: bool,
    /// The files it is about; none for all.
    pub(crate) files: &'a [PathBuf],
}

/// Makes sure that strace is there; installs it where that is possible.
pub(crate) fn find_strace() -> Result<()> {
    if works("strace", "--version") {
        return Ok(());
    }
    eprintln!("T-R7: strace is not here; asking apt-get for it");
    let installed = Command::new("apt-get").args(["install", "-y", "-q", "strace"]).status();
    ensure!(
        installed.is_ok_and(|status| status.success()) && works("strace", "--version"),
        "this needs strace, which is not installed and cannot be"
    );
    Ok(())
}

/// A start under strace that tampers so; its notes go to `trace`.
pub(crate) fn launch(tampering: &Tampering<'_>, trace: &Path) -> Launch {
    let Tampering { calls, error, first, lasting, files } = tampering;
    let when = if *lasting { format!("{first}+") } else { first.to_string() };
    // Only the calls in question stop the server, so that it runs at its usual pace.
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

/// When the first call was made to fail, if one was.
pub(crate) fn first_failure(trace: &Path) -> Result<Option<Moment>> {
    let notes = fs::read(trace).context("strace has written nothing")?;
    Ok(read_first_failure(&String::from_utf8_lossy(&notes)))
}

fn read_first_failure(notes: &str) -> Option<Moment> {
    let line = notes.lines().find(|line| line.contains("(INJECTED)"))?;
    let seconds = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(Moment::from_seconds(seconds))
}

fn works(program: &str, argument: &str) -> bool {
    let run = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_read_off_the_notes() {
        let notes = "77 1794719370.100000 fsync(13) = 0\n\
                     77 1794719370.307476 fsync(13) = -1 EIO (Input/output error) (INJECTED)\n\
                     77 1794719371.000000 fsync(13) = -1 EIO (Input/output error) (INJECTED)\n";
        assert_eq!(read_first_failure(notes), Some(Moment::from_seconds(1_794_719_370.307_476)));
        assert_eq!(read_first_failure("77 1794719370.100000 fsync(13) = 0\n"), None);
    }
}
