//! MCP clients that other people wrote: the Python and TypeScript SDKs, and the Inspector's command-line mode.

use std::fs;
use std::path::Path;

use anyhow::Result;
use tokio::process::Command;

use super::{file, javascript, python};

/// The server of these tests.
pub(super) const CONFIG: &str = "mcp/server.toml";

/// The oldest major version of Node.js that the Inspector supports in all its releases.
const NODE: u32 = 24;

/// Packages of the Inspector's page and terminal interface, which are not tested; they have 50 MiB.
const UNUSED: [&str; 6] =
    ["@rolldown", "es-toolkit", "lightningcss", "lightningcss-linux-x64-gnu", "rolldown", "vite"];

/// The command that runs the tests. The Python SDK and version 1 of the TypeScript SDK are in the environments of the
/// suite `backends`.
pub(super) async fn tests(dir: &Path) -> Result<Command> {
    let (folder, backends) = (file("mcp"), file("backends"));
    let version_1 = dir.join("backends.npm");
    javascript::install(&backends, &version_1).await?;
    let packages = dir.join("mcp.npm");
    let node = javascript::install_for(NODE, &folder, &packages).await?;
    for package in UNUSED {
        let unused = packages.join("node_modules").join(package);
        if unused.exists() {
            fs::remove_dir_all(unused)?;
        }
    }
    let python = python::environment_of(&backends.join("requirements.txt"), &dir.join("backends")).await?;
    let mut command = python::pytest(&python, &folder);
    command.env("PACKAGES", &packages).env("PACKAGES_1", &version_1).env("NODE", &node);
    Ok(command)
}
