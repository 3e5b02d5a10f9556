//! The card at `/.well-known/agent-card.json`: one document for clients of 1.0 and of 0.3.
//!
//! It is the 1.0 card plus every additional member of the 0.3 card, at every depth: the two sets of names do
//! not collide. It has no signatures, because they cover the pure 1.0 card.

use std::collections::HashMap;

use crate::{
    AgentCard,
    dialect::{CardStyle, card::security::Form, v1, v03},
    json::{
        Raw,
        read::{Node, Path, Read},
        write::Writer,
    },
};

/// Reads a merged card; the 1.0 members contain everything.
pub fn decode(node: Node<'_, '_>) -> Read<AgentCard> {
    v1::card::decode(node)
}

/// Writes a merged card; if 0.3 is not supported, the 1.0 card.
pub fn encode(writer: &mut Writer, card: &AgentCard) {
    encode_styled(writer, card, &CardStyle::default());
}

/// Writes a merged card with the 0.3 members in the form a compatibility profile selects.
pub fn encode_styled(writer: &mut Writer, card: &AgentCard, style: &CardStyle) {
    if !v03::card::offered(card) {
        return v1::card::encode(writer, card);
    }
    let document = |encode: &dyn Fn(&mut Writer)| {
        let mut writer = Writer::new();
        encode(&mut writer);
        writer.finish()
    };
    let new = document(&|writer| v1::card::encode(writer, card));
    let old = document(&|writer| v03::card::encode_form(writer, card, style, Form::Merged));
    let raw = |document| Raw::parse(document).expect("the writer writes JSON");
    let (new, old) = (members(raw(&new)), members(raw(&old)));
    let unsigned: Vec<_> = new.into_iter().filter(|(name, _)| name != "signatures").collect();
    merge_members(writer, &unsigned, &old);
}

/// Writes the first value plus the members that only the second has.
fn merge(writer: &mut Writer, first: Raw<'_>, second: Raw<'_>) {
    let both = |bracket| first.get().starts_with(bracket) && second.get().starts_with(bracket);
    if first == second {
        writer.raw(first.get());
    } else if both('{') {
        merge_members(writer, &members(first), &members(second));
    } else if both('[') && elements(first).len() == elements(second).len() {
        let pairs = elements(first).into_iter().zip(elements(second));
        writer.array(pairs, |writer, (first, second)| merge(writer, first, second));
    } else {
        writer.raw(first.get());
    }
}

fn merge_members(writer: &mut Writer, first: &[(String, Raw<'_>)], second: &[(String, Raw<'_>)]) {
    let mut others: HashMap<&str, Raw<'_>> =
        second.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    writer.object(|writer| {
        for (name, value) in first {
            match others.remove(name.as_str()) {
                Some(other) => merge(writer.key(name), *value, other),
                None => writer.key(name).raw(value.get()),
            }
        }
        for (name, value) in second {
            if others.contains_key(name.as_str()) {
                writer.key(name).raw(value.get());
            }
        }
    });
}

fn members(value: Raw<'_>) -> Vec<(String, Raw<'_>)> {
    let object = Node::new(value, &Path::Root).object();
    let read = object.and_then(|object| object.entries(|name, node| Ok((name.to_owned(), node.raw()))));
    read.unwrap_or_default()
}

fn elements(value: Raw<'_>) -> Vec<Raw<'_>> {
    Node::new(value, &Path::Root).list(|node| Ok(node.raw())).unwrap_or_default()
}
