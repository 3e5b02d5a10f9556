//! Tests of our client against servers of other implementations: a sample agent on each SDK's own server, called by
//! the commands of our program.
//!
//! The agents are in `tests/interop/servers`, one folder for each SDK with its own environment; the tests in the
//! same directory call the program as users do and are the same for every agent.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use super::{TEST_LIMIT, finish, javascript, python};
use crate::program;

const START_LIMIT: Duration = Duration::from_secs(60);

/// The folder of a sample agent, by language.
#[derive(Clone, Copy)]
pub(super) enum Sample {
    Python(&'static str),
    JavaScript(&'static str),
}

pub(super) async fn test(sample: Sample, program: &Path, dir: &Path, options: &[String]) -> Result<()> {
    let tests = program::workspace().join("tests/interop/servers");
    let agent = Agent::start(sample, &tests, dir).await?;
    let mut command = python::tests(&tests, &dir.join("servers")).await?;
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
    /// Starts an agent and returns once it has printed its URL.
    async fn start(sample: Sample, tests: &Path, dir: &Path) -> Result<Self> {
        let name = format!("server-{}", sample.folder());
        let (folder, environment) = (tests.join(sample.folder()), dir.join(&name));
        let mut command = match sample {
            Sample::Python(_) => python::script(&folder, "agent.py", &environment).await?,
            Sample::JavaScript(_) => javascript::script(&folder, "agent.js", &environment).await?,
        };
        let log = dir.join(name).with_extension("log");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?).kill_on_drop(true);
        let mut child = command.spawn().context("the sample agent could not be started")?;
        let mut output_lines = BufReader::new(child.stdout.take().context("its output is piped")?).lines();
        let url = timeout(START_LIMIT, output_lines.next_line())
            .await
            .with_context(|| format!("the sample agent printed no URL within {START_LIMIT:?}"))??
            .unwrap_or_default();
        ensure!(
            url.starts_with("http://127.0.0.1:"),
            "the sample agent did not start, see {}",
            log.display()
        );
        Ok(Self { url, log, _child: child })
    }
}
