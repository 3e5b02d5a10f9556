//! Environments for Python suites and programs, and pytest in them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{INSTALL_LIMIT, finish, install_lock, is_installed, mark_installed, version};

/// A line of a requirements file by which `pip check` is skipped: the list omits some dependencies on purpose.
const PARTIAL: &str = "# partial";

/// The command that runs pytest on a folder of tests, in the environment of the folder's requirements file.
pub(super) async fn tests(tests: &Path, environment: &Path) -> Result<Command> {
    let python = environment_of(&tests.join("requirements.txt"), environment).await?;
    Ok(pytest(&python, tests))
}

/// The command that runs pytest on a folder of tests.
pub(super) fn pytest(python: &Path, tests: &Path) -> Command {
    let mut command = Command::new(python);
    command.current_dir(tests).args(["-m", "pytest"]).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A release of the official SDK, and the suite whose environment has its dependencies.
#[derive(Clone, Copy)]
pub(super) struct Release {
    pub(super) version: &'static str,
    pub(super) environment: &'static str,
}

/// The command that runs pytest on a folder of tests in another suite's environment. A release that is not
/// installed there is installed into its own directory, which comes first in the module path.
pub(super) async fn tests_of_release(tests: &Path, release: Release, dir: &Path) -> Result<Command> {
    let requirements = tests.with_file_name(release.environment).join("requirements.txt");
    let python = environment_of(&requirements, &dir.join(release.environment)).await?;
    let mut command = pytest(&python, tests);
    command.env("SDK_VERSION", release.version);
    let pin = format!("a2a-sdk=={}", release.version);
    if !fs::read_to_string(&requirements)?.lines().any(|line| line == pin) {
        let packages = dir.join(format!("a2a-sdk-{}", release.version));
        install_separately(&python, &pin, &packages).await?;
        command.env("PYTHONPATH", packages);
    }
    Ok(command)
}

/// The command that runs one script of a folder, in the environment of the folder's requirements file.
pub(super) async fn script(folder: &Path, name: &str, environment: &Path) -> Result<Command> {
    let python = environment_of(&folder.join("requirements.txt"), environment).await?;
    let mut command = Command::new(python);
    command.arg(folder.join(name)).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// The interpreter of an environment with exactly the pinned packages; reinstalled when the pins or the machine's
/// Python change.
pub(super) async fn environment_of(requirements: &Path, environment: &Path) -> Result<PathBuf> {
    make(requirements, environment, &["--no-deps"]).await
}

/// Like [`environment_of`], with the dependencies of the listed packages.
pub(crate) async fn environment_with_dependencies(
    requirements: &Path,
    environment: &Path,
) -> Result<PathBuf> {
    make(requirements, environment, &[]).await
}

async fn make(requirements: &Path, environment: &Path, options: &[&str]) -> Result<PathBuf> {
    let python = environment.join("bin/python");
    let pins = fs::read_to_string(requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let machine = version("python3").await.context("python3 is needed for the interop tests")?;
    let wanted = format!("{machine}\n{pins}");
    let is_ready = || is_installed(environment, &wanted) && python.exists();
    if is_ready() {
        return Ok(python);
    }
    let _lock = install_lock()?;
    if is_ready() {
        return Ok(python);
    }
    eprintln!("installing the environment {}", environment.display());
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(environment);
    finish(venv, INSTALL_LIMIT, "python3 -m venv (on Debian it needs the package python3-venv)").await?;
    let mut install = pip(&python);
    install.args(["install", "--quiet", "--no-input"]).args(options).arg("--requirement").arg(requirements);
    finish(install, INSTALL_LIMIT, "the installation of the pinned packages").await?;
    if !pins.lines().any(|line| line == PARTIAL) {
        let mut check = pip(&python);
        check.arg("check");
        finish(check, INSTALL_LIMIT, "pip check of the pinned packages").await?;
    }
    mark_installed(environment, &wanted)?;
    Ok(python)
}

/// Installs one package without its dependencies into its own directory.
async fn install_separately(python: &Path, pin: &str, packages: &Path) -> Result<()> {
    if is_installed(packages, pin) {
        return Ok(());
    }
    let _lock = install_lock()?;
    if packages.exists() {
        fs::remove_dir_all(packages)?;
    }
    let mut install = pip(python);
    install.args(["install", "--quiet", "--no-input", "--no-deps", "--target"]).arg(packages).arg(pin);
    finish(install, INSTALL_LIMIT, &format!("the installation of {pin}")).await?;
    mark_installed(packages, pin)
}

fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    command
}
