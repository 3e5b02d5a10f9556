//! `a2ad selftest`: its arguments, and why a server cannot be checked at all.

use anyhow::bail;
use selftest::SelftestOptions;

use crate::{address, cli::calls::connection};

/// The command-line arguments of `a2ad selftest`.
#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Origin of the server to check, such as http://127.0.0.1:4242 or 127.0.0.1:4242 [default: start a server for the check].
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

/// Makes the checks and returns the exit code.
pub(crate) fn run(flags: Flags) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(check(flags))
}

async fn check(Flags { url, json }: Flags) -> anyhow::Result<u8> {
    let url = url.map(|typed| address::url(&typed).unwrap_or(typed));
    if let Some(url) = &url {
        selftest::check_url(url)?;
        if let Some(cause) = connection::advice_before_calls(url).await {
            bail!("cannot check {url}: {cause}");
        }
    }
    selftest::run(&SelftestOptions { url, json, executable: None }).await
}
