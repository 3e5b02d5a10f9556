//! TLS as software of others sees it: curl, `openssl s_client` and the official Python SDK, with certificates that `openssl`
//! makes.

use std::path::Path;

use anyhow::{Context, Result};

use super::{TEST_LIMIT, file, finish, python, version};

/// Runs the tests of TLS in the environment of the suite `python`.
pub(super) async fn test(program: &Path, dir: &Path, options: &[String]) -> Result<()> {
    version("curl").await.context("curl is needed for the tests of TLS; on Debian: apt-get install curl")?;
    let requirements = file("python").join("requirements.txt");
    let python = python::environment_of(&requirements, &dir.join("python")).await?;
    let mut command = python::pytest(&python, &file("tls"));
    command.args(options).env("A2AD_PROGRAM", program);
    finish(command, TEST_LIMIT, "the tests of TLS").await
}
