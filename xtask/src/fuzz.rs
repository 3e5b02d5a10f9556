//! `cargo xtask fuzz [ID] [--inputs N] [--seed S]`: fuzzes the decoders and the task state machine.

use std::process::Command;

use anyhow::Result;

use crate::{program, run};

/// Passes the arguments on to the fuzzer.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    let mut command = Command::new(program::build_tool("a2ad-fuzz")?);
    run::run_command(command.current_dir(program::workspace()).args(args))
}
