//! A message that starts a new task.

use std::collections::HashSet;

use protocol::{ContextId, ErrorKind, Message};

use super::{
    SendContext, Submitted,
    turn::{StartResult, TurnCommit, begin, message_of},
};
use crate::{
    agent::message_size,
    context::Conversation,
    error::{Error, Result},
    ids::{Tag, TaskNo},
    runner::TurnInput,
    skill::call::{CallRequest, SkillCall, Stage},
    store::{Accept, Change, ContextLookup, ContextRow, KeyUsed, NewContext, TenantAgent},
    task::{PublicIds, admit, context_name, earlier_artifacts::EarlierArtifacts, fold},
};

/// Records the message as a new task; a client-chosen task id must not exist yet.
pub(super) async fn start(ctx: SendContext<'_>, message: Message) -> Result<StartResult> {
    let SendContext { engine, call, key, .. } = ctx;
    if let Some(max) = ctx.registered.retention().max_tasks
        && let Some(used) = check_open_task_limit(ctx, max).await?
    {
        return Ok(StartResult::Duplicate(used));
    }
    admit::fits(0, &message, engine.runner.limits().max_task)?;
    let client_id = message.task_id.clone();
    let context = new_context(ctx, message.context_id.as_ref()).await?;
    let no = engine.task_numbers.next(&*engine.store).await?;
    let tag = Tag::random();
    let (mut names, conversation) = assign_ids(ctx, no, tag, &context);
    if let Some(id) = &client_id {
        names.task = id.clone();
    }
    let (webhook, note) = ctx.webhook(no, &names.task)?;
    let now = engine.clock.now();
    let origin_metadata = call.origin.task_metadata();
    let task_metadata = ctx.task_metadata.or(origin_metadata.as_ref());
    let opening = admit::with_task_metadata(task_metadata, admit::start_entry(&names, message, now));
    let task = fold::begin(&names);
    let message = message_of(&opening)?;
    let size = message_size(&message);
    let skill_call = SkillCall::decide(CallRequest {
        registered: ctx.registered,
        limits: engine.runner.limits(),
        scope: &call.scope,
        named: ctx.skill,
        before: None,
        message: &message,
        history: &[],
        saved: None,
        stage: Stage::Request,
    })
    .await;
    let deadline = skill_call.policy.deadline_from(now);
    let (skill, skill_source, admitted) = skill_call.selected();
    let turn = TurnInput {
        no,
        names,
        scope: call.scope.clone(),
        call: skill_call,
        deadline,
        origin: call.origin,
        seq: 1,
        size,
        progress_size: 0,
        history: Vec::new(),
        conversation,
        open_artifacts: HashSet::new(),
        earlier_artifacts: EarlierArtifacts::default(),
        journal: Vec::new(),
        deaths: 0,
        trace: call.trace.clone(),
    };
    let accept = |commit: TurnCommit| {
        Change::Accept(Box::new(Accept {
            no,
            tag,
            scope: call.scope.clone(),
            client_id,
            skill,
            skill_source,
            admitted,
            origin: call.origin,
            context,
            log: commit.log,
            state: commit.current.state,
            status_at: commit.since,
            visibility: commit.current.visibility,
            work: commit.work,
            saved: commit.saved,
            journal: commit.journal,
            deadline,
            progress_size: commit.progress_size,
            key,
            webhook,
            caps: call.caps,
            asking_turns: commit.asking_turns,
        }))
    };
    match begin(ctx, turn, task, opening, accept).await? {
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

/// The public ids of a new task and its conversation, and a reader of that conversation's earlier messages.
fn assign_ids(ctx: SendContext<'_>, no: TaskNo, tag: Tag, context: &NewContext) -> (PublicIds, Conversation) {
    let ids = &ctx.engine.ids;
    let new_row = |name| ContextRow { first: no, tag: ids.context_tag(tag), name };
    let row = match context {
        NewContext::Own => new_row(None),
        NewContext::Named(name) => new_row(Some(name.clone())),
        NewContext::Joined(row) => row.clone(),
    };
    let names = PublicIds { task: ids.task(no, tag), context: context_name(ids, &row) };
    let store = ctx.engine.store.clone();
    (names, Conversation::new(store, ctx.call.scope.clone(), row.first, no))
}
