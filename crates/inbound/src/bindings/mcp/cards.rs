//! The cards of agents as resources: `a2a://agents/{name}/card`, with `?v=0.3` in the form of 0.3.

use protocol::{
    dialect::{v1, v03},
    json::write::Writer,
    rest::percent_decode,
};

use crate::{
    documents::card::CardBuilder,
    request::{endpoint::Endpoint, exchange::Exchange},
    routes::PathProfile,
};

const SCHEME: &str = "a2a://agents/";
const SUFFIX: &str = "/card";

/// For clients that build the address themselves.
pub(super) const TEMPLATE: &str = "a2a://agents/{name}/card";

/// One card in a list.
pub(super) struct CardResource {
    pub(super) uri: String,
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: String,
}

/// The cards of the agents that the caller may call.
pub(super) fn list(exchange: &Exchange) -> Vec<CardResource> {
    let agents = exchange.agents().filter(|agent| exchange.sender.may_call(agent));
    agents
        .map(|agent| {
            let info = agent.info();
            CardResource {
                // The ids of agents need no escapes.
                uri: format!("{SCHEME}{}{SUFFIX}", info.id),
                name: info.id.clone(),
                title: info.name.clone(),
                description: info.description.clone(),
            }
        })
        .collect()
}

/// The card at an address; `None` if there is none for the caller.
pub(super) fn read(exchange: &Exchange, uri: &str) -> Option<String> {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let name = percent_decode(path.strip_prefix(SCHEME)?.strip_suffix(SUFFIX)?)?;
    let (catalog, tenant) = (&exchange.catalog, &exchange.endpoint.tenant);
    let agent = catalog.get(tenant.id(), &name).filter(|agent| exchange.sender.may_call(agent))?;
    let endpoint = Endpoint::of(catalog, tenant, Some(&agent.info().id), PathProfile::OfAgent);
    let card = CardBuilder::of(&exchange.server, catalog, &endpoint, exchange.origin(), false).ok()?.public();
    let mut writer = Writer::new();
    match query {
        "" | "v=1.0" => v1::card::encode(&mut writer, &card),
        "v=0.3" if v03::card::offered(&card) => {
            v03::card::encode_styled(&mut writer, &card, &agent.settings().profile.card.style);
        }
        _ => return None,
    }
    String::from_utf8(writer.finish()).ok()
}
