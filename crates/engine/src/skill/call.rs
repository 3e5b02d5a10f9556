//! The path of one call of a skill, from a message to its outcome:
//!
//! 1. select the skill (`select.rs`)
//! 2. find the arguments in the message (`arguments.rs`)
//! 3. check them against the input schema
//! 4. guards before the work
//! 5. run the work
//! 6. check the result against the output schema
//! 7. guards after the work
//! 8. record the outcome (`runner/run.rs`)
//!
//! [`SkillCall::select`] is 1, [`SkillCall::admit`] is 2 to 4: both are done before a message is accepted, and what they decide
//! is in the commit that accepts it. A turn that was queued, or is tried again, has passed 3 and 4. If the skill may become
//! known when its server has started, 1 is done again before the turn is claimed, and 2 to 4 when it is claimed.
//! [`SkillCall::start`] is 5 to 7. A kind of backend is an [`Agent`](crate::Agent) that does 5 and nothing else.

use std::{
    future::{Ready, ready},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::future::{BoxFuture, Either};
use protocol::{Artifact, Content, Error, Json, Message, Timestamp};

use super::{
    LargeCheck, RunPolicy, SchemaCheck, Skill, SkillInput, SkillSchema,
    arguments::{self, Arguments},
    guards::GuardedCall,
    select::{Request, Selection, message_for, select},
};
use crate::{
    access::scope::Scope,
    agent::{AgentResult, Outcome, OutcomeJournal, Turn},
    catalog::RegisteredAgent,
    runner::Limits,
    store::{SavedState, SkillSource, TaskRow},
};

/// The media type of a result that is too large for a data part.
const JSON: &str = "application/json";

/// One turn as a call of a skill: what was decided before it runs.
pub(crate) struct SkillCall {
    pub(crate) agent: Arc<RegisteredAgent>,
    /// The skill of the task; `None` if there is none, or not yet.
    pub(crate) skill: Option<Arc<Skill>>,
    /// Who has selected it.
    pub(crate) source: SkillSource,
    /// What the work gets.
    pub(crate) message: Arc<Message>,
    /// What the work gets if it takes arguments.
    pub(crate) arguments: Option<Json>,
    /// A part of the message has no place in what the work gets: the message is refused with this, if it can be.
    refusal: Option<Box<Error>>,
    /// The message is an earlier one of the task: the client has only named the skill for it.
    is_earlier_message: bool,
    /// The last checkpoint of the skill's work.
    pub(crate) saved: Option<Bytes>,
    /// How the run is limited and recovered.
    pub(crate) policy: RunPolicy,
    work: Work,
}

/// What a turn does.
enum Work {
    /// It runs a skill: that of the task, or what an agent does without one.
    Run(Arc<Skill>),
    /// It ends at once.
    Verdict(Outcome),
    /// It waits until its skill is known.
    AwaitSkill,
}

/// The message of a turn, and what is known about its task.
#[derive(Clone, Copy)]
pub(crate) struct CallRequest<'a> {
    pub(crate) registered: &'a Arc<RegisteredAgent>,
    pub(crate) limits: &'a Limits,
    pub(crate) scope: &'a Scope,
    /// The skill that the client has named, with this message or an earlier one of the task.
    pub(crate) named: Option<&'a str>,
    /// The skill that the server has selected for the task before.
    pub(crate) before: Option<&'a str>,
    pub(crate) message: &'a Arc<Message>,
    /// Earlier messages of the task.
    pub(crate) history: &'a [Message],
    /// The last checkpoint of the task.
    pub(crate) saved: Option<&'a SavedState>,
}

/// What a message is when its call is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It starts or reopens a task.
    Request,
    /// It goes to a task that waits for input, which its work may have asked for.
    Answer,
    /// It was accepted before: its arguments have been checked.
    Accepted,
}

impl SkillCall {
    /// Entry 1: the call that a message makes.
    pub(crate) fn select(request: CallRequest<'_>) -> Self {
        let (saved_by, saved) = saved_state(request);
        let selection = select(
            request.registered.skills(),
            Request {
                named: request.named,
                before: request.before.or(saved_by),
                message: request.message,
                sees_extended: request.registered.settings().sees_extended_skills(request.scope),
            },
        );
        let skill = match selection {
            Selection::Skill(skill) => skill,
            Selection::Shared(own) => return Self::without_skill(request, saved, Work::Run(Arc::clone(own))),
            Selection::Verdict(outcome) => return Self::ended(request, outcome),
            Selection::Starting => return Self::without_skill(request, saved, Work::AwaitSkill),
        };
        let message = message_for(request.history, request.message, skill.id());
        let is_owner =
            request.saved.is_some_and(|saved| saved.skill.as_deref().is_none_or(|by| by == skill.id()));
        let saved = saved.filter(|state| is_owner && !state.is_empty());
        let source = if request.named.is_some() { SkillSource::Client } else { SkillSource::Server };
        let is_earlier_message = !Arc::ptr_eq(&message, request.message);
        let call = Self::of_skill(request.registered, skill, request.limits, message, saved);
        Self { source, is_earlier_message, ..call }
    }

    /// A call of a skill that is selected.
    pub(super) fn of_skill(
        agent: &Arc<RegisteredAgent>,
        skill: Arc<Skill>,
        limits: &Limits,
        message: Arc<Message>,
        saved: Option<Bytes>,
    ) -> Self {
        Self {
            agent: Arc::clone(agent),
            source: SkillSource::Server,
            message,
            arguments: None,
            refusal: None,
            is_earlier_message: false,
            saved,
            policy: agent.policy_of(&skill, limits),
            work: Work::Run(Arc::clone(&skill)),
            skill: Some(skill),
        }
    }

    /// Entries 2 to 4. Waits only for a large check and for guards.
    pub(crate) fn admit(mut self, stage: Stage) -> Either<Ready<Self>, BoxFuture<'static, Self>> {
        let Work::Run(skill) = &self.work else { return Either::Left(ready(self)) };
        let skill = Arc::clone(skill);
        let check = match &skill.input {
            SkillInput::Message => None,
            SkillInput::Arguments(schema) => self.take_arguments(&skill, schema.as_deref(), stage),
            SkillInput::MessageAndArguments(schema) => self.take_data(&skill, schema.as_deref(), stage),
        };
        let is_guarded = stage != Stage::Accepted && !skill.guards.is_empty();
        if check.is_none() && !is_guarded {
            return Either::Left(ready(self));
        }
        Either::Right(Box::pin(async move {
            if let Some((arguments, check)) = check {
                match check.await.await {
                    Ok(()) => self.arguments = Some(arguments),
                    Err(problem) => self.reject_arguments(&skill, problem),
                }
            }
            if is_guarded && self.verdict().is_none() {
                let call =
                    GuardedCall { skill: &skill, message: &self.message, arguments: self.arguments.as_ref() };
                if let Some(blocked) = skill.guards.before(call).await {
                    self.end(blocked);
                }
            }
            self
        }))
    }

    /// Entries 2 and 3; returns a check that is too large for this thread.
    fn take_arguments(
        &mut self,
        skill: &Skill,
        schema: Option<&dyn SkillSchema>,
        stage: Stage,
    ) -> Option<(Json, LargeCheck)> {
        if stage == Stage::Request {
            self.saved = None;
        }
        let found = match stage {
            Stage::Accepted if self.saved.is_none() => {
                Arguments::of_accepted(&self.message, skill.id(), schema)
            }
            Stage::Request | Stage::Answer | Stage::Accepted => {
                Arguments::of_call(&self.message, skill.id(), schema)
            }
        };
        self.take(skill, found)
    }

    /// The same for a skill that gets the whole message: its arguments are the data in it.
    fn take_data(
        &mut self,
        skill: &Skill,
        schema: Option<&dyn SkillSchema>,
        stage: Stage,
    ) -> Option<(Json, LargeCheck)> {
        if stage == Stage::Request {
            self.saved = None;
        }
        let is_accepted = stage == Stage::Accepted && self.saved.is_none();
        let found = Arguments::of_data(&self.message, schema, is_accepted)?;
        self.take(skill, found)
    }

    fn take(&mut self, skill: &Skill, found: Arguments) -> Option<(Json, LargeCheck)> {
        match found {
            Arguments::Valid(arguments) => self.arguments = Some(arguments),
            Arguments::Unchecked(arguments, check) => return Some((arguments, check)),
            Arguments::Invalid(problem) => self.reject_arguments(skill, problem),
            Arguments::Missing => {
                self.refuse(Outcome::ask(arguments::question(skill.id(), skill.input.schema(), None)));
            }
            Arguments::Refused(error) if self.is_earlier_message => {
                self.reject_arguments(skill, error.message)
            }
            Arguments::Refused(error) => {
                let modes = skill.card.input_modes.join(", ");
                let text = format!("{}; the skill {} accepts {modes}", error.message, skill.id());
                self.refuse(Outcome::reject(text.clone()));
                if self.verdict().is_some() {
                    let error = Error { message: text, ..*error };
                    self.refusal = Some(Box::new(error.with("supportedModes", modes)));
                }
            }
        }
        None
    }

    /// Ends a turn whose arguments the skill does not take. If the client has not sent them for this skill, it is asked for
    /// others.
    fn reject_arguments(&mut self, skill: &Skill, problem: String) {
        self.refuse(if self.is_earlier_message {
            Outcome::ask(arguments::question(skill.id(), skill.input.schema(), Some(&problem)))
        } else {
            Outcome::reject(problem)
        });
    }

    /// Ends a turn without valid arguments. Work that goes on from its checkpoint gets the message without them: it may be
    /// an answer.
    fn refuse(&mut self, outcome: Outcome) {
        if self.saved.is_none() {
            self.end(outcome);
        }
    }

    /// A turn of a task without a skill.
    fn without_skill(request: CallRequest<'_>, saved: Option<Bytes>, work: Work) -> Self {
        let CallRequest { registered, limits, message, .. } = request;
        Self {
            agent: Arc::clone(registered),
            skill: None,
            source: SkillSource::Server,
            message: Arc::clone(message),
            arguments: None,
            refusal: None,
            is_earlier_message: false,
            saved,
            policy: registered.policy(None, limits),
            work,
        }
    }

    /// A turn that ends without any work.
    fn ended(request: CallRequest<'_>, outcome: Outcome) -> Self {
        let mut call = Self::without_skill(request, None, Work::Verdict(Outcome::done()));
        call.end(outcome);
        call
    }

    /// Whether the turn waits until its skill is known: it has no work yet.
    pub(crate) fn awaits_skill(&self) -> bool {
        matches!(self.work, Work::AwaitSkill)
    }

    /// Ends a turn that has waited too long until its skill is known.
    pub(crate) fn end_wait(&mut self) {
        let servers = self.agent.skills().pending().join(", ");
        self.end(Outcome::fail(format!("the skill is not available: {servers} has not started yet")));
    }

    /// Ends the turn without running its work. Nothing is called, so nothing has to wait for the commit.
    fn end(&mut self, outcome: Outcome) {
        self.policy = RunPolicy { overlap: true, may_ask: false, ..self.policy };
        self.work = Work::Verdict(outcome);
    }

    /// Why the message cannot be accepted at all.
    pub(crate) fn take_refusal(&mut self) -> Option<Error> {
        self.refusal.take().map(|refusal| *refusal)
    }

    /// The outcome of a turn that ends without any work.
    pub(crate) fn verdict(&self) -> Option<&Outcome> {
        match &self.work {
            Work::Verdict(outcome) => Some(outcome),
            Work::Run(_) | Work::AwaitSkill => None,
        }
    }

    /// The outcome of a turn that ends without any work.
    pub(crate) fn take_verdict(&mut self) -> Option<Outcome> {
        match &mut self.work {
            Work::Verdict(outcome) => Some(std::mem::replace(outcome, Outcome::done())),
            Work::Run(_) | Work::AwaitSkill => None,
        }
    }

    /// Whether the client has named the skill.
    pub(crate) fn is_skill_named(&self) -> bool {
        self.skill.is_some() && self.source == SkillSource::Client
    }

    /// Whether a task that is reopened begins without the checkpoint of its last turn: a call with arguments does.
    pub(crate) fn begins_anew(&self) -> bool {
        self.skill.as_ref().is_some_and(|skill| !matches!(skill.input, SkillInput::Message))
    }

    /// The skill, who has selected it, and whether the message has passed its checks, as they are recorded.
    pub(crate) fn selected(&self) -> (Option<String>, SkillSource, bool) {
        (self.skill_id(), self.source, matches!(self.work, Work::Run(_)))
    }

    /// The deadline of a task that goes on with this call. That of a skill which is selected only now counts from `since`.
    pub(crate) fn deadline_of(&self, row: &TaskRow, since: Timestamp) -> Option<Timestamp> {
        let is_new = self.skill.as_ref().is_some_and(|skill| row.skill.as_deref() != Some(skill.id()));
        self.policy.deadline_from(since).filter(|_| is_new).or(row.deadline)
    }

    /// The id of the skill.
    pub(crate) fn skill_id(&self) -> Option<String> {
        self.skill.as_ref().map(|skill| skill.id().to_owned())
    }

    /// The future of the work: entries 5 to 7. `None`: there is no work.
    pub(crate) fn start(&self, turn: Turn) -> Option<BoxFuture<'static, AgentResult<Outcome>>> {
        let Work::Run(skill) = &self.work else { return None };
        Some(if skill.output.is_none() && skill.guards.is_empty() {
            skill.work.start(turn)
        } else {
            Box::pin(run(Arc::clone(skill), turn))
        })
    }
}

/// Runs the work of a skill, and judges what it returns.
async fn run(skill: Arc<Skill>, turn: Turn) -> AgentResult<Outcome> {
    let journal = turn.outcome_journal();
    if skill.guards.hold_output() {
        journal.hold_output();
    }
    let result = skill.work.start(turn).await;
    let result = match (result, &skill.output) {
        (Ok(outcome), Some(schema)) => check_output(skill.id(), &**schema, outcome, &journal).await,
        (result, _) => result,
    };
    let result = skill.guards.after(&skill, result).await;
    journal.release_output();
    result
}

/// The outcome, unless the output schema does not allow its result: then the task fails. What was sent in chunks is not checked.
async fn check_output(
    skill: &str,
    schema: &dyn SkillSchema,
    outcome: Outcome,
    journal: &OutcomeJournal,
) -> AgentResult<Outcome> {
    let check = match outcome.artifacts() {
        [] => return Ok(outcome),
        artifacts => result_check(schema, artifacts),
    };
    let checked = match check {
        Some(SchemaCheck::Done(checked)) => checked,
        Some(SchemaCheck::Large(check)) => run_check(check, journal).await?,
        None => Err("result: there is no JSON in it".to_owned()),
    };
    Ok(match checked {
        Ok(()) => outcome,
        Err(problem) => outcome.replace(Outcome::fail(format!(
            "the result of {skill} does not match its output schema: {problem}"
        ))),
    })
}

/// Checks the first JSON in a result.
fn result_check(schema: &dyn SkillSchema, artifacts: &[Artifact]) -> Option<SchemaCheck> {
    artifacts.iter().flat_map(|artifact| &artifact.parts).find_map(|part| match &part.content {
        Content::Data(data) => Some(schema.check("result", data)),
        Content::Text(text) if part.media_type.as_deref() == Some(JSON) => {
            Some(schema.check_text("result", text))
        }
        _ => None,
    })
}

/// Runs a large check. Its start is recorded: if it ends the process, the task fails at the next start.
async fn run_check(check: LargeCheck, journal: &OutcomeJournal) -> AgentResult<Result<(), String>> {
    let check = check.await;
    journal.guard("schema check", check).await
}

/// The skill that has recorded the checkpoint of a task, if only the checkpoint says it, and the checkpoint itself. Earlier
/// versions put the id of the skill and a line feed before it, once for each agent that had passed the turn on.
fn saved_state(request: CallRequest<'_>) -> (Option<&str>, Option<Bytes>) {
    let Some(saved) = request.saved else { return (None, None) };
    if saved.skill.is_some() {
        return (None, Some(saved.state.clone()));
    }
    let skills = request.registered.skills();
    let (mut by, mut state) = (None, saved.state.clone());
    for _ in 0..2 {
        let end = state.iter().position(|byte| *byte == b'\n').unwrap_or_default();
        let Some(skill) = std::str::from_utf8(&state[..end]).ok().and_then(|id| skills.find(id)) else {
            break;
        };
        by = Some(skill.id());
        state = state.slice(end + 1..);
    }
    (by.filter(|_| skills.own().is_none()), Some(state))
}
