//! The agent card of 0.2 and 0.3: a main URL, additional interfaces, and security in OpenAPI form.
//!
//! An agent has this card only if it supports this version ([`offered`]), and [`encode`] lists only those
//! interfaces. Signatures are read but not written: ours cover the 1.0 card and would not verify here.

pub(crate) mod interfaces;
pub(crate) mod security;

use std::borrow::Cow;

use crate::{
    AgentCard,
    dialect::{
        CardStyle,
        card::{
            self,
            security::{Form, encode_requirements, encode_schemes},
        },
    },
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{AgentCapabilities, SecurityRequirement, SecurityScheme},
};

/// The version of a card without `protocolVersion`, a field introduced in 0.2.5.
pub(crate) const DEFAULT_VERSION: &str = "0.2";

/// Whether the agent has this card: it does if any interface supports this version.
pub fn offered(card: &AgentCard) -> bool {
    interfaces::select(card).is_some()
}

/// Whether a card has a member introduced in this version; draft cards have none.
pub(crate) fn has_own_members(card: &Object<'_, '_>) -> bool {
    let has = |name: &str| card.present(name).is_some_and(|raw| !raw.is_null());
    ["preferredTransport", "protocolVersion", "securitySchemes"].into_iter().any(has)
}

/// Reads a card; security is accepted in the protobuf form too.
pub fn decode(node: Node<'_, '_>) -> Read<AgentCard> {
    decode_with_version(node, DEFAULT_VERSION)
}

/// Reads a card; `version` applies if the card states none.
pub(crate) fn decode_with_version(node: Node<'_, '_>, version: &str) -> Read<AgentCard> {
    let object = node.object()?;
    let schemes = security::decode_schemes(&object)?;
    Ok(AgentCard {
        name: object.need_text("name")?,
        description: object.text_or_empty("description")?,
        interfaces: interfaces::decode(&object, version)?,
        provider: object.maybe("provider", card::decode_provider)?,
        version: object.text_or_empty("version")?,
        documentation_url: object.text("documentationUrl")?,
        capabilities: decode_capabilities(&object)?,
        security_requirements: schemes.requirements(&object)?,
        default_input_modes: object.texts("defaultInputModes")?,
        default_output_modes: object.texts("defaultOutputModes")?,
        skills: object
            .list("skills", |node| card::decode_skill(node, |skill| schemes.requirements(skill)))?,
        signatures: object.list("signatures", card::decode_signature)?,
        icon_url: object.text("iconUrl")?,
        security_schemes: schemes.list,
    })
}

/// Writes a card.
pub fn encode(writer: &mut Writer, card: &AgentCard) {
    encode_styled(writer, card, &CardStyle::default());
}

/// Writes a card in the form a compatibility profile selects.
pub fn encode_styled(writer: &mut Writer, card: &AgentCard, style: &CardStyle) {
    encode_form(writer, card, style, Form::OpenApi);
}

/// Writes a card with its security in this form.
pub(crate) fn encode_form(writer: &mut Writer, card: &AgentCard, style: &CardStyle, form: Form) {
    let form = (!style.no_security).then_some(form);
    writer.object(|writer| {
        encode_name(writer, card);
        if let Some(listed) = interfaces::select(card) {
            interfaces::encode(writer, &listed, style);
        }
        encode_about(writer, card);
        writer.key("capabilities").object(|writer| {
            let capabilities = &card.capabilities;
            writer.maybe_flag("streaming", capabilities.streaming);
            writer.maybe_flag("pushNotifications", capabilities.push_notifications);
            writer.key("stateTransitionHistory").boolean(style.state_transition_history);
            card::encode_extensions(writer, &capabilities.extensions);
        });
        if let Some(form) = form {
            security::encode(writer, &card.security_schemes, &card.security_requirements, form);
        }
        encode_skills(writer, card, form, style);
        writer.maybe_flag("supportsAuthenticatedExtendedCard", card.capabilities.extended_card);
    });
}

/// Writes `securitySchemes` in the form of OpenAPI, omitted if empty.
pub fn encode_security_schemes(writer: &mut Writer, schemes: &[(String, SecurityScheme)]) {
    encode_schemes(writer, schemes, Form::OpenApi);
}

/// Writes `security` in the form of OpenAPI, omitted if empty.
pub fn encode_security_requirements(writer: &mut Writer, requirements: &[SecurityRequirement]) {
    encode_requirements(writer, requirements, Form::OpenApi);
}

/// Writes name and description.
pub(crate) fn encode_name(writer: &mut Writer, card: &AgentCard) {
    writer.text("name", &card.name);
    writer.text("description", &card.description);
}

/// Writes provider, version and the optional URLs.
pub(crate) fn encode_about(writer: &mut Writer, card: &AgentCard) {
    if let Some(provider) = &card.provider {
        writer.key("provider").object(|writer| {
            writer.text("organization", &provider.organization);
            writer.text("url", &provider.url);
        });
    }
    writer.text("version", &card.version);
    writer.maybe_text("documentationUrl", filled(card.documentation_url.as_ref()));
    writer.maybe_text("iconUrl", filled(card.icon_url.as_ref()));
}

/// Writes the default modes and the skills; the security requirements of skills only if a form is given.
pub(crate) fn encode_skills(writer: &mut Writer, card: &AgentCard, form: Option<Form>, style: &CardStyle) {
    writer.texts("defaultInputModes", &modes(&card.default_input_modes, style));
    writer.texts("defaultOutputModes", &modes(&card.default_output_modes, style));
    writer.key("skills").array(&card.skills, |writer, skill| {
        let requirements = |writer: &mut Writer| {
            if let Some(form) = form {
                encode_requirements(writer, &skill.security_requirements, form);
            }
        };
        card::encode_skill(writer, skill, |names| modes(names, style), requirements);
    });
}

/// Media types, or the draft's names for them without duplicates.
fn modes<'a>(modes: &'a [String], style: &CardStyle) -> Cow<'a, [String]> {
    if !style.short_modes {
        return Cow::Borrowed(modes);
    }
    let mut names: Vec<String> = Vec::with_capacity(modes.len());
    for mode in modes {
        let name = match mode.as_str() {
            "text/plain" => "text",
            "application/json" => "data",
            "application/octet-stream" | "*/*" => "file",
            other => other,
        };
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Cow::Owned(names)
}

/// These versions do not distinguish an empty string from an absent one.
pub(crate) fn filled(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// The flag for the extended card is on the card itself, not among the capabilities.
fn decode_capabilities(card: &Object<'_, '_>) -> Read<AgentCapabilities> {
    let capabilities = card.maybe("capabilities", card::decode_capabilities)?;
    let extended_card = card.flag("supportsAuthenticatedExtendedCard")?;
    Ok(AgentCapabilities { extended_card, ..capabilities.unwrap_or_default() })
}
