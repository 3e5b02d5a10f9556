//! The task engine: decides and records every task state transition and runs the agents.
//!
//! No network and no SQL here: the engine owns the traits [`Store`] and [`Agent`], and other crates implement
//! them. A task is an event log: every change is appended and committed before any client can observe it, and
//! the task is the fold of its log.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
pub mod agent;
mod catalog;
mod clock;
mod context;
pub mod cursor;
mod engine;
mod error;
mod expire;
mod feed;
pub mod ids;
pub mod log;
mod memory;
pub mod metrics;
mod operations;
mod origin;
pub mod push;
mod retention;
mod runner;
mod seal;
mod skill;
pub mod store;
mod stream;
pub mod task;
mod trace;

pub use access::access_changes::AccessChanges;
pub use access::agent_switches::{AgentSwitch, SwitchError, SwitchState};
pub use access::api_keys::{
    ApiKey, ApiKeyError, ApiKeys, KeysNotLoaded, NewApiKey, is_valid_key_prefix, random_text,
};
pub use access::principal_caps::{CapReached, PrincipalCaps};
pub use access::scope::{Scope, ScopeParts};
pub use access::tenant::{DEFAULT_TENANT, Tenant};
pub use agent::{
    Agent, AgentError, AgentFn, AgentResult, CallQuestion, CallResult, DynAgent, ExecutionPolicy,
    IntoOutcome, Lost, OnCrash, OpenQuestion, Outcome, Parts, Record, Recording, Turn, Update, agent_fn,
};
pub use catalog::search;
pub use catalog::{
    AgentInfo, AgentSettings, AuthForm, AuthMethod, AuthMethods, CardCache, CardDocument, CardForm, CardKey,
    Catalog, CurrentCatalog, EndUser, ExtendedCard, FailedReply, FoundAgent, Profile, RegisteredAgent,
    ReplyForm,
};
pub use clock::Clock;
pub use context::{Conversation, HistoryLimit};
pub use engine::{Call, CallResponse, Engine, ResponseNote, Resume, TaskPolicy};
pub use error::{Error, Result};
pub use feed::{Feed, Watcher};
pub use memory::{MemoryBudget, Reservation, SharedBytes};
pub use operations::PendingReply;
pub use operations::idempotency::Dedupe;
pub use operations::operators::{ListedTask, OperatorList, OperatorTasks};
pub use origin::Origin;
pub use retention::Retention;
pub use runner::{Limits, STOP_GRACE};
pub use seal::Sealer;
pub use skill::{
    Arguments, DeclaredSchema, Guard, GuardedCall, Guards, HiddenSkills, LargeCheck, RunPolicy, RunSettings,
    SchemaCheck, Skill, SkillInput, SkillSchema, SkillSet, SkillVisibility,
};
pub use store::Store;
pub use stream::{Frame, StreamEnd, StreamItem, TaskStream};
pub use trace::{begin_trace, random_span_id};
