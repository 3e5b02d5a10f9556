//! The agent that a request addresses, as the catalog has it when the request arrives, and the compatibility profile of
//! the path.

use std::sync::{Arc, LazyLock};

use engine::{AgentSettings, Catalog, Profile, RegisteredAgent, Tenant};
use protocol::{Error, ErrorKind, Timestamp, error::excerpt};

use crate::routes::{self, PathProfile};

/// The settings of unknown agents.
static DEFAULT_SETTINGS: LazyLock<AgentSettings> = LazyLock::new(AgentSettings::default);
/// Those of the paths of the default agent, where there is none.
static NO_DEFAULT_AGENT: LazyLock<AgentSettings> =
    LazyLock::new(|| AgentSettings { enabled: false, ..AgentSettings::default() });

static NEUTRAL: LazyLock<Profile> = LazyLock::new(Profile::neutral);
static FOLD: LazyLock<Profile> = LazyLock::new(Profile::fold);
static AGENT_NATIVE: LazyLock<Profile> = LazyLock::new(Profile::agent_native);
static AGENTOS: LazyLock<Profile> = LazyLock::new(Profile::agentos);
static DRAFT_ALIAS: LazyLock<Profile> = LazyLock::new(Profile::draft_alias);

/// The tenant and the agent of a request, and how the agent is served at the request's path.
pub(crate) struct Endpoint {
    pub(crate) tenant: Arc<Tenant>,
    agent: Agent,
    profile: PathProfile,
    /// Whether the agent is the default one, served at `/` too.
    pub(crate) is_default: bool,
    /// Whether the request has named the agent.
    pub(crate) is_named: bool,
    /// When the agent's catalog came into use.
    pub(crate) since: Timestamp,
}

enum Agent {
    Registered(Arc<RegisteredAgent>),
    /// No agent has this id.
    Unknown(String),
    /// The tenant has no default agent, and the request names none.
    NoDefault,
}

impl Endpoint {
    /// The tenant's agent with this id, or its default agent.
    pub(crate) fn of(
        catalog: &Catalog,
        tenant: &Arc<Tenant>,
        id: Option<&str>,
        profile: PathProfile,
    ) -> Self {
        let default = catalog.default_agent(tenant.id()).unwrap_or_default();
        let (id, is_named) = (id.unwrap_or(default), id.is_some());
        let agent = match catalog.get(tenant.id(), id) {
            Some(registered) => Agent::Registered(Arc::clone(registered)),
            None if id.is_empty() && !is_named => Agent::NoDefault,
            None => Agent::Unknown(id.to_owned()),
        };
        Self {
            tenant: Arc::clone(tenant),
            agent,
            profile,
            is_default: id == default,
            is_named,
            since: catalog.since(),
        }
    }

    /// The agent's id; empty without a default agent.
    pub(crate) fn agent(&self) -> &str {
        match &self.agent {
            Agent::Registered(registered) => &registered.info().id,
            Agent::Unknown(id) => id,
            Agent::NoDefault => "",
        }
    }

    /// The error for an agent that is unknown or disabled.
    pub(crate) fn unknown_agent(&self, catalog: &Catalog) -> Error {
        match &self.agent {
            Agent::Registered(_) | Agent::Unknown(_) => unknown_agent(self.agent()),
            Agent::NoDefault => no_default_agent(catalog, &self.tenant),
        }
    }

    /// The agent; `None` if it is unknown.
    pub(crate) fn registered(&self) -> Option<&Arc<RegisteredAgent>> {
        match &self.agent {
            Agent::Registered(registered) => Some(registered),
            Agent::Unknown(_) | Agent::NoDefault => None,
        }
    }

    /// The agent's settings, or the default ones; without a default agent those of a disabled agent.
    pub(crate) fn settings(&self) -> &AgentSettings {
        match &self.agent {
            Agent::Registered(registered) => registered.settings(),
            Agent::Unknown(_) => &DEFAULT_SETTINGS,
            Agent::NoDefault => &NO_DEFAULT_AGENT,
        }
    }

    /// The profile of the path.
    pub(crate) fn profile(&self) -> &Profile {
        match self.profile {
            PathProfile::OfAgent => &self.settings().profile,
            PathProfile::Neutral => &NEUTRAL,
            PathProfile::Fold => &FOLD,
            PathProfile::AgentNative => &AGENT_NATIVE,
            PathProfile::Agentos => &AGENTOS,
            PathProfile::DraftAlias => &DRAFT_ALIAS,
        }
    }
}

/// The same for an unknown and a disabled agent: who may not call it does not learn that it exists.
pub(crate) fn unknown_agent(agent: &str) -> Error {
    let shown = excerpt(agent);
    Error::new(ErrorKind::AgentDisabled, format!("there is no agent {shown:?} here, or it is disabled"))
}

/// How many agents an error lists.
const LISTED_AGENTS: usize = 20;

/// The answer at the paths of the default agent where there is none: which agents there are.
fn no_default_agent(catalog: &Catalog, tenant: &Tenant) -> Error {
    let enabled = || catalog.agents(tenant.id()).filter(|agent| agent.settings().enabled);
    let listed: Vec<String> =
        enabled().take(LISTED_AGENTS).map(|agent| routes::agent_path(&agent.info().id)).collect();
    let more = match enabled().nth(LISTED_AGENTS) {
        Some(_) => " and more, which /.well-known/agents.json lists",
        None => "",
    };
    let text = format!("no agent is served at this path; call one of {}{more}", listed.join(", "));
    Error::new(ErrorKind::AgentDisabled, text)
}

/// Rejects the name of every other tenant.
pub(crate) fn check_tenant(tenant: &Tenant, named: Option<&str>) -> Result<(), Error> {
    match named {
        Some(named) if !named.is_empty() && named != tenant.id() => {
            let shown = excerpt(named);
            Err(Error::new(ErrorKind::AgentDisabled, format!("unknown tenant {shown:?}; omit it")))
        }
        Some(_) | None => Ok(()),
    }
}
