//! Environments for clients written in JavaScript, and Node's own test runner in them.
//!
//! Modules are looked up from where a test lies, so the tests are copied beside the packages; nothing is ever
//! installed into the source tree.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{INSTALL_LIMIT, finish, is_made, python, set_made, version};

/// The oldest Node.js the SDK runs on.
const OLDEST: u32 = 20;

/// Node.js and npm: the machine's own, or those of a package.
struct Node {
    node: PathBuf,
    npm: PathBuf,
    version: String,
}

/// Node's test runner on a folder of tests, beside the packages that the folder's lock file names.
pub(super) async fn tests(tests: &Path, environment: &Path) -> Result<Command> {
    let node = node(tests, environment).await?;
    packages(&node, tests, environment).await?;
    copy_tests(tests, environment)?;
    let mut command = Command::new(node.node);
    command.current_dir(environment).args(["--test", "--test-reporter=spec"]);
    Ok(command)
}

/// The machine's Node.js if it is young enough, else one from a Python package, which brings the program along.
async fn node(tests: &Path, environment: &Path) -> Result<Node> {
    if let (Some(version), Some(_)) = (version("node").await, version("npm").await)
        && major(&version).is_some_and(|major| major >= OLDEST)
    {
        return Ok(Node { node: "node".into(), npm: "npm".into(), version });
    }
    let own = environment.with_extension("node");
    let interpreter = python::environment_of(&tests.join("node.txt"), &own).await?;
    let programs = interpreter.parent().context("an interpreter lies in a folder")?;
    let (node, npm) = (programs.join("node"), programs.join("npm"));
    let version = version(&node.to_string_lossy()).await.context("the packaged Node.js does not run")?;
    Ok(Node { node, npm, version })
}

fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Installs exactly what the lock file names. It is kept, and made anew when the lock or Node.js changes.
async fn packages(node: &Node, tests: &Path, environment: &Path) -> Result<()> {
    let lock = fs::read_to_string(tests.join("package-lock.json")).context("cannot read the lock file")?;
    let wanted = format!("{}\n{lock}", node.version);
    if is_made(environment, &wanted) {
        return Ok(());
    }
    eprintln!("making the environment {}", environment.display());
    if environment.exists() {
        fs::remove_dir_all(environment)?;
    }
    fs::create_dir_all(environment)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(tests.join(file), environment.join(file))?;
    }
    let mut install = Command::new(&node.npm);
    install.current_dir(environment).args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]);
    finish(install, INSTALL_LIMIT, "the installation of the JavaScript SDK").await?;
    set_made(environment, &wanted)
}

fn copy_tests(tests: &Path, environment: &Path) -> Result<()> {
    for old in scripts(environment)? {
        fs::remove_file(old)?;
    }
    for script in scripts(tests)? {
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
