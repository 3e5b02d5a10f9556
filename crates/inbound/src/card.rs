//! Agent cards: built from how an agent presents itself and where it was asked, in the shape its reader knows.

use std::time::Duration;

use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use protocol::{
    AgentCard, Dialect, Error, ErrorKind, Timestamp,
    dialect::{draft, merged, v1, v03},
    json::write::Writer,
    model::{AgentCapabilities, AgentInterface, SecurityRequirement},
};
use sha2::{Digest as _, Sha256};

use crate::{
    admit::ExtendedCard,
    bindings::grpc::reach::Reach,
    respond,
    server_state::AgentSettings,
    version::{AcceptedVersions, Version},
};

/// The header that picks a card's shape.
pub(crate) const VARY: HeaderValue = HeaderValue::from_static("A2A-Version");

/// What is at `agent-card.json` where the reader does not say which version it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardShape {
    /// One document for the readers of 1.0 and of 0.3.
    #[default]
    Merged,
    /// The card of 1.0.
    V1,
    /// The card of 0.3.
    V03,
}

/// How cards are served.
#[derive(Clone, Copy, Debug)]
pub struct CardOptions {
    /// What is at `agent-card.json`.
    pub shape: CardShape,
    /// How long a card may be kept.
    pub max_age: Duration,
    /// Whether 0.3's gRPC address has a scheme: its specification calls it a URL, its clients want a host and a port.
    pub grpc_scheme: bool,
}

impl Default for CardOptions {
    fn default() -> Self {
        Self { shape: CardShape::default(), max_age: Duration::from_secs(60), grpc_scheme: false }
    }
}

/// At which of the two names a card is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CardName {
    /// `agent-card.json`, since 0.3.
    AgentCard,
    /// `agent.json`, before that.
    Agent,
}

/// A card to be shown.
pub(crate) struct Shown<'a> {
    pub(crate) info: &'a engine::AgentInfo,
    pub(crate) settings: &'a AgentSettings,
    /// Where this agent takes calls.
    pub(crate) endpoint: String,
    /// Where it takes those of gRPC, if that can be said.
    pub(crate) reach: Option<Reach>,
    pub(crate) accepted_versions: AcceptedVersions,
    pub(crate) options: CardOptions,
    /// Since when the cards are what they are.
    pub(crate) since: Timestamp,
}

impl Shown<'_> {
    /// Answers with the card in the shape its reader wants; there is none in a generation that is not spoken.
    pub(crate) fn respond(
        &self,
        name: CardName,
        version: &Version,
        headers: &HeaderMap,
    ) -> Result<Response, Error> {
        let card = self.public();
        let style = &self.settings.profile.card.style;
        let shape = self.shape(name, version)?;
        let offered = match shape {
            Shape::Merged | Shape::V1 => self.accepted_versions.v1 || v03::card::offered(&card),
            Shape::V03 => v03::card::offered(&card),
            Shape::Draft => draft::card::offered(&card),
        };
        if !offered {
            let text = format!(
                "this agent has no card of that form; it speaks {}",
                self.accepted_versions.versions().join(", ")
            );
            return Err(Error::new(ErrorKind::AgentDisabled, text));
        }
        let mut writer = Writer::new();
        match shape {
            Shape::Merged if !self.accepted_versions.v1 => {
                v03::card::encode_styled(&mut writer, &card, style)
            }
            Shape::Merged => merged::encode_styled(&mut writer, &card, style),
            Shape::V1 => v1::card::encode(&mut writer, &card),
            Shape::V03 => v03::card::encode_styled(&mut writer, &card, style),
            Shape::Draft => draft::card::encode_styled(&mut writer, &card, style),
        }
        Ok(self.cacheable(writer.finish(), headers))
    }

    fn shape(&self, name: CardName, version: &Version) -> Result<Shape, Error> {
        Ok(match (version, name) {
            (Version::Unknown(asked), _) => return Err(self.accepted_versions.refuse(&format!("{asked:?}"))),
            (_, CardName::Agent) | (Version::Named(Dialect::Draft), _) => Shape::Draft,
            (Version::Named(Dialect::V1), _) => Shape::V1,
            (Version::Named(_), _) => Shape::V03,
            (Version::Absent, _) => match self.options.shape {
                CardShape::Merged => Shape::Merged,
                CardShape::V1 => Shape::V1,
                CardShape::V03 => Shape::V03,
            },
        })
    }

    fn cacheable(&self, body: Vec<u8>, headers: &HeaderMap) -> Response {
        let etag = etag(&body);
        let fresh = has(headers, &etag);
        let mut response = respond::json(if fresh { Vec::new() } else { body });
        if fresh {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let out = response.headers_mut();
        out.insert(header::ETAG, etag);
        let kept = format!("public, max-age={}", self.options.max_age.as_secs());
        for (name, value) in [(header::CACHE_CONTROL, kept), (header::LAST_MODIFIED, self.since.http_date())]
        {
            if let Ok(value) = HeaderValue::from_str(&value) {
                out.insert(name, value);
            }
        }
        out.insert(header::VARY, VARY);
        out.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        response
    }

    /// The card that everybody is shown.
    fn public(&self) -> AgentCard {
        let hidden = &self.settings.extended_skills;
        let mut card = self.extended();
        card.skills.retain(|skill| !hidden.contains(&skill.id));
        card
    }

    /// The card with everything on it.
    pub(crate) fn extended(&self) -> AgentCard {
        let Self { info, settings, .. } = self;
        let modes = |own: &[String]| match settings.profile.card.mode {
            Some(mode) => vec![mode.to_owned()],
            None => own.to_vec(),
        };
        let mut skills = info.skills.clone();
        if settings.profile.card.mode.is_some() {
            for skill in &mut skills {
                skill.input_modes = modes(&[]);
                skill.output_modes = modes(&[]);
            }
        }
        let requirement = |name: &String| SecurityRequirement { schemes: vec![(name.clone(), Vec::new())] };
        let mut requirements: Vec<_> = settings.security.iter().map(|(name, _)| requirement(name)).collect();
        if settings.anonymous && !requirements.is_empty() {
            // One alternative is to bring nothing.
            requirements.push(SecurityRequirement { schemes: Vec::new() });
        }
        AgentCard {
            name: info.name.clone(),
            description: info.description.clone(),
            interfaces: self.interfaces(),
            provider: None,
            version: settings.profile.card.version.map_or_else(|| info.version.clone(), str::to_owned),
            documentation_url: None,
            icon_url: None,
            capabilities: AgentCapabilities {
                streaming: Some(settings.streaming && !settings.profile.send_only),
                push_notifications: Some(settings.push && !settings.profile.send_only),
                extended_card: Some(
                    settings.extended_card != ExtendedCard::Off && !settings.profile.send_only,
                ),
                extensions: settings.extensions.clone(),
            },
            security_requirements: requirements,
            security_schemes: settings.security.clone(),
            default_input_modes: modes(&info.input_modes),
            default_output_modes: modes(&info.output_modes),
            skills,
            signatures: Vec::new(),
        }
    }

    /// Where the agent takes calls: the newest generation first, and in each of them JSON-RPC first.
    fn interfaces(&self) -> Vec<AgentInterface> {
        let interface = |version: &str, binding: &str, url: &str| AgentInterface {
            url: url.into(),
            binding: binding.into(),
            tenant: None,
            version: version.into(),
        };
        // Clients of HTTP+JSON put their paths behind the address as it is.
        let base = self.endpoint.trim_end_matches('/');
        let mut interfaces = Vec::new();
        for version in self.accepted_versions.versions() {
            interfaces.push(interface(version, "JSONRPC", &self.endpoint));
            if version != draft::VERSION {
                interfaces.push(interface(version, "HTTP+JSON", base));
            }
            let grpc = self.reach.as_ref().and_then(|reach| reach.interface(version));
            interfaces
                .extend(grpc.map(|grpc| AgentInterface { url: self.grpc_url(version, grpc.url), ..grpc }));
        }
        interfaces
    }

    /// gRPC's address is a host and a port. 0.3 calls it a URL, though its clients take a scheme for a part of the host's
    /// name; `grpc_scheme` gives the URL to whoever insists.
    fn grpc_url(&self, version: &str, address: String) -> String {
        match (self.options.grpc_scheme && version == v03::VERSION, self.endpoint.starts_with("https:")) {
            (false, _) => address,
            (true, false) => format!("http://{address}"),
            (true, true) => format!("https://{address}"),
        }
    }
}

/// The shapes a card can have.
enum Shape {
    Merged,
    V1,
    V03,
    Draft,
}

/// Whether the client has this card: any of the tags it names, or any card at all (RFC 9110 13.1.2).
fn has(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let asked = headers.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    let mut tags = asked.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
    tags.any(|tag| tag == "*" || tag.as_bytes() == etag.as_bytes())
}

fn etag(body: &[u8]) -> HeaderValue {
    let hash = Sha256::digest(body);
    let hex: String = hash[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{hex}\"")).expect("hex digits and quotes make a header value")
}
