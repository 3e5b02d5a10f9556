//! The agent card. Decoding requires the same fields as the JSON form.

use crate::{
    AgentCard,
    grpc::{
        card::{
            decode_extension, decode_provider, decode_signature, decode_skill, encode_extension,
            encode_provider, encode_signature, encode_skill,
        },
        generated::v1 as pb,
        read::{expected, lacks, list, maybe, need_text, text},
        security,
    },
    json::read::{Path, Read},
    model::{AgentCapabilities, AgentInterface, SecurityScheme},
};

/// Reads a card.
pub(super) fn decode(card: pb::AgentCard) -> Read<AgentCard> {
    let path = &Path::Root;
    if card.supported_interfaces.is_empty() {
        return Err(lacks(path, "supportedInterfaces", "at least one interface"));
    }
    Ok(AgentCard {
        name: need_text(card.name, path, "name")?,
        description: card.description,
        interfaces: list(card.supported_interfaces, path, "supportedInterfaces", decode_interface)?,
        provider: card.provider.map(decode_provider),
        version: card.version,
        documentation_url: card.documentation_url,
        capabilities: maybe(card.capabilities, path, "capabilities", decode_capabilities)?
            .unwrap_or_default(),
        security_schemes: decode_schemes(card.security_schemes, &Path::Field(path, "securitySchemes"))?,
        security_requirements: card
            .security_requirements
            .into_iter()
            .map(security::decode_requirement)
            .collect(),
        default_input_modes: card.default_input_modes,
        default_output_modes: card.default_output_modes,
        skills: list(card.skills, path, "skills", |skill, path| {
            decode_skill(skill, path, "securityRequirements")
        })?,
        signatures: list(card.signatures, path, "signatures", decode_signature)?,
        icon_url: card.icon_url,
    })
}

/// Writes a card.
pub(super) fn encode(card: &AgentCard) -> pb::AgentCard {
    let capabilities = &card.capabilities;
    let schemes = card.security_schemes.iter();
    pb::AgentCard {
        name: card.name.clone(),
        description: card.description.clone(),
        supported_interfaces: card.interfaces.iter().map(encode_interface).collect(),
        provider: card.provider.as_ref().map(encode_provider),
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone(),
        capabilities: Some(pb::AgentCapabilities {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            extensions: capabilities.extensions.iter().map(encode_extension).collect(),
            extended_agent_card: capabilities.extended_card,
        }),
        security_schemes: schemes.map(|(name, scheme)| (name.clone(), security::encode(scheme))).collect(),
        security_requirements: security::encode_requirements(&card.security_requirements),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(encode_skill).collect(),
        signatures: card.signatures.iter().map(encode_signature).collect(),
        icon_url: card.icon_url.clone(),
    }
}

fn decode_interface(interface: pb::AgentInterface, path: &Path<'_>) -> Read<AgentInterface> {
    Ok(AgentInterface {
        url: need_text(interface.url, path, "url")?,
        binding: need_text(interface.protocol_binding, path, "protocolBinding")?,
        tenant: text(interface.tenant),
        version: need_text(interface.protocol_version, path, "protocolVersion")?,
    })
}

fn encode_interface(interface: &AgentInterface) -> pb::AgentInterface {
    pb::AgentInterface {
        url: interface.url.clone(),
        protocol_binding: interface.binding.clone(),
        tenant: interface.tenant.clone().unwrap_or_default(),
        protocol_version: interface.version.clone(),
    }
}

fn decode_capabilities(capabilities: pb::AgentCapabilities, path: &Path<'_>) -> Read<AgentCapabilities> {
    Ok(AgentCapabilities {
        streaming: capabilities.streaming,
        push_notifications: capabilities.push_notifications,
        extensions: list(capabilities.extensions, path, "extensions", decode_extension)?,
        extended_card: capabilities.extended_agent_card,
    })
}

fn decode_schemes(
    schemes: impl IntoIterator<Item = (String, pb::SecurityScheme)>,
    path: &Path<'_>,
) -> Read<Vec<(String, SecurityScheme)>> {
    let decode = |(name, scheme): (String, pb::SecurityScheme)| {
        let path = Path::Field(path, &name);
        let scheme = security::decode(scheme, &path)?.ok_or_else(|| {
            expected(
                &path,
                "exactly one of apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, \
                 openIdConnectSecurityScheme, mtlsSecurityScheme",
            )
        })?;
        Ok((name, scheme))
    };
    schemes.into_iter().map(decode).collect()
}
