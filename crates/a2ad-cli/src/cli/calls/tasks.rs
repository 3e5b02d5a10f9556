//! `a2ad tasks`: prints, lists, follows and cancels an agent's tasks.

mod cancel;
mod get;
mod ls;
mod watch;

use clap::Subcommand;

use crate::cli::failure::{EXIT_CODES, Failure};

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// Print a task.
    #[command(after_help = EXIT_CODES)]
    Get(get::GetFlags),
    /// List tasks, newest first.
    #[command(after_help = EXIT_CODES)]
    Ls(ls::LsFlags),
    /// Follow a task and print its output until it ends or waits for input; reconnects when the connection is lost.
    #[command(after_help = EXIT_CODES)]
    Watch(watch::WatchFlags),
    /// Cancel a task.
    #[command(after_help = EXIT_CODES)]
    Cancel(cancel::CancelFlags),
}

pub(crate) fn run(command: TasksCommand) -> Result<u8, Failure> {
    match command {
        TasksCommand::Get(flags) => get::run(flags),
        TasksCommand::Ls(flags) => ls::run(flags),
        TasksCommand::Watch(flags) => watch::run(flags),
        TasksCommand::Cancel(flags) => cancel::run(flags),
    }
}
