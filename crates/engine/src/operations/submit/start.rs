//! A message that becomes a task.

use protocol::{ContextId, ErrorKind, Message};

use super::{
    Sending,
    turn::{Begun, NewTurn, Outline, begin},
};
use crate::{
    context::Conversation,
    error::{Error, Result},
    ids::{Tag, TaskNo},
    store::{Accept, Change, ContextLookup, ContextRow, KeyUsed, NewContext},
    task::{Names, admit, closed::Closed, context_name, fold},
};

/// Records the message as a task; a task that its client names must not be there yet.
pub(super) async fn start(sending: Sending<'_>, message: Message) -> Result<Begun> {
    let Sending { engine, call, key, .. } = sending;
    if let Some(max) = sending.registered.retention().max_tasks
        && let Some(used) = refuse_beyond(sending, max).await?
    {
        return Ok(Begun::Before(used));
    }
    admit::fits(0, &message, engine.runner.limits().max_task)?;
    let client_id = message.task_id.clone();
    let context = new_context(sending, message.context_id.as_ref()).await?;
    let no = engine.numbers.next(&*engine.store).await?;
    let tag = Tag::random();
    let (mut names, conversation) = name(sending, no, tag, &context);
    if let Some(id) = &client_id {
        names.task = id.clone();
    }
    let opening = admit::about(sending.about, admit::start(&names, message, engine.clock.now()));
    let task = fold::begin(&names);
    let skill = sending.skill.map(str::to_owned);
    let turn = NewTurn {
        no,
        before: Vec::new(),
        seq: 1,
        saved: None,
        size: 0,
        skill: skill.clone(),
        closed: Closed::default(),
        conversation,
        task,
        names,
    };
    let accept = |outline: Outline| {
        Change::Accept(Box::new(Accept {
            no,
            tag,
            scope: call.scope.clone(),
            client_id,
            skill,
            origin: call.dialect,
            context,
            log: outline.log,
            state: outline.standing.state,
            status_at: outline.since,
            visibility: outline.standing.visibility,
            work: outline.work,
            saved: outline.saved,
            key,
        }))
    };
    begin(sending, turn, opening, accept).await
}

/// Refuses new work of an agent that has as many open tasks as it may keep: those are never given up for another.
/// The repetition of a message is no new work; gives where it was recorded.
async fn refuse_beyond(sending: Sending<'_>, max: u64) -> Result<Option<KeyUsed>> {
    let Sending { engine, call, key, .. } = sending;
    let open = engine.store.count_open(call.scope.agent()).await?;
    if open < max {
        return Ok(None);
    }
    if let Some(key) = key
        && let Some(used) = engine.store.first_use(key).await?
    {
        return Ok(Some(used));
    }
    let text = format!("this agent has {open} open tasks and keeps {max}; wait until one has ended");
    Err(Error::refused(ErrorKind::RateLimited, text))
}

/// The conversation a new task joins: the named one if it is known here, else one of that name.
async fn new_context(sending: Sending<'_>, name: Option<&ContextId>) -> Result<NewContext> {
    let Some(name) = name else { return Ok(NewContext::Own) };
    let lookup = ContextLookup { ours: sending.engine.ids.parse_context(name), name: name.clone() };
    let known = sending.engine.store.context(&sending.call.scope, lookup).await?;
    if known.is_none() && sending.call.task_policy.known_contexts_only {
        return Err(Error::invalid("message.contextId", "expected a context of this agent, or none"));
    }
    Ok(known.map_or_else(|| NewContext::Named(name.clone()), NewContext::Joined))
}

/// How a new task and its conversation are called, and what was said there before.
fn name(sending: Sending<'_>, no: TaskNo, tag: Tag, context: &NewContext) -> (Names, Conversation) {
    let ids = &sending.engine.ids;
    let begun = |name| ContextRow { first: no, tag: ids.context_tag(tag), name };
    let row = match context {
        NewContext::Own => begun(None),
        NewContext::Named(name) => begun(Some(name.clone())),
        NewContext::Joined(row) => row.clone(),
    };
    let names = Names { task: ids.task(no, tag), context: context_name(ids, &row) };
    let store = sending.engine.store.clone();
    (names, Conversation::new(store, sending.call.scope.clone(), row.first, no))
}
