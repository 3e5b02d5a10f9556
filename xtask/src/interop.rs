//! The program under test beside other people's clients: the official SDKs, each at a pinned version.
//!
//! The tests themselves are written in the client's language under `tests/interop`; here is what they need
//! around them: an environment that is made once and kept, a server on a fresh store, and a time limit.
//! Deliberately not here: any knowledge of the protocol.
#![allow(clippy::print_stderr, reason = "talk to stderr; the client's own report goes to stdout as it is")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::process::Command;
use tokio::time::timeout;

use crate::server::{self, Server};

const PYTHON_SDK: &str = "1.3.0";
const INSTALL_LIMIT: Duration = Duration::from_secs(600);
const TEST_LIMIT: Duration = Duration::from_secs(180);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Runs the tests of the official Python SDK against a server of its own; `options` go to pytest.
pub(crate) fn python(options: &[String]) -> Result<()> {
    let program = server::build(&[], None)?;
    let place = server::target()?.join("interop");
    fs::create_dir_all(&place).context("cannot make a place for the clients")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let python = python_environment(&place).await?;
        let server = Server::start(&program, &fresh_store(&place)?).await?;
        let tested = pytest(&python, &server, options).await;
        if tested.is_err() {
            eprintln!("the end of the server's log:\n{}", server.log_tail());
        }
        let stopped = server.terminate(STOP_LIMIT).await;
        tested?;
        let status = stopped?;
        ensure!(status.success(), "the server answered SIGTERM with {status}");
        Ok(())
    })
}

async fn pytest(python: &Path, server: &Server, options: &[String]) -> Result<()> {
    let mut command = Command::new(python);
    command
        .current_dir(python_tests())
        .args(["-m", "pytest"])
        .args(options)
        .env("A2AD_URL", format!("http://{}", server.address))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    finish(command, TEST_LIMIT, "the tests of the Python SDK").await
}

/// The interpreter of an environment that holds exactly the pinned packages. It is kept, and made anew when the
/// pins or the machine's Python change; the stamp is written last, so a half-made one is never taken for whole.
async fn python_environment(place: &Path) -> Result<PathBuf> {
    let requirements = python_tests().join("requirements.txt");
    let environment = place.join(format!("python-{PYTHON_SDK}"));
    let (stamp, python) = (environment.join("stamp"), environment.join("bin/python"));
    let wanted = format!("{}\n{}", python_version().await?, fs::read_to_string(&requirements)?);
    if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) && python.exists() {
        return Ok(python);
    }
    eprintln!("making an environment for the Python SDK {PYTHON_SDK}");
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(&environment);
    finish(make, INSTALL_LIMIT, "python3 -m venv (on Debian it wants the package python3-venv)").await?;
    let mut install = pip(&python);
    install.args(["install", "--quiet", "--no-input", "--no-deps", "--requirement"]).arg(&requirements);
    finish(install, INSTALL_LIMIT, "the installation of the Python SDK").await?;
    let mut check = pip(&python);
    check.arg("check");
    finish(check, INSTALL_LIMIT, "pip check of the pinned packages").await?;
    fs::write(&stamp, wanted)?;
    Ok(python)
}

async fn python_version() -> Result<String> {
    let output = Command::new("python3")
        .arg("--version")
        .output()
        .await
        .context("python3 is needed for the tests of the Python SDK")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    command
}

/// A store no earlier run has written to.
fn fresh_store(place: &Path) -> Result<PathBuf> {
    let store = place.join("store");
    if store.exists() {
        fs::remove_dir_all(&store).context("cannot clear the store of an earlier run")?;
    }
    fs::create_dir_all(&store)?;
    Ok(store.join("python.db"))
}

fn python_tests() -> PathBuf {
    server::workspace().join("tests/interop/python")
}

/// Runs a command to its end, within a limit; a command dropped at the limit is killed.
async fn finish(mut command: Command, limit: Duration, what: &str) -> Result<()> {
    let running = command.kill_on_drop(true).status();
    match timeout(limit, running).await {
        Ok(status) => {
            let status = status.with_context(|| format!("{what} could not be started"))?;
            ensure!(status.success(), "{what} failed ({status})");
            Ok(())
        }
        Err(_) => bail!("{what} did not end within {limit:?}"),
    }
}
