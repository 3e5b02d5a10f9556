//! The agent card at `/.well-known/agent.json`, for readers of the draft and of 0.2.
//!
//! It is the card of 0.2 and 0.3 with the draft's `authentication` beside the security schemes, and all three
//! flags. Where only the draft is spoken, the members of the later generations are left out, because readers tell
//! the generations apart by them.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use crate::{
    AgentCard, Dialect,
    dialect::{
        CardStyle,
        v03::card::{
            self as v03,
            interfaces::{self, DEFAULT_TRANSPORT, Reach},
            security::{self, Form},
        },
    },
    json::{
        read::{Node, Read},
        write::Writer,
    },
    model::{AgentInterface, SecurityRequirement, SecurityScheme},
};

/// What a card speaks that says nothing of what came later.
const VERSION: &str = "0.1";
/// The modes of a card that names none.
const DEFAULT_MODE: &str = "text";

/// Whether the agent speaks the draft, or 0.2 or 0.3, anywhere; where it does not, it has no such card.
pub fn offered(card: &AgentCard) -> bool {
    accepted_versions(card).is_some()
}

/// Reads a card.
pub fn decode(node: Node<'_, '_>) -> Read<AgentCard> {
    let object = node.object()?;
    let mut card =
        if v03::is_marked(&object) { v03::decode(node)? } else { v03::decode_speaking(node, VERSION)? };
    if card.security_schemes.is_empty() && card.security_requirements.is_empty() {
        let words = object.maybe("authentication", decode_authentication)?.unwrap_or_default();
        (card.security_schemes, card.security_requirements) = security_of(&words);
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

/// Writes a card as a house spells it.
pub fn encode_styled(writer: &mut Writer, card: &AgentCard, style: &CardStyle) {
    let accepted_versions = accepted_versions(card);
    let later = matches!(accepted_versions, Some(AcceptedVersions::Later(_)));
    let form = (later && !style.no_security).then_some(Form::OpenApi);
    writer.object(|writer| {
        v03::encode_name(writer, card);
        match &accepted_versions {
            Some(AcceptedVersions::Later(reach)) => interfaces::encode(writer, reach, style),
            Some(AcceptedVersions::Draft(interface)) => writer.text("url", &interface.url),
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

/// Which generation's members the card shows.
enum AcceptedVersions<'a> {
    Later(Reach<'a>),
    Draft(&'a AgentInterface),
}

/// Readers of the draft know JSON-RPC alone, so an address that speaks it comes before any other.
fn accepted_versions(card: &AgentCard) -> Option<AcceptedVersions<'_>> {
    let is_rpc = |interface: &&AgentInterface| interface.binding == DEFAULT_TRANSPORT;
    let later = || {
        let main = interfaces::speaking(card, Dialect::V03).find(is_rpc)?;
        let others = interfaces::speaking(card, Dialect::V03).filter(|other| !std::ptr::eq(*other, main));
        Some(AcceptedVersions::Later(Reach { main, others: others.collect() }))
    };
    let draft = || interfaces::speaking(card, Dialect::Draft).find(is_rpc).map(AcceptedVersions::Draft);
    later().or_else(draft).or_else(|| interfaces::reach(card).map(AcceptedVersions::Later))
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
        v03::encode_extensions(writer, &capabilities.extensions);
    });
}

/// The words for the schemes the card asks for, then for those it has besides. Of one that it asks for without
/// having said what it is, the name.
fn encode_authentication(writer: &mut Writer, card: &AgentCard, style: &CardStyle) {
    let described: HashMap<&str, &SecurityScheme> =
        card.security_schemes.iter().map(|(name, scheme)| (name.as_str(), scheme)).collect();
    let asked = card.security_requirements.iter().flat_map(|requirement| &requirement.schemes);
    let asked =
        asked.map(|(name, _)| described.get(name.as_str()).map_or_else(|| name.clone(), |it| word(it)));
    let others = card.security_schemes.iter().map(|(_, scheme)| word(scheme));
    let mut seen = HashSet::new();
    let words: Vec<String> = asked.chain(others).filter(|word| seen.insert(word.clone())).collect();
    writer.key("authentication").object(|writer| {
        writer.texts("schemes", &words);
        writer.maybe_text("credentials", style.credentials.as_deref());
    });
}

fn word(scheme: &SecurityScheme) -> String {
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

/// `schemes` is a list of words; a published sample has one word alone.
fn decode_authentication(node: Node<'_, '_>) -> Read<Vec<String>> {
    let words = node.object()?.maybe("schemes", |node| {
        if node.text().starts_with('"') {
            return Ok(vec![node.string()?.into_owned()]);
        }
        node.list(|node| node.string().map(Cow::into_owned))
    })?;
    Ok(words.unwrap_or_default())
}

/// Each word is a way in. Only those of HTTP say all there is to know; the others stay names, because where a key
/// goes or a token is had was told elsewhere.
fn security_of(words: &[String]) -> (Vec<(String, SecurityScheme)>, Vec<SecurityRequirement>) {
    let mut schemes: Vec<(String, SecurityScheme)> = Vec::new();
    let mut requirements: Vec<SecurityRequirement> = Vec::new();
    let mut seen = HashSet::new();
    for word in words {
        let names = [API_KEY, OAUTH2, OPEN_ID_CONNECT, MUTUAL_TLS];
        let known = names.into_iter().find(|name| name.eq_ignore_ascii_case(word));
        let name = known.map_or_else(|| word.to_lowercase(), str::to_owned);
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
