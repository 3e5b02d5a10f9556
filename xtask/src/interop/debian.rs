//! Programs of Debian packages that are unpacked, not installed: an installation could start a service, and needs root.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tokio::process::Command;

use super::{INSTALL_LIMIT, finish, install_lock};

/// A program that a test needs.
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) program: &'static str,
    /// The variable that names another one.
    pub(crate) variable: &'static str,
}

impl Package {
    /// The program of the variable or of the machine, else of the package, which is unpacked into this folder.
    pub(crate) async fn program(&self, folder: &Path) -> Result<PathBuf> {
        if let Some(program) = std::env::var_os(self.variable) {
            return Ok(program.into());
        }
        let installed = Path::new("/usr/bin").join(self.program);
        let unpacked = folder.join("usr/bin").join(self.program);
        if installed.exists() {
            return Ok(installed);
        }
        let _lock = install_lock()?;
        if !unpacked.exists() {
            let Self { name, program, variable } = self;
            self.unpack(folder).await.with_context(|| {
                format!(
                    "this needs {program}; install the Debian package {name}, or set {variable} to its path"
                )
            })?;
        }
        Ok(unpacked)
    }

    async fn unpack(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        if !has_lists() {
            update().await?;
        }
        let mut download = Command::new("apt-get");
        download.args(["download", "--quiet=2", self.name]).current_dir(folder);
        finish(download, INSTALL_LIMIT, &format!("apt-get download {}", self.name)).await?;
        let entries =
            std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        let package = entries.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb"));
        let package = package.context("apt-get has downloaded no package")?;
        let mut extract = Command::new("dpkg-deb");
        extract.arg("--extract").arg(&package).arg(folder);
        finish(extract, INSTALL_LIMIT, "dpkg-deb --extract").await
    }
}

/// Whether the machine has package lists; fresh container images have none.
fn has_lists() -> bool {
    let lists = std::fs::read_dir("/var/lib/apt/lists").into_iter().flatten().flatten();
    lists.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().contains("_Packages"))
}

/// Reads the package lists.
pub(super) async fn update() -> Result<()> {
    apt_get(&["update", "--quiet=2"]).await
}

/// Runs `apt-get` with the rights of root; sudo fails instead of asking for a password.
pub(super) async fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = if rustix::process::geteuid().is_root() {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["--non-interactive", "apt-get"]);
        sudo
    };
    // Another apt-get, such as that of automatic upgrades, may hold the lock.
    command.args(["-o", "DPkg::Lock::Timeout=300"]).args(arguments);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    finish(command, INSTALL_LIMIT, &format!("apt-get {}", arguments.join(" "))).await
}
