//! Agent cards in the A2A 1.0 form: samples as files, and properties of every card.

use a2ad_protocol::{Json, Violation};
use proptest::{prop_assert_eq, proptest};

use crate::{codec::Form, values};

#[test]
fn card_round_trips() {
    check("minimal.json", "minimal.json");
    check("full.json", "full.json");
}

#[test]
fn nonconforming_card_is_read_and_written_exactly() {
    check("lenient.json", "lenient.expected.json");
}

#[test]
fn members_of_an_older_generation_are_ignored() {
    check("merged.json", "merged.expected.json");
}

#[test]
fn invalid_card_names_its_field() {
    #[rustfmt::skip]
    let cases = [
        ("5", "", "expected an object"),
        ("{}", "name", "required, expected a non-empty string"),
        (r#"{"name":""}"#, "name", "expected a non-empty string"),
        (r#"{"name":["x"]}"#, "name", "expected a string"),
        (r#"{"name":"x"}"#, "supportedInterfaces", "required, expected at least one interface"),
        (r#"{"name":"x","supportedInterfaces":[]}"#, "supportedInterfaces",
         "expected at least one interface"),
        (r#"{"name":"x","supportedInterfaces":[null]}"#, "supportedInterfaces[0]", "expected an object"),
    ];
    for (text, field, problem) in cases {
        assert_eq!(Form::V1.decode(text), Err(Violation::new(field, problem)), "{text}");
    }
}

#[test]
fn invalid_member_of_a_card_names_its_field() {
    let string = "expected a string";
    let filled = "required, expected a non-empty string";
    let one_scheme = "expected exactly one of apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, openIdConnectSecurityScheme, mtlsSecurityScheme";
    let one_flow =
        "expected exactly one of authorizationCode, clientCredentials, implicit, password, deviceCode";
    #[rustfmt::skip]
    let cases = [
        (r#""supportedInterfaces":[{"url":"u"}]"#, "supportedInterfaces[0].protocolBinding", filled),
        (r#""supportedInterfaces":[{"url":"u","protocolBinding":"JSONRPC"}]"#,
         "supportedInterfaces[0].protocolVersion", filled),
        (r#""description":5"#, "description", string),
        (r#""documentationUrl":{}"#, "documentationUrl", string),
        (r#""provider":"me""#, "provider", "expected an object"),
        (r#""capabilities":{"streaming":"yes"}"#, "capabilities.streaming", "expected true or false"),
        (r#""capabilities":{"extensions":[{}]}"#, "capabilities.extensions[0].uri", filled),
        (r#""capabilities":{"extensions":[{"uri":"u"},{"uri":"u","params":[]}]}"#,
         "capabilities.extensions[1].params", "expected an object"),
        (r#""securitySchemes":[]"#, "securitySchemes", "expected an object"),
        (r#""securitySchemes":{"k":null}"#, "securitySchemes.k", "expected an object"),
        (r#""securitySchemes":{"k":{"type":"apiKey"}}"#, "securitySchemes.k", one_scheme),
        (r#""securitySchemes":{"k":{"mtlsSecurityScheme":{},"httpAuthSecurityScheme":{"scheme":"Basic"}}}"#,
         "securitySchemes.k", one_scheme),
        (r#""securitySchemes":{"k":{"apiKeySecurityScheme":{"name":"n","location":"body"}}}"#,
         "securitySchemes.k.apiKeySecurityScheme.location", "expected query, header or cookie"),
        (r#""securitySchemes":{"k":{"oauth2SecurityScheme":{}}}"#,
         "securitySchemes.k.oauth2SecurityScheme.flows", "required, expected one OAuth flow"),
        (r#""securitySchemes":{"k":{"oauth2SecurityScheme":{"flows":{"implicit":{},"password":{}}}}}"#,
         "securitySchemes.k.oauth2SecurityScheme.flows", one_flow),
        (r#""securitySchemes":{"k":{"oauth2SecurityScheme":{"flows":{"deviceCode":{"tokenUrl":"u"}}}}}"#,
         "securitySchemes.k.oauth2SecurityScheme.flows.deviceCode.deviceAuthorizationUrl", filled),
        (r#""securitySchemes":{"k":{"oauth2SecurityScheme":{"flows":{"implicit":{"scopes":{"s":1}}}}}}"#,
         "securitySchemes.k.oauth2SecurityScheme.flows.implicit.scopes.s", string),
        (r#""securityRequirements":[{},{"schemes":{"k":["s"]}}]"#, "securityRequirements[1].schemes.k",
         "expected an object"),
        (r#""defaultInputModes":["a",2]"#, "defaultInputModes[1]", string),
        (r#""skills":{}"#, "skills", "expected an array"),
        (r#""skills":[{"id":"a"},{"name":"b"}]"#, "skills[1].id", filled),
        (r#""signatures":[{"protected":"p"}]"#, "signatures[0].signature", filled),
        (r#""signatures":[{"protected":"p","signature":"s","header":"h"}]"#, "signatures[0].header",
         "expected an object"),
    ];
    for (member, field, problem) in cases {
        // The member is appended and so overrides the sample's own: the last duplicate wins.
        let sample = sample("minimal.json");
        let text = format!("{},{member}}}", sample.trim_end().trim_end_matches('}'));
        assert_eq!(Form::V1.decode(&text), Err(Violation::new(field, problem)), "{member}");
    }
}

proptest! {
    #[test]
    fn every_card_round_trips(card in values::any_card()) {
        let text = Form::V1.encode(&card);
        prop_assert_eq!(Form::V1.decode(&text), Ok(card), "{}", text);
    }
}

/// Reads one sample and compares the output with the other, byte for byte except for white space.
fn check(sample_name: &str, expected_name: &str) {
    let card = Form::V1.decode(&sample(sample_name)).unwrap();
    let written = Form::V1.encode(&card);
    assert_eq!(written, Json::parse(&sample(expected_name)).unwrap().as_str());
    assert_eq!(Form::V1.decode(&written), Ok(card));
}

fn sample(name: &str) -> String {
    std::fs::read_to_string(format!("tests/samples/v1/card/{name}")).unwrap()
}
