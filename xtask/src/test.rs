//! `cargo xtask test`: sets up what the tests need and runs them all. The README and CI call this command.
//!
//! Cheap parts come first, so that mistakes show early: format and lints, the tests of the crates, the fuzz
//! targets, the program against other A2A implementations, and the proofs.

use std::time::Instant;

use anyhow::Result;

use crate::{
    check,
    disk_space::{self, TargetDirectory},
    fuzz, interop, program, run, verify,
};

/// The proofs that run on every change, some of them smaller than by default. Their time goals are relaxed to hang
/// guards here; `cargo xtask verify` fails on the goals themselves.
const PROOFS: &[&str] = &[
    "recovery_time --relaxed",
    "duplicate_sends",
    "cancel_races",
    "cancel_grace --cancels 500",
    "stream_resume --relaxed",
    "webhook_kills --relaxed --kills 8 --deliveries 200",
    "webhook_outage --relaxed --deliveries 1000 --down-seconds 15",
    "poison_tasks --relaxed",
    "long_turns --relaxed --tasks 20 --sections 10 --kills 4",
    "clock_steps",
    "retention_under_load --relaxed --tasks 20000 --cycles 3",
    "many_keys --relaxed --keys 300000 --seconds 2",
    "many_owners --relaxed --owners 20000",
    "many_skills --relaxed --skills 2000 --calls 200",
    "reference_model --operations 50000",
    "overload --relaxed --seconds 5",
    "fair_limits --relaxed --seconds 6",
    "slow_readers --relaxed --readers 100 --connections 10 --idle-seconds 15",
    "stuck_sockets --relaxed --sockets 500",
    "http2_floods --relaxed --connections 4 --seconds 1",
    "slow_resumes --seconds 5",
    "reload_under_load --relaxed --reloads 60",
    "mcp_crosstalk --calls 5000",
    "malformed_requests --relaxed",
    "request_bombs --relaxed",
    "backup_under_load --rounds 5",
    "disk_faults --faults 6 --relaxed --unprivileged",
    "kill_under_load",
];

/// Runs everything; the first failure ends the run.
pub(crate) fn run(_: Vec<String>) -> Result<()> {
    let target = disk_space::check()?;
    let mut parts = Parts::begin()?;
    parts.run("check", || check::run(Vec::new()))?;
    // Plain cargo test: no other test runner has to be installed.
    parts.run("crates", || run::cargo(&["test", "--workspace", "--quiet"]))?;
    // Where they were there before, they are kept: the next run needs them again.
    if target == TargetDirectory::Empty {
        disk_space::delete_test_programs()?;
    }
    parts.run("fuzz", || fuzz::run(Vec::new()))?;
    parts.run("interop", || interop::run(&[]))?;
    for proof in PROOFS {
        let mut arguments = proof.split_whitespace().map(String::from);
        let name = arguments.clone().next().unwrap_or_default();
        parts.run(&name, || verify::run(arguments.by_ref().collect()))?;
    }
    parts.report();
    Ok(())
}

/// Time and disk space used by each part.
struct Parts {
    started: Instant,
    free_at_start: u64,
    lines: Vec<String>,
}

impl Parts {
    fn begin() -> Result<Self> {
        Ok(Self {
            started: Instant::now(),
            free_at_start: disk_space::free(&program::target()?)?,
            lines: Vec::new(),
        })
    }

    fn run(&mut self, name: &str, part: impl FnOnce() -> Result<()>) -> Result<()> {
        let (started, free) = (Instant::now(), disk_space::free(&program::target()?)?);
        part()?;
        let filled = free.saturating_sub(disk_space::free(&program::target()?)?);
        self.lines.push(line(name, started, filled));
        Ok(())
    }

    fn report(&self) {
        let left =
            program::target().and_then(|target| disk_space::free(&target)).unwrap_or(self.free_at_start);
        for line in &self.lines {
            eprintln!("{line}");
        }
        eprintln!("{}", line("everything passed", self.started, self.free_at_start.saturating_sub(left)));
    }
}

fn line(name: &str, started: Instant, filled: u64) -> String {
    format!("{name:20} {:5} s {:>10}", started.elapsed().as_secs(), disk_space::format_mib(filled))
}
