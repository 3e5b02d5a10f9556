//! `a2ad tasks`: an agent's tasks.

mod cancel;
mod get;
mod ls;

use clap::Subcommand;

use super::stop::{EXIT_CODES, Stop};

#[derive(Debug, Subcommand)]
pub(super) enum TasksCommand {
    /// Print one task.
    #[command(after_help = EXIT_CODES)]
    Get(get::GetFlags),
    /// List tasks, newest first.
    #[command(after_help = EXIT_CODES)]
    Ls(ls::LsFlags),
    /// End a task.
    #[command(after_help = EXIT_CODES)]
    Cancel(cancel::CancelFlags),
}

pub(super) fn run(command: TasksCommand) -> Result<u8, Stop> {
    match command {
        TasksCommand::Get(flags) => get::run(flags),
        TasksCommand::Ls(flags) => ls::run(flags),
        TasksCommand::Cancel(flags) => cancel::run(flags),
    }
}
