//! `a2ad agents`: lists the agents of a server and their skills; with a subcommand, agents for operators.

mod ls;
mod switch;

use clap::{Args, Subcommand};
use engine::SwitchState;
use protocol::{json::write::Writer, model::AgentSkill};

use crate::cli::calls::card::title;

use crate::cli::calls::directory::{Directory, ListedAgent};

use crate::cli::failure::{Failure, code};

use crate::cli::operators::{OPERATOR_EXIT_CODES, OperatorFlags};

use crate::cli::calls::session::{ConnectionFlags, Session};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct AgentsFlags {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    /// The server: URL or host:port [default: --server or A2AD_URL, else http://127.0.0.1:4242].
    #[arg(value_name = "SERVER", conflicts_with = "server")]
    at: Option<String>,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// What operators do with agents.
#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// List the agents for operators: id, whether it is enabled, who decided that, tasks by state, name.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Ls(OperatorFlags),
    /// Enable an agent, whatever the configuration says.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Enable(switch::SwitchFlags),
    /// Disable an agent at once: calls get 404, accepted work goes on.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Disable(switch::SwitchFlags),
}

pub(super) fn run(flags: AgentsFlags) -> Result<u8, Failure> {
    let AgentsFlags { command, at, connection } = flags;
    match command {
        Some(AgentsCommand::Ls(flags)) => return ls::run(&flags),
        Some(AgentsCommand::Enable(flags)) => return switch::run(&flags, SwitchState::Enabled),
        Some(AgentsCommand::Disable(flags)) => return switch::run(&flags, SwitchState::Disabled),
        None => {}
    }
    Session::run_for_server(at.as_deref(), connection, |session| async move {
        let directory = session.directory().await?;
        if session.json() {
            session.output.document(&as_json(&directory))?;
        } else {
            session.output.text(&describe(&directory))?;
        }
        Ok(code::SUCCESS)
    })
}

fn describe(directory: &Directory) -> String {
    let mut out = String::new();
    for agent in &directory.agents {
        let id = if agent.id.is_empty() { &agent.name } else { &agent.id };
        let default =
            if directory.default_agent == agent.id && !agent.id.is_empty() { " (default)" } else { "" };
        let closed = if agent.anonymous == Some(false) { " (requires credentials)" } else { "" };
        out += &format!("{id}{default}{closed}: {}\n", agent.description);
        for skill in &agent.skills {
            out += &format!("  {}\n", title(skill));
        }
        if let Some(problem) = &agent.problem {
            out += &format!("  its card cannot be read: {problem}\n");
        }
    }
    out
}

fn as_json(directory: &Directory) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("server", &directory.server);
        if !directory.default_agent.is_empty() {
            out.text("defaultAgent", &directory.default_agent);
        }
        out.key("agents").array(&directory.agents, |out, agent| out.object(|out| agent_as_json(out, agent)));
    });
    writer.finish()
}

fn agent_as_json(out: &mut Writer, agent: &ListedAgent) {
    if !agent.id.is_empty() {
        out.text("id", &agent.id);
    }
    out.text("name", &agent.name);
    out.text("description", &agent.description);
    out.text("url", &agent.url);
    out.maybe_flag("anonymous", agent.anonymous);
    out.maybe_text("problem", agent.problem.as_deref());
    out.key("skills").array(&agent.skills, |out, skill: &AgentSkill| {
        out.object(|out| {
            out.text("id", &skill.id);
            out.text("name", &skill.name);
            out.text("description", &skill.description);
            out.texts("tags", &skill.tags);
            out.texts("examples", &skill.examples);
        });
    });
}
