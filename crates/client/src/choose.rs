//! Selects the interface of a card and the dialect to use there.

use protocol::{AgentCard, Dialect, model::AgentInterface};

use crate::Error;

/// The dialects this client supports, newest first.
const SUPPORTED: [Dialect; 3] = [Dialect::V1, Dialect::V03, Dialect::Draft];

/// The selected interface and dialect.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) interface: &'a AgentInterface,
    pub(crate) dialect: Dialect,
}

/// The first JSON-RPC interface of the newest supported version, or of the forced one. A card may omit a
/// version the agent supports, so a forced one is otherwise tried at the first JSON-RPC interface.
pub(crate) fn choose(card: &AgentCard, forced: Option<Dialect>) -> Result<Choice<'_>, Error> {
    let callable: Vec<&AgentInterface> = card.interfaces.iter().filter(|one| is_jsonrpc(one)).collect();
    let of_dialect = |dialect: Dialect| {
        let found = callable.iter().find(|one| dialect_of(&one.version) == Some(dialect));
        found.map(|interface| Choice { interface, dialect })
    };
    let chosen = match forced {
        None => SUPPORTED.into_iter().find_map(of_dialect),
        Some(dialect) => {
            let any = || callable.first().map(|interface| Choice { interface, dialect });
            of_dialect(dialect).or_else(any)
        }
    };
    chosen.ok_or_else(|| Error::NoInterface { offered: offered(card) })
}

fn is_jsonrpc(interface: &AgentInterface) -> bool {
    let name: String = interface.binding.chars().filter(char::is_ascii_alphanumeric).collect();
    name.eq_ignore_ascii_case("JSONRPC")
}

/// The dialect of a version; patch numbers are ignored.
fn dialect_of(version: &str) -> Option<Dialect> {
    match version.trim() {
        "draft" => Some(Dialect::Draft),
        version => Dialect::of_version(version),
    }
}

fn offered(card: &AgentCard) -> String {
    let offered = card.interfaces.iter().map(|one| format!("{} {}", one.binding, one.version));
    offered.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use protocol::{
        dialect::read_card,
        json::read::{Node, Path},
    };

    use super::*;
    use crate::envelope::document;

    fn card(interfaces: &[(&str, &str, &str)]) -> AgentCard {
        let interfaces: Vec<String> = interfaces
            .iter()
            .map(|(url, binding, version)| {
                format!(r#"{{"url":"{url}","protocolBinding":"{binding}","protocolVersion":"{version}"}}"#)
            })
            .collect();
        let text = format!(r#"{{"name":"a","supportedInterfaces":[{}]}}"#, interfaces.join(","));
        read_card(Node::new(document(text.as_bytes()).unwrap(), &Path::Root)).unwrap().1
    }

    #[test]
    fn the_first_interface_of_the_newest_version_is_chosen() {
        let card = card(&[
            ("g:1", "GRPC", "1.0"),
            ("http://oldest", "JSONRPC", "0.1"),
            ("http://old", "JSONRPC", "0.3.0"),
            ("http://next", "JSONRPC", "1.1"),
            ("http://rest", "HTTP+JSON", "1.0"),
            ("http://one", "json-rpc", "1.0.1"),
            ("http://two", "JSONRPC", "1.0"),
        ]);
        let chosen = |forced| {
            let choice = choose(&card, forced).unwrap();
            (choice.interface.url.clone(), choice.dialect)
        };
        assert_eq!(chosen(None), ("http://one".into(), Dialect::V1));
        assert_eq!(chosen(Some(Dialect::V03)), ("http://old".into(), Dialect::V03));
        assert_eq!(chosen(Some(Dialect::Draft)), ("http://oldest".into(), Dialect::Draft));
    }

    #[test]
    fn forced_version_missing_from_the_card_uses_the_first_interface() {
        let card = card(&[("g:1", "GRPC", "1.0"), ("http://old", "JSONRPC", "0.3.0")]);
        let choice = choose(&card, Some(Dialect::Draft)).unwrap();
        assert_eq!((choice.interface.url.as_str(), choice.dialect), ("http://old", Dialect::Draft));
    }

    #[test]
    fn error_lists_the_offered_interfaces() {
        let card = card(&[("g:1", "GRPC", "1.0"), ("http://new", "JSONRPC", "2.0")]);
        let error = choose(&card, None).unwrap_err();
        assert!(error.to_string().ends_with("GRPC 1.0, JSONRPC 2.0"), "{error}");
    }
}
