//! The agent card at `/.well-known/agent.json`, for clients of the draft and of 0.2.
//!
//! It is the card of 0.2 and 0.3 plus the draft's `authentication` member and all three capability flags. If
//! the agent supports the draft only, members of later versions are omitted, because clients detect the
//! version by them.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use crate::{
    AgentCard, Dialect,
    dialect::{
        CardStyle,
        card::{encode_extensions, security::Form},
        v03::card::{
            self as v03,
            interfaces::{self, CardInterfaces, DEFAULT_TRANSPORT},
            security,
        },
    },
    json::{
        read::{Node, Read},
        write::Writer,
    },
    model::{AgentInterface, SecurityRequirement, SecurityScheme},
};

/// The version of a card that has no member of a later version.
const VERSION: &str = "0.1";
/// The mode of a card that lists none.
const DEFAULT_MODE: &str = "text";

/// Whether the agent has this card: it does if any interface supports the draft, 0.2 or 0.3.
pub fn offered(card: &AgentCard) -> bool {
    card_version(card).is_some()
}

/// Reads a card.
pub fn decode(node: Node<'_, '_>) -> Read<AgentCard> {
    let object = node.object()?;
    let mut card = if v03::has_own_members(&object) {
        v03::decode(node)?
    } else {
        v03::decode_with_version(node, VERSION)?
    };
    if card.security_schemes.is_empty() && card.security_requirements.is_empty() {
        let names = object.maybe("authentication", decode_authentication)?.unwrap_or_default();
        (card.security_schemes, card.security_requirements) = security_of(&names);
    }
    for modes in [&mut card.default_input_modes, &mut card.default_output_modes] {
        if modes.is_empty() {
            modes.push(DEFAULT_MODE.to_owned());
        }
    }
    Ok(card)
}

/// Writes a card.
pub fn encode(writer: &mut Writer, card: &AgentCard) {
    encode_styled(writer, card, &CardStyle::default());
}

/// Writes a card in the form a compatibility profile selects.
pub fn encode_styled(writer: &mut Writer, card: &AgentCard, style: &CardStyle) {
    let card_version = card_version(card);
    let later = matches!(card_version, Some(CardVersion::Later(_)));
    let form = (later && !style.no_security).then_some(Form::OpenApi);
    writer.object(|writer| {
        v03::encode_name(writer, card);
        match &card_version {
            Some(CardVersion::Later(listed)) => interfaces::encode(writer, listed, style),
            Some(CardVersion::Draft(interface)) => writer.text("url", &interface.url),
            None => {}
        }
        v03::encode_about(writer, card);
        encode_capabilities(writer, card, style);
        if !style.no_security {
            encode_authentication(writer, card, style);
        }
        if let Some(form) = form {
            security::encode(writer, &card.security_schemes, &card.security_requirements, form);
        }
        v03::encode_skills(writer, card, form, style);
        if later {
            writer.maybe_flag("supportsAuthenticatedExtendedCard", card.capabilities.extended_card);
        }
    });
}

/// The version whose members the card contains.
enum CardVersion<'a> {
    Later(CardInterfaces<'a>),
    Draft(&'a AgentInterface),
}

/// Prefers a JSON-RPC interface, the only binding draft clients know.
fn card_version(card: &AgentCard) -> Option<CardVersion<'_>> {
    let is_rpc = |interface: &&AgentInterface| interface.binding == DEFAULT_TRANSPORT;
    let later = || {
        let main = interfaces::supporting(card, Dialect::V03).find(is_rpc)?;
        let others = interfaces::supporting(card, Dialect::V03).filter(|other| !std::ptr::eq(*other, main));
        Some(CardVersion::Later(CardInterfaces { main, others: others.collect() }))
    };
    let draft = || interfaces::supporting(card, Dialect::Draft).find(is_rpc).map(CardVersion::Draft);
    later().or_else(draft).or_else(|| interfaces::select(card).map(CardVersion::Later))
}

fn encode_capabilities(writer: &mut Writer, card: &AgentCard, style: &CardStyle) {
    let capabilities = &card.capabilities;
    writer.key("capabilities").object(|writer| {
        if style.tools_in_capabilities {
            writer.key("tools").array(&card.skills, |writer, skill| writer.string(&skill.id));
        }
        writer.key("streaming").boolean(capabilities.streaming.unwrap_or_default());
        writer.key("pushNotifications").boolean(capabilities.push_notifications.unwrap_or_default());
        writer.key("stateTransitionHistory").boolean(style.state_transition_history);
        encode_extensions(writer, &capabilities.extensions);
    });
}

/// Lists the names of the required schemes first, then of the other schemes. A required scheme that the card
/// does not define is listed by its own name.
fn encode_authentication(writer: &mut Writer, card: &AgentCard, style: &CardStyle) {
    let described: HashMap<&str, &SecurityScheme> =
        card.security_schemes.iter().map(|(name, scheme)| (name.as_str(), scheme)).collect();
    let required = card.security_requirements.iter().flat_map(|requirement| &requirement.schemes);
    let required = required
        .map(|(name, _)| described.get(name.as_str()).map_or_else(|| name.clone(), |it| scheme_name(it)));
    let others = card.security_schemes.iter().map(|(_, scheme)| scheme_name(scheme));
    let mut seen = HashSet::new();
    let names: Vec<String> =
        required.chain(others).filter(|scheme_name| seen.insert(scheme_name.clone())).collect();
    writer.key("authentication").object(|writer| {
        writer.texts("schemes", &names);
        writer.maybe_text("credentials", style.credentials.as_deref());
    });
}

fn scheme_name(scheme: &SecurityScheme) -> String {
    match scheme {
        SecurityScheme::HttpAuth { scheme, .. } => scheme.to_lowercase(),
        SecurityScheme::ApiKey { .. } => API_KEY.to_owned(),
        SecurityScheme::OAuth2 { .. } => OAUTH2.to_owned(),
        SecurityScheme::OpenIdConnect { .. } => OPEN_ID_CONNECT.to_owned(),
        SecurityScheme::MutualTls { .. } => MUTUAL_TLS.to_owned(),
    }
}

const API_KEY: &str = "apiKey";
const OAUTH2: &str = "oauth2";
const OPEN_ID_CONNECT: &str = "openIdConnect";
const MUTUAL_TLS: &str = "mutualTLS";

/// `schemes` is a list of names; a published sample has a single string.
fn decode_authentication(node: Node<'_, '_>) -> Read<Vec<String>> {
    let names = node.object()?.maybe("schemes", |node| {
        if node.text().starts_with('"') {
            return Ok(vec![node.string()?.into_owned()]);
        }
        node.list(|node| node.string().map(Cow::into_owned))
    })?;
    Ok(names.unwrap_or_default())
}

/// Each name is one alternative. Only HTTP schemes are fully described by their name; the others become
/// requirements without a scheme, because the draft does not state where a key is sent or a token is
/// obtained.
fn security_of(names: &[String]) -> (Vec<(String, SecurityScheme)>, Vec<SecurityRequirement>) {
    let mut schemes: Vec<(String, SecurityScheme)> = Vec::new();
    let mut requirements: Vec<SecurityRequirement> = Vec::new();
    let mut seen = HashSet::new();
    for scheme_name in names {
        let names = [API_KEY, OAUTH2, OPEN_ID_CONNECT, MUTUAL_TLS];
        let known = names.into_iter().find(|name| name.eq_ignore_ascii_case(scheme_name));
        let name = known.map_or_else(|| scheme_name.to_lowercase(), str::to_owned);
        if name.is_empty() || !seen.insert(name.clone()) {
            continue;
        }
        if matches!(name.as_str(), "bearer" | "basic" | "digest") {
            let scheme =
                SecurityScheme::HttpAuth { description: None, scheme: name.clone(), bearer_format: None };
            schemes.push((name.clone(), scheme));
        }
        requirements.push(SecurityRequirement { schemes: vec![(name, Vec::new())] });
    }
    (schemes, requirements)
}
