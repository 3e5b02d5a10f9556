//! Takes up work that nobody holds.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use protocol::{ArtifactId, Event, Role};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::{Begin, Registration, Run, Runner, Slot, run};
use crate::{
    agent::OnCrash,
    context::Conversation,
    ids::TaskNo,
    log::{Entry, Log},
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
                        if let Err(error) = take_up(&runner, slot, registration, task, committed).await {
                            tracing::error!(%error, "claimed work could not be taken up");
                        }
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

/// Runs a claimed task.
async fn take_up(
    runner: &Arc<Runner>,
    slot: Slot,
    registration: Registration,
    no: TaskNo,
    claimed: Committed,
) -> crate::Result<()> {
    let Some(work) = runner.store().work(no).await? else { return Ok(()) };
    let names = Names::of(&runner.store().ids(), &work.snapshot.row);
    let Some(hosted) = runner.agents().get(work.scope.agent()) else {
        return give_up(runner, &names, no, claimed, "the agent of this task is no longer here").await;
    };
    let traits = hosted.agent().traits();
    if work.snapshot.row.deaths > 0 && traits.on_crash == OnCrash::Fail {
        return give_up(runner, &names, no, claimed, run::INTERRUPTED).await;
    }
    if work.snapshot.row.deaths >= DEATHS {
        let text = format!("poisoned: the server died {DEATHS} times while this ran");
        return give_up(runner, &names, no, claimed, &text).await;
    }
    if claimed.attempt > i64::from(runner.limits.attempts) {
        let text = format!("gave up after {} attempts", runner.limits.attempts);
        return give_up(runner, &names, no, claimed, &text).await;
    }
    let stale = match traits.on_crash {
        OnCrash::Retry => left_behind(runner, &work).await?,
        OnCrash::Resume | OnCrash::Fail => HashSet::new(),
    };
    let row = &work.snapshot.row;
    let closed = if Closed::may_exist(row.state, row.turn) {
        Closed::read(&whole_log(runner, &work).await?, row.turn)?
    } else {
        Closed::default()
    };
    let begin = Begin { closed, ..begin(runner, work, names, Arc::clone(hosted.agent()), claimed, stale)? };
    Run::new(runner, slot, begin, Some(registration)).drive(runner, claimed.fence, claimed.attempt).await;
    Ok(())
}

/// The artifacts that earlier runs of the turn at hand have recorded.
async fn left_behind(runner: &Runner, work: &WorkItem) -> crate::Result<HashSet<ArtifactId>> {
    let mut later = work.snapshot.row.unanswered;
    let mut found = HashSet::new();
    for entry in whole_log(runner, work).await?.iter().rev() {
        if entry.rider()?.is_some() {
            if later == 0 {
                break;
            }
            later -= 1;
        }
        if let Event::Artifact(update) = entry.event()? {
            found.insert(update.artifact.id.clone());
        }
    }
    Ok(found)
}

/// Everything that was recorded of a task.
async fn whole_log(runner: &Runner, work: &WorkItem) -> crate::Result<Vec<Arc<Entry>>> {
    if work.snapshot.doc.is_none() {
        return Ok(work.snapshot.log.clone());
    }
    let entries = runner.store().entries(&work.scope, work.snapshot.row.no, 0, usize::MAX).await?;
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn begin(
    runner: &Runner,
    work: WorkItem,
    names: Names,
    agent: Arc<dyn crate::Agent>,
    claimed: Committed,
    stale: HashSet<ArtifactId>,
) -> crate::Result<Begin> {
    let on_crash = agent.traits().on_crash;
    let row = &work.snapshot.row;
    let mut history = fold::snapshot(&runner.store().ids(), &work.snapshot)?.history;
    // What was said after the turn began is the next turn's: every attempt answers the same message.
    let later = usize::try_from(row.unanswered).unwrap_or_default();
    let users = history.iter().enumerate().filter(|(_, message)| message.role == Role::User);
    let asked = users.map(|(at, _)| at).rev().nth(later);
    let asked = asked.ok_or_else(|| crate::Error::Broken(format!("task {} has no message", names.task)))?;
    history.truncate(asked + 1);
    let message = history.remove(asked);
    let store = Arc::clone(runner.store());
    Ok(Begin {
        no: row.no,
        standing: Standing { state: row.state, visibility: Visibility::Visible },
        conversation: Conversation::new(store, work.scope.clone(), row.context.first, row.no),
        names,
        scope: work.scope,
        agent,
        skill: row.skill.clone(),
        dialect: row.origin,
        message: Arc::new(message),
        history,
        attempt: u32::try_from(claimed.attempt).unwrap_or(u32::MAX),
        on_crash,
        stale,
        closed: Closed::default(),
        size: row.size,
        saved: work.saved,
    })
}

async fn give_up(
    runner: &Runner,
    names: &Names,
    no: TaskNo,
    claimed: Committed,
    text: &str,
) -> crate::Result<()> {
    let change = run::failed(names, no, claimed.fence, text, runner.clock().now());
    match runner.store().commit(change).await {
        Ok(_) | Err(NotCommitted::Conflict(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
