//! The state that all bindings share: the engine with its catalog of agents, the server's options, and the endpoints
//! at which agents are served.

use std::{borrow::Cow, sync::Arc, time::Duration};

use engine::{
    AgentSettings, Call, Catalog, DEFAULT_TENANT, Engine, Profile, RegisteredAgent, Reservation, Resume,
    Scope,
};
use http::HeaderMap;
use ipnet::IpNet;
use protocol::{Dialect, Error, ErrorKind, ErrorTable, Timestamp, Violation};

use crate::{
    auth,
    bindings::text,
    card::CardOptions,
    cross_origin::{CorsOrigin, OriginPolicy},
    host::{AllowedHost, HostPolicy},
    origin::Origins,
    ready::Ready,
    version::AcceptedVersions,
};

/// Estimated memory of a call besides its body and its response.
const CALL_BYTES: u64 = 4 << 10;

/// Configuration of the server's endpoints.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Limit of a request body and of a gRPC message.
    pub max_body_bytes: usize,
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

impl Default for ServerOptions {
    /// Bodies up to 16 MiB, and every generation.
    fn default() -> Self {
        Self {
            max_body_bytes: 16 << 20,
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

/// What every binding needs; built once from [`ServerOptions`].
pub(crate) struct ServerState {
    pub(crate) engine: Engine,
    pub(crate) max_body_bytes: usize,
    pub(crate) accepted_versions: AcceptedVersions,
    pub(crate) errors: ErrorTable,
    /// The settings of unknown agents.
    default_settings: AgentSettings,
    profiles: Profiles,
    pub(crate) card: CardOptions,
    pub(crate) keep_alive: Duration,
    pub(crate) origins: Origins,
    pub(crate) hosts: HostPolicy,
    pub(crate) callers: OriginPolicy,
    pub(crate) ready: Ready,
}

/// The compatibility profiles of paths with a fixed profile.
pub(crate) struct Profiles {
    pub(crate) neutral: Profile,
    pub(crate) fold: Profile,
    pub(crate) agent_native: Profile,
    pub(crate) agentos: Profile,
    pub(crate) draft_alias: Profile,
}

/// The target of a request: an agent as it was registered when the request came, and the profile of the path.
pub(crate) struct Endpoint<'a> {
    agent: EndpointAgent<'a>,
    /// The profile of the path; `None` at the agent's own path, which has the agent's profile.
    path_profile: Option<&'a Profile>,
    /// The settings of an unknown agent.
    default_settings: &'a AgentSettings,
    /// Whether the agent is the one at `/`.
    pub(crate) is_default: bool,
    /// When the agent's catalog came into use.
    pub(crate) since: Timestamp,
}

enum EndpointAgent<'a> {
    Registered(Arc<RegisteredAgent>),
    Unknown(Cow<'a, str>),
}

impl Endpoint<'_> {
    /// The agent's id.
    pub(crate) fn agent(&self) -> &str {
        match &self.agent {
            EndpointAgent::Registered(registered) => &registered.info().id,
            EndpointAgent::Unknown(agent) => agent,
        }
    }

    /// The agent; `None` if it is unknown.
    pub(crate) fn registered(&self) -> Option<&Arc<RegisteredAgent>> {
        match &self.agent {
            EndpointAgent::Registered(registered) => Some(registered),
            EndpointAgent::Unknown(_) => None,
        }
    }

    /// The agent's settings, or the default ones.
    pub(crate) fn settings(&self) -> &AgentSettings {
        self.registered().map_or(self.default_settings, |registered| registered.settings())
    }

    /// The profile of the path.
    pub(crate) fn profile(&self) -> &Profile {
        self.path_profile.unwrap_or_else(|| &self.settings().profile)
    }

    /// Checks that the agent is enabled and that the caller may call it.
    pub(crate) fn check_access(&self) -> Result<(), Error> {
        if !self.settings().enabled {
            let text = format!("agent {:?} is disabled", self.agent());
            return Err(Error::new(ErrorKind::AgentDisabled, text));
        }
        if !self.settings().anonymous {
            let text = format!(
                "agent {:?} requires a credential, and this server cannot check credentials yet",
                self.agent()
            );
            return Err(auth::credential_required(self.settings(), text));
        }
        Ok(())
    }

    /// The caller's scope.
    pub(crate) fn scope(&self) -> Scope {
        auth::anonymous(self.agent())
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
            task_policy: self.profile().task_policy,
            memory: Some(Arc::clone(memory)),
            agent: self.registered().cloned(),
            ..Call::new(self.scope())
        })
    }
}

impl ServerState {
    pub(crate) fn new(engine: Engine, options: ServerOptions, ready: Ready) -> Self {
        let ServerOptions {
            max_body_bytes,
            accepted_versions,
            errors,
            card,
            keep_alive,
            public_url,
            trusted_proxies,
            allowed_hosts,
            cors_origins,
        } = options;
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
            default_settings: AgentSettings::default(),
            profiles,
            card,
            keep_alive,
            hosts: HostPolicy::new(public_url.as_deref(), allowed_hosts),
            callers: OriginPolicy::new(public_url.as_deref(), cors_origins),
            origins: Origins { public_url, trusted_proxies },
            ready,
        }
    }

    /// The catalog in use. A request loads it once.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.engine.catalog().load()
    }

    /// The endpoint of the most frequent JSON-RPC paths: the default agent at `/`, or a registered agent at its own
    /// path. The routing table has these paths too, for the other methods and content types.
    pub(crate) fn jsonrpc_endpoint(&self, path: &str, headers: &HeaderMap) -> Option<Endpoint<'_>> {
        if path == "/" {
            return Some(self.root_endpoint(&self.catalog()));
        }
        let agent = path.strip_prefix("/a2a/")?;
        if agent.contains('/') || text::is_text_request(headers) {
            return None;
        }
        let catalog = self.catalog();
        let registered = Arc::clone(catalog.get(DEFAULT_TENANT, agent)?);
        Some(self.endpoint(&catalog, EndpointAgent::Registered(registered), None))
    }

    /// Whether requests need the peer's address, to recognise trusted proxies.
    pub(crate) fn needs_peer_address(&self) -> bool {
        !self.origins.trusted_proxies.is_empty()
    }

    /// The default agent with the profile of a path.
    pub(crate) fn default_endpoint(&self, catalog: &Catalog, profile: ProfileOf) -> Endpoint<'_> {
        let id = catalog.default_agent(DEFAULT_TENANT).unwrap_or_default();
        let agent = match catalog.get(DEFAULT_TENANT, id) {
            Some(registered) => EndpointAgent::Registered(Arc::clone(registered)),
            None => EndpointAgent::Unknown(id.to_owned().into()),
        };
        self.endpoint(catalog, agent, Some(profile(&self.profiles)))
    }

    /// The default agent at `/`.
    pub(crate) fn root_endpoint(&self, catalog: &Catalog) -> Endpoint<'_> {
        self.default_endpoint(catalog, |profiles| &profiles.neutral)
    }

    /// The profile of the path `/`.
    pub(crate) fn root_profile(&self) -> &Profile {
        &self.profiles.neutral
    }

    /// An agent at its own path, with its own profile.
    pub(crate) fn agent_endpoint<'a>(
        &'a self,
        catalog: &Catalog,
        agent: impl Into<Cow<'a, str>>,
    ) -> Endpoint<'a> {
        let agent = agent.into();
        let agent = match catalog.get(DEFAULT_TENANT, &agent) {
            Some(registered) => EndpointAgent::Registered(Arc::clone(registered)),
            None => EndpointAgent::Unknown(agent),
        };
        self.endpoint(catalog, agent, None)
    }

    fn endpoint<'a>(
        &'a self,
        catalog: &Catalog,
        agent: EndpointAgent<'a>,
        path_profile: Option<&'a Profile>,
    ) -> Endpoint<'a> {
        let default_settings = &self.default_settings;
        let mut endpoint =
            Endpoint { agent, path_profile, default_settings, is_default: false, since: catalog.since() };
        endpoint.is_default = catalog.default_agent(DEFAULT_TENANT) == Some(endpoint.agent());
        endpoint
    }
}

/// Selects one of the profiles.
pub(crate) type ProfileOf = fn(&Profiles) -> &Profile;
