//! Arbitrary cards that the forms before 1.0 can express.
//!
//! One version for all older interfaces, distinct URLs, no device code flow, no PKCE and no signatures; where
//! absent and empty mean the same, the card holds `None`.

use a2ad_protocol::{
    AgentCard, Json,
    model::{
        AgentCapabilities, AgentExtension, AgentInterface, AgentProvider, AgentSkill, ApiKeyLocation,
        OAuthFlow, SecurityRequirement, SecurityScheme,
    },
};
use proptest::{collection::vec, option, prelude::*, sample::select};

pub(crate) fn card() -> impl Strategy<Value = AgentCard> {
    let who = (filled(), text(), text(), option::of(provider()), maybe_filled(), maybe_filled());
    let what = (capabilities(), filled_modes(), filled_modes(), vec(skill(), 0..3));
    (who, interfaces(), what, map(scheme()), requirements()).prop_map(
        |(who, interfaces, what, security_schemes, security_requirements)| {
            let (name, description, version, provider, documentation_url, icon_url) = who;
            let (capabilities, default_input_modes, default_output_modes, skills) = what;
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
                signatures: Vec::new(),
                icon_url,
            }
        },
    )
}

/// At least one interface of 0.2 or 0.3, and possibly some of 1.0 between them.
fn interfaces() -> impl Strategy<Value = Vec<AgentInterface>> {
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

fn provider() -> impl Strategy<Value = AgentProvider> {
    (text(), text()).prop_map(|(url, organization)| AgentProvider { url, organization })
}

fn capabilities() -> impl Strategy<Value = AgentCapabilities> {
    let extension = (filled(), maybe_filled(), any::<bool>()).prop_map(|(uri, description, required)| {
        let params = Some(Json::parse(r#"{"n":9007199254740993}"#).unwrap());
        AgentExtension { uri, description, required, params }
    });
    (any::<bool>(), any::<bool>(), vec(extension, 0..3), option::of(any::<bool>())).prop_map(
        |(streaming, push_notifications, extensions, extended_card)| AgentCapabilities {
            streaming: Some(streaming),
            push_notifications: Some(push_notifications),
            extensions,
            extended_card,
        },
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
    (0..4, filled(), filled(), maybe_filled(), map(text())).prop_map(
        |(which, authorization_url, token_url, refresh_url, scopes)| match which {
            0 => OAuthFlow::AuthorizationCode {
                authorization_url,
                token_url,
                refresh_url,
                scopes,
                pkce_required: false,
            },
            1 => OAuthFlow::ClientCredentials { token_url, refresh_url, scopes },
            2 => OAuthFlow::Implicit { authorization_url: Some(authorization_url), refresh_url, scopes },
            _ => OAuthFlow::Password { token_url: Some(token_url), refresh_url, scopes },
        },
    )
}

/// Any text: control characters, quotes and non-ASCII included.
fn text() -> impl Strategy<Value = String> + Clone {
    vec(any::<char>(), 0..6).prop_map(String::from_iter)
}

fn filled() -> impl Strategy<Value = String> + Clone {
    vec(any::<char>(), 1..6).prop_map(String::from_iter)
}

fn maybe_filled() -> impl Strategy<Value = Option<String>> {
    option::of(filled())
}

fn modes() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

fn filled_modes() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 1..3)
}

/// Entries in any order with unique keys.
fn map<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<(String, T)>> {
    proptest::collection::hash_map(text(), value, 0..3).prop_map(Vec::from_iter)
}
