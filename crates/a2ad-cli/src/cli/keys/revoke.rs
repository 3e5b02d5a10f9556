//! `a2ad keys revoke`: revokes one key.

use clap::{Args, builder::NonEmptyStringValueParser};
use http::Method;

use crate::cli::{
    failure::{Failure, code},
    operators::{Access, OperatorFlags, read_document, segment},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct RevokeFlags {
    /// Id of the key: the first column of a2ad keys ls.
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    id: String,
    #[command(flatten)]
    operator: OperatorFlags,
}

pub(super) fn run(flags: &RevokeFlags) -> Result<u8, Failure> {
    let access = Access::open(&flags.operator)?;
    let revoked = access.send(Method::DELETE, &format!("/keys/{}", segment(&flags.id)), Vec::new());
    let revoked = revoked.map_err(|failure| failure.with_hint_if_not_found("a2ad keys ls lists the ids"))?;
    let agent = read_document(&revoked, |object| object.need_text("agent"))?;
    let place = access.place();
    access.output.message(&format!("a2ad: revoked the key {} of agent {agent:?} {place}", flags.id));
    if flags.operator.json {
        access.output.document(&revoked)?;
    }
    Ok(code::SUCCESS)
}
