//! What it costs to verify credentials. It is a bench of the crate that verifies them, which prints its own table.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::dirs::BenchDirs;
use super::plan::Plan;

/// Verifications of each kind in a round, for every second that a cell of the other sections takes.
const CALLS_PER_SECOND: f64 = 100_000.0;

pub(super) async fn measure(plan: &Plan, dirs: &BenchDirs) -> Result<String> {
    eprintln!("credentials");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["bench", "--quiet", "--package", "a2ad-inbound", "--bench", "credentials", "--"])
        .args(["--rounds", &plan.rounds.to_string()])
        .args(["--calls", &((plan.seconds * CALLS_PER_SECOND) as usize).to_string()])
        .current_dir(&dirs.root)
        .stderr(std::process::Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot start the measurement of credentials")?;
    ensure!(output.status.success(), "the measurement of credentials failed");
    Ok(String::from_utf8(output.stdout)?)
}

pub(super) fn describe(text: &mut String, table: &str) -> Result<()> {
    writeln!(
        text,
        "\n## Credentials\n\n\
         What verifying the credential of a call costs, from the headers of a request to its caller, in one process and\n\
         on one thread, without the rest of the call. A repeated token was verified less than five minutes before; a\n\
         fresh one is verified with the key of its issuer.\n\n{}",
        table.trim_end()
    )?;
    Ok(())
}
