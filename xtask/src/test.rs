//! `cargo xtask test`: sets up what the tests need and runs them all. What the README and CI call.
//!
//! From cheap to dear, so that a mistake shows early: format and lints, the tests of the crates, the fuzz
//! targets, the program beside other people's clients, and the rows of the test matrix.

use std::time::Instant;

use anyhow::Result;

use crate::{check, fuzz, interop, room, run, verify};

/// The rows of the test matrix that run on every change. Their times are hang guards here; `cargo xtask verify` fails
/// on the figures themselves.
const ROWS: &[&str] = &[
    "T-R8 --relaxed",
    "T-R9",
    "T-R10",
    "T-R11 --relaxed",
    "T-R14 --relaxed",
    "T-R16 --relaxed --tasks 20000 --cycles 3",
    "T-R20",
    "slow-readers --relaxed --readers 100 --connections 10 --idle-seconds 15",
    "T-S8 --relaxed",
    "T-D4 --relaxed",
    "T-R7 --relaxed --unprivileged",
    "T-R1",
];

/// Runs everything; the first failure ends it.
pub(crate) fn run(_: Vec<String>) -> Result<()> {
    let started = Instant::now();
    room::check()?;
    check::run(Vec::new())?;
    // Not through a test runner of its own: this needs nothing but cargo.
    run::cargo(&["test", "--workspace", "--quiet"])?;
    fuzz::run(Vec::new())?;
    interop::run(&[])?;
    for row in ROWS {
        verify::run(row.split_whitespace().map(String::from).collect())?;
    }
    eprintln!("everything passed in {} s", started.elapsed().as_secs());
    Ok(())
}
