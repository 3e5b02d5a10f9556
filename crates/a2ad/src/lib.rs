//! a2ad as a library: serves your own agents in every generation of A2A, with durable tasks.
//!
//! ```no_run
//! use a2ad::{Agent, Artifact, BoxFuture, Outcome, Part, Server, Turn, Updates};
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
//! - [`Server::builder`] registers agents and returns an axum [`Router`] to mount into any app, or serves by itself.
//! - [`call_agent`] sends one message to a remote agent; [`Client`] and [`Follow`] cover the other operations, and
//!   [`text`] extracts the text of a result.
//! - [`explain()`] converts a document of one generation to all others.
//!
//! Every type that these functions take or return is re-exported here, also where it comes from another crate.
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
mod server;

/// The binary's entry point.
#[doc(hidden)]
pub use cli::run as main;

// The types an agent implements and uses.
pub use bytes::Bytes;
pub use engine::{
    Agent, Conversation, Dedupe, Error as EngineError, ExecutionPolicy, Limits, OnCrash, Outcome, Retention,
    Scope, ScopeParts, Turn, Update, Updates,
};
pub use futures_util::future::BoxFuture;
pub use protocol::{
    Artifact, ArtifactId, Content, ContextId, Json, Message, MessageId, Part, Role, Task, TaskId, TaskState,
    TaskStatus, Timestamp,
};
pub use tokio::time::Instant;
pub use tokio_util::sync::CancellationToken;

// The built-in agents and how an agent is described.
pub use engine::{AgentInfo, RegisteredAgent};
pub use outbound::agents;

// The server.
pub use axum::Router;
pub use inbound::{
    AcceptedVersions, AuthForm, CardForm, CardShape, ExtendedCard, FailedReply, Profile, ReplyForm,
};
pub use serve::ServeError;
pub use server::{Builder, Card, Server};
pub use store::OpenError;

// The settings of a compatibility profile.
pub use engine::TaskPolicy;
pub use protocol::{
    Dialect, ErrorKind, ErrorTable,
    dialect::{CardStyle, Leniency, Style},
    error::{ErrorRow, GrpcStatus},
};

// The client, and the operations it shares with the server.
pub use client::{
    Client, ClientOptions, Error as ClientError, EventStream, Follow, FollowEvent, FoundCard, call_agent,
    find_card, text,
};
pub use explain::run as explain;
pub use http::{HeaderMap, StatusCode};
pub use protocol::{
    CancelTask, ConfigId, Error as ProtocolError, Event, GetExtendedCard, GetTask, ListTasks, Operation,
    OperationKind, PushConfig, PushConfigPage, PushConfigQuery, PushConfigRef, Reply, SendMessage,
    SubscribeToTask, TaskPage, Violation,
    model::{ArtifactUpdate, PushAuth, Secret, StatusUpdate},
};

// The parts of an agent card.
pub use protocol::{
    AgentCard,
    model::{
        AgentCapabilities, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
        ApiKeyLocation, OAuthFlow, SecurityRequirement, SecurityScheme,
    },
};
