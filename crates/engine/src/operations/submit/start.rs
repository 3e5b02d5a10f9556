//! A message that becomes a task.

use protocol::{ContextId, Message};

use super::{
    Sending, Submitted,
    replay::replay,
    turn::{Begun, NewTurn, Outline, begin},
};
use crate::{
    context::Conversation,
    error::Result,
    ids::{Tag, TaskNo},
    store::{Accept, Change, ContextLookup, ContextRow, NewContext, NotCommitted},
    task::{Names, admit, context_name, fold},
};

pub(super) async fn start(sending: Sending<'_>, message: Message) -> Result<Submitted> {
    let Sending { engine, call, key, .. } = sending;
    let context = new_context(sending, message.context_id.as_ref()).await?;
    let no = engine.numbers.next(&*engine.store).await?;
    let tag = Tag::random();
    let (names, conversation) = name(sending, no, tag, &context);
    let opening = admit::start(&names, message, engine.clock.now());
    let task = fold::begin(&names);
    let turn = NewTurn { no, before: Vec::new(), saved: None, size: 0, conversation, task, names };
    let accept = |outline: Outline| {
        Change::Accept(Box::new(Accept {
            no,
            tag,
            scope: call.scope.clone(),
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
    match begin(sending, turn, opening, accept).await? {
        Begun::Recorded(submitted) => Ok(*submitted),
        Begun::Before(used) => Box::pin(replay(sending, used)).await,
        Begun::Conflict(met) => Err(NotCommitted::Conflict(met).into()),
    }
}

/// The conversation a new task joins: the named one if it is known here, else one of that name.
async fn new_context(sending: Sending<'_>, name: Option<&ContextId>) -> Result<NewContext> {
    let Some(name) = name else { return Ok(NewContext::Own) };
    let lookup = ContextLookup { ours: sending.engine.ids.parse_context(name), name: name.clone() };
    let known = sending.engine.store.context(&sending.call.scope, lookup).await?;
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
