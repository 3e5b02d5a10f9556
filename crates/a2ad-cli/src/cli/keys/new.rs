//! `a2ad keys new`: makes a key and prints it alone on stdout.

use clap::Args;
use protocol::{
    Json,
    json::read::{Node, Path},
};

use super::{
    KeyFlags,
    access::{KeyAccess, MissingStore},
};
use crate::cli::{
    failure::{Failure, code},
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
    keys: KeyFlags,
}

pub(super) fn run(flags: &NewFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = KeyAccess::open(&flags.keys, MissingStore::CreateFor(&flags.agent), &output)?;
    let created = runtime()?.block_on(access.create(&flags.agent, flags.owner.as_deref()))?;
    let created = NewKey::read(&created).ok_or_else(super::ls::unreadable)?;
    let NewKey { id, key, warning, document } = created;
    output.message(&format!("a2ad: made the key {id} for agent {:?} {}", flags.agent, access.place()));
    if let Some(warning) = warning {
        output.message(&format!("a2ad: {warning}"));
    }
    if flags.keys.json {
        output.document(document.as_str().as_bytes())?;
    } else {
        output.document(key.as_bytes())?;
    }
    Ok(code::SUCCESS)
}

/// The document of a new key.
struct NewKey {
    id: String,
    key: String,
    warning: Option<String>,
    document: Json,
}

impl NewKey {
    fn read(document: &[u8]) -> Option<Self> {
        let document = Json::parse(std::str::from_utf8(document).ok()?).ok()?;
        let object = Node::new(document.as_raw(), &Path::Root).object().ok()?;
        let id = object.need_text("id").ok()?;
        let key = object.need_text("key").ok()?;
        let warning = object.text("warning").ok()?;
        drop(object);
        Some(Self { id, key, warning, document })
    }
}
