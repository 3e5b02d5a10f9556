//! a2ad as a library: serves your own agents in every generation of A2A, with durable tasks.
//!
//! ```no_run
//! use a2ad::{Agent, Artifact, Outcome, Part, Server, Turn, Updates, agent::BoxFuture};
//!
//! struct Shout;
//!
//! impl Agent for Shout {
//!     fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
//!         Box::pin(async move {
//!             let loud = turn.message.text().to_uppercase();
//!             out.artifact(Artifact::new("shout", vec![Part::text(loud)])).await;
//!             Outcome::done()
//!         })
//!     }
//! }
//!
//! # async fn serve() -> Result<(), a2ad::ServeError> {
//! Server::builder().agent("shout", Shout).serve(([127, 0, 0, 1], 4242).into()).await
//! # }
//! ```
//!
//! - [`Agent`] does the work: it takes a [`Turn`] and sends [`Updates`] until it returns its [`Outcome`].
//! - [`Server::builder`] registers agents and returns an axum [`Router`](server::Router) to mount into any app, or serves
//!   by itself.
//! - [`call_agent`] sends one message to a remote agent; [`Client`] and [`Follow`](client::Follow) cover the other
//!   operations, and [`text`](client::text) extracts the text of a result.
//! - [`explain()`] converts a document of one generation to all others.
//!
//! Every type that these functions take or return is in one of the modules, also where it comes from another crate.
//!
//! The binary of the same name adds a configuration file and a command line.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod banner;
mod check;
mod cli;
mod config;
pub mod explain;
pub mod logging;
mod nearest;
mod port_holder;
mod probe;
pub mod selftest;
mod serve;
pub mod server;

/// The binary's entry point.
#[doc(hidden)]
pub use cli::run as main;

pub use agent::{Agent, Outcome, Turn, Updates};
pub use client::{Client, call_agent};
pub use explain::run as explain;
pub use model::{Artifact, Message, Part};
pub use outbound::agents;
pub use server::{Builder, Card, ServeError, Server};

/// What an agent implements and uses.
pub mod agent {
    pub use bytes::Bytes;
    pub use engine::{
        Agent, Conversation, Error, ExecutionPolicy, OnCrash, Outcome, Scope, ScopeParts, Turn, Update,
        Updates,
    };
    pub use futures_util::future::BoxFuture;
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
        Client, ClientOptions, Error, EventStream, Follow, FollowEvent, FoundCard, call_agent, find_card,
        text,
    };
    pub use http::{HeaderMap, StatusCode};
    pub use protocol::{
        CancelTask, Dialect, GetExtendedCard, GetTask, ListTasks, Operation, OperationKind, PushConfigPage,
        PushConfigQuery, PushConfigRef, Reply, SendMessage, SubscribeToTask, TaskPage,
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
