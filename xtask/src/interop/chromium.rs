//! Chromium for the tests of pages: the browser of the machine, else the package of Debian.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{debian, install_lock};

/// The variable that names another browser, such as Chrome.
const VARIABLE: &str = "CHROMIUM";
const PROGRAM: &str = "/usr/bin/chromium";

/// The path of the browser; it is installed if it is missing.
pub(super) async fn program() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(VARIABLE) {
        return Ok(program.into());
    }
    let _lock = install_lock()?;
    if !Path::new(PROGRAM).exists() {
        install().await.with_context(|| {
            format!(
                "the tests of pages need {PROGRAM}; install the Debian package chromium, or set {VARIABLE} to the path \
                 of a Chromium or Chrome"
            )
        })?;
    }
    Ok(PROGRAM.into())
}

async fn install() -> Result<()> {
    eprintln!("installing the Debian package chromium");
    debian::update().await?;
    debian::apt_get(&["install", "--yes", "--quiet=2", "--no-install-recommends", "chromium"]).await
}
