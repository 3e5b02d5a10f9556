//! Credentials by software that other people wrote: an OpenID provider, libraries for JSON Web Tokens, and the
//! authentication of the official SDKs and of an MCP client.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{TEST_LIMIT, file, finish, javascript, python};

/// Runs the tests of credentials. PyJWT and the MCP client are in the environment of the suite `backends`, the SDKs in
/// those of their own suites.
pub(super) async fn test(program: &Path, dir: &Path, options: &[String]) -> Result<()> {
    let folder = file("auth");
    let packages = dir.join("auth.npm");
    let node = javascript::install(&folder, &packages).await?;
    let sdk = dir.join("javascript");
    javascript::install(&file("javascript"), &sdk).await?;
    let mut command = python::pytest(&python_of("backends", dir).await?, &folder);
    command
        .args(options)
        .env("A2AD_PROGRAM", program)
        .env("NODE", node)
        .env("PACKAGES", packages)
        .env("PACKAGES_SDK", sdk)
        .env("PYTHON_SDK", python_of("python", dir).await?)
        .env("PYTHON_SDK_03", python_of("python03", dir).await?);
    finish(command, TEST_LIMIT, "the tests of credentials").await
}

/// The interpreter of a suite.
async fn python_of(suite: &str, dir: &Path) -> Result<PathBuf> {
    python::environment_of(&file(suite).join("requirements.txt"), &dir.join(suite)).await
}
