//! `cargo xtask test`: sets up what the tests need and runs them all. What the README and CI call.
//!
//! From cheap to dear, so that a mistake shows early: format and lints, the tests of the crates, the fuzz
//! targets, the program beside other people's clients, the program under kill -9.

use std::time::Instant;

use anyhow::Result;

use crate::{check, fuzz, interop, run, verify};

/// Runs everything; the first failure ends it.
pub(crate) fn run(_: Vec<String>) -> Result<()> {
    let started = Instant::now();
    check::run(Vec::new())?;
    // Not through a test runner of its own: this needs nothing but cargo.
    run::cargo(&["test", "--workspace", "--quiet"])?;
    fuzz::run(Vec::new())?;
    interop::python(&[])?;
    verify::run(vec!["T-R1".into()])?;
    eprintln!("everything passed in {} s", started.elapsed().as_secs());
    Ok(())
}
