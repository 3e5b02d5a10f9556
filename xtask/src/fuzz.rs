//! `cargo xtask fuzz [ID] [--inputs N] [--seed S]`: fuzzes the decoders and the task state machine.

use anyhow::Result;

use crate::run;

/// Passes the arguments on to the fuzzer.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    let mut command: Vec<String> =
        ["run", "--quiet", "--package", "a2ad-fuzz", "--"].map(String::from).into();
    command.extend(args);
    run::cargo(&command)
}
