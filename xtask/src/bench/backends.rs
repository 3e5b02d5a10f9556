//! What a2ad adds to calls of tools. It is a program of `bench/` that prints its own table.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::dirs::BenchDirs;
use super::plan::Plan;

/// Calls of each tool in a round, for every second that a cell of the other sections takes.
const CALLS_PER_SECOND: f64 = 500.0;

pub(super) async fn measure(plan: &Plan, dirs: &BenchDirs) -> Result<String> {
    eprintln!("tools directly and through a2ad");
    let folder = dirs.fresh_folder("round")?;
    let output = Command::new(dirs.bench.join("backends"))
        .args(["--rounds", &plan.rounds.to_string()])
        .args(["--calls", &((plan.seconds * CALLS_PER_SECOND) as usize).to_string()])
        .arg("--a2ad")
        .arg(&dirs.a2ad)
        .arg("--dir")
        .arg(folder)
        .stderr(std::process::Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot start the comparison of tools")?;
    ensure!(output.status.success(), "the comparison of tools failed");
    Ok(String::from_utf8(output.stdout)?)
}

pub(super) fn describe(text: &mut String, table: &str) -> Result<()> {
    writeln!(
        text,
        "\n## Tools\n\n\
         What a2ad adds to a call of a tool that returns its arguments, as a tool of an MCP server on standard input and\n\
         output, an HTTP function and a command: one call at a time, directly and through a2ad in turns, medians of\n\
         medians. A task of a tool is two commits, each with a sync, which is measured on the same disk in the same round;\n\
         the last column is what remains, with its spread over the rounds. {}",
        table.trim_end()
    )?;
    Ok(())
}
