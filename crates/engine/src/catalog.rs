//! The catalog: the agents of this server with their cards, skills and settings, keyed by tenant and agent id.
//!
//! A [`Catalog`] never changes. [`CurrentCatalog`] holds the one in use, and replacing it is how agents are added,
//! removed, enabled, disabled and reconfigured. Whoever begins something with an agent keeps that [`RegisteredAgent`]
//! until it ends, so that one call or run never mixes two configurations.

mod agent_search;
mod auth_methods;
mod card_cache;
mod profile;
pub mod search;
mod settings;

use std::{
    collections::BTreeMap,
    fmt::{self, Debug, Formatter},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use protocol::{Timestamp, model::AgentSkill};
use tokio::sync::watch;

use agent_search::AgentSearch;
pub use agent_search::FoundAgent;
pub use auth_methods::{AuthMethod, AuthMethods};
pub use card_cache::{CardCache, CardDocument, CardKey};
pub use profile::{AuthForm, CardForm, FailedReply, Profile, ReplyForm};
pub use settings::{AgentSettings, EndUser, ExtendedCard};

use crate::{
    access::{
        access_changes::AccessChanges,
        agent_switches::{AgentSwitch, SwitchState, Switches, SwitchesByAgent},
        scope::Scope,
        tenant::Tenant,
    },
    agent::Agent as _,
    clock::Clock,
    operations::idempotency::Dedupe,
    retention::Retention,
    runner::Limits,
    skill::{HiddenSkills, RunPolicy, RunSettings, Skill, SkillSet, SkillVisibility},
};

/// An agent with its card data and its settings.
#[derive(Clone)]
pub struct RegisteredAgent {
    info: AgentInfo,
    skills: SkillSet,
    dedupe: Dedupe,
    retention: Retention,
    settings: AgentSettings,
    run_settings: RunSettings,
    /// The media types of the agent and of all its skills.
    all_modes: Modes,
    /// Those of the agent and of the skills on its public card.
    public_modes: Modes,
    cards: CardCache,
    /// Every call without a credential has it; set when the agent joins a catalog.
    anonymous_scope: Scope,
    /// The decision of an operator that overrides `settings.enabled` of the configuration.
    switch: Option<AgentSwitch>,
}

/// What an agent's card shows beside its skills.
#[derive(Clone, Debug)]
pub struct AgentInfo {
    /// Id in paths and scopes.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Card description.
    pub description: String,
    /// The agent's own version, not the protocol's.
    pub version: String,
    /// Default input media types.
    pub input_modes: Vec<String>,
    /// Default output media types.
    pub output_modes: Vec<String>,
}

impl RegisteredAgent {
    /// With default deduplication, retention and settings.
    pub fn new(info: AgentInfo, skills: impl Into<SkillSet>) -> Self {
        let skills = skills.into();
        Self {
            anonymous_scope: Scope::anonymous(Tenant::default().id(), &info.id),
            all_modes: Modes::of(&info, skills.iter().map(|skill| &skill.card)),
            public_modes: Modes::of(&info, public(&skills)),
            info,
            skills,
            dedupe: Dedupe::default(),
            retention: Retention::default(),
            settings: AgentSettings::default(),
            run_settings: RunSettings::default(),
            cards: CardCache::default(),
            switch: None,
        }
    }

    /// Which messages get an idempotency key.
    #[must_use]
    pub fn with_dedupe(self, dedupe: Dedupe) -> Self {
        Self { dedupe, ..self }
    }

    /// How long this agent's tasks are kept.
    #[must_use]
    pub fn with_retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// How this agent is served.
    #[must_use]
    pub fn with_settings(self, settings: AgentSettings) -> Self {
        Self { settings, cards: CardCache::default(), ..self }
    }

    /// Execution settings of all its skills.
    #[must_use]
    pub fn with_run_settings(self, run_settings: RunSettings) -> Self {
        Self { run_settings, ..self }
    }

    /// The skills that only work of the agent can call.
    #[must_use]
    pub fn with_hidden_skills(self, hidden: Arc<HiddenSkills>) -> Self {
        Self { skills: self.skills.with_hidden(hidden), ..self }
    }

    /// The same agent with one skill changed.
    #[must_use]
    pub fn with_skill(self, id: &str, change: impl FnOnce(&mut Skill)) -> Self {
        let skills = self.skills.with_skill(id, change);
        let (all_modes, public_modes) = (
            Modes::of(&self.info, skills.iter().map(|skill| &skill.card)),
            Modes::of(&self.info, public(&skills)),
        );
        Self { skills, all_modes, public_modes, cards: CardCache::default(), ..self }
    }

    /// As an operator has decided, whatever its settings are.
    fn with_switch(self, switch: &AgentSwitch) -> Self {
        let enabled = match switch.state {
            SwitchState::Enabled => true,
            SwitchState::Disabled => false,
        };
        let settings = AgentSettings { enabled, ..self.settings.clone() };
        Self { switch: Some(switch.clone()), ..self.with_settings(settings) }
    }

    /// What applies to the runs of a task with this skill. A task without a skill has the settings of the agent's skill
    /// if there is only one, else those of the agent.
    pub fn policy(&self, skill: Option<&str>, limits: &Limits) -> RunPolicy {
        match skill.map_or_else(|| self.only_skill(), |id| self.skills.find(id)) {
            Some(skill) => self.policy_of(skill, limits),
            None => RunPolicy::new(self.run_settings, self.skills.shared_policy(), limits),
        }
    }

    /// What applies to the runs of a skill.
    pub(crate) fn policy_of(&self, skill: &Skill, limits: &Limits) -> RunPolicy {
        RunPolicy::new(skill.run.or(self.run_settings), skill.work.policy(), limits)
    }

    fn only_skill(&self) -> Option<&Arc<Skill>> {
        self.skills.iter().next().filter(|_| self.skills.len() == 1 && self.skills.pending().is_empty())
    }

    /// The skills that have their own time to wait for the client.
    pub fn skill_interrupted_ttls(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.skills.iter().filter_map(|skill| Some((skill.id(), skill.run.interrupted_ttl?)))
    }

    /// Which messages get an idempotency key.
    pub fn dedupe(&self) -> Dedupe {
        self.dedupe
    }

    /// How long this agent's tasks are kept.
    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// How this agent is served.
    pub fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// The decision of an operator whether it is enabled; `None` if the configuration decides that.
    pub fn switch(&self) -> Option<&AgentSwitch> {
        self.switch.as_ref()
    }

    /// The scope of callers without a credential.
    pub fn anonymous_scope(&self) -> &Scope {
        &self.anonymous_scope
    }

    /// Card data.
    pub fn info(&self) -> &AgentInfo {
        &self.info
    }

    /// All its skills, whoever may use them.
    pub fn skills(&self) -> &SkillSet {
        &self.skills
    }

    /// What the cards show of its skills.
    pub fn skill_cards(&self) -> impl Iterator<Item = &AgentSkill> {
        self.skills.iter().map(|skill| &skill.card)
    }

    /// The skills that exist for a caller.
    pub fn skills_for<'a>(&'a self, caller: &Scope) -> impl Iterator<Item = &'a Skill> + use<'a> {
        let sees_extended = self.settings.sees_extended_skills(caller);
        self.skills.iter().map(|skill| &**skill).filter(move |skill| sees_extended || skill.is_public())
    }

    /// The skills that the public card shows.
    pub fn public_skills(&self) -> impl Iterator<Item = &AgentSkill> {
        public(&self.skills)
    }

    /// How many skills the public card shows.
    pub fn public_skill_count(&self) -> usize {
        self.public_skills().count()
    }

    /// Whether some skills exist only for callers with a credential.
    pub fn has_protected_skills(&self) -> bool {
        self.settings.extended_card != ExtendedCard::Open
            && self.skills.iter().any(|skill| skill.visibility == SkillVisibility::Extended)
    }

    /// The skill with this id, if it exists for a caller.
    pub fn skill_for(&self, id: &str, caller: &Scope) -> Option<&Skill> {
        let found = self.skills.find(id)?;
        (found.is_public() || self.settings.sees_extended_skills(caller)).then_some(found)
    }

    /// The input media types of a skill, or of all skills if none is named or it is unknown, of those that exist for a
    /// caller. Those of the agent apply to a skill that declares none.
    pub fn input_modes(&self, skill: Option<&str>, caller: &Scope) -> &[String] {
        match skill.and_then(|id| self.skill_for(id, caller)) {
            Some(skill) if skill.card.input_modes.is_empty() => &self.info.input_modes,
            Some(skill) => &skill.card.input_modes,
            None => &self.modes_for(caller).input,
        }
    }

    /// The same for output media types.
    pub fn output_modes(&self, skill: Option<&str>, caller: &Scope) -> &[String] {
        match skill.and_then(|id| self.skill_for(id, caller)) {
            Some(skill) if skill.card.output_modes.is_empty() => &self.info.output_modes,
            Some(skill) => &skill.card.output_modes,
            None => &self.modes_for(caller).output,
        }
    }

    fn modes_for(&self, caller: &Scope) -> &Modes {
        if self.settings.sees_extended_skills(caller) { &self.all_modes } else { &self.public_modes }
    }

    /// The card documents that were built from this entry.
    pub fn cards(&self) -> &CardCache {
        &self.cards
    }
}

/// The media types of an agent and of some of its skills, each once.
#[derive(Clone)]
struct Modes {
    input: Vec<String>,
    output: Vec<String>,
}

impl Modes {
    fn of<'a>(info: &AgentInfo, skills: impl IntoIterator<Item = &'a AgentSkill>) -> Self {
        let (mut input, mut output) = (info.input_modes.clone(), info.output_modes.clone());
        for skill in skills {
            merge(&mut input, &skill.input_modes);
            merge(&mut output, &skill.output_modes);
        }
        Self { input, output }
    }
}

fn merge(modes: &mut Vec<String>, more: &[String]) {
    for mode in more {
        if !modes.contains(mode) {
            modes.push(mode.clone());
        }
    }
}

/// What the public card shows of skills.
fn public(skills: &SkillSet) -> impl Iterator<Item = &AgentSkill> {
    skills.iter().filter(|skill| skill.is_public()).map(|skill| &skill.card)
}

impl Debug for RegisteredAgent {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("RegisteredAgent").field("id", &self.info.id).finish_non_exhaustive()
    }
}

/// All agents of this server at one time.
#[derive(Debug)]
pub struct Catalog {
    /// The tenant of requests that name none.
    default_tenant: Arc<Tenant>,
    tenants: BTreeMap<String, Arc<TenantAgents>>,
    /// Retention for stored tasks of agents that are no longer registered.
    unregistered: Retention,
    /// When it came into use.
    since: Timestamp,
}

/// The agents of one tenant.
#[derive(Debug)]
struct TenantAgents {
    default_agent: String,
    agents: BTreeMap<String, Arc<RegisteredAgent>>,
    /// The encoded lists of its agents.
    lists: CardCache,
    /// Built with the catalog, so that no request waits for it.
    search: AgentSearch,
}

impl TenantAgents {
    fn new(default_agent: String, agents: BTreeMap<String, Arc<RegisteredAgent>>) -> Self {
        let search = AgentSearch::new(agents.values().filter(|agent| agent.settings().enabled));
        Self { default_agent, agents, lists: CardCache::default(), search }
    }

    /// The same tenant with some agents replaced.
    fn with_agents(&self, replaced: impl IntoIterator<Item = (String, Arc<RegisteredAgent>)>) -> Self {
        let mut agents = self.agents.clone();
        agents.extend(replaced);
        Self::new(self.default_agent.clone(), agents)
    }
}

impl Catalog {
    /// The agents of the default tenant, and which of them is its default; the last one wins when two have the same id.
    pub fn new(default_agent: impl Into<String>, agents: impl IntoIterator<Item = RegisteredAgent>) -> Self {
        let tenant = Arc::new(Tenant::default());
        let empty = Self {
            default_tenant: Arc::clone(&tenant),
            tenants: BTreeMap::new(),
            unregistered: Retention::default(),
            since: Timestamp::from_millis(0),
        };
        empty.with_tenant(tenant.id(), default_agent, agents)
    }

    /// Adds or replaces a tenant. Indexes its skills for the search, which takes about 0.1 s for 15,000 of them.
    #[must_use]
    pub fn with_tenant(
        mut self,
        tenant: impl Into<String>,
        default_agent: impl Into<String>,
        agents: impl IntoIterator<Item = RegisteredAgent>,
    ) -> Self {
        let tenant = tenant.into();
        let agents = agents.into_iter().map(|mut registered| {
            registered.anonymous_scope = Scope::anonymous(&tenant, &registered.info.id);
            (registered.info.id.clone(), Arc::new(registered))
        });
        let agents: BTreeMap<String, Arc<RegisteredAgent>> = agents.collect();
        self.tenants.insert(tenant, Arc::new(TenantAgents::new(default_agent.into(), agents)));
        self
    }

    /// The same agents after a decision of an operator about one of them.
    fn with_switch(&self, switch: &AgentSwitch) -> Self {
        let mut tenants = self.tenants.clone();
        if let Some(tenant) = tenants.get_mut(&switch.tenant)
            && let Some(agent) = tenant.agents.get(&switch.agent)
        {
            let switched = RegisteredAgent::clone(agent).with_switch(switch);
            *tenant = Arc::new(tenant.with_agents([(switch.agent.clone(), Arc::new(switched))]));
        }
        Self { default_tenant: Arc::clone(&self.default_tenant), tenants, ..*self }
    }

    /// Applies the decisions of operators to agents that do not know them yet.
    fn apply_switches(&mut self, switches: &SwitchesByAgent) {
        for (name, tenant) in &mut self.tenants {
            let of_tenant = switches.values().filter(|switch| switch.tenant == *name);
            let switched = of_tenant.filter_map(|switch| {
                let agent = RegisteredAgent::clone(tenant.agents.get(&switch.agent)?);
                Some((switch.agent.clone(), Arc::new(agent.with_switch(switch))))
            });
            let switched: Vec<_> = switched.collect();
            if !switched.is_empty() {
                *tenant = Arc::new(tenant.with_agents(switched));
            }
        }
    }

    /// Sets the retention for stored tasks of agents that are no longer registered.
    #[must_use]
    pub fn with_unregistered_retention(self, unregistered: Retention) -> Self {
        Self { unregistered, ..self }
    }

    /// The tenant of requests that name none.
    pub fn default_tenant(&self) -> &Arc<Tenant> {
        &self.default_tenant
    }

    /// Looks an agent up.
    pub fn get(&self, tenant: &str, agent: &str) -> Option<&Arc<RegisteredAgent>> {
        self.tenants.get(tenant)?.agents.get(agent)
    }

    /// The id of a tenant's default agent, registered or not; `None` for an unknown tenant.
    pub fn default_agent(&self, tenant: &str) -> Option<&str> {
        self.tenants.get(tenant).map(|tenant| tenant.default_agent.as_str())
    }

    /// The id of a tenant's default agent, if it is registered and enabled.
    pub fn enabled_default_agent(&self, tenant: &str) -> Option<&str> {
        let id = self.default_agent(tenant)?;
        self.get(tenant, id).filter(|registered| registered.settings.enabled).map(|_| id)
    }

    /// The agents of a tenant, ordered by id.
    pub fn agents(&self, tenant: &str) -> impl Iterator<Item = &Arc<RegisteredAgent>> {
        self.tenants.get(tenant).into_iter().flat_map(|tenant| tenant.agents.values())
    }

    /// Searches the enabled agents of a tenant and the skills on their public cards: those of the best `max` matches,
    /// best first.
    pub fn search(&self, tenant: &str, query: &str, max: usize) -> Vec<FoundAgent<'_>> {
        self.tenants.get(tenant).map(|tenant| tenant.search.find(query, max)).unwrap_or_default()
    }

    /// The documents that list the agents of a tenant, as they were built from this catalog.
    pub fn agent_lists(&self, tenant: &str) -> Option<&CardCache> {
        self.tenants.get(tenant).map(|tenant| &tenant.lists)
    }

    /// The enabled agents of all tenants, each with its tenant.
    pub(crate) fn enabled(&self) -> impl Iterator<Item = (&str, &Arc<RegisteredAgent>)> {
        self.tenants.iter().flat_map(|(tenant, agents)| {
            agents
                .agents
                .values()
                .filter(|agent| agent.settings().enabled)
                .map(|agent| (tenant.as_str(), agent))
        })
    }

    /// When this catalog came into use.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// The retention of an agent, registered or not.
    pub(crate) fn retention(&self, tenant: &str, agent: &str) -> Retention {
        self.get(tenant, agent).map_or(self.unregistered, |registered| registered.retention())
    }

    /// How long an interrupted task without a skill waits for its client; the agent may be unregistered.
    pub(crate) fn interrupted_ttl(&self, tenant: &str, agent: &str, limits: &Limits) -> Duration {
        let settings =
            self.get(tenant, agent).map(|registered| registered.policy(None, limits).interrupted_ttl);
        settings.unwrap_or(limits.interrupted_ttl)
    }

    /// Every time that is set for interrupted tasks of some agent or skill.
    pub(crate) fn interrupted_ttls(&self) -> impl Iterator<Item = Duration> {
        let registered = self.tenants.values().flat_map(|tenant| tenant.agents.values());
        registered.flat_map(|registered| {
            let skills = registered.skill_interrupted_ttls().map(|(_, ttl)| ttl);
            skills.chain(registered.run_settings.interrupted_ttl)
        })
    }

    /// Every retention that applies to some task.
    pub(crate) fn retentions(&self) -> impl Iterator<Item = Retention> {
        let registered = self.tenants.values().flat_map(|tenant| tenant.agents.values());
        registered.map(|registered| registered.retention()).chain([self.unregistered])
    }
}

/// The catalog in use. Cheap to clone; every clone is the same.
#[derive(Clone)]
pub struct CurrentCatalog {
    catalog: Arc<ArcSwap<Catalog>>,
    swaps: Arc<AtomicU64>,
    changes: Arc<watch::Sender<()>>,
    access: AccessChanges,
    switches: Arc<Switches>,
    clock: Clock,
}

impl CurrentCatalog {
    pub(crate) fn new(
        mut catalog: Catalog,
        switches: Vec<AgentSwitch>,
        access: AccessChanges,
        clock: Clock,
    ) -> Self {
        let switches = Arc::new(Switches::new(switches));
        catalog.apply_switches(&switches.lock());
        catalog.since = clock.now();
        let catalog = Arc::new(ArcSwap::from_pointee(catalog));
        Self { catalog, swaps: Arc::default(), changes: Arc::default(), access, switches, clock }
    }

    /// The catalog as it is now. Whoever holds it does not see later swaps.
    pub fn load(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Replaces the catalog; the decisions of operators apply to the new one too. Runs that have begun end with the agent they
    /// began with, and so do calls whose agent still accepts their caller; everything that begins later, queued and retried
    /// turns included, takes the new one. Returns the replaced one: with many skills it takes milliseconds to drop.
    pub fn swap(&self, mut catalog: Catalog) -> Arc<Catalog> {
        let switches = self.switches.lock();
        catalog.apply_switches(&switches);
        self.replace(catalog)
    }

    /// Enables or disables an agent from now on, also in later catalogs. Returns the replaced catalog.
    pub(crate) fn switch(&self, switch: AgentSwitch) -> Arc<Catalog> {
        let mut switches = self.switches.lock();
        let catalog = self.load().with_switch(&switch);
        switches.insert((switch.tenant.clone(), switch.agent.clone()), switch);
        self.replace(catalog)
    }

    /// Puts a catalog into use, while the switches are locked.
    fn replace(&self, mut catalog: Catalog) -> Arc<Catalog> {
        catalog.since = self.clock.now();
        let replaced = self.catalog.swap(Arc::new(catalog));
        self.swaps.fetch_add(1, Ordering::Release);
        self.changes.send_replace(());
        self.access.announce();
        replaced
    }

    /// Receives a notice of every later swap; several may be one notice.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// How often it was replaced: shows without loading it whether it has changed.
    pub(crate) fn swaps(&self) -> u64 {
        self.swaps.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{DEFAULT_TENANT, DynAgent, Outcome, agent_fn};

    fn registered(id: &str, retention: Retention) -> RegisteredAgent {
        let info = AgentInfo {
            id: id.into(),
            name: id.into(),
            description: String::new(),
            version: "1".into(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
        };
        let agent = DynAgent::new(agent_fn(async |_| Outcome::done()));
        RegisteredAgent::new(info, agent).with_retention(retention)
    }

    #[test]
    fn retention_of_the_tenants_agent_applies() {
        let [second, minute, hour] = [1, 60, 3_600].map(Duration::from_secs);
        let one = Retention { max_age: minute, max_tasks: Some(2), keys: second };
        let two = Retention { max_age: hour, max_tasks: Some(3), keys: second };
        let unregistered = Retention { max_age: second, ..one };
        let catalog = Catalog::new("a", [registered("a", one), registered("b", one)])
            .with_tenant("other", "a", [registered("a", two)])
            .with_unregistered_retention(unregistered);
        let kept = |tenant, agent| catalog.retention(tenant, agent);
        assert_eq!((kept(DEFAULT_TENANT, "a"), kept("other", "a")), (one, two));
        assert_eq!((kept(DEFAULT_TENANT, "b"), kept("other", "b")), (one, unregistered));
        assert_eq!((kept(DEFAULT_TENANT, "c"), kept("no such", "a")), (unregistered, unregistered));
        assert_eq!(catalog.retentions().count(), 4);
    }

    #[test]
    fn agents_are_ordered_by_id_and_the_last_of_two_wins() {
        let short = Retention { max_age: Duration::ZERO, ..Retention::default() };
        let long = Retention::default();
        let catalog =
            Catalog::new("b", [registered("b", short), registered("a", long), registered("b", long)]);
        let ids: Vec<_> = catalog.agents(DEFAULT_TENANT).map(|agent| agent.info().id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(catalog.get(DEFAULT_TENANT, "b").map(|agent| agent.retention()), Some(long));
    }
}
