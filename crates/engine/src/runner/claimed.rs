//! Runs a task that this process has claimed: decides whether it may run, and reads its input.

use std::{collections::HashSet, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::Either};
use protocol::{ArtifactId, Message, Timestamp};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Registration, Run, Runner, Slot, TurnInput,
    scheduler::{Grant, skill_wait_end},
    slot::ProbationPermit,
};
use crate::{
    access::scope::Scope,
    agent::OnCrash,
    catalog::RegisteredAgent,
    context::Conversation,
    ids::TaskNo,
    log::Seq,
    skill::{
        RunPolicy,
        call::{CallRequest, SkillCall, Stage},
    },
    store::{
        Advance, Change, Committed, JournalStep, LogReader, LogSlice, NotCommitted, SavedState, SkillSource,
        Step, StepOwner, StoreError, TaskRow, Visibility, WorkItem,
    },
    task::{
        CurrentState, PublicIds, Reason,
        artifact_log::ArtifactLog,
        earlier_artifacts::EarlierArtifacts,
        journal::TurnJournal,
        turn::failure,
        turn_start::{TurnStart, TurnStartFinder},
    },
    trace::begin_trace,
};

/// How many processes may crash while they run one turn, whatever progress it makes.
const MAX_CRASHES: i64 = 100;
/// How long no other suspect starts after one has started.
const PROBATION: Duration = Duration::from_secs(5);
/// How long to wait before the next read of an overloaded store.
const OVERLOAD_DELAY: Duration = Duration::from_millis(100);

/// The probation of a suspect. It ends after [`PROBATION`], or when this is dropped: at the end of the run, or when
/// the run has made progress. Then the next suspect may start.
pub(super) struct Probation(#[expect(dead_code, reason = "has an effect on drop")] DropGuard);

impl Probation {
    pub(super) fn start(runner: &Arc<Runner>, no: TaskNo, fence: i64, permit: ProbationPermit) -> Self {
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let store = Arc::clone(runner.store());
        runner.tracker.spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = tokio::time::sleep(PROBATION) => {
                    // Recorded before the next suspect starts: a crash is then not attributed to this one. A
                    // conflict means that the run has ended.
                    let end = Advance::new(no, Step::EndProbation { fence });
                    let _ = store.commit(Change::Advance(Box::new(end))).await;
                }
            }
            drop(permit);
        });
        Self(guard)
    }
}

/// Selects the skill of a task before it is claimed, so that the claim records it. Returns that claim; `None` if the task is
/// not claimed, because its skill is not known yet or it is gone.
pub(super) async fn select_skill(runner: &Arc<Runner>, slot: Slot, grant: Grant) -> Option<(Slot, Advance)> {
    let claim = Advance::new(grant.no, grant.step());
    // What cannot be read or is not registered is claimed, and then fails or is retried like any other task.
    let Ok(work) = work_of(runner, grant.no).await else { return Some((slot, claim)) };
    let Some(WorkItem { row, scope, saved, log, .. }) = work else {
        runner.slots(|scheduler| scheduler.finish_claim(grant.no));
        return None;
    };
    let Some(registered) = runner.catalog().load().get(scope.tenant(), scope.agent()).cloned() else {
        return Some((slot, claim));
    };
    let selected = async {
        let (start, _) = read_turn(runner, &row, &scope, log).await?;
        let message = Arc::new(start.message);
        let call = call_of(runner, &registered, &row, &scope, &start.history, &message, saved.as_ref());
        crate::Result::<SkillCall>::Ok(call)
    };
    // After a panic too: then it is the claim that fails.
    let Ok(Ok(call)) = AssertUnwindSafe(selected).catch_unwind().await else { return Some((slot, claim)) };
    if let Some(skill_by) = wait_end(runner, &call, grant) {
        slot.await_skill(&registered, grant, skill_by);
        return None;
    }
    let deadline = call.deadline_of(&row, row.status_at);
    if let Some(deadline) = deadline {
        runner.plan_sweep(deadline);
    }
    let (skill, skill_source, _) = call.selected();
    Some((slot, Advance { skill, skill_source, deadline, ..claim }))
}

/// Until when a call waits for its skill; `None` if it does not, or has waited long enough.
fn wait_end(runner: &Runner, call: &SkillCall, grant: Grant) -> Option<Timestamp> {
    let now = runner.clock().now();
    let skill_by = grant.skill_by.unwrap_or_else(|| skill_wait_end(now));
    (call.awaits_skill() && skill_by > now).then_some(skill_by)
}

/// Runs a claimed task. On any error the task does not stay claimed: it is retried later or fails.
pub(super) async fn run_claimed(
    runner: &Arc<Runner>,
    slot: Slot,
    registration: Registration,
    grant: Grant,
    claimed: Committed,
    permit: Option<ProbationPermit>,
) {
    let no = grant.no;
    let work = match work_of(runner, no).await {
        Ok(Some(work)) => work,
        Ok(None) => return,
        Err(error) => {
            return release_or_fail(runner, &slot, None, no, claimed, permit.is_some(), error.into()).await;
        }
    };
    let names = PublicIds::of(&runner.store().ids(), &work.row);
    let registered = runner.catalog().load().get(work.scope.tenant(), work.scope.agent()).cloned();
    let Some(registered) = registered else {
        let why = names.message("the agent of this task is no longer registered");
        return fail_task(runner, &names, no, claimed, why).await;
    };
    let policy = registered.policy(work.row.skill.as_deref(), runner.limits());
    match prepare(runner, &registered, work, names.clone(), grant, claimed).await {
        Ok(Prepared::Ready(input, current)) => {
            let attempt = u32::try_from(claimed.attempt).unwrap_or(u32::MAX);
            let mut run = Run::new(runner, Some(slot), *input, current, attempt, Some(registration));
            let start = |permit| Probation::start(runner, no, claimed.fence, permit);
            run.set_probation(permit.map(start));
            run.drive(runner, claimed).await;
        }
        Ok(Prepared::MustFail(why)) => fail_task(runner, &names, no, claimed, why).await,
        Ok(Prepared::AwaitsSkill(skill_by)) => {
            let at = runner.clock().now();
            let release = Advance::new(no, Step::Release { fence: claimed.fence, at });
            record(runner, no, Change::Advance(Box::new(release))).await;
            slot.await_skill(&registered, grant, skill_by);
        }
        Err(error) => {
            let known = Some((&names, policy));
            release_or_fail(runner, &slot, known, no, claimed, permit.is_some(), error).await;
        }
    }
}

/// Whether a claimed task can run.
enum Prepared {
    /// It can run with this input, from this state.
    Ready(Box<TurnInput>, CurrentState),
    /// It must fail, with the reason for the client.
    MustFail(Message),
    /// Its skill is not known yet; it waits until this time at most.
    AwaitsSkill(Timestamp),
}

async fn prepare(
    runner: &Runner,
    registered: &Arc<RegisteredAgent>,
    work: WorkItem,
    names: PublicIds,
    grant: Grant,
    claimed: Committed,
) -> crate::Result<Prepared> {
    let WorkItem { row, scope, saved, journal, log } = work;
    let attempts = registered.policy(row.skill.as_deref(), runner.limits()).attempts;
    let attempt = (claimed.attempt, attempts);
    if row.died_on_probation || row.crashes >= MAX_CRASHES {
        runner.metrics().poisoned.increment();
        let text = format!("poisoned: the server crashed {} times while this task ran", row.crashes);
        return Ok(Prepared::MustFail(names.explain(text, Reason::Poisoned, Some(attempt))));
    }
    let (start, artifacts) = read_turn(runner, &row, &scope, log).await?;
    let journal: Vec<_> = journal.into_iter().filter(|step| belongs_to(step, start.seq)).collect();
    if row.deaths > 0
        && let Some(guarded) = TurnJournal::new(&journal).crashed_guard()
    {
        runner.metrics().poisoned.increment();
        let text = format!("poisoned: the server crashed during this task's {guarded}");
        return Ok(Prepared::MustFail(names.explain(text, Reason::Poisoned, Some(attempt))));
    }
    let message = Arc::new(start.message.clone());
    let history = &start.history;
    let mut skill_call = call_of(runner, registered, &row, &scope, history, &message, saved.as_ref());
    if let Some(skill_by) = wait_end(runner, &skill_call, grant) {
        return Ok(Prepared::AwaitsSkill(skill_by));
    }
    if skill_call.awaits_skill() {
        skill_call.end_wait();
    }
    let (skill_call, deadline) = admit(runner, &row, skill_call, claimed).await?;
    let policy = skill_call.policy;
    if row.deaths > 0
        && policy.on_crash == OnCrash::Fail
        && let Some(why) = TurnJournal::new(&journal).interruption(&names)
    {
        return Ok(Prepared::MustFail(why));
    }
    if claimed.attempt > i64::from(policy.attempts) {
        let max = policy.attempts;
        let text = format!("gave up after {max} attempts");
        // This claim is not an attempt.
        return Ok(Prepared::MustFail(names.explain(text, Reason::Attempts, Some((i64::from(max), max)))));
    }
    let open_artifacts = appendable_artifacts(&start, policy.on_crash);
    let input = TurnInput {
        no: row.no,
        conversation: Conversation::new(Arc::clone(runner.store()), scope.clone(), row.context.first, row.no),
        history: start.history,
        names,
        scope,
        call: skill_call,
        deadline,
        origin: row.origin,
        seq: start.seq,
        open_artifacts,
        earlier_artifacts: EarlierArtifacts::new(artifacts.ended, row.turn),
        size: row.size.saturating_sub(row.progress_size),
        progress_size: row.progress_size,
        journal,
        deaths: row.deaths,
        trace: runner.traces().take(row.no).unwrap_or_else(begin_trace),
    };
    let current = CurrentState { state: row.state, visibility: Visibility::Visible };
    Ok(Prepared::Ready(Box::new(input), current))
}

/// The start of the turn of a task, and the artifacts of its log, which begins with `log`.
async fn read_turn(
    runner: &Runner,
    row: &TaskRow,
    scope: &Scope,
    log: LogSlice,
) -> crate::Result<(TurnStart, ArtifactLog)> {
    let mut finder = TurnStartFinder::new(row.unanswered);
    let mut reader = LogReader::new(&**runner.store(), scope, row, row.last_seq).with_first(log).waiting();
    while let Some(slice) = reader.next().await? {
        for (seq, entry) in &slice {
            finder.add(*seq, entry)?;
        }
    }
    finder.finish().ok_or_else(|| crate::Error::Broken(format!("task number {} has no message", row.no.0)))
}

impl Runner {
    /// The sequence number that distinguishes the last turn of a task from its others.
    pub(crate) async fn last_turn(&self, scope: &Scope, row: &TaskRow) -> crate::Result<Option<Seq>> {
        let Some(work) = work_of(self, row.no).await? else { return Ok(None) };
        let (start, _) = read_turn(self, row, scope, work.log).await?;
        Ok(Some(start.seq))
    }
}

/// The call that a task makes.
fn call_of(
    runner: &Runner,
    registered: &Arc<RegisteredAgent>,
    row: &TaskRow,
    scope: &Scope,
    history: &[Message],
    message: &Arc<Message>,
    saved: Option<&SavedState>,
) -> SkillCall {
    let skill = row.skill.as_deref();
    let is_named = row.skill_source != Some(SkillSource::Server);
    SkillCall::select(CallRequest {
        registered,
        limits: runner.limits(),
        scope,
        named: skill.filter(|_| is_named),
        before: skill.filter(|_| !is_named),
        message,
        history,
        saved,
    })
}

/// Lets a call pass the checks that its message has not passed yet, and returns it with the deadline of the task. What had
/// to be waited for is recorded before the work begins, so that no attempt repeats it, and so is a skill that the claim has
/// not recorded: the row is of an earlier version.
async fn admit(
    runner: &Runner,
    row: &TaskRow,
    call: SkillCall,
    claimed: Committed,
) -> crate::Result<(SkillCall, Option<Timestamp>)> {
    let deadline = call.deadline_of(row, row.status_at);
    let is_recorded = call.skill.is_none() || call.skill_id() == row.skill;
    let stage = if row.admitted && is_recorded { Stage::Accepted } else { Stage::Answer };
    let (call, has_waited) = match call.admit(stage) {
        Either::Left(call) => (call.await, false),
        Either::Right(call) => (call.await, true),
    };
    if is_recorded && (row.admitted || !has_waited) {
        return Ok((call, deadline));
    }
    let (skill, skill_source, admitted) = call.selected();
    let change = Advance {
        skill,
        skill_source,
        admitted: Some(admitted),
        deadline,
        ..Advance::new(row.no, Step::Report { fence: claimed.fence })
    };
    match runner.store().commit(Change::Advance(Box::new(change))).await {
        // The task was canceled meanwhile: the run finds that out.
        Ok(_) | Err(NotCommitted::Conflict(_)) => Ok((call, deadline)),
        Err(error) => Err(error.into()),
    }
}

/// Reads a task that is claimed already; it waits for an overloaded store.
async fn work_of(runner: &Runner, no: TaskNo) -> Result<Option<WorkItem>, StoreError> {
    loop {
        match runner.store().work(no).await {
            Err(StoreError::Overloaded) => tokio::time::sleep(OVERLOAD_DELAY).await,
            read => return read,
        }
    }
}

/// Whether a step is one of the turn with this number, or of the whole task.
fn belongs_to(step: &JournalStep, turn: Seq) -> bool {
    match step.owner {
        StepOwner::Task => true,
        StepOwner::Turn(owner) => owner == turn,
    }
}

/// The artifacts to which a turn appends chunks. A turn that is run again from its start begins anew what its
/// earlier attempts have recorded. A resumed turn appends to it even after the last chunk, so that nothing is
/// lost when the agent records a chunk twice.
fn appendable_artifacts(start: &TurnStart, on_crash: OnCrash) -> HashSet<ArtifactId> {
    match on_crash {
        OnCrash::Resume => &start.open | &start.recorded,
        OnCrash::Retry | OnCrash::Fail => &start.open - &start.recorded,
    }
}

/// Fails a claimed task.
async fn fail_task(runner: &Runner, names: &PublicIds, no: TaskNo, claimed: Committed, why: Message) {
    let change = failure(no, names, claimed.fence, why, runner.clock().now());
    record(runner, no, Change::Advance(Box::new(change))).await;
}

/// Handles a claimed task that could not be prepared. A temporary error is retried later; any other error, or
/// the last attempt, fails the task. A task whose row could not be read can only be retried.
async fn release_or_fail(
    runner: &Runner,
    slot: &Slot,
    known: Option<(&PublicIds, RunPolicy)>,
    no: TaskNo,
    claimed: Committed,
    suspect: bool,
    error: crate::Error,
) {
    let temporary = matches!(error, crate::Error::Unavailable(_));
    match known {
        Some((names, policy)) if !temporary || claimed.attempt >= i64::from(policy.attempts) => {
            tracing::error!(task = %names.task, attempt = claimed.attempt, %error, "cannot start a claimed task; it fails");
            let why = names.message("the server could not start this task; see the server's log");
            fail_task(runner, names, no, claimed, why).await;
        }
        known => {
            let task = known.map(|(names, _)| names.task.as_str());
            tracing::error!(task, no = no.0, attempt = claimed.attempt, %error, "cannot start a claimed task; it will be retried");
            let at = runner.next_attempt(claimed.attempt.max(2));
            let retry = Advance::new(no, Step::Retry { fence: claimed.fence, at });
            record(runner, no, Change::Advance(Box::new(retry))).await;
            slot.requeue(no, at, suspect, slot.asking.clone());
        }
    }
}

/// A conflict is ignored: another writer has changed the task. A store that cannot write ends the process.
async fn record(runner: &Runner, no: TaskNo, change: Change) {
    if let Err(NotCommitted::Unavailable(reason) | NotCommitted::TooLarge(reason)) =
        runner.store().commit(change).await
    {
        tracing::error!(no = no.0, reason, "cannot record the result of a claimed task");
    }
}
