//! Chromium for the tests of pages: the browser of the machine, else the package of Debian.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{INSTALL_LIMIT, finish};

/// The variable that names another browser, such as Chrome.
const VARIABLE: &str = "CHROMIUM";
const PROGRAM: &str = "/usr/bin/chromium";

/// The path of the browser; it is installed if it is missing.
pub(super) async fn program() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(VARIABLE) {
        return Ok(program.into());
    }
    if !Path::new(PROGRAM).exists() {
        install().await.with_context(|| {
            format!(
                "the tests of pages need {PROGRAM}; install the Debian package chromium, or set {VARIABLE} to the path \
                 of a Chromium or Chrome"
            )
        })?;
    }
    Ok(PROGRAM.into())
}

async fn install() -> Result<()> {
    eprintln!("installing the Debian package chromium");
    let install = ["install", "--yes", "--quiet=2", "--no-install-recommends", "chromium"];
    for arguments in [&["update", "--quiet=2"][..], &install] {
        let mut command = apt_get();
        // Another apt-get, such as that of automatic upgrades, may hold the lock.
        command.args(["-o", "DPkg::Lock::Timeout=300"]).args(arguments);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        finish(command, INSTALL_LIMIT, &format!("apt-get {}", arguments.join(" "))).await?;
    }
    Ok(())
}

/// `apt-get` with the rights of root; sudo fails instead of asking for a password.
fn apt_get() -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new("apt-get");
    }
    let mut command = Command::new("sudo");
    command.args(["--non-interactive", "apt-get"]);
    command
}
