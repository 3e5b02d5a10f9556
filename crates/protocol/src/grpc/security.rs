//! Security schemes and requirements, whose messages are the same in both versions.

use std::collections::BTreeMap;

use crate::{
    json::read::{Path, Read},
    model::{ApiKeyLocation, OAuthFlow, SecurityRequirement, SecurityScheme},
};

use super::{
    generated::v1 as pb,
    read::{expected, lacks, need, need_text, text},
};

pub(super) fn decode_requirement(requirement: pb::SecurityRequirement) -> SecurityRequirement {
    let schemes = requirement.schemes.into_iter().map(|(name, scopes)| (name, scopes.list));
    SecurityRequirement { schemes: schemes.collect() }
}

pub(super) fn encode_requirements(requirements: &[SecurityRequirement]) -> Vec<pb::SecurityRequirement> {
    let encode = |requirement: &SecurityRequirement| {
        let schemes = requirement.schemes.iter();
        let schemes = schemes.map(|(name, scopes)| (name.clone(), pb::StringList { list: scopes.clone() }));
        pb::SecurityRequirement { schemes: schemes.collect() }
    };
    requirements.iter().map(encode).collect()
}

/// Reads a scheme; `None` if no variant is set.
pub(super) fn decode(scheme: pb::SecurityScheme, path: &Path<'_>) -> Read<Option<SecurityScheme>> {
    use pb::security_scheme::Scheme;
    let Some(scheme) = scheme.scheme else { return Ok(None) };
    let path = |name| Path::Field(path, name);
    Ok(Some(match scheme {
        Scheme::ApiKeySecurityScheme(scheme) => decode_api_key(scheme, &path("apiKeySecurityScheme"))?,
        Scheme::HttpAuthSecurityScheme(scheme) => SecurityScheme::HttpAuth {
            description: text(scheme.description),
            scheme: need_text(scheme.scheme, &path("httpAuthSecurityScheme"), "scheme")?,
            bearer_format: text(scheme.bearer_format),
        },
        Scheme::Oauth2SecurityScheme(scheme) => SecurityScheme::OAuth2 {
            description: text(scheme.description),
            flow: need(scheme.flows, &path("oauth2SecurityScheme"), "flows", FLOW, decode_flow)?,
            metadata_url: text(scheme.oauth2_metadata_url),
        },
        Scheme::OpenIdConnectSecurityScheme(scheme) => SecurityScheme::OpenIdConnect {
            description: text(scheme.description),
            url: need_text(
                scheme.open_id_connect_url,
                &path("openIdConnectSecurityScheme"),
                "openIdConnectUrl",
            )?,
        },
        Scheme::MtlsSecurityScheme(scheme) => {
            SecurityScheme::MutualTls { description: text(scheme.description) }
        }
    }))
}

/// Writes a scheme.
pub(super) fn encode(scheme: &SecurityScheme) -> pb::SecurityScheme {
    use pb::security_scheme::Scheme;
    let filled = |text: &Option<String>| text.clone().unwrap_or_default();
    let scheme = match scheme {
        SecurityScheme::ApiKey { description, location, name } => {
            let location = match location {
                ApiKeyLocation::Query => "query",
                ApiKeyLocation::Header => "header",
                ApiKeyLocation::Cookie => "cookie",
            };
            Scheme::ApiKeySecurityScheme(pb::ApiKeySecurityScheme {
                description: filled(description),
                location: location.to_owned(),
                name: name.clone(),
            })
        }
        SecurityScheme::HttpAuth { description, scheme, bearer_format } => {
            Scheme::HttpAuthSecurityScheme(pb::HttpAuthSecurityScheme {
                description: filled(description),
                scheme: scheme.clone(),
                bearer_format: filled(bearer_format),
            })
        }
        SecurityScheme::OAuth2 { description, flow, metadata_url } => {
            Scheme::Oauth2SecurityScheme(pb::OAuth2SecurityScheme {
                description: filled(description),
                flows: Some(pb::OAuthFlows { flow: Some(encode_flow(flow)) }),
                oauth2_metadata_url: filled(metadata_url),
            })
        }
        SecurityScheme::OpenIdConnect { description, url } => {
            Scheme::OpenIdConnectSecurityScheme(pb::OpenIdConnectSecurityScheme {
                description: filled(description),
                open_id_connect_url: url.clone(),
            })
        }
        SecurityScheme::MutualTls { description } => {
            Scheme::MtlsSecurityScheme(pb::MutualTlsSecurityScheme { description: filled(description) })
        }
    };
    pb::SecurityScheme { scheme: Some(scheme) }
}

const FLOW: &str = "one OAuth flow";

fn decode_api_key(scheme: pb::ApiKeySecurityScheme, path: &Path<'_>) -> Read<SecurityScheme> {
    const WHAT: &str = "query, header or cookie";
    Ok(SecurityScheme::ApiKey {
        description: text(scheme.description),
        location: match scheme.location.as_str() {
            "query" => ApiKeyLocation::Query,
            "header" => ApiKeyLocation::Header,
            "cookie" => ApiKeyLocation::Cookie,
            "" => return Err(lacks(path, "location", WHAT)),
            _ => return Err(expected(&Path::Field(path, "location"), WHAT)),
        },
        name: need_text(scheme.name, path, "name")?,
    })
}

fn decode_flow(flows: pb::OAuthFlows, path: &Path<'_>) -> Read<OAuthFlow> {
    use pb::o_auth_flows::Flow;
    let flow = flows.flow.ok_or_else(|| expected(path, FLOW))?;
    let path = |name| Path::Field(path, name);
    Ok(match flow {
        Flow::AuthorizationCode(flow) => {
            let path = path("authorizationCode");
            OAuthFlow::AuthorizationCode {
                authorization_url: need_text(flow.authorization_url, &path, "authorizationUrl")?,
                token_url: need_text(flow.token_url, &path, "tokenUrl")?,
                refresh_url: text(flow.refresh_url),
                scopes: decode_scopes(flow.scopes),
                pkce_required: flow.pkce_required,
            }
        }
        Flow::ClientCredentials(flow) => OAuthFlow::ClientCredentials {
            token_url: need_text(flow.token_url, &path("clientCredentials"), "tokenUrl")?,
            refresh_url: text(flow.refresh_url),
            scopes: decode_scopes(flow.scopes),
        },
        Flow::Implicit(flow) => OAuthFlow::Implicit {
            authorization_url: text(flow.authorization_url),
            refresh_url: text(flow.refresh_url),
            scopes: decode_scopes(flow.scopes),
        },
        Flow::Password(flow) => OAuthFlow::Password {
            token_url: text(flow.token_url),
            refresh_url: text(flow.refresh_url),
            scopes: decode_scopes(flow.scopes),
        },
        Flow::DeviceCode(flow) => {
            let path = path("deviceCode");
            OAuthFlow::DeviceCode {
                device_authorization_url: need_text(
                    flow.device_authorization_url,
                    &path,
                    "deviceAuthorizationUrl",
                )?,
                token_url: need_text(flow.token_url, &path, "tokenUrl")?,
                refresh_url: text(flow.refresh_url),
                scopes: decode_scopes(flow.scopes),
            }
        }
    })
}

fn encode_flow(flow: &OAuthFlow) -> pb::o_auth_flows::Flow {
    use pb::o_auth_flows::Flow;
    let filled = |text: &Option<String>| text.clone().unwrap_or_default();
    let scopes = |scopes: &[(String, String)]| scopes.iter().cloned().collect();
    match flow {
        OAuthFlow::AuthorizationCode {
            authorization_url,
            token_url,
            refresh_url,
            scopes: named,
            pkce_required,
        } => Flow::AuthorizationCode(pb::AuthorizationCodeOAuthFlow {
            authorization_url: authorization_url.clone(),
            token_url: token_url.clone(),
            refresh_url: filled(refresh_url),
            scopes: scopes(named),
            pkce_required: *pkce_required,
        }),
        OAuthFlow::ClientCredentials { token_url, refresh_url, scopes: named } => {
            Flow::ClientCredentials(pb::ClientCredentialsOAuthFlow {
                token_url: token_url.clone(),
                refresh_url: filled(refresh_url),
                scopes: scopes(named),
            })
        }
        OAuthFlow::Implicit { authorization_url, refresh_url, scopes: named } => {
            Flow::Implicit(pb::ImplicitOAuthFlow {
                authorization_url: filled(authorization_url),
                refresh_url: filled(refresh_url),
                scopes: scopes(named),
            })
        }
        OAuthFlow::Password { token_url, refresh_url, scopes: named } => {
            Flow::Password(pb::PasswordOAuthFlow {
                token_url: filled(token_url),
                refresh_url: filled(refresh_url),
                scopes: scopes(named),
            })
        }
        OAuthFlow::DeviceCode { device_authorization_url, token_url, refresh_url, scopes: named } => {
            Flow::DeviceCode(pb::DeviceCodeOAuthFlow {
                device_authorization_url: device_authorization_url.clone(),
                token_url: token_url.clone(),
                refresh_url: filled(refresh_url),
                scopes: scopes(named),
            })
        }
    }
}

fn decode_scopes(scopes: BTreeMap<String, String>) -> Vec<(String, String)> {
    scopes.into_iter().collect()
}
