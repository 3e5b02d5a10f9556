//! Security schemes, their OAuth flows and what a card requires of them, in every form of the cards from 0.2 to 1.0.

use super::{decode_map, decode_text};
use crate::{
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{ApiKeyLocation, OAuthFlow, SecurityRequirement, SecurityScheme},
};

/// The form of security schemes and requirements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// With a `type` member, as in OpenAPI: the JSON schema of 0.2 and 0.3.
    OpenApi,
    /// As OpenAPI, in a document that also has the 1.0 form. Clients require a type for every scheme there,
    /// so a scheme that cannot be expressed is written with its type and no flow.
    Merged,
    /// With one member per type: the protobuf file of 0.3.
    OneOf,
    /// The same with the members of 1.0.
    V1,
}

/// The members of the form with one member per type.
pub(in crate::dialect) const API_KEY: &str = "apiKeySecurityScheme";
pub(in crate::dialect) const HTTP_AUTH: &str = "httpAuthSecurityScheme";
pub(in crate::dialect) const OAUTH2: &str = "oauth2SecurityScheme";
pub(in crate::dialect) const OPEN_ID_CONNECT: &str = "openIdConnectSecurityScheme";
pub(in crate::dialect) const MUTUAL_TLS: &str = "mtlsSecurityScheme";

/// Writes `securitySchemes`, omitted if empty.
pub(in crate::dialect) fn encode_schemes(
    writer: &mut Writer,
    schemes: &[(String, SecurityScheme)],
    form: Form,
) {
    let is_written = |scheme| matches!(form, Form::Merged | Form::V1) || is_expressible(scheme);
    let written: Vec<_> = schemes.iter().filter(|(_, scheme)| is_written(scheme)).collect();
    if !written.is_empty() {
        writer.key("securitySchemes").object(|writer| {
            for (name, scheme) in written {
                encode_scheme(writer.key(name), scheme, form);
            }
        });
    }
}

/// The device code flow exists since 1.0 only.
pub(crate) fn is_expressible(scheme: &SecurityScheme) -> bool {
    !matches!(scheme, SecurityScheme::OAuth2 { flow: OAuthFlow::DeviceCode { .. }, .. })
}

/// Writes what a card or a skill requires, omitted if empty.
pub(crate) fn encode_requirements(writer: &mut Writer, requirements: &[SecurityRequirement], form: Form) {
    if requirements.is_empty() {
        return;
    }
    let member = if form == Form::V1 { "securityRequirements" } else { "security" };
    writer.key(member).array(requirements, |writer, SecurityRequirement { schemes }| {
        writer.object(|writer| match form {
            Form::OpenApi | Form::Merged => {
                for (name, scopes) in schemes {
                    writer.texts(name, scopes);
                }
            }
            Form::V1 if schemes.is_empty() => {}
            Form::OneOf | Form::V1 => writer.key("schemes").object(|writer| {
                for (name, scopes) in schemes {
                    writer.key(name).object(|writer| match form {
                        Form::V1 => writer.texts_unless_empty("list", scopes),
                        Form::OpenApi | Form::Merged | Form::OneOf => writer.texts("list", scopes),
                    });
                }
            }),
        });
    });
}

/// The member `schemes` of a requirement, in the form with one member per type.
pub(in crate::dialect) fn decode_required_schemes(
    requirement: &Object<'_, '_>,
) -> Read<Vec<(String, Vec<String>)>> {
    decode_map(requirement, "schemes", |node| {
        if node.is_null() { Ok(Vec::new()) } else { node.object()?.texts("list") }
    })
}

/// Reads a scheme whose location is in the member `place`.
pub(in crate::dialect) fn decode_api_key(object: &Object<'_, '_>, place: &str) -> Read<SecurityScheme> {
    let what = "query, header or cookie";
    Ok(SecurityScheme::ApiKey {
        description: object.text("description")?,
        location: object.need(place, what, |node| match node.string()?.as_ref() {
            "query" => Ok(ApiKeyLocation::Query),
            "header" => Ok(ApiKeyLocation::Header),
            "cookie" => Ok(ApiKeyLocation::Cookie),
            _ => Err(node.expected(what)),
        })?,
        name: object.need_text("name")?,
    })
}

pub(in crate::dialect) fn decode_http_auth(object: &Object<'_, '_>) -> Read<SecurityScheme> {
    Ok(SecurityScheme::HttpAuth {
        description: object.text("description")?,
        scheme: object.need_text("scheme")?,
        bearer_format: object.text("bearerFormat")?,
    })
}

pub(in crate::dialect) fn decode_open_id_connect(object: &Object<'_, '_>) -> Read<SecurityScheme> {
    Ok(SecurityScheme::OpenIdConnect {
        description: object.text("description")?,
        url: object.need_text("openIdConnectUrl")?,
    })
}

pub(in crate::dialect) fn decode_mutual_tls(object: &Object<'_, '_>) -> Read<SecurityScheme> {
    Ok(SecurityScheme::MutualTls { description: object.text("description")? })
}

fn encode_scheme(writer: &mut Writer, scheme: &SecurityScheme, form: Form) {
    let (kind, member) = match scheme {
        SecurityScheme::ApiKey { .. } => ("apiKey", API_KEY),
        SecurityScheme::HttpAuth { .. } => ("http", HTTP_AUTH),
        SecurityScheme::OAuth2 { .. } => ("oauth2", OAUTH2),
        SecurityScheme::OpenIdConnect { .. } => ("openIdConnect", OPEN_ID_CONNECT),
        SecurityScheme::MutualTls { .. } => ("mutualTLS", MUTUAL_TLS),
    };
    writer.object(|writer| match form {
        Form::OpenApi | Form::Merged => {
            writer.text("type", kind);
            encode_members(writer, scheme, "in", form);
        }
        Form::OneOf | Form::V1 => {
            writer.key(member).object(|writer| encode_members(writer, scheme, "location", form));
        }
    });
}

fn encode_members(writer: &mut Writer, scheme: &SecurityScheme, place: &str, form: Form) {
    let (SecurityScheme::ApiKey { description, .. }
    | SecurityScheme::HttpAuth { description, .. }
    | SecurityScheme::OAuth2 { description, .. }
    | SecurityScheme::OpenIdConnect { description, .. }
    | SecurityScheme::MutualTls { description }) = scheme;
    writer.maybe_text("description", description.as_deref());
    match scheme {
        SecurityScheme::ApiKey { location, name, .. } => {
            let location = match location {
                ApiKeyLocation::Query => "query",
                ApiKeyLocation::Header => "header",
                ApiKeyLocation::Cookie => "cookie",
            };
            writer.text(place, location);
            writer.text("name", name);
        }
        SecurityScheme::HttpAuth { scheme, bearer_format, .. } => {
            writer.text("scheme", scheme);
            writer.maybe_text("bearerFormat", bearer_format.as_deref());
        }
        SecurityScheme::OAuth2 { flow, metadata_url, .. } => {
            encode_flow(writer.key("flows"), flow, form);
            writer.maybe_text("oauth2MetadataUrl", metadata_url.as_deref());
        }
        SecurityScheme::OpenIdConnect { url, .. } => writer.text("openIdConnectUrl", url),
        SecurityScheme::MutualTls { .. } => {}
    }
}

/// Reads the members of `flows` that a form has, with their names.
pub(in crate::dialect) fn decode_flows(
    node: Node<'_, '_>,
    form: Form,
) -> Read<Vec<(&'static str, OAuthFlow)>> {
    const NAMES: [&str; 5] = ["authorizationCode", "clientCredentials", "implicit", "password", "deviceCode"];
    let is_known = |name: &&str| form == Form::V1 || *name != "deviceCode";
    let object = node.object()?;
    let mut flows = Vec::new();
    for name in NAMES.into_iter().filter(is_known) {
        flows.extend(object.maybe(name, |node| Ok((name, decode_flow(name, &node.object()?, form)?)))?);
    }
    Ok(flows)
}

fn decode_flow(name: &str, flow: &Object<'_, '_>, form: Form) -> Read<OAuthFlow> {
    Ok(match name {
        "authorizationCode" => OAuthFlow::AuthorizationCode {
            authorization_url: flow.need_text("authorizationUrl")?,
            token_url: flow.need_text("tokenUrl")?,
            refresh_url: flow.text("refreshUrl")?,
            scopes: decode_scopes(flow)?,
            pkce_required: form == Form::V1 && flow.flag("pkceRequired")?.unwrap_or_default(),
        },
        "clientCredentials" => OAuthFlow::ClientCredentials {
            token_url: flow.need_text("tokenUrl")?,
            refresh_url: flow.text("refreshUrl")?,
            scopes: decode_scopes(flow)?,
        },
        "implicit" => OAuthFlow::Implicit {
            authorization_url: flow.text("authorizationUrl")?,
            refresh_url: flow.text("refreshUrl")?,
            scopes: decode_scopes(flow)?,
        },
        "password" => OAuthFlow::Password {
            token_url: flow.text("tokenUrl")?,
            refresh_url: flow.text("refreshUrl")?,
            scopes: decode_scopes(flow)?,
        },
        _ => OAuthFlow::DeviceCode {
            device_authorization_url: flow.need_text("deviceAuthorizationUrl")?,
            token_url: flow.need_text("tokenUrl")?,
            refresh_url: flow.text("refreshUrl")?,
            scopes: decode_scopes(flow)?,
        },
    })
}

fn decode_scopes(object: &Object<'_, '_>) -> Read<Vec<(String, String)>> {
    decode_map(object, "scopes", |node| if node.is_null() { Ok(String::new()) } else { decode_text(node) })
}

fn encode_flow(writer: &mut Writer, flow: &OAuthFlow, form: Form) {
    // Member name, the endpoints for authorization, tokens and refreshing, scopes.
    let (name, authorization_url, token_url, refresh_url, scopes) = match flow {
        OAuthFlow::AuthorizationCode { authorization_url, token_url, refresh_url, scopes, .. } => {
            ("authorizationCode", Some(authorization_url), Some(token_url), refresh_url, scopes)
        }
        OAuthFlow::ClientCredentials { token_url, refresh_url, scopes } => {
            ("clientCredentials", None, Some(token_url), refresh_url, scopes)
        }
        OAuthFlow::Implicit { authorization_url, refresh_url, scopes } => {
            ("implicit", authorization_url.as_ref(), None, refresh_url, scopes)
        }
        OAuthFlow::Password { token_url, refresh_url, scopes } => {
            ("password", None, token_url.as_ref(), refresh_url, scopes)
        }
        OAuthFlow::DeviceCode { .. } if form != Form::V1 => return writer.object(|_| {}),
        OAuthFlow::DeviceCode { token_url, refresh_url, scopes, .. } => {
            ("deviceCode", None, Some(token_url), refresh_url, scopes)
        }
    };
    // In 1.0, only the two deprecated flows have optional scopes.
    let is_deprecated = matches!(flow, OAuthFlow::Implicit { .. } | OAuthFlow::Password { .. });
    writer.object(|writer| {
        writer.key(name).object(|writer| {
            writer.maybe_text("authorizationUrl", authorization_url.map(String::as_str));
            if let OAuthFlow::DeviceCode { device_authorization_url, .. } = flow {
                writer.text("deviceAuthorizationUrl", device_authorization_url);
            }
            writer.maybe_text("tokenUrl", token_url.map(String::as_str));
            writer.maybe_text("refreshUrl", refresh_url.as_deref());
            if !(form == Form::V1 && is_deprecated && scopes.is_empty()) {
                writer.key("scopes").object(|writer| {
                    for (scope, sentence) in scopes {
                        writer.text(scope, sentence);
                    }
                });
            }
            if let (Form::V1, OAuthFlow::AuthorizationCode { pkce_required, .. }) = (form, flow) {
                writer.flag_if_set("pkceRequired", *pkce_required);
            }
        });
    });
}
