//! Our client beside servers nobody here wrote: a sample agent on each SDK's own server, and the program's verbs
//! against it.
//!
//! The agents lie in `tests/interop/servers`, one folder an SDK, each with an environment of its own; the tests beside
//! them run the program as its users do, and are the same for every agent.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use super::{TEST_LIMIT, finish, javascript, python};
use crate::server;

const START_LIMIT: Duration = Duration::from_secs(60);

/// The folder of a sample agent, and what it is written in.
#[derive(Clone, Copy)]
pub(super) enum Sample {
    Python(&'static str),
    JavaScript(&'static str),
}

/// Runs the tests of our client against a sample agent.
pub(super) async fn test(sample: Sample, program: &Path, place: &Path, options: &[String]) -> Result<()> {
    let tests = server::workspace().join("tests/interop/servers");
    let agent = Agent::start(sample, &tests, place).await?;
    let mut command = python::tests(&tests, &place.join("servers")).await?;
    command
        .args(options)
        .env("A2AD_PROGRAM", program)
        .env("AGENT_URL", &agent.url)
        .env("AGENT_SDK", sample.folder());
    let tested = finish(command, TEST_LIMIT, "our client").await;
    if tested.is_err() {
        eprintln!("the agent's log is {}", agent.log.display());
    }
    tested
}

impl Sample {
    fn folder(self) -> &'static str {
        match self {
            Self::Python(folder) | Self::JavaScript(folder) => folder,
        }
    }
}

/// A running sample agent. Dropping it kills the process.
struct Agent {
    url: String,
    log: PathBuf,
    _child: Child,
}

impl Agent {
    /// Starts an agent and returns once it has said where it is.
    async fn start(sample: Sample, tests: &Path, place: &Path) -> Result<Self> {
        let name = format!("server-{}", sample.folder());
        let (folder, environment) = (tests.join(sample.folder()), place.join(&name));
        let mut command = match sample {
            Sample::Python(_) => python::script(&folder, "agent.py", &environment).await?,
            Sample::JavaScript(_) => javascript::script(&folder, "agent.js", &environment).await?,
        };
        let log = place.join(name).with_extension("log");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?).kill_on_drop(true);
        let mut child = command.spawn().context("the sample agent could not be started")?;
        let mut said = BufReader::new(child.stdout.take().context("its output is piped")?).lines();
        let url = timeout(START_LIMIT, said.next_line())
            .await
            .with_context(|| format!("the sample agent said nothing within {START_LIMIT:?}"))??
            .unwrap_or_default();
        ensure!(url.starts_with("http://127.0.0.1:"), "the sample agent does not run, see {}", log.display());
        Ok(Self { url, log, _child: child })
    }
}
