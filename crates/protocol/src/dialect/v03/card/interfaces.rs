//! Interfaces: the preferred one as the card's URL, the others in a list.

use std::{borrow::Cow, collections::HashSet};

use crate::{
    AgentCard, Dialect,
    dialect::CardStyle,
    json::{
        read::{Object, Read},
        write::Writer,
    },
    model::AgentInterface,
};

/// The value of an absent `preferredTransport`.
pub(crate) const DEFAULT_TRANSPORT: &str = "JSONRPC";
/// The transports every client of this version knows.
const TRANSPORTS: [&str; 3] = [DEFAULT_TRANSPORT, "HTTP+JSON", "GRPC"];

/// The interfaces a card lists.
pub(crate) struct CardInterfaces<'a> {
    pub(crate) main: &'a AgentInterface,
    pub(crate) others: Vec<&'a AgentInterface>,
}

/// The interfaces that support 0.2 or 0.3. The first with a known transport is the preferred one.
pub(crate) fn select(card: &AgentCard) -> Option<CardInterfaces<'_>> {
    let supported: Vec<&AgentInterface> = supporting(card, Dialect::V03).collect();
    let known = |interface: &&&AgentInterface| TRANSPORTS.contains(&interface.binding.as_str());
    let main = *supported.iter().find(known).or(supported.first())?;
    let others = supported.into_iter().filter(|interface| !std::ptr::eq(*interface, main)).collect();
    Some(CardInterfaces { main, others })
}

/// The interfaces of a version, in the card's order.
pub(crate) fn supporting(card: &AgentCard, dialect: Dialect) -> impl Iterator<Item = &AgentInterface> {
    card.interfaces.iter().filter(move |interface| dialect_of(&interface.version) == Some(dialect))
}

/// The dialect of a version in a card; patch numbers are ignored.
pub(crate) fn dialect_of(version: &str) -> Option<Dialect> {
    let mut numbers = version.trim().split('.');
    match (numbers.next(), numbers.next()) {
        (Some("1"), None | Some("0")) => Some(Dialect::V1),
        (Some("0"), Some("2" | "3")) => Some(Dialect::V03),
        (Some("0"), Some("0" | "1")) | (Some("draft"), None) => Some(Dialect::Draft),
        _ => None,
    }
}

/// Reads the interfaces; `version` applies if the card states none.
pub(crate) fn decode(object: &Object<'_, '_>, version: &str) -> Read<Vec<AgentInterface>> {
    let version = object.text("protocolVersion")?.unwrap_or_else(|| version.to_owned());
    let main = (object.need_text("url")?, object.text("preferredTransport")?);
    let others = object.list("additionalInterfaces", |node| {
        let object = node.object()?;
        Ok((object.need_text("url")?, object.text("transport")?))
    })?;
    Ok(assemble(main, others, &version))
}

/// A URL and its transport, if stated.
pub(crate) type Address = (String, Option<String>);

/// The interfaces of a card without duplicates, the preferred one first.
pub(crate) fn assemble(main: Address, others: Vec<Address>, version: &str) -> Vec<AgentInterface> {
    let interface = |(url, transport): Address| AgentInterface {
        url,
        binding: transport.unwrap_or_else(|| DEFAULT_TRANSPORT.to_owned()),
        tenant: None,
        version: version.to_owned(),
    };
    // Cards of this version also list the preferred URL among the others.
    let mut seen = HashSet::new();
    let mut interfaces: Vec<_> = std::iter::once(main).chain(others).map(interface).collect();
    interfaces.retain(|interface| seen.insert((interface.url.clone(), interface.binding.clone())));
    interfaces
}

/// Writes the addresses.
pub(crate) fn encode(writer: &mut Writer, listed: &CardInterfaces<'_>, style: &CardStyle) {
    writer.text("url", &listed.main.url);
    writer.text("preferredTransport", &listed.main.binding);
    if !listed.others.is_empty() {
        writer.key("additionalInterfaces").array(&listed.others, |writer, interface| {
            writer.object(|writer| {
                writer.text("url", &interface.url);
                writer.text("transport", &interface.binding);
            });
        });
    }
    writer.text("protocolVersion", &version(&listed.main.version, style));
}

/// Interfaces state a version without patch number, 0.3 cards with it.
pub(crate) fn version<'a>(version: &'a str, style: &CardStyle) -> Cow<'a, str> {
    let short = version.match_indices('.').nth(1).map_or(version, |(patch, _)| &version[..patch]);
    match (style.short_version, version) {
        (true, _) => Cow::Borrowed(short),
        (false, "0.3") => Cow::Borrowed("0.3.0"),
        (false, _) => Cow::Borrowed(version),
    }
}
