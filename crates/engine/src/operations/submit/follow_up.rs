//! A message to an existing task: the input it waits for, a reopening, or another message while it is
//! working.

use std::sync::Arc;

use protocol::{ErrorKind, Message};

use super::{
    SendContext, Submitted,
    replay::replay,
    turn::{StartResult, TurnCommit, begin, queue_full},
};
use crate::{
    agent::message_size,
    error::{Error, Result},
    ids::TaskNo,
    log::Log,
    operations::idempotency::{Dedupe, same_content},
    runner::TurnInput,
    skill::call::{CallRequest, SkillCall, Stage},
    store::{
        Advance, Change, KeyOwner, KeyUsed, MAX_UNANSWERED, NewWebhook, NotCommitted, SavedState,
        SkillSource, StartState, Step, TaskRow, TurnPrecondition, Visibility, WorkState,
    },
    task::{
        PublicIds,
        admit::{self, Opening},
        earlier_artifacts::EarlierArtifacts,
    },
};

/// Records the message; `None` when the task changed between read and commit, and the caller should retry.
pub(super) async fn follow_up(
    ctx: SendContext<'_>,
    row: &TaskRow,
    message: &Message,
) -> Result<Option<Submitted>> {
    let engine = ctx.engine;
    let names = PublicIds::of(&engine.ids, row);
    let dialect = ctx.call.dialect();
    if dialect.rules().clients_choose_task_ids
        && ctx.registered.dedupe() != Dedupe::Off
        // A key decides instead of the content.
        && ctx.key.is_none()
        && let Some(used) = find_identical_last_message(ctx, row, message).await?
    {
        return replay(ctx, used).await.map(Some);
    }
    let context = message.context_id.as_ref();
    let verdict = match admit::follow_up(&names, row.state, context, dialect) {
        Ok(verdict) => verdict,
        Err(refusal) => return replay_or_refuse(ctx, row, refusal).await.map(Some),
    };
    let SendContext { skill, skill_field, .. } = ctx;
    let judged = admit::same_skill(skill_field, named_skill(row), skill)
        .and_then(|()| admit::fits(counted_size(row), message, engine.runner.limits().max_task));
    if let Err(refusal) = judged {
        return replay_or_refuse(ctx, row, refusal).await.map(Some);
    }
    // The reply contains the task, so its log is going to be read.
    ctx.call.charge_read(row.size)?;
    let opening = admit::follow_up_opening(&names, message.clone(), ctx.task_metadata, engine.clock.now());
    match verdict {
        admit::FollowUp::Enqueue => queue_message(ctx, &names, row, opening).await,
        admit::FollowUp::Continue => start_turn(ctx, StartState::Interrupted, names, row, opening).await,
        admit::FollowUp::Reopen => start_turn(ctx, StartState::Terminal, names, row, opening).await,
    }
}

/// If the task's last message has the same content, where it was recorded: this is how retries are detected
/// in the draft dialect, which has no message ids. After the agent has asked, the same content is an answer.
async fn find_identical_last_message(
    ctx: SendContext<'_>,
    row: &TaskRow,
    message: &Message,
) -> Result<Option<KeyUsed>> {
    let SendContext { engine, call, .. } = ctx;
    let Some((seq, entry)) = engine.store.last_input(&call.scope, row.no).await? else { return Ok(None) };
    let same = entry.user_message()?.is_some_and(|last| same_content(last, message));
    Ok(same.then_some(KeyUsed { task: row.no, tag: row.tag, seq, same: true }))
}

/// For a message the task does not accept: replays it if it is a duplicate, else returns the refusal.
async fn replay_or_refuse(ctx: SendContext<'_>, row: &TaskRow, refusal: Error) -> Result<Submitted> {
    let Some(key) = ctx.key else { return Err(refusal) };
    match ctx.engine.store.turn_key(&ctx.call.scope, KeyOwner::Task(row.no), key).await? {
        Some(used) => replay(ctx, used).await,
        None => Err(refusal),
    }
}

/// The size of the task that counts towards its limit, in bytes.
fn counted_size(row: &TaskRow) -> u64 {
    row.size.saturating_sub(row.progress_size)
}

/// The skill of a task, if its client has named it.
fn named_skill(row: &TaskRow) -> Option<&str> {
    row.skill.as_deref().filter(|_| row.skill_source != Some(SkillSource::Server))
}

/// Starts the next turn: the message is the input the task waits for, or reopens the task.
async fn start_turn(
    ctx: SendContext<'_>,
    when: StartState,
    names: PublicIds,
    row: &TaskRow,
    opening: Opening,
) -> Result<Option<Submitted>> {
    let SendContext { engine, .. } = ctx;
    let (webhook, note) = ctx.webhook(row.no, &names.task)?;
    let Some(work) = engine.store.work(row.no).await? else { return Ok(None) };
    let mut log = ctx.log(row, row.last_seq).with_first(work.log);
    let (task, artifacts) = ctx.fold(row, &mut log).await?;
    let message = Arc::clone(&opening.1);
    let size = counted_size(row) + message_size(&message);
    let stage = match when {
        StartState::Interrupted => Stage::Answer,
        StartState::Terminal => Stage::Request,
    };
    let request = CallRequest {
        named: named_skill(row).or(ctx.skill),
        before: row.skill.as_deref(),
        history: &task.history,
        saved: work.saved.as_ref(),
        ..ctx.first_request(&message)
    };
    let mut skill_call = SkillCall::select(request).admit(stage).await;
    if let Some(refusal) = skill_call.take_refusal() {
        return replay_or_refuse(ctx, row, refusal.into()).await.map(Some);
    }
    ctx.check_arguments(&skill_call)?;
    let drops_saved = when == StartState::Terminal && work.saved.is_some() && skill_call.begins_anew();
    let no_state = drops_saved.then(|| SavedState::new(skill_call.skill_id().as_deref(), ""));
    let now = engine.clock.now();
    let (deadline, number) = match when {
        StartState::Interrupted => (skill_call.deadline_of(row, now), row.turn),
        StartState::Terminal => (skill_call.policy.deadline_from(now), row.turn + 1),
    };
    let turn = TurnInput {
        // An interrupted or terminal task gets no entries but those that start its next turn.
        seq: row.last_seq + 1,
        progress_size: row.progress_size,
        history: task.history.clone(),
        open_artifacts: artifacts.open,
        earlier_artifacts: EarlierArtifacts::new(artifacts.ended, number),
        // Only the steps of the task are left of earlier turns.
        journal: work.journal,
        ..ctx.first_turn(row.no, names, skill_call, deadline, size, row.context.first)
    };
    let waiting = TurnPrecondition { when, fence: row.fence };
    let resume = |commit: TurnCommit| {
        let commit = TurnCommit { saved: commit.saved.or(no_state), ..commit };
        advance(ctx, row.no, waiting, webhook, commit)
    };
    match begin(ctx, turn, task, opening, resume).await? {
        StartResult::Recorded(submitted) => Ok(Some(Submitted { note, ..*submitted })),
        StartResult::Duplicate(used) => replay(ctx, used).await.map(Some),
        StartResult::Conflict(_) => Ok(None),
        StartResult::Full => replay_or_refuse(ctx, row, queue_full()).await.map(Some),
    }
}

/// The change that records the next turn of a task.
fn advance(
    ctx: SendContext<'_>,
    no: TaskNo,
    waiting: TurnPrecondition,
    webhook: Option<Box<NewWebhook>>,
    commit: TurnCommit,
) -> Change {
    let step = match commit.work {
        WorkState::Due(at) => Step::Queue { waiting, at },
        WorkState::Held => Step::Resume(waiting),
        WorkState::Idle => Step::Settle(waiting),
    };
    Change::Advance(Box::new(Advance {
        log: commit.log,
        status: Some((commit.current.state, commit.since)),
        saved: commit.saved,
        journal: commit.journal,
        deadline: commit.deadline,
        progress_size: commit.progress_size,
        skill: commit.skill,
        skill_source: commit.skill_source,
        admitted: Some(commit.admitted),
        key: ctx.key,
        webhook,
        caps: ctx.call.caps,
        asking_turns: commit.asking_turns,
        ..Advance::new(no, step)
    }))
}

/// Records a message to a working task; it is the input of the next turn.
async fn queue_message(
    ctx: SendContext<'_>,
    names: &PublicIds,
    row: &TaskRow,
    opening: Opening,
) -> Result<Option<Submitted>> {
    let SendContext { engine, key, .. } = ctx;
    let no = row.no;
    let (webhook, note) = ctx.webhook(no, &names.task)?;
    let watcher = ctx.watch(no);
    let (event, message) = opening;
    let log = Log::pack([(event, Some(message))]);
    let change = Change::Advance(Box::new(Advance {
        status: log.status(),
        log: log.clone(),
        skill: ctx.skill.map(str::to_owned),
        skill_source: SkillSource::Client,
        // The current turn has another message.
        admitted: ctx.skill.map(|_| false),
        key,
        webhook,
        caps: ctx.call.caps,
        ..Advance::new(no, Step::QueueMessage)
    }));
    match engine.store.commit(change).await {
        Ok(committed) => {
            // The run may have committed more since the row was read. The message is recorded, so an overloaded store is
            // waited for: an error would make the client send it again.
            let (task, _) = ctx.fold(row, &mut ctx.log(row, committed.last_seq - 1).waiting()).await?;
            let submitted = Submitted::new(task, Visibility::Visible, &log, committed, Some(watcher))?;
            Ok(Some(Submitted { note, ..submitted }))
        }
        Err(NotCommitted::KeyUsed(used)) => replay(ctx, used).await.map(Some),
        Err(NotCommitted::Conflict(met)) if met.unanswered >= MAX_UNANSWERED => {
            let text = format!("task {} has {MAX_UNANSWERED} unanswered messages; wait for it", names.task);
            Err(Error::refused(ErrorKind::UnsupportedOperation, text))
        }
        Err(NotCommitted::Conflict(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
