//! What an agent lists: skills that are defined by themselves, and what an MCP server or an OpenAPI document has.

use std::fmt;

use super::{SkillBackend, SkillConfig};

/// An entry of an agent's list of skills.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "made when a file is read, and few at a time")]
pub enum SkillSource {
    /// A skill that is defined by itself.
    Own(SkillConfig),
    /// `mcp:SERVER/TOOL` or `openapi:DOCUMENT/OPERATION`
    Provided {
        /// Who has the skills.
        by: Provider,
        /// Which of them.
        selection: Selection,
    },
}

/// What has several skills: an MCP server or an OpenAPI document, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// Its tools are skills.
    Mcp(String),
    /// Its operations are skills.
    OpenApi(String),
}

/// What is selected of an MCP server or an OpenAPI document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Everything it has.
    All,
    /// What has this name.
    One(String),
}

/// How an entry of an agent's list is written.
#[derive(Debug, PartialEq, Eq)]
pub enum Selector<'a> {
    /// `*`
    Everything,
    /// The id of a skill that is defined by itself.
    Skill(&'a str),
    /// `mcp:SERVER/TOOL`, `openapi:DOCUMENT/OPERATION`, or `*` after the slash.
    Provided(Provider, Selection),
}

impl<'a> Selector<'a> {
    /// Reads an entry.
    ///
    /// # Errors
    ///
    /// It begins like a selector and is none; the text says what is expected.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        match text.split_once(':') {
            _ if text == "*" => Ok(Self::Everything),
            Some(("mcp", rest)) => Self::provided(text, rest, Provider::Mcp),
            Some(("openapi", rest)) => Self::provided(text, rest, Provider::OpenApi),
            _ => Ok(Self::Skill(text)),
        }
    }

    fn provided(text: &str, rest: &str, provider: fn(String) -> Provider) -> Result<Self, String> {
        let (name, item) = rest.split_once('/').unwrap_or((rest, ""));
        let by = provider(name.to_owned());
        let selection = match item {
            "*" => Selection::All,
            one if one.is_empty() || one.contains('*') => {
                let kind = by.kind();
                return Err(format!("{text:?}: expected {kind}:NAME/ITEM or {kind}:NAME/*"));
            }
            one => Selection::One(one.to_owned()),
        };
        Ok(Self::Provided(by, selection))
    }
}

impl SkillSource {
    /// The MCP server and the tool, if it is one tool.
    pub(super) fn named_tool(&self) -> Option<(&str, &str)> {
        match self {
            Self::Own(SkillConfig { backend: SkillBackend::Mcp { server, tool }, .. })
            | Self::Provided { by: Provider::Mcp(server), selection: Selection::One(tool) } => {
                Some((server, tool))
            }
            Self::Own(_) | Self::Provided { .. } => None,
        }
    }
}

impl fmt::Display for SkillSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(skill) => out.write_str(&skill.id),
            Self::Provided { by, selection } => write!(out, "{}:{}/{selection}", by.kind(), by.name()),
        }
    }
}

impl Provider {
    /// How selectors and configuration files call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mcp(_) => "mcp",
            Self::OpenApi(_) => "openapi",
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Mcp(name) | Self::OpenApi(name) => name,
        }
    }
}

impl Selection {
    pub(super) fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == name,
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::All => "*",
            Self::One(name) => name,
        })
    }
}
