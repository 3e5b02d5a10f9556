//! A message that starts a new task.

use protocol::{ContextId, ErrorKind, Message, TaskId};

use super::{
    SendContext, Submitted,
    turn::{StartResult, TurnCommit, begin},
};
use crate::{
    agent::message_size,
    error::{Error, Result},
    ids::{Tag, TaskNo},
    skill::call::{SkillCall, Stage},
    store::{Accept, Change, ContextLookup, ContextRow, KeyUsed, NewContext, NewWebhook, TenantAgent},
    task::{PublicIds, admit, context_name, fold},
};

/// Records the message as a new task; a client-chosen task id must not exist yet.
pub(super) async fn start(ctx: SendContext<'_>, message: Message) -> Result<StartResult> {
    let SendContext { engine, call, .. } = ctx;
    if let Some(max) = ctx.registered.retention().max_tasks
        && let Some(used) = check_open_task_limit(ctx, max).await?
    {
        return Ok(StartResult::Duplicate(used));
    }
    admit::fits(0, &message, engine.runner.limits().max_task)?;
    let new = NewTask::of(ctx, &message).await?;
    let (names, first_of_context) = assign_ids(ctx, &new);
    let (webhook, note) = ctx.webhook(new.no, &names.task)?;
    let now = engine.clock.now();
    let origin_metadata = call.origin.task_metadata();
    let task_metadata = ctx.task_metadata.or(origin_metadata.as_ref());
    let (opening, message) = admit::start_opening(&names, message, task_metadata, now);
    let task = fold::begin(&names);
    let mut skill_call = SkillCall::select(ctx.first_request(&message)).admit(Stage::Request).await;
    if let Some(refusal) = skill_call.take_refusal() {
        return Err(refusal.into());
    }
    ctx.check_arguments(&skill_call)?;
    let deadline = skill_call.policy.deadline_from(now);
    let size = message_size(&message);
    let turn = ctx.first_turn(new.no, names, skill_call, deadline, size, first_of_context);
    let accept = |commit: TurnCommit| new.accept(ctx, webhook, commit);
    match begin(ctx, turn, task, (opening, message), accept).await? {
        StartResult::Full => {
            // A duplicate needs no slot.
            let used = duplicate_of(ctx).await?;
            Ok(used.map_or(StartResult::Full, StartResult::Duplicate))
        }
        StartResult::Recorded(submitted) => {
            Ok(StartResult::Recorded(Box::new(Submitted { note, ..*submitted })))
        }
        started => Ok(started),
    }
}

/// A task that is not recorded yet.
struct NewTask {
    no: TaskNo,
    tag: Tag,
    client_id: Option<TaskId>,
    context: NewContext,
}

impl NewTask {
    /// The task that a message starts, in the conversation that it names.
    async fn of(ctx: SendContext<'_>, message: &Message) -> Result<Self> {
        let context = new_context(ctx, message.context_id.as_ref()).await?;
        let no = ctx.engine.task_numbers.next(&*ctx.engine.store).await?;
        Ok(Self { no, tag: Tag::random(), client_id: message.task_id.clone(), context })
    }

    /// The change that records it.
    fn accept(self, ctx: SendContext<'_>, webhook: Option<Box<NewWebhook>>, commit: TurnCommit) -> Change {
        let SendContext { call, key, .. } = ctx;
        let Self { no, tag, client_id, context } = self;
        Change::Accept(Box::new(Accept {
            no,
            tag,
            scope: call.scope.clone(),
            client_id,
            skill: commit.skill,
            skill_source: commit.skill_source,
            admitted: commit.admitted,
            origin: call.origin,
            context,
            log: commit.log,
            state: commit.current.state,
            status_at: commit.since,
            visibility: commit.current.visibility,
            work: commit.work,
            saved: commit.saved,
            journal: commit.journal,
            deadline: commit.deadline,
            progress_size: commit.progress_size,
            key,
            webhook,
            caps: call.caps,
            asking_turns: commit.asking_turns,
        }))
    }
}

/// Rejects a new task when the agent has `max_tasks` open tasks: open tasks are never evicted. A duplicate is
/// not a new task; returns where it was recorded.
async fn check_open_task_limit(ctx: SendContext<'_>, max: u64) -> Result<Option<KeyUsed>> {
    let SendContext { engine, call, .. } = ctx;
    let open = engine.store.count_open(&TenantAgent::of(&call.scope)).await?;
    if open < max {
        return Ok(None);
    }
    if let Some(used) = duplicate_of(ctx).await? {
        return Ok(Some(used));
    }
    let text = format!("this agent has {open} open tasks and its limit is {max}; wait until one has ended");
    Err(Error::refused(ErrorKind::RateLimited, text))
}

/// Where the message was recorded, if it is a duplicate.
async fn duplicate_of(ctx: SendContext<'_>) -> Result<Option<KeyUsed>> {
    match ctx.key {
        Some(key) => Ok(ctx.engine.store.first_use(key).await?),
        None => Ok(None),
    }
}

/// The conversation a new task joins: the one with this id if it exists in the caller's scope, else a new one
/// with this id.
async fn new_context(ctx: SendContext<'_>, name: Option<&ContextId>) -> Result<NewContext> {
    let Some(name) = name else { return Ok(NewContext::Own) };
    let lookup = ContextLookup { ours: ctx.engine.ids.parse_context(name), name: name.clone() };
    let known = ctx.engine.store.context(&ctx.call.scope, lookup).await?;
    if known.is_none() && ctx.call.task_policy.known_contexts_only {
        return Err(Error::invalid("message.contextId", "expected a context of this agent, or none"));
    }
    Ok(known.map_or_else(|| NewContext::Named(name.clone()), NewContext::Joined))
}

/// The public ids of a new task and its conversation, and the first task of that conversation.
fn assign_ids(ctx: SendContext<'_>, new: &NewTask) -> (PublicIds, TaskNo) {
    let ids = &ctx.engine.ids;
    let new_row = |name| ContextRow { first: new.no, tag: ids.context_tag(new.tag), name };
    let row = match &new.context {
        NewContext::Own => new_row(None),
        NewContext::Named(name) => new_row(Some(name.clone())),
        NewContext::Joined(row) => row.clone(),
    };
    let task = new.client_id.clone().unwrap_or_else(|| ids.task(new.no, new.tag));
    (PublicIds { task, context: context_name(ids, &row) }, row.first)
}
