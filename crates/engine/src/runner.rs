//! Sees that accepted work gets done, whoever is still connected.
//!
//! A run belongs to the store: accepting a message records who holds its work, and the fence of that record is
//! the right to write. [`run`] drives one turn of one agent; [`claim`] takes up work that nobody holds: what was
//! queued because every slot was taken, what waits for another attempt, what a dead process left behind.

mod claim;
mod fence;
mod run;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use protocol::Timestamp;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use run::{Begin, Run, word};

use crate::{
    agents::Agents,
    clock::Clock,
    ids::TaskNo,
    retention::Purger,
    store::{Committed, NotCommitted, Receipt, Store},
};

/// How much may run at a time, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Runs at a time; more wait as submitted.
    pub concurrent: usize,
    /// How long one attempt at a turn may take.
    pub run_time: Duration,
    /// How long a send waits for the outcome; after that it is answered with the task as it stands. `None` is as long
    /// as the turn takes.
    pub wait: Option<Duration>,
    /// How often a turn is tried in all.
    pub attempts: u32,
    /// How many bytes of log a task may have.
    pub max_task: u64,
    /// How many bytes of requests and responses may be in memory; beyond it calls are refused as unavailable.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrent: 256,
            run_time: Duration::from_secs(600),
            wait: None,
            attempts: 6,
            max_task: 64 << 20,
            memory: 1 << 30,
        }
    }
}

/// Runs agents.
pub(crate) struct Runner {
    store: Arc<dyn Store>,
    agents: Agents,
    clock: Clock,
    limits: Limits,
    slots: Arc<Semaphore>,
    /// Tasks under which processes have died run one at a time.
    suspects: Arc<Semaphore>,
    /// How to stop the runs of this process, by task; each with a number of its own. Of several that want to begin the
    /// same turn one will get it, and until that is decided all of them are here.
    live: Mutex<HashMap<TaskNo, Vec<(u64, CancellationToken)>>>,
    registrations: AtomicU64,
    /// Something may be due.
    wake: Notify,
    /// Work waits for a slot: who frees one says so.
    crowded: AtomicBool,
    /// No new work is taken up.
    draining: CancellationToken,
    /// Runs are let go as they are.
    halted: CancellationToken,
    tracker: TaskTracker,
}

/// That long from now. A span that means "never" is a very long one.
pub(crate) fn later(span: Duration) -> Instant {
    const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    Instant::now() + span.min(NEVER)
}

/// The right to run one turn; free again when dropped.
pub(crate) struct Slot {
    permit: Option<OwnedSemaphorePermit>,
    runner: Arc<Runner>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Free first, then tell: who is told must find it free.
        self.permit = None;
        if self.runner.crowded.load(Ordering::SeqCst) {
            self.runner.wake.notify_one();
        }
    }
}

/// A run that can be told to stop, as long as this lives. Made before the change that gives this process the
/// work, so that a cancel right behind that change finds it.
pub(crate) struct Registration {
    runner: Arc<Runner>,
    task: TaskNo,
    number: u64,
    cancel: CancellationToken,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut live = self.runner.live();
        let Some(registered) = live.get_mut(&self.task) else { return };
        registered.retain(|one| one.0 != self.number);
        if registered.is_empty() {
            live.remove(&self.task);
        }
    }
}

impl Runner {
    pub(crate) fn new(store: Arc<dyn Store>, agents: Agents, clock: Clock, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            store,
            agents,
            clock,
            limits,
            slots: Arc::new(Semaphore::new(limits.concurrent.min(Semaphore::MAX_PERMITS))),
            suspects: Arc::new(Semaphore::new(1)),
            live: Mutex::default(),
            registrations: AtomicU64::new(0),
            wake: Notify::new(),
            crowded: AtomicBool::new(false),
            draining: CancellationToken::new(),
            halted: CancellationToken::new(),
            tracker: TaskTracker::new(),
        })
    }

    /// Starts taking up work that nobody holds.
    pub(crate) fn start(self: &Arc<Self>) {
        self.tracker.spawn(claim::Claimer::new(Arc::clone(self)).run());
    }

    /// Looks after a duty that ends when the process drains.
    pub(crate) fn keep(&self, duty: Purger) {
        self.tracker.spawn(duty.run(self.draining.clone()));
    }

    /// A slot, if one is free and work is still taken up.
    pub(crate) fn slot(self: &Arc<Self>) -> Option<Slot> {
        if self.draining.is_cancelled() {
            return None;
        }
        let permit = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        Some(Slot { permit: Some(permit), runner: Arc::clone(self) })
    }

    /// Runs on, once the change that gave this process the work is durable. Says what became of that change.
    ///
    /// The run is owned here from this call on: whoever waits for the answer may go away.
    pub(crate) fn launch(
        self: &Arc<Self>,
        run: Run,
        receipt: Receipt,
    ) -> oneshot::Receiver<Result<Committed, NotCommitted>> {
        let (told, answer) = oneshot::channel();
        let runner = Arc::clone(self);
        self.tracker.spawn(async move {
            let committed = receipt.await;
            let held = committed.as_ref().ok().copied();
            let _ = told.send(committed);
            if let Some(held) = held {
                run.drive(&runner, held).await;
            }
        });
        answer
    }

    /// Waits for work that was recorded as due to be durable, then has it looked for. Says what became of it.
    ///
    /// Whoever waits for the answer may go away.
    pub(crate) fn queue(
        self: &Arc<Self>,
        receipt: Receipt,
    ) -> oneshot::Receiver<Result<Committed, NotCommitted>> {
        let (told, answer) = oneshot::channel();
        let runner = Arc::clone(self);
        self.tracker.spawn(async move {
            let _ = told.send(receipt.await);
            runner.wake();
        });
        answer
    }

    /// Makes the run of a task known to [`Self::stop`].
    pub(crate) fn register(self: &Arc<Self>, task: TaskNo, cancel: CancellationToken) -> Registration {
        let number = self.registrations.fetch_add(1, Ordering::Relaxed);
        self.live().entry(task).or_default().push((number, cancel.clone()));
        Registration { runner: Arc::clone(self), task, number, cancel }
    }

    /// Looks for due work soon.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Stops the run of a task once the cancel that ended the task is durable. Says what became of that change.
    ///
    /// Whoever waits for the answer may go away.
    pub(crate) fn cancel(
        self: &Arc<Self>,
        task: TaskNo,
        receipt: Receipt,
    ) -> oneshot::Receiver<Result<Committed, NotCommitted>> {
        let (told, answer) = oneshot::channel();
        let runner = Arc::clone(self);
        self.tracker.spawn(async move {
            let committed = receipt.await;
            if committed.is_ok() {
                runner.stop(task);
            }
            let _ = told.send(committed);
        });
        answer
    }

    /// Tells the run of a task, if this process has one, that its work is no longer wanted.
    fn stop(&self, task: TaskNo) {
        for (_, cancel) in self.live().get(&task).into_iter().flatten() {
            cancel.cancel();
        }
    }

    /// Whether nothing new is started any more.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Starts nothing new from now on.
    pub(crate) fn drain(&self) {
        self.draining.cancel();
    }

    /// Waits for the runs to end, at most this long; then lets go of the rest without spending their attempts.
    pub(crate) async fn finish(&self, grace: Duration) {
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            self.halted.cancel();
            self.tracker.wait().await;
        }
    }

    /// Lets go of everything at once, without waiting for it.
    pub(crate) fn abandon(&self) {
        self.draining.cancel();
        self.halted.cancel();
    }

    fn live(&self) -> MutexGuard<'_, HashMap<TaskNo, Vec<(u64, CancellationToken)>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deadline(&self) -> Instant {
        later(self.limits.run_time)
    }

    /// When the next attempt is due: at once after the first, then twice as long each time with full jitter.
    fn next_attempt(&self, made: i64) -> Timestamp {
        const CAP_MILLIS: u64 = 100_000;
        let delay = match u32::try_from(made - 2) {
            Ok(doublings) => fastrand::u64(0..=CAP_MILLIS.min(1_000 << doublings.min(7))),
            Err(_) => 0,
        };
        Timestamp::from_millis(self.clock.now().as_millis().saturating_add_unsigned(delay))
    }
}

impl Runner {
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn agents(&self) -> &Agents {
        &self.agents
    }
}
