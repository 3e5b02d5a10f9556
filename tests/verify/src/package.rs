//! Programs and libraries that a proof needs beside the server: packages of Debian.

use std::process::Command;

use anyhow::{Result, ensure};

/// Makes sure that a package is installed; tries to install it otherwise.
pub(crate) fn ensure_installed(package: &str, is_installed: impl Fn() -> bool) -> Result<()> {
    if is_installed() {
        return Ok(());
    }
    eprintln!("{package} is not installed; installing it with apt-get");
    let installed = Command::new("apt-get").args(["install", "-y", "-q", package]).status();
    ensure!(
        installed.is_ok_and(|status| status.success()) && is_installed(),
        "{package} is required and could not be installed; run: apt-get install {package}"
    );
    Ok(())
}
