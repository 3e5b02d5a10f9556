//! The directories of the sources, the built programs and the scratch files.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, ensure};

pub(super) struct BenchDirs {
    pub(super) root: PathBuf,
    pub(super) a2ad: PathBuf,
    /// Directory of the programs of `bench/`.
    pub(super) bench: PathBuf,
    /// On the same disk as the build: a sync on a memory file system would cost nothing.
    scratch: PathBuf,
}

impl BenchDirs {
    /// Builds the measured programs and the load generator.
    pub(super) fn build() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask is a directory of the repository")?;
        cargo(root, &["build", "--profile", "dist", "-p", "a2ad-cli"])?;
        cargo(root, &["build", "--release", "--manifest-path", "bench/Cargo.toml"])?;
        let target =
            |default: &str| root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or(default.into()));
        let dirs = Self {
            root: root.to_owned(),
            a2ad: target("target").join("dist/a2ad"),
            bench: target("bench/target").join("release"),
            scratch: target("target").join("bench-scratch"),
        };
        dirs.clear()?;
        Ok(dirs)
    }

    /// A new, empty directory of this name.
    pub(super) fn fresh_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.scratch.join(name);
        remove(&folder)?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    pub(super) fn clear(&self) -> Result<()> {
        remove(&self.scratch)
    }
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

fn cargo(root: &Path, args: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let status =
        process::Command::new(cargo).args(args).current_dir(root).status().context("cannot start cargo")?;
    ensure!(status.success(), "cargo {} failed", args.join(" "));
    Ok(())
}
