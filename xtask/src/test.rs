//! `cargo xtask test`: sets up what the tests need and runs them all. What the README and CI call.
//!
//! From cheap to dear, so that a mistake shows early: format and lints, the tests of the crates, the fuzz
//! targets, the program beside other people's clients, and the rows of the test matrix.

use std::time::Instant;

use anyhow::Result;

use crate::{check, fuzz, interop, room, run, server, verify};

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
    room::check()?;
    let mut parts = Parts::begin()?;
    parts.run("check", || check::run(Vec::new()))?;
    // Not through a test runner of its own: this needs nothing but cargo.
    parts.run("crates", || run::cargo(&["test", "--workspace", "--quiet"]))?;
    parts.run("fuzz", || fuzz::run(Vec::new()))?;
    parts.run("interop", || interop::run(&[]))?;
    for row in ROWS {
        let mut words = row.split_whitespace().map(String::from);
        let name = words.clone().next().unwrap_or_default();
        parts.run(&name, || verify::run(words.by_ref().collect()))?;
    }
    parts.report();
    Ok(())
}

/// What each part took: its time, and the disk it filled.
struct Parts {
    started: Instant,
    free_at_start: u64,
    lines: Vec<String>,
}

impl Parts {
    fn begin() -> Result<Self> {
        Ok(Self {
            started: Instant::now(),
            free_at_start: room::free(&server::target()?)?,
            lines: Vec::new(),
        })
    }

    fn run(&mut self, name: &str, part: impl FnOnce() -> Result<()>) -> Result<()> {
        let (started, free) = (Instant::now(), room::free(&server::target()?)?);
        part()?;
        let filled = free.saturating_sub(room::free(&server::target()?)?);
        self.lines.push(line(name, started, filled));
        Ok(())
    }

    fn report(&self) {
        let left = server::target().and_then(|target| room::free(&target)).unwrap_or(self.free_at_start);
        for line in &self.lines {
            eprintln!("{line}");
        }
        eprintln!("{}", line("everything passed", self.started, self.free_at_start.saturating_sub(left)));
    }
}

fn line(name: &str, started: Instant, filled: u64) -> String {
    format!("{name:20} {:5} s {:>10}", started.elapsed().as_secs(), room::shown(filled))
}
