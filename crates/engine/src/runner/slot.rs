//! Slots and places in the queue, as values that give them back on drop.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use protocol::{Timestamp, TraceContext};

use super::{
    AskingTurn, AskingTurns, Limits, Runner,
    scheduler::{AgentLimits, Arrived, CallerId, Grant, Scheduler, Ticket, skill_wait_end},
};
use crate::{
    access::scope::Scope,
    catalog::{Catalog, RegisteredAgent},
    ids::TaskNo,
    metrics::RunnerLoad,
    skill::RunPolicy,
    store::{DueTask, TenantAgent},
};

/// A full queue is logged at most once in this many seconds.
const WARNING_INTERVAL: u64 = 10;

/// The scheduler of a runner.
pub(super) struct Slots {
    scheduler: Mutex<Scheduler>,
    /// How often the catalog had been swapped when the scheduler got its limits; `u64::MAX`: it has none yet.
    catalog_swaps: AtomicU64,
    /// When a full queue was logged, in seconds of the clock's age, plus one; 0: never.
    warned: AtomicU64,
}

/// What becomes of a message that starts a turn.
pub(crate) enum Admission {
    /// It starts now.
    Start(Slot),
    /// It waits for a slot.
    Wait(Arrival),
    /// Too much waits already: it must be rejected.
    Full,
}

/// The permission to run one turn; given back on drop.
pub(crate) struct Slot {
    caller: CallerId,
    runner: Arc<Runner>,
    /// Counts its turn as one that may ask, until the run does.
    pub(super) asking: Option<Arc<AskingTurn>>,
}

/// The place in the queue of a message that is not recorded yet; given back on drop.
pub(crate) struct Arrival {
    /// `None` when the process is shutting down: the next one runs it.
    ticket: Option<Ticket>,
    asking_before: u64,
    /// The agent whose skill is awaited, as it was when the message came.
    awaits_skill_of: Option<Arc<RegisteredAgent>>,
    runner: Arc<Runner>,
}

/// The permission to run a suspect; given back on drop.
pub(super) struct ProbationPermit(Arc<Runner>);

impl Slots {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            scheduler: Mutex::new(Scheduler::new(limits.concurrent, limits.queued)),
            catalog_swaps: AtomicU64::new(u64::MAX),
            warned: AtomicU64::new(0),
        }
    }
}

impl Runner {
    /// Whether a message that starts a turn of this task starts now, waits or must be rejected. It is due at `at`.
    pub(crate) fn admit(
        self: &Arc<Self>,
        scope: &Scope,
        no: TaskNo,
        at: Timestamp,
        policy: RunPolicy,
    ) -> Admission {
        let asking = policy.may_ask.then(|| AskingTurns::begin(self.asking_turns(), scope));
        let asking_before =
            asking.as_ref().map_or_else(|| self.asking_turns().of(scope), |asking| asking.before());
        let arrival =
            |ticket| Arrival { ticket, asking_before, awaits_skill_of: None, runner: Arc::clone(self) };
        if self.is_draining() {
            return Admission::Wait(arrival(None));
        }
        self.update_limits();
        match self.slots(|scheduler| scheduler.arrive(scope, no, at, asking.clone())) {
            Arrived::Start(caller) => Admission::Start(Slot { caller, runner: Arc::clone(self), asking }),
            Arrived::Wait(ticket) => Admission::Wait(arrival(Some(ticket))),
            Arrived::Full => {
                self.warn_full(scope);
                Admission::Full
            }
        }
    }

    /// Counts work of the store as a turn that may ask, if its skill may, or if it waits for a server that starts.
    pub(super) fn asking(&self, task: &DueTask) -> Option<Arc<AskingTurn>> {
        let catalog = self.catalog.load();
        let agent = catalog.get(task.scope.tenant(), task.scope.agent())?;
        let may_ask = agent.policy(task.skill.as_deref(), &self.limits).may_ask
            || task.unselected && !agent.skills().pending().is_empty();
        may_ask.then(|| AskingTurns::begin(self.asking_turns(), &task.scope))
    }

    /// The same for a message whose skill is not known yet: it gets no slot.
    pub(crate) fn admit_unselected(
        self: &Arc<Self>,
        agent: &Arc<RegisteredAgent>,
        scope: &Scope,
        no: TaskNo,
        at: Timestamp,
    ) -> Admission {
        // The server that starts may ask.
        let asking = AskingTurns::begin(self.asking_turns(), scope);
        let asking_before = asking.before();
        let arrival = |ticket| Arrival {
            ticket,
            asking_before,
            awaits_skill_of: Some(Arc::clone(agent)),
            runner: Arc::clone(self),
        };
        if self.is_draining() {
            return Admission::Wait(arrival(None));
        }
        let skill_by = skill_wait_end(at);
        match self.slots(|scheduler| scheduler.arrive_unselected(scope, no, at, skill_by, Some(asking))) {
            Some(ticket) => Admission::Wait(arrival(Some(ticket))),
            None => {
                self.warn_full(scope);
                Admission::Full
            }
        }
    }

    /// Tries the work again that waits for its skill, if this is not the agent of the current catalog any more: the change
    /// of the catalog may have come before the work.
    fn retry_if_replaced(&self, agent: &Arc<RegisteredAgent>) {
        let scope = agent.anonymous_scope();
        let catalog = self.catalog.load();
        if !catalog.get(scope.tenant(), scope.agent()).is_some_and(|current| Arc::ptr_eq(current, agent)) {
            self.slots(Scheduler::retry_unselected);
        }
    }

    /// The place of a task among the waiting tasks of its agent and caller; `None` if it does not wait.
    pub(crate) fn place(&self, no: TaskNo) -> Option<usize> {
        self.slots(|scheduler| scheduler.place(no))
    }

    /// The runs in progress and the work that waits for a slot.
    pub(crate) fn load(&self) -> RunnerLoad {
        let now = self.clock.now().as_millis();
        self.slots(|scheduler| RunnerLoad {
            running: self.limits.concurrent.saturating_sub(scheduler.free_slots()),
            waiting: scheduler.waiting(),
            oldest: scheduler.oldest().map(|at| {
                let millis = now.saturating_sub(at.as_millis());
                Duration::from_millis(u64::try_from(millis).unwrap_or_default())
            }),
        })
    }

    /// Changes the state of the slots, and wakes the claimer if there is something to claim.
    pub(super) fn slots<T>(&self, act: impl FnOnce(&mut Scheduler) -> T) -> T {
        let mut scheduler = self.slots.scheduler.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut scheduler);
        let wake = scheduler.take_wake();
        drop(scheduler);
        if wake {
            self.wake.notify_one();
        }
        result
    }

    /// Takes over the limits of a new catalog.
    pub(super) fn update_limits(&self) {
        if self.slots.catalog_swaps.load(Ordering::Relaxed) == self.catalog.swaps() {
            return;
        }
        self.slots(|scheduler| {
            // Read under the lock, and before the catalog: the limits are never older than this number.
            let swaps = self.catalog.swaps();
            scheduler.set_limits(limits_of(&self.catalog.load()));
            self.slots.catalog_swaps.store(swaps, Ordering::Relaxed);
        });
    }

    fn warn_full(&self, scope: &Scope) {
        let now = self.clock.elapsed().as_secs() + 1;
        let is_due = |last: u64| (last == 0 || last + WARNING_INTERVAL <= now).then_some(now);
        if self.slots.warned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_due).is_ok() {
            tracing::warn!(
                agent = scope.agent(),
                waiting = self.slots(|scheduler| scheduler.waiting()),
                queued = self.limits.queued,
                "too many tasks wait for a run, messages are rejected; raise limits.concurrent or limits.queued"
            );
        }
    }
}

fn limits_of(catalog: &Catalog) -> AgentLimits {
    let mut limits = AgentLimits::default();
    let mut agents = 0;
    for (tenant, registered) in catalog.enabled() {
        agents += 1;
        if registered.settings().concurrent > 0 {
            let agent = TenantAgent { tenant: tenant.into(), agent: registered.info().id.clone() };
            limits.fixed.insert(agent, registered.settings().concurrent);
        }
    }
    limits.shared = agents > 1;
    limits
}

impl Slot {
    /// The slot of work that is going to be claimed.
    pub(super) fn granted(runner: &Arc<Runner>, grant: &Grant) -> Self {
        Self { caller: grant.caller, runner: Arc::clone(runner), asking: None }
    }

    /// The next attempt at the task belongs to this trace.
    pub(super) fn keep_trace(&self, no: TaskNo, trace: &TraceContext) {
        self.runner.traces().keep(no, trace.clone());
    }

    /// The task that had this slot waits until its skill is known, without the slot. `agent` is that without the skill.
    pub(super) fn await_skill(self, agent: &Arc<RegisteredAgent>, grant: Grant, skill_by: Timestamp) {
        let runner = Arc::clone(&self.runner);
        let now = runner.clock().now();
        let asking = self.asking.clone();
        runner.slots(|scheduler| scheduler.await_skill(grant, skill_by, now, asking));
        drop(self);
        runner.retry_if_replaced(agent);
    }

    /// The task that had this slot is due again.
    pub(super) fn requeue(&self, no: TaskNo, at: Timestamp, suspect: bool, asking: Option<Arc<AskingTurn>>) {
        let now = self.runner.clock().now();
        self.runner.slots(|scheduler| scheduler.requeue(self.caller, no, at, suspect, asking, now));
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.runner.slots(|scheduler| scheduler.release(self.caller));
    }
}

impl Arrival {
    /// How many turns of its principal that may ask had begun, or had begun to wait, before it.
    pub(crate) fn asking_before(&self) -> u64 {
        self.asking_before
    }

    /// The message is recorded: its turn can be claimed.
    pub(super) fn recorded(mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.runner.slots(|scheduler| scheduler.recorded(&ticket));
        }
        if let Some(agent) = &self.awaits_skill_of {
            self.runner.retry_if_replaced(agent);
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.runner.slots(|scheduler| scheduler.withdraw(&ticket));
        }
    }
}

impl ProbationPermit {
    pub(super) fn granted(runner: &Arc<Runner>, grant: &Grant) -> Option<Self> {
        grant.probation.then(|| Self(Arc::clone(runner)))
    }
}

impl Drop for ProbationPermit {
    fn drop(&mut self) {
        self.0.slots(Scheduler::end_probation);
    }
}
