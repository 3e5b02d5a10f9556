//! `a2ad keys new`: makes a key and prints it alone on stdout.

use clap::Args;
use http::Method;
use protocol::json::write::Writer;

use crate::cli::{
    failure::{Failure, code},
    operators::{Access, OperatorFlags, read_document},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct NewFlags {
    /// Agent that the key is for.
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Who gets the key: keys of one owner are the same caller and see the same tasks [default: the key's id].
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    #[command(flatten)]
    operator: OperatorFlags,
}

pub(super) fn run(flags: &NewFlags) -> Result<u8, Failure> {
    let NewFlags { agent, owner, operator } = flags;
    let access = Access::open_for_agent(operator, agent)?;
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("agent", agent);
        out.maybe_text("owner", owner.as_deref());
    });
    let document = access.send(Method::POST, "/keys", writer.finish())?;
    let (id, key, warning) = read_document(&document, |object| {
        Ok((object.need_text("id")?, object.need_text("key")?, object.text("warning")?))
    })?;
    access.output.message(&format!("a2ad: made the key {id} for agent {agent:?} {}", access.place()));
    if let Some(warning) = warning {
        access.output.message(&format!("a2ad: {warning}"));
    }
    access.output.document(if operator.json { &document } else { key.as_bytes() })?;
    Ok(code::SUCCESS)
}
