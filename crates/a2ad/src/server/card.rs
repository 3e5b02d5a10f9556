//! What the library's user says about an agent: its card, its switches, how its tasks are kept.

use engine::{Dedupe, Retention};
use inbound::{AgentSettings, ExtendedCard};
use protocol::model::{AgentExtension, AgentSkill};

/// How an agent presents itself, what it lets callers do, and how its tasks are kept.
#[derive(Clone, Debug)]
pub struct Card {
    pub(super) profile: engine::AgentInfo,
    pub(super) settings: AgentSettings,
    pub(super) dedupe: Dedupe,
    pub(super) retention: Retention,
}

impl Card {
    /// A card that says nothing but the agent's id, which stands in its path.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        let modes = vec!["text/plain".to_owned(), "application/json".to_owned()];
        let profile = engine::AgentInfo {
            name: id.clone(),
            description: String::new(),
            version: "1.0.0".into(),
            skills: Vec::new(),
            input_modes: modes.clone(),
            output_modes: modes,
            id,
        };
        let (dedupe, retention) = (Dedupe::default(), Retention::default());
        Self { profile, settings: AgentSettings::default(), dedupe, retention }
    }

    /// Its name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.profile.name = name.into();
        self
    }

    /// What it is for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.profile.description = description.into();
        self
    }

    /// The agent's own version; `1.0.0` unless this says otherwise.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.profile.version = version.into();
        self
    }

    /// Adds something it can do, by id and description.
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

    /// Adds something it can do, with all that can be said about it.
    #[must_use]
    pub fn full_skill(mut self, skill: AgentSkill) -> Self {
        self.profile.skills.push(skill);
        self
    }

    /// Media types it takes; text and JSON unless this says otherwise.
    #[must_use]
    pub fn input_modes<S: Into<String>>(mut self, modes: impl IntoIterator<Item = S>) -> Self {
        self.profile.input_modes = modes.into_iter().map(Into::into).collect();
        self
    }

    /// Media types it gives; text and JSON unless this says otherwise.
    #[must_use]
    pub fn output_modes<S: Into<String>>(mut self, modes: impl IntoIterator<Item = S>) -> Self {
        self.profile.output_modes = modes.into_iter().map(Into::into).collect();
        self
    }

    /// Whether it streams; it does unless this says otherwise.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.settings.streaming = streaming;
        self
    }

    /// Adds an extension of the protocol that it speaks; callers of 1.0 have to name one that is required.
    #[must_use]
    pub fn extension(mut self, extension: AgentExtension) -> Self {
        self.settings.extensions.push(extension);
        self
    }

    /// Whether a part of a media type that is not among [`Card::input_modes`] is refused; it is unless this says
    /// otherwise.
    #[must_use]
    pub fn check_media_types(mut self, check: bool) -> Self {
        self.settings.check_media_types = check;
        self
    }

    /// Who is shown its extended card; nobody unless this says otherwise.
    #[must_use]
    pub fn extended_card(mut self, shown: ExtendedCard) -> Self {
        self.settings.extended_card = shown;
        self
    }

    /// Adds something it can do that only its extended card shows.
    #[must_use]
    pub fn extended_skill(mut self, skill: AgentSkill) -> Self {
        self.settings.extended_skills.push(skill.id.clone());
        self.full_skill(skill)
    }

    /// Which of its messages run once however often they are sent.
    #[must_use]
    pub fn dedupe(mut self, dedupe: Dedupe) -> Self {
        self.dedupe = dedupe;
        self
    }

    /// How long its tasks are kept.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
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
