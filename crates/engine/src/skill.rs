//! Skills: what an agent offers, and how one call of it is decided and run.
//!
//! A [`Skill`] has everything that is known about it in one value; a [`SkillSet`] is what one agent has. Which skill a
//! message is for is decided in `select.rs`, what becomes of the message in `call.rs`, which is the only path from a
//! message to the [`Agent`](crate::Agent) that does the work.

mod arguments;
pub(crate) mod call;
mod guards;
mod inner_call;
mod input_property;
mod run_policy;
mod schema;
mod select;
mod set;

use std::sync::Arc;

use protocol::{Json, model::AgentSkill};

pub use arguments::Arguments;
use arguments::takes_text;
pub use guards::{Guard, GuardedCall, Guards};
pub(crate) use inner_call::{Calls, InnerCall};
use input_property::{Takes, input_properties};
pub use run_policy::{RunPolicy, RunSettings};
pub use schema::{DeclaredSchema, LargeCheck, SchemaCheck, SkillSchema};
pub use set::{HiddenSkills, SkillSet};

use crate::agent::DynAgent;

/// A skill of an agent.
#[derive(Clone)]
pub struct Skill {
    /// What the agent card shows, media types included.
    pub card: AgentSkill,
    /// A message with a word that is a keyword of no other skill of the agent is for this one.
    pub keywords: Vec<String>,
    /// What the work gets.
    pub input: SkillInput,
    /// What a data part of the result must be.
    pub output: Option<Arc<dyn SkillSchema>>,
    /// How its tasks are limited and recovered; where it is not set, the settings of the agent apply.
    pub run: RunSettings,
    /// Who sees and calls it.
    pub visibility: SkillVisibility,
    /// What a call has to pass.
    pub guards: Guards,
    /// What runs it.
    pub work: DynAgent,
}

/// What the work of a skill gets.
#[derive(Clone)]
pub enum SkillInput {
    /// The message as it is.
    Message,
    /// One JSON value, made of all parts of the message ([`Turn::arguments`](crate::Turn::arguments)), which this schema
    /// allows; without a schema, any object.
    Arguments(Option<Arc<dyn SkillSchema>>),
    /// The message as it is, and the data in it as [`Turn::arguments`](crate::Turn::arguments), which this schema allows.
    MessageAndArguments(Option<Arc<dyn SkillSchema>>),
}

/// Who sees and calls a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SkillVisibility {
    /// It is on the public card.
    #[default]
    Public,
    /// Only the extended card shows it. It exists for callers who can get that card.
    Extended,
}

impl Skill {
    /// A public skill whose work gets the message.
    pub fn new(card: AgentSkill, work: DynAgent) -> Self {
        Self {
            card,
            keywords: Vec::new(),
            input: SkillInput::Message,
            output: None,
            run: RunSettings::default(),
            visibility: SkillVisibility::default(),
            guards: Guards::default(),
            work,
        }
    }

    /// Its id, unique in its agent.
    pub fn id(&self) -> &str {
        &self.card.id
    }

    /// Whether the public card shows it.
    pub fn is_public(&self) -> bool {
        self.visibility == SkillVisibility::Public
    }

    /// The JSON Schema of its arguments, for cards and documents.
    pub fn input_schema(&self) -> Option<&Json> {
        self.input.schema().map(SkillSchema::text)
    }

    /// The JSON Schema of its result, for cards and documents.
    pub fn output_schema(&self) -> Option<&Json> {
        self.output.as_deref().map(SkillSchema::text)
    }
}

impl std::fmt::Debug for Skill {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Skill").field("id", &self.card.id).finish_non_exhaustive()
    }
}

/// The media types of skills without modes of their own.
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
const ANY: &str = "*/*";

impl SkillInput {
    /// The media types of the parts that have a place in what the work gets. JSON is always one of them.
    pub fn media_types(&self) -> Vec<String> {
        let schema = match self {
            Self::Message | Self::MessageAndArguments(_) => {
                return [JSON, TEXT, ANY].map(String::from).into();
            }
            Self::Arguments(None) => return [JSON, TEXT].map(String::from).into(),
            Self::Arguments(Some(schema)) => schema,
        };
        let properties = input_properties(schema.text());
        let takes_text = schema.required().is_empty() || takes_text(&properties);
        let files = properties.iter().filter_map(|property| match &property.takes {
            Takes::Bytes { media_type, .. } => Some(media_type.clone().unwrap_or_else(|| ANY.into())),
            Takes::Url { .. } | Takes::Text | Takes::Choice => None,
        });
        let mut types: Vec<String> = Vec::new();
        for kind in [JSON.to_owned()].into_iter().chain(takes_text.then(|| TEXT.to_owned())).chain(files) {
            if !types.contains(&kind) {
                types.push(kind);
            }
        }
        types
    }

    /// What the arguments must be.
    pub(crate) fn schema(&self) -> Option<&dyn SkillSchema> {
        match self {
            Self::Message => None,
            Self::Arguments(schema) | Self::MessageAndArguments(schema) => schema.as_deref(),
        }
    }
}
