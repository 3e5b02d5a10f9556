//! Everything that leaves the process: skills with a backend, the guarded dialler, child processes, webhooks, and the
//! built-in agents.
//!
//! A skill with a backend ([`skill::BackendSkill`]) has exactly one [`backend::Backend`], which does the work of a skill of
//! the engine. Backends open connections only with [`dial::Dialer`] and start processes only with [`process::Launcher`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod agents;
#[cfg(feature = "backends")]
pub mod backend;
#[cfg(feature = "backends")]
pub mod backends;
#[cfg(feature = "backends")]
pub mod dial;
pub mod masked;
#[cfg(feature = "backends")]
pub mod process;
#[cfg(feature = "backends")]
pub mod schema;
#[cfg(feature = "backends")]
pub mod skill;
pub mod webhooks;
