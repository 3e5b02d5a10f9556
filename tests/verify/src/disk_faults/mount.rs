//! Mounts file systems and unmounts them reliably.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A mounted file system. Dropping it unmounts it.
pub(crate) struct Mount {
    pub(crate) at: PathBuf,
}

impl Mount {
    /// Runs `mount` with these arguments at this directory.
    pub(crate) fn make(arguments: &[&str], at: &Path) -> Result<Self> {
        std::fs::create_dir_all(at).context("cannot create the mount point")?;
        run("mount", &[arguments, &[&at.to_string_lossy()]].concat())?;
        Ok(Self { at: at.to_owned() })
    }

    pub(crate) fn remount(&self, options: &str) -> Result<()> {
        run("mount", &["-o", &format!("remount,{options}"), &self.at.to_string_lossy()]).map(drop)
    }

    /// The last field of a system tool's output about this mount.
    pub(crate) fn query(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let output_text = run(program, &[arguments, &[&self.at.to_string_lossy()]].concat())?;
        output_text
            .split_whitespace()
            .last()
            .map(str::to_owned)
            .with_context(|| format!("{program} printed nothing"))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &[&self.at.to_string_lossy()]) {
            eprintln!("disk_faults: {} could not be unmounted: {error:#}", self.at.display());
        }
    }
}

/// Runs a system tool and returns its output.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("{program} could not be started"))?;
    if !output.status.success() {
        let output_text = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {} ({})", arguments.join(" "), output_text.trim(), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
