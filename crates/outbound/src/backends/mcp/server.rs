//! Runs what `slots` decides: starts and stops processes and sessions, and watches them.

mod endpoint;
mod tools;

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use engine::Scope;
use protocol::model::TaskId;
use tokio::{
    sync::{Notify, oneshot, watch},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(super) use self::endpoint::Endpoint;
use super::{
    Health, McpConfig, Pool, Tool, Transport,
    parked::{Parked, ParkedCall},
    slots::{Actions, ContextKey, Granted, Slots, Unavailable},
    stderr::Tail,
};
use crate::{dial::Dialer, process::Launcher};

/// How long a process has to end after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Maximum time of [`Server::stop`].
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an endpoint has to answer after one of its calls got no answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often open questions are checked for their age.
const PARKED_INTERVAL: Duration = Duration::from_secs(60);
/// Sessions of one HTTP server. They are cheap, so only the number of calls at a time is limited.
const SESSIONS: usize = 64;

/// One configured server.
pub(super) struct Server {
    pub(super) config: McpConfig,
    launcher: Launcher,
    dialer: Dialer,
    slots: Mutex<Slots<Arc<Endpoint>, Lease>>,
    slots_changed: Notify,
    tools: watch::Sender<Option<Arc<[Tool]>>>,
    tools_changed: Arc<Notify>,
    /// Fires when a start has failed for the first time.
    start_failed: CancellationToken,
    stderr: Arc<Tail>,
    pub(super) parked: Parked,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Server {
    pub(super) fn start(config: McpConfig, launcher: Launcher, dialer: Dialer) -> Arc<Self> {
        let stop = CancellationToken::new();
        let pool = match &config.transport {
            Transport::Http { .. } => Pool { min: 1, max: SESSIONS, ..config.pool },
            Transport::Stdio(_) => config.pool,
        };
        let server = Arc::new(Self {
            slots: Mutex::new(Slots::new(pool, config.isolation, config.timeout, stop.clone())),
            parked: Parked::new(&config.name),
            config,
            launcher,
            dialer,
            slots_changed: Notify::new(),
            tools: watch::Sender::new(None),
            tools_changed: Arc::default(),
            start_failed: CancellationToken::new(),
            stderr: Arc::default(),
            tasks: TaskTracker::new(),
            stop,
        });
        server.tasks.spawn(Arc::clone(&server).supervise());
        server.tasks.spawn(Arc::clone(&server).keep_tools());
        server
    }

    /// Begins to end everything; nothing starts afterwards.
    pub(super) fn begin_stop(self: &Arc<Self>) {
        self.stop.cancel();
        self.change(|_| {});
        self.tasks.close();
        self.parked.clear();
    }

    /// Ends all processes.
    pub(super) async fn stop(self: &Arc<Self>) {
        self.begin_stop();
        if timeout(STOP_TIMEOUT, self.tasks.wait()).await.is_err() {
            tracing::warn!(server = self.config.name, "an MCP server did not stop in time");
        }
    }

    pub(super) async fn start_failed(&self) {
        self.start_failed.cancelled().await;
    }

    pub(super) fn health(&self) -> Health {
        let slots = self.lock();
        Health {
            status: slots.status(),
            ready: slots.ready_count(),
            restarts: slots.restarts(),
            last_start_failure: slots.last_start_failure(),
            stderr_tail: self.stderr.text(),
        }
    }

    /// Waits for an endpoint. Cancel safe.
    pub(super) async fn lease(self: &Arc<Self>, context: ContextKey) -> Result<Lease, Unavailable> {
        let (grant, granted) = oneshot::channel();
        self.change(|slots| slots.wait(context, grant, Instant::now()));
        granted.await.unwrap_or(Err(Unavailable::Stopped))
    }

    /// Keeps a call while its client answers; the token finds it again.
    pub(super) fn park(self: &Arc<Self>, scope: &Scope, task: TaskId, call: ParkedCall) -> String {
        let slot = call.lease.slot();
        // Parked first: its question may be cancelled as soon as it is known.
        let token = self.parked.park(scope.clone(), task, call);
        self.change(|slots| slots.asked(slot, scope, Instant::now()));
        token
    }

    /// The call that waits for the answer of this task; `None`: it is lost.
    pub(super) fn unpark(&self, task: &TaskId, token: &str) -> Option<ParkedCall> {
        let call = self.parked.take(task, token)?;
        let answered = self.lock().answered(call.lease.slot());
        // Not under the lock: a call that is dropped releases its slot.
        answered.then_some(call)
    }

    /// Replaces an endpoint that does not answer at all, after one of its calls got no answer.
    pub(super) fn probe(self: &Arc<Self>, endpoint: Arc<Endpoint>) {
        self.tasks.spawn(async move {
            if !matches!(timeout(PROBE_TIMEOUT, endpoint.connection.tools()).await, Ok(Ok(_))) {
                endpoint.connection.close();
            }
        });
    }

    /// Changes the state and does what follows from it.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Slots<Arc<Endpoint>, Lease>)) {
        self.apply(change);
        self.slots_changed.notify_one();
    }

    fn apply(self: &Arc<Self>, change: impl FnOnce(&mut Slots<Arc<Endpoint>, Lease>)) {
        let Actions { grants, starts, cancelled } = {
            let mut slots = self.lock();
            change(&mut slots);
            slots.dispatch(Instant::now())
        };
        for (grant, result) in grants {
            // A lease that nobody receives is dropped, and with it released.
            let _ = grant.send(result.map(|granted| Lease::new(self, granted)));
        }
        for (id, retire) in starts {
            self.tasks.spawn(Arc::clone(self).run_slot(id, retire));
        }
        for id in cancelled {
            tracing::debug!(
                server = self.config.name,
                "the question of an MCP server is cancelled: its process is needed"
            );
            self.parked.cancel(id);
        }
    }

    /// Does what is due at some time, rather than after a change.
    async fn supervise(self: Arc<Self>) {
        loop {
            let now = Instant::now();
            self.apply(|_| {});
            let latest = now + PARKED_INTERVAL;
            let wake = self.lock().next_wake(now).map_or(latest, |wake| wake.min(latest));
            tokio::select! {
                () = sleep_until(wake) => {}
                () = self.slots_changed.notified() => {}
                () = self.stop.cancelled() => return,
            }
            self.parked.expire();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots<Arc<Endpoint>, Lease>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to run a call on an endpoint; dropped, it is released.
pub(super) struct Lease {
    server: Arc<Server>,
    slot: u64,
    endpoint: Arc<Endpoint>,
    call_ended: bool,
}

impl Lease {
    fn new(server: &Arc<Server>, granted: Granted<Arc<Endpoint>>) -> Self {
        let Granted { slot, connection: endpoint } = granted;
        Self { server: Arc::clone(server), slot, endpoint, call_ended: true }
    }

    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    pub(super) fn slot(&self) -> u64 {
        self.slot
    }

    /// A call was sent: until it ends, an endpoint with one call at a time does not become free.
    pub(super) fn call_begins(&mut self) {
        self.call_ended = false;
    }

    /// The server has answered the call, or never received it.
    pub(super) fn call_ended(&mut self) {
        self.call_ended = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (id, ended) = (self.slot, self.call_ended);
        self.server.change(|slots| slots.release(id, ended, Instant::now()));
    }
}

/// A random number, from the seed of the standard library's hasher.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0)
}
