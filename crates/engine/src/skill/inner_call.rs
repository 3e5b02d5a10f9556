//! A call of a skill by other work of the same task: the path of `call.rs` once more, with the journal of the task instead of
//! the commits of a run.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use protocol::{
    Content, Json, Message, Part, Role,
    json::{
        read::{Node, Path, Read},
        write::Writer,
    },
};
use serde_core::Serialize;
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use super::{
    Skill,
    call::{SkillCall, Stage},
};
use crate::{
    STOP_GRACE,
    agent::{
        AgentError, AgentResult, Begun, CallOutput, CallResult, CallState, OnCrash, Outcome, RunningStep,
        Turn, Update, agent_message, saved_id, state_id,
    },
    catalog::RegisteredAgent,
    runner::{AskingTurns, Runner, deadline_in},
    store::StepOwner,
    trace::random_span_id,
};

/// How deep calls may be nested.
const MAX_DEPTH: usize = 8;
/// Maximum length of an id that an agent chooses, in bytes.
const MAX_ID: usize = 200;
/// The most skills that an error lists.
const MAX_LISTED: usize = 20;

/// What a turn needs to call skills.
pub(crate) struct Calls {
    pub(crate) runner: Arc<Runner>,
    pub(crate) agent: Arc<RegisteredAgent>,
    /// The skills that have called this turn's skill, outermost first.
    callers: Vec<String>,
    /// How many calls this turn is within.
    depth: usize,
    /// How often each id has been used.
    uses: Mutex<HashMap<String, u32>>,
    running: AtomicUsize,
    ended: Notify,
}

impl Calls {
    pub(crate) fn new(runner: Arc<Runner>, agent: Arc<RegisteredAgent>) -> Self {
        Self {
            runner,
            agent,
            callers: Vec::new(),
            depth: 0,
            uses: Mutex::default(),
            running: AtomicUsize::new(0),
            ended: Notify::new(),
        }
    }

    /// The number of a call among equal ones, from 1.
    fn number(&self, id: &str) -> u32 {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let uses = uses.entry(id.to_owned()).or_default();
        *uses += 1;
        *uses
    }

    /// Resolves when no call runs.
    async fn idle(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // Registered before the check, so that an end in between is not missed.
            ended.as_mut().enable();
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }
}

/// A call that runs.
struct RunningCall<'a>(&'a Calls);

impl<'a> RunningCall<'a> {
    fn begin(calls: &'a Calls) -> Self {
        calls.running.fetch_add(1, Ordering::AcqRel);
        Self(calls)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify_waiters();
    }
}

/// A call of a skill within a turn.
pub(crate) struct InnerCall<'a> {
    turn: &'a Turn,
    /// `None`: its server has not started.
    skill: Option<Arc<Skill>>,
    /// Id in the journal.
    id: String,
    arguments: Part,
}

impl<'a> InnerCall<'a> {
    /// A call that is identified by its skill and arguments.
    pub(crate) fn new<T: Serialize + ?Sized>(
        turn: &'a Turn,
        skill: &str,
        arguments: &T,
    ) -> AgentResult<Self> {
        let arguments = argument_part(arguments)?;
        let hash = digest(&SHA256, &canonical(&arguments));
        let hash: String = hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let id = format!("call:{skill}:{hash}");
        let id = format!("{id}:{}", turn.calls.number(&id));
        Self::with_id(turn, id, skill, arguments)
    }

    /// A call with the id that an agent has chosen.
    pub(crate) fn named<T: Serialize + ?Sized>(
        turn: &'a Turn,
        id: &str,
        skill: &str,
        arguments: &T,
    ) -> AgentResult<Self> {
        if id.is_empty() || id.len() > MAX_ID {
            let text = format!("expected the id of a call of 1 to {MAX_ID} bytes, not {}", id.len());
            return Err(AgentError::new(text));
        }
        Self::with_id(turn, format!("call:{id}"), skill, argument_part(arguments)?)
    }

    fn with_id(turn: &'a Turn, id: String, skill: &str, arguments: Part) -> AgentResult<Self> {
        let path: Vec<&str> = turn.calls.callers.iter().chain(&turn.skill).map(String::as_str).collect();
        let shown_path = || [path.as_slice(), &[skill]].concat().join(" → ");
        if path.contains(&skill) {
            return Err(AgentError::new(format!("the skill {skill} calls itself: {}", shown_path())));
        }
        if turn.calls.depth >= MAX_DEPTH {
            let text = format!("calls of skills are nested deeper than {MAX_DEPTH}: {}", shown_path());
            return Err(AgentError::new(text));
        }
        let skills = turn.calls.agent.skills();
        let found = skills.callable(skill).cloned();
        if found.is_none() && skills.callable_pending().is_empty() {
            let mut known = skills.callable_ids();
            known.truncate(MAX_LISTED);
            let text = format!("there is no skill {skill} to call; expected one of {}", known.join(", "));
            return Err(AgentError::new(text));
        }
        Ok(Self { id: turn.step_id(id), turn, skill: found, arguments })
    }

    /// Runs the call, unless it has ended before or asks the client.
    pub(crate) async fn run(self) -> AgentResult<CallResult> {
        let Some(skill) = self.skill.clone() else {
            let servers = self.turn.calls.agent.skills().callable_pending().join(", ");
            let text = format!("the skill is not available yet: {servers} is starting");
            return Ok(CallResult::Failed { message: Some(agent_message(text)), retryable: true });
        };
        let Self { turn, id, .. } = &self;
        let step = match turn.journal.begin(StepOwner::Task, id.clone())? {
            Begun::Finished { output, batch } => {
                turn.updates.committed(batch).await?;
                return self.result(&CallState::decode(&output)?, &skill, false);
            }
            Begun::Running(step) => step,
        };
        let recorded = turn.journal.output(StepOwner::Task, &state_id(id));
        let state = match recorded.map(|recorded| CallState::decode(&recorded)).transpose()? {
            // Another question was asked in the turn before: this one waits for its turn.
            Some(state) if matches!(state.question(), Some((_, false))) => {
                return self.result(&state, &skill, false);
            }
            Some(state) => self.continued(state),
            None => CallState::new(self.message(), &turn.task_id),
        };
        let running = RunningCall::begin(&turn.calls);
        // Boxed, so that the future of a call of a call is bounded.
        let result = Box::pin(self.run_step(&step, state, &skill)).await?;
        drop(running);
        if let CallResult::Asks(_) = result {
            turn.calls.idle().await;
        }
        Ok(result)
    }

    fn result(&self, state: &CallState, skill: &Skill, retryable: bool) -> AgentResult<CallResult> {
        let unfinished = || AgentError::new("the recorded call of a skill has not ended");
        state.result(&self.id, skill.id(), retryable).ok_or_else(unfinished)
    }

    /// The message with which the call begins.
    fn message(&self) -> Message {
        let turn = self.turn;
        Message {
            context_id: Some(turn.context_id.clone()),
            task_id: Some(turn.task_id.clone()),
            ..Message::new(uuid::Uuid::new_v4().to_string(), Role::User, vec![self.arguments.clone()])
        }
    }

    /// A call of an earlier turn or attempt, with the answer to its question.
    fn continued(&self, mut state: CallState) -> CallState {
        if let Some((question, _)) = state.question() {
            let history = &self.turn.history;
            let at = history.iter().position(|message| message.id == question.id);
            let later = at.map_or(&[][..], |at| &history[at + 1..]);
            let answer = later.iter().find(|message| message.role == Role::User);
            state.answer(answer.unwrap_or(&self.turn.message).clone());
            state.run();
        }
        state
    }

    /// Runs the skill, and records how it has ended.
    async fn run_step(
        &self,
        step: &RunningStep<'_>,
        state: CallState,
        skill: &Arc<Skill>,
    ) -> AgentResult<CallResult> {
        let turn = self.turn;
        let Calls { runner, agent, .. } = &turn.calls;
        let (message, earlier) = state.history().split_last().expect("a call begins with a message");
        let (message, history) = (Arc::new(message.clone()), earlier.to_vec());
        let saved = turn.journal.output(StepOwner::Task, &saved_id(&self.id));
        // A call that has a checkpoint goes on from it.
        let stage = if history.is_empty() && saved.is_none() { Stage::Request } else { Stage::Answer };
        let call = SkillCall::of_skill(agent, Arc::clone(skill), runner.limits(), message, saved);
        let policy = call.policy;
        if step.is_interrupted && policy.on_crash == OnCrash::Fail {
            let text = format!(
                "interrupted: the server stopped while {} ran, and it must not run twice",
                skill.id()
            );
            return self.end(step, state, skill, Outcome::fail(text), Vec::new()).await;
        }
        // A turn that must not run twice is then one of steps.
        if policy.on_crash == OnCrash::Fail || turn.on_crash == OnCrash::Fail {
            step.write(&turn.updates, None).await?;
        }
        let mut call = call.admit(stage).await;
        if let Some(outcome) = call.take_verdict() {
            return self.end(step, state, skill, outcome, Vec::new()).await;
        }
        let resumes = policy.on_crash == OnCrash::Resume;
        let output = Arc::new(CallOutput::new(self.id.clone(), state, Arc::clone(&turn.journal), resumes));
        let outcome = self.work(call, history, &output).await;
        let (state, outcome, updates) = output.end(outcome)?;
        self.end(step, state, skill, outcome, updates).await
    }

    /// Runs the work of the skill within its run time.
    async fn work(
        &self,
        mut call: SkillCall,
        history: Vec<Message>,
        output: &Arc<CallOutput>,
    ) -> AgentResult<Outcome> {
        let run_time = call.policy.run_time;
        let end = deadline_in(run_time);
        let inner = self.inner_turn(&mut call, history, output, end);
        let cancel = inner.cancel.clone();
        let Some(mut work) = call.start(inner) else { return Ok(Outcome::done()) };
        tokio::select! {
            biased;
            outcome = &mut work => outcome,
            () = tokio::time::sleep_until(end) => {
                cancel.cancel();
                let _ = timeout(STOP_GRACE, work).await;
                let skill = call.skill_id().unwrap_or_default();
                Ok(Outcome::fail(format!("{skill} took longer than its run_time, {run_time:?}")))
            }
        }
    }

    /// The turn of the called skill.
    fn inner_turn(
        &self,
        call: &mut SkillCall,
        history: Vec<Message>,
        output: &Arc<CallOutput>,
        end: Instant,
    ) -> Turn {
        let turn = self.turn;
        let Calls { runner, agent, callers, depth, .. } = &turn.calls;
        let calls = Calls {
            callers: callers.iter().chain(&turn.skill).cloned().collect(),
            depth: depth + 1,
            ..Calls::new(Arc::clone(runner), Arc::clone(agent))
        };
        Turn {
            task_id: turn.task_id.clone(),
            context_id: turn.context_id.clone(),
            skill: call.skill_id(),
            message: Arc::clone(&call.message),
            history,
            conversation: turn.conversation.clone(),
            scope: turn.scope.clone(),
            attempt: turn.attempt,
            on_crash: call.policy.on_crash,
            idempotency_key: turn.step_key(&self.id),
            cancel: turn.cancel.child_token(),
            deadline: turn.deadline.min(end),
            saved: call.saved.take(),
            updates: turn.updates.for_call(Arc::clone(output)),
            arguments: call.arguments.take(),
            is_skill_named: false,
            journal: Arc::clone(&turn.journal),
            trace: turn.trace.child(random_span_id()),
            asking: call.policy.may_ask.then(|| AskingTurns::begin(runner.asking_turns(), &turn.scope)),
            call_id: Some(self.id.clone()),
            calls,
        }
    }

    /// Records the end of the work, in one commit with what the skill records with it.
    async fn end(
        &self,
        step: &RunningStep<'_>,
        mut state: CallState,
        skill: &Skill,
        outcome: Outcome,
        mut updates: Vec<Update>,
    ) -> AgentResult<CallResult> {
        let turn = self.turn;
        let retryable = matches!(outcome, Outcome::Failed { retryable: true, .. });
        state.end(outcome);
        let result = self.result(&state, skill, retryable)?;
        match result {
            CallResult::Asks(_) => {
                updates.push(Update::Step(state.step(&self.id)));
                updates.push(Update::Step(step.with_output(Some(Bytes::new()))));
            }
            CallResult::Failed { retryable: true, .. } => {
                updates.push(Update::Step(step.with_output(Some(Bytes::new()))));
            }
            CallResult::Done { .. } | CallResult::Failed { .. } | CallResult::Rejected { .. } => {
                updates.push(Update::Step(step.with_output(Some(state.outcome()))));
            }
        }
        turn.journal.write(&turn.updates, updates).await?;
        Ok(result)
    }
}

/// A value as text or data.
fn argument_part<T: Serialize + ?Sized>(arguments: &T) -> AgentResult<Part> {
    let text = serde_json::to_string(arguments).map_err(UnsendableArguments)?;
    let json =
        Json::parse(&text).map_err(|problem| AgentError::new(format!("the arguments are not {problem}")))?;
    match Node::new(json.as_raw(), &Path::Root).string() {
        Ok(text) => Ok(Part::text(text)),
        Err(_) => Ok(Part::data(json)),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the arguments of a call cannot be written as JSON")]
struct UnsendableArguments(#[source] serde_json::Error);

/// The same bytes for equal arguments, in whichever order the members of objects are.
fn canonical(arguments: &Part) -> Vec<u8> {
    let mut writer = Writer::new();
    match &arguments.content {
        Content::Data(json) => write_canonical(&mut writer, Node::new(json.as_raw(), &Path::Root)),
        Content::Text(text) => writer.string(text),
        Content::Raw(_) | Content::Url(_) => {}
    }
    writer.finish()
}

fn write_canonical(writer: &mut Writer, node: Node<'_, '_>) {
    if let Ok(object) = node.object() {
        let members: Read<Vec<_>> = object.entries(|name, value| Ok((name.to_owned(), value.raw())));
        let mut members = members.unwrap_or_default();
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        writer.object(|writer| {
            for (name, value) in members {
                write_canonical(writer.key(&name), Node::new(value, &Path::Root));
            }
        });
    } else if let Ok(elements) = node.list(|element| Ok(element.raw())) {
        writer.array(elements, |writer, element| write_canonical(writer, Node::new(element, &Path::Root)));
    } else if let Ok(text) = node.string() {
        writer.string(&text);
    } else {
        writer.raw(node.text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_arguments_have_the_same_canonical_form() {
        let form = |text: &str| {
            let part = Part::data(Json::parse(text).unwrap());
            String::from_utf8(canonical(&part)).unwrap()
        };
        let sorted = r#"{"a":[{"x":1,"y":null}],"b":"é"}"#;
        assert_eq!(form(r#"{"b":"\u00e9","a":[{"y":null,"x":1}]}"#), sorted);
        assert_eq!(form(sorted), sorted);
        assert_ne!(form(r#"{"a":1}"#), form(r#"{"a":2}"#));
    }
}
