//! Who is served behind which door and how: what the paths, the services and the cards all ask.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use engine::{Call, Engine, Reservation, Resume, Scope};
use http::HeaderMap;
use ipnet::IpNet;
use protocol::{
    Dialect, Error, ErrorKind, ErrorTable, Timestamp, Violation,
    model::{AgentExtension, SecurityScheme},
};

use crate::{
    admit::ExtendedCard, auth, bindings::text, card::CardOptions, origin::Origins, profile::Profile,
    ready::Ready, respond, version::AcceptedVersions,
};

/// What a call has in memory beside its body and its response.
const CALL_BYTES: u64 = 4 << 10;

/// How the doors are set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// The agent at `/`.
    pub default_agent: String,
    /// The largest body that is read.
    pub max_body_bytes: usize,
    /// How each agent is served; one that is not here is open and neutral.
    pub agents: BTreeMap<String, AgentSettings>,
    /// Which generations are spoken.
    pub accepted_versions: AcceptedVersions,
    /// Which edition of the table of statuses REST and gRPC answer by.
    pub errors: ErrorTable,
    /// How cards are served.
    pub card: CardOptions,
    /// How long an event stream is quiet before it sends a comment.
    pub keep_alive: Duration,
    /// Scheme and host as clients see them, where the server is not asked by that name.
    pub public_url: Option<String>,
    /// Proxies whose word about that counts.
    pub trusted_proxies: Vec<IpNet>,
}

impl Options {
    /// This agent at `/`, bodies up to 16 MiB, every generation.
    pub fn new(default_agent: impl Into<String>) -> Self {
        Self {
            default_agent: default_agent.into(),
            max_body_bytes: 16 << 20,
            agents: BTreeMap::new(),
            accepted_versions: AcceptedVersions::default(),
            errors: ErrorTable::default(),
            card: CardOptions::default(),
            keep_alive: Duration::from_secs(15),
            public_url: None,
            trusted_proxies: Vec::new(),
        }
    }
}

/// How one agent is served.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The house style at the agent's own path, and of its card.
    pub profile: Profile,
    /// Whether it is served at all.
    pub enabled: bool,
    /// Whether it streams.
    pub streaming: bool,
    /// Whether it posts to webhooks.
    pub push: bool,
    /// Who is shown its extended card.
    pub extended_card: ExtendedCard,
    /// The ids of the skills that only the extended card shows.
    pub extended_skills: Vec<String>,
    /// Extensions of the protocol it speaks, and those it insists on.
    pub extensions: Vec<AgentExtension>,
    /// Whether a part of a media type that its card does not name is refused.
    pub check_media_types: bool,
    /// Whether callers without a credential are let in.
    pub anonymous: bool,
    /// The ways to be known to it, as its card shows them.
    pub security: Vec<(String, SecurityScheme)>,
}

impl AgentSettings {
    /// The refusal of a caller without a credential. It says what to bring, where the card names it.
    pub(crate) fn wants_credential(&self, text: impl Into<String>) -> Error {
        let error = Error::new(ErrorKind::Unauthenticated, text);
        let challenge = self.challenge();
        if challenge.is_empty() { error } else { error.with(respond::CHALLENGE, challenge) }
    }

    /// How HTTP words it (RFC 9110 11.6.1).
    fn challenge(&self) -> String {
        let one = |scheme: &SecurityScheme| match scheme {
            SecurityScheme::HttpAuth { scheme, .. } => scheme.clone(),
            SecurityScheme::ApiKey { name, .. } => format!("ApiKey name=\"{name}\""),
            SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect { .. } => "Bearer".into(),
            SecurityScheme::MutualTls { .. } => "Mutual".into(),
        };
        let mut challenges: Vec<String> = self.security.iter().map(|(_, scheme)| one(scheme)).collect();
        challenges.dedup();
        challenges.join(", ")
    }
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            profile: Profile::neutral(),
            enabled: true,
            streaming: true,
            push: false,
            extended_card: ExtendedCard::default(),
            extended_skills: Vec::new(),
            extensions: Vec::new(),
            check_media_types: true,
            anonymous: true,
            security: Vec::new(),
        }
    }
}

/// What every door needs.
pub(crate) struct ServerState {
    pub(crate) engine: Engine,
    pub(crate) max_body_bytes: usize,
    pub(crate) accepted_versions: AcceptedVersions,
    pub(crate) errors: ErrorTable,
    pub(crate) default_agent: String,
    agents: BTreeMap<String, AgentSettings>,
    unnamed: AgentSettings,
    profiles: Profiles,
    pub(crate) card: CardOptions,
    pub(crate) keep_alive: Duration,
    pub(crate) origins: Origins,
    pub(crate) ready: Ready,
    /// Since when the cards are what they are.
    pub(crate) since: Timestamp,
}

/// The house styles of paths that have one of their own.
pub(crate) struct Profiles {
    pub(crate) neutral: Profile,
    pub(crate) fold: Profile,
    pub(crate) agent_native: Profile,
    pub(crate) agentos: Profile,
    pub(crate) draft_alias: Profile,
}

/// Where a request came in: for whom, and in which style.
pub(crate) struct Endpoint<'a> {
    pub(crate) agent: &'a str,
    pub(crate) profile: &'a Profile,
    pub(crate) settings: &'a AgentSettings,
}

impl Endpoint<'_> {
    /// Whether the agent takes calls, and from this caller.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.settings.enabled {
            let text = format!("the agent {:?} is not enabled here", self.agent);
            return Err(Error::new(ErrorKind::AgentDisabled, text));
        }
        if !self.settings.anonymous {
            let text =
                format!("the agent {:?} wants a credential, and none can be checked here yet", self.agent);
            return Err(self.settings.wants_credential(text));
        }
        Ok(())
    }

    /// Who asks.
    pub(crate) fn scope(&self) -> Scope {
        auth::anonymous(self.agent)
    }

    /// A call by whoever asks, with what the headers say about it: its name for repetitions, and where its last stream
    /// broke off.
    pub(crate) fn call(
        &self,
        dialect: Dialect,
        headers: &HeaderMap,
        memory: &Arc<Reservation>,
    ) -> Result<Call, Error> {
        memory.reserve(CALL_BYTES)?;
        let text = |name: &str| headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()));
        let resume = text("last-event-id").map(|seen| {
            let seen = seen.ok().and_then(engine::cursor::last_event_id);
            seen.map_or(Resume::Unknown, Resume::After)
        });
        // Two keys that differ in what is not text must not become one.
        let idempotency_key = text("idempotency-key").transpose().map_err(|_| {
            Error::invalid_params(Violation::new("Idempotency-Key", "expected text in UTF-8, 1 to 255 bytes"))
        })?;
        Ok(Call {
            idempotency_key: idempotency_key.map(str::to_owned),
            resume,
            dialect,
            task_policy: self.profile.task_policy,
            memory: Some(Arc::clone(memory)),
            ..Call::new(self.scope())
        })
    }
}

impl ServerState {
    pub(crate) fn new(engine: Engine, options: Options, ready: Ready) -> Self {
        let Options {
            default_agent,
            max_body_bytes,
            agents,
            accepted_versions,
            errors,
            card,
            keep_alive,
            public_url,
            trusted_proxies,
        } = options;
        let since = engine.clock().now();
        let profiles = Profiles {
            neutral: Profile::neutral(),
            fold: Profile::fold(),
            agent_native: Profile::agent_native(),
            agentos: Profile::agentos(),
            draft_alias: Profile::draft_alias(),
        };
        Self {
            engine,
            max_body_bytes,
            accepted_versions,
            errors,
            default_agent,
            agents,
            unnamed: AgentSettings::default(),
            profiles,
            card,
            keep_alive,
            origins: Origins { public_url, trusted_proxies },
            ready,
            since,
        }
    }

    /// Where most calls of JSON-RPC go: the default agent at `/`, or an agent that is configured at its own path. The
    /// table has these too, and says what else is there.
    pub(crate) fn called_at(&self, path: &str, headers: &HeaderMap) -> Option<Endpoint<'_>> {
        if path == "/" {
            return Some(self.root());
        }
        let (agent, _) = self.agents.get_key_value(path.strip_prefix("/a2a/")?)?;
        Some(self.own(agent)).filter(|_| !text::is_meant(headers))
    }

    /// Whether it matters who is at the other end of a connection.
    pub(crate) fn asks_for_peers(&self) -> bool {
        !self.origins.trusted_proxies.is_empty()
    }

    /// How an agent is served.
    pub(crate) fn settings(&self, agent: &str) -> &AgentSettings {
        self.agents.get(agent).unwrap_or(&self.unnamed)
    }

    /// The default agent in the style of a path.
    pub(crate) fn default(&self, profile: ProfileOf) -> Endpoint<'_> {
        let agent = self.default_agent.as_str();
        Endpoint { agent, profile: profile(&self.profiles), settings: self.settings(agent) }
    }

    /// The default agent as it is at `/`.
    pub(crate) fn root(&self) -> Endpoint<'_> {
        self.default(|profiles| &profiles.neutral)
    }

    /// An agent at its own path.
    pub(crate) fn own<'a>(&'a self, agent: &'a str) -> Endpoint<'a> {
        let settings = self.settings(agent);
        Endpoint { agent, profile: &settings.profile, settings }
    }
}

/// One of the house styles.
pub(crate) type ProfileOf = fn(&Profiles) -> &Profile;
