//! The command-line arguments of `a2ad selftest`.

use super::SelftestOptions;

/// The command-line arguments of `a2ad selftest`.
#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Origin of the server to check, such as http://127.0.0.1:4242 or 127.0.0.1:4242 [default: start servers for the check].
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Print a line for every item.
    #[arg(long, short)]
    verbose: bool,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Check only these items, such as S1-49 [default: all].
    #[arg(value_name = "ITEM")]
    only: Vec<String>,
}

impl From<Flags> for SelftestOptions {
    fn from(flags: Flags) -> Self {
        let Flags { url, verbose, json, only } = flags;
        Self { url, verbose, json, only, ..Self::default() }
    }
}
