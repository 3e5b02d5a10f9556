//! Records a message and gets its turn going: what both sends share.
//!
//! A message without a task becomes one ([`start`]); a message to a task is its next input ([`follow_up`]); one
//! that was recorded before is answered as then ([`replay`]). [`turn`] begins the run itself, in one pass where
//! that is possible.

mod follow_up;
mod replay;
mod start;
mod turn;

use std::sync::Arc;

use protocol::{Dialect, ErrorKind, Json, Message, SendMessage, Task, TaskId, TaskState};

use self::turn::Begun;
use super::{get_task, push_configs};
use crate::{
    agents::RegisteredAgent,
    engine::{Call, Parts},
    error::{Error, Result},
    feed::Watcher,
    idempotency,
    ids::TaskNo,
    log::{Entry, Log, Seq},
    store::{Among, Committed, ContextLookup, ListQuery, MessageKey, NotCommitted, Snapshot, Visibility},
    task::{Names, fold},
};

/// How long the caller means to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until the message is recorded.
    Not,
    /// Until the turn is over, for one answer.
    ForOutcome,
    /// Until the turn is over, for every event.
    AsStream,
}

/// A message that has been recorded.
pub(super) struct Submitted {
    /// The task as of the status this message caused.
    pub(super) task: Task,
    /// The number of that status.
    pub(super) seq: Seq,
    /// What was recorded behind it in the same commit.
    pub(super) rest: Vec<(Seq, Arc<Entry>)>,
    /// Whether it is decided that there is a task to see.
    pub(super) visibility: Visibility,
    /// Follows what comes next; absent when nothing does.
    pub(super) watcher: Option<Watcher>,
    /// The message was recorded by an earlier call.
    pub(super) replayed: bool,
}

/// How often a decision is made anew because the task moved on under it.
const TRIES: usize = 8;

/// Records the message, and starts or queues its turn.
pub(super) async fn submit(engine: &Parts, call: Call, req: SendMessage, wait: Wait) -> Result<Submitted> {
    let registered = engine.agent(&call)?;
    if req.push.is_some() {
        return Err(push_configs::not_supported());
    }
    let skill_field = skill_field(call.dialect, &req);
    let skill = known_skill(registered, skill_field, &req)?;
    let given = call.idempotency_key.as_deref();
    let key = idempotency::key(registered.dedupe(), &engine.seal_key, &call.scope, given, &req)?;
    let about = req.metadata.as_ref().filter(|_| call.dialect.describes_tasks_by_requests());
    let skill = skill.as_deref();
    let sending = Sending { engine, call: &call, registered, key, skill, skill_field, about, wait };
    let mut message = req.message;
    if message.id.as_str().is_empty() {
        message.id = uuid::Uuid::new_v4().to_string().into();
    }
    // What is not asked often is boxed, so that the future of a first message stays small.
    if message.task_id.is_none() && call.task_policy.resume_by_context && message.context_id.is_some() {
        return Box::pin(submit_in_context(sending, message)).await;
    }
    match message.task_id.clone() {
        None => begin(sending, message).await,
        Some(id) => Box::pin(submit_to(sending, id, message)).await,
    }
}

/// Records a message as a task of its own.
async fn begin(sending: Sending<'_>, message: Message) -> Result<Submitted> {
    match start::start(sending, message).await? {
        Begun::Recorded(submitted) => Ok(*submitted),
        Begun::Before(used) => Box::pin(replay::replay(sending, used)).await,
        Begun::Conflict(met) => Err(NotCommitted::Conflict(met).into()),
    }
}

/// Records a message that names a conversation at a door where that answers whatever waits there. Where nothing does,
/// or no longer, it is a task of its own, unless it was an answer before.
async fn submit_in_context(sending: Sending<'_>, message: Message) -> Result<Submitted> {
    let Sending { engine, call, .. } = sending;
    let Some(name) = message.context_id.clone() else { return begin(sending, message).await };
    let lookup = ContextLookup { ours: engine.ids.parse_context(&name), name };
    let waiting = waiting_in(engine, call, &lookup).await?;
    // Behind the look for what waits: an answer that was recorded before that look is found here, and one recorded
    // later answers the same task and is met there.
    if let Some(key) = sending.key
        && let Some(used) = engine.store.turn_key(&call.scope, Among::Context(lookup), key).await?
    {
        return replay::replay(sending, used).await;
    }
    if let Some(waiting) = waiting {
        let id = Names::of(&engine.ids, &waiting.row).task;
        let answer = Message { task_id: Some(id.clone()), ..message.clone() };
        match submit_to(sending, id, answer).await {
            Err(Error::Refused(error)) if error.kind == ErrorKind::UnsupportedOperation => {}
            answered => return answered,
        }
    }
    begin(sending, message).await
}

/// Records a message that names its task; in a dialect whose clients name their tasks, one that is not known begins.
async fn submit_to(sending: Sending<'_>, id: TaskId, message: Message) -> Result<Submitted> {
    let Sending { engine, call, .. } = sending;
    for _ in 0..TRIES {
        let found = match get_task::load(engine, call, &id).await {
            Err(Error::Refused(error))
                if error.kind == ErrorKind::TaskNotFound && call.dialect.clients_name_tasks() =>
            {
                None
            }
            found => Some(found?),
        };
        let recorded = match found {
            Some(snapshot) => follow_up::follow_up(sending, snapshot, &message).await?,
            None => match start::start(sending, message.clone()).await? {
                Begun::Recorded(submitted) => Some(*submitted),
                Begun::Before(used) => Some(replay::replay(sending, used).await?),
                // Somebody has begun a task of that name meanwhile.
                Begun::Conflict(_) => None,
            },
        };
        if let Some(submitted) = recorded {
            return Ok(submitted);
        }
    }
    Err(Error::later("the task changes too fast to take a message; try again"))
}

/// The skill a message asks for, if the agent has it.
fn known_skill(registered: &RegisteredAgent, field: &str, req: &SendMessage) -> Result<Option<String>> {
    let Some(asked) = req.asked_skill() else { return Ok(None) };
    let skills = &registered.info().skills;
    if skills.iter().any(|skill| skill.id == asked) {
        return Ok(Some(asked));
    }
    let known: Vec<&str> = skills.iter().map(|skill| skill.id.as_str()).collect();
    let wanted = match known.as_slice() {
        [] => "expected none: this agent has no skills to choose from".to_owned(),
        known => format!("expected one of {}", known.join(", ")),
    };
    Err(Error::invalid(field, wanted))
}

/// What the client calls the place where it says which skill it asks for.
fn skill_field(dialect: Dialect, req: &SendMessage) -> &'static str {
    match (&req.skill, dialect) {
        (None, _) => "metadata.skillId",
        (Some(_), Dialect::Draft) => "skill",
        (Some(_), _) => "configuration.skillId",
    }
}

/// The task of a conversation that waits for its client, the one that asked last.
async fn waiting_in(engine: &Parts, call: &Call, context: &ContextLookup) -> Result<Option<Snapshot>> {
    let mut newest: Option<Snapshot> = None;
    for state in [TaskState::InputRequired, TaskState::AuthRequired] {
        let query = ListQuery {
            context: Some(context.clone()),
            state: Some(state),
            since: None,
            after: None,
            size: 1,
        };
        let found = engine.store.list(&call.scope, query).await?.tasks.into_iter().next();
        let age = |one: &Snapshot| (one.row.status_at, one.row.no);
        newest = newest.into_iter().chain(found).max_by_key(age);
    }
    Ok(newest)
}

/// What every step of a send needs to know.
#[derive(Clone, Copy)]
struct Sending<'a> {
    engine: &'a Parts,
    call: &'a Call,
    registered: &'a RegisteredAgent,
    key: Option<MessageKey>,
    /// The skill that was asked for.
    skill: Option<&'a str>,
    /// Where it was.
    skill_field: &'static str,
    /// What the client says about its task.
    about: Option<&'a Json>,
    wait: Wait,
}

impl Sending<'_> {
    fn watch(&self, no: TaskNo) -> Watcher {
        self.engine.feed.watch(self.engine.store.clone(), self.call.scope.clone(), no)
    }
}

impl Submitted {
    /// A log that has been committed: its first entry is the status the message caused, the rest follows it.
    fn new(
        mut task: Task,
        visibility: Visibility,
        log: &Log,
        committed: Committed,
        mut watcher: Option<Watcher>,
    ) -> Result<Self> {
        if let Some(watcher) = &mut watcher {
            watcher.seek(committed.last_seq, committed.last_seq);
        }
        let seq = committed.last_seq + 1 - log.len();
        let mut numbered = (seq..).zip(log.entries().iter().cloned());
        if let Some((_, opening)) = numbered.next() {
            fold::apply(&mut task, &opening)?;
        }
        Ok(Self { task, seq, rest: numbered.collect(), visibility, watcher, replayed: false })
    }
}
