//! The comparison of key indexes. It is a program of `bench/` that prints its own table.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::dirs::BenchDirs;
use super::plan::Plan;

/// Enough rows for the trees to exceed the cache; more would only take longer.
const MAX_ROWS: u64 = 300_000;

pub(super) async fn measure(plan: &Plan, dirs: &BenchDirs) -> Result<String> {
    eprintln!("key indexes");
    let folder = dirs.fresh_folder("round")?;
    let output = Command::new(dirs.bench.join("keys"))
        .args(["--rows", &plan.tasks.min(MAX_ROWS).to_string()])
        .arg("--dir")
        .arg(folder)
        .stderr(std::process::Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot start the comparison of key indexes")?;
    ensure!(output.status.success(), "the comparison of key indexes failed");
    Ok(String::from_utf8(output.stdout)?)
}

pub(super) fn describe(text: &mut String, table: &str) -> Result<()> {
    writeln!(
        text,
        "\n## Ways to keep idempotency keys\n\n\
         Not the program but its question: SQLite alone, WAL, `synchronous=FULL`, one thread, commits of 64 rows of a\n\
         task and its segment, 1.4 KB together; only the keys are kept differently, and the ways take turns. The\n\
         program keeps sorted runs.\n\n{}",
        table.trim_end()
    )?;
    Ok(())
}
