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

use super::{Language, TEST_LIMIT, finish, javascript, python};
use crate::server;

const START_LIMIT: Duration = Duration::from_secs(60);

/// Runs the tests of our client against the agent in this folder.
pub(super) async fn test(
    folder: &str,
    language: Language,
    program: &Path,
    place: &Path,
    options: &[String],
) -> Result<()> {
    let tests = server::workspace().join("tests/interop/servers");
    let agent = Agent::start(&tests.join(folder), language, place).await?;
    let mut command = python::tests(&tests, &place.join("servers")).await?;
    command.args(options).env("A2AD_PROGRAM", program).env("AGENT_URL", &agent.url).env("AGENT_SDK", folder);
    let tested = finish(command, TEST_LIMIT, "our client").await;
    if tested.is_err() {
        eprintln!("the agent's log is {}", agent.log.display());
    }
    tested
}

/// A running sample agent. Dropping it kills the process.
struct Agent {
    url: String,
    log: PathBuf,
    _child: Child,
}

impl Agent {
    /// Starts the agent in this folder and returns once it has said where it is.
    async fn start(folder: &Path, language: Language, place: &Path) -> Result<Self> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let environment = place.join(format!("server-{name}"));
        let mut command = match language {
            Language::Python => python::script(folder, "agent.py", &environment).await?,
            Language::JavaScript => javascript::script(folder, "agent.js", &environment).await?,
        };
        let log = place.join(format!("server-{name}.log"));
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
