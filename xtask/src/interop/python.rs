//! Environments for what is written in Python, and pytest in them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{INSTALL_LIMIT, finish, is_made, set_made, version};

/// A line of a requirements file that says the list leaves out on purpose what its packages ask for.
const PARTIAL: &str = "# partial";

/// pytest on a folder of tests, in the environment that the folder's requirements ask for.
pub(super) async fn tests(tests: &Path, environment: &Path) -> Result<Command> {
    let python = environment_of(&tests.join("requirements.txt"), environment).await?;
    Ok(pytest(&python, tests))
}

fn pytest(python: &Path, tests: &Path) -> Command {
    let mut command = Command::new(python);
    command.current_dir(tests).args(["-m", "pytest"]).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A release of the official SDK, and the suite whose environment has all that it needs.
#[derive(Clone, Copy)]
pub(super) struct Release {
    pub(super) version: &'static str,
    pub(super) environment: &'static str,
}

/// pytest on a folder of tests, in another suite's environment. A release that is not installed there is installed
/// apart and found first.
pub(super) async fn tests_of_release(tests: &Path, release: Release, place: &Path) -> Result<Command> {
    let requirements = tests.with_file_name(release.environment).join("requirements.txt");
    let python = environment_of(&requirements, &place.join(release.environment)).await?;
    let mut command = pytest(&python, tests);
    command.env("SDK_VERSION", release.version);
    let pin = format!("a2a-sdk=={}", release.version);
    if !fs::read_to_string(&requirements)?.lines().any(|line| line == pin) {
        let packages = place.join(format!("a2a-sdk-{}", release.version));
        install_apart(&python, &pin, &packages).await?;
        command.env("PYTHONPATH", packages);
    }
    Ok(command)
}

/// A script of a folder, in the environment that the folder's requirements ask for.
pub(super) async fn script(folder: &Path, name: &str, environment: &Path) -> Result<Command> {
    let python = environment_of(&folder.join("requirements.txt"), environment).await?;
    let mut command = Command::new(python);
    command.arg(folder.join(name)).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// The interpreter of an environment that holds exactly the pinned packages. It is kept, and made anew when the
/// pins or the machine's Python change.
pub(super) async fn environment_of(requirements: &Path, environment: &Path) -> Result<PathBuf> {
    make(requirements, environment, &["--no-deps"]).await
}

/// The same with whatever the listed packages ask for besides.
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
    let machine =
        version("python3").await.context("python3 is needed for the tests of other people's clients")?;
    let wanted = format!("{machine}\n{pins}");
    if is_made(environment, &wanted) && python.exists() {
        return Ok(python);
    }
    eprintln!("making the environment {}", environment.display());
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(environment);
    finish(venv, INSTALL_LIMIT, "python3 -m venv (on Debian it wants the package python3-venv)").await?;
    let mut install = pip(&python);
    install.args(["install", "--quiet", "--no-input"]).args(options).arg("--requirement").arg(requirements);
    finish(install, INSTALL_LIMIT, "the installation of the pinned packages").await?;
    if !pins.lines().any(|line| line == PARTIAL) {
        let mut check = pip(&python);
        check.arg("check");
        finish(check, INSTALL_LIMIT, "pip check of the pinned packages").await?;
    }
    set_made(environment, &wanted)?;
    Ok(python)
}

/// Installs one package, without what it depends on, into a folder of its own.
async fn install_apart(python: &Path, pin: &str, packages: &Path) -> Result<()> {
    if is_made(packages, pin) {
        return Ok(());
    }
    if packages.exists() {
        fs::remove_dir_all(packages)?;
    }
    let mut install = pip(python);
    install.args(["install", "--quiet", "--no-input", "--no-deps", "--target"]).arg(packages).arg(pin);
    finish(install, INSTALL_LIMIT, &format!("the installation of {pin}")).await?;
    set_made(packages, pin)
}

fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    command
}
