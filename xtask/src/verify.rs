//! `cargo xtask verify NAME`: builds the program and runs one proof of `tests/verify` against it.

use std::process::Command;

use anyhow::Result;

use crate::{program, run, slowhttptest, tck};

/// Runs the proof named by the first argument with the rest as its options; without a name, lists the proofs.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    let Some((name, options)) = args.split_first() else {
        eprintln!("  cargo xtask verify tck {}\n      the official conformance kit\n", tck::OPTIONS);
        eprintln!(
            "  cargo xtask verify guard_oracle [--addresses N] [--seed S]\n      every address that another guard refuses is \
             refused, and each kind of difference is known\n"
        );
        eprintln!(
            "  cargo xtask verify slowhttptest {}\n      slow clients of the Debian package slowhttptest are closed, and the \
             server answers meanwhile\n",
            slowhttptest::OPTIONS
        );
        return proofs(&[]);
    };
    match name.as_str() {
        "tck" => return tck::run(options),
        "guard_oracle" => return guard_oracle(options),
        "slowhttptest" => return slowhttptest::run(options),
        _ => {}
    }
    let has = |option: &str| options.iter().any(|given| given == option);
    let program = match name.as_str() {
        _ if has("--binary") => return proofs(&args),
        "kill_under_load" if has("--control") => program::build_early_reply()?,
        // They need agents that the program does not have.
        "poison_tasks" | "long_turns" | "kill_under_load" | "reference_model" => {
            program::build_tool("a2ad-fixtures")?
        }
        _ => program::build()?,
    };
    proofs(&[args, vec!["--binary".to_owned(), program.to_string_lossy().into_owned()]].concat())
}

/// Builds and runs the comparison, which is a workspace of its own.
fn guard_oracle(options: &[String]) -> Result<()> {
    let mut command = run::cargo_command();
    command.args([
        "run",
        "--quiet",
        "--locked",
        "--manifest-path",
        "tests/guard_oracle/Cargo.toml",
        "--target-dir",
    ]);
    command.arg(program::target()?).arg("--").args(options);
    run::run_command(&mut command)
}

/// Runs the program with the proofs in the current directory, to which paths in its arguments are relative.
fn proofs(args: &[String]) -> Result<()> {
    run::run_command(Command::new(program::build_tool("a2ad-verify")?).args(args))
}
