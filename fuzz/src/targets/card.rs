//! F-card: agent cards of strangers.

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
    name: "agent cards: what is read survives being written",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

const DICTIONARY: &[&str] = &[
    "name",
    "description",
    "supportedInterfaces",
    "supported_interfaces",
    "protocolBinding",
    "protocolVersion",
    "tenant",
    "provider",
    "organization",
    "version",
    "documentationUrl",
    "iconUrl",
    "capabilities",
    "streaming",
    "pushNotifications",
    "extendedAgentCard",
    "extensions",
    "required",
    "params",
    "securitySchemes",
    "securityRequirements",
    "schemes",
    "list",
    "apiKeySecurityScheme",
    "api_key_security_scheme",
    "httpAuthSecurityScheme",
    "oauth2SecurityScheme",
    "openIdConnectSecurityScheme",
    "mtlsSecurityScheme",
    "location",
    "header",
    "query",
    "cookie",
    "flows",
    "authorizationCode",
    "clientCredentials",
    "implicit",
    "password",
    "deviceCode",
    "device_code",
    "authorizationUrl",
    "tokenUrl",
    "refreshUrl",
    "deviceAuthorizationUrl",
    "scopes",
    "pkceRequired",
    "defaultInputModes",
    "skills",
    "tags",
    "inputModes",
    "signatures",
    "protected",
    "signature",
    "url",
    "preferredTransport",
    "additionalInterfaces",
    "transport",
    "JSONRPC",
    "GRPC",
    "0.1",
    "0.3.0",
    "security",
    "authentication",
    "supportsAuthenticatedExtendedCard",
    "type",
    "apiKey",
    "http",
    "oauth2",
    "openIdConnect",
    "mutualTLS",
    "in",
    "scheme",
    "openIdConnectUrl",
];

fn run(input: &[u8]) {
    let Ok(raw) = Raw::parse(input) else { return };
    if let Ok(card) = v1::card::decode(Node::new(raw, &Path::Root)) {
        assert_eq!(again(v1::card::decode, v1::card::encode, &card), Ok(card.clone()));
        check_merged(&card);
    }
    let forms: [(Decode, Encode); 2] =
        [(v03::card::decode, v03::card::encode), (v03_proto::card::decode, v03_proto::card::encode)];
    for (decode, encode) in forms {
        if let Some((card, settled)) = check_old(raw, decode, encode, v03::card::offered) {
            assert_eq!(settled.security_requirements, card.security_requirements);
            assert_eq!(settled.interfaces.len(), card.interfaces.len());
        }
    }
    // The draft has words instead of schemes, and one address.
    if let Some((card, settled)) =
        check_old(raw, draft::card::decode, draft::card::encode, draft::card::offered)
    {
        let asks =
            |card: &AgentCard| card.security_requirements.iter().any(|asked| !asked.schemes.is_empty());
        assert!(asks(&settled) || !asks(&card), "a card that asks for something still does");
    }
    if let Ok((_, card)) = read_card(Node::new(raw, &Path::Root)) {
        assert_eq!(again(v1::card::decode, v1::card::encode, &card), Ok(card.clone()), "a stranger's card");
        // A card that can be read can be served in every form.
        for encode in [draft::card::encode, v03::card::encode, v03_proto::card::encode, merged::encode] {
            written(encode, &card);
        }
    }
}

type Decode = fn(Node<'_, '_>) -> Read<AgentCard>;
type Encode = fn(&mut Writer, &AgentCard);

/// What an old form makes of a card of its own stays so; the first time it may lose what it cannot say. The card as
/// it came, and what it has become.
fn check_old(
    raw: Raw<'_>,
    decode: Decode,
    encode: Encode,
    offered: fn(&AgentCard) -> bool,
) -> Option<(AgentCard, AgentCard)> {
    let card = decode(Node::new(raw, &Path::Root)).ok().filter(offered)?;
    let settled = again(decode, encode, &card).expect("a card that is offered is read again");
    assert_eq!(again(decode, encode, &settled), Ok(settled.clone()));
    Some((card, settled))
}

/// Both readers of a merged card find what they would find in a card of their own.
fn check_merged(card: &AgentCard) {
    if !v03::card::offered(card) {
        return;
    }
    let merged = written(merged::encode, card);
    let unsigned = AgentCard { signatures: Vec::new(), ..card.clone() };
    assert_eq!(v1::card::decode(Node::new(raw(&merged), &Path::Root)), Ok(unsigned));
    let old = v03::card::decode(Node::new(raw(&merged), &Path::Root));
    assert_eq!(old, again(v03::card::decode, v03::card::encode, card));
}

fn again(decode: Decode, encode: Encode, card: &AgentCard) -> Read<AgentCard> {
    decode(Node::new(raw(&written(encode, card)), &Path::Root))
}

fn written(encode: Encode, card: &AgentCard) -> Vec<u8> {
    let mut writer = Writer::new();
    encode(&mut writer, card);
    let document = writer.finish();
    raw(&document);
    document
}

fn raw(document: &[u8]) -> Raw<'_> {
    Raw::parse(document).expect("the writer writes JSON")
}

/// The samples of the codec's own tests, and a card as large as a catalogue.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = [
        include_str!("../../../crates/protocol/tests/samples/v1/card/minimal.json"),
        include_str!("../../../crates/protocol/tests/samples/v1/card/full.json"),
        include_str!("../../../crates/protocol/tests/samples/v1/card/lenient.json"),
        include_str!("../../../crates/protocol/tests/samples/v1/card/merged.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/full.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/full.v03.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/full.v03-proto.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/full.agent.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/full.merged.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/draft-only.agent.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/careless.v03.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/seeds/000.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/seeds/001.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/seeds/002.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/seeds/003.json"),
        include_str!("../../../crates/protocol/tests/old_cards/samples/seeds/004.json"),
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
    fn every_card_of_the_corpus_is_read() {
        for card in corpus() {
            let raw = Raw::parse(&card).unwrap();
            let read = read_card(Node::new(raw, &Path::Root));
            assert!(read.is_ok(), "{read:?}: {}", String::from_utf8_lossy(&card));
            run(&card);
        }
    }
}
