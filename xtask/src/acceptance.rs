//! `cargo xtask acceptance`: checks the program against the list of its requirements, which is in `tests/acceptance`.

use std::process::Command;

use anyhow::Result;

use crate::{program, run};

/// Builds the programs and runs the checks; the arguments are ids of items and `--verbose`.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    // Some items need agents that the program does not have.
    let program = program::build_tool("a2ad-fixtures")?;
    let checks = program::build_tool("a2ad-acceptance")?;
    run::run_command(Command::new(checks).arg("--binary").arg(program).args(args))
}
