//! Mounting, and unmounting for certain.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A mounted file system. Dropping it unmounts it.
pub(crate) struct Mount {
    pub(crate) at: PathBuf,
}

impl Mount {
    /// `mount` with these words, at this directory.
    pub(crate) fn make(words: &[&str], at: &Path) -> Result<Self> {
        std::fs::create_dir_all(at).context("cannot make a directory to mount on")?;
        run("mount", &[words, &[&at.to_string_lossy()]].concat())?;
        Ok(Self { at: at.to_owned() })
    }

    pub(crate) fn remount(&self, options: &str) -> Result<()> {
        run("mount", &["-o", &format!("remount,{options}"), &self.at.to_string_lossy()]).map(drop)
    }

    /// What a system tool says of it: the last word of its output.
    pub(crate) fn ask(&self, program: &str, words: &[&str]) -> Result<String> {
        let said = run(program, &[words, &[&self.at.to_string_lossy()]].concat())?;
        said.split_whitespace().last().map(str::to_owned).with_context(|| format!("{program} says nothing"))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &[&self.at.to_string_lossy()]) {
            eprintln!("T-R7: {} stays mounted: {error:#}", self.at.display());
        }
    }
}

/// Runs a system tool and returns what it says.
pub(crate) fn run(program: &str, words: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(words)
        .output()
        .with_context(|| format!("{program} could not be started"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {} ({})", words.join(" "), said.trim(), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
