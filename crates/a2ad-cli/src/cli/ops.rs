//! `a2ad ops`: what operators see of a server and do with its tasks, on a running server or in the store.

mod backends;
mod cancel;
mod config;
mod counts;
mod task;
mod tasks;

use clap::Subcommand;
use protocol::json::read::{Object, Read};

use crate::cli::failure::Failure;

use crate::cli::operators::{OPERATOR_EXIT_CODES, OperatorFlags};

#[derive(Debug, Subcommand)]
pub(super) enum OpsCommand {
    /// List tasks of all owners, newest first: id, state, agent, owner, time of the state, attempts.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Tasks(tasks::TasksFlags),
    /// Print a task of any owner as JSON.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Task(task::TaskFlags),
    /// Cancel a task of any owner.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Cancel(task::TaskFlags),
    /// Print how many tasks there are by agent and state, how much work is queued and running, and how many streams are open.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Counts(OperatorFlags),
    /// Print whether the backends of a running server work: MCP servers, OpenAPI documents, HTTP functions and commands.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Backends(OperatorFlags),
    /// Print every key of the configuration with its value and where it comes from; secrets are masked.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Config(OperatorFlags),
}

pub(super) fn run(command: OpsCommand) -> Result<u8, Failure> {
    match command {
        OpsCommand::Tasks(flags) => tasks::run(&flags),
        OpsCommand::Task(flags) => task::run(&flags),
        OpsCommand::Cancel(flags) => cancel::run(&flags),
        OpsCommand::Counts(flags) => counts::run(&flags),
        OpsCommand::Backends(flags) => backends::run(&flags),
        OpsCommand::Config(flags) => config::run(&flags),
    }
}

/// The numbers of tasks by state, such as `1 working, 3 completed`.
pub(super) fn states(object: &Object<'_, '_>) -> Read<String> {
    let mut states = Vec::new();
    object.entries(|state, node| {
        states.push(format!("{} {state}", node.text()));
        Ok(())
    })?;
    Ok(states.join(", "))
}
