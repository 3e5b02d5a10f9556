//! The agent card.
//!
//! Cards that omit required but empty fields are common, so decoding requires only what a caller needs:
//! names, URLs and token endpoints. Encoding emits every required field, even an empty one, and the others
//! only if set, in the order of the protobuf file.

use std::{borrow::Cow, collections::HashMap};

use crate::{
    AgentCard,
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{
        AgentCapabilities, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
        ApiKeyLocation, OAuthFlow, SecurityRequirement, SecurityScheme,
    },
};

/// Reads a card.
pub fn decode(node: Node<'_, '_>) -> Read<AgentCard> {
    let object = node.object()?;
    Ok(AgentCard {
        name: object.need_text("name")?,
        description: object.text_or_empty("description")?,
        interfaces: object.need("supportedInterfaces", "at least one interface", decode_interfaces)?,
        provider: object.maybe("provider", decode_provider)?,
        version: object.text_or_empty("version")?,
        documentation_url: object.maybe("documentationUrl", decode_text)?,
        capabilities: object.maybe("capabilities", decode_capabilities)?.unwrap_or_default(),
        security_schemes: decode_map(&object, "securitySchemes", decode_scheme)?,
        security_requirements: object.list("securityRequirements", decode_requirement)?,
        default_input_modes: object.texts("defaultInputModes")?,
        default_output_modes: object.texts("defaultOutputModes")?,
        skills: object.list("skills", decode_skill)?,
        signatures: object.list("signatures", decode_signature)?,
        icon_url: object.maybe("iconUrl", decode_text)?,
    })
}

/// Writes a card.
pub fn encode(writer: &mut Writer, card: &AgentCard) {
    writer.object(|writer| {
        writer.text("name", &card.name);
        writer.text("description", &card.description);
        writer.key("supportedInterfaces").array(&card.interfaces, encode_interface);
        if let Some(provider) = &card.provider {
            writer.key("provider").object(|writer| {
                writer.text("url", &provider.url);
                writer.text("organization", &provider.organization);
            });
        }
        writer.text("version", &card.version);
        writer.maybe_text("documentationUrl", card.documentation_url.as_deref());
        encode_capabilities(writer.key("capabilities"), &card.capabilities);
        if !card.security_schemes.is_empty() {
            encode_map(writer.key("securitySchemes"), &card.security_schemes, encode_scheme);
        }
        encode_requirements(writer, &card.security_requirements);
        writer.texts("defaultInputModes", &card.default_input_modes);
        writer.texts("defaultOutputModes", &card.default_output_modes);
        writer.key("skills").array(&card.skills, encode_skill);
        if !card.signatures.is_empty() {
            writer.key("signatures").array(&card.signatures, encode_signature);
        }
        writer.maybe_text("iconUrl", card.icon_url.as_deref());
    });
}

fn decode_interfaces(node: Node<'_, '_>) -> Read<Vec<AgentInterface>> {
    let interfaces = node.list(|node| {
        let object = node.object()?;
        Ok(AgentInterface {
            url: object.need_text("url")?,
            binding: object.need_text("protocolBinding")?,
            tenant: object.text("tenant")?,
            version: object.need_text("protocolVersion")?,
        })
    })?;
    if interfaces.is_empty() { Err(node.expected("at least one interface")) } else { Ok(interfaces) }
}

fn encode_interface(writer: &mut Writer, interface: &AgentInterface) {
    writer.object(|writer| {
        writer.text("url", &interface.url);
        writer.text("protocolBinding", &interface.binding);
        writer.maybe_text("tenant", interface.tenant.as_deref());
        writer.text("protocolVersion", &interface.version);
    });
}

fn decode_provider(node: Node<'_, '_>) -> Read<AgentProvider> {
    let object = node.object()?;
    Ok(AgentProvider {
        url: object.text_or_empty("url")?,
        organization: object.text_or_empty("organization")?,
    })
}

fn decode_capabilities(node: Node<'_, '_>) -> Read<AgentCapabilities> {
    let object = node.object()?;
    Ok(AgentCapabilities {
        streaming: object.flag("streaming")?,
        push_notifications: object.flag("pushNotifications")?,
        extensions: object.list("extensions", decode_extension)?,
        extended_card: object.flag("extendedAgentCard")?,
    })
}

fn encode_capabilities(writer: &mut Writer, capabilities: &AgentCapabilities) {
    writer.object(|writer| {
        writer.maybe_flag("streaming", capabilities.streaming);
        writer.maybe_flag("pushNotifications", capabilities.push_notifications);
        if !capabilities.extensions.is_empty() {
            writer.key("extensions").array(&capabilities.extensions, encode_extension);
        }
        writer.maybe_flag("extendedAgentCard", capabilities.extended_card);
    });
}

fn decode_extension(node: Node<'_, '_>) -> Read<AgentExtension> {
    let object = node.object()?;
    Ok(AgentExtension {
        uri: object.need_text("uri")?,
        description: object.text("description")?,
        required: object.flag("required")?.unwrap_or_default(),
        params: object.json_object("params")?,
    })
}

fn encode_extension(writer: &mut Writer, extension: &AgentExtension) {
    writer.object(|writer| {
        writer.text("uri", &extension.uri);
        writer.maybe_text("description", extension.description.as_deref());
        writer.flag_if_set("required", extension.required);
        writer.maybe_json("params", extension.params.as_ref());
    });
}

fn decode_skill(node: Node<'_, '_>) -> Read<AgentSkill> {
    let object = node.object()?;
    Ok(AgentSkill {
        id: object.need_text("id")?,
        name: object.text_or_empty("name")?,
        description: object.text_or_empty("description")?,
        tags: object.texts("tags")?,
        examples: object.texts("examples")?,
        input_modes: object.texts("inputModes")?,
        output_modes: object.texts("outputModes")?,
        security_requirements: object.list("securityRequirements", decode_requirement)?,
    })
}

fn encode_skill(writer: &mut Writer, skill: &AgentSkill) {
    writer.object(|writer| {
        writer.text("id", &skill.id);
        writer.text("name", &skill.name);
        writer.text("description", &skill.description);
        writer.texts("tags", &skill.tags);
        writer.texts_unless_empty("examples", &skill.examples);
        writer.texts_unless_empty("inputModes", &skill.input_modes);
        writer.texts_unless_empty("outputModes", &skill.output_modes);
        encode_requirements(writer, &skill.security_requirements);
    });
}

fn decode_signature(node: Node<'_, '_>) -> Read<AgentCardSignature> {
    let object = node.object()?;
    Ok(AgentCardSignature {
        protected: object.need_text("protected")?,
        signature: object.need_text("signature")?,
        header: object.json_object("header")?,
    })
}

fn encode_signature(writer: &mut Writer, signature: &AgentCardSignature) {
    writer.object(|writer| {
        writer.text("protected", &signature.protected);
        writer.text("signature", &signature.signature);
        writer.maybe_json("header", signature.header.as_ref());
    });
}

fn decode_requirement(node: Node<'_, '_>) -> Read<SecurityRequirement> {
    let schemes = decode_map(&node.object()?, "schemes", |node| {
        if node.is_null() { Ok(Vec::new()) } else { node.object()?.texts("list") }
    })?;
    Ok(SecurityRequirement { schemes })
}

fn encode_requirements(writer: &mut Writer, requirements: &[SecurityRequirement]) {
    if requirements.is_empty() {
        return;
    }
    writer.key("securityRequirements").array(requirements, |writer, requirement| {
        writer.object(|writer| {
            if !requirement.schemes.is_empty() {
                encode_map(writer.key("schemes"), &requirement.schemes, |writer, scopes| {
                    writer.object(|writer| writer.texts_unless_empty("list", scopes));
                });
            }
        });
    });
}

fn decode_scheme(node: Node<'_, '_>) -> Read<SecurityScheme> {
    let object = node.object()?;
    let schemes = [
        object.maybe("apiKeySecurityScheme", decode_api_key)?,
        object.maybe("httpAuthSecurityScheme", decode_http_auth)?,
        object.maybe("oauth2SecurityScheme", decode_oauth2)?,
        object.maybe("openIdConnectSecurityScheme", decode_open_id_connect)?,
        object.maybe("mtlsSecurityScheme", decode_mutual_tls)?,
    ];
    only_one(schemes).ok_or_else(|| {
        node.expected(
            "exactly one of apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, \
             openIdConnectSecurityScheme, mtlsSecurityScheme",
        )
    })
}

fn decode_api_key(node: Node<'_, '_>) -> Read<SecurityScheme> {
    let object = node.object()?;
    let what = "query, header or cookie";
    Ok(SecurityScheme::ApiKey {
        description: object.text("description")?,
        location: object.need("location", what, |node| match node.string()?.as_ref() {
            "query" => Ok(ApiKeyLocation::Query),
            "header" => Ok(ApiKeyLocation::Header),
            "cookie" => Ok(ApiKeyLocation::Cookie),
            _ => Err(node.expected(what)),
        })?,
        name: object.need_text("name")?,
    })
}

fn decode_http_auth(node: Node<'_, '_>) -> Read<SecurityScheme> {
    let object = node.object()?;
    Ok(SecurityScheme::HttpAuth {
        description: object.text("description")?,
        scheme: object.need_text("scheme")?,
        bearer_format: object.text("bearerFormat")?,
    })
}

fn decode_oauth2(node: Node<'_, '_>) -> Read<SecurityScheme> {
    let object = node.object()?;
    Ok(SecurityScheme::OAuth2 {
        description: object.text("description")?,
        flow: object.need("flows", "one OAuth flow", decode_flow)?,
        metadata_url: object.text("oauth2MetadataUrl")?,
    })
}

fn decode_open_id_connect(node: Node<'_, '_>) -> Read<SecurityScheme> {
    let object = node.object()?;
    Ok(SecurityScheme::OpenIdConnect {
        description: object.text("description")?,
        url: object.need_text("openIdConnectUrl")?,
    })
}

fn decode_mutual_tls(node: Node<'_, '_>) -> Read<SecurityScheme> {
    Ok(SecurityScheme::MutualTls { description: node.object()?.text("description")? })
}

fn encode_scheme(writer: &mut Writer, scheme: &SecurityScheme) {
    writer.object(|writer| match scheme {
        SecurityScheme::ApiKey { description, location, name } => {
            writer.key("apiKeySecurityScheme").object(|writer| {
                writer.maybe_text("description", description.as_deref());
                let location = match location {
                    ApiKeyLocation::Query => "query",
                    ApiKeyLocation::Header => "header",
                    ApiKeyLocation::Cookie => "cookie",
                };
                writer.text("location", location);
                writer.text("name", name);
            });
        }
        SecurityScheme::HttpAuth { description, scheme, bearer_format } => {
            writer.key("httpAuthSecurityScheme").object(|writer| {
                writer.maybe_text("description", description.as_deref());
                writer.text("scheme", scheme);
                writer.maybe_text("bearerFormat", bearer_format.as_deref());
            });
        }
        SecurityScheme::OAuth2 { description, flow, metadata_url } => {
            writer.key("oauth2SecurityScheme").object(|writer| {
                writer.maybe_text("description", description.as_deref());
                encode_flow(writer.key("flows"), flow);
                writer.maybe_text("oauth2MetadataUrl", metadata_url.as_deref());
            });
        }
        SecurityScheme::OpenIdConnect { description, url } => {
            writer.key("openIdConnectSecurityScheme").object(|writer| {
                writer.maybe_text("description", description.as_deref());
                writer.text("openIdConnectUrl", url);
            });
        }
        SecurityScheme::MutualTls { description } => {
            writer.key("mtlsSecurityScheme").object(|writer| {
                writer.maybe_text("description", description.as_deref());
            });
        }
    });
}

fn decode_flow(node: Node<'_, '_>) -> Read<OAuthFlow> {
    let object = node.object()?;
    let flows = [
        object.maybe("authorizationCode", |node| {
            let object = node.object()?;
            Ok(OAuthFlow::AuthorizationCode {
                authorization_url: object.need_text("authorizationUrl")?,
                token_url: object.need_text("tokenUrl")?,
                refresh_url: object.text("refreshUrl")?,
                scopes: decode_scopes(&object)?,
                pkce_required: object.flag("pkceRequired")?.unwrap_or_default(),
            })
        })?,
        object.maybe("clientCredentials", |node| {
            let object = node.object()?;
            Ok(OAuthFlow::ClientCredentials {
                token_url: object.need_text("tokenUrl")?,
                refresh_url: object.text("refreshUrl")?,
                scopes: decode_scopes(&object)?,
            })
        })?,
        object.maybe("implicit", |node| {
            let object = node.object()?;
            Ok(OAuthFlow::Implicit {
                authorization_url: object.text("authorizationUrl")?,
                refresh_url: object.text("refreshUrl")?,
                scopes: decode_scopes(&object)?,
            })
        })?,
        object.maybe("password", |node| {
            let object = node.object()?;
            Ok(OAuthFlow::Password {
                token_url: object.text("tokenUrl")?,
                refresh_url: object.text("refreshUrl")?,
                scopes: decode_scopes(&object)?,
            })
        })?,
        object.maybe("deviceCode", |node| {
            let object = node.object()?;
            Ok(OAuthFlow::DeviceCode {
                device_authorization_url: object.need_text("deviceAuthorizationUrl")?,
                token_url: object.need_text("tokenUrl")?,
                refresh_url: object.text("refreshUrl")?,
                scopes: decode_scopes(&object)?,
            })
        })?,
    ];
    only_one(flows).ok_or_else(|| {
        node.expected("exactly one of authorizationCode, clientCredentials, implicit, password, deviceCode")
    })
}

fn encode_flow(writer: &mut Writer, flow: &OAuthFlow) {
    writer.object(|writer| match flow {
        OAuthFlow::AuthorizationCode { authorization_url, token_url, refresh_url, scopes, pkce_required } => {
            writer.key("authorizationCode").object(|writer| {
                writer.text("authorizationUrl", authorization_url);
                writer.text("tokenUrl", token_url);
                writer.maybe_text("refreshUrl", refresh_url.as_deref());
                encode_scopes(writer, scopes);
                writer.flag_if_set("pkceRequired", *pkce_required);
            });
        }
        OAuthFlow::ClientCredentials { token_url, refresh_url, scopes } => {
            writer.key("clientCredentials").object(|writer| {
                writer.text("tokenUrl", token_url);
                writer.maybe_text("refreshUrl", refresh_url.as_deref());
                encode_scopes(writer, scopes);
            });
        }
        OAuthFlow::Implicit { authorization_url, refresh_url, scopes } => {
            writer.key("implicit").object(|writer| {
                writer.maybe_text("authorizationUrl", authorization_url.as_deref());
                writer.maybe_text("refreshUrl", refresh_url.as_deref());
                encode_scopes_unless_empty(writer, scopes);
            });
        }
        OAuthFlow::Password { token_url, refresh_url, scopes } => {
            writer.key("password").object(|writer| {
                writer.maybe_text("tokenUrl", token_url.as_deref());
                writer.maybe_text("refreshUrl", refresh_url.as_deref());
                encode_scopes_unless_empty(writer, scopes);
            });
        }
        OAuthFlow::DeviceCode { device_authorization_url, token_url, refresh_url, scopes } => {
            writer.key("deviceCode").object(|writer| {
                writer.text("deviceAuthorizationUrl", device_authorization_url);
                writer.text("tokenUrl", token_url);
                writer.maybe_text("refreshUrl", refresh_url.as_deref());
                encode_scopes(writer, scopes);
            });
        }
    });
}

fn decode_scopes(object: &Object<'_, '_>) -> Read<Vec<(String, String)>> {
    decode_map(object, "scopes", |node| if node.is_null() { Ok(String::new()) } else { decode_text(node) })
}

fn encode_scopes(writer: &mut Writer, scopes: &[(String, String)]) {
    encode_map(writer.key("scopes"), scopes, |writer, sentence| writer.string(sentence));
}

/// Only the two deprecated flows have optional scopes.
fn encode_scopes_unless_empty(writer: &mut Writer, scopes: &[(String, String)]) {
    if !scopes.is_empty() {
        encode_scopes(writer, scopes);
    }
}

/// A string whose presence matters even if it is empty.
fn decode_text(node: Node<'_, '_>) -> Read<String> {
    node.string().map(Cow::into_owned)
}

/// The value of a oneof; `None` if no member or more than one is set.
fn only_one<T>(members: impl IntoIterator<Item = Option<T>>) -> Option<T> {
    let mut present = members.into_iter().flatten();
    let one = present.next()?;
    present.next().is_none().then_some(one)
}

/// Reads an optional map with arbitrary keys without duplicates: the last value of a key wins, the others are
/// not validated. A null value is passed on, not dropped: a requirement must not lose a scheme.
fn decode_map<T>(
    object: &Object<'_, '_>,
    name: &str,
    mut each: impl FnMut(Node<'_, '_>) -> Read<T>,
) -> Read<Vec<(String, T)>> {
    let entries = object.maybe(name, |node| {
        let map = node.object()?;
        let names = map.entries(|name, _| Ok(name.to_owned()))?;
        let last: HashMap<&str, usize> =
            names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let mut places = 0..;
        map.entries(|name, node| {
            let overwritten = places.next() != last.get(name).copied();
            if overwritten { Ok(None) } else { each(node).map(|value| Some((name.to_owned(), value))) }
        })
    })?;
    Ok(entries.into_iter().flatten().flatten().collect())
}

fn encode_map<T>(writer: &mut Writer, entries: &[(String, T)], mut each: impl FnMut(&mut Writer, &T)) {
    writer.object(|writer| {
        for (name, value) in entries {
            each(writer.key(name), value);
        }
    });
}
