//! Records a message and gets its turn going: what both sends share.
//!
//! When a slot is free, accepting the message and claiming its work are one change. An agent that may overlap
//! is polled once before that change, inside the call's own task; if it is ready, everything it said joins the
//! same commit, and nothing was spawned, no channel made, no second commit paid for. If it is pending, its
//! future moves to the runner and the call becomes a watcher. Every other agent starts when the acceptance is
//! durable. Without a free slot the task is recorded as due, and the claimer takes it up later.

use std::{collections::HashSet, sync::Arc};

use protocol::{ContextId, ErrorKind, Event, Message, SendMessage, Task, TaskState};

use super::{get_task, push_configs};
use crate::{
    agents::Hosted,
    context::Conversation,
    engine::{Call, Parts},
    error::{Error, Result},
    feed::{Patience, Watcher},
    idempotency,
    ids::{Tag, TaskNo},
    log::{Entry, Log, Seq},
    runner::{Begin, Run},
    store::{
        Accept, Advance, Change, Committed, Conflict, ContextLookup, ContextRow, KeyUsed, MAX_UNANSWERED,
        MessageKey, NewContext, NotCommitted, Snapshot, Step, Visibility, Work,
    },
    task::{Names, Standing, admit, context_name, fold},
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
    let hosted = engine.agent(&call)?;
    if req.push.is_some() {
        return Err(push_configs::not_supported());
    }
    let given = call.idempotency_key.as_deref();
    let key = idempotency::key(hosted.dedupe(), &engine.seal_key, &call.scope, given, &req)?;
    let Some(id) = req.message.task_id.clone() else {
        return start(engine, &call, hosted, req.message, key, wait).await;
    };
    for _ in 0..TRIES {
        let snapshot = get_task::load(engine, &call, &id).await?;
        let going_on = Box::pin(go_on(engine, &call, hosted, snapshot, &req.message, key, wait));
        if let Some(submitted) = going_on.await? {
            return Ok(submitted);
        }
    }
    Err(Error::Unavailable("the task changes too fast to take a message; try again".into()))
}

/// A message that becomes a task.
async fn start(
    engine: &Parts,
    call: &Call,
    hosted: &Hosted,
    message: Message,
    key: Option<MessageKey>,
    wait: Wait,
) -> Result<Submitted> {
    let context = new_context(engine, call, message.context_id.as_ref()).await?;
    let no = engine.numbers.next(&*engine.store).await?;
    let tag = Tag::random();
    let (names, conversation) = name(engine, call, no, tag, &context);
    let opening = admit::start(&names, message, engine.clock.now());
    let task = fold::begin(&names);
    let turn = NewTurn { no, before: Vec::new(), saved: None, size: 0, conversation, task, names };
    let accept = |outline: Outline| {
        Change::Accept(Box::new(Accept {
            no,
            tag,
            scope: call.scope.clone(),
            context: context.clone(),
            log: outline.log,
            state: outline.standing.state,
            status_at: outline.now,
            visibility: outline.standing.visibility,
            work: outline.work,
            saved: outline.saved,
            key,
        }))
    };
    match begin(engine, call, hosted, turn, opening, wait, accept).await? {
        Begun::Recorded(submitted) => Ok(*submitted),
        Begun::Before(used) => Box::pin(replay(engine, call, used, wait)).await,
        Begun::Conflict(met) => Err(NotCommitted::Conflict(met).into()),
    }
}

/// A message that was recorded before: the same task, from the status that message caused.
async fn replay(engine: &Parts, call: &Call, used: KeyUsed, wait: Wait) -> Result<Submitted> {
    let id = engine.ids.task(used.task, used.tag);
    if !used.same {
        let text =
            "this key was used for another message before; use a new one, or send the same message again";
        let error = protocol::Error::new(ErrorKind::MessageIdReused, text);
        return Err(Error::Refused(error.with("taskId", &id)));
    }
    let mut watcher = watch(engine, call, used.task, wait);
    let found = engine.store.find(&call.scope, engine.lookup(&id)).await?;
    let found = found.filter(|snapshot| snapshot.row.visibility != Visibility::Purged);
    let row = found.ok_or_else(|| protocol::Error::task_not_found(&id))?.row;
    let mut task = fold::begin(&Names::of(&engine.ids, &row));
    let mut entries = engine.store.entries(&call.scope, row.no, 0, usize::MAX).await?;
    let rest = entries.split_off(entries.partition_point(|(seq, _)| *seq <= used.seq));
    for (_, entry) in &entries {
        fold::apply(&mut task, entry)?;
    }
    let last = rest.last().map_or(used.seq, |(seq, _)| *seq);
    watcher.seek(last, last);
    Ok(Submitted {
        task,
        seq: used.seq,
        rest,
        visibility: row.visibility,
        watcher: Some(watcher),
        replayed: true,
    })
}

/// A message to a task that exists; `None` when the task moved on before it was recorded.
async fn go_on(
    engine: &Parts,
    call: &Call,
    hosted: &Hosted,
    snapshot: Snapshot,
    message: &Message,
    key: Option<MessageKey>,
    wait: Wait,
) -> Result<Option<Submitted>> {
    let names = Names::of(&engine.ids, &snapshot.row);
    let verdict = match admit::follow_up(&names, snapshot.row.state, message.context_id.as_ref()) {
        Ok(verdict) => verdict,
        // A repetition of the message that led here is answered as it was then, though the task takes no more.
        Err(refusal) => match key {
            Some(key) => return repeated(engine, call, &snapshot, key, wait, refusal).await.map(Some),
            None => return Err(refusal),
        },
    };
    if snapshot.row.size > engine.runner.limits().max_task {
        let text = format!("task {} has reached its size limit and takes no more messages", names.task);
        return Err(Error::refused(ErrorKind::UnsupportedOperation, text));
    }
    let opening = admit::go_on(&names, message.clone(), engine.clock.now());
    match verdict {
        admit::FollowUp::More => say_more(engine, call, &names, snapshot, opening, key, wait).await,
        admit::FollowUp::Answer => answer(engine, call, hosted, names, snapshot, opening, key, wait).await,
    }
}

/// A follow-up to a task that takes no more: answered as before if it is a repetition, else refused.
async fn repeated(
    engine: &Parts,
    call: &Call,
    snapshot: &Snapshot,
    key: MessageKey,
    wait: Wait,
    refusal: Error,
) -> Result<Submitted> {
    match engine.store.turn_key(&call.scope, snapshot.row.no, key).await? {
        Some(used) => replay(engine, call, used, wait).await,
        None => Err(refusal),
    }
}

/// A message that an interrupted task waited for: its next run begins.
async fn answer(
    engine: &Parts,
    call: &Call,
    hosted: &Hosted,
    names: Names,
    snapshot: Snapshot,
    opening: (Event, Option<Message>),
    key: Option<MessageKey>,
    wait: Wait,
) -> Result<Option<Submitted>> {
    let no = snapshot.row.no;
    let work = engine.store.work(no).await?;
    let task = fold::snapshot(&engine.ids, &snapshot)?;
    let first = snapshot.row.context.first;
    let turn = NewTurn {
        no,
        names,
        before: task.history.clone(),
        size: snapshot.row.size,
        saved: work.and_then(|work| work.saved),
        conversation: Conversation::new(engine.store.clone(), call.scope.clone(), first, no),
        task,
    };
    let resume = |outline: Outline| {
        let step = match outline.work {
            Work::Due(at) => Step::Queue { at },
            Work::Held => Step::Resume,
            Work::Idle => Step::Settle,
        };
        Change::Advance(Box::new(Advance {
            no,
            step,
            log: outline.log,
            status: Some((outline.standing.state, outline.now)),
            visibility: None,
            saved: outline.saved,
            key,
        }))
    };
    match begin(engine, call, hosted, turn, opening, wait, resume).await? {
        Begun::Recorded(submitted) => Ok(Some(*submitted)),
        Begun::Before(used) => replay(engine, call, used, wait).await.map(Some),
        Begun::Conflict(_) => Ok(None),
    }
}

/// A message to a task that is being worked on: it waits for the run's end.
async fn say_more(
    engine: &Parts,
    call: &Call,
    names: &Names,
    snapshot: Snapshot,
    opening: (Event, Option<Message>),
    key: Option<MessageKey>,
    wait: Wait,
) -> Result<Option<Submitted>> {
    let no = snapshot.row.no;
    let watcher = watch(engine, call, no, wait);
    let log = Log::pack([opening]);
    let change = Change::Advance(Box::new(Advance {
        no,
        step: Step::Listen,
        log: log.clone(),
        status: Some((TaskState::Working, engine.clock.now())),
        visibility: None,
        saved: None,
        key,
    }));
    match engine.store.commit(change).await {
        Ok(committed) => {
            let task = as_of(engine, call, &snapshot, committed.last_seq).await?;
            Ok(Some(recorded(task, Visibility::Visible, &log, committed, Some(watcher))?))
        }
        Err(NotCommitted::Conflict(met)) if met.unanswered >= MAX_UNANSWERED => {
            let text =
                format!("task {} has {MAX_UNANSWERED} unanswered messages already; wait for it", names.task);
            Err(Error::refused(ErrorKind::UnsupportedOperation, text))
        }
        Err(NotCommitted::Conflict(_)) => Ok(None),
        Err(NotCommitted::KeyUsed(used)) => replay(engine, call, used, wait).await.map(Some),
        Err(error) => Err(error.into()),
    }
}

/// The task before the entry of this number: the snapshot, and what its run said since.
async fn as_of(engine: &Parts, call: &Call, snapshot: &Snapshot, seq: Seq) -> Result<Task> {
    let mut task = fold::snapshot(&engine.ids, snapshot)?;
    let mut cursor = snapshot.row.last_seq;
    while cursor + 1 < seq {
        let missing = usize::try_from(seq - cursor - 1).unwrap_or(usize::MAX);
        let entries = engine.store.entries(&call.scope, snapshot.row.no, cursor, missing).await?;
        let Some((last, _)) = entries.last() else { break };
        cursor = *last;
        for (_, entry) in &entries {
            fold::apply(&mut task, entry)?;
        }
    }
    Ok(task)
}

/// A turn about to begin.
struct NewTurn {
    no: TaskNo,
    names: Names,
    /// What was said in this task before.
    before: Vec<Message>,
    /// Bytes of its log so far.
    size: u64,
    saved: Option<bytes::Bytes>,
    conversation: Conversation,
    /// The task before the opening status.
    task: Task,
}

/// What the change that begins a turn has to say.
struct Outline {
    log: Log,
    standing: Standing,
    work: Work,
    saved: Option<bytes::Bytes>,
    now: protocol::Timestamp,
}

enum Begun {
    Recorded(Box<Submitted>),
    /// The message was recorded before.
    Before(KeyUsed),
    Conflict(Conflict),
}

/// Begins a turn: decides who runs it, lets an overlapping agent have its first look, and commits once.
async fn begin(
    engine: &Parts,
    call: &Call,
    hosted: &Hosted,
    turn: NewTurn,
    opening: (Event, Option<Message>),
    wait: Wait,
    change: impl FnOnce(Outline) -> Change,
) -> Result<Begun> {
    let now = engine.clock.now();
    let standing = opening_standing(&opening.0, wait);
    let NewTurn { no, names, before, size, saved, conversation, task } = turn;
    let Some(slot) = engine.runner.slot() else {
        let standing = Standing { visibility: Visibility::Visible, ..standing };
        let log = Log::pack([opening]);
        let watcher = watch(engine, call, no, wait);
        let outline = Outline { log: log.clone(), standing, work: Work::Due(now), saved: None, now };
        let begun = engine.runner.queue(engine.store.commit(change(outline))).await;
        return begun_as(told(begun), task, standing.visibility, &log, Some(watcher));
    };

    let message = opening.1.clone().map(Arc::new);
    let message = message.ok_or_else(|| Error::Broken("a turn begins with a message".into()))?;
    let begin = Begin {
        no,
        standing,
        scope: call.scope.clone(),
        agent: Arc::clone(hosted.agent()),
        message,
        history: before,
        conversation,
        attempt: 1,
        size,
        on_crash: hosted.agent().traits().on_crash,
        stale: HashSet::new(),
        saved,
        names: names.clone(),
    };
    let mut events = vec![opening];
    let mut outline = Outline { log: Log::default(), standing, work: Work::Held, saved: None, now };
    let mut run = Run::new(&engine.runner, slot, begin, None);
    if wait == Wait::Not {
        if standing.state == TaskState::Submitted {
            events.push((names.status(TaskState::Working, None, now), None));
            outline.standing.state = TaskState::Working;
            run.stands(outline.standing);
        }
    } else if hosted.agent().traits().overlap {
        let advanced = run.first_look(&engine.runner).await;
        events.extend(advanced.events.into_iter().map(|event| (event, None)));
        outline.standing = advanced.standing;
        outline.saved = advanced.saved;
        if advanced.ended {
            outline.work = Work::Idle;
        }
    }
    outline.log = Log::pack(events);
    let (log, visibility) = (outline.log.clone(), outline.standing.visibility);

    if outline.work == Work::Idle {
        // The slot is free again before the commit: nothing runs any more.
        drop(run);
        let begun = engine.store.commit(change(outline)).await;
        return begun_as(begun, task, visibility, &log, None);
    }
    if wait == Wait::AsStream {
        run.reveal_soon();
    }
    run.register(&engine.runner);
    let watcher = watch(engine, call, no, wait);
    let receipt = engine.store.commit(change(outline));
    let begun = engine.runner.launch(run, receipt).await;
    begun_as(told(begun), task, visibility, &log, Some(watcher))
}

fn told<E>(begun: Result<Result<Committed, NotCommitted>, E>) -> Result<Committed, NotCommitted> {
    begun.unwrap_or_else(|_| Err(NotCommitted::Unavailable("the runner has stopped".into())))
}

/// Where a task stands after its opening status.
fn opening_standing(opening: &Event, wait: Wait) -> Standing {
    match opening {
        Event::Status(update) if update.status.state == TaskState::Submitted && wait != Wait::Not => {
            Standing { state: TaskState::Submitted, visibility: Visibility::Undecided }
        }
        Event::Status(update) => Standing { state: update.status.state, visibility: Visibility::Visible },
        _ => Standing { state: TaskState::Submitted, visibility: Visibility::Undecided },
    }
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
            recorded(task, visibility, log, committed, watcher).map(|done| Begun::Recorded(Box::new(done)))
        }
        Err(NotCommitted::Conflict(met)) => Ok(Begun::Conflict(met)),
        Err(NotCommitted::KeyUsed(used)) => Ok(Begun::Before(used)),
        Err(error) => Err(error.into()),
    }
}

/// The answer to a commit: the first entry is the status the message caused, the rest follows it.
fn recorded(
    mut task: Task,
    visibility: Visibility,
    log: &Log,
    committed: Committed,
    mut watcher: Option<Watcher>,
) -> Result<Submitted> {
    if let Some(watcher) = &mut watcher {
        watcher.seek(committed.last_seq, committed.last_seq);
    }
    let seq = committed.last_seq + 1 - log.len();
    let mut numbered = (seq..).zip(log.entries().iter().cloned());
    if let Some((_, opening)) = numbered.next() {
        fold::apply(&mut task, &opening)?;
    }
    Ok(Submitted { task, seq, rest: numbered.collect(), visibility, watcher, replayed: false })
}

fn watch(engine: &Parts, call: &Call, no: TaskNo, wait: Wait) -> Watcher {
    let patience = if wait == Wait::AsStream { Patience::Stream } else { Patience::Call };
    engine.feed.watch(engine.store.clone(), call.scope.clone(), no, patience)
}

/// The conversation a new task joins: the named one if it is known here, else one of that name.
async fn new_context(engine: &Parts, call: &Call, name: Option<&ContextId>) -> Result<NewContext> {
    let Some(name) = name else { return Ok(NewContext::Own) };
    let lookup = ContextLookup { ours: engine.ids.parse_context(name), name: name.clone() };
    let known = engine.store.context(&call.scope, lookup).await?;
    Ok(known.map_or_else(|| NewContext::Named(name.clone()), NewContext::Joined))
}

/// How a new task and its conversation are called, and what was said there before.
fn name(engine: &Parts, call: &Call, no: TaskNo, tag: Tag, context: &NewContext) -> (Names, Conversation) {
    let row = match context {
        NewContext::Own => ContextRow { first: no, tag: engine.ids.context_tag(tag), name: None },
        NewContext::Named(name) => {
            ContextRow { first: no, tag: engine.ids.context_tag(tag), name: Some(name.clone()) }
        }
        NewContext::Joined(row) => row.clone(),
    };
    let names = Names { task: engine.ids.task(no, tag), context: context_name(&engine.ids, &row) };
    (names, Conversation::new(engine.store.clone(), call.scope.clone(), row.first, no))
}
