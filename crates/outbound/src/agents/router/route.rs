//! One agent of a router, and what a message must be to choose it.

use engine::DynAgent;
use protocol::{Json, model::AgentSkill};

/// What the arguments of a skill must be.
pub trait InputSchema: Send + Sync {
    /// The JSON Schema.
    fn text(&self) -> &Json;
    /// The names of the required properties.
    fn required(&self) -> &[String];
    /// Whether these arguments are allowed. `steps` is how much checks may still cost, and what the check has cost is taken
    /// from it; a step is one subschema on one value. `None`: that is not enough to tell.
    fn allows(&self, arguments: &Json, steps: &mut u64) -> Option<bool>;
}

/// One agent of a router.
pub struct Route {
    pub(super) skill: AgentSkill,
    pub(super) agent: DynAgent,
    /// In lower case.
    pub(super) keywords: Vec<String>,
    pub(super) input_schema: Option<Box<dyn InputSchema>>,
    pub(super) known_callers_only: bool,
}

impl Route {
    /// A route to the agent of a skill.
    pub fn new(skill: AgentSkill, agent: DynAgent) -> Self {
        Self { skill, agent, keywords: Vec::new(), input_schema: None, known_callers_only: false }
    }

    /// Adds routing keywords: a message with a word that is a keyword of no other route chooses this one.
    #[must_use]
    pub fn with_keywords(mut self, words: impl IntoIterator<Item = String>) -> Self {
        self.keywords.extend(words.into_iter().map(|word| word.to_lowercase()));
        self
    }

    /// Sets what the arguments must be: a data part that the schema of no other route allows chooses this one.
    #[must_use]
    pub fn with_input_schema(self, schema: impl InputSchema + 'static) -> Self {
        Self { input_schema: Some(Box::new(schema)), ..self }
    }

    /// Only callers with a credential may use the skill; for others it does not exist.
    #[must_use]
    pub fn for_known_callers(self) -> Self {
        Self { known_callers_only: true, ..self }
    }

    pub(super) fn is(&self, skill: &str) -> bool {
        self.skill.id == skill
    }
}
