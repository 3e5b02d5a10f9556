//! What the commands of operators share. Each sends requests to the operators' API: to the server that has the store
//! open, with the admin token beside the store, or in memory to an engine that this process starts on the store. A
//! message on stderr names which of the two was done.

mod access;
mod list;
mod pinned_certificate;
mod server_api;
mod stopped_store;

use std::path::PathBuf;

use clap::Args;
use protocol::{
    Json, Timestamp,
    json::read::{Node, Object, Path, Read},
};

pub(super) use access::{Access, segment};
pub(super) use list::{List, print_table};

use crate::cli::failure::{Failure, code};

use crate::cli::store_path;

use crate::cli::variables;
use crate::config::{self, ConfigFile, OperatorView};

/// The exit codes in the help of these commands.
pub(super) const OPERATOR_EXIT_CODES: &str = "\
Where a server runs with the store, it is asked; otherwise the store is opened. A message on stderr names which of
the two was done.

Exit codes:
  0    success
  1    the server or the store is not available, or the output cannot be written
  2    invalid arguments or configuration
  5    the admin token is missing or was refused
  6    no such agent, key or task
  7    the server did not answer in time
  8    the server rejected the request, such as one more key than the agent may have
With --json, an error is one document on stderr: {\"error\": {\"exitCode\", \"message\", …}}.";

/// Which store a command is about.
#[derive(Debug, Args)]
pub(super) struct OperatorFlags {
    /// Database file [default: that of the configuration, else ./a2ad.db; env: A2AD_STORE].
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Configuration file with the store and the agents [default: ./a2ad.toml if it exists; env: A2AD_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl OperatorFlags {
    /// Whether the store is named, instead of the configuration that names it.
    pub(super) fn names_store(&self) -> bool {
        self.store.is_some()
    }

    pub(super) fn store_path(&self) -> Result<PathBuf, Failure> {
        Ok(store_path(self.store.as_deref(), self.config.as_deref())?)
    }

    /// What the configuration says about the server that uses the store; `None` where it is not known, because only the
    /// store is named.
    pub(super) fn config(&self) -> Result<Option<OperatorView>, Failure> {
        let variables = variables();
        let file = ConfigFile::find(self.config.as_deref(), &variables);
        if file.is_none() && self.store.is_some() {
            return Ok(None);
        }
        let source = config::Source { file: file.as_ref(), variables, ..config::Source::default() };
        Ok(Some(config::operator_view(source).map_err(anyhow::Error::from)?))
    }
}

/// Reads a document of the operators' API.
pub(super) fn read_document<T>(
    document: &[u8],
    read: impl FnOnce(&Object<'_, '_>) -> Read<T>,
) -> Result<T, Failure> {
    let text = std::str::from_utf8(document).map_err(|_| unreadable())?;
    let document = Json::parse(text).map_err(|_| unreadable())?;
    let object = Node::new(document.as_raw(), &Path::Root).object().map_err(|_| unreadable())?;
    read(&object).map_err(|_| unreadable())
}

/// The error for a document of a server that is not as expected.
fn unreadable() -> Failure {
    Failure::new(code::PROTOCOL, "the answer of the server cannot be read; is it another version of a2ad?")
}

/// A time as an argument.
pub(super) fn read_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "expected a time such as 2026-01-02T03:04:05Z".to_owned())
}

/// A number with its noun.
pub(super) fn counted(number: usize, one: &str, more: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {more}") }
}
