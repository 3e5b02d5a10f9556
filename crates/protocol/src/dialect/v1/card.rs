//! The agent card.
//!
//! Cards that omit required but empty fields are common, so decoding requires only what a caller needs:
//! names, URLs and token endpoints. Encoding emits every required field, even an empty one, and the others
//! only if set, in the order of the protobuf file.

use std::borrow::Cow;

use crate::{
    AgentCard,
    dialect::card::{
        self,
        security::{self, Form},
    },
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{
        AgentCapabilities, AgentCardSignature, AgentInterface, OAuthFlow, SecurityRequirement, SecurityScheme,
    },
};

/// Reads a card.
pub fn decode(node: Node<'_, '_>) -> Read<AgentCard> {
    let object = node.object()?;
    Ok(AgentCard {
        name: object.need_text("name")?,
        description: object.text_or_empty("description")?,
        interfaces: object.need("supportedInterfaces", "at least one interface", decode_interfaces)?,
        provider: object.maybe("provider", card::decode_provider)?,
        version: object.text_or_empty("version")?,
        documentation_url: object.maybe("documentationUrl", card::decode_text)?,
        capabilities: object.maybe("capabilities", decode_capabilities)?.unwrap_or_default(),
        security_schemes: card::decode_map(&object, "securitySchemes", decode_scheme)?,
        security_requirements: decode_requirements(&object)?,
        default_input_modes: object.texts("defaultInputModes")?,
        default_output_modes: object.texts("defaultOutputModes")?,
        skills: object.list("skills", |node| card::decode_skill(node, decode_requirements))?,
        signatures: object.list("signatures", card::decode_signature)?,
        icon_url: object.maybe("iconUrl", card::decode_text)?,
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
        security::encode_schemes(writer, &card.security_schemes, Form::V1);
        security::encode_requirements(writer, &card.security_requirements, Form::V1);
        writer.texts("defaultInputModes", &card.default_input_modes);
        writer.texts("defaultOutputModes", &card.default_output_modes);
        writer.key("skills").array(&card.skills, |writer, skill| {
            card::encode_skill(writer, skill, Cow::Borrowed, |writer| {
                security::encode_requirements(writer, &skill.security_requirements, Form::V1);
            });
        });
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

fn decode_capabilities(node: Node<'_, '_>) -> Read<AgentCapabilities> {
    let capabilities = card::decode_capabilities(node)?;
    Ok(AgentCapabilities { extended_card: node.object()?.flag("extendedAgentCard")?, ..capabilities })
}

fn encode_capabilities(writer: &mut Writer, capabilities: &AgentCapabilities) {
    writer.object(|writer| {
        writer.maybe_flag("streaming", capabilities.streaming);
        writer.maybe_flag("pushNotifications", capabilities.push_notifications);
        card::encode_extensions(writer, &capabilities.extensions);
        writer.maybe_flag("extendedAgentCard", capabilities.extended_card);
    });
}

fn encode_signature(writer: &mut Writer, signature: &AgentCardSignature) {
    writer.object(|writer| {
        writer.text("protected", &signature.protected);
        writer.text("signature", &signature.signature);
        writer.maybe_json("header", signature.header.as_ref());
    });
}

fn decode_requirements(object: &Object<'_, '_>) -> Read<Vec<SecurityRequirement>> {
    object.list("securityRequirements", |node| {
        Ok(SecurityRequirement { schemes: security::decode_required_schemes(&node.object()?)? })
    })
}

fn decode_scheme(node: Node<'_, '_>) -> Read<SecurityScheme> {
    let object = node.object()?;
    let schemes = [
        object.maybe(security::API_KEY, |node| security::decode_api_key(&node.object()?, "location"))?,
        object.maybe(security::HTTP_AUTH, |node| security::decode_http_auth(&node.object()?))?,
        object.maybe(security::OAUTH2, decode_oauth2)?,
        object.maybe(security::OPEN_ID_CONNECT, |node| security::decode_open_id_connect(&node.object()?))?,
        object.maybe(security::MUTUAL_TLS, |node| security::decode_mutual_tls(&node.object()?))?,
    ];
    only_one(schemes).ok_or_else(|| {
        node.expected(
            "exactly one of apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, \
             openIdConnectSecurityScheme, mtlsSecurityScheme",
        )
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

fn decode_flow(node: Node<'_, '_>) -> Read<OAuthFlow> {
    let flows = security::decode_flows(node, Form::V1)?;
    only_one(flows.into_iter().map(|(_, flow)| Some(flow))).ok_or_else(|| {
        node.expected("exactly one of authorizationCode, clientCredentials, implicit, password, deviceCode")
    })
}

/// The value of a oneof; `None` if no member or more than one is set.
fn only_one<T>(members: impl IntoIterator<Item = Option<T>>) -> Option<T> {
    let mut present = members.into_iter().flatten();
    let one = present.next()?;
    present.next().is_none().then_some(one)
}
