//! What a house spells in its own way.

use a2ad_protocol::dialect::CardStyle;

use crate::codec::{Form, card};

#[test]
fn tools_are_the_skills_and_modes_are_words() {
    let style = CardStyle { tools_in_capabilities: true, modes_as_words: true, ..CardStyle::default() };
    let written = Form::AgentJson.encode_styled(&card("full.json"), &style);
    assert!(written.contains(r#""capabilities":{"tools":["berth","tides"],"streaming":true,"#), "{written}");
    assert!(
        written.contains(r#""defaultInputModes":["text","data"],"defaultOutputModes":["text"]"#),
        "{written}"
    );
    assert!(written.contains(r#""outputModes":["data","file","image/svg+xml"]"#), "{written}");
}

#[test]
fn a_house_may_claim_its_history_and_name_its_version_shortly() {
    let style = CardStyle { state_transition_history: true, short_version: true, ..CardStyle::default() };
    for form in [Form::V03, Form::AgentJson, Form::Merged] {
        let written = form.encode_styled(&card("full.json"), &style);
        assert!(written.contains(r#""stateTransitionHistory":true"#), "{form:?}");
        assert!(written.contains(r#""protocolVersion":"0.3""#) && !written.contains("0.3.0"), "{form:?}");
    }
}

#[test]
fn a_house_may_say_nothing_about_security() {
    let style = CardStyle { no_security: true, ..CardStyle::default() };
    for form in Form::OLD {
        let written = form.encode_styled(&card("full.json"), &style);
        for member in ["securitySchemes", "\"security\"", "authentication\""] {
            assert!(!written.contains(member), "{form:?} {member}");
        }
    }
}

#[test]
fn a_house_tells_how_private_cards_are_had() {
    let style = CardStyle { credentials: Some("ask the harbour master".into()), ..CardStyle::default() };
    let written = Form::AgentJson.encode_styled(&card("draft-only.json"), &style);
    let expected =
        r#""authentication":{"schemes":["bearer","apiKey"],"credentials":"ask the harbour master"}"#;
    assert!(written.contains(expected), "{written}");
}
