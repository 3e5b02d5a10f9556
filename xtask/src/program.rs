//! Builds the program under test, and knows the directories of the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::run;

const NAME: &str = "a2ad";

/// Builds the program with the test profile and returns its path as reported by cargo, so that every setting that
/// moves the target directory is honoured.
pub(crate) fn build() -> Result<PathBuf> {
    cargo_build(NAME, &[])
}

/// Builds another program of the workspace and returns its path.
pub(crate) fn build_tool(name: &str) -> Result<PathBuf> {
    cargo_build(name, &[])
}

/// Builds the program with a fault compiled in (a cargo feature) and copies it to a separate directory. Only crates
/// with that feature are compiled again.
pub(crate) fn build_with(fault: &str) -> Result<PathBuf> {
    let built = cargo_build(NAME, &["--features", &format!("a2ad-cli/{fault}")])?;
    let apart = target()?.join("faults");
    fs::create_dir_all(&apart).context("cannot create the directory of the program")?;
    let program = apart.join(format!("a2ad-{fault}"));
    fs::copy(&built, &program).context("cannot copy the program")?;
    Ok(program)
}

/// Builds one program with the features that the whole workspace has: for a package of its own, cargo would choose others and
/// compile most dependencies once more. `tests/verify/Cargo.toml` adds those of tests.
fn cargo_build(name: &str, options: &[&str]) -> Result<PathBuf> {
    let mut command = run::cargo_command();
    command.args(["build", "--quiet", "--workspace", "--bin", name]);
    command.arg("--message-format=json-render-diagnostics").args(options);
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
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
