//! `a2ad keys ls`: lists keys, one line each, the id first.

use clap::Args;
use protocol::{
    Json,
    json::read::{Node, Object, Path, Read},
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
pub(in crate::cli) struct LsFlags {
    /// Only the keys of this agent.
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    #[command(flatten)]
    keys: KeyFlags,
}

pub(super) fn run(flags: &LsFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = KeyAccess::open(&flags.keys, MissingStore::Refuse, &output)?;
    let document = runtime()?.block_on(access.list(flags.agent.as_deref()))?;
    let lines = lines(&document).ok_or_else(unreadable)?;
    let count = match lines.len() {
        1 => "1 key".to_owned(),
        count => format!("{count} keys"),
    };
    output.message(&format!("a2ad: {count} {}", access.place()));
    if flags.keys.json {
        output.document(&document)?;
    } else {
        output.text(&lines.concat())?;
    }
    Ok(code::SUCCESS)
}

/// A key as it is listed.
struct Listed {
    id: String,
    agent: String,
    owner: String,
    state: String,
    created_at: String,
    masked: String,
}

impl Listed {
    fn read(object: &Object<'_, '_>) -> Read<Self> {
        let revoked_at = object.text("revokedAt")?;
        Ok(Self {
            id: object.need_text("id")?,
            agent: object.need_text("agent")?,
            owner: object.need_text("owner")?,
            state: revoked_at.map_or_else(|| "valid".to_owned(), |time| format!("revoked {time}")),
            created_at: object.need_text("createdAt")?,
            masked: object.need_text("masked")?,
        })
    }
}

/// One line for each key of a list, in columns.
fn lines(document: &[u8]) -> Option<Vec<String>> {
    let document = Json::parse(std::str::from_utf8(document).ok()?).ok()?;
    let object = Node::new(document.as_raw(), &Path::Root).object().ok()?;
    let keys = object.list("keys", |node| Listed::read(&node.object()?)).ok()?;
    let width = |of: fn(&Listed) -> &str| keys.iter().map(|key| of(key).chars().count()).max().unwrap_or(0);
    let (agents, owners, states) =
        (width(|key| &key.agent), width(|key| &key.owner), width(|key| &key.state));
    let line = |key: &Listed| {
        let Listed { id, agent, owner, state, created_at, masked } = key;
        format!("{id}  {agent:<agents$}  {owner:<owners$}  {state:<states$}  {created_at}  {masked}\n")
    };
    Some(keys.iter().map(line).collect())
}

/// The error for a document of a server that is not as expected.
pub(super) fn unreadable() -> Failure {
    Failure::new(code::PROTOCOL, "the answer of the server cannot be read; is it another version of a2ad?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shown_in_columns() {
        let document = r#"{"keys":[
            {"id":"k1","agent":"echo","owner":"alice","scope":"s","masked":"a_…1","createdAt":"2026-01-02T03:04:05Z"},
            {"id":"k2","agent":"e","owner":"o","scope":"s","masked":"a_…2","createdAt":"2026-01-01T03:04:05Z",
             "revokedAt":"2026-01-03T00:00:00Z"}]}"#;
        assert_eq!(
            lines(document.as_bytes()).unwrap(),
            [
                "k1  echo  alice  valid                         2026-01-02T03:04:05Z  a_…1\n",
                "k2  e     o      revoked 2026-01-03T00:00:00Z  2026-01-01T03:04:05Z  a_…2\n"
            ]
        );
        assert_eq!(lines(br#"{"keys":[{"id":"k1"}]}"#), None);
        assert_eq!(lines(b"not json"), None);
    }
}
