//! a2ad as a library: agents of your own, served in every generation of A2A with tasks that survive a crash.
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
//! - [`Agent`] is what does the work: it takes a [`Turn`] and says [`Updates`] until its [`Outcome`].
//! - [`Server::builder`] takes agents and gives an axum [`Router`] to mount into any app, or serves by itself.
//! - [`call_agent`] asks an agent elsewhere one question; [`Client`] and [`Follow`] do the rest, and [`text`] reads what
//!   comes of it.
//! - [`explain()`] shows what one generation says in the words of the others.
//!
//! Whatever these take or give has a name here, also where it comes from another crate.
//!
//! The binary of the same name is this library with a configuration file and a command line.

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

/// All that the binary does.
#[doc(hidden)]
pub use cli::run as main;

// What an agent is made of.
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

// The agents that come along, and how they present themselves.
pub use engine::{AgentInfo, RegisteredAgent};
pub use outbound::agents;

// What serves it.
pub use axum::Router;
pub use inbound::{
    AcceptedVersions, AuthForm, CardForm, CardShape, ExtendedCard, FailedReply, Profile, ReplyForm,
};
pub use serve::ServeError;
pub use server::{Builder, Card, Server};
pub use store::OpenError;

// The knobs of a profile.
pub use engine::TaskPolicy;
pub use protocol::{
    Dialect, ErrorKind, ErrorTable,
    dialect::{CardStyle, Leniency, Style},
    error::{Grpc as GrpcStatus, Row as ErrorRow},
};

// What calls others, and what the two speak of.
pub use client::{
    Client, Error as ClientError, EventStream, Follow, FollowEvent, FoundCard, Options as ClientOptions,
    call_agent, find_card, text,
};
pub use explain::run as explain;
pub use http::{HeaderMap, StatusCode};
pub use protocol::{
    CancelTask, ConfigId, Error as ProtocolError, Event, GetExtendedCard, GetTask, ListTasks, Operation,
    OperationKind, PushConfig, PushConfigPage, PushConfigQuery, PushConfigRef, Reply, SendMessage,
    SubscribeToTask, TaskPage, Violation,
    model::{ArtifactUpdate, PushAuth, Secret, StatusUpdate},
};

// What a card is made of.
pub use protocol::{
    AgentCard,
    model::{
        AgentCapabilities, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
        ApiKeyLocation, OAuthFlow, SecurityRequirement, SecurityScheme,
    },
};
