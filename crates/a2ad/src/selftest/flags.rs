//! What may be typed behind `a2ad selftest`.

use super::Options;

/// What may be typed behind `a2ad selftest`.
#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Origin of the server to check, such as http://127.0.0.1:4242 or 127.0.0.1:4242 [default: servers that are started for it].
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Say a line for every item.
    #[arg(long, short)]
    verbose: bool,
    /// Say it as JSON.
    #[arg(long)]
    json: bool,
    /// Only these items, such as S1-49 [default: all].
    #[arg(value_name = "ITEM")]
    only: Vec<String>,
}

impl From<Flags> for Options {
    fn from(flags: Flags) -> Self {
        let Flags { url, verbose, json, only } = flags;
        Self { url, verbose, json, only, ..Self::default() }
    }
}
