//! Card options of compatibility profiles.

use a2ad_protocol::dialect::CardStyle;

use crate::codec::{Form, card};

#[test]
fn tools_list_the_skills_and_modes_are_not_media_types() {
    let style = CardStyle { tools_in_capabilities: true, short_modes: true, ..CardStyle::default() };
    let written = Form::AgentJson.encode_styled(&card("full.json"), &style);
    assert!(written.contains(r#""capabilities":{"tools":["berth","tides"],"streaming":true,"#), "{written}");
    assert!(
        written.contains(r#""defaultInputModes":["text","data"],"defaultOutputModes":["text"]"#),
        "{written}"
    );
    assert!(written.contains(r#""outputModes":["data","file","image/svg+xml"]"#), "{written}");
}

#[test]
fn profile_can_set_state_history_and_short_version() {
    let style = CardStyle { state_transition_history: true, short_version: true, ..CardStyle::default() };
    for form in [Form::V03, Form::AgentJson, Form::Merged] {
        let written = form.encode_styled(&card("full.json"), &style);
        assert!(written.contains(r#""stateTransitionHistory":true"#), "{form:?}");
        assert!(written.contains(r#""protocolVersion":"0.3""#) && !written.contains("0.3.0"), "{form:?}");
    }
}

#[test]
fn profile_can_omit_security() {
    let style = CardStyle { no_security: true, ..CardStyle::default() };
    for form in Form::OLD {
        let written = form.encode_styled(&card("full.json"), &style);
        for member in ["securitySchemes", "\"security\"", "authentication\""] {
            assert!(!written.contains(member), "{form:?} {member}");
        }
    }
}

#[test]
fn profile_can_set_credentials_for_private_cards() {
    let style = CardStyle { credentials: Some("request access".into()), ..CardStyle::default() };
    let written = Form::AgentJson.encode_styled(&card("draft-only.json"), &style);
    let expected = r#""authentication":{"schemes":["bearer","apiKey"],"credentials":"request access"}"#;
    assert!(written.contains(expected), "{written}");
}
