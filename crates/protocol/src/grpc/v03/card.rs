//! The agent card: a main URL and additional interfaces. It has the content of its JSON form.

use crate::{
    AgentCard,
    dialect::{
        CardStyle,
        card::security::is_expressible,
        v03::card::{
            DEFAULT_VERSION, filled,
            interfaces::{assemble, select, version},
        },
    },
    grpc::{
        card::{
            decode_extension, decode_provider, decode_signature, decode_skill, encode_extension,
            encode_provider, encode_skill,
        },
        generated::{v1, v03 as pb},
        read::{list, maybe, need_text, text},
        security,
    },
    json::read::{Path, Read},
    model::{AgentCapabilities, OAuthFlow, SecurityScheme},
};

/// Reads a card.
pub(super) fn decode(card: pb::AgentCard) -> Read<AgentCard> {
    let path = &Path::Root;
    let main = (need_text(card.url, path, "url")?, text(card.preferred_transport));
    let others = list(card.additional_interfaces, path, "additionalInterfaces", |interface, path| {
        Ok((need_text(interface.url, path, "url")?, text(interface.transport)))
    })?;
    let version = text(card.protocol_version).unwrap_or_else(|| DEFAULT_VERSION.to_owned());
    let capabilities = maybe(card.capabilities, path, "capabilities", decode_capabilities)?;
    Ok(AgentCard {
        name: need_text(card.name, path, "name")?,
        description: card.description,
        interfaces: assemble(main, others, &version),
        provider: card.provider.map(decode_provider),
        version: card.version,
        documentation_url: text(card.documentation_url),
        capabilities: AgentCapabilities {
            extended_card: set_flag(card.supports_authenticated_extended_card),
            ..capabilities.unwrap_or_default()
        },
        security_schemes: decode_schemes(card.security_schemes, &Path::Field(path, "securitySchemes"))?,
        security_requirements: card.security.into_iter().map(security::decode_requirement).collect(),
        default_input_modes: card.default_input_modes,
        default_output_modes: card.default_output_modes,
        skills: list(card.skills, path, "skills", |skill, path| decode_skill(skill, path, "security"))?,
        signatures: list(card.signatures, path, "signatures", decode_signature)?,
        icon_url: text(card.icon_url),
    })
}

/// Writes a card without signatures: ours cover the 1.0 card.
pub(super) fn encode(card: &AgentCard) -> pb::AgentCard {
    let or_empty = |text: &Option<String>| filled(text.as_ref()).unwrap_or_default().to_owned();
    let capabilities = &card.capabilities;
    let schemes = card.security_schemes.iter().filter(|(_, scheme)| is_expressible(scheme));
    let mut written = pb::AgentCard {
        name: card.name.clone(),
        description: card.description.clone(),
        provider: card.provider.as_ref().map(encode_provider),
        version: card.version.clone(),
        documentation_url: or_empty(&card.documentation_url),
        capabilities: Some(pb::AgentCapabilities {
            streaming: capabilities.streaming.unwrap_or_default(),
            push_notifications: capabilities.push_notifications.unwrap_or_default(),
            extensions: capabilities.extensions.iter().map(encode_extension).collect(),
        }),
        security_schemes: schemes.map(|(name, scheme)| (name.clone(), encode_scheme(scheme))).collect(),
        security: security::encode_requirements(&card.security_requirements),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(encode_skill).collect(),
        supports_authenticated_extended_card: capabilities.extended_card.unwrap_or_default(),
        icon_url: or_empty(&card.icon_url),
        ..pb::AgentCard::default()
    };
    if let Some(listed) = select(card) {
        written.url.clone_from(&listed.main.url);
        written.preferred_transport.clone_from(&listed.main.binding);
        written.protocol_version = version(&listed.main.version, &CardStyle::default()).into_owned();
        let others = listed.others.iter().map(|interface| pb::AgentInterface {
            url: interface.url.clone(),
            transport: interface.binding.clone(),
        });
        written.additional_interfaces = others.collect();
    }
    written
}

/// An unset flag means absent.
fn set_flag(flag: bool) -> Option<bool> {
    flag.then_some(true)
}

fn decode_capabilities(capabilities: pb::AgentCapabilities, path: &Path<'_>) -> Read<AgentCapabilities> {
    Ok(AgentCapabilities {
        streaming: set_flag(capabilities.streaming),
        push_notifications: set_flag(capabilities.push_notifications),
        extensions: list(capabilities.extensions, path, "extensions", decode_extension)?,
        extended_card: None,
    })
}

/// Schemes that cannot be understood are omitted.
fn decode_schemes(
    schemes: impl IntoIterator<Item = (String, v1::SecurityScheme)>,
    path: &Path<'_>,
) -> Read<Vec<(String, SecurityScheme)>> {
    let mut read = Vec::new();
    for (name, scheme) in schemes {
        let scheme = security::decode(scheme, &Path::Field(path, &name))?;
        read.extend(scheme.filter(is_expressible).map(|scheme| (name, without_pkce(scheme))));
    }
    Ok(read)
}

fn encode_scheme(scheme: &SecurityScheme) -> v1::SecurityScheme {
    security::encode(&without_pkce(scheme.clone()))
}

/// This version has no field for PKCE.
fn without_pkce(mut scheme: SecurityScheme) -> SecurityScheme {
    if let SecurityScheme::OAuth2 { flow: OAuthFlow::AuthorizationCode { pkce_required, .. }, .. } =
        &mut scheme
    {
        *pkce_required = false;
    }
    scheme
}
