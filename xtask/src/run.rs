//! Running other programs, aloud.

use std::{ffi::OsStr, process::Command};

use anyhow::{Context as _, Result, ensure};

/// Runs cargo in the workspace; an error when it fails.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: &[S]) -> Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::server::workspace()).args(args);
    aloud(&mut command)
}

/// Runs a command; an error when it fails.
pub(crate) fn aloud(command: &mut Command) -> Result<()> {
    eprintln!("+ {}", line(command));
    let status = command.status().with_context(|| format!("{} could not be started", line(command)))?;
    ensure!(status.success(), "{} failed ({status})", line(command));
    Ok(())
}

fn line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
