//! F-card: agent cards of strangers.

use protocol::{
    AgentCard,
    dialect::v1::card,
    json::{
        read::{Node, Path, Read},
        write::Writer,
    },
};
use serde_json::value::RawValue;

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
];

fn run(input: &[u8]) {
    let Some(Ok(card)) = read(input) else { return };
    let mut writer = Writer::new();
    card::encode(&mut writer, &card);
    let again = read(&writer.finish()).expect("the writer writes JSON");
    assert_eq!(again, Ok(card));
}

/// `None` when the input is not JSON.
fn read(input: &[u8]) -> Option<Read<AgentCard>> {
    let raw: &RawValue = serde_json::from_slice(input).ok()?;
    Some(card::decode(Node::new(raw, &Path::Root)))
}

/// The samples of the codec's own tests, and a card as large as a catalogue.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = [
        include_str!("../../../crates/protocol/tests/samples/v1/card/minimal.json"),
        include_str!("../../../crates/protocol/tests/samples/v1/card/full.json"),
        include_str!("../../../crates/protocol/tests/samples/v1/card/lenient.json"),
        include_str!("../../../crates/protocol/tests/samples/v1/card/merged.json"),
    ]
    .map(Vec::from)
    .into();
    let entries = |entry: fn(usize) -> String| (0..20_000).map(entry).collect::<Vec<_>>().join(",");
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
    use super::{corpus, read, run};

    #[test]
    fn every_card_of_the_corpus_is_read() {
        for card in corpus() {
            assert!(read(&card).is_some_and(|card| card.is_ok()), "{}", String::from_utf8_lossy(&card));
            run(&card);
        }
    }
}
