//! Agent cards in the A2A 1.0 form: samples as files, and properties of every card.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

use a2ad_protocol::{
    AgentCard, Json, Violation,
    dialect::v1::card,
    json::{
        Raw,
        read::{Node, Path},
        write::Writer,
    },
    model::{
        AgentCapabilities, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
        ApiKeyLocation, OAuthFlow, SecurityRequirement, SecurityScheme,
    },
};
use proptest::{collection::vec, option, prelude::*};

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
    let cases = [
        ("5", "", "expected an object"),
        ("{}", "name", "required, expected a non-empty string"),
        (r#"{"name":""}"#, "name", "expected a non-empty string"),
        (r#"{"name":["x"]}"#, "name", "expected a string"),
        (r#"{"name":"x"}"#, "supportedInterfaces", "required, expected at least one interface"),
        (
            r#"{"name":"x","supportedInterfaces":[]}"#,
            "supportedInterfaces",
            "expected at least one interface",
        ),
        (r#"{"name":"x","supportedInterfaces":[null]}"#, "supportedInterfaces[0]", "expected an object"),
    ];
    for (text, field, problem) in cases {
        assert_eq!(decode(text), Err(Violation::new(field, problem)), "{text}");
    }
}

#[test]
fn invalid_member_of_a_card_names_its_field() {
    let string = "expected a string";
    let filled = "required, expected a non-empty string";
    let one_scheme = "expected exactly one of apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, openIdConnectSecurityScheme, mtlsSecurityScheme";
    let one_flow =
        "expected exactly one of authorizationCode, clientCredentials, implicit, password, deviceCode";
    let cases = [
        (r#""supportedInterfaces":[{"url":"u"}]"#, "supportedInterfaces[0].protocolBinding", filled),
        (
            r#""supportedInterfaces":[{"url":"u","protocolBinding":"JSONRPC"}]"#,
            "supportedInterfaces[0].protocolVersion",
            filled,
        ),
        (r#""description":5"#, "description", string),
        (r#""documentationUrl":{}"#, "documentationUrl", string),
        (r#""provider":"me""#, "provider", "expected an object"),
        (r#""capabilities":{"streaming":"yes"}"#, "capabilities.streaming", "expected true or false"),
        (r#""capabilities":{"extensions":[{}]}"#, "capabilities.extensions[0].uri", filled),
        (
            r#""capabilities":{"extensions":[{"uri":"u"},{"uri":"u","params":[]}]}"#,
            "capabilities.extensions[1].params",
            "expected an object",
        ),
        (r#""securitySchemes":[]"#, "securitySchemes", "expected an object"),
        (r#""securitySchemes":{"k":null}"#, "securitySchemes.k", "expected an object"),
        (r#""securitySchemes":{"k":{"type":"apiKey"}}"#, "securitySchemes.k", one_scheme),
        (
            r#""securitySchemes":{"k":{"mtlsSecurityScheme":{},"httpAuthSecurityScheme":{"scheme":"Basic"}}}"#,
            "securitySchemes.k",
            one_scheme,
        ),
        (
            r#""securitySchemes":{"k":{"apiKeySecurityScheme":{"name":"n","location":"body"}}}"#,
            "securitySchemes.k.apiKeySecurityScheme.location",
            "expected query, header or cookie",
        ),
        (
            r#""securitySchemes":{"k":{"oauth2SecurityScheme":{}}}"#,
            "securitySchemes.k.oauth2SecurityScheme.flows",
            "required, expected one OAuth flow",
        ),
        (
            r#""securitySchemes":{"k":{"oauth2SecurityScheme":{"flows":{"implicit":{},"password":{}}}}}"#,
            "securitySchemes.k.oauth2SecurityScheme.flows",
            one_flow,
        ),
        (
            r#""securitySchemes":{"k":{"oauth2SecurityScheme":{"flows":{"deviceCode":{"tokenUrl":"u"}}}}}"#,
            "securitySchemes.k.oauth2SecurityScheme.flows.deviceCode.deviceAuthorizationUrl",
            filled,
        ),
        (
            r#""securitySchemes":{"k":{"oauth2SecurityScheme":{"flows":{"implicit":{"scopes":{"s":1}}}}}}"#,
            "securitySchemes.k.oauth2SecurityScheme.flows.implicit.scopes.s",
            string,
        ),
        (
            r#""securityRequirements":[{},{"schemes":{"k":["s"]}}]"#,
            "securityRequirements[1].schemes.k",
            "expected an object",
        ),
        (r#""defaultInputModes":["a",2]"#, "defaultInputModes[1]", string),
        (r#""skills":{}"#, "skills", "expected an array"),
        (r#""skills":[{"id":"a"},{"name":"b"}]"#, "skills[1].id", filled),
        (r#""signatures":[{"protected":"p"}]"#, "signatures[0].signature", filled),
        (
            r#""signatures":[{"protected":"p","signature":"s","header":"h"}]"#,
            "signatures[0].header",
            "expected an object",
        ),
    ];
    for (member, field, problem) in cases {
        // The member is appended and so overrides the sample's own: the last duplicate wins.
        let sample = sample("minimal.json");
        let text = format!("{},{member}}}", sample.trim_end().trim_end_matches('}'));
        assert_eq!(decode(&text), Err(Violation::new(field, problem)), "{member}");
    }
}

proptest! {
    #[test]
    fn every_card_round_trips(card in card()) {
        let text = encode(&card);
        prop_assert_eq!(decode(&text), Ok(card), "{}", text);
    }
}

/// Reads one sample and compares the output with the other, byte for byte except for white space.
fn check(sample_name: &str, expected_name: &str) {
    let card = decode(&sample(sample_name)).unwrap();
    let written = encode(&card);
    assert_eq!(written, Json::parse(&sample(expected_name)).unwrap().as_str());
    assert_eq!(decode(&written), Ok(card));
}

fn sample(name: &str) -> String {
    std::fs::read_to_string(format!("tests/samples/v1/card/{name}")).unwrap()
}

fn decode(text: &str) -> Result<AgentCard, Violation> {
    card::decode(Node::new(Raw::parse_text(text).unwrap(), &Path::Root))
}

fn encode(card: &AgentCard) -> String {
    let mut writer = Writer::new();
    card::encode(&mut writer, card);
    String::from_utf8(writer.finish()).unwrap()
}

fn card() -> impl Strategy<Value = AgentCard> {
    let who = (filled(), text(), text(), option::of(provider()), option::of(text()), option::of(text()));
    let what = (capabilities(), modes(), modes(), vec(skill(), 0..3));
    let trust = (map(scheme()), requirements(), vec(signature(), 0..3));
    (who, vec(interface(), 1..3), what, trust).prop_map(|(who, interfaces, what, trust)| {
        let (name, description, version, provider, documentation_url, icon_url) = who;
        let (capabilities, default_input_modes, default_output_modes, skills) = what;
        let (security_schemes, security_requirements, signatures) = trust;
        AgentCard {
            name,
            description,
            interfaces,
            provider,
            version,
            documentation_url,
            capabilities,
            security_schemes,
            security_requirements,
            default_input_modes,
            default_output_modes,
            skills,
            signatures,
            icon_url,
        }
    })
}

fn interface() -> impl Strategy<Value = AgentInterface> {
    (filled(), filled(), maybe_filled(), filled())
        .prop_map(|(url, binding, tenant, version)| AgentInterface { url, binding, tenant, version })
}

fn provider() -> impl Strategy<Value = AgentProvider> {
    (text(), text()).prop_map(|(url, organization)| AgentProvider { url, organization })
}

fn capabilities() -> impl Strategy<Value = AgentCapabilities> {
    let flag = option::of(any::<bool>());
    (flag.clone(), flag.clone(), vec(extension(), 0..3), flag).prop_map(
        |(streaming, push_notifications, extensions, extended_card)| AgentCapabilities {
            streaming,
            push_notifications,
            extensions,
            extended_card,
        },
    )
}

fn extension() -> impl Strategy<Value = AgentExtension> {
    (filled(), maybe_filled(), any::<bool>(), option::of(object())).prop_map(
        |(uri, description, required, params)| AgentExtension { uri, description, required, params },
    )
}

fn skill() -> impl Strategy<Value = AgentSkill> {
    (filled(), text(), text(), modes(), modes(), modes(), modes(), requirements()).prop_map(
        |(id, name, description, tags, examples, input_modes, output_modes, security_requirements)| {
            AgentSkill {
                id,
                name,
                description,
                tags,
                examples,
                input_modes,
                output_modes,
                security_requirements,
            }
        },
    )
}

fn signature() -> impl Strategy<Value = AgentCardSignature> {
    (filled(), filled(), option::of(object())).prop_map(|(protected, signature, header)| AgentCardSignature {
        protected,
        signature,
        header,
    })
}

fn requirements() -> impl Strategy<Value = Vec<SecurityRequirement>> {
    vec(map(modes()).prop_map(|schemes| SecurityRequirement { schemes }), 0..3)
}

fn scheme() -> impl Strategy<Value = SecurityScheme> {
    let location =
        prop_oneof![Just(ApiKeyLocation::Query), Just(ApiKeyLocation::Header), Just(ApiKeyLocation::Cookie),];
    prop_oneof![
        (maybe_filled(), location, filled())
            .prop_map(|(description, location, name)| SecurityScheme::ApiKey { description, location, name }),
        (maybe_filled(), filled(), maybe_filled()).prop_map(|(description, scheme, bearer_format)| {
            SecurityScheme::HttpAuth { description, scheme, bearer_format }
        }),
        (maybe_filled(), flow(), maybe_filled()).prop_map(|(description, flow, metadata_url)| {
            SecurityScheme::OAuth2 { description, flow, metadata_url }
        }),
        (maybe_filled(), filled())
            .prop_map(|(description, url)| SecurityScheme::OpenIdConnect { description, url }),
        maybe_filled().prop_map(|description| SecurityScheme::MutualTls { description }),
    ]
}

fn flow() -> impl Strategy<Value = OAuthFlow> {
    prop_oneof![
        (filled(), filled(), maybe_filled(), map(text()), any::<bool>()).prop_map(
            |(authorization_url, token_url, refresh_url, scopes, pkce_required)| {
                OAuthFlow::AuthorizationCode {
                    authorization_url,
                    token_url,
                    refresh_url,
                    scopes,
                    pkce_required,
                }
            }
        ),
        (filled(), maybe_filled(), map(text())).prop_map(|(token_url, refresh_url, scopes)| {
            OAuthFlow::ClientCredentials { token_url, refresh_url, scopes }
        }),
        (maybe_filled(), maybe_filled(), map(text())).prop_map(|(authorization_url, refresh_url, scopes)| {
            OAuthFlow::Implicit { authorization_url, refresh_url, scopes }
        }),
        (maybe_filled(), maybe_filled(), map(text())).prop_map(|(token_url, refresh_url, scopes)| {
            OAuthFlow::Password { token_url, refresh_url, scopes }
        }),
        (filled(), filled(), maybe_filled(), map(text())).prop_map(
            |(device_authorization_url, token_url, refresh_url, scopes)| {
                OAuthFlow::DeviceCode { device_authorization_url, token_url, refresh_url, scopes }
            }
        ),
    ]
}

/// Any text: control characters, quotes and non-ASCII included.
fn text() -> impl Strategy<Value = String> + Clone {
    vec(any::<char>(), 0..6).prop_map(String::from_iter)
}

fn filled() -> impl Strategy<Value = String> + Clone {
    vec(any::<char>(), 1..6).prop_map(String::from_iter)
}

/// Where empty and absent mean the same, the model holds `None`.
fn maybe_filled() -> impl Strategy<Value = Option<String>> {
    option::of(filled())
}

fn modes() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

/// Entries in any order with unique keys.
fn map<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<(String, T)>> {
    proptest::collection::hash_map(text(), value, 0..3).prop_map(Vec::from_iter)
}

/// A JSON object with numbers that no float can represent.
fn object() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i128>().prop_map(|value| value.to_string()),
        text().prop_map(|text| quoted(&text)),
    ];
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
            members(inner).prop_map(|members| format!("{{{members}}}")),
        ]
    });
    members(value).prop_map(|members| Json::parse(&format!("{{ {members} }}")).unwrap())
}

fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let member = (text(), value).prop_map(|(name, value)| format!("{}: {value}", quoted(&name)));
    vec(member, 0..3).prop_map(|members| members.join(" ,\n"))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}
