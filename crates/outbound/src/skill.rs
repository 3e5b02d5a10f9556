//! A skill with a backend: what the engine needs of it, and the agent that does its work.
//!
//! The engine finds and checks the arguments of a call and checks its result; a [`Backend`] is called in between. The agent
//! here turns the backend's reply into the outcome of the turn. What is specific to a kind of backend is not here.

mod interface;
mod measured_call;
pub(crate) mod message_input;
#[cfg(any(feature = "mcp", feature = "openapi"))]
pub(crate) mod name;
mod pattern;
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
pub use interface::{InputForm, Interface, without_property};
use measured_call::{CallEnd, MeasuredCall};
use message_input::MessageInput;
pub use pattern::is_like;
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
    /// What the backend gets of a message, and the media types on the card.
    pub interface: Interface,
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
            interface: Interface::default(),
            on_crash,
            backend,
            record: Arc::default(),
        }
    }
}

impl From<BackendSkill> for Skill {
    fn from(skill: BackendSkill) -> Self {
        let interface = skill.interface;
        let form = interface.input.unwrap_or_default();
        let shared = |schema: Schema| Arc::new(schema) as Arc<dyn SkillSchema>;
        let schema = skill.input_schema.map(shared);
        let input = match form {
            InputForm::Arguments => SkillInput::Arguments(schema),
            InputForm::Message => SkillInput::MessageAndArguments(schema),
        };
        let card = AgentSkill {
            name: skill.id.clone(),
            id: skill.id,
            description: skill.description,
            tags: skill.tags,
            examples: skill.examples,
            output_modes: interface.output_modes(skill.output_schema.is_some()),
            input_modes: interface.input_modes.unwrap_or_else(|| input.media_types()),
            security_requirements: Vec::new(),
        };
        let work =
            BackendAgent { backend: skill.backend, form, on_crash: skill.on_crash, record: skill.record };
        Self { input, output: skill.output_schema.map(shared), ..Self::new(card, DynAgent::new(work)) }
    }
}

/// Calls a backend once for each turn.
struct BackendAgent {
    backend: Arc<dyn Backend>,
    form: InputForm,
    on_crash: OnCrash,
    record: Arc<CallRecord>,
}

impl BackendAgent {
    async fn call(&self, call: Call<'_>) -> AgentResult<Outcome> {
        let Call { turn, arguments, skill, message, .. } = call;
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
                let kept = Kept::with_question(arguments, message, &state)?;
                turn.record().save(&kept).then(Outcome::ask(parts))
            }
            Reply::AskForCredentials(Question { parts, state }) => {
                let kept = Kept::with_question(arguments, message, &state)?;
                turn.record().save(&kept).then(Outcome::ask_for_credentials(parts))
            }
        }
    }
}

impl BackendAgent {
    /// What the backend gets beside or instead of the arguments.
    async fn message(
        &self,
        turn: &Turn,
        began_with: Option<&str>,
        arguments: &Json,
    ) -> AgentResult<Option<MessageInput>> {
        match self.form {
            InputForm::Arguments => Ok(None),
            InputForm::Message => MessageInput::new(turn, began_with, arguments).await.map(Some),
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
            let message = self.message(&turn, resumed.message.as_deref(), &resumed.arguments).await?;
            return self.call(Call::resumed(skill, &resumed, &turn).with_message(message.as_ref())).await;
        }
        let none;
        let arguments = match (turn.arguments(), self.form) {
            (Some(arguments), _) => arguments,
            (None, InputForm::Message) => {
                none = Json::parse("{}").expect("an empty object is JSON");
                &none
            }
            (None, InputForm::Arguments) => return Err(AgentError::new("the message has no arguments")),
        };
        let message = self.message(&turn, None, arguments).await?;
        self.call(Call::new(skill, arguments, &turn).with_message(message.as_ref())).await
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
