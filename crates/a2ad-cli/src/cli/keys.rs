//! `a2ad keys`: makes, lists and revokes API keys, on a running server or in the store.

mod ls;
mod new;
mod revoke;

use clap::Subcommand;

use crate::cli::failure::Failure;

use crate::cli::operators::OPERATOR_EXIT_CODES;

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Make a key for an agent and print it; it cannot be shown again.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    New(new::NewFlags),
    /// List keys, newest first: id, agent, owner, state, creation time, the key without its secret.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Ls(ls::LsFlags),
    /// Revoke a key: calls with it are refused at once.
    #[command(after_help = OPERATOR_EXIT_CODES)]
    Revoke(revoke::RevokeFlags),
}

pub(super) fn run(command: KeysCommand) -> Result<u8, Failure> {
    match command {
        KeysCommand::New(flags) => new::run(&flags),
        KeysCommand::Ls(flags) => ls::run(&flags),
        KeysCommand::Revoke(flags) => revoke::run(&flags),
    }
}
