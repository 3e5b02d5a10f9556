//! The data model shared by every wire form: each codec decodes into it and encodes from it.
//!
//! Names follow A2A 1.0, the richest version. An optional field that is absent, empty or null on the wire
//! is `None` here. Metadata and data content are kept as raw [`Json`](crate::Json) text, never as a parsed
//! tree.

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
