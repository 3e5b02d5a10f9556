//! `cargo xtask fuzz [ID] [--inputs N] [--seed S]`: feeds the decoders and the task rules with damaged input.

use anyhow::Result;

use crate::run;

/// Hands the arguments to the fuzzer.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    let mut command: Vec<String> =
        ["run", "--quiet", "--package", "a2ad-fuzz", "--"].map(String::from).into();
    command.extend(args);
    run::cargo(&command)
}
