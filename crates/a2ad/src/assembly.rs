//! Agents of tools: MCP servers, OpenAPI documents, HTTP functions and commands become skills, and lists of skills become
//! agents.
//!
//! [`BackendConfigs`] says what is started; [`Backends`] is what runs, and knows which skills there are at the moment.
//! A [`SkillAgent`] lists skills ([`SkillSource`]) and becomes the agent that the engine runs. When the tools of a server
//! change ([`Backends::changed`]), its owner makes the agents again and puts them into use. The program `a2ad` reads all of
//! this from its configuration file; in the library, the builder makes it (`server/backends.rs`).
//!
//! Nothing here reads a configuration file.

mod agent;
mod backends;
#[cfg(feature = "openapi")]
mod document;
#[cfg(feature = "mcp")]
mod mcp_server;
mod reports;
mod resolved_skill;
mod skill;
mod source;
mod unlisted_tool;

#[cfg(feature = "mcp")]
pub use agent::missing_tools;
pub use agent::{SkillAgent, hidden_skills};
#[cfg(all(feature = "mcp", feature = "openapi"))]
pub use backends::Fetch;
pub use backends::{BackendConfigs, Backends};
#[cfg(feature = "openapi")]
pub use document::{Document, DocumentError, document_skills};
pub use reports::Reports;
pub use skill::{Builtin, SkillBackend, SkillConfig};
pub use source::{Provider, Selection, Selector, SkillSource};
