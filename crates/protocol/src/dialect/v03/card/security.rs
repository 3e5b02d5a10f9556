//! Security schemes and requirements, in the two forms used before 1.0.
//!
//! A scheme may have several OAuth flows here but only one in the model. It is split into several schemes,
//! `key`, `key-clientCredentials` and so on, and a requirement for `key` becomes one alternative per scheme.
//! A scheme that cannot be understood is omitted on decoding, one that these forms cannot express is omitted
//! on encoding. A requirement that names it is kept, so that a client knows it cannot call without it.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use crate::{
    json::{
        Raw,
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{ApiKeyLocation, OAuthFlow, SecurityRequirement, SecurityScheme},
};

/// Maximum number of alternatives one requirement may expand to.
const MAX_ALTERNATIVES: usize = 64;

/// The form of security schemes and requirements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// With a `type` member, as in OpenAPI: the JSON schema.
    OpenApi,
    /// As OpenAPI, in a document that also has the 1.0 form. Clients require a type for every scheme there,
    /// so a scheme that cannot be expressed is written with its type and no flow.
    Merged,
    /// With one member per type: the protobuf file.
    OneOf,
}

/// The schemes of a card, and which of them were split from one.
pub(crate) struct Schemes {
    pub(crate) list: Vec<(String, SecurityScheme)>,
    split: HashMap<String, Vec<String>>,
}

/// Reads `securitySchemes` in either form.
pub(crate) fn decode_schemes(object: &Object<'_, '_>) -> Read<Schemes> {
    let read = decode_map(object, "securitySchemes", decode_scheme)?;
    let mut names: HashSet<String> = read.iter().map(|(name, _)| name.clone()).collect();
    let mut schemes = Schemes { list: Vec::with_capacity(read.len()), split: HashMap::new() };
    for (name, flows) in read {
        for (at, (flow, scheme)) in flows.into_iter().enumerate() {
            if at == 0 {
                schemes.list.push((name.clone(), scheme));
                continue;
            }
            let mut other = format!("{name}-{flow}");
            while !names.insert(other.clone()) {
                other.push('-');
            }
            schemes.split.entry(name.clone()).or_default().push(other.clone());
            schemes.list.push((other, scheme));
        }
    }
    Ok(schemes)
}

impl Schemes {
    /// Reads the requirements under `security` in either form.
    pub(crate) fn requirements(&self, object: &Object<'_, '_>) -> Read<Vec<SecurityRequirement>> {
        let written = object.list("security", decode_requirement)?;
        Ok(written.into_iter().flat_map(|requirement| self.alternatives(requirement)).collect())
    }

    /// Expands a requirement into one per combination of split schemes.
    fn alternatives(&self, requirement: SecurityRequirement) -> Vec<SecurityRequirement> {
        let named: Vec<String> = requirement.schemes.iter().map(|(name, _)| name.clone()).collect();
        let mut alternatives = vec![requirement];
        for (place, name) in named.iter().enumerate() {
            let others = self.split.get(name).into_iter().flatten();
            // A requirement may itself name one of the generated schemes.
            let others: Vec<&String> = others.filter(|other| !named.contains(other)).collect();
            if alternatives.len() * (1 + others.len()) > MAX_ALTERNATIVES {
                break;
            }
            let renamed = |requirement: &SecurityRequirement, name: &String| {
                let mut requirement = requirement.clone();
                requirement.schemes[place].0.clone_from(name);
                requirement
            };
            let more: Vec<_> = others
                .iter()
                .flat_map(|name| alternatives.iter().map(move |requirement| renamed(requirement, name)))
                .collect();
            alternatives.extend(more);
        }
        alternatives
    }
}

/// Writes `securitySchemes` and `security`, each omitted if empty.
pub(crate) fn encode(
    writer: &mut Writer,
    schemes: &[(String, SecurityScheme)],
    requirements: &[SecurityRequirement],
    form: Form,
) {
    encode_schemes(writer, schemes, form);
    encode_requirements(writer, requirements, form);
}

/// Writes `securitySchemes`, omitted if empty.
pub(super) fn encode_schemes(writer: &mut Writer, schemes: &[(String, SecurityScheme)], form: Form) {
    let expressible: Vec<_> =
        schemes.iter().filter(|(_, scheme)| form == Form::Merged || is_expressible(scheme)).collect();
    if !expressible.is_empty() {
        writer.key("securitySchemes").object(|writer| {
            for (name, scheme) in expressible {
                encode_scheme(writer.key(name), scheme, form);
            }
        });
    }
}

/// Writes `security`, omitted if empty.
pub(crate) fn encode_requirements(writer: &mut Writer, requirements: &[SecurityRequirement], form: Form) {
    if requirements.is_empty() {
        return;
    }
    writer.key("security").array(requirements, |writer, requirement| match form {
        Form::OpenApi | Form::Merged => writer.object(|writer| {
            for (name, scopes) in &requirement.schemes {
                writer.texts(name, scopes);
            }
        }),
        Form::OneOf => writer.object(|writer| {
            writer.key("schemes").object(|writer| {
                for (name, scopes) in &requirement.schemes {
                    writer.key(name).object(|writer| writer.texts("list", scopes));
                }
            });
        }),
    });
}

/// The device code flow exists since 1.0 only.
pub(crate) fn is_expressible(scheme: &SecurityScheme) -> bool {
    !matches!(scheme, SecurityScheme::OAuth2 { flow: OAuthFlow::DeviceCode { .. }, .. })
}

/// `{"key":["scope"]}` or `{"schemes":{"key":{"list":["scope"]}}}`. A scheme may itself be named `schemes`.
fn decode_requirement(node: Node<'_, '_>) -> Read<SecurityRequirement> {
    let object = node.object()?;
    let is_map = |raw: Raw<'_>| raw.get().starts_with('{');
    let schemes = if object.present("schemes").is_some_and(is_map) {
        decode_map(&object, "schemes", |node| {
            if node.is_null() { Ok(Vec::new()) } else { node.object()?.texts("list") }
        })?
    } else {
        last_values(&object, |node| if node.is_null() { Ok(Vec::new()) } else { node.list(decode_text) })?
    };
    Ok(SecurityRequirement { schemes })
}

/// Reads a scheme in either form: one scheme per flow, or none if it cannot be understood.
fn decode_scheme(node: Node<'_, '_>) -> Read<Vec<(&'static str, SecurityScheme)>> {
    if node.is_null() {
        return Ok(Vec::new());
    }
    let object = node.object()?;
    let one = |scheme| vec![("", scheme)];
    // A merged card has both forms with the same content.
    match object.text("type")?.as_deref() {
        Some("apiKey") => return decode_api_key(&object, "in").map(one),
        Some("http") => return decode_http_auth(&object).map(one),
        Some("oauth2") => return decode_oauth2(&object),
        Some("openIdConnect") => return decode_open_id_connect(&object).map(one),
        Some("mutualTLS") => return decode_mutual_tls(&object).map(one),
        _ => {}
    }
    let members = [
        object.maybe("apiKeySecurityScheme", |node| decode_api_key(&node.object()?, "location").map(one))?,
        object.maybe("httpAuthSecurityScheme", |node| decode_http_auth(&node.object()?).map(one))?,
        object.maybe("oauth2SecurityScheme", |node| decode_oauth2(&node.object()?))?,
        object
            .maybe("openIdConnectSecurityScheme", |node| decode_open_id_connect(&node.object()?).map(one))?,
        object.maybe("mtlsSecurityScheme", |node| decode_mutual_tls(&node.object()?).map(one))?,
    ];
    Ok(members.into_iter().flatten().next().unwrap_or_default())
}

fn decode_api_key(object: &Object<'_, '_>, place: &str) -> Read<SecurityScheme> {
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

fn decode_http_auth(object: &Object<'_, '_>) -> Read<SecurityScheme> {
    Ok(SecurityScheme::HttpAuth {
        description: object.text("description")?,
        scheme: object.need_text("scheme")?,
        bearer_format: object.text("bearerFormat")?,
    })
}

fn decode_oauth2(object: &Object<'_, '_>) -> Read<Vec<(&'static str, SecurityScheme)>> {
    let description = object.text("description")?;
    let metadata_url = object.text("oauth2MetadataUrl")?;
    let flows = object.maybe("flows", decode_flows)?.unwrap_or_default();
    let scheme = |(name, flow)| {
        let (description, metadata_url) = (description.clone(), metadata_url.clone());
        (name, SecurityScheme::OAuth2 { description, flow, metadata_url })
    };
    Ok(flows.into_iter().map(scheme).collect())
}

fn decode_open_id_connect(object: &Object<'_, '_>) -> Read<SecurityScheme> {
    Ok(SecurityScheme::OpenIdConnect {
        description: object.text("description")?,
        url: object.need_text("openIdConnectUrl")?,
    })
}

fn decode_mutual_tls(object: &Object<'_, '_>) -> Read<SecurityScheme> {
    Ok(SecurityScheme::MutualTls { description: object.text("description")? })
}

fn encode_scheme(writer: &mut Writer, scheme: &SecurityScheme, form: Form) {
    let (kind, member) = match scheme {
        SecurityScheme::ApiKey { .. } => ("apiKey", "apiKeySecurityScheme"),
        SecurityScheme::HttpAuth { .. } => ("http", "httpAuthSecurityScheme"),
        SecurityScheme::OAuth2 { .. } => ("oauth2", "oauth2SecurityScheme"),
        SecurityScheme::OpenIdConnect { .. } => ("openIdConnect", "openIdConnectSecurityScheme"),
        SecurityScheme::MutualTls { .. } => ("mutualTLS", "mtlsSecurityScheme"),
    };
    writer.object(|writer| match form {
        Form::OpenApi | Form::Merged => {
            writer.text("type", kind);
            encode_members(writer, scheme, "in");
        }
        Form::OneOf => writer.key(member).object(|writer| encode_members(writer, scheme, "location")),
    });
}

fn encode_members(writer: &mut Writer, scheme: &SecurityScheme, place: &str) {
    match scheme {
        SecurityScheme::ApiKey { description, location, name } => {
            writer.maybe_text("description", description.as_deref());
            let location = match location {
                ApiKeyLocation::Query => "query",
                ApiKeyLocation::Header => "header",
                ApiKeyLocation::Cookie => "cookie",
            };
            writer.text(place, location);
            writer.text("name", name);
        }
        SecurityScheme::HttpAuth { description, scheme, bearer_format } => {
            writer.maybe_text("description", description.as_deref());
            writer.text("scheme", scheme);
            writer.maybe_text("bearerFormat", bearer_format.as_deref());
        }
        SecurityScheme::OAuth2 { description, flow, metadata_url } => {
            writer.maybe_text("description", description.as_deref());
            encode_flow(writer.key("flows"), flow);
            writer.maybe_text("oauth2MetadataUrl", metadata_url.as_deref());
        }
        SecurityScheme::OpenIdConnect { description, url } => {
            writer.maybe_text("description", description.as_deref());
            writer.text("openIdConnectUrl", url);
        }
        SecurityScheme::MutualTls { description } => {
            writer.maybe_text("description", description.as_deref());
        }
    }
}

fn decode_flows(node: Node<'_, '_>) -> Read<Vec<(&'static str, OAuthFlow)>> {
    let object = node.object()?;
    let flows = [
        object.maybe("authorizationCode", |node| {
            let object = node.object()?;
            let flow = OAuthFlow::AuthorizationCode {
                authorization_url: object.need_text("authorizationUrl")?,
                token_url: object.need_text("tokenUrl")?,
                refresh_url: object.text("refreshUrl")?,
                scopes: decode_scopes(&object)?,
                pkce_required: false,
            };
            Ok(("authorizationCode", flow))
        })?,
        object.maybe("clientCredentials", |node| {
            let object = node.object()?;
            let flow = OAuthFlow::ClientCredentials {
                token_url: object.need_text("tokenUrl")?,
                refresh_url: object.text("refreshUrl")?,
                scopes: decode_scopes(&object)?,
            };
            Ok(("clientCredentials", flow))
        })?,
        object.maybe("implicit", |node| {
            let object = node.object()?;
            let flow = OAuthFlow::Implicit {
                authorization_url: object.text("authorizationUrl")?,
                refresh_url: object.text("refreshUrl")?,
                scopes: decode_scopes(&object)?,
            };
            Ok(("implicit", flow))
        })?,
        object.maybe("password", |node| {
            let object = node.object()?;
            let flow = OAuthFlow::Password {
                token_url: object.text("tokenUrl")?,
                refresh_url: object.text("refreshUrl")?,
                scopes: decode_scopes(&object)?,
            };
            Ok(("password", flow))
        })?,
    ];
    Ok(flows.into_iter().flatten().collect())
}

fn encode_flow(writer: &mut Writer, flow: &OAuthFlow) {
    // Member name, authorization endpoint, token endpoint, refresh endpoint, scopes.
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
        OAuthFlow::DeviceCode { .. } => return writer.object(|_| {}),
    };
    writer.object(|writer| {
        writer.key(name).object(|writer| {
            writer.maybe_text("authorizationUrl", authorization_url.map(String::as_str));
            writer.maybe_text("tokenUrl", token_url.map(String::as_str));
            writer.maybe_text("refreshUrl", refresh_url.as_deref());
            writer.key("scopes").object(|writer| {
                for (scope, sentence) in scopes {
                    writer.text(scope, sentence);
                }
            });
        });
    });
}

fn decode_scopes(object: &Object<'_, '_>) -> Read<Vec<(String, String)>> {
    decode_map(object, "scopes", |node| if node.is_null() { Ok(String::new()) } else { decode_text(node) })
}

fn decode_text(node: Node<'_, '_>) -> Read<String> {
    node.string().map(Cow::into_owned)
}

/// Reads an optional map with arbitrary keys.
fn decode_map<T>(
    object: &Object<'_, '_>,
    name: &str,
    each: impl FnMut(Node<'_, '_>) -> Read<T>,
) -> Read<Vec<(String, T)>> {
    let map = object.maybe(name, |node| last_values(&node.object()?, each))?;
    Ok(map.unwrap_or_default())
}

/// Removes duplicate keys: the last value wins, the others are not validated.
fn last_values<T>(
    map: &Object<'_, '_>,
    mut each: impl FnMut(Node<'_, '_>) -> Read<T>,
) -> Read<Vec<(String, T)>> {
    let names = map.entries(|name, _| Ok(name.to_owned()))?;
    let last: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let mut places = 0..;
    let entries = map.entries(|name, node| {
        let overwritten = places.next() != last.get(name).copied();
        if overwritten { Ok(None) } else { each(node).map(|value| Some((name.to_owned(), value))) }
    })?;
    Ok(entries.into_iter().flatten().collect())
}
