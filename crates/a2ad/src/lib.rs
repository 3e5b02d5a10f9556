//! a2ad as a library: serves your own agents in every version of A2A, with durable tasks.
//!
//! ```no_run
//! use a2ad::{Outcome, Result, Server, Turn, agent_fn};
//!
//! async fn shout(turn: Turn) -> Result<Outcome> {
//!     let text = turn.text();
//!     if text.is_empty() {
//!         return Ok(Outcome::ask("What shall I shout?"));
//!     }
//!     turn.progress("shouting").await?;
//!     Ok(Outcome::artifact("shout", text.to_uppercase()))
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     Server::builder().agent("shout", agent_fn(shout)).serve("127.0.0.1:4243").await
//! }
//! ```
//!
//! - [`Agent`] does the work: it takes a [`Turn`], records progress, artifacts and checkpoints through it, and returns
//!   an [`Outcome`]. [`agent_fn`] makes an agent of an async function. The module [`agent`] shows one that survives crashes.
//! - [`Server::builder`] registers agents and returns an axum [`Router`](server::Router) to mount into any app, or serves
//!   by itself.
//! - With the feature `backends`, `mcp` or `openapi`, HTTP functions, commands, MCP servers and OpenAPI documents are skills of
//!   agents; see the module `backend`.
//! - [`call_agent`] sends one message to a remote agent; [`Client`] and [`Follow`](client::Follow) cover the other
//!   operations, and [`text`](client::text) extracts the text of a result.
//! - [`testing`] starts a server inside a test.
//! - [`explain()`] converts a document of one version to all others.
//!
//! Every type that these functions take or return is in one of the modules, also where it comes from another crate.
//!
//! The program of the same name adds a configuration file and a command line; it is the crate `a2ad-cli`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod admin_token;
#[cfg(feature = "backends")]
#[cfg_attr(
    not(all(feature = "mcp", feature = "openapi")),
    allow(unused, reason = "parts of it are for MCP servers and OpenAPI documents")
)]
mod assembly;
mod audit;
#[cfg(feature = "backends")]
pub mod backend;
mod banner;
#[cfg(feature = "backends")]
mod issuer_keys;
mod listeners;
mod local;
mod port_holder;
mod probe;
#[cfg(feature = "backends")]
mod push;
mod serve;
pub mod server;
#[cfg(feature = "mcp")]
mod stdio;
mod store_keys;
pub mod testing;
mod watchdog;

/// Not part of the API, and may change with any version: what the program in `crates/a2ad-cli` shares with
/// [`Builder::serve`]. The program starts servers from a configuration file, which has more settings than [`Builder`],
/// and it probes ports to explain failed calls.
#[doc(hidden)]
pub mod internal {
    #[cfg(feature = "backends")]
    pub mod assembly {
        pub use crate::assembly::*;
    }
    #[cfg(feature = "backends")]
    pub use crate::issuer_keys::IssuerKeyFetcher;
    #[cfg(feature = "mcp")]
    pub use crate::stdio::{StdioError, serve_stdio};
    pub use crate::{
        admin_token::FILE as ADMIN_TOKEN_FILE,
        audit::{AuditFiles, AuditLog, AuditOptions, FileLimits, default_file as default_audit_file},
        listeners::{ListenAddress, Listeners, audiences, is_loopback},
        local::LocalServer,
        probe::{ProbeResult, get as probe},
        serve::{ReloadedSettings, SHUTDOWN_LIMIT, Settings, serve},
    };
}

pub use agent::{Agent, Outcome, Turn, agent_fn};
pub use client::{Client, call_agent};
#[doc(inline)]
pub use engine::AgentError as Error;
pub use model::{Artifact, Message, Part};
pub use outbound::agents;
pub use server::{Builder, Card, ServeError, Server};

/// The result of an agent, and of everything else in this library that can fail for several reasons.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Shows a message, task, event, request, response, error or card in every dialect, with what is translated, carried in
/// metadata, defaulted or lost. For an event stream or lines of JSON, every document is shown.
///
/// ```
/// let shown = a2ad::explain(r#"{"role":"user","parts":[{"type":"text","text":"hello"}]}"#)?;
/// assert!(shown.starts_with("a message of draft"));
/// assert!(a2ad::explain("{}").is_err());
/// # Ok::<(), a2ad::explain::Error>(())
/// ```
pub fn explain(input: &str) -> Result<String, explain::Error> {
    protocol::explain::explain(input, engine::Clock::system().now())
}

/// Why [`explain()`] cannot show a document.
pub mod explain {
    pub use protocol::explain::Error;
}

/// What an agent implements and uses.
///
/// An agent that goes on where it was after a crash: [`Turn::step`] returns the recorded output of a step that an earlier
/// attempt has finished, and [`Turn::saved`] the last checkpoint.
///
/// ```
/// use a2ad::{
///     Outcome, Result, Turn, agent_fn,
///     agent::{ExecutionPolicy, OnCrash},
/// };
///
/// async fn order(key: String) -> Result<u32> {
///     // Calls a shop, which knows by the key if it has this order already.
///     Ok(key.len() as u32)
/// }
///
/// async fn buy(turn: Turn) -> Result<Outcome> {
///     let number = turn.step("order", order(turn.step_key("order"))).await?;
///     let written: u32 = turn.saved()?.unwrap_or(0);
///     for page in written + 1..=3 {
///         // The page and the checkpoint are one commit, and on disk when this returns.
///         turn.record().chunk("report", format!("page {page}\n")).save(&page).commit().await?;
///     }
///     Ok(Outcome::done_with(format!("order {number}")))
/// }
///
/// let agent = agent_fn(buy).with_policy(ExecutionPolicy::default().with_on_crash(OnCrash::Resume));
/// ```
pub mod agent {
    pub use bytes::Bytes;
    pub use engine::{
        Agent, AgentError, AgentFn, AgentResult, CallQuestion, CallResult, Conversation, DynAgent,
        Error as ConversationError, ExecutionPolicy, IntoOutcome, Lost, OnCrash, Outcome, Parts, Record,
        Recording, STOP_GRACE, Scope, ScopeParts, Turn, Update, agent_fn,
    };
    pub use tokio::time::Instant;
    pub use tokio_util::sync::CancellationToken;
}

/// Messages, tasks and events, the same for every version of the protocol.
pub mod model {
    pub use protocol::{
        Artifact, ArtifactId, ConfigId, Content, ContextId, Error, ErrorKind, Event, Json, Message,
        MessageId, Part, PushConfig, Role, Task, TaskId, TaskState, TaskStatus, Timestamp, Violation,
        model::{ArtifactUpdate, PushAuth, Secret, StatusUpdate},
    };
}

/// The parts of an agent card.
pub mod card {
    pub use protocol::{
        AgentCard,
        model::{
            AgentCapabilities, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
            ApiKeyLocation, OAuthFlow, SecurityRequirement, SecurityScheme,
        },
    };
}

/// Calls to remote agents.
pub mod client {
    pub use ::client::{
        Client, ClientOptions, ClientTls, ClientTlsError, Error, EventStream, Follow, FollowEvent, FoundCard,
        SendReply, Transport, TransportError, call_agent, find_card, text, transport,
    };
    pub use http::{HeaderMap, HeaderValue, StatusCode};
    pub use protocol::{
        CancelTask, Dialect, GetExtendedCard, GetTask, ListTasks, PushConfigPage, PushConfigQuery,
        PushConfigRef, SendMessage, SubscribeToTask, TaskPage,
    };
}

/// The settings of a compatibility profile.
pub mod profile {
    pub use engine::TaskPolicy;
    pub use inbound::{AuthForm, CardForm, FailedReply, Profile, ReplyForm};
    pub use protocol::{
        dialect::{CardStyle, Leniency, Style},
        error::{ErrorRow, GrpcStatus},
    };
}
