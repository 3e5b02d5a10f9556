//! Metrics in Prometheus, and traces in a collector on the official messages of OpenTelemetry.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tokio::process::Command;

use super::{INSTALL_LIMIT, TEST_LIMIT, file, finish, python};
use crate::program;

/// Variables that name programs of the machine.
const VARIABLES: [(&str, &str); 2] = [("PROMETHEUS", "prometheus"), ("PROMTOOL", "promtool")];

/// Runs the tests of metrics and traces, with a program that can send traces.
pub(super) async fn test(dir: &Path, options: &[String]) -> Result<()> {
    let program = program::build_with("otel")?;
    let folder = file("telemetry");
    let mut command = python::tests(&folder, &dir.join("telemetry")).await?;
    for (variable, name) in VARIABLES {
        command.env(variable, prometheus(variable, name, &dir.join("prometheus")).await?);
    }
    command.args(options).env("A2AD_PROGRAM", program);
    finish(command, TEST_LIMIT, "the tests of metrics and traces").await
}

/// A program of Prometheus: that of the machine, else of the Debian package. The package is unpacked, not installed: an
/// installation would start a service.
async fn prometheus(variable: &str, name: &str, folder: &Path) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(variable) {
        return Ok(program.into());
    }
    let (installed, unpacked) = (Path::new("/usr/bin").join(name), folder.join("usr/bin").join(name));
    if installed.exists() {
        return Ok(installed);
    }
    if !unpacked.exists() {
        unpack(folder).await.with_context(|| {
            format!("the tests of metrics need {name}; install the Debian package prometheus, or set {variable} to its path")
        })?;
    }
    Ok(unpacked)
}

async fn unpack(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut download = Command::new("apt-get");
    download.args(["download", "--quiet=2", "prometheus"]).current_dir(folder);
    finish(download, INSTALL_LIMIT, "apt-get download prometheus").await?;
    let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let package = entries.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb"));
    let package = package.context("apt-get has downloaded no package")?;
    let mut extract = Command::new("dpkg-deb");
    extract.arg("--extract").arg(&package).arg(folder);
    finish(extract, INSTALL_LIMIT, "dpkg-deb --extract").await
}
