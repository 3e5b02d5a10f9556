//! Who may call: what the program does with credentials, started from a configuration and called from outside.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

mod client;
mod reload;
mod start;

use std::{fs, path::Path};

use tempfile::TempDir;
use testkit::{
    http1,
    process::{self, Server},
};
use tokio::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_a2ad");
/// A static token, in the variable `TOKEN`.
const TOKEN: &str = "static-token-0123456789";
/// A shared secret.
const SECRET: &str = "shared-secret-0123456789";
const ECHO: &str = "[skills.echo]\nbuiltin = \"echo\"\n";

/// The program in a folder whose `a2ad.toml` has this text, unless it is empty.
fn program(folder: &Path, config: &str, variables: &[(&str, &str)]) -> Command {
    if !config.is_empty() {
        fs::write(folder.join("a2ad.toml"), config).unwrap();
    }
    let mut command = process::command(PROGRAM);
    command.current_dir(folder).envs(variables.iter().copied());
    command
}

/// A server in a folder of its own.
struct Running {
    folder: TempDir,
    server: Server,
}

impl Running {
    async fn start(listen: &str, config: &str, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = program(folder.path(), config, variables);
        command.args(["--listen", listen]);
        let server = Server::start_command(command).await.unwrap();
        Self { folder, server }
    }

    /// The status of a call with these headers.
    async fn status(&self, agent: &str, headers: &[(&str, &str)]) -> u16 {
        let path = format!("/a2a/{agent}/tasks");
        http1::request(self.server.address, "GET", &path, headers, &[]).await.unwrap().status
    }
}
