//! Who may call: what the program does with credentials, started from a configuration and called from outside.

mod client;
mod reload;
mod start;

use std::{fs, path::Path};

use testkit::http1;
use tokio::process::Command;

use super::common::{self, Running, configured};

/// A static token, in the variable `TOKEN`.
const TOKEN: &str = "static-token-0123456789";
/// A shared secret.
const SECRET: &str = "shared-secret-0123456789";

/// The program in a folder whose `a2ad.toml` has this text, unless it is empty.
fn program(folder: &Path, config: &str, variables: &[(&str, &str)]) -> Command {
    if !config.is_empty() {
        fs::write(folder.join("a2ad.toml"), config).unwrap();
    }
    let mut command = common::a2ad(folder, &[]);
    command.envs(variables.iter().copied());
    command
}

/// A server whose `a2ad.toml` has this text, unless it is empty.
async fn start(listen: &str, config: &str, variables: &[(&str, &str)]) -> Running {
    let folder = if config.is_empty() { tempfile::tempdir().unwrap() } else { configured(config) };
    Running::start_with(folder, listen, variables).await
}

impl Running {
    /// The status of a call with these headers.
    async fn status(&self, agent: &str, headers: &[(&str, &str)]) -> u16 {
        let path = format!("/a2a/{agent}/tasks");
        http1::request(self.server.address, "GET", &path, headers, &[]).await.unwrap().status
    }
}
