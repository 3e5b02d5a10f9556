//! Agent cards: built from an agent's information, its settings and the address of the request, in the card form of the
//! client's protocol version.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use axum::response::Response;
use bytes::Bytes;
use engine::{CardDocument, CardKey, Catalog, ExtendedCard, MemoryBudget, RegisteredAgent, SharedBytes};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use protocol::{
    AgentCard, Dialect, Error, ErrorKind, Timestamp,
    dialect::{draft, merged, v1, v03},
    json::write::Writer,
    model::{AgentCapabilities, AgentInterface, AgentSkill},
};

use crate::{
    access::auth::schemes,
    addresses::cross_origin::ANY_ORIGIN,
    bindings::grpc::interface::GrpcInterface,
    request::{
        endpoint::Endpoint,
        exchange::Exchange,
        version::{AcceptedVersions, Version},
    },
    response::{refusal, respond},
    routes,
    server_state::ServerState,
};

/// The request header that selects a card's form.
pub(crate) const VARY: HeaderValue = HeaderValue::from_static("A2A-Version");

/// The form of `agent-card.json` for a client that does not name its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardShape {
    /// One document that clients of 1.0 and of 0.3 can read.
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
    /// The form of `agent-card.json` for clients that name no version.
    pub shape: CardShape,
    /// How long clients may cache a card.
    pub max_age: Duration,
    /// Whether the gRPC address in cards of 0.3 has a scheme: the specification calls it a URL, its clients expect host
    /// and port.
    pub grpc_scheme: bool,
}

impl Default for CardOptions {
    fn default() -> Self {
        Self { shape: CardShape::default(), max_age: Duration::from_secs(60), grpc_scheme: false }
    }
}

/// The file name by which a card is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CardName {
    /// `agent-card.json`, since 0.3.
    AgentCard,
    /// `agent.json`, before that.
    Agent,
}

/// Which caches may keep a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheScope {
    /// All: the card is the same for every client.
    Public,
    /// Only the client's own: the request decides the URLs in the card, and a shared cache could give the card of one
    /// client's request to others.
    Private,
}

impl CacheScope {
    fn directive(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

/// How long a public document may be kept, and since when it is valid.
pub(crate) struct CachePolicy<'a> {
    pub(crate) scope: CacheScope,
    pub(crate) max_age: Duration,
    /// Sent as `Last-Modified`.
    pub(crate) since: Timestamp,
    /// Charged while the document is sent.
    pub(crate) memory: &'a MemoryBudget,
}

impl CachePolicy<'_> {
    /// Responds with a document, or with 304 if the client has it already. An error if there is no memory for it.
    pub(crate) fn respond(&self, document: &CardDocument, headers: &HeaderMap) -> Result<Response, Error> {
        let etag = document.etag.as_str();
        let fresh = etag_matches(headers, etag);
        let body = if fresh { Bytes::new() } else { document.body.send(self.memory)? };
        let mut response = respond::json(body);
        if fresh {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let out = response.headers_mut();
        let kept = format!("{}, max-age={}", self.scope.directive(), self.max_age.as_secs());
        let modified = self.since.http_date();
        let values = [
            (header::ETAG, etag),
            (header::CACHE_CONTROL, kept.as_str()),
            (header::LAST_MODIFIED, modified.as_str()),
        ];
        for (name, value) in values {
            if let Ok(value) = HeaderValue::from_str(value) {
                out.insert(name, value);
            }
        }
        Ok(response)
    }
}

/// A document that was written, with its entity tag.
pub(crate) fn document(writer: Writer) -> CardDocument {
    document_of(writer.finish())
}

/// The same of its bytes.
pub(crate) fn document_of(body: Vec<u8>) -> CardDocument {
    CardDocument { etag: etag(&body), body: SharedBytes::new(body) }
}

/// Everything an agent's card is built from.
pub(crate) struct CardBuilder<'a> {
    registered: &'a RegisteredAgent,
    /// URL of the agent's JSON-RPC endpoint.
    endpoint: String,
    /// `None` if the agent cannot be addressed over gRPC.
    grpc: Option<GrpcInterface>,
    accepted_versions: AcceptedVersions,
    options: CardOptions,
    /// Which caches may keep the card.
    cache_scope: CacheScope,
    /// When the agent's configuration came into use; sent as `Last-Modified`.
    since: Timestamp,
    memory: &'a MemoryBudget,
}

/// Handles a request for a card.
pub(crate) fn handle(exchange: &Exchange, name: CardName) -> Response {
    let card = exchange.card();
    let found = card.and_then(|card| card.respond(name, &exchange.version(), &exchange.head.headers));
    found.unwrap_or_else(|error| {
        // This is not a call, so the HTTP status reports the error.
        let status = StatusCode::from_u16(error.kind.row().http).unwrap_or(StatusCode::NOT_FOUND);
        let mut response = refusal::error_response(exchange, Dialect::Draft, status, &error);
        response.headers_mut().insert(header::VARY, VARY);
        response
    })
}

impl<'a> CardBuilder<'a> {
    /// The card of an endpoint's agent in the catalog; an error if there is no such agent. `origin` is that of the server as
    /// the client sees it, `at_root` whether the path of the request names no agent.
    pub(crate) fn of(
        server: &'a ServerState,
        catalog: &Catalog,
        endpoint: &'a Endpoint,
        origin: String,
        at_root: bool,
    ) -> Result<Self, Error> {
        let (agent, settings) = (endpoint.agent(), endpoint.settings());
        let registered = endpoint.registered().filter(|_| settings.enabled);
        let registered = registered.ok_or_else(|| endpoint.unknown_agent(catalog))?;
        let form = &settings.profile.card;
        let is_at_root = endpoint.is_default && (form.origin || form.root);
        let grpc = GrpcInterface::of(&origin, (!is_at_root).then_some((&*endpoint.tenant, agent)));
        let url = match (endpoint.is_default, at_root) {
            (true, _) if form.origin => origin,
            (true, true) if form.root => format!("{origin}/"),
            _ => origin + &routes::agent_path(agent),
        };
        Ok(Self {
            registered,
            endpoint: url,
            grpc,
            accepted_versions: server.accepted_versions,
            options: server.card,
            cache_scope: server.origins.cache_scope(),
            since: endpoint.since,
            memory: server.engine.memory(),
        })
    }

    /// Responds with the card in the requested form; an error for a version that is not accepted.
    fn respond(&self, name: CardName, version: &Version, headers: &HeaderMap) -> Result<Response, Error> {
        let shape = self.shape(name, version)?;
        let key = CardKey { form: self.form(shape), url: self.endpoint.clone() };
        let document = self.registered.cards().get_or_build(key, || self.document(shape))?;
        let mut response = self.conditional(&document, headers, self.cache_scope)?;
        let headers = response.headers_mut();
        headers.insert(header::VARY, VARY);
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
        Ok(response)
    }

    /// A number for the form of the document and for the options of the server that change its content.
    fn form(&self, shape: Shape) -> u8 {
        let AcceptedVersions { draft, v03, v1, lenient_version: _ } = self.accepted_versions;
        let options = [draft, v03, v1, self.options.grpc_scheme];
        options.into_iter().fold(shape as u8, |form, option| form << 1 | u8::from(option))
    }

    /// Encodes the public card; an error for a version that the agent has no card of.
    fn document(&self, shape: Shape) -> Result<CardDocument, Error> {
        let card = self.public();
        let style = &self.registered.settings().profile.card.style;
        let offered = match shape {
            Shape::Merged | Shape::V1 => self.accepted_versions.v1 || v03::card::offered(&card),
            Shape::V03 => v03::card::offered(&card),
            Shape::Draft => draft::card::offered(&card),
        };
        if !offered {
            let text = format!(
                "this agent has no card of that version; it supports {}",
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
        Ok(document(writer))
    }

    fn shape(&self, name: CardName, version: &Version) -> Result<Shape, Error> {
        Ok(match (version, name) {
            (Version::Unknown(asked), _) => {
                return Err(self.accepted_versions.unsupported(&format!("{asked:?}")));
            }
            (_, CardName::Agent) | (Version::Named(Dialect::Draft), _) => Shape::Draft,
            (Version::Named(Dialect::V1), _) => Shape::V1,
            (Version::Named(Dialect::V03 | Dialect::V03Proto), _) => Shape::V03,
            (Version::Absent, _) => match self.options.shape {
                CardShape::Merged => Shape::Merged,
                CardShape::V1 => Shape::V1,
                CardShape::V03 => Shape::V03,
            },
        })
    }

    /// Responds with a document of the agent, or with 304 if the client has it already.
    pub(crate) fn conditional(
        &self,
        document: &CardDocument,
        headers: &HeaderMap,
        cache_scope: CacheScope,
    ) -> Result<Response, Error> {
        CachePolicy {
            scope: cache_scope,
            max_age: self.options.max_age,
            since: self.since,
            memory: self.memory,
        }
        .respond(document, headers)
    }

    /// The card without the skills that only the extended card shows.
    pub(crate) fn public(&self) -> AgentCard {
        self.with_skills(self.registered.public_skills().cloned().collect())
    }

    /// The card with all skills.
    pub(crate) fn extended(&self) -> AgentCard {
        self.with_skills(self.registered.skill_cards().cloned().collect())
    }

    fn with_skills(&self, mut skills: Vec<AgentSkill>) -> AgentCard {
        let (info, settings) = (self.registered.info(), self.registered.settings());
        let form = &settings.profile.card;
        let modes = |own: &[String]| match form.modes {
            [] => own.to_vec(),
            modes => modes.iter().map(|mode| (*mode).to_owned()).collect(),
        };
        for skill in skills.iter_mut().filter(|_| !form.modes.is_empty()) {
            for (own, of_agent) in
                [(&mut skill.input_modes, &info.input_modes), (&mut skill.output_modes, &info.output_modes)]
            {
                if form.modes_of_skills {
                    *own = modes(&[]);
                } else if own.is_empty() {
                    // What the agent has by default is not shown.
                    own.clone_from(of_agent);
                }
            }
        }
        AgentCard {
            name: info.name.clone(),
            description: info.description.clone(),
            interfaces: self.interfaces(),
            provider: None,
            version: form.version.map_or_else(|| info.version.clone(), str::to_owned),
            documentation_url: None,
            icon_url: None,
            capabilities: AgentCapabilities {
                streaming: Some(settings.offers_streaming()),
                push_notifications: Some(settings.push && !settings.profile.send_only),
                extended_card: Some(
                    settings.extended_card != ExtendedCard::Off && !settings.profile.send_only,
                ),
                extensions: settings.extensions.clone(),
            },
            security_requirements: schemes::requirements(settings),
            security_schemes: schemes::declared(settings)
                .into_iter()
                .map(|(name, scheme)| (name, form.scheme(scheme)))
                .collect(),
            default_input_modes: modes(&info.input_modes),
            default_output_modes: modes(&info.output_modes),
            skills,
            signatures: Vec::new(),
        }
    }

    /// The agent's interfaces: newest version first, and JSON-RPC first within each.
    fn interfaces(&self) -> Vec<AgentInterface> {
        let interface = |version: &str, binding: &str, url: &str| AgentInterface {
            url: url.into(),
            binding: binding.into(),
            tenant: None,
            version: version.into(),
        };
        // Clients of HTTP+JSON append their paths to the address unchanged.
        let base = self.endpoint.trim_end_matches('/');
        let mut interfaces = Vec::new();
        for version in self.accepted_versions.versions() {
            interfaces.push(interface(version, "JSONRPC", &self.endpoint));
            if version != draft::VERSION {
                interfaces.push(interface(version, "HTTP+JSON", base));
            }
            let grpc = self.grpc.as_ref().and_then(|grpc| grpc.for_version(version));
            interfaces
                .extend(grpc.map(|grpc| AgentInterface { url: self.grpc_url(version, grpc.url), ..grpc }));
        }
        interfaces
    }

    /// A gRPC address is host and port. 0.3 calls it a URL, but its clients take a scheme for a part of the host name;
    /// the option `grpc_scheme` adds one for clients that require a URL.
    fn grpc_url(&self, version: &str, address: String) -> String {
        match (self.options.grpc_scheme && version == v03::VERSION, self.endpoint.starts_with("https:")) {
            (false, _) => address,
            (true, false) => format!("http://{address}"),
            (true, true) => format!("https://{address}"),
        }
    }
}

#[derive(Clone, Copy)]
enum Shape {
    Merged,
    V1,
    V03,
    Draft,
}

/// Whether `If-None-Match` matches this card: one of its tags, or `*` (RFC 9110 13.1.2).
fn etag_matches(headers: &HeaderMap, etag: &str) -> bool {
    let asked = headers.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    let mut tags = asked.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
    tags.any(|tag| tag == "*" || tag == etag)
}

/// The entity tag of a document.
fn etag(body: &[u8]) -> String {
    let hash = digest(&SHA256, body);
    let hex: String = hash.as_ref()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}
