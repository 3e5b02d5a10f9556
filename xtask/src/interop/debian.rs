//! Programs of Debian packages that are unpacked, not installed: an installation could start a service, and needs root.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tokio::process::Command;

use super::{INSTALL_LIMIT, finish};

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
