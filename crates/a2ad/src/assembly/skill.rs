//! A skill that is defined by itself, with one backend.

use std::{fmt, sync::Arc};

use engine::{OnCrash, RegisteredAgent, RunSettings, Skill};
use outbound::{backend::Backend, schema::Schema, skill::Interface};
use protocol::model::AgentSkill;

/// A skill with its backend.
#[derive(Clone, Debug)]
pub struct SkillConfig {
    /// Unique among the skills that are defined by themselves.
    pub id: String,
    /// What does the work.
    pub backend: SkillBackend,
    /// For people, on the card; `None`: the id, or that of a built-in agent.
    pub name: Option<String>,
    /// For the card. This and the next four: `None` keeps the backend's own value.
    pub description: Option<String>,
    /// For the card, and keywords of the choice by text.
    pub tags: Option<Vec<String>>,
    /// For the card.
    pub examples: Option<Vec<String>>,
    /// What the arguments must be.
    pub input_schema: Option<Schema>,
    /// What a data part of the result must be.
    pub output_schema: Option<Schema>,
    /// What the backend gets of a message, and the media types on the card.
    pub interface: Interface,
    /// The same for every agent that has the skill.
    pub runs: RunSettings,
}

/// The backend of a skill.
#[derive(Clone)]
pub enum SkillBackend {
    /// An agent of this process.
    Builtin(Arc<Builtin>),
    /// A tool of an MCP server.
    Mcp {
        /// The name of the server.
        server: String,
        /// The name of the tool.
        tool: String,
    },
    /// An HTTP function or a command.
    Ready {
        /// What it is called: `http` or `command`.
        kind: &'static str,
        /// The system.
        backend: Arc<dyn Backend>,
        /// What happens after a crash unless it is set.
        on_crash: OnCrash,
    },
}

/// A built-in agent.
pub struct Builtin {
    /// The agent; its id is the name.
    pub agent: RegisteredAgent,
    /// The same as one skill of another agent.
    pub skill: Skill,
}

impl SkillConfig {
    /// A skill with the values of its backend.
    pub fn new(id: impl Into<String>, backend: SkillBackend) -> Self {
        Self {
            id: id.into(),
            backend,
            name: None,
            description: None,
            tags: None,
            examples: None,
            input_schema: None,
            output_schema: None,
            interface: Interface::default(),
            runs: RunSettings::default(),
        }
    }

    /// The skill as the card shows it: the built-in agent's values unless configured.
    pub(super) fn present(&self, own: AgentSkill) -> AgentSkill {
        let name = if self.id == own.id { own.name } else { self.id.clone() };
        AgentSkill {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or(name),
            description: self.description.clone().unwrap_or(own.description),
            tags: self.tags.clone().unwrap_or(own.tags),
            examples: self.examples.clone().unwrap_or(own.examples),
            input_modes: self.interface.input_modes.clone().unwrap_or(own.input_modes),
            output_modes: self.interface.output_modes.clone().unwrap_or(own.output_modes),
            ..own
        }
    }
}

impl SkillBackend {
    /// What it is called in configurations.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Builtin(_) => "builtin",
            Self::Mcp { .. } => "mcp",
            Self::Ready { kind, .. } => kind,
        }
    }
}

impl fmt::Debug for SkillBackend {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin(builtin) => write!(out, "builtin {}", builtin.id()),
            Self::Mcp { server, tool } => write!(out, "mcp {server}/{tool}"),
            Self::Ready { kind, .. } => out.write_str(kind),
        }
    }
}

impl Builtin {
    /// The id of the agent.
    pub fn id(&self) -> &str {
        &self.agent.info().id
    }
}
