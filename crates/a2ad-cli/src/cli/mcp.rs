//! `a2ad mcp`: offers all agents as tools to an MCP client that starts this program, over standard input and output.
//!
//! The agents run in this process, with the backends of the configuration. Those of a server are agents too, which pass
//! each call on to it and change with it. Nothing but MCP is written to standard output.

mod remote;

use std::{convert::Infallible, path::PathBuf};

use a2ad::internal::{ReloadedSettings, Settings, StdioError, assembly::Backends, serve_stdio};
use clap::Args;
use client::ClientOptions;
use store::InstanceState;
use tokio::{sync::mpsc, task::block_in_place};

use self::remote::{ListWatch, RemoteAgents};
use crate::cli::calls::credentials::CredentialFlags;
use crate::cli::calls::target;
use crate::cli::failure::{Failure, code};
use crate::cli::runtime;
use crate::cli::variables;
use crate::{
    config::{self, Config, ConfigFile},
    logging,
    reload::warn_of_missing_tools,
};

#[derive(Debug, Args)]
pub(super) struct McpFlags {
    /// Server whose agents are offered [default: the one that runs with the configuration, else the configuration
    /// itself; env: A2AD_URL].
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    url: Option<String>,
    /// Configuration file whose agents run in this process [default: ./a2ad.toml if it exists, else the built-in demo;
    /// env: A2AD_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    credentials: CredentialFlags,
}

/// Where the agents are.
enum Agents {
    Here(Box<Config>, Option<PathBuf>),
    At(String),
}

/// Serves until standard input ends.
pub(super) fn run(flags: &McpFlags) -> Result<u8, Failure> {
    let agents = find(flags)?;
    // Dropped last: dropping it writes the queued lines.
    let _log = logging::start(&[], None)?;
    let runtime = runtime().map_err(|error| Failure::new(code::ERROR, format!("{error:#}")))?;
    let served = runtime.block_on(async {
        match agents {
            Agents::Here(config, file) => serve_config(&config, file).await,
            Agents::At(url) => {
                let options = ClientOptions::default().with_headers(flags.credentials.headers(None)?);
                serve_remote(url, options).await
            }
        }
    });
    // A read of standard input cannot be interrupted.
    runtime.shutdown_background();
    served.map(|()| code::SUCCESS)
}

/// The server that is named or found running, else the configuration.
fn find(flags: &McpFlags) -> Result<Agents, Failure> {
    let variables = variables();
    let named =
        |name: &str| variables.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.clone());
    let url = match (&flags.url, &flags.config) {
        (Some(url), _) => Some(("--url", url.clone())),
        (None, None) => named("A2AD_URL").filter(|url| !url.is_empty()).map(|url| ("A2AD_URL", url)),
        (None, Some(_)) => None,
    };
    if let Some((source, url)) = url {
        return Ok(Agents::At(target::server(source, &url)?));
    }
    let file = ConfigFile::find(flags.config.as_deref(), &variables);
    let source = config::Source { file: file.as_ref(), variables, ..config::Source::default() };
    let config = config::load(source).map_err(|error| Failure::usage(error.to_string()))?;
    let holder = store::lock_holder(&config.store.url).filter(|_| flags.config.is_none());
    let running = holder.filter(|holder| holder.state == InstanceState::Serving);
    Ok(match running.and_then(|running| running.callers) {
        Some(url) => Agents::At(url),
        None => Agents::Here(Box::new(config), file.map(|file| file.path)),
    })
}

async fn serve_config(config: &Config, file: Option<PathBuf>) -> Result<(), Failure> {
    let failed = |error: anyhow::Error| Failure::new(code::ERROR, format!("{error:#}"));
    let mut backends = Backends::start(&config.backends).await.map_err(|error| failed(error.into()))?;
    warn_of_missing_tools(config, &backends);
    let (sender, reloads) = mpsc::channel(1);
    let settings = Settings {
        config: file,
        listen: config.server.listen.first().map_or(Settings::default().listen, |first| first.address),
        catalog: config.catalog(|agent| agent.registered_for_owner(&backends)),
        reloads: Some(reloads),
        limits: config.limits,
        server_options: config.server_options(&config.server.listen),
        ..Settings::default()
    };
    let served = tokio::select! {
        served = serve_stdio(settings) => served,
        never = follow(config, &mut backends, sender) => match never {},
    };
    backends.stop().await;
    Ok(served?)
}

/// Sends a new catalog whenever an MCP server has other tools.
async fn follow(
    config: &Config,
    backends: &mut Backends,
    reloads: mpsc::Sender<ReloadedSettings>,
) -> Infallible {
    loop {
        backends.changed().await;
        warn_of_missing_tools(config, backends);
        let catalog = block_in_place(|| config.catalog(|agent| agent.registered_for_owner(backends)));
        if reloads.send(catalog.into()).await.is_err() {
            return std::future::pending().await;
        }
    }
}

async fn serve_remote(url: String, options: ClientOptions) -> Result<(), Failure> {
    tracing::info!(url, "offering the agents of a server");
    let watch = ListWatch::begin(&url, &options).await?;
    let agents = RemoteAgents::read(url.clone(), options).await?;
    let (sender, reloads) = mpsc::channel(1);
    let mut settings = Settings { catalog: agents.catalog(), reloads: Some(reloads), ..Settings::default() };
    settings.server_options.public_url = Some(url);
    let calls = agents.calls();
    let served = tokio::select! {
        served = serve_stdio(settings) => served,
        never = remote::follow(agents, watch, sender) => match never {},
    };
    calls.finish().await;
    Ok(served?)
}

impl From<StdioError> for Failure {
    fn from(error: StdioError) -> Self {
        match error {
            StdioError::Serve(error) => anyhow::Error::new(error).into(),
            StdioError::Mcp(error) => Self::new(code::PROTOCOL, error.to_string()),
        }
    }
}
