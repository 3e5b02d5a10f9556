//! `a2ad keys revoke`: revokes one key.

use clap::Args;
use protocol::{
    Json,
    json::read::{Node, Path},
};

use super::{
    KeyFlags,
    access::{KeyAccess, MissingStore},
    ls::unreadable,
};
use crate::cli::{
    failure::{Failure, code},
    output::Output,
    runtime,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct RevokeFlags {
    /// Id of the key: the first column of a2ad keys ls.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    keys: KeyFlags,
}

pub(super) fn run(flags: &RevokeFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = KeyAccess::open(&flags.keys, MissingStore::Refuse, &output)?;
    let revoked = runtime()?.block_on(access.revoke(&flags.id)).map_err(|failure| match failure.code {
        code::NOT_FOUND => failure.with_next("a2ad keys ls lists the ids"),
        _ => failure,
    })?;
    let agent = agent_of(&revoked).ok_or_else(unreadable)?;
    output.message(&format!("a2ad: revoked the key {} of agent {agent:?} {}", flags.id, access.place()));
    if flags.keys.json {
        output.document(&revoked)?;
    }
    Ok(code::SUCCESS)
}

fn agent_of(document: &[u8]) -> Option<String> {
    let document = Json::parse(std::str::from_utf8(document).ok()?).ok()?;
    Node::new(document.as_raw(), &Path::Root).object().ok()?.need_text("agent").ok()
}
