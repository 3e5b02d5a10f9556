//! `a2ad keys ls`: lists keys, one line each, the id first.

use clap::Args;
use protocol::json::read::{Object, Read};

use crate::cli::{
    failure::Failure,
    operators::{Access, List, OperatorFlags},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct LsFlags {
    /// Only the keys of this agent.
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    #[command(flatten)]
    operator: OperatorFlags,
}

pub(super) fn run(flags: &LsFlags) -> Result<u8, Failure> {
    let access = Access::open(&flags.operator)?;
    let keys = List { nouns: ["key", "keys"], filters: &[("agent", flags.agent.as_deref())], row };
    keys.print(&access, &flags.operator)
}

fn row(object: &Object<'_, '_>) -> Read<[String; 6]> {
    let revoked_at = object.text("revokedAt")?;
    Ok([
        object.need_text("id")?,
        object.need_text("agent")?,
        object.need_text("owner")?,
        revoked_at.map_or_else(|| "valid".to_owned(), |time| format!("revoked {time}")),
        object.need_text("createdAt")?,
        object.need_text("masked")?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{failure::code, operators::read_document, table::columns};

    #[test]
    fn keys_are_shown_in_columns() {
        let lines = |document: &str| {
            let read = |object: &Object<'_, '_>| object.list("keys", |node| row(&node.object()?));
            read_document(document.as_bytes(), read)
                .map(|rows| columns(&rows))
                .map_err(|failure| failure.code)
        };
        let document = r#"{"keys":[
            {"id":"k1","agent":"echo","owner":"alice","scope":"s","masked":"a_…1","createdAt":"2026-01-02T03:04:05Z"},
            {"id":"k2","agent":"e","owner":"o","scope":"s","masked":"a_…2","createdAt":"2026-01-01T03:04:05Z",
             "revokedAt":"2026-01-03T00:00:00Z"}]}"#;
        let expected = "k1  echo  alice  valid                         2026-01-02T03:04:05Z  a_…1\n\
                        k2  e     o      revoked 2026-01-03T00:00:00Z  2026-01-01T03:04:05Z  a_…2\n";
        assert_eq!(lines(document), Ok(expected.to_owned()));
        assert_eq!(lines(r#"{"keys":[{"id":"k1"}]}"#), Err(code::PROTOCOL));
        assert_eq!(lines("not json"), Err(code::PROTOCOL));
    }
}
