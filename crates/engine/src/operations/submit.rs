//! Records a message and starts its turn: the part that blocking and streaming sends share.
//!
//! A message without a task id starts a new task ([`start`]); a message to a task is its next input
//! ([`follow_up`]); a duplicate gets the reply of the first one ([`replay`]). [`turn`] starts the run, in one
//! commit where possible. A message may name a skill whose server still starts ([`named_skill`]).

mod follow_up;
pub(crate) mod named_skill;
mod replay;
mod start;
mod turn;

use std::{collections::HashSet, sync::Arc};

use protocol::{ErrorKind, Json, Message, PushConfig, SendMessage, Task, TaskId, TaskState, Timestamp};

use self::{
    named_skill::skill_field,
    turn::{StartResult, queue_full},
};
use super::{get_task, push_configs::WebhookRequest};
use crate::{
    agent::Outcome,
    catalog::RegisteredAgent,
    context::Conversation,
    engine::{Call, EngineInner, ResponseNote},
    error::{Error, Result},
    feed::Watcher,
    ids::TaskNo,
    log::{Entry, Log, Seq},
    operations::idempotency,
    runner::TurnInput,
    skill::call::{CallRequest, SkillCall},
    store::{
        Committed, ContextLookup, KeyOwner, ListQuery, LogReader, MessageKey, NewWebhook, NotCommitted,
        TaskRow, View, Visibility,
    },
    task::{PublicIds, artifact_log::ArtifactLog, earlier_artifacts::EarlierArtifacts, fold},
};

/// How long the caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitMode {
    /// Until the message is committed.
    Immediate,
    /// Until the turn ends, for one reply.
    Blocking,
    /// Until the turn ends, for every event.
    Streaming,
}

/// A committed message.
pub(super) struct Submitted {
    /// The task as of the status update this message caused.
    pub(super) task: Task,
    /// Sequence number of that status update.
    pub(super) seq: Seq,
    /// Later entries of the same commit.
    pub(super) rest: Vec<(Seq, Arc<Entry>)>,
    /// Visibility of the task after that commit.
    pub(super) visibility: Visibility,
    /// Follows later entries; `None` when the turn has already ended.
    pub(super) watcher: Option<Watcher>,
    /// What the response reports beside the task.
    pub(super) note: Option<ResponseNote>,
}

/// How often a message that has lost a race is decided again. Others that lost wait meanwhile, so each try
/// competes only with the run and with messages that have just arrived.
const MAX_RETRIES: usize = 16;

/// Commits the message, and starts or queues its turn.
pub(super) async fn submit(
    engine: &EngineInner,
    call: Call,
    registered: &Arc<RegisteredAgent>,
    req: SendMessage,
    wait_mode: WaitMode,
) -> Result<Submitted> {
    let skill_field = skill_field(call.dialect(), &req);
    let skill = req.requested_skill();
    let updated;
    let registered = match &skill {
        Some(asked) if registered.skill_for(asked, &call.scope).is_none() => {
            updated =
                Box::pin(named_skill::await_agent(engine, &call, registered, asked, skill_field)).await?;
            &updated
        }
        _ => registered,
    };
    let given = call.idempotency_key.as_deref();
    let key = idempotency::key(registered.dedupe(), &engine.seal_key, &call.scope, given, &req)?;
    let task_metadata = req.metadata.as_ref().filter(|_| call.dialect().rules().copies_request_metadata);
    let skill = skill.as_deref();
    let push = req.push.as_ref();
    let ctx = SendContext {
        engine,
        call: &call,
        registered,
        key,
        skill,
        skill_field,
        task_metadata,
        push,
        wait_mode,
    };
    let mut message = req.message;
    if message.id.as_str().is_empty() {
        message.id = uuid::Uuid::new_v4().to_string().into();
    }
    // The futures of the rarer paths are boxed, so that the future of a first message stays small.
    if message.task_id.is_none() && call.task_policy.resume_by_context && message.context_id.is_some() {
        return Box::pin(submit_in_context(ctx, message)).await;
    }
    match message.task_id.clone() {
        None => begin(ctx, message).await,
        Some(id) => Box::pin(submit_to(ctx, id, message)).await,
    }
}

/// Starts a new task with the message.
async fn begin(ctx: SendContext<'_>, message: Message) -> Result<Submitted> {
    match start::start(ctx, message).await? {
        StartResult::Recorded(submitted) => Ok(*submitted),
        StartResult::Duplicate(used) => Box::pin(replay::replay(ctx, used)).await,
        StartResult::Conflict(met) => Err(NotCommitted::Conflict(met).into()),
        StartResult::Full => Err(queue_full()),
    }
}

/// Records a message with a context id and no task id under a profile with `resume_by_context`: it continues
/// the task that waits for input in that context. If none waits (any more), it starts a new task, unless it
/// is a duplicate of an earlier follow-up.
async fn submit_in_context(ctx: SendContext<'_>, message: Message) -> Result<Submitted> {
    let SendContext { engine, call, .. } = ctx;
    let Some(name) = message.context_id.clone() else { return begin(ctx, message).await };
    let lookup = ContextLookup { ours: engine.ids.parse_context(&name), name };
    let waiting = waiting_in(engine, call, &lookup).await?;
    // After the lookup of the waiting task: a duplicate committed before that lookup is found here; one
    // committed later continues the same task, and the commit detects it.
    if let Some(key) = ctx.key
        && let Some(used) = engine.store.turn_key(&call.scope, KeyOwner::Context(lookup), key).await?
    {
        return replay::replay(ctx, used).await;
    }
    if let Some(waiting) = waiting {
        let id = PublicIds::of(&engine.ids, &waiting).task;
        let follow_up = Message { task_id: Some(id.clone()), ..message.clone() };
        match submit_to(ctx, id, follow_up).await {
            Err(Error::Refused(error)) if error.kind == ErrorKind::UnsupportedOperation => {}
            recorded => return recorded,
        }
    }
    begin(ctx, message).await
}

/// Records a message with a task id. If the task changed between read and commit, the message is decided again
/// on its new state.
async fn submit_to(ctx: SendContext<'_>, id: TaskId, message: Message) -> Result<Submitted> {
    if let Some(submitted) = try_submit_to(ctx, &id, &message).await? {
        return Ok(submitted);
    }
    // Messages that lose a race try again one after the other: if they all tried at once, each would need as
    // many tries as there are messages before it.
    let _turn = ctx.engine.contended_tasks.wait_turn(&id).await;
    for _ in 0..MAX_RETRIES {
        if let Some(submitted) = try_submit_to(ctx, &id, &message).await? {
            return Ok(submitted);
        }
    }
    Err(Error::later("the task changes too fast to take a message; try again"))
}

/// Records a message with a task id; `None` when the task changed between read and commit. In a dialect whose
/// clients choose task ids, an unknown id starts a new task.
async fn try_submit_to(ctx: SendContext<'_>, id: &TaskId, message: &Message) -> Result<Option<Submitted>> {
    let SendContext { engine, call, .. } = ctx;
    let found = match get_task::load_row(engine, call, id).await {
        Err(Error::Refused(error))
            if error.kind == ErrorKind::TaskNotFound && call.dialect().rules().clients_choose_task_ids =>
        {
            None
        }
        found => Some(found?),
    };
    match found {
        Some(row) => follow_up::follow_up(ctx, &row, message).await,
        None => match start::start(ctx, message.clone()).await? {
            StartResult::Recorded(submitted) => Ok(Some(*submitted)),
            StartResult::Duplicate(used) => replay::replay(ctx, used).await.map(Some),
            // Another call has started a task with that id meanwhile.
            StartResult::Conflict(_) => Ok(None),
            StartResult::Full => Err(queue_full()),
        },
    }
}

/// The task of a conversation that waits for input or authentication; the one with the newest status if there
/// are several.
async fn waiting_in(engine: &EngineInner, call: &Call, context: &ContextLookup) -> Result<Option<TaskRow>> {
    let mut newest: Option<TaskRow> = None;
    for state in [TaskState::InputRequired, TaskState::AuthRequired] {
        let query = ListQuery {
            context: Some(context.clone()),
            state: Some(state),
            since: None,
            after: None,
            size: 1,
            view: View::status_only(),
        };
        let page = engine.store.list(&call.scope, query).await?;
        let found = page.tasks.into_iter().next().map(|snapshot| snapshot.row);
        let age = |one: &TaskRow| (one.status_at, one.no);
        newest = newest.into_iter().chain(found).max_by_key(age);
    }
    Ok(newest)
}

/// The context of one send, shared by its steps.
#[derive(Clone, Copy)]
struct SendContext<'a> {
    engine: &'a EngineInner,
    call: &'a Call,
    registered: &'a Arc<RegisteredAgent>,
    key: Option<MessageKey>,
    /// The requested skill.
    skill: Option<&'a str>,
    /// The request field it was found in.
    skill_field: &'static str,
    /// Request metadata that describes the task, in dialects that have it.
    task_metadata: Option<&'a Json>,
    /// The webhook that the request registers.
    push: Option<&'a PushConfig>,
    wait_mode: WaitMode,
}

impl SendContext<'_> {
    /// The webhook that the request registers for a task, and the key that was made for it.
    fn webhook(&self, no: TaskNo, id: &TaskId) -> Result<(Option<Box<NewWebhook>>, Option<ResponseNote>)> {
        let Some(config) = self.push else { return Ok((None, None)) };
        let field = Some(self.call.dialect().inline_webhook_field());
        let request = WebhookRequest { task: no, task_id: id, config, field };
        let (webhook, note) = request.webhook(self.engine, self.call, self.registered)?;
        Ok((Some(Box::new(webhook)), note))
    }

    /// The call of a skill that a task's first message asks for.
    fn first_request<'a>(&'a self, message: &'a Arc<Message>) -> CallRequest<'a> {
        CallRequest {
            registered: self.registered,
            limits: self.engine.runner.limits(),
            scope: &self.call.scope,
            named: self.skill,
            before: None,
            message,
            history: &[],
            saved: None,
        }
    }

    /// Refuses a message whose arguments the schema of its skill does not allow, where the profile wants that.
    fn check_arguments(&self, skill_call: &SkillCall) -> Result<()> {
        if !self.call.task_policy.refuse_invalid_arguments {
            return Ok(());
        }
        match skill_call.verdict() {
            // Without a skill it is about the choice of one.
            Some(Outcome::Rejected { message: Some(reason) } | Outcome::NeedInput { message: reason })
                if skill_call.skill.is_some() =>
            {
                Err(Error::invalid("message", reason.text()))
            }
            _ => Ok(()),
        }
    }

    /// The first turn of a task. Its conversation begins with the task `first_of_context`.
    fn first_turn(
        &self,
        no: TaskNo,
        names: PublicIds,
        call: SkillCall,
        deadline: Option<Timestamp>,
        size: u64,
        first_of_context: TaskNo,
    ) -> TurnInput {
        let scope = self.call.scope.clone();
        TurnInput {
            no,
            names,
            conversation: Conversation::new(self.engine.store.clone(), scope.clone(), first_of_context, no),
            scope,
            call,
            deadline,
            origin: self.call.origin,
            seq: 1,
            size,
            progress_size: 0,
            history: Vec::new(),
            open_artifacts: HashSet::new(),
            earlier_artifacts: EarlierArtifacts::default(),
            journal: Vec::new(),
            deaths: 0,
            trace: self.call.trace.clone(),
        }
    }

    fn watch(&self, no: TaskNo) -> Watcher {
        self.engine.feed.watch(self.engine.store.clone(), self.call.scope.clone(), no)
    }

    /// A reader of a task's log up to the entry with the number `end`.
    fn log<'a>(&'a self, row: &'a TaskRow, end: Seq) -> LogReader<'a> {
        LogReader::new(&*self.engine.store, &self.call.scope, row, end)
    }

    /// The task and its artifacts as of the end of `reader`.
    async fn fold(&self, row: &TaskRow, reader: &mut LogReader<'_>) -> Result<(Task, ArtifactLog)> {
        let mut task = fold::begin(&PublicIds::of(&self.engine.ids, row));
        let mut artifacts = ArtifactLog::default();
        while let Some(slice) = reader.next().await? {
            for (_, entry) in &slice {
                fold::apply(&mut task, entry)?;
                artifacts.add(entry)?;
            }
        }
        Ok((task, artifacts))
    }
}

impl Submitted {
    /// From a committed log: its first entry is the status update the message caused, the rest follows it.
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
        Ok(Self { task, seq, rest: numbered.collect(), visibility, watcher, note: None })
    }
}
