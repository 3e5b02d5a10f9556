//! F-card: agent cards from untrusted servers.

use protocol::{
    AgentCard,
    dialect::{draft, merged, read_card, v1, v03, v03_proto},
    json::{
        Raw,
        read::{Node, Path, Read},
        write::Writer,
    },
};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-card",
    name: "agent cards: round trip through decoder and encoder",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

#[rustfmt::skip]
const DICTIONARY: &[&str] = &[
    "name", "description", "supportedInterfaces", "supported_interfaces", "protocolBinding", "protocolVersion",
    "tenant", "provider", "organization", "version", "documentationUrl", "iconUrl", "capabilities", "streaming",
    "pushNotifications", "extendedAgentCard", "extensions", "required", "params", "securitySchemes",
    "securityRequirements", "schemes", "list", "apiKeySecurityScheme", "api_key_security_scheme",
    "httpAuthSecurityScheme", "oauth2SecurityScheme", "openIdConnectSecurityScheme", "mtlsSecurityScheme", "location",
    "header", "query", "cookie", "flows", "authorizationCode", "clientCredentials", "implicit", "password",
    "deviceCode", "device_code", "authorizationUrl", "tokenUrl", "refreshUrl", "deviceAuthorizationUrl", "scopes",
    "pkceRequired", "defaultInputModes", "skills", "tags", "inputModes", "signatures", "protected", "signature",
    "url", "preferredTransport", "additionalInterfaces", "transport", "JSONRPC", "GRPC", "0.1", "0.3.0", "security",
    "authentication", "supportsAuthenticatedExtendedCard", "type", "apiKey", "http", "oauth2", "openIdConnect",
    "mutualTLS", "in", "scheme", "openIdConnectUrl",
];

fn run(input: &[u8]) {
    let Ok(raw) = Raw::parse(input) else { return };
    if let Ok(card) = v1::card::decode(Node::new(raw, &Path::Root)) {
        assert_eq!(round_trip(v1::card::decode, v1::card::encode, &card), Ok(card.clone()));
        check_merged(&card);
    }
    let forms: [(Decode, Encode); 2] =
        [(v03::card::decode, v03::card::encode), (v03_proto::card::decode, v03_proto::card::encode)];
    for (decode, encode) in forms {
        if let Some((card, settled)) = check_older_form(raw, decode, encode, v03::card::offered) {
            assert_eq!(settled.security_requirements, card.security_requirements);
            assert_eq!(settled.interfaces.len(), card.interfaces.len());
        }
    }
    // The draft has scheme names instead of schemes, and one URL.
    if let Some((card, settled)) =
        check_older_form(raw, draft::card::decode, draft::card::encode, draft::card::offered)
    {
        let has_requirements = |card: &AgentCard| {
            card.security_requirements.iter().any(|requirement| !requirement.schemes.is_empty())
        };
        assert!(
            has_requirements(&settled) || !has_requirements(&card),
            "security requirements must not get lost"
        );
    }
    if let Ok((_, card)) = read_card(Node::new(raw, &Path::Root)) {
        assert_eq!(
            round_trip(v1::card::decode, v1::card::encode, &card),
            Ok(card.clone()),
            "card in any form"
        );
        // A card that can be decoded can be served in every form.
        for encode in [draft::card::encode, v03::card::encode, v03_proto::card::encode, merged::encode] {
            encoded(encode, &card);
        }
    }
}

type Decode = fn(Node<'_, '_>) -> Read<AgentCard>;
type Encode = fn(&mut Writer, &AgentCard);

/// Checks that an older form's round trip is stable after the first one, which may lose what the form cannot express.
/// Returns the card as decoded and after the first round trip.
fn check_older_form(
    raw: Raw<'_>,
    decode: Decode,
    encode: Encode,
    offered: fn(&AgentCard) -> bool,
) -> Option<(AgentCard, AgentCard)> {
    let card = decode(Node::new(raw, &Path::Root)).ok().filter(offered)?;
    let settled = round_trip(decode, encode, &card).expect("an encoded card can be decoded");
    assert_eq!(round_trip(decode, encode, &settled), Ok(settled.clone()));
    Some((card, settled))
}

/// Both kinds of clients decode from a merged card what they would decode from a card in their own form.
fn check_merged(card: &AgentCard) {
    if !v03::card::offered(card) {
        return;
    }
    let merged = encoded(merged::encode, card);
    let unsigned = AgentCard { signatures: Vec::new(), ..card.clone() };
    assert_eq!(v1::card::decode(Node::new(raw(&merged), &Path::Root)), Ok(unsigned));
    let old = v03::card::decode(Node::new(raw(&merged), &Path::Root));
    assert_eq!(old, round_trip(v03::card::decode, v03::card::encode, card));
}

fn round_trip(decode: Decode, encode: Encode, card: &AgentCard) -> Read<AgentCard> {
    decode(Node::new(raw(&encoded(encode, card)), &Path::Root))
}

fn encoded(encode: Encode, card: &AgentCard) -> Vec<u8> {
    let mut writer = Writer::new();
    encode(&mut writer, card);
    let document = writer.finish();
    raw(&document);
    document
}

fn raw(document: &[u8]) -> Raw<'_> {
    Raw::parse(document).expect("the writer produces valid JSON")
}

/// The samples of the codec's tests, and a card with thousands of skills.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = [
        include_str!("../../../crates/protocol/tests/samples/v1/card/minimal.json"),
        include_str!("../../../crates/protocol/tests/samples/v1/card/full.json"),
        include_str!("../../../crates/protocol/tests/samples/v1/card/lenient.json"),
        include_str!("../../../crates/protocol/tests/samples/v1/card/merged.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/full.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/full.v03.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/full.v03-proto.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/full.agent.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/full.merged.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/draft-only.agent.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/careless.v03.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/seeds/000.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/seeds/001.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/seeds/002.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/seeds/003.json"),
        include_str!("../../../crates/protocol/tests/cards/samples/seeds/004.json"),
    ]
    .map(Vec::from)
    .into();
    let entries = |entry: fn(usize) -> String| (0..9_000).map(entry).collect::<Vec<_>>().join(",");
    let skills = entries(|at| format!(r#"{{"id":"skill-{at}"}}"#));
    let schemes = entries(|at| format!(r#""k{at}":{{"mtlsSecurityScheme":{{}}}}"#));
    let interfaces = r#"[{"url":"https://a.example","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]"#;
    let catalogue = format!(
        r#"{{"name":"n","supportedInterfaces":{interfaces},"skills":[{skills}],"securitySchemes":{{{schemes}}}}}"#
    );
    corpus.push(catalogue.into_bytes());
    corpus
}

#[cfg(test)]
mod tests {
    use super::{Node, Path, Raw, corpus, read_card, run};

    #[test]
    fn every_card_of_the_corpus_is_decoded() {
        for card in corpus() {
            let raw = Raw::parse(&card).unwrap();
            let read = read_card(Node::new(raw, &Path::Root));
            assert!(read.is_ok(), "{read:?}: {}", String::from_utf8_lossy(&card));
            run(&card);
        }
    }
}
