//! `a2ad keys revoke`: revokes one key.

use clap::Args;

use super::access;
use crate::cli::{
    failure::{Failure, code},
    operate::{Access, MissingStore, OperateFlags, read_document},
    output::Output,
    runtime,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct RevokeFlags {
    /// Id of the key: the first column of a2ad keys ls.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    operate: OperateFlags,
}

pub(super) fn run(flags: &RevokeFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = Access::open(&flags.operate, MissingStore::Refuse, &output)?;
    let revoked =
        runtime()?.block_on(access::revoke(&access, &flags.id)).map_err(|failure| match failure.code {
            code::NOT_FOUND => failure.with_next("a2ad keys ls lists the ids"),
            _ => failure,
        })?;
    let agent = read_document(&revoked, |object| object.need_text("agent"))?;
    output.message(&format!("a2ad: revoked the key {} of agent {agent:?} {}", flags.id, access.place()));
    if flags.operate.json {
        output.document(&revoked)?;
    }
    Ok(code::SUCCESS)
}
