//! Takes up work that nobody holds.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use protocol::{ArtifactId, Event, Message};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::{Begin, Registration, Run, Runner, Slot, run};
use crate::{
    agent::OnCrash,
    context::Conversation,
    ids::TaskNo,
    log::{Entry, Kind, Log, Seq},
    store::{Advance, Change, Committed, NotCommitted, Step, StoreError, Visibility, WorkItem},
    task::{Names, Standing, closed::Closed, fold},
};

/// How many processes may die under a task before it is given up.
const DEATHS: i64 = 3;
/// How many due tasks are looked up at a time.
const BATCH: usize = 64;
/// How often the store is asked even when nobody says that something is due.
const IDLE: Duration = Duration::from_secs(5);

/// The duty that looks for due work whenever it may find some and there is a slot for it.
pub(super) struct Claimer {
    runner: Arc<Runner>,
}

impl Claimer {
    pub(super) fn new(runner: Arc<Runner>) -> Self {
        Self { runner }
    }

    /// Works until the process drains.
    pub(super) async fn run(self) {
        let draining = self.runner.draining.clone();
        loop {
            let wait = self.round().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "due work could not be looked up");
                IDLE
            });
            tokio::select! {
                biased;
                () = draining.cancelled() => return,
                () = self.runner.wake.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Claims what is due as long as there are slots; says how long to wait for more.
    async fn round(&self) -> Result<Duration, StoreError> {
        loop {
            // Said before looking: a slot that is freed behind the look is told about.
            self.runner.crowded.store(true, Ordering::SeqCst);
            if self.runner.slots.available_permits() == 0 || self.runner.draining.is_cancelled() {
                return Ok(IDLE);
            }
            let now = self.runner.clock().now();
            let due = self.runner.store().due(now, BATCH).await?;
            let suspect = self.suspect(due.suspect);
            if due.tasks.is_empty() && suspect.is_none() {
                self.runner.crowded.store(false, Ordering::SeqCst);
                let next = due.next.map(|at| at.as_millis().saturating_sub(now.as_millis()));
                return Ok(next
                    .map_or(IDLE, |millis| Duration::from_millis(millis.max(1).cast_unsigned()).min(IDLE)));
            }
            let innocent = due.tasks.into_iter().map(|task| (task, None));
            for (task, alone) in innocent.chain(suspect) {
                let Some(slot) = self.runner.slot() else { break };
                let registration = self.runner.register(task, CancellationToken::new());
                // The claim is decided before the next look, so that no task is looked up twice.
                if let Some(committed) = self.claim(task).await? {
                    let runner = Arc::clone(&self.runner);
                    self.runner.tracker.spawn(async move {
                        // Held to the end of the run: another suspect waits for it.
                        let _alone = alone;
                        take_up(&runner, slot, registration, task, committed).await;
                    });
                }
            }
        }
    }

    /// A task under which processes have died runs alone among its kind, so that the next death tells which of
    /// them it was.
    fn suspect(&self, task: Option<TaskNo>) -> Option<(TaskNo, Option<Alone>)> {
        let permit = Arc::clone(&self.runner.suspects).try_acquire_owned().ok()?;
        task.map(|task| (task, Some(Alone { permit: Some(permit), runner: Arc::clone(&self.runner) })))
    }

    async fn claim(&self, no: TaskNo) -> Result<Option<Committed>, StoreError> {
        let claim = Advance {
            no,
            step: Step::Claim,
            log: Log::default(),
            status: None,
            // A task that waited or was left behind is a task for good.
            visibility: Some(Visibility::Visible),
            saved: None,
            skill: None,
            key: None,
        };
        match self.runner.store().commit(Change::Advance(Box::new(claim))).await {
            Ok(committed) => Ok(Some(committed)),
            Err(NotCommitted::Conflict(_) | NotCommitted::KeyUsed(_)) => Ok(None),
            Err(NotCommitted::Unavailable(reason)) => Err(StoreError::Unavailable(reason)),
        }
    }
}

/// The right of a suspect to run; the next one is looked for when it is given back.
struct Alone {
    permit: Option<OwnedSemaphorePermit>,
    runner: Arc<Runner>,
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.permit = None;
        self.runner.wake();
    }
}

/// Runs a claimed task. Whatever goes wrong on the way, the task is not left claimed: it is due again later, or over.
async fn take_up(
    runner: &Arc<Runner>,
    slot: Slot,
    registration: Registration,
    no: TaskNo,
    claimed: Committed,
) {
    let work = match runner.store().work(no).await {
        Ok(Some(work)) => work,
        Ok(None) => return,
        Err(error) => return let_go(runner, None, no, claimed, error.into()).await,
    };
    let names = Names::of(&runner.store().ids(), &work.snapshot.row);
    match prepare(runner, work, names.clone(), claimed).await {
        Ok(Prepared::Ready(begin)) => {
            Run::new(runner, slot, *begin, Some(registration)).drive(runner, claimed).await;
        }
        Ok(Prepared::Hopeless(why)) => give_up(runner, &names, no, claimed, &why).await,
        Err(error) => let_go(runner, Some(&names), no, claimed, error).await,
    }
}

/// What a look at a claimed task gives.
enum Prepared {
    /// It can run.
    Ready(Box<Begin>),
    /// It must not, and says why.
    Hopeless(String),
}

async fn prepare(
    runner: &Runner,
    work: WorkItem,
    names: Names,
    claimed: Committed,
) -> crate::Result<Prepared> {
    let Some(registered) = runner.agents().get(work.scope.agent()) else {
        return Ok(Prepared::Hopeless("the agent of this task is no longer here".into()));
    };
    let policy = registered.agent().policy();
    if work.snapshot.row.deaths > 0 && policy.on_crash == OnCrash::Fail {
        return Ok(Prepared::Hopeless(run::INTERRUPTED.into()));
    }
    if work.snapshot.row.deaths >= DEATHS {
        return Ok(Prepared::Hopeless(format!("poisoned: the server died {DEATHS} times while this ran")));
    }
    if claimed.attempt > i64::from(runner.limits.attempts) {
        return Ok(Prepared::Hopeless(format!("gave up after {} attempts", runner.limits.attempts)));
    }
    let log = whole_log(runner, &work).await?;
    let row = work.snapshot.row;
    let asked = asked(&log, row.unanswered)?
        .ok_or_else(|| crate::Error::Broken(format!("task {} has no message", names.task)))?;
    let stale = match policy.on_crash {
        OnCrash::Retry => left_behind(&log[asked.at..])?,
        OnCrash::Resume | OnCrash::Fail => HashSet::new(),
    };
    let closed = if Closed::may_exist(row.state, row.turn) {
        Closed::read(&log, row.turn)?
    } else {
        Closed::default()
    };
    Ok(Prepared::Ready(Box::new(Begin {
        no: row.no,
        standing: Standing { state: row.state, visibility: Visibility::Visible },
        conversation: Conversation::new(
            Arc::clone(runner.store()),
            work.scope.clone(),
            row.context.first,
            row.no,
        ),
        history: said_before(&names, &log[..asked.at])?,
        names,
        scope: work.scope,
        agent: Arc::clone(registered.agent()),
        skill: row.skill,
        dialect: row.origin,
        message: Arc::new(asked.message),
        seq: asked.at as Seq + 1,
        attempt: u32::try_from(claimed.attempt).unwrap_or(u32::MAX),
        on_crash: policy.on_crash,
        stale,
        closed,
        size: row.size,
        saved: work.saved,
    })))
}

/// The message a turn answers.
struct Asked {
    /// Its place in the log, from 0.
    at: usize,
    message: Message,
}

/// The message the turn at hand began with, whoever is said to have spoken it: what was said after the turn began is
/// the next turn's, and every attempt answers the same.
fn asked(log: &[Arc<Entry>], unanswered: i64) -> crate::Result<Option<Asked>> {
    let mut later = unanswered;
    for (at, entry) in log.iter().enumerate().rev() {
        if let Some(message) = entry.rider()? {
            if later == 0 {
                return Ok(Some(Asked { at, message: message.clone() }));
            }
            later -= 1;
        }
    }
    Ok(None)
}

/// The artifacts that earlier runs of a turn have recorded.
fn left_behind(turn: &[Arc<Entry>]) -> crate::Result<HashSet<ArtifactId>> {
    let mut found = HashSet::new();
    for entry in turn {
        if let Event::Artifact(update) = entry.event()? {
            found.insert(update.artifact.id.clone());
        }
    }
    Ok(found)
}

/// What was said in the task before its turn began.
fn said_before(names: &Names, log: &[Arc<Entry>]) -> crate::Result<Vec<Message>> {
    let mut task = fold::begin(names);
    for entry in log.iter().filter(|entry| entry.kind() != Kind::Artifact) {
        fold::apply(&mut task, entry)?;
    }
    Ok(task.history)
}

/// Everything that was recorded of a task, as of its row.
async fn whole_log(runner: &Runner, work: &WorkItem) -> crate::Result<Vec<Arc<Entry>>> {
    if work.snapshot.doc.is_none() {
        return Ok(work.snapshot.log.clone());
    }
    // What was said since that look is not counted in the row either.
    let row = &work.snapshot.row;
    let all = usize::try_from(row.last_seq).unwrap_or(usize::MAX);
    let entries = runner.store().entries(&work.scope, row.no, 0, all).await?;
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Ends a task that cannot go on.
async fn give_up(runner: &Runner, names: &Names, no: TaskNo, claimed: Committed, why: &str) {
    let change = run::failed(names, no, claimed.fence, why, runner.clock().now());
    record(runner, no, change).await;
}

/// Lets go of a claimed task that could not be made ready to run. What may pass is tried again later; what would not,
/// or has been tried often enough, ends the task. A task that cannot even be named can only be tried again.
async fn let_go(runner: &Runner, names: Option<&Names>, no: TaskNo, claimed: Committed, error: crate::Error) {
    let may_pass = matches!(error, crate::Error::Unavailable(_));
    match names {
        Some(names) if !may_pass || claimed.attempt >= i64::from(runner.limits.attempts) => {
            tracing::error!(task = %names.task, attempt = claimed.attempt, %error, "a task could not be taken up; it fails");
            give_up(runner, names, no, claimed, "the server could not take this up; its log says why").await;
        }
        names => {
            let task = names.map(|names| names.task.as_str());
            tracing::error!(task, no = no.0, attempt = claimed.attempt, %error, "a task could not be taken up; it is tried again");
            let at = runner.next_attempt(claimed.attempt.max(2));
            let retry = Advance {
                no,
                step: Step::Retry { fence: claimed.fence, at },
                log: Log::default(),
                status: None,
                visibility: None,
                saved: None,
                skill: None,
                key: None,
            };
            record(runner, no, Change::Advance(Box::new(retry))).await;
            runner.wake();
        }
    }
}

/// A conflict means that somebody else has moved the task on; a store that cannot write ends the process.
async fn record(runner: &Runner, no: TaskNo, change: Change) {
    if let Err(NotCommitted::Unavailable(reason)) = runner.store().commit(change).await {
        tracing::error!(no = no.0, reason, "what became of a claimed task could not be recorded");
    }
}
