//! The agent card: the members of 0.3 with security in the protobuf form.
//!
//! Clients of this form reject unknown members, so `stateTransitionHistory`, which only the JSON schema has,
//! is not written. Like the other 0.3 card it exists only if 0.2 or 0.3 is supported.

use crate::{
    AgentCard,
    dialect::{
        CardStyle,
        card::{encode_extensions, security::Form},
        v03::card::{self as v03, interfaces, security},
    },
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

/// Reads a card; security is accepted in OpenAPI form too.
pub fn decode(node: Node<'_, '_>) -> Read<AgentCard> {
    v03::decode(node)
}

/// Writes a card.
pub fn encode(writer: &mut Writer, card: &AgentCard) {
    encode_styled(writer, card, &CardStyle::default());
}

/// Writes a card in the form a compatibility profile selects.
pub fn encode_styled(writer: &mut Writer, card: &AgentCard, style: &CardStyle) {
    let form = (!style.no_security).then_some(Form::OneOf);
    let capabilities = &card.capabilities;
    writer.object(|writer| {
        v03::encode_name(writer, card);
        if let Some(listed) = interfaces::select(card) {
            interfaces::encode(writer, &listed, style);
        }
        v03::encode_about(writer, card);
        writer.key("capabilities").object(|writer| {
            writer.maybe_flag("streaming", capabilities.streaming);
            writer.maybe_flag("pushNotifications", capabilities.push_notifications);
            encode_extensions(writer, &capabilities.extensions);
        });
        if let Some(form) = form {
            security::encode(writer, &card.security_schemes, &card.security_requirements, form);
        }
        v03::encode_skills(writer, card, form, style);
        writer.maybe_flag("supportsAuthenticatedExtendedCard", capabilities.extended_card);
    });
}
