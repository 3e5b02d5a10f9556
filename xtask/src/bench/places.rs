//! Where the sources, the built programs and the scratch files are.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, ensure};

pub(super) struct Places {
    pub(super) root: PathBuf,
    pub(super) a2ad: PathBuf,
    /// The folder of the programs of `bench/`.
    pub(super) bench: PathBuf,
    /// On the same disk as the build, since a sync in a memory file system costs nothing.
    scratch: PathBuf,
}

impl Places {
    /// Builds everything that is measured and measures.
    pub(super) fn build() -> Result<Self> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask stands in the repository")?;
        cargo(root, &["build", "--release", "-p", "a2ad"])?;
        cargo(root, &["build", "--release", "--manifest-path", "bench/Cargo.toml"])?;
        let target =
            |default: &str| root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or(default.into()));
        let places = Self {
            root: root.to_owned(),
            a2ad: target("target").join("release/a2ad"),
            bench: target("bench/target").join("release"),
            scratch: target("target").join("bench-scratch"),
        };
        places.clear()?;
        Ok(places)
    }

    /// A new, empty folder of this name.
    pub(super) fn fresh_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.scratch.join(name);
        remove(&folder)?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Removes all scratch files.
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
