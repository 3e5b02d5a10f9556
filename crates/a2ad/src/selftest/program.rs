//! A second process of this program: a server with a configuration of ours, that can be killed.

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

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A port that is free.
pub(super) const ANY_PORT: &str = "127.0.0.1:0";

/// How to start a server.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// What is run.
    pub(super) program: PathBuf,
    /// What it is to do.
    pub(super) config: String,
    /// Where it keeps its files.
    pub(super) folder: PathBuf,
    /// Where it listens; none is where the configuration says.
    pub(super) listen: Option<&'static str>,
    /// All that its environment has.
    pub(super) environment: &'static [(&'static str, &'static str)],
}

impl Plan {
    /// What the program says that this configuration would run.
    pub(super) async fn described(&self) -> anyhow::Result<String> {
        let output = self.command("check", &["--json"])?.output().await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !output.status.success() {
            bail!("the program does not take its configuration: {}", text(&output.stderr));
        }
        Ok(text(&output.stdout))
    }

    /// The program with a verb and flags, the last thing before further ones the configuration. It hears nothing of
    /// our environment: neither settings nor anybody's keys.
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

/// A server in a process of its own, which ends with this value.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) server: Server,
    child: Child,
    /// Read what it goes on saying, so that it is never held up by it.
    _readers: JoinSet<()>,
}

impl Program {
    /// Starts a server and waits until it says where it is.
    pub(super) async fn start(plan: &Plan) -> anyhow::Result<Self> {
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
        let (lines, mut said) = tokio::sync::mpsc::unbounded_channel();
        if let Some(out) = child.stdout.take() {
            readers.spawn(read(out, lines.clone()));
        }
        if let Some(err) = child.stderr.take() {
            readers.spawn(read(err, lines));
        }
        let mut heard = String::new();
        let url = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = said.recv().await {
                if let Some(server) = address(&line) {
                    return Some(server);
                }
                heard += &line;
            }
            None
        });
        match url.await {
            Ok(Some(server)) => Ok(Self { server, child, _readers: readers }),
            Ok(None) => bail!("a server of our own stopped: {heard}"),
            Err(_) => bail!("a server of our own does not say where it listens: {heard}"),
        }
    }

    /// Ends it without warning.
    pub(super) async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }
}

async fn read(from: impl tokio::io::AsyncRead + Unpin, lines: tokio::sync::mpsc::UnboundedSender<String>) {
    let mut from = BufReader::new(from).lines();
    // Somebody who no longer listens does not keep us from reading on.
    while let Ok(Some(line)) = from.next_line().await {
        let _ = lines.send(line);
    }
}

/// The address in a line that says one.
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
    fn the_address_is_found_in_whatever_is_said() {
        let host = |line: &str| address(line).map(|server| server.host);
        assert_eq!(host(r#"{"url":"http://127.0.0.1:4242","x":1}"#).as_deref(), Some("127.0.0.1:4242"));
        assert_eq!(host("a2ad serves at http://127.0.0.1:1/a2a").as_deref(), Some("127.0.0.1:1"));
        assert_eq!(host("nothing"), None);
    }
}
