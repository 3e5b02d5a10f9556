//! `a2ad try`: runs one skill of a configuration without a server that others could reach, and prints the result.

use std::path::PathBuf;

use a2ad::internal::{
    LocalServer,
    assembly::{Backends, SkillAgent},
};
use clap::Args;
use protocol::hint;

use crate::cli::calls::compose::MessageFlags;

use crate::cli::failure::{Failure, code};

use crate::cli::runtime;

use crate::cli::calls::send::{self, WaitFlags};

use crate::cli::calls::session::{Session, SessionFlags};

use crate::cli::variables;
use crate::config::{self, Config, ConfigFile};

#[derive(Debug, Args)]
pub(super) struct TryFlags {
    /// Skill to run.
    #[arg(value_name = "SKILL")]
    skill: String,
    /// Text of the message.
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// Arguments of the skill.
    #[arg(long, value_name = "JSON")]
    data: Option<String>,
    /// Configuration file [default: ./a2ad.toml if it exists, else the built-in demo; env: A2AD_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the task as A2A 1.0 JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(flags: TryFlags) -> Result<u8, Failure> {
    let TryFlags { skill, text, data, config, json } = flags;
    let variables = variables();
    let file = ConfigFile::find(config.as_deref(), &variables);
    let source = config::Source { file: file.as_ref(), variables, ..config::Source::default() };
    let config = config::load(source).map_err(|error| Failure::usage(error.to_string()))?;
    // Many tools have no arguments.
    let data = data.or_else(|| text.is_empty().then(|| "{}".to_owned()));
    let message = MessageFlags::of_skill(&skill, text, data).compose(None)?;
    let failed = |error: anyhow::Error| Failure::new(code::ERROR, format!("{error:#}"));
    let runtime = runtime().map_err(failed)?;
    let (server, backends) = runtime.block_on(start(&config)).map_err(failed)?;
    let result = agent_of(&config, &backends, &skill).and_then(|agent| {
        let session = SessionFlags::local(server.agent_url(&agent), json);
        Session::run(
            session,
            |session| async move { send::send(&session, message, &WaitFlags::default()).await },
        )
    });
    runtime.block_on(async {
        server.stop().await;
        backends.stop().await;
    });
    result
}

/// Starts the backends, and a server on a free loopback port with a temporary store.
async fn start(config: &Config) -> anyhow::Result<(LocalServer, Backends)> {
    let backends = Backends::start(&config.backends).await?;
    let server =
        LocalServer::start(config.catalog(|agent| agent.registered_for_owner(&backends)), config.limits)
            .await?;
    Ok((server, backends))
}

/// The first agent that has the skill; the default agent, if it has.
fn agent_of(config: &Config, backends: &Backends, skill: &str) -> Result<String, Failure> {
    let mut agents: Vec<&SkillAgent> = config.definitions().filter(|agent| agent.settings.enabled).collect();
    agents.sort_by_key(|agent| agent.id != config.server.default_agent);
    let mut known = Vec::new();
    for agent in agents {
        let registered = agent.registered(backends);
        if registered.skills().find(skill).is_some() {
            return Ok(agent.id.clone());
        }
        known.extend(registered.skills().iter().map(|skill| skill.id().to_owned()));
    }
    let hint = hint(skill, known.iter().map(String::as_str));
    Err(Failure::usage(format!("there is no skill {skill:?}; {hint}")))
}
