//! `a2ad keys new`: makes a key and prints it alone on stdout.

use clap::Args;

use super::access;
use crate::cli::{
    failure::{Failure, code},
    operate::{Access, MissingStore, OperateFlags, read_document},
    output::Output,
    runtime,
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
    operate: OperateFlags,
}

pub(super) fn run(flags: &NewFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let check = |config: Option<&_>| access::check_agent(config, &flags.agent).map(drop);
    let access = Access::open(&flags.operate, MissingStore::CreateIf(&check), &output)?;
    let document = runtime()?.block_on(access::create(&access, &flags.agent, flags.owner.as_deref()))?;
    let (id, key, warning) = read_document(&document, |object| {
        Ok((object.need_text("id")?, object.need_text("key")?, object.text("warning")?))
    })?;
    output.message(&format!("a2ad: made the key {id} for agent {:?} {}", flags.agent, access.place()));
    if let Some(warning) = warning {
        output.message(&format!("a2ad: {warning}"));
    }
    if flags.operate.json {
        output.document(&document)?;
    } else {
        output.document(key.as_bytes())?;
    }
    Ok(code::SUCCESS)
}
