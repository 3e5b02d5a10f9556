//! Starts a turn, in one commit where possible.
//!
//! When a run slot is free, accepting the message and claiming its work are one change. An agent with
//! `overlap` is polled once before that change, inside the call's own task. If it is ready, all its updates
//! join the same commit: no spawned task, no channel, no second commit. If it is pending, its future moves to
//! the runner and the call becomes a watcher. Every other agent starts after the acceptance is durable.
//! Without a free slot the task is recorded as due, and the claimer starts it later; if too many wait already,
//! nothing is recorded.

use std::time::Duration;

use protocol::{Event, Task, TaskState, Timestamp};

use super::{SendContext, Submitted, WaitMode};
use crate::{
    agent::Outcome,
    error::{Error, Result},
    feed::Watcher,
    log::Log,
    runner::{Admission, Arrival, Run, Slot, TurnInput},
    store::{
        Change, Committed, Conflict, JournalChange, KeyUsed, NotCommitted, SavedState, SkillSource,
        Visibility, WorkState,
    },
    task::{CurrentState, admit::Opening},
    trace::commit_span,
};

/// How long a stream's first frame may be delayed by an undecided task; then the task becomes visible.
const FIRST_FRAME_TIMEOUT: Duration = Duration::from_millis(100);

/// The content of the change that starts a turn.
pub(super) struct TurnCommit {
    pub(super) log: Log,
    pub(super) current: CurrentState,
    pub(super) work: WorkState,
    pub(super) deadline: Option<Timestamp>,
    pub(super) skill: Option<String>,
    pub(super) skill_source: SkillSource,
    pub(super) admitted: bool,
    pub(super) saved: Option<SavedState>,
    pub(super) journal: JournalChange,
    /// Bytes of `log` that are progress messages.
    pub(super) progress_size: u64,
    /// Timestamp of the task's status after the change.
    pub(super) since: Timestamp,
    /// Turns of the principal that may ask and had begun before this one.
    pub(super) asking_turns: u64,
}

impl TurnCommit {
    fn new(turn: &TurnInput, current: CurrentState, work: WorkState, now: Timestamp) -> Self {
        let (skill, skill_source, admitted) = turn.call.selected();
        Self {
            log: Log::default(),
            current,
            work,
            deadline: turn.deadline,
            skill,
            skill_source,
            admitted,
            saved: None,
            journal: JournalChange::Keep,
            progress_size: 0,
            since: now,
            asking_turns: 0,
        }
    }
}

/// The result of starting a turn.
pub(super) enum StartResult {
    Recorded(Box<Submitted>),
    /// The message is a duplicate.
    Duplicate(KeyUsed),
    /// The task changed between read and commit.
    Conflict(Conflict),
    /// Too much waits for a slot: nothing was committed.
    Full,
}

/// Starts a turn: decides where it runs, polls an overlapping agent once, and commits once.
///
/// `task` is the task before the opening status update.
pub(super) async fn begin(
    ctx: SendContext<'_>,
    turn: TurnInput,
    task: Task,
    opening: Opening,
    change: impl FnOnce(TurnCommit) -> Change,
) -> Result<StartResult> {
    if let Some(deadline) = turn.deadline {
        ctx.engine.runner.plan_sweep(deadline);
    }
    // Boxed because the callers' futures contain this one and are moved as a whole, some of them several
    // times.
    let now = ctx.engine.clock.now();
    ctx.engine.runner.loaded().await;
    if turn.call.verdict().is_some() {
        // It ends with the commit that accepts the message, so it needs no slot.
        return Box::pin(begin_now(ctx, None, turn, task, opening, now, change)).await;
    }
    let (runner, scope) = (&ctx.engine.runner, &ctx.call.scope);
    let admission = if turn.call.awaits_skill() {
        runner.admit_unselected(&turn.call.agent, scope, turn.no, now)
    } else {
        runner.admit(scope, turn.no, now, turn.call.policy)
    };
    match admission {
        Admission::Start(slot) => {
            Box::pin(begin_now(ctx, Some(slot), turn, task, opening, now, change)).await
        }
        Admission::Wait(arrival) => {
            Box::pin(begin_later(ctx, arrival, turn, task, opening, now, change)).await
        }
        Admission::Full => Ok(StartResult::Full),
    }
}

/// The error for a message that would have to wait while too many others do.
pub(super) fn queue_full() -> Error {
    Error::later("too many tasks wait for a run; nothing was recorded, send the message again in a second")
}

/// Commits the turn as due, to be claimed when a slot is free.
async fn begin_later(
    ctx: SendContext<'_>,
    arrival: Arrival,
    turn: TurnInput,
    task: Task,
    opening: Opening,
    now: Timestamp,
    change: impl FnOnce(TurnCommit) -> Change,
) -> Result<StartResult> {
    let engine = ctx.engine;
    let current = CurrentState { visibility: Visibility::Visible, ..state_after(&opening.0, ctx) };
    let (event, message) = opening;
    let log = Log::pack([(event, Some(message))]);
    let watcher = ctx.watch(turn.no);
    engine.runner.traces().keep(turn.no, ctx.call.trace.clone());
    let _span = commit_span(&ctx.call.trace);
    let commit = TurnCommit {
        log: log.clone(),
        since: since(&log, now),
        asking_turns: arrival.asking_before(),
        ..TurnCommit::new(&turn, current, WorkState::Due(now), now)
    };
    let result = engine.runner.queue(arrival, engine.store.commit(change(commit))).await;
    start_result(unwrap_result(result), task, current.visibility, &log, Some(watcher))
}

/// Commits the turn as held by this process, and runs it.
async fn begin_now(
    ctx: SendContext<'_>,
    slot: Option<Slot>,
    turn: TurnInput,
    task: Task,
    opening: Opening,
    now: Timestamp,
    change: impl FnOnce(TurnCommit) -> Change,
) -> Result<StartResult> {
    let (run, commit) = first_commit(ctx, slot, turn, opening, now).await;
    if commit.work == WorkState::Idle {
        commit_ended(ctx, run, commit, task, change).await
    } else {
        commit_and_launch(ctx, run, commit, task, change).await
    }
}

/// Prepares the run, and what its first commit has: the opening status, and what an agent with `overlap` does at once.
async fn first_commit(
    ctx: SendContext<'_>,
    slot: Option<Slot>,
    turn: TurnInput,
    opening: Opening,
    now: Timestamp,
) -> (Run, TurnCommit) {
    let SendContext { engine, wait_mode, .. } = ctx;
    let (event, message) = opening;
    let current = state_after(&event, ctx);
    let (is_decided, is_rejected) = match turn.call.verdict() {
        None => (false, false),
        Some(verdict) => (true, matches!(verdict, Outcome::Rejected { .. })),
    };
    let mut commit = TurnCommit::new(&turn, current, WorkState::Held, now);
    let mut run = Run::new(&engine.runner, slot, turn, current, 1, None);
    let mut events = vec![(event, Some(message))];
    commit.asking_turns =
        run.asking_before().unwrap_or_else(|| engine.runner.asking_turns().of(&ctx.call.scope));
    let is_immediate = wait_mode == WaitMode::Immediate;
    if is_immediate && !is_rejected && current.state == TaskState::Submitted {
        events.push((run.names().status(TaskState::Working, None, now), None));
        commit.current.state = TaskState::Working;
        run.set_standing(commit.current);
    }
    if is_decided || run.policy().overlap && !is_immediate {
        let advanced = run.poll_early(&engine.runner).await;
        events.extend(advanced.events.into_iter().map(|event| (event, None)));
        commit.current = advanced.current;
        commit.saved = advanced.saved.map(|state| SavedState::new(run.skill(), state));
        commit.journal = advanced.journal;
        if advanced.ended {
            commit.work = WorkState::Idle;
        }
    }
    commit.log = Log::pack(events);
    commit.progress_size = commit.log.progress_size();
    commit.since = since(&commit.log, now);
    (run, commit)
}

/// Commits a turn that has ended already. Its slot is released before, unless its agent must be stopped.
async fn commit_ended(
    ctx: SendContext<'_>,
    run: Run,
    commit: TurnCommit,
    task: Task,
    change: impl FnOnce(TurnCommit) -> Change,
) -> Result<StartResult> {
    let (log, visibility) = (commit.log.clone(), commit.current.visibility);
    run.end_early(&ctx.engine.runner);
    let _span = commit_span(&ctx.call.trace);
    let result = ctx.engine.store.commit(change(commit)).await;
    start_result(result, task, visibility, &log, None)
}

/// Commits a turn that goes on, and hands it to the runner; the call watches it.
async fn commit_and_launch(
    ctx: SendContext<'_>,
    mut run: Run,
    commit: TurnCommit,
    task: Task,
    change: impl FnOnce(TurnCommit) -> Change,
) -> Result<StartResult> {
    let SendContext { engine, wait_mode, .. } = ctx;
    let (log, visibility) = (commit.log.clone(), commit.current.visibility);
    let reveal_after = match wait_mode {
        WaitMode::Streaming => Some(FIRST_FRAME_TIMEOUT),
        WaitMode::Immediate | WaitMode::Blocking => engine.runner.limits().wait,
    };
    if let Some(reveal_after) = reveal_after {
        run.reveal_after(reveal_after);
    }
    run.register(&engine.runner);
    let watcher = ctx.watch(run.no());
    let _span = commit_span(&ctx.call.trace);
    let receipt = engine.store.commit(change(commit));
    let result = engine.runner.launch(run, receipt).await;
    start_result(unwrap_result(result), task, visibility, &log, Some(watcher))
}

/// Timestamp of the log's last status; a bare message has none of its own, so it is `now`.
fn since(log: &Log, now: Timestamp) -> Timestamp {
    log.status().map_or(now, |(_, at)| at)
}

fn unwrap_result<E>(result: Result<Result<Committed, NotCommitted>, E>) -> Result<Committed, NotCommitted> {
    result.unwrap_or_else(|_| Err(NotCommitted::Unavailable("the runner has stopped".into())))
}

/// State and visibility after the opening status update. Only a new task whose caller waits is undecided: its
/// reply may still be a bare message.
fn state_after(opening: &Event, ctx: SendContext<'_>) -> CurrentState {
    let state = match opening {
        Event::Status(update) => update.status.state,
        _ => TaskState::Submitted,
    };
    let may_be_bare = ctx.wait_mode != WaitMode::Immediate && ctx.call.origin.supports_message_replies();
    let undecided = state == TaskState::Submitted && may_be_bare;
    CurrentState { state, visibility: if undecided { Visibility::Undecided } else { Visibility::Visible } }
}

fn start_result(
    result: Result<Committed, NotCommitted>,
    task: Task,
    visibility: Visibility,
    log: &Log,
    watcher: Option<Watcher>,
) -> Result<StartResult> {
    match result {
        Ok(committed) => {
            let submitted = Submitted::new(task, visibility, log, committed, watcher)?;
            Ok(StartResult::Recorded(Box::new(submitted)))
        }
        Err(NotCommitted::Conflict(met)) => Ok(StartResult::Conflict(met)),
        Err(NotCommitted::KeyUsed(used)) => Ok(StartResult::Duplicate(used)),
        Err(error) => Err(error.into()),
    }
}
