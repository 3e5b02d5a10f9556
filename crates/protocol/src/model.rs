//! The one model every wire form is turned into and out of.
//!
//! Names follow A2A 1.0, the richest generation. Optional fields that are absent, empty or null on the wire
//! are the same thing here. Metadata and data content are raw [`Json`](crate::Json), never trees.

mod card;
mod event;
mod id;
mod message;
mod push;
mod task;
mod time;

pub use card::*;
pub use event::{ArtifactUpdate, Event, StatusUpdate};
pub use id::{ArtifactId, ConfigId, ContextId, MessageId, TaskId};
pub use message::{Content, Message, Part, Role};
pub use push::{PushAuth, PushConfig, Secret};
pub use task::{Artifact, Task, TaskState, TaskStatus};
pub use time::Timestamp;
