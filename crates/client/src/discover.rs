//! From an agent's base URL to the interface that is called: its card, and a choice.

use http::Uri;
use protocol::{
    AgentCard, Violation,
    dialect::v1,
    json::read::{Node, Path},
    model::AgentInterface,
};
use serde_json::value::RawValue;

use crate::{Error, transport::parse_url};

/// Where the card of the agent at this base is found.
pub(crate) fn card_url(base: &str) -> Result<Uri, Error> {
    parse_url(&format!("{}/.well-known/agent-card.json", base.trim_end_matches('/')))
}

/// Reads a card.
pub(crate) fn decode(body: &[u8]) -> Result<AgentCard, Error> {
    let raw: &RawValue =
        serde_json::from_slice(body).map_err(|_| Violation::new("", "expected a card in JSON"))?;
    Ok(v1::card::decode(Node::new(raw, &Path::Root))?)
}

/// The first interface this client speaks: cards list them by preference.
pub(crate) fn choose(card: AgentCard) -> Result<AgentInterface, Error> {
    let offered: Vec<String> = card
        .interfaces
        .iter()
        .map(|interface| format!("{} {}", interface.binding, interface.version))
        .collect();
    let chosen = card.interfaces.into_iter().find(speaks);
    chosen.ok_or_else(|| Error::NoInterface { offered: offered.join(", ") })
}

fn speaks(interface: &AgentInterface) -> bool {
    interface.binding.eq_ignore_ascii_case("JSONRPC") && is_v1(&interface.version)
}

/// `1.0`, with any patch number or without its zero.
fn is_v1(version: &str) -> bool {
    let mut numbers = version.trim().split('.');
    numbers.next() == Some("1") && matches!(numbers.next(), None | Some("0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(interfaces: &[(&str, &str, &str)]) -> AgentCard {
        let interfaces: Vec<String> = interfaces
            .iter()
            .map(|(url, binding, version)| {
                format!(r#"{{"url":"{url}","protocolBinding":"{binding}","protocolVersion":"{version}"}}"#)
            })
            .collect();
        decode(format!(r#"{{"name":"a","supportedInterfaces":[{}]}}"#, interfaces.join(",")).as_bytes())
            .unwrap()
    }

    #[test]
    fn the_first_interface_that_is_spoken_is_chosen() {
        let card = card(&[
            ("g:1", "GRPC", "1.0"),
            ("http://old", "JSONRPC", "0.3"),
            ("http://rest", "HTTP+JSON", "1.0"),
            ("http://one", "JSONRPC", "1.0"),
            ("http://two", "JSONRPC", "1.0"),
        ]);
        assert_eq!(choose(card).unwrap().url, "http://one");
    }

    #[test]
    fn a_card_with_nothing_we_speak_says_what_it_offers() {
        let error = choose(card(&[("g:1", "GRPC", "1.0"), ("http://old", "JSONRPC", "0.3.0")])).unwrap_err();
        assert!(error.to_string().ends_with("GRPC 1.0, JSONRPC 0.3.0"), "{error}");
    }

    #[test]
    fn patch_numbers_take_no_part() {
        for version in ["1.0", "1.0.0", "1.0.1", "1", " 1.0 "] {
            assert!(is_v1(version), "{version}");
        }
        for version in ["", "0.3", "1.1", "2.0", "10.0", "1.00", "v1.0"] {
            assert!(!is_v1(version), "{version}");
        }
    }

    #[test]
    fn the_card_stands_below_the_base() {
        for base in ["http://h:1", "http://h:1/"] {
            assert_eq!(card_url(base).unwrap(), "http://h:1/.well-known/agent-card.json");
        }
        assert_eq!(
            card_url("http://h/agents/echo/").unwrap(),
            "http://h/agents/echo/.well-known/agent-card.json"
        );
    }
}
