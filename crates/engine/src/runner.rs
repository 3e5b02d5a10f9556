//! Runs accepted work to its end, independently of client connections.
//!
//! A run belongs to the store: accepting a message records which process holds its work, and the fencing
//! token of that record is the right to write. [`run`] drives one turn of one agent; [`claim`] claims work
//! that no process holds: work queued because every slot was taken, turns waiting for a retry, and turns of a
//! crashed process; [`claimed`] starts it. [`scheduler`] decides which work gets a slot ([`slot`]). [`deadline_sweep`]
//! fails tasks whose deadline passes while nobody runs them. [`wake`] lets the work of one task be claimed on request.
//! [`asking_turns`] counts the turns that may ask their client, for the cap of its principal.

mod asking_turns;
mod claim;
mod claimed;
mod deadline_sweep;
mod panic_guard;
mod run;
mod scheduler;
mod slot;
mod stop;
mod time_limit;
mod wake;

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
    sync::{Notify, SetOnce, oneshot},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use asking_turns::{AskingTurn, AskingTurns};
use deadline_sweep::{DeadlineSweep, NextSweep};
pub(crate) use run::{Run, TurnInput};
use slot::Slots;
pub(crate) use slot::{Admission, Arrival, Slot};
pub use stop::STOP_GRACE;

use crate::{
    access::principal_caps::PrincipalCaps,
    catalog::CurrentCatalog,
    clock::Clock,
    context::HistoryLimit,
    ids::TaskNo,
    metrics::RunMetrics,
    push::Worker,
    retention::Purger,
    store::{Committed, MAX_DUE_AHEAD, NotCommitted, Receipt, Store},
    trace::WaitingTraces,
};

/// Concurrency, time and size limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Concurrent runs; more tasks wait in state `submitted`.
    pub concurrent: usize,
    /// How many tasks may wait for a run; beyond it messages that would wait are rejected as unavailable.
    pub queued: usize,
    /// Timeout of one attempt at a turn.
    pub run_time: Duration,
    /// How long a blocking send waits for the outcome; after that the reply is the task in its current state.
    /// `None` waits until the turn ends.
    pub wait: Option<Duration>,
    /// Maximum attempts per turn, the first included.
    pub attempts: u32,
    /// How long an interrupted task waits for its client before it fails.
    pub interrupted_ttl: Duration,
    /// Maximum size of a task's log, in bytes.
    pub max_task: u64,
    /// Maximum size of an agent's checkpoint, in bytes.
    pub max_saved: u64,
    /// Maximum size of the outputs of a turn's steps, in bytes.
    pub max_journal: u64,
    /// How much of a conversation skills get that take whole messages.
    pub history: HistoryLimit,
    /// Maximum bytes of requests and responses in memory; beyond it calls are rejected as unavailable.
    pub memory: u64,
    /// Free bytes on the file system of the store below which messages are rejected as unavailable; 0, the default, is
    /// no limit. For whoever opens the store.
    pub min_free_disk: u64,
    /// What one principal may have at a time; default: no limit. Not for callers without a credential on loopback.
    pub per_principal: PrincipalCaps,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrent: 256,
            queued: 10_000,
            run_time: Duration::from_secs(600),
            wait: None,
            attempts: 6,
            interrupted_ttl: Duration::from_secs(24 * 60 * 60),
            max_task: 64 << 20,
            max_saved: 1 << 20,
            max_journal: 16 << 20,
            history: HistoryLimit::default(),
            memory: 1 << 30,
            min_free_disk: 0,
            per_principal: PrincipalCaps::default(),
        }
    }
}

/// Owns all agent runs of this process.
pub(crate) struct Runner {
    store: Arc<dyn Store>,
    catalog: CurrentCatalog,
    clock: Clock,
    limits: Limits,
    metrics: Arc<RunMetrics>,
    traces: WaitingTraces,
    asking_turns: Arc<AskingTurns>,
    slots: Slots,
    /// Cancellation tokens of this process's runs, by task, each with a registration number. Several runs may
    /// try to start the same turn; until the commit decides which one gets it, all of them are registered.
    live: Mutex<HashMap<TaskNo, Vec<(u64, CancellationToken)>>>,
    registrations: AtomicU64,
    /// Wakes the claimer: work may be due.
    wake: Notify,
    /// Set when the work that earlier processes left is known: no new message may overtake it.
    loaded: SetOnce<()>,
    next_sweep: NextSweep,
    /// Cancelled at the start of graceful shutdown: no new work is started.
    draining: CancellationToken,
    /// Set shortly before the end of the grace period: the agents are asked to stop.
    stopping: AtomicBool,
    /// Cancelled at the end of the grace period: runs are released unfinished.
    halted: CancellationToken,
    tracker: TaskTracker,
}

/// The instant after this duration. Longer ones than 30 years mean "never" and are capped, so that the
/// addition cannot overflow.
pub(crate) fn deadline_in(span: Duration) -> Instant {
    const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    Instant::now() + span.min(NEVER)
}

/// Keeps a run cancellable while it lives. Created before the change that gives this process the work, so
/// that a cancel committed right after that change finds it.
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
    pub(crate) fn new(
        store: Arc<dyn Store>,
        catalog: CurrentCatalog,
        clock: Clock,
        limits: Limits,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            catalog,
            clock,
            limits,
            metrics: Arc::default(),
            traces: WaitingTraces::default(),
            asking_turns: Arc::default(),
            slots: Slots::new(&limits),
            live: Mutex::default(),
            registrations: AtomicU64::new(0),
            wake: Notify::new(),
            loaded: SetOnce::new(),
            next_sweep: NextSweep::default(),
            draining: CancellationToken::new(),
            stopping: AtomicBool::new(false),
            halted: CancellationToken::new(),
            tracker: TaskTracker::new(),
        })
    }

    /// Starts the claimer and the deadline sweep.
    pub(crate) fn start(self: &Arc<Self>) {
        self.tracker.spawn(claim::Claimer::new(Arc::clone(self)).run());
        self.tracker.spawn(DeadlineSweep::new(Arc::clone(self)).run());
    }

    /// Resolves when the work that earlier processes left is known.
    pub(crate) async fn loaded(&self) {
        if !self.loaded.initialized() {
            self.loaded.wait().await;
        }
    }

    fn set_loaded(&self) {
        // An error means that it is set already.
        let _ = self.loaded.set(());
    }

    /// Runs a short task of the engine; graceful shutdown waits for it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(task);
    }

    /// Starts the purger; it ends when graceful shutdown starts.
    pub(crate) fn spawn_purger(&self, purger: Purger) {
        self.tracker.spawn(purger.run(self.draining.clone()));
    }

    /// Starts the delivery of push notifications; it ends when graceful shutdown starts.
    pub(crate) fn spawn_deliveries(&self, worker: Worker) {
        self.tracker.spawn(worker.run(self.draining.clone()));
    }

    /// Drives the run once the change that gave this process the work is durable. Resolves to the result of
    /// that change.
    ///
    /// The runner owns the run from this call on: the receiver may be dropped.
    pub(crate) fn launch(
        self: &Arc<Self>,
        run: Run,
        receipt: Receipt,
    ) -> oneshot::Receiver<Result<Committed, NotCommitted>> {
        let (result_sender, result) = oneshot::channel();
        let runner = Arc::clone(self);
        self.tracker.spawn(async move {
            let committed = receipt.await;
            let held = committed.as_ref().ok().copied();
            let _ = result_sender.send(committed);
            match held {
                Some(held) => run.drive(&runner, held).await,
                None => run.reject(&runner).await,
            }
        });
        result
    }

    /// Gives the agent of a run that has ended the time to stop.
    fn await_stop(self: &Arc<Self>, run: Run) {
        let runner = Arc::clone(self);
        self.tracker.spawn(async move { run.stop_agent(&runner).await });
    }

    /// Lets work be claimed once the change that recorded it as due is durable. Resolves to the result of that
    /// change.
    ///
    /// The receiver may be dropped.
    pub(crate) fn queue(
        &self,
        arrival: Arrival,
        receipt: Receipt,
    ) -> oneshot::Receiver<Result<Committed, NotCommitted>> {
        let (result_sender, result) = oneshot::channel();
        self.tracker.spawn(async move {
            let result = receipt.await;
            if result.is_ok() {
                arrival.recorded();
            } else {
                drop(arrival);
            }
            let _ = result_sender.send(result);
        });
        result
    }

    /// Registers the run of a task so that [`Self::stop`] finds it.
    pub(crate) fn register(self: &Arc<Self>, task: TaskNo, cancel: CancellationToken) -> Registration {
        let number = self.registrations.fetch_add(1, Ordering::Relaxed);
        self.live().entry(task).or_default().push((number, cancel.clone()));
        Registration { runner: Arc::clone(self), task, number, cancel }
    }

    /// Plans a sweep at the deadline of a task that is going to be recorded.
    pub(crate) fn plan_sweep(&self, deadline: Timestamp) {
        self.next_sweep.plan(deadline);
    }

    /// Stops the run of a task once the cancel that ended the task is durable. Resolves to the result of that
    /// change.
    ///
    /// The receiver may be dropped.
    pub(crate) fn cancel(
        self: &Arc<Self>,
        task: TaskNo,
        receipt: Receipt,
    ) -> oneshot::Receiver<Result<Committed, NotCommitted>> {
        let (result_sender, result) = oneshot::channel();
        let runner = Arc::clone(self);
        self.tracker.spawn(async move {
            let committed = receipt.await;
            if committed.is_ok() {
                runner.slots(|scheduler| scheduler.cancel(task));
                runner.stop(task);
            }
            let _ = result_sender.send(committed);
        });
        result
    }

    /// Cancels the run of a task, if this process has one.
    fn stop(&self, task: TaskNo) {
        for (_, cancel) in self.live().get(&task).into_iter().flatten() {
            cancel.cancel();
        }
    }

    /// Whether graceful shutdown has started.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Resolves when graceful shutdown starts.
    pub(crate) async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// Stops starting new runs.
    pub(crate) fn drain(&self) {
        self.draining.cancel();
    }

    /// Waits up to `grace` for the runs to end, then releases the rest without spending their attempts. In the last
    /// [`STOP_GRACE`] of that time the agents are asked to stop.
    pub(crate) async fn finish(&self, grace: Duration) {
        self.tracker.close();
        let (stop_at, end) = (deadline_in(grace.saturating_sub(STOP_GRACE)), deadline_in(grace));
        if tokio::time::timeout_at(stop_at, self.tracker.wait()).await.is_ok() {
            return;
        }
        self.stop_all();
        if tokio::time::timeout_at(end, self.tracker.wait()).await.is_err() {
            self.halted.cancel();
            self.tracker.wait().await;
        }
    }

    /// Releases all runs without waiting for them.
    pub(crate) fn abandon(&self) {
        self.draining.cancel();
        self.stop_all();
        self.halted.cancel();
    }

    /// Asks all agents to stop. Runs that start later see it in [`Self::is_stopping`].
    fn stop_all(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for (_, cancel) in self.live().values().flatten() {
            cancel.cancel();
        }
    }

    /// Whether the agents are asked to stop because the process ends.
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    fn live(&self) -> MutexGuard<'_, HashMap<TaskNo, Vec<(u64, CancellationToken)>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the next attempt is due: at once after the first, then exponential backoff with full jitter.
    fn next_attempt(&self, made: i64) -> Timestamp {
        const CAP_MILLIS: u64 = 100_000;
        const { assert!((CAP_MILLIS as u128) < MAX_DUE_AHEAD.as_millis(), "a retry must not look overdue") };
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

    pub(crate) fn asking_turns(&self) -> &Arc<AskingTurns> {
        &self.asking_turns
    }

    pub(crate) fn traces(&self) -> &WaitingTraces {
        &self.traces
    }

    pub(crate) fn metrics(&self) -> &Arc<RunMetrics> {
        &self.metrics
    }

    pub(crate) fn catalog(&self) -> &CurrentCatalog {
        &self.catalog
    }
}
