//! Which of a card's interfaces is called, and what is spoken there.

use protocol::{AgentCard, Dialect, model::AgentInterface};

use crate::Error;

/// What this client speaks, newest first.
const SPOKEN: [Dialect; 3] = [Dialect::V1, Dialect::V03, Dialect::Draft];

/// An interface and what to speak there.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) interface: &'a AgentInterface,
    pub(crate) dialect: Dialect,
}

/// The first JSON-RPC interface of the newest generation, or of the one that is forced. A generation that the card
/// does not name may be spoken all the same: then it is tried at the first JSON-RPC interface.
pub(crate) fn choose(card: &AgentCard, forced: Option<Dialect>) -> Result<Choice<'_>, Error> {
    let callable: Vec<&AgentInterface> = card.interfaces.iter().filter(|one| is_jsonrpc(one)).collect();
    let speaking = |dialect: Dialect| {
        let found = callable.iter().find(|one| generation(&one.version) == Some(dialect));
        found.map(|interface| Choice { interface, dialect })
    };
    let chosen = match forced {
        None => SPOKEN.into_iter().find_map(speaking),
        Some(dialect) => {
            let any = || callable.first().map(|interface| Choice { interface, dialect });
            speaking(dialect).or_else(any)
        }
    };
    chosen.ok_or_else(|| Error::NoInterface { offered: offered(card) })
}

fn is_jsonrpc(interface: &AgentInterface) -> bool {
    let word: String = interface.binding.chars().filter(char::is_ascii_alphanumeric).collect();
    word.eq_ignore_ascii_case("JSONRPC")
}

/// The generation of a version; patch numbers take no part.
fn generation(version: &str) -> Option<Dialect> {
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
    fn the_first_interface_of_the_newest_generation_is_chosen() {
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
    fn a_generation_the_card_does_not_name_is_tried_where_it_would_be() {
        let card = card(&[("g:1", "GRPC", "1.0"), ("http://old", "JSONRPC", "0.3.0")]);
        let choice = choose(&card, Some(Dialect::Draft)).unwrap();
        assert_eq!((choice.interface.url.as_str(), choice.dialect), ("http://old", Dialect::Draft));
    }

    #[test]
    fn a_card_with_nothing_we_speak_says_what_it_offers() {
        let card = card(&[("g:1", "GRPC", "1.0"), ("http://new", "JSONRPC", "2.0")]);
        let error = choose(&card, None).unwrap_err();
        assert!(error.to_string().ends_with("GRPC 1.0, JSONRPC 2.0"), "{error}");
    }
}
