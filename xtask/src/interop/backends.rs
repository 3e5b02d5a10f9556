//! Backends that other people wrote: MCP servers from npm and PyPI, and a public OpenAPI document.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::{file, finish, javascript, python};

const LIMIT: Duration = Duration::from_secs(420);

/// The only file of the package with the document that is kept; the others have 100 MiB.
const DOCUMENT: &str = "api.github.com.json";

/// Runs the tests of the program with these backends.
pub(super) async fn test(program: &Path, dir: &Path, options: &[String]) -> Result<()> {
    let folder = file("backends");
    let packages = dir.join("backends.npm");
    let node = javascript::install(&folder, &packages).await?;
    keep_only(&packages.join("node_modules/@octokit/openapi/generated"), DOCUMENT)?;
    let mut command = python::tests(&folder, &dir.join("backends")).await?;
    command.args(options).env("A2AD_PROGRAM", program).env("PACKAGES", &packages).env("NODE", &node);
    finish(command, LIMIT, "the tests of backends").await
}

/// Deletes every other file of a directory.
fn keep_only(directory: &Path, name: &str) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_file() && path.file_name().is_some_and(|file| file != name) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
