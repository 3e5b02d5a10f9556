//! Builds the program under test, and knows the directories of the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::run;

const NAME: &str = "a2ad";
/// The variable with a folder of programs that are built already; set by `cargo xtask test`.
pub(crate) const PREBUILT: &str = "XTASK_PROGRAMS";

/// Builds the program with the test profile and returns its path as reported by cargo, so that every setting that
/// moves the target directory is honoured.
pub(crate) fn build() -> Result<PathBuf> {
    build_tool(NAME)
}

/// Builds another program of the workspace and returns its path.
pub(crate) fn build_tool(name: &str) -> Result<PathBuf> {
    let prebuilt = std::env::var_os(PREBUILT).map(|folder| PathBuf::from(folder).join(name));
    if let Some(program) = prebuilt.filter(|program| program.exists()) {
        return Ok(program);
    }
    run_build(name, &mut build_command(name))
}

/// Builds the program with a cargo feature.
pub(crate) fn build_with(feature: &str) -> Result<PathBuf> {
    build_variant(feature, build_command(NAME).args(["--features", &format!("a2ad-cli/{feature}")]))
}

/// Builds the program for control runs, which replies before it commits. Only crates of the workspace are compiled again.
pub(crate) fn build_early_reply() -> Result<PathBuf> {
    let wrapper = workspace().join("xtask/src/early_reply.sh");
    build_variant("early-reply", build_command(NAME).env("RUSTC_WORKSPACE_WRAPPER", wrapper))
}

/// Builds another variant of the program and copies it to a separate directory, because the next build replaces it.
fn build_variant(variant: &str, build: &mut Command) -> Result<PathBuf> {
    let built = run_build(NAME, build)?;
    let apart = target()?.join("variants");
    fs::create_dir_all(&apart).context("cannot create the directory of the program")?;
    let program = apart.join(format!("a2ad-{variant}"));
    fs::copy(&built, &program).context("cannot copy the program")?;
    Ok(program)
}

/// The command that builds one program with the features that the whole workspace has: for a package of its own, cargo would choose others and
/// compile most dependencies once more. `tests/verify/Cargo.toml` adds those of tests.
fn build_command(name: &str) -> Command {
    let mut command = run::cargo_command();
    command.args(["build", "--quiet", "--workspace", "--bin", name]);
    command.arg("--message-format=json-render-diagnostics");
    command
}

/// Runs the command, and returns the path of the program that cargo reports.
fn run_build(name: &str, build: &mut Command) -> Result<PathBuf> {
    let output = build.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "{name} could not be built");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| executable(line, name))
        .with_context(|| format!("cargo built no program named {name}"))
}

pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a directory of the workspace")
}

/// The directory for build products and files of tests.
pub(crate) fn target() -> Result<PathBuf> {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(path) => Ok(std::path::absolute(PathBuf::from(path))?),
        None => Ok(workspace().join("target")),
    }
}

#[expect(clippy::disallowed_types, reason = "cargo's messages are parsed once; no numbers matter")]
fn executable(line: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["target"]["name"] != name {
        return None;
    }
    message["executable"].as_str().map(PathBuf::from)
}
