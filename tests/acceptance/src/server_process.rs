//! Server processes: the executable is started with a given configuration and can be killed.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::bail;
use testkit::process;
use tokio::process::Command;

use super::http::Server;

/// The limit of a server start, shorter than that of a check.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Lets the operating system choose a free port.
pub(crate) use testkit::process::ANY_PORT;

/// Environment variables of a process.
pub(crate) type Environment = &'static [(&'static str, &'static str)];

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
    pub(crate) environment: Environment,
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

    /// The executable with a verb, flags and then the path of the configuration file, which is written.
    fn command(&self, verb: &str, flags: &[&str]) -> anyhow::Result<Command> {
        std::fs::create_dir_all(&self.folder)?;
        let config = self.folder.join("a2ad.toml");
        std::fs::write(&config, &self.config)?;
        let mut command = self.bare_command();
        command.arg(verb).args(flags).arg(config);
        Ok(command)
    }

    /// The path of the store.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("a2ad.db")
    }

    /// The executable without arguments. The environment is cleared, so that neither settings nor API keys of the user
    /// reach the process, which is killed when its handle is dropped.
    fn bare_command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(self.environment.iter().copied());
        command.current_dir(&self.folder).stdin(Stdio::null()).kill_on_drop(true);
        command
    }
}

/// A running server process, which is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    pub(crate) server: Server,
    process: process::Server,
}

impl ServerProcess {
    /// Starts a server and waits until it is ready.
    pub(crate) async fn start(plan: &Plan) -> anyhow::Result<Self> {
        let mut command = plan.command("serve", &["--config"])?;
        if let Some(address) = plan.listen {
            command.args(["--listen", address]);
        }
        command.args([Path::new("--store"), &plan.store()]);
        let process = process::Server::start_command_within(TIMEOUT, command).await?;
        Ok(Self { server: Server::at(process.address.to_string()), process })
    }

    /// Kills the process with SIGKILL.
    pub(crate) async fn kill(self) -> anyhow::Result<()> {
        Ok(self.process.kill().await?)
    }
}
