//! `a2ad deliveries`: push notifications that were not delivered: lists them, and sends them again.

mod ls;
mod resend;

use clap::Subcommand;

use crate::cli::failure::Failure;

use crate::cli::operators::OPERATOR_EXIT_CODES;

#[derive(Debug, Subcommand)]
pub(super) enum DeliveriesCommand {
    /// List deliveries that were given up, newest first, then pending ones: id, task, state, host, attempts, time, error.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Ls(ls::LsFlags),
    /// Send notifications again now; needs the server.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Resend(resend::ResendFlags),
}

pub(super) fn run(command: DeliveriesCommand) -> Result<u8, Failure> {
    match command {
        DeliveriesCommand::Ls(flags) => ls::run(&flags),
        DeliveriesCommand::Resend(flags) => resend::run(&flags),
    }
}
