//! The A2A model, its operations and errors, and each wire form.
//!
//! Everything here is pure: bytes become values and values become bytes. There is no I/O, no clock and no
//! async. The model has no serde derives: each wire form is a codec in [`dialect`] that depends on the model,
//! not the other way round.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod dialect;
pub mod error;
pub mod explain;
pub mod grpc;
pub mod json;
pub mod jsonrpc;
pub mod model;
mod nearest;
pub mod operation;
pub mod push_record;
pub mod rest;
mod trace_context;

pub use dialect::Dialect;
pub use error::{Error, ErrorKind, ErrorTable, Violation};
pub use json::Json;
pub use model::{
    AgentCard, Artifact, ArtifactId, ConfigId, Content, ContextId, Event, Message, MessageId, Part,
    PushConfig, Role, Task, TaskId, TaskState, TaskStatus, Timestamp,
};
pub use nearest::{hint, nearest, nearest_few};
pub use operation::{
    CancelTask, GetExtendedCard, GetTask, ListTasks, Operation, OperationKind, PushConfigPage,
    PushConfigQuery, PushConfigRef, Reply, SendMessage, SubscribeToTask, TaskPage,
};
pub use trace_context::TraceContext;
