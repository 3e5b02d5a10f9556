//! The state that all bindings share: the engine, the settings of each agent, and the endpoints at which agents are
//! served.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use engine::{Call, Engine, Reservation, Resume, Scope};
use http::HeaderMap;
use ipnet::IpNet;
use protocol::{
    Dialect, Error, ErrorKind, ErrorTable, Timestamp, Violation,
    model::{AgentExtension, SecurityScheme},
};

use crate::{
    admit::ExtendedCard,
    auth,
    bindings::text,
    card::CardOptions,
    cross_origin::{CorsOrigin, OriginPolicy},
    host::{AllowedHost, HostPolicy},
    origin::Origins,
    profile::Profile,
    ready::Ready,
    respond,
    version::AcceptedVersions,
};

/// Estimated memory of a call besides its body and its response.
const CALL_BYTES: u64 = 4 << 10;

/// Configuration of the server's endpoints.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The agent at `/`.
    pub default_agent: String,
    /// Limit of a request body and of a gRPC message.
    pub max_body_bytes: usize,
    /// Settings by agent id; an agent without an entry has the default settings.
    pub agents: BTreeMap<String, AgentSettings>,
    /// Which protocol generations are accepted.
    pub accepted_versions: AcceptedVersions,
    /// The edition of the status table used by HTTP+JSON and gRPC.
    pub errors: ErrorTable,
    /// How cards are served.
    pub card: CardOptions,
    /// Interval after which an idle event stream sends a comment.
    pub keep_alive: Duration,
    /// Scheme and host as clients see them, if they differ from the request's.
    pub public_url: Option<String>,
    /// Networks of proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Hosts that requests may name, beside that of `public_url` and those of the listener.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Origins whose web pages may call.
    pub cors_origins: Vec<CorsOrigin>,
}

impl ServerOptions {
    /// Serves this agent at `/`, with bodies up to 16 MiB and every generation.
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
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
        }
    }
}

/// How one agent is served.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The compatibility profile at the agent's own path, and of its card.
    pub profile: Profile,
    /// A disabled agent rejects every call and has no card.
    pub enabled: bool,
    /// Whether streaming operations are supported.
    pub streaming: bool,
    /// Whether push notifications are supported.
    pub push: bool,
    /// Which callers may get its extended card.
    pub extended_card: ExtendedCard,
    /// The ids of the skills that only the extended card shows.
    pub extended_skills: Vec<String>,
    /// Supported protocol extensions, each marked as required or optional.
    pub extensions: Vec<AgentExtension>,
    /// Whether to reject message parts of a media type that the card does not list.
    pub check_media_types: bool,
    /// Whether calls without a credential are permitted.
    pub anonymous: bool,
    /// Security schemes by name, as the card lists them.
    pub security: Vec<(String, SecurityScheme)>,
}

impl AgentSettings {
    /// The error for a caller without a credential. It includes the challenge for the card's security schemes, if there
    /// are any.
    pub(crate) fn credential_required(&self, text: impl Into<String>) -> Error {
        let error = Error::new(ErrorKind::Unauthenticated, text);
        let challenge = self.challenge();
        if challenge.is_empty() { error } else { error.with(respond::CHALLENGE, challenge) }
    }

    /// Whether streaming operations are supported at the agent's own path.
    pub(crate) fn offers_streaming(&self) -> bool {
        self.streaming && !self.profile.send_only
    }

    /// The value of `WWW-Authenticate` (RFC 9110 11.6.1).
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

/// What every binding needs; built once from [`ServerOptions`].
pub(crate) struct ServerState {
    pub(crate) engine: Engine,
    pub(crate) max_body_bytes: usize,
    pub(crate) accepted_versions: AcceptedVersions,
    pub(crate) errors: ErrorTable,
    pub(crate) default_agent: String,
    agents: BTreeMap<String, AgentSettings>,
    default_settings: AgentSettings,
    profiles: Profiles,
    pub(crate) card: CardOptions,
    pub(crate) keep_alive: Duration,
    pub(crate) origins: Origins,
    pub(crate) hosts: HostPolicy,
    pub(crate) callers: OriginPolicy,
    pub(crate) ready: Ready,
    /// When the server started; cards do not change afterwards.
    pub(crate) since: Timestamp,
}

/// The compatibility profiles of paths with a fixed profile.
pub(crate) struct Profiles {
    pub(crate) neutral: Profile,
    pub(crate) fold: Profile,
    pub(crate) agent_native: Profile,
    pub(crate) agentos: Profile,
    pub(crate) draft_alias: Profile,
}

/// The target of a request: an agent, its settings, and the profile of the path.
pub(crate) struct Endpoint<'a> {
    pub(crate) agent: &'a str,
    pub(crate) profile: &'a Profile,
    pub(crate) settings: &'a AgentSettings,
}

impl Endpoint<'_> {
    /// Checks that the agent is enabled and that the caller may call it.
    pub(crate) fn check_access(&self) -> Result<(), Error> {
        if !self.settings.enabled {
            let text = format!("agent {:?} is disabled", self.agent);
            return Err(Error::new(ErrorKind::AgentDisabled, text));
        }
        if !self.settings.anonymous {
            let text = format!(
                "agent {:?} requires a credential, and this server cannot check credentials yet",
                self.agent
            );
            return Err(self.settings.credential_required(text));
        }
        Ok(())
    }

    /// The caller's scope.
    pub(crate) fn scope(&self) -> Scope {
        auth::anonymous(self.agent)
    }

    /// A call by this caller, with the idempotency key and the last event id from the headers.
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
        // A lossy conversion could turn two different keys into the same one.
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
    pub(crate) fn new(engine: Engine, options: ServerOptions, ready: Ready) -> Self {
        let ServerOptions {
            default_agent,
            max_body_bytes,
            agents,
            accepted_versions,
            errors,
            card,
            keep_alive,
            public_url,
            trusted_proxies,
            allowed_hosts,
            cors_origins,
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
            default_settings: AgentSettings::default(),
            profiles,
            card,
            keep_alive,
            hosts: HostPolicy::new(public_url.as_deref(), allowed_hosts),
            callers: OriginPolicy::new(public_url.as_deref(), cors_origins),
            origins: Origins { public_url, trusted_proxies },
            ready,
            since,
        }
    }

    /// The endpoint of the most frequent JSON-RPC paths: the default agent at `/`, or a configured agent at its own
    /// path. The routing table has these paths too, for the other methods and content types.
    pub(crate) fn jsonrpc_endpoint(&self, path: &str, headers: &HeaderMap) -> Option<Endpoint<'_>> {
        if path == "/" {
            return Some(self.root_endpoint());
        }
        let (agent, _) = self.agents.get_key_value(path.strip_prefix("/a2a/")?)?;
        Some(self.agent_endpoint(agent)).filter(|_| !text::is_text_request(headers))
    }

    /// Whether requests need the peer's address, to recognise trusted proxies.
    pub(crate) fn needs_peer_address(&self) -> bool {
        !self.origins.trusted_proxies.is_empty()
    }

    /// The agent's settings, or the default ones.
    pub(crate) fn settings(&self, agent: &str) -> &AgentSettings {
        self.agents.get(agent).unwrap_or(&self.default_settings)
    }

    /// The default agent with the profile of a path.
    pub(crate) fn default_endpoint(&self, profile: ProfileOf) -> Endpoint<'_> {
        let agent = self.default_agent.as_str();
        Endpoint { agent, profile: profile(&self.profiles), settings: self.settings(agent) }
    }

    /// The default agent at `/`.
    pub(crate) fn root_endpoint(&self) -> Endpoint<'_> {
        self.default_endpoint(|profiles| &profiles.neutral)
    }

    /// An agent at its own path, with its own profile.
    pub(crate) fn agent_endpoint<'a>(&'a self, agent: &'a str) -> Endpoint<'a> {
        let settings = self.settings(agent);
        Endpoint { agent, profile: &settings.profile, settings }
    }
}

/// Selects one of the profiles.
pub(crate) type ProfileOf = fn(&Profiles) -> &Profile;
