//! Agent cards through both services.

use a2ad_protocol::{
    AgentCard, Json, OperationKind, Reply,
    grpc::Service,
    model::{AgentCardSignature, OAuthFlow, SecurityScheme},
};
use proptest::{prop_assert_eq, proptest};

use crate::{bad, card_values, doubles, wire::bytes};

proptest! {
    #[test]
    fn every_card_round_trips(card in card_values::card()) {
        for service in Service::ALL {
            let expected = match service {
                Service::V1 => card.clone(),
                Service::V03 => limited_to_v03(card.clone()),
            };
            prop_assert_eq!(round_trip(service, &card), sorted_text(expected));
        }
    }
}

#[test]
fn flows_new_in_1_0_are_omitted_in_0_3() {
    let device = OAuthFlow::DeviceCode {
        device_authorization_url: "https://a.example/d".into(),
        token_url: "https://a.example/t".into(),
        refresh_url: None,
        scopes: vec![("s".into(), "a scope".into())],
    };
    let pkce = |required| OAuthFlow::AuthorizationCode {
        authorization_url: "https://a.example/a".into(),
        token_url: "https://a.example/t".into(),
        refresh_url: Some("https://a.example/r".into()),
        scopes: Vec::new(),
        pkce_required: required,
    };
    let scheme = |flow| SecurityScheme::OAuth2 { description: None, flow, metadata_url: None };
    let mut card = minimal();
    card.security_schemes = vec![("code".into(), scheme(pkce(true))), ("device".into(), scheme(device))];
    card.signatures = vec![AgentCardSignature {
        protected: "p".into(),
        signature: "s".into(),
        header: Some(Json::parse(r#"{"kid":"k"}"#).unwrap()),
    }];
    card.documentation_url = Some(String::new());
    assert_eq!(round_trip(Service::V1, &card), sorted_text(card.clone()));
    let mut old = limited_to_v03(card.clone());
    old.security_schemes = vec![("code".into(), scheme(pkce(false)))];
    old.signatures.clear();
    old.documentation_url = None;
    assert_eq!(round_trip(Service::V03, &card), sorted_text(old));
}

#[test]
fn encoding_is_deterministic() {
    let mut card = minimal();
    let scheme = |name: &str| (name.to_owned(), SecurityScheme::MutualTls { description: None });
    card.security_schemes = ["b", "a", "c"].map(scheme).into();
    for service in Service::ALL {
        let bytes = service.encode_reply(&Reply::Card(Box::new(card.clone())));
        card.security_schemes.reverse();
        assert_eq!(service.encode_reply(&Reply::Card(Box::new(card.clone()))), bytes);
    }
}

#[test]
fn invalid_card_names_its_field() {
    let interface = bytes(3, [bytes(1, "u"), bytes(2, "GRPC"), bytes(4, "1.0")].concat());
    let card = |more: Vec<u8>| [bytes(1, "n"), interface.clone(), more].concat();
    let scheme = |scheme: Vec<u8>| card(bytes(8, [bytes(1, "k"), bytes(2, scheme)].concat()));
    let filled = "required, expected a non-empty string";
    let one_of = "expected exactly one of apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, openIdConnectSecurityScheme, mtlsSecurityScheme";
    #[rustfmt::skip]
    let cases = [
        (Vec::new(), "supportedInterfaces", "required, expected at least one interface"),
        (interface.clone(), "name", filled),
        (card(bytes(3, bytes(1, "u"))), "supportedInterfaces[1].protocolBinding", filled),
        (card(bytes(7, bytes(3, bytes(2, "d")))), "capabilities.extensions[0].uri", filled),
        (card(bytes(12, bytes(2, "n"))), "skills[0].id", filled),
        (card(bytes(13, bytes(1, "p"))), "signatures[0].signature", filled),
        (scheme(Vec::new()), "securitySchemes.k", one_of),
        (scheme(bytes(1, bytes(2, "body"))), "securitySchemes.k.apiKeySecurityScheme.location",
         "expected query, header or cookie"),
        (scheme(bytes(3, Vec::new())), "securitySchemes.k.oauth2SecurityScheme.flows",
         "required, expected one OAuth flow"),
        (scheme(bytes(3, bytes(2, Vec::new()))), "securitySchemes.k.oauth2SecurityScheme.flows",
         "expected one OAuth flow"),
        (scheme(bytes(3, bytes(2, bytes(5, bytes(2, "t"))))),
         "securitySchemes.k.oauth2SecurityScheme.flows.deviceCode.deviceAuthorizationUrl", filled),
    ];
    for (body, field, problem) in cases {
        let read = Service::V1.decode_reply(OperationKind::GetExtendedCard, &body);
        bad::assert_rejected(read, field, problem);
    }
    let read = Service::V03.decode_reply(OperationKind::GetExtendedCard, &bytes(1, "n"));
    bad::assert_rejected(read, "url", filled);
}

#[test]
fn unknown_scheme_is_omitted_in_0_3() {
    let unknown = bytes(8, [bytes(1, "k"), bytes(2, Vec::new())].concat());
    let body = [bytes(1, "n"), bytes(3, "https://a.example"), unknown].concat();
    let Ok(Reply::Card(card)) = Service::V03.decode_reply(OperationKind::GetExtendedCard, &body) else {
        panic!("expected a card")
    };
    assert!(card.security_schemes.is_empty());
    assert_eq!(card.interfaces[0].binding, "JSONRPC");
    assert_eq!(card.interfaces[0].version, "0.2");
}

fn round_trip(service: Service, card: &AgentCard) -> String {
    let bytes = service.encode_reply(&Reply::Card(Box::new(card.clone())));
    let Ok(Reply::Card(read)) = service.decode_reply(OperationKind::GetExtendedCard, &bytes) else {
        panic!("expected a card")
    };
    sorted_text(*read)
}

/// A card as text, with maps sorted by key.
fn sorted_text(mut card: AgentCard) -> String {
    card.security_schemes.sort_by(|one, other| one.0.cmp(&other.0));
    for (_, scheme) in &mut card.security_schemes {
        if let SecurityScheme::OAuth2 { flow, .. } = scheme {
            let (OAuthFlow::AuthorizationCode { scopes, .. }
            | OAuthFlow::ClientCredentials { scopes, .. }
            | OAuthFlow::Implicit { scopes, .. }
            | OAuthFlow::Password { scopes, .. }
            | OAuthFlow::DeviceCode { scopes, .. }) = flow;
            scopes.sort();
        }
    }
    let skills = card.skills.iter_mut().flat_map(|skill| &mut skill.security_requirements);
    for requirement in skills.chain(&mut card.security_requirements) {
        requirement.schemes.sort();
    }
    doubles::reply(&Reply::Card(Box::new(card)))
}

/// What a 0.3 card keeps: the interfaces of that generation, and only flags that are true.
fn limited_to_v03(mut card: AgentCard) -> AgentCard {
    card.interfaces.retain(|interface| interface.version != "1.0");
    let flags = &mut card.capabilities;
    for flag in [&mut flags.streaming, &mut flags.push_notifications, &mut flags.extended_card] {
        *flag = flag.filter(|flag_value| *flag_value);
    }
    card
}

fn minimal() -> AgentCard {
    let interface = [bytes(1, "https://a.example"), bytes(2, "JSONRPC"), bytes(4, "0.3.0")].concat();
    let body = [bytes(1, "n"), bytes(3, interface)].concat();
    let Ok(Reply::Card(card)) = Service::V1.decode_reply(OperationKind::GetExtendedCard, &body) else {
        panic!("expected a card")
    };
    *card
}
