//! `a2ad keys`: makes, lists and revokes API keys.
//!
//! A server that has the store open is asked over its operators' API, with the admin token beside the store; otherwise
//! the store is opened. A message on stderr names which of the two was done.

mod access;
mod ls;
mod new;
mod revoke;
mod server_api;
mod stopped_store;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{failure::Failure, store_path, variables};
use crate::config::{self, ConfigFile, OperatorView};

/// The exit codes in the help of these commands.
pub(super) const KEY_EXIT_CODES: &str = "\
Where a server runs with the store, it is asked; otherwise the store is opened. A message on stderr names which of
the two was done.

Exit codes:
  0    success
  1    the server or the store is not available, or the output cannot be written
  2    invalid arguments or configuration
  5    the admin token is missing or was refused
  6    no such agent or key
  7    the server did not answer in time
  8    the agent has as many keys as it may have, or the server rejected the request
With --json, an error is one document on stderr: {\"error\": {\"exitCode\", \"message\", …}}.";

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Make a key for an agent and print it; it cannot be shown again.
    #[command(after_help = KEY_EXIT_CODES)]
    New(new::NewFlags),
    /// List keys, newest first: id, agent, owner, state, creation time, the key without its secret.
    #[command(after_help = KEY_EXIT_CODES)]
    Ls(ls::LsFlags),
    /// Revoke a key: calls with it are refused at once.
    #[command(after_help = KEY_EXIT_CODES)]
    Revoke(revoke::RevokeFlags),
}

/// Which store the keys are in.
#[derive(Debug, Args)]
struct KeyFlags {
    /// Database file [default: that of the configuration, else ./a2ad.db; env: A2AD_STORE].
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Configuration file with the store and the agents [default: ./a2ad.toml if it exists; env: A2AD_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl KeyFlags {
    fn store_path(&self) -> Result<PathBuf, Failure> {
        Ok(store_path(self.store.as_deref(), self.config.as_deref())?)
    }

    /// What the configuration says about the server that uses the store; `None` where it is not known, because only the
    /// store is named.
    fn config(&self) -> Result<Option<OperatorView>, Failure> {
        let variables = variables();
        let file = ConfigFile::find(self.config.as_deref(), &variables);
        if file.is_none() && self.store.is_some() {
            return Ok(None);
        }
        let source = config::Source { file: file.as_ref(), variables, ..config::Source::default() };
        Ok(Some(config::operator_view(source).map_err(anyhow::Error::from)?))
    }
}

pub(super) fn run(command: KeysCommand) -> Result<u8, Failure> {
    match command {
        KeysCommand::New(flags) => new::run(&flags),
        KeysCommand::Ls(flags) => ls::run(&flags),
        KeysCommand::Revoke(flags) => revoke::run(&flags),
    }
}
