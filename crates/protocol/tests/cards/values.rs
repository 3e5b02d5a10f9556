//! Arbitrary cards: any card of 1.0, and those that the forms before 1.0 can express. Where absent and empty mean
//! the same, the card holds `None`.

use a2ad_protocol::{
    AgentCard, Json,
    model::{
        AgentCapabilities, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
        ApiKeyLocation, OAuthFlow, SecurityRequirement, SecurityScheme,
    },
};
use proptest::{collection::vec, option, prelude::*, sample::select};

/// A card that the forms before 1.0 can express: one version for all older interfaces, distinct URLs, no device code
/// flow, no PKCE and no signatures.
pub(crate) fn card() -> impl Strategy<Value = AgentCard> {
    (any_card(), older_interfaces()).prop_map(|(card, interfaces)| AgentCard {
        interfaces,
        documentation_url: card.documentation_url.filter(|url| !url.is_empty()),
        icon_url: card.icon_url.filter(|url| !url.is_empty()),
        capabilities: older_capabilities(card.capabilities),
        security_schemes: card
            .security_schemes
            .into_iter()
            .map(|(name, scheme)| (name, older_scheme(scheme)))
            .collect(),
        default_input_modes: filled_modes(card.default_input_modes),
        default_output_modes: filled_modes(card.default_output_modes),
        signatures: Vec::new(),
        ..card
    })
}

fn older_capabilities(capabilities: AgentCapabilities) -> AgentCapabilities {
    let params = Some(Json::parse(r#"{"n":9007199254740993}"#).unwrap());
    let extensions = capabilities.extensions.into_iter();
    AgentCapabilities {
        streaming: Some(capabilities.streaming.unwrap_or_default()),
        push_notifications: Some(capabilities.push_notifications.unwrap_or_default()),
        extensions: extensions
            .map(|extension| AgentExtension { params: params.clone(), ..extension })
            .collect(),
        ..capabilities
    }
}

fn older_scheme(scheme: SecurityScheme) -> SecurityScheme {
    let url = || "https://id.example/".to_owned();
    let older_flow = |flow| match flow {
        OAuthFlow::AuthorizationCode { authorization_url, token_url, refresh_url, scopes, .. } => {
            let pkce_required = false;
            OAuthFlow::AuthorizationCode { authorization_url, token_url, refresh_url, scopes, pkce_required }
        }
        OAuthFlow::Implicit { authorization_url, refresh_url, scopes } => {
            let authorization_url = authorization_url.or_else(|| Some(url()));
            OAuthFlow::Implicit { authorization_url, refresh_url, scopes }
        }
        OAuthFlow::Password { token_url, refresh_url, scopes } => {
            OAuthFlow::Password { token_url: token_url.or_else(|| Some(url())), refresh_url, scopes }
        }
        OAuthFlow::ClientCredentials { token_url, refresh_url, scopes }
        | OAuthFlow::DeviceCode { token_url, refresh_url, scopes, .. } => {
            OAuthFlow::ClientCredentials { token_url, refresh_url, scopes }
        }
    };
    match scheme {
        SecurityScheme::OAuth2 { description, flow, metadata_url } => {
            SecurityScheme::OAuth2 { description, flow: older_flow(flow), metadata_url }
        }
        other => other,
    }
}

fn filled_modes(modes: Vec<String>) -> Vec<String> {
    if modes.is_empty() { vec!["text/plain".to_owned()] } else { modes }
}

/// At least one interface of 0.2 or 0.3, and possibly some of 1.0 between them.
fn older_interfaces() -> impl Strategy<Value = Vec<AgentInterface>> {
    let binding = select(vec!["JSONRPC", "HTTP+JSON", "GRPC", "urn:example:flags"]);
    let one = (filled(), binding, any::<bool>());
    (select(vec!["0.3.0", "0.3.7", "0.2.6", "0.2"]), vec(one, 0..4)).prop_map(|(old, others)| {
        let mut interfaces = vec![AgentInterface {
            url: "https://first.example".into(),
            binding: "JSONRPC".into(),
            tenant: None,
            version: old.into(),
        }];
        interfaces.extend(others.into_iter().enumerate().map(|(at, (url, binding, new))| AgentInterface {
            url: format!("{at}{url}"),
            binding: binding.into(),
            tenant: None,
            version: if new { "1.0" } else { old }.into(),
        }));
        interfaces
    })
}

/// Any card of 1.0.
pub(crate) fn any_card() -> impl Strategy<Value = AgentCard> {
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
    let name = prop_oneof![text(), Just("schemes".to_owned())];
    let schemes = proptest::collection::hash_map(name, modes(), 0..3).prop_map(Vec::from_iter);
    vec(schemes.prop_map(|schemes| SecurityRequirement { schemes }), 0..3)
}

fn scheme() -> impl Strategy<Value = SecurityScheme> {
    let location = select(vec![ApiKeyLocation::Query, ApiKeyLocation::Header, ApiKeyLocation::Cookie]);
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
