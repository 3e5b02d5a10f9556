//! A skill with a backend, and the agent that runs it.
//!
//! [`SkillAgent`] finds the arguments in the client's message, checks them, calls the backend, checks the result and
//! turns the backend's reply into the outcome of the turn. What is specific to a kind of backend is not here.

mod measured_call;
#[cfg(any(feature = "mcp", feature = "openapi"))]
pub(crate) mod name;
mod schemas_extension;

use std::sync::Arc;

use engine::{Agent, AgentResult, ExecutionPolicy, OnCrash, Outcome, Scope, Turn};
use protocol::{Artifact, Content, Json, Message, Part, TaskId, json::write::Writer, model::AgentSkill};

use crate::{
    backend::{Backend, Call, Failure, Kept, Question, Reply, result_name},
    schema::{Check, INLINE_STEPS, LargeCheck, Schema},
};
use measured_call::MeasuredCall;
pub use schemas_extension::{SCHEMAS_EXTENSION, schemas_extension};

/// The media type of tools' arguments and results.
const JSON: &str = "application/json";

/// A skill with a backend. Cheap to clone.
#[derive(Clone)]
pub struct Skill {
    /// Id, unique within its agent.
    pub id: String,
    /// For the card.
    pub description: String,
    /// For the card.
    pub tags: Vec<String>,
    /// For the card.
    pub examples: Vec<String>,
    /// What the arguments must be; `None`: the backend gets the message.
    pub input_schema: Option<Schema>,
    /// What a data part of the result must be.
    pub output_schema: Option<Schema>,
    /// What to do with a call whose process crashed.
    pub on_crash: OnCrash,
    /// The system behind it.
    pub backend: Arc<dyn Backend>,
}

impl Skill {
    /// The skill on the card.
    pub fn on_card(&self) -> AgentSkill {
        AgentSkill {
            id: self.id.clone(),
            name: self.id.clone(),
            description: self.description.clone(),
            tags: self.tags.clone(),
            examples: self.examples.clone(),
            input_modes: vec![JSON.into()],
            output_modes: vec![JSON.into()],
            security_requirements: Vec::new(),
        }
    }
}

/// The agent of one skill with a backend.
pub struct SkillAgent(Skill);

impl SkillAgent {
    /// Runs calls of this skill.
    pub fn new(skill: Skill) -> Self {
        Self(skill)
    }

    async fn call(&self, call: Call<'_>) -> AgentResult<Outcome> {
        let Call { turn, arguments, .. } = call;
        let measured = MeasuredCall::begin(&call, self.0.backend.kind());
        let result = self.0.backend.call(call).await;
        measured.end(&result);
        match result? {
            Reply::Done(parts) => ended(turn, self.done(turn, parts).await?),
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

    /// Completed with this result, unless the output schema does not allow it. An artifact has at least one part.
    async fn done(&self, turn: &Turn, parts: Vec<Part>) -> AgentResult<Outcome> {
        let Self(skill) = self;
        if let Some(schema) = &skill.output_schema {
            let check = parts.iter().find_map(|part| match &part.content {
                Content::Data(data) => Some(schema.check("result", data)),
                // JSON that is too large for a data part.
                Content::Text(text) if part.media_type.as_deref() == Some(JSON) => {
                    Some(schema.check_text("result", text))
                }
                _ => None,
            });
            let checked = match check {
                Some(Check::Done(result)) => result,
                Some(Check::Large(check)) => run(check, turn).await?,
                None => Err("result: there is no JSON in it".to_owned()),
            };
            if let Err(problem) = checked {
                let text = format!("the result of {} does not match its output schema: {problem}", skill.id);
                return Ok(Outcome::fail(text));
            }
        }
        if parts.is_empty() {
            return Ok(Outcome::done());
        }
        let name = result_name(&skill.id);
        let named = Artifact { name: Some(name.clone()), ..Artifact::new(name, parts) };
        Ok(named.into())
    }
}

impl Agent for SkillAgent {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let Self(Skill { id: skill, input_schema, .. }) = self;
        let kept = turn.saved::<Kept>()?;
        let resumed = kept.as_ref().map(|kept| kept.resume(&turn)).transpose()?.flatten();
        if let Some(kept) = kept.filter(Kept::is_question) {
            turn.record().save(&kept.answered_in(&turn)).await?;
        }
        if let Some(resumed) = resumed {
            return self.call(Call::resumed(skill, &resumed, &turn)).await;
        }
        match arguments(&turn.message, input_schema.as_ref()).checked(&turn).await? {
            Arguments::Valid(arguments) => self.call(Call::new(skill, &arguments, &turn)).await,
            Arguments::Invalid(problem) => Ok(Outcome::reject(problem)),
            Arguments::Missing(schema) => Ok(Outcome::ask(question(skill, &schema))),
            Arguments::Unchecked(..) => unreachable!("they have been checked"),
        }
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_on_crash(self.0.on_crash).with_may_ask(self.0.backend.may_ask())
    }

    fn abandoned(&self, scope: &Scope, task: &TaskId) {
        self.0.backend.abandoned(scope, task);
    }
}

/// The arguments of a call, as far as a message has them.
pub(crate) enum Arguments {
    Valid(Json),
    /// The check is left.
    Unchecked(Json, LargeCheck),
    /// The schema does not allow them; the text names the field.
    Invalid(String),
    /// The message has none.
    Missing(Schema),
}

impl Arguments {
    /// Runs the check that is left: the result is never `Unchecked`.
    pub(crate) async fn checked(self, turn: &Turn) -> AgentResult<Self> {
        match self {
            Self::Unchecked(arguments, check) => {
                Ok(run(check, turn).await?.map_or_else(Self::Invalid, |()| Self::Valid(arguments)))
            }
            other => Ok(other),
        }
    }
}

/// Runs a large check. Its start is recorded: if it ends the process, the task fails at the next start.
async fn run(check: LargeCheck, turn: &Turn) -> AgentResult<Result<(), String>> {
    let check = check.ready().await;
    turn.guard("schema check", check.run()).await
}

/// The arguments in a message: its data part, else a text that is a JSON object, else a text for the only required
/// property if that is a string. Without a schema, the data part as it is, else `{"text": …}`.
pub(crate) fn arguments(message: &Message, schema: Option<&Schema>) -> Arguments {
    let data = message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => Some(data.clone()),
        _ => None,
    });
    let text = message.text();
    let object = || Json::parse(&text).ok().filter(Json::is_object);
    let Some(schema) = schema else {
        return Arguments::Valid(data.or_else(object).unwrap_or_else(|| text_argument("text", &text)));
    };
    let check = |arguments: Json| match schema.check("arguments", &arguments) {
        Check::Done(Ok(())) => Arguments::Valid(arguments),
        Check::Done(Err(problem)) => Arguments::Invalid(problem),
        Check::Large(check) => Arguments::Unchecked(arguments, check),
    };
    if let Some(found) = data.or_else(object) {
        return check(found);
    }
    if let Some(property) = schema.single_text().filter(|_| !text.trim().is_empty()) {
        return check(text_argument(property, &text));
    }
    let empty = Json::parse("{}").expect("an empty object is JSON");
    if schema.required().is_empty() && schema.allows(&empty, &mut { INLINE_STEPS }) == Some(true) {
        // Nothing is required, so a text can only be the request itself.
        return Arguments::Valid(empty);
    }
    Arguments::Missing(schema.clone())
}

fn text_argument(name: &str, text: &str) -> Json {
    let mut writer = Writer::new();
    writer.object(|out| out.text(name, text));
    written(writer)
}

fn written(writer: Writer) -> Json {
    let text = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
    Json::parse(&text).expect("the writer writes one JSON value")
}

/// Asks for the required properties: their names as text, the schema as data.
fn question(skill: &str, schema: &Schema) -> Vec<Part> {
    let names = schema.required().join(", ");
    let text =
        format!("{skill} needs {names}: send them as a data part, or as a text that is one JSON object");
    vec![Part::text(text), Part::data(schema.text().clone())]
}

/// The call is over: what was kept of it is not for the next turn, if the task is reopened.
fn ended(turn: &Turn, outcome: Outcome) -> AgentResult<Outcome> {
    match turn.saved_bytes() {
        Some(_) => turn.record().clear_saved().then(outcome),
        None => Ok(outcome),
    }
}

fn failed(turn: &Turn, failure: Failure) -> Outcome {
    let Failure { parts, reason, retryable } = failure;
    let metadata = reason.map(|reason| {
        let mut writer = Writer::new();
        writer.object(|out| out.key("a2ad").object(|out| out.text("reason", reason)));
        written(writer)
    });
    Outcome::Failed { message: Some(Message { metadata, ..turn.reply(parts) }), retryable }
}
