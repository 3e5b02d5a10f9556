//! `cargo xtask check`: format, lints, documentation, and licences where `cargo deny` is installed.

use std::process::Command;

use anyhow::Result;

use crate::run;

/// Runs every check; the first failure ends the run.
pub(crate) fn run(_: Vec<String>) -> Result<()> {
    format()?;
    run::cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"])?;
    document()?;
    licences()
}

/// Fails on files that are not formatted.
pub(crate) fn format() -> Result<()> {
    run::cargo(&["fmt", "--all", "--check"])
}

/// Fails on missing documentation of public items and on broken links in it.
fn document() -> Result<()> {
    let mut command = run::cargo_command();
    command.env("RUSTDOCFLAGS", "--deny warnings");
    run::run_command(command.args(["doc", "--quiet", "--workspace", "--no-deps", "--exclude", "xtask"]))
}

fn licences() -> Result<()> {
    let installed =
        Command::new("cargo").args(["deny", "--version"]).output().is_ok_and(|out| out.status.success());
    if !installed {
        eprintln!("cargo-deny is not installed; licences and sources are not checked");
        return Ok(());
    }
    run::cargo(&["deny", "--all-features", "check", "licenses", "bans", "sources"])
}
