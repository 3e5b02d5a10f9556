//! `cargo xtask COMMAND`: the project's task runner.
//!
//! One file for each command. `test` is the command of the README and of CI: it sets up what the tests need and
//! runs them all.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to the terminal")]

mod acceptance;
mod bench;
mod check;
mod disk_space;
mod fuzz;
mod r#gen;
mod interop;
mod program;
mod run;
mod slowhttptest;
mod tck;
mod test;
mod verify;

use std::process::ExitCode;

type Command = (&'static str, &'static str, fn(Vec<String>) -> anyhow::Result<()>);

const COMMANDS: &[Command] = &[
    ("check", "format, lints, documentation, licences", check::run),
    (
        "test",
        "set up what the tests need and run them all, or one part: test [acceptance|check|crates|fuzz|interop [SUITE]|verify [PROOF]]",
        test::run,
    ),
    (
        "acceptance",
        "check the program against the list of its requirements: acceptance [ITEM…] [--verbose]",
        acceptance::run,
    ),
    ("verify", "run one proof: verify NAME [OPTIONS]; without NAME, list the proofs", verify::run),
    (
        "bench",
        "measure a2ad against other servers: bench [--rounds N] [--seconds S] [--tasks N] [--only SECTION] [--quick]",
        bench::run,
    ),
    ("interop", "test against other A2A implementations (official SDKs) and in a browser", |args| {
        interop::run(&args)
    }),
    ("gen", "generate code from the protobuf files, and docs/configuration.md: gen [--check]", |args| {
        r#gen::run(&args)
    }),
    ("fuzz", "fuzz the decoders and the task state machine: fuzz [ID] [--inputs N] [--seed S]", fuzz::run),
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let Some((_, _, command)) = COMMANDS.iter().find(|command| command.0 == name) else {
        eprintln!("usage: cargo xtask COMMAND");
        for (name, what, _) in COMMANDS {
            eprintln!("  {name:8}{what}");
        }
        return ExitCode::from(2);
    };
    match command(args.collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
