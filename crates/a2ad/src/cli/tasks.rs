//! `a2ad tasks`: an agent's tasks.

mod cancel;
mod get;
mod ls;
mod watch;

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
    /// Follow a task and print what it makes until it ends or waits for input; survives lost connections.
    #[command(after_help = EXIT_CODES)]
    Watch(watch::WatchFlags),
    /// End a task.
    #[command(after_help = EXIT_CODES)]
    Cancel(cancel::CancelFlags),
}

pub(super) fn run(command: TasksCommand) -> Result<u8, Stop> {
    match command {
        TasksCommand::Get(flags) => get::run(flags),
        TasksCommand::Ls(flags) => ls::run(flags),
        TasksCommand::Watch(flags) => watch::run(flags),
        TasksCommand::Cancel(flags) => cancel::run(flags),
    }
}
