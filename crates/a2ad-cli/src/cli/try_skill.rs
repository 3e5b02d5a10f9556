//! `a2ad try`: runs one skill of a configuration without a server that others could reach, and prints the result.

use std::{
    collections::VecDeque,
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
};

use a2ad::internal::{
    LocalServer,
    assembly::{Backends, SkillAgent},
};
use clap::Args;
use protocol::{Json, Part, Task, hint};
use tokio::sync::oneshot;

use crate::cli::calls::compose::MessageFlags;

use crate::cli::failure::{Failure, code};

use crate::cli::runtime;

use crate::cli::calls::printer::Printer;

use crate::cli::calls::send::{self, AnswerSource};

use crate::cli::calls::session::{FolderFlags, Session, SessionFlags};

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
    /// Answer to a question of the skill, as text or as a JSON object; can be repeated for several questions. Without it, a
    /// terminal is asked.
    #[arg(long, value_name = "TEXT")]
    answer: Vec<String>,
    #[command(flatten)]
    folder: FolderFlags,
    /// Configuration file [default: ./a2ad.toml if it exists, else the built-in demo; env: A2AD_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the task as A2A 1.0 JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(flags: TryFlags) -> Result<u8, Failure> {
    let TryFlags { skill, text, data, answer, folder, config, json } = flags;
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
        let session = SessionFlags::local(server.agent_url(&agent), json).saving(folder);
        let mut answers = Answers { given: answer.into() };
        Session::run(session, |session| async move { send::converse(&session, message, &mut answers).await })
    });
    runtime.block_on(async {
        server.stop().await;
        backends.stop().await;
    });
    result
}

/// The answers of the command line, then those that a terminal is asked for.
struct Answers {
    given: VecDeque<String>,
}

impl AnswerSource for Answers {
    async fn next(&mut self, session: &Session, task: &Task) -> Result<Option<Part>, Failure> {
        if let Some(given) = self.given.pop_front() {
            return Ok(Some(part(given)));
        }
        if session.json() || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Ok(None);
        }
        if let Some(question) = &task.status.message {
            Printer::new(&session.output).message_text(&question.parts)?;
        }
        Ok(typed().await.map(part))
    }
}

/// A JSON object is data, everything else text.
fn part(answer: String) -> Part {
    match Json::parse(&answer) {
        Ok(json) if json.as_str().starts_with('{') => Part::data(json),
        Ok(_) | Err(_) => Part::text(answer),
    }
}

/// A line from the terminal; `None` at its end. Read in a thread that the end of the process does not wait for.
async fn typed() -> Option<String> {
    let _ = write!(std::io::stderr(), "> ");
    let (send, received) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        let _ = send.send(read.ok().filter(|read| *read > 0).map(|_| line.trim_end().to_owned()));
    });
    received.await.ok().flatten()
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
