//! `cargo xtask <verb>`: everything that is done to this project, by one program with nothing to install.
//!
//! One verb, one file. `test` is what the README and CI call: it sets up what the tests need and runs them all.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task runner talks to a terminal")]

mod bench;
mod check;
mod fuzz;
mod r#gen;
mod http;
mod interop;
mod room;
mod run;
mod server;
mod test;
mod verify;

use std::process::ExitCode;

type Verb = (&'static str, &'static str, fn(Vec<String>) -> anyhow::Result<()>);

const VERBS: &[Verb] = &[
    ("check", "format, lints, documentation, licences", check::run),
    ("test", "set up everything the tests need and run them all", test::run),
    ("verify", "prove one row of the test matrix: verify T-R1 [--kills N] [--control]", verify::run),
    (
        "bench",
        "measure a2ad beside other servers: bench [--rounds N] [--seconds S] [--tasks N] [--only SECTION] [--quick]",
        bench::run,
    ),
    ("interop", "run the tests of other people's clients", |args| interop::run(&args)),
    ("gen", "the Rust of the protobuf files: gen [--check]", |args| r#gen::run(&args)),
    ("fuzz", "feed the decoders and the task rules: fuzz [ID] [--inputs N] [--seed S]", fuzz::run),
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let Some((_, _, verb)) = VERBS.iter().find(|verb| verb.0 == name) else {
        eprintln!("usage: cargo xtask <verb>");
        for (name, what, _) in VERBS {
            eprintln!("  {name:8}{what}");
        }
        return ExitCode::from(2);
    };
    match verb(args.collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
