//! The card at `agent.json` validated against the draft's JSON schema.

use a2ad_protocol::{
    dialect::CardStyle,
    json::{
        Raw,
        read::{Node, Path},
    },
};
use proptest::{prelude::*, test_runner::Config};

use crate::{
    codec::{Form, card, sample},
    values,
};

#[test]
fn samples_conform_to_the_schema_of_the_draft() {
    let styles = [
        CardStyle::default(),
        CardStyle {
            tools_in_capabilities: true,
            short_modes: true,
            state_transition_history: true,
            no_security: false,
            short_version: true,
            credentials: Some("ask".into()),
        },
        CardStyle { no_security: true, ..CardStyle::default() },
    ];
    for name in ["full.json", "draft-only.json"] {
        for style in &styles {
            assert_eq!(problems(&Form::AgentJson.encode_styled(&card(name), style)), "", "{name} {style:?}");
        }
    }
    assert_ne!(
        problems(&sample("seeds/001.json")),
        "",
        "the published sample has a string where a list is required"
    );
}

proptest! {
    #![proptest_config(Config::with_cases(64))]
    #[test]
    fn every_card_conforms_to_the_schema_of_the_draft(card in values::card()) {
        prop_assert_eq!(problems(&Form::AgentJson.encode(&card)), "");
    }
}

/// The schema violations of a card.
fn problems(text: &str) -> String {
    let validator = jsonschema::validator_for(&serde_json::from_str(&card_schema()).unwrap()).unwrap();
    let card = serde_json::from_str(text).unwrap();
    validator.iter_errors(&card).map(|error| error.to_string()).collect::<Vec<_>>().join("; ")
}

/// The part of the schema that defines cards.
fn card_schema() -> String {
    let schema = std::fs::read_to_string("tests/samples/draft/schema.json").unwrap();
    let raw = Raw::parse_text(&schema).unwrap();
    let definitions = Node::new(raw, &Path::Root)
        .object()
        .unwrap()
        .need("$defs", "definitions", |node| Ok(node.text().to_owned()))
        .unwrap();
    format!(r##"{{"$ref":"#/$defs/AgentCard","$defs":{definitions}}}"##)
}
