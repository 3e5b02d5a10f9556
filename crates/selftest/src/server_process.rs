//! Server processes: the executable is started with a given configuration and can be killed.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    task::JoinSet,
};

use super::http::Server;

/// The time limit of a server start.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Lets the operating system choose a free port.
pub(crate) const ANY_PORT: &str = "127.0.0.1:0";

/// How to start a server.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The path of the executable.
    pub(crate) program: PathBuf,
    /// The text of the configuration file.
    pub(crate) config: String,
    /// The working directory, with the configuration file and the store.
    pub(crate) folder: PathBuf,
    /// The address to listen on; `None` uses the one in the configuration.
    pub(crate) listen: Option<&'static str>,
    /// The complete environment of the process.
    pub(crate) environment: &'static [(&'static str, &'static str)],
}

impl Plan {
    /// The output of `a2ad check --json` for this configuration.
    pub(crate) async fn effective_config(&self) -> anyhow::Result<String> {
        let output = self.command("check", &["--json"])?.output().await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !output.status.success() {
            bail!("a2ad check rejected the configuration: {}", text(&output.stderr));
        }
        Ok(text(&output.stdout))
    }

    /// The executable with a verb, flags and then the path of the configuration file. The environment is cleared, so
    /// that neither settings nor API keys of the user reach the process.
    fn command(&self, verb: &str, flags: &[&str]) -> anyhow::Result<Command> {
        std::fs::create_dir_all(&self.folder)?;
        let config = self.folder.join("a2ad.toml");
        std::fs::write(&config, &self.config)?;
        let mut command = Command::new(&self.program);
        command.arg(verb).args(flags).arg(config).env_clear().envs(self.environment.iter().copied());
        command.current_dir(&self.folder).stdin(Stdio::null());
        Ok(command)
    }
}

/// A running server process, which is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    pub(crate) server: Server,
    child: Child,
    /// Drain stdout and stderr, so that the process never blocks on a full pipe.
    _readers: JoinSet<()>,
}

impl ServerProcess {
    /// Starts a server and waits until it prints its address.
    pub(crate) async fn start(plan: &Plan) -> anyhow::Result<Self> {
        let mut command = plan.command("serve", &["--config"])?;
        if let Some(address) = plan.listen {
            command.args(["--listen", address]);
        }
        let mut child = command
            .args([Path::new("--store"), &plan.folder.join("a2ad.db")])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", plan.program.display()))?;
        let mut readers = JoinSet::new();
        let (lines, mut output_lines) = tokio::sync::mpsc::unbounded_channel();
        if let Some(out) = child.stdout.take() {
            readers.spawn(read(out, lines.clone()));
        }
        if let Some(err) = child.stderr.take() {
            readers.spawn(read(err, lines));
        }
        let mut output = String::new();
        let url = tokio::time::timeout(TIMEOUT, async {
            while let Some(line) = output_lines.recv().await {
                if let Some(server) = address(&line) {
                    return Some(server);
                }
                output += &line;
            }
            None
        });
        match url.await {
            Ok(Some(server)) => Ok(Self { server, child, _readers: readers }),
            Ok(None) => bail!("the started server exited: {output}"),
            Err(_) => {
                bail!("the started server printed no address within {} seconds: {output}", TIMEOUT.as_secs())
            }
        }
    }

    /// Kills the process with SIGKILL.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }
}

async fn read(from: impl tokio::io::AsyncRead + Unpin, lines: tokio::sync::mpsc::UnboundedSender<String>) {
    let mut from = BufReader::new(from).lines();
    // Reading goes on after the receiver is dropped, so that the pipe stays drained.
    while let Ok(Some(line)) = from.next_line().await {
        let _ = lines.send(line);
    }
}

/// The server whose address is in a line of output.
fn address(line: &str) -> Option<Server> {
    let start = line.find("http://127.0.0.1:")?;
    let url = &line[start..];
    let end = url["http://".len()..].find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
    Server::of(&url[..end.map_or(url.len(), |end| end + "http://".len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_any_output_line() {
        let host = |line: &str| address(line).map(|server| server.host);
        assert_eq!(host(r#"{"url":"http://127.0.0.1:4242","x":1}"#).as_deref(), Some("127.0.0.1:4242"));
        assert_eq!(host("a2ad serves at http://127.0.0.1:1/a2a").as_deref(), Some("127.0.0.1:1"));
        assert_eq!(host("nothing"), None);
    }
}
