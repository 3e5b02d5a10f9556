//! A skill with a backend: what the engine needs of it, and the agent that does its work.
//!
//! The engine finds and checks the arguments of a call and checks its result; a [`Backend`] is called in between. The agent
//! here turns the backend's reply into the outcome of the turn. What is specific to a kind of backend is not here.

mod measured_call;
#[cfg(any(feature = "mcp", feature = "openapi"))]
pub(crate) mod name;
mod schemas_extension;

use std::sync::Arc;

use engine::{
    Agent, AgentError, AgentResult, DynAgent, ExecutionPolicy, OnCrash, Outcome, Scope, Skill, SkillInput,
    SkillSchema, Turn, metrics::BackendKind,
};
use protocol::{Artifact, Json, Message, Part, TaskId, json::write::Writer, model::AgentSkill};

use crate::{
    backend::{Backend, Call, CallRecord, Failure, Kept, Question, Reply, in_one_line, result_name, text_of},
    schema::Schema,
};
use measured_call::{CallEnd, MeasuredCall};
pub use schemas_extension::{SCHEMAS_EXTENSION, schemas_extension};

/// The media type of tools' arguments and results.
const JSON: &str = "application/json";

/// What a skill with a backend is made of. Cheap to clone.
#[derive(Clone)]
pub struct BackendSkill {
    /// Id, unique within its agent.
    pub id: String,
    /// For the card.
    pub description: String,
    /// For the card.
    pub tags: Vec<String>,
    /// For the card.
    pub examples: Vec<String>,
    /// What the arguments must be; `None`: any object.
    pub input_schema: Option<Schema>,
    /// What a data part of the result must be.
    pub output_schema: Option<Schema>,
    /// What to do with a call whose process crashed.
    pub on_crash: OnCrash,
    /// The system behind it.
    pub backend: Arc<dyn Backend>,
    /// Where its calls are recorded.
    pub record: Arc<CallRecord>,
}

impl BackendSkill {
    /// A skill without schemas, tags and examples, which has a record of its own.
    pub fn new(id: &str, description: String, on_crash: OnCrash, backend: Arc<dyn Backend>) -> Self {
        Self {
            id: id.to_owned(),
            description,
            tags: Vec::new(),
            examples: Vec::new(),
            input_schema: None,
            output_schema: None,
            on_crash,
            backend,
            record: Arc::default(),
        }
    }
}

impl From<BackendSkill> for Skill {
    fn from(skill: BackendSkill) -> Self {
        let card = AgentSkill {
            name: skill.id.clone(),
            id: skill.id,
            description: skill.description,
            tags: skill.tags,
            examples: skill.examples,
            input_modes: vec![JSON.into()],
            output_modes: vec![JSON.into()],
            security_requirements: Vec::new(),
        };
        let work = BackendAgent { backend: skill.backend, on_crash: skill.on_crash, record: skill.record };
        let shared = |schema: Schema| Arc::new(schema) as Arc<dyn SkillSchema>;
        Self {
            input: SkillInput::Arguments(skill.input_schema.map(shared)),
            output: skill.output_schema.map(shared),
            ..Self::new(card, DynAgent::new(work))
        }
    }
}

/// Calls a backend once for each turn.
struct BackendAgent {
    backend: Arc<dyn Backend>,
    on_crash: OnCrash,
    record: Arc<CallRecord>,
}

impl BackendAgent {
    async fn call(&self, call: Call<'_>) -> AgentResult<Outcome> {
        let Call { turn, arguments, skill, .. } = call;
        let measured = MeasuredCall::begin(&call, self.backend.kind(), &self.record);
        let result = self.backend.call(call).await;
        if measured.end(&result) == CallEnd::ByItself {
            log_failure(&*self.backend, skill, turn, &result);
        }
        match result? {
            Reply::Done(parts) => ended(turn, done(skill, parts)),
            Reply::Streamed => ended(turn, Outcome::done()),
            Reply::Failed(failure) if failure.retryable => Ok(failed(turn, failure)),
            Reply::Failed(failure) => ended(turn, failed(turn, failure)),
            Reply::Rejected(parts) => ended(turn, Outcome::reject(parts)),
            Reply::Ask(Question { parts, state }) => {
                let kept = Kept::with_question(arguments, &state)?;
                turn.record().save(&kept).then(Outcome::ask(parts))
            }
            Reply::AskForCredentials(Question { parts, state }) => {
                let kept = Kept::with_question(arguments, &state)?;
                turn.record().save(&kept).then(Outcome::ask_for_credentials(parts))
            }
        }
    }
}

impl Agent for BackendAgent {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let skill = turn.skill.as_deref().unwrap_or_default();
        let kept = turn.saved::<Kept>()?;
        let resumed = kept.as_ref().map(|kept| kept.resume(&turn)).transpose()?.flatten();
        if let Some(kept) = kept.filter(Kept::is_question) {
            turn.record().save(&kept.answered_in(&turn)).await?;
        }
        if let Some(resumed) = resumed {
            return self.call(Call::resumed(skill, &resumed, &turn)).await;
        }
        let arguments = turn.arguments().ok_or_else(|| AgentError::new("the message has no arguments"))?;
        self.call(Call::new(skill, arguments, &turn)).await
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_on_crash(self.on_crash).with_may_ask(self.backend.may_ask())
    }

    fn abandoned(&self, scope: &Scope, task: &TaskId) {
        self.backend.abandoned(scope, task);
    }
}

/// Logs why a call failed, with what the operator needs to find the cause. The engine logs errors itself.
fn log_failure(backend: &dyn Backend, skill: &str, turn: &Turn, result: &AgentResult<Reply>) {
    let Ok(Reply::Failed(failure)) = result else { return };
    let reason = failure
        .cause
        .as_ref()
        .map_or_else(|| text_of(failure), |cause| format!("{}: {cause}", text_of(failure)));
    tracing::warn!(
        agent = turn.scope.agent(),
        skill,
        backend = BackendKind::LABELS[backend.kind() as usize],
        destination = in_one_line(&backend.target()),
        task = %turn.task_id,
        attempt = turn.attempt,
        reason = in_one_line(&reason),
        "a call of a backend failed"
    );
}

/// Completed with this result. An artifact has at least one part.
fn done(skill: &str, parts: Vec<Part>) -> Outcome {
    if parts.is_empty() {
        return Outcome::done();
    }
    let name = result_name(skill);
    Artifact { name: Some(name.clone()), ..Artifact::new(name, parts) }.into()
}

/// The call is over: what was kept of it is not for the next turn, if the task is reopened.
fn ended(turn: &Turn, outcome: Outcome) -> AgentResult<Outcome> {
    match turn.saved_bytes() {
        Some(_) => turn.record().clear_saved().then(outcome),
        None => Ok(outcome),
    }
}

fn failed(turn: &Turn, failure: Failure) -> Outcome {
    let Failure { parts, reason, retryable, cause: _ } = failure;
    let metadata = reason.and_then(|reason| {
        let mut writer = Writer::new();
        writer.object(|out| out.key("a2ad").object(|out| out.text("reason", reason)));
        Json::parse(&String::from_utf8(writer.finish()).ok()?).ok()
    });
    Outcome::Failed { message: Some(Message { metadata, ..turn.reply(parts) }), retryable }
}
