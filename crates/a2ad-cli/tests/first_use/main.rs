//! What somebody meets who uses the program for the first time, with tools of their own.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]
#![allow(clippy::disallowed_types, reason = "documents are compared as trees")]
#![allow(clippy::disallowed_methods, reason = "the tasks of a test end with its runtime")]

mod default_agent;
mod failures;
mod long_runs;
mod operating;
mod results;
mod self_signed;
mod starting;

use std::{path::Path, process::Stdio, time::Duration};

use testkit::process::{self, Server};
use tokio::process::Command;

const TIMEOUT: Duration = Duration::from_secs(30);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.expect("timed out")
}

fn a2ad(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = process::command(env!("CARGO_BIN_EXE_a2ad"));
    command.current_dir(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server with this configuration file.
async fn serve(folder: &Path, config: &str) -> Server {
    std::fs::write(folder.join("a2ad.toml"), config).unwrap();
    Server::start_command(a2ad(folder, &["serve", "--listen", "127.0.0.1:0"])).await.unwrap()
}

/// Exit code, stdout and stderr of a command.
#[derive(Debug)]
struct Done {
    code: i32,
    out: String,
    err: String,
}

/// Runs a command to its end.
async fn run(folder: &Path, arguments: &[&str]) -> Done {
    let output = within(a2ad(folder, arguments).output()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}
