//! A turn begins, in one pass where that is possible.
//!
//! When a slot is free, accepting the message and claiming its work are one change. An agent that may overlap
//! is polled once before that change, inside the call's own task; if it is ready, everything it said joins the
//! same commit, and nothing was spawned, no channel made, no second commit paid for. If it is pending, its
//! future moves to the runner and the call becomes a watcher. Every other agent starts when the acceptance is
//! durable. Without a free slot the task is recorded as due, and the claimer takes it up later.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use protocol::{Event, Message, Task, TaskState, Timestamp};

use super::{Sending, Submitted, Wait};
use crate::{
    agent::message_size,
    context::Conversation,
    error::{Error, Result},
    feed::Watcher,
    ids::TaskNo,
    log::{Line, Log, Seq},
    runner::{Begin, Run, Slot},
    store::{Change, Committed, Conflict, KeyUsed, NotCommitted, Visibility, Work},
    task::{Names, Standing, closed::Closed},
};

/// How long an undecided task keeps a stream waiting before it is shown as a task.
const FIRST_FRAME: Duration = Duration::from_millis(100);

/// A turn about to begin.
pub(super) struct NewTurn {
    pub(super) no: TaskNo,
    pub(super) names: Names,
    /// What was said in this task before.
    pub(super) before: Vec<Message>,
    /// The number its opening status will have.
    pub(super) seq: Seq,
    /// Bytes of its log so far.
    pub(super) size: u64,
    /// What an earlier turn saved last.
    pub(super) saved: Option<Bytes>,
    /// The skill the task is about.
    pub(super) skill: Option<String>,
    /// What the task has and keeps, where it was over before.
    pub(super) closed: Closed,
    pub(super) conversation: Conversation,
    /// The task before the opening status.
    pub(super) task: Task,
}

/// What the change that begins a turn has to say.
pub(super) struct Outline {
    pub(super) log: Log,
    pub(super) standing: Standing,
    pub(super) work: Work,
    pub(super) saved: Option<Bytes>,
    /// Since when the task stands there.
    pub(super) since: Timestamp,
}

/// What became of it.
pub(super) enum Begun {
    Recorded(Box<Submitted>),
    /// The message was recorded before.
    Before(KeyUsed),
    /// The task has moved on.
    Conflict(Conflict),
}

/// Begins a turn: decides who runs it, lets an overlapping agent have its first look, and commits once.
pub(super) async fn begin(
    sending: Sending<'_>,
    turn: NewTurn,
    opening: Line,
    change: impl FnOnce(Outline) -> Change,
) -> Result<Begun> {
    // Boxed, because the futures of the callers hold this one and are moved as a whole, some of them several times.
    match sending.engine.runner.slot() {
        Some(slot) => Box::pin(begin_now(sending, slot, turn, opening, change)).await,
        None => Box::pin(begin_later(sending, turn, opening, change)).await,
    }
}

/// Records the turn as due.
async fn begin_later(
    sending: Sending<'_>,
    turn: NewTurn,
    opening: Line,
    change: impl FnOnce(Outline) -> Change,
) -> Result<Begun> {
    let engine = sending.engine;
    let now = engine.clock.now();
    let standing = Standing { visibility: Visibility::Visible, ..after(&opening.0, sending) };
    let log = Log::pack([opening]);
    let watcher = sending.watch(turn.no);
    let since = since(&log, now);
    let outline = Outline { log: log.clone(), standing, work: Work::Due(now), saved: None, since };
    let begun = engine.runner.queue(engine.store.commit(change(outline))).await;
    begun_as(told(begun), turn.task, standing.visibility, &log, Some(watcher))
}

/// Records the turn as held by this process, and runs it.
async fn begin_now(
    sending: Sending<'_>,
    slot: Slot,
    turn: NewTurn,
    opening: Line,
    change: impl FnOnce(Outline) -> Change,
) -> Result<Begun> {
    let Sending { engine, call, registered, wait, .. } = sending;
    let now = engine.clock.now();
    let standing = after(&opening.0, sending);
    let message = opening.1.clone().ok_or_else(|| Error::Broken("a turn begins with a message".into()))?;
    let policy = registered.agent().policy();
    let begin = Begin {
        no: turn.no,
        names: turn.names.clone(),
        standing,
        scope: call.scope.clone(),
        agent: Arc::clone(registered.agent()),
        skill: turn.skill,
        dialect: call.dialect,
        seq: turn.seq,
        size: turn.size + message_size(&message),
        message,
        history: turn.before,
        conversation: turn.conversation,
        attempt: 1,
        on_crash: policy.on_crash,
        stale: HashSet::new(),
        closed: turn.closed,
        saved: turn.saved,
    };
    let mut run = Run::new(&engine.runner, slot, begin, None);
    let mut events = vec![opening];
    let mut outline = Outline { log: Log::default(), standing, work: Work::Held, saved: None, since: now };
    if wait == Wait::Not {
        if standing.state == TaskState::Submitted {
            events.push((turn.names.status(TaskState::Working, None, now), None));
            outline.standing.state = TaskState::Working;
            run.stands(outline.standing);
        }
    } else if policy.overlap {
        let advanced = run.first_look(&engine.runner).await;
        events.extend(advanced.events.into_iter().map(|event| (event, None)));
        outline.standing = advanced.standing;
        outline.saved = advanced.saved;
        if advanced.ended {
            outline.work = Work::Idle;
        }
    }
    outline.log = Log::pack(events);
    outline.since = since(&outline.log, now);
    let (log, visibility) = (outline.log.clone(), outline.standing.visibility);

    if outline.work == Work::Idle {
        // The slot is free again before the commit: nothing runs any more.
        drop(run);
        let begun = engine.store.commit(change(outline)).await;
        return begun_as(begun, turn.task, visibility, &log, None);
    }
    let patience = match wait {
        Wait::AsStream => Some(FIRST_FRAME),
        Wait::Not | Wait::ForOutcome => engine.runner.limits().wait,
    };
    if let Some(patience) = patience {
        run.reveal_after(patience);
    }
    run.register(&engine.runner);
    let watcher = sending.watch(turn.no);
    let receipt = engine.store.commit(change(outline));
    let begun = engine.runner.launch(run, receipt).await;
    begun_as(told(begun), turn.task, visibility, &log, Some(watcher))
}

/// The time of the log's last status; a bare message has none of its own.
fn since(log: &Log, now: Timestamp) -> Timestamp {
    log.status().map_or(now, |(_, at)| at)
}

fn told<E>(begun: Result<Result<Committed, NotCommitted>, E>) -> Result<Committed, NotCommitted> {
    begun.unwrap_or_else(|_| Err(NotCommitted::Unavailable("the runner has stopped".into())))
}

/// Where a task stands after its opening status. Only a new one whose caller waits may still turn out to be no
/// task at all.
fn after(opening: &Event, sending: Sending<'_>) -> Standing {
    let state = match opening {
        Event::Status(update) => update.status.state,
        _ => TaskState::Submitted,
    };
    let may_be_bare = sending.wait != Wait::Not && sending.call.dialect.has_bare_messages();
    let undecided = state == TaskState::Submitted && may_be_bare;
    Standing { state, visibility: if undecided { Visibility::Undecided } else { Visibility::Visible } }
}

fn begun_as(
    begun: Result<Committed, NotCommitted>,
    task: Task,
    visibility: Visibility,
    log: &Log,
    watcher: Option<Watcher>,
) -> Result<Begun> {
    match begun {
        Ok(committed) => {
            let submitted = Submitted::new(task, visibility, log, committed, watcher)?;
            Ok(Begun::Recorded(Box::new(submitted)))
        }
        Err(NotCommitted::Conflict(met)) => Ok(Begun::Conflict(met)),
        Err(NotCommitted::KeyUsed(used)) => Ok(Begun::Before(used)),
        Err(error) => Err(error.into()),
    }
}
