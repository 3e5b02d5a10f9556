//! What the cards of 0.2, 0.3 and 1.0 have in common: the members of their parts, and security.

pub(crate) mod security;

use std::{borrow::Cow, collections::HashMap};

use crate::{
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{
        AgentCapabilities, AgentCardSignature, AgentExtension, AgentProvider, AgentSkill, SecurityRequirement,
    },
};

pub(super) fn decode_provider(node: Node<'_, '_>) -> Read<AgentProvider> {
    let object = node.object()?;
    Ok(AgentProvider {
        url: object.text_or_empty("url")?,
        organization: object.text_or_empty("organization")?,
    })
}

/// Reads capabilities without the flag for the extended card.
pub(super) fn decode_capabilities(node: Node<'_, '_>) -> Read<AgentCapabilities> {
    let object = node.object()?;
    Ok(AgentCapabilities {
        streaming: object.flag("streaming")?,
        push_notifications: object.flag("pushNotifications")?,
        extensions: object.list("extensions", decode_extension)?,
        extended_card: None,
    })
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

/// Writes the extensions unless there are none.
pub(super) fn encode_extensions(writer: &mut Writer, extensions: &[AgentExtension]) {
    if extensions.is_empty() {
        return;
    }
    writer.key("extensions").array(extensions, |writer, extension| {
        writer.object(|writer| {
            writer.text("uri", &extension.uri);
            writer.maybe_text("description", extension.description.as_deref());
            writer.flag_if_set("required", extension.required);
            writer.maybe_json("params", extension.params.as_ref());
        });
    });
}

/// Reads a skill; `requirements` reads what security it requires.
pub(super) fn decode_skill(
    node: Node<'_, '_>,
    requirements: impl FnOnce(&Object<'_, '_>) -> Read<Vec<SecurityRequirement>>,
) -> Read<AgentSkill> {
    let object = node.object()?;
    Ok(AgentSkill {
        id: object.need_text("id")?,
        name: object.text_or_empty("name")?,
        description: object.text_or_empty("description")?,
        tags: object.texts("tags")?,
        examples: object.texts("examples")?,
        input_modes: object.texts("inputModes")?,
        output_modes: object.texts("outputModes")?,
        security_requirements: requirements(&object)?,
    })
}

/// Writes a skill with the modes in the form of `modes`, and what `requirements` writes.
pub(super) fn encode_skill<'a>(
    writer: &mut Writer,
    skill: &'a AgentSkill,
    modes: impl Fn(&'a [String]) -> Cow<'a, [String]>,
    requirements: impl FnOnce(&mut Writer),
) {
    writer.object(|writer| {
        writer.text("id", &skill.id);
        writer.text("name", &skill.name);
        writer.text("description", &skill.description);
        writer.texts("tags", &skill.tags);
        writer.texts_unless_empty("examples", &skill.examples);
        writer.texts_unless_empty("inputModes", &modes(&skill.input_modes));
        writer.texts_unless_empty("outputModes", &modes(&skill.output_modes));
        requirements(writer);
    });
}

pub(super) fn decode_signature(node: Node<'_, '_>) -> Read<AgentCardSignature> {
    let object = node.object()?;
    Ok(AgentCardSignature {
        protected: object.need_text("protected")?,
        signature: object.need_text("signature")?,
        header: object.json_object("header")?,
    })
}

/// A string whose presence matters even if it is empty.
pub(super) fn decode_text(node: Node<'_, '_>) -> Read<String> {
    node.string().map(Cow::into_owned)
}

/// Reads an optional map with arbitrary keys.
pub(super) fn decode_map<T>(
    object: &Object<'_, '_>,
    name: &str,
    each: impl FnMut(Node<'_, '_>) -> Read<T>,
) -> Read<Vec<(String, T)>> {
    let map = object.maybe(name, |node| last_values(&node.object()?, each))?;
    Ok(map.unwrap_or_default())
}

/// The members of a map without duplicate keys: the last value wins, the others are not validated. A null value is passed on,
/// not dropped: a requirement must not lose a scheme.
pub(super) fn last_values<T>(
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
