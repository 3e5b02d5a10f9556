//! A message to a task that exists: the answer it waited for, or more to one that is being worked on.

use protocol::{ErrorKind, Message, Task};

use super::{
    Sending, Submitted,
    replay::replay,
    turn::{Begun, NewTurn, Outline, begin},
};
use crate::{
    context::Conversation,
    error::{Error, Result},
    idempotency::{Dedupe, same_words},
    log::{Line, Log, Seq},
    store::{
        Advance, Among, Change, KeyUsed, MAX_UNANSWERED, NotCommitted, Snapshot, Step, Visibility, Waiting,
        When, Work,
    },
    task::{Names, admit, closed::Closed, fold},
};

/// Records the message; `None` when the task moved on before that.
pub(super) async fn follow_up(
    sending: Sending<'_>,
    snapshot: Snapshot,
    message: &Message,
) -> Result<Option<Submitted>> {
    let engine = sending.engine;
    let names = Names::of(&engine.ids, &snapshot.row);
    let dialect = sending.call.dialect;
    if dialect.clients_name_tasks()
        && sending.registered.dedupe() != Dedupe::Off
        && let Some(used) = said_last(sending, &snapshot, message).await?
    {
        return replay(sending, used).await.map(Some);
    }
    let context = message.context_id.as_ref();
    let verdict = match admit::follow_up(&names, snapshot.row.state, context, dialect) {
        Ok(verdict) => verdict,
        Err(refusal) => return repeated(sending, &snapshot, refusal).await.map(Some),
    };
    let Sending { skill, skill_field, .. } = sending;
    let judged = admit::same_skill(skill_field, snapshot.row.skill.as_deref(), skill)
        .and_then(|()| admit::fits(snapshot.row.size, message, engine.runner.limits().max_task));
    if let Err(refusal) = judged {
        return repeated(sending, &snapshot, refusal).await.map(Some);
    }
    let opening = admit::about(sending.about, admit::go_on(&names, message.clone(), engine.clock.now()));
    match verdict {
        admit::FollowUp::More => say_more(sending, &names, &snapshot, opening).await,
        admit::FollowUp::Answer => answer(sending, When::Interrupted, names, &snapshot, opening).await,
        admit::FollowUp::Reopen => answer(sending, When::Over, names, &snapshot, opening).await,
    }
}

/// Where the last message to a task was recorded, if this is the same: the name of the task and its words tell a
/// repetition where messages have no ids.
async fn said_last(sending: Sending<'_>, snapshot: &Snapshot, message: &Message) -> Result<Option<KeyUsed>> {
    let Sending { engine, call, .. } = sending;
    let row = &snapshot.row;
    let entries = engine.store.entries(&call.scope, row.no, 0, usize::MAX).await?;
    for (seq, entry) in entries.iter().rev() {
        if let Some(last) = entry.rider()? {
            let used = KeyUsed { task: row.no, tag: row.tag, seq: *seq, same: true };
            return Ok(same_words(last, message).then_some(used));
        }
    }
    Ok(None)
}

/// A message the task does not take: answered as before if it is a repetition, else refused.
async fn repeated(sending: Sending<'_>, snapshot: &Snapshot, refusal: Error) -> Result<Submitted> {
    let Some(key) = sending.key else { return Err(refusal) };
    match sending.engine.store.turn_key(&sending.call.scope, Among::Task(snapshot.row.no), key).await? {
        Some(used) => replay(sending, used).await,
        None => Err(refusal),
    }
}

/// A message that a task waited for, or that opens it again: its next run begins.
async fn answer(
    sending: Sending<'_>,
    when: When,
    names: Names,
    snapshot: &Snapshot,
    opening: Line,
) -> Result<Option<Submitted>> {
    let Sending { engine, call, key, .. } = sending;
    let skill = sending.skill.map(str::to_owned);
    let (no, first) = (snapshot.row.no, snapshot.row.context.first);
    let waiting = Waiting { when, fence: snapshot.row.fence };
    let work = engine.store.work(no).await?;
    let task = fold::snapshot(&engine.ids, snapshot)?;
    let number = snapshot.row.turn + i64::from(when == When::Over);
    let closed = if Closed::may_exist(snapshot.row.state, snapshot.row.turn) {
        let entries = engine.store.entries(&call.scope, no, 0, usize::MAX).await?;
        let log: Vec<_> = entries.into_iter().map(|(_, entry)| entry).collect();
        Closed::read(&log, number)?
    } else {
        Closed::default()
    };
    let turn = NewTurn {
        no,
        names,
        before: task.history.clone(),
        // Nothing is recorded of a task that waits or is over but what begins its next turn.
        seq: snapshot.row.last_seq + 1,
        size: snapshot.row.size,
        skill: snapshot.row.skill.clone().or_else(|| skill.clone()),
        closed,
        saved: work.and_then(|work| work.saved),
        conversation: Conversation::new(engine.store.clone(), call.scope.clone(), first, no),
        task,
    };
    let resume = |outline: Outline| {
        let step = match outline.work {
            Work::Due(at) => Step::Queue { waiting, at },
            Work::Held => Step::Resume(waiting),
            Work::Idle => Step::Settle(waiting),
        };
        Change::Advance(Box::new(Advance {
            no,
            step,
            log: outline.log,
            status: Some((outline.standing.state, outline.since)),
            visibility: None,
            saved: outline.saved,
            skill,
            key,
        }))
    };
    match begin(sending, turn, opening, resume).await? {
        Begun::Recorded(submitted) => Ok(Some(*submitted)),
        Begun::Before(used) => replay(sending, used).await.map(Some),
        Begun::Conflict(_) => Ok(None),
    }
}

/// A message to a task that is being worked on: it waits for the run's end.
async fn say_more(
    sending: Sending<'_>,
    names: &Names,
    snapshot: &Snapshot,
    opening: Line,
) -> Result<Option<Submitted>> {
    let Sending { engine, key, .. } = sending;
    let no = snapshot.row.no;
    let watcher = sending.watch(no);
    let log = Log::pack([opening]);
    let change = Change::Advance(Box::new(Advance {
        no,
        step: Step::Listen,
        status: log.status(),
        log: log.clone(),
        visibility: None,
        saved: None,
        skill: sending.skill.map(str::to_owned),
        key,
    }));
    match engine.store.commit(change).await {
        Ok(committed) => {
            let task = as_of(sending, snapshot, committed.last_seq).await?;
            Submitted::new(task, Visibility::Visible, &log, committed, Some(watcher)).map(Some)
        }
        Err(NotCommitted::KeyUsed(used)) => replay(sending, used).await.map(Some),
        Err(NotCommitted::Conflict(met)) if met.unanswered >= MAX_UNANSWERED => {
            let text = format!("task {} has {MAX_UNANSWERED} unanswered messages; wait for it", names.task);
            Err(Error::refused(ErrorKind::UnsupportedOperation, text))
        }
        Err(NotCommitted::Conflict(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The task before the entry of this number: the snapshot, and what its run said since.
async fn as_of(sending: Sending<'_>, snapshot: &Snapshot, seq: Seq) -> Result<Task> {
    let Sending { engine, call, .. } = sending;
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
