//! The servers that are measured, and their command lines.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use tokio::process::Command;

use super::dirs::BenchDirs;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contender {
    BareAxum,
    BareDurable,
    OfficialSdk,
    A2ad,
}

impl Contender {
    pub(super) const ALL: [Self; 4] = [Self::BareAxum, Self::BareDurable, Self::OfficialSdk, Self::A2ad];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::BareAxum => "bare-axum",
            Self::BareDurable => "bare-durable",
            Self::OfficialSdk => "official-sdk",
            Self::A2ad => "a2ad",
        }
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Self::BareAxum => {
                "axum alone: parses the body, answers a task of the same shape and size, keeps nothing. \
                 The ceiling of this HTTP stack"
            }
            Self::BareDurable => {
                "the same with 1.6 KB appended per call and a shared `fdatasync` before every answer. \
                 The ceiling of a durable server on this stack and disk"
            }
            Self::OfficialSdk => {
                "an echo agent on the official Rust SDK, in memory, put together as in its own example, hence \
                 without `TCP_NODELAY`; its streams have no task at the head and so three events, not four"
            }
            Self::A2ad => "this program with its default settings: every task on disk before it is answered",
        }
    }

    /// The path of its echo agent; for gRPC, the tenant.
    pub(super) fn path(self, mode: &str) -> &'static str {
        match (self, mode) {
            (Self::A2ad, "send-grpc" | "send-grpc-multiplexed") => "default/echo",
            // One of its skills may act outside the process, so no run of it begins before the acceptance is durable.
            (Self::A2ad, "send-skill") => "/a2a/demo",
            (Self::A2ad, _) => "/a2a/echo",
            _ => "/",
        }
    }

    /// The command that starts it with its files in `folder`; `open_files` as in [`program`].
    pub(super) fn command(
        self,
        dirs: &BenchDirs,
        address: SocketAddr,
        folder: &Path,
        open_files: Option<u64>,
    ) -> Command {
        let listen = ["--listen".to_owned(), address.to_string()];
        let mut command = match self {
            Self::A2ad => program(&dirs.a2ad, open_files),
            _ => program(&dirs.bench.join(self.name()), open_files),
        };
        match self {
            Self::BareAxum | Self::OfficialSdk => command.args(listen),
            Self::BareDurable => command.args(listen).arg("--dir").arg(folder),
            Self::A2ad => command.arg("serve").args(listen).arg("--store").arg(folder.join("a2ad.db")),
        };
        command
    }
}

/// A command with an optional limit of open files. A shell sets the limit and then replaces itself with the
/// program, so that there is one process.
pub(super) fn program(path: &Path, open_files: Option<u64>) -> Command {
    let Some(files) = open_files else { return Command::new(path) };
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -n "$0" && exec "$@""#, &files.to_string()]).arg(path);
    command
}

/// The limit of open files a process can have here, at most `wanted`.
pub(super) async fn open_files_allowed(wanted: u64) -> Result<u64> {
    let script = r#"ulimit -n "$0" 2>/dev/null || ulimit -n "$(ulimit -Hn)"; ulimit -n"#;
    let output = Command::new("sh").args(["-c", script, &wanted.to_string()]).output().await?;
    let response = String::from_utf8(output.stdout)?;
    // A value that is not a number is `unlimited`.
    Ok(response.trim().parse().unwrap_or(wanted).min(wanted))
}
