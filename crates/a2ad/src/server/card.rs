//! How a library user describes an agent: card, capabilities, deduplication, retention and execution settings.

use engine::{Dedupe, DynAgent, RegisteredAgent, Retention, RunSettings, Skill, SkillSet, SkillVisibility};
use inbound::{AgentSettings, AuthMethod, EndUser, ExtendedCard};
use protocol::model::{AgentExtension, AgentSkill};

use crate::serve::ServeError;

/// An agent's card, its capabilities, and how its tasks are run and stored.
#[derive(Clone, Debug)]
pub struct Card {
    pub(super) info: engine::AgentInfo,
    pub(super) settings: AgentSettings,
    skills: Vec<CardSkill>,
    /// The accepted methods; `None`: those that the server verifies, else anonymous calls.
    pub(super) auth: Option<Vec<AuthMethod>>,
    pub(super) dedupe: Dedupe,
    pub(super) retention: Retention,
    pub(super) run_settings: RunSettings,
    /// By skill id.
    skill_settings: Vec<(String, RunSettings)>,
}

/// A skill as the card shows it, and to whom.
#[derive(Clone, Debug)]
struct CardSkill {
    card: AgentSkill,
    visibility: SkillVisibility,
}

impl Card {
    /// A card with only an id, which is the agent's path segment.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        let modes = vec!["text/plain".to_owned(), "application/json".to_owned()];
        let info = engine::AgentInfo {
            name: id.clone(),
            description: String::new(),
            version: "1.0.0".into(),
            input_modes: modes.clone(),
            output_modes: modes,
            id,
        };
        Self {
            info,
            settings: AgentSettings::default(),
            skills: Vec::new(),
            auth: None,
            dedupe: Dedupe::default(),
            retention: Retention::default(),
            run_settings: RunSettings::default(),
            skill_settings: Vec::new(),
        }
    }

    /// The display name; default: the id.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.info.name = name.into();
        self
    }

    /// A description for people.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = description.into();
        self
    }

    /// The agent's own version; default: `1.0.0`.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.info.version = version.into();
        self
    }

    /// Adds a skill by id and description.
    #[must_use]
    pub fn skill(self, id: impl Into<String>, description: impl Into<String>) -> Self {
        let id = id.into();
        self.full_skill(AgentSkill {
            name: id.clone(),
            id,
            description: description.into(),
            tags: Vec::new(),
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        })
    }

    /// Adds a skill with all its properties.
    #[must_use]
    pub fn full_skill(self, skill: AgentSkill) -> Self {
        self.with_skill(skill, SkillVisibility::Public)
    }

    /// The accepted media types; default: text and JSON.
    #[must_use]
    pub fn input_modes<S: Into<String>>(mut self, modes: impl IntoIterator<Item = S>) -> Self {
        self.info.input_modes = modes.into_iter().map(Into::into).collect();
        self
    }

    /// The produced media types; default: text and JSON.
    #[must_use]
    pub fn output_modes<S: Into<String>>(mut self, modes: impl IntoIterator<Item = S>) -> Self {
        self.info.output_modes = modes.into_iter().map(Into::into).collect();
        self
    }

    /// Whether clients may register webhooks for their tasks; default: no.
    #[cfg(feature = "backends")]
    #[must_use]
    pub fn push_notifications(mut self, push: bool) -> Self {
        self.settings.push = push;
        self
    }

    /// Whether streaming is offered; default: yes.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.settings.streaming = streaming;
        self
    }

    /// Whether a response to a blocking send that takes long begins with spaces, so that clients with a short read timeout
    /// wait for it; default: yes.
    #[must_use]
    pub fn keep_alive(mut self, keep_alive: bool) -> Self {
        self.settings.keep_alive = keep_alive;
        self
    }

    /// Declares a protocol extension; 1.0 clients must name a required one.
    #[must_use]
    pub fn extension(mut self, extension: AgentExtension) -> Self {
        self.settings.extensions.push(extension);
        self
    }

    /// Whether a part whose media type is not in [`Card::input_modes`] is rejected; default: yes.
    #[must_use]
    pub fn check_media_types(mut self, check: bool) -> Self {
        self.settings.check_media_types = check;
        self
    }

    /// Which credentials are accepted; any one of them suffices. Default: those that [`Builder::auth`](super::Builder::auth)
    /// configures, else calls without a credential. Callers that the application has identified are accepted in any case.
    ///
    /// ```
    /// # use a2ad::{Card, server::AuthMethod};
    /// // An API key of this agent, or a token that the server verifies with a secret.
    /// Card::new("writer").auth([AuthMethod::ApiKey, AuthMethod::Jwt]);
    /// ```
    #[must_use]
    pub fn auth(mut self, methods: impl IntoIterator<Item = AuthMethod>) -> Self {
        let mut listed = Vec::new();
        for method in methods {
            if !listed.contains(&method) {
                listed.push(method);
            }
        }
        self.auth = Some(listed);
        self
    }

    /// Whether everybody may call; a short form of [`auth`](Self::auth). If not, only requests with a
    /// [`Caller`](super::Caller) of the application that mounts the router are served.
    #[must_use]
    pub fn anonymous(self, permitted: bool) -> Self {
        self.auth(permitted.then_some(AuthMethod::Anonymous))
    }

    /// Every call needs the token of the person on whose behalf it is made, in the header `X-End-User-Token`. Tasks then
    /// belong to the caller and that person together. The tokens are verified with the secrets and issuers of
    /// [`Builder::auth`](super::Builder::auth); an application names the person with
    /// [`Caller::with_end_user`](super::Caller::with_end_user) instead.
    #[must_use]
    pub fn end_user_required(mut self) -> Self {
        self.settings.end_user = EndUser::Required;
        self
    }

    /// Who may read the extended card; default: nobody.
    #[must_use]
    pub fn extended_card(mut self, shown: ExtendedCard) -> Self {
        self.settings.extended_card = shown;
        self
    }

    /// Adds a skill that only the extended card shows.
    #[must_use]
    pub fn extended_skill(self, skill: AgentSkill) -> Self {
        self.with_skill(skill, SkillVisibility::Extended)
    }

    /// Which messages are deduplicated.
    #[must_use]
    pub fn dedupe(mut self, dedupe: Dedupe) -> Self {
        self.dedupe = dedupe;
        self
    }

    /// How long finished tasks are kept.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// How runs are limited and recovered: timeout, attempts, deadline of the task, what happens after a crash.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use a2ad::{Card, server::RunSettings};
    /// let an_hour = RunSettings { deadline: Some(Duration::from_secs(3_600)), ..RunSettings::default() };
    /// Card::new("writer").run_settings(an_hour);
    /// ```
    #[must_use]
    pub fn run_settings(mut self, settings: RunSettings) -> Self {
        self.run_settings = settings;
        self
    }

    /// The same for the tasks of one skill; what is not set there is that of [`run_settings`](Self::run_settings).
    #[must_use]
    pub fn skill_settings(mut self, skill: impl Into<String>, settings: RunSettings) -> Self {
        self.skill_settings.push((skill.into(), settings));
        self
    }
}

impl Card {
    /// Adds what every card needs and this one lacks: a description and a skill.
    pub(super) fn completed(mut self) -> Self {
        if self.info.description.is_empty() {
            self.info.description = format!("The agent {}", self.info.name);
        }
        if self.skills.is_empty() {
            let (id, description) = (self.info.id.clone(), self.info.description.clone());
            return self.skill(id, description);
        }
        self
    }

    /// The agent that does the work of all skills.
    pub(super) fn registered(self, work: &DynAgent) -> RegisteredAgent {
        let skills = self.skill_set(work);
        RegisteredAgent::new(self.info, skills)
            .with_dedupe(self.dedupe)
            .with_retention(self.retention)
            .with_settings(self.settings)
            .with_run_settings(self.run_settings)
    }

    #[cfg(feature = "backends")]
    pub(super) fn has_skills(&self) -> bool {
        !self.skills.is_empty()
    }

    /// The skills of an agent that does the work of all of them.
    fn skill_set(&self, work: &DynAgent) -> SkillSet {
        let skill = |CardSkill { card, visibility }: &CardSkill| {
            let settings = self.skill_settings.iter().rev().find(|(id, _)| *id == card.id);
            Skill {
                visibility: *visibility,
                run: settings.map(|(_, settings)| *settings).unwrap_or_default(),
                ..Skill::new(card.clone(), work.clone())
            }
        };
        SkillSet::shared(work.clone(), self.skills.iter().map(skill))
    }

    fn with_skill(mut self, card: AgentSkill, visibility: SkillVisibility) -> Self {
        self.skills.push(CardSkill { card, visibility });
        self
    }

    /// What is wrong with the execution settings, if anything.
    pub(super) fn invalid_setting(&self) -> Option<ServeError> {
        let error = |method, setting: &str, problem| ServeError::RunSettings {
            agent: self.info.id.clone(),
            method,
            setting: setting.into(),
            problem,
        };
        if let Some((setting, problem)) = self.run_settings.invalid() {
            return Some(error("run_settings", setting, problem));
        }
        self.skill_settings.iter().find_map(|(skill, settings)| {
            if self.skills.iter().all(|known| known.card.id != *skill) {
                return Some(error("skill_settings", &format!("skill {skill:?}"), "is not on the card"));
            }
            let (setting, problem) = settings.invalid()?;
            Some(error("skill_settings", &format!("{setting} of the skill {skill:?}"), problem))
        })
    }
}

impl From<&str> for Card {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl From<String> for Card {
    fn from(id: String) -> Self {
        Self::new(id)
    }
}
