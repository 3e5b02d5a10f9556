//! The official Rust client: a separate workspace, built into its own target directory.

use std::path::Path;

use anyhow::Result;
use tokio::process::Command;

use super::{INSTALL_LIMIT, finish};

/// Builds the tests of a workspace and returns the command that runs them.
pub(super) async fn tests(tests: &Path, environment: &Path) -> Result<Command> {
    let mut build = cargo(tests, environment);
    build.arg("--no-run");
    finish(build, INSTALL_LIMIT, "the build of the official Rust client").await?;
    Ok(cargo(tests, environment))
}

fn cargo(tests: &Path, environment: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(tests).args(["test", "--quiet", "--locked"]);
    command.env("CARGO_TARGET_DIR", environment);
    command
}
