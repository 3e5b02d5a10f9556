//! Runs other programs and prints their command lines.

use std::{ffi::OsStr, process::Command};

use anyhow::{Context as _, Result, ensure};

/// Runs cargo in the workspace; an error if it exits with a failure.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: &[S]) -> Result<()> {
    run_command(cargo_command().args(args))
}

/// Cargo in the workspace, without arguments.
pub(crate) fn cargo_command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::program::workspace());
    command
}

/// Prints and runs a command; an error if it exits with a failure.
pub(crate) fn run_command(command: &mut Command) -> Result<()> {
    eprintln!("+ {}", line(command));
    let status = command.status().with_context(|| format!("{} could not be started", line(command)))?;
    ensure!(status.success(), "{} failed ({status})", line(command));
    Ok(())
}

fn line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or_default();
    let arguments = std::iter::once(program).chain(command.get_args());
    arguments.map(|argument| argument.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
