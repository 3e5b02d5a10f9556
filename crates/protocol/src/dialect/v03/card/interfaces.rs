//! Addresses: the preferred one at the top of the card, the others beside it.

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

/// What an absent `preferredTransport` means.
pub(crate) const DEFAULT_TRANSPORT: &str = "JSONRPC";
/// The transports every reader of that time knows.
const TRANSPORTS: [&str; 3] = [DEFAULT_TRANSPORT, "HTTP+JSON", "GRPC"];

/// The addresses a card shows.
pub(crate) struct Reach<'a> {
    pub(crate) main: &'a AgentInterface,
    pub(crate) others: Vec<&'a AgentInterface>,
}

/// The addresses where 0.2 or 0.3 is spoken. The first with a transport of that time is the preferred one.
pub(crate) fn reach(card: &AgentCard) -> Option<Reach<'_>> {
    let accepted_versions: Vec<&AgentInterface> = speaking(card, Dialect::V03).collect();
    let known = |interface: &&&AgentInterface| TRANSPORTS.contains(&interface.binding.as_str());
    let main = *accepted_versions.iter().find(known).or(accepted_versions.first())?;
    let others = accepted_versions.into_iter().filter(|interface| !std::ptr::eq(*interface, main)).collect();
    Some(Reach { main, others })
}

/// The interfaces of a generation, in the card's order.
pub(crate) fn speaking(card: &AgentCard, dialect: Dialect) -> impl Iterator<Item = &AgentInterface> {
    card.interfaces.iter().filter(move |interface| generation(&interface.version) == Some(dialect))
}

/// Which generation a version on a card means; patch numbers do not matter.
pub(crate) fn generation(version: &str) -> Option<Dialect> {
    let mut numbers = version.trim().split('.');
    match (numbers.next(), numbers.next()) {
        (Some("1"), None | Some("0")) => Some(Dialect::V1),
        (Some("0"), Some("2" | "3")) => Some(Dialect::V03),
        (Some("0"), Some("0" | "1")) | (Some("draft"), None) => Some(Dialect::Draft),
        _ => None,
    }
}

/// Reads the addresses; `version` is what a card that names none speaks.
pub(crate) fn decode(object: &Object<'_, '_>, version: &str) -> Read<Vec<AgentInterface>> {
    let version = object.text("protocolVersion")?.unwrap_or_else(|| version.to_owned());
    let main = (object.need_text("url")?, object.text("preferredTransport")?);
    let others = object.list("additionalInterfaces", |node| {
        let object = node.object()?;
        Ok((object.need_text("url")?, object.text("transport")?))
    })?;
    Ok(assemble(main, others, &version))
}

/// An address and the transport it names, if it names one.
pub(crate) type Address = (String, Option<String>);

/// The addresses of a card, the preferred one first, each once.
pub(crate) fn assemble(main: Address, others: Vec<Address>, version: &str) -> Vec<AgentInterface> {
    let interface = |(url, transport): Address| AgentInterface {
        url,
        binding: transport.unwrap_or_else(|| DEFAULT_TRANSPORT.to_owned()),
        tenant: None,
        version: version.to_owned(),
    };
    // Cards of that time list the preferred address among the others too.
    let mut seen = HashSet::new();
    let mut interfaces: Vec<_> = std::iter::once(main).chain(others).map(interface).collect();
    interfaces.retain(|interface| seen.insert((interface.url.clone(), interface.binding.clone())));
    interfaces
}

/// Writes the addresses.
pub(crate) fn encode(writer: &mut Writer, reach: &Reach<'_>, style: &CardStyle) {
    writer.text("url", &reach.main.url);
    writer.text("preferredTransport", &reach.main.binding);
    if !reach.others.is_empty() {
        writer.key("additionalInterfaces").array(&reach.others, |writer, interface| {
            writer.object(|writer| {
                writer.text("url", &interface.url);
                writer.text("transport", &interface.binding);
            });
        });
    }
    writer.text("protocolVersion", &version(&reach.main.version, style));
}

/// Interfaces name a version without its patch, cards of 0.3 with it.
pub(crate) fn version<'a>(version: &'a str, style: &CardStyle) -> Cow<'a, str> {
    let short = version.match_indices('.').nth(1).map_or(version, |(patch, _)| &version[..patch]);
    match (style.short_version, version) {
        (true, _) => Cow::Borrowed(short),
        (false, "0.3") => Cow::Borrowed("0.3.0"),
        (false, _) => Cow::Borrowed(version),
    }
}
