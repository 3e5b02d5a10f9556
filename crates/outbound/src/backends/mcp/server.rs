//! Runs what `slots` decides: starts and stops processes, watches them, and keeps the list of tools.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use protocol::model::ContextId;
use tokio::{
    sync::{Notify, oneshot, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Health, Isolation, McpConfig, Pool, Tool, Transport,
    parked::Parked,
    sdk::{ConnectError, Connection, Options},
    slots::{Actions, Granted, Slots, Unavailable},
    stderr::{self, LastLine, Tail},
};
use crate::{
    dial::Dialer,
    process::{Launch, Launcher, Process},
};

/// How long a process has to end after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Maximum time of [`Server::stop`].
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last output of a process that has ended is waited for.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// Changes of the tool list within this time are one.
const TOOLS_DEBOUNCE: Duration = Duration::from_millis(100);
/// Time between attempts to list the tools for the first time.
const TOOLS_RETRY: Duration = Duration::from_secs(1);
/// How long a connection has to answer after one of its calls got no answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often open questions are checked for their age.
const PARKED_INTERVAL: Duration = Duration::from_secs(60);

/// One configured server.
pub(super) struct Server {
    pub(super) config: McpConfig,
    launcher: Launcher,
    dialer: Dialer,
    slots: Mutex<Slots<Arc<Endpoint>, Lease>>,
    slots_changed: Notify,
    tools: watch::Sender<Option<Arc<[Tool]>>>,
    tools_changed: Arc<Notify>,
    stderr: Arc<Tail>,
    pub(super) parked: Parked,
    pub(super) tasks: TaskTracker,
    stop: CancellationToken,
}

/// A process or connection that is ready.
pub(super) struct Endpoint {
    pub(super) connection: Connection,
    pub(super) last_line: Arc<LastLine>,
    /// Fires when it has ended and all of its output was read.
    ended: CancellationToken,
}

/// The right to run a call on an endpoint.
pub(super) struct Lease {
    server: Arc<Server>,
    slot: u64,
    endpoint: Arc<Endpoint>,
    call_ended: bool,
}

impl Server {
    pub(super) fn start(config: McpConfig, launcher: Launcher, dialer: Dialer) -> Arc<Self> {
        let stop = CancellationToken::new();
        let pool = match (&config.transport, config.isolation) {
            (Transport::Http { .. }, Isolation::Shared) => Pool { min: 1, max: 1, ..config.pool },
            _ => config.pool,
        };
        let server = Arc::new(Self {
            slots: Mutex::new(Slots::new(pool, config.isolation, stop.clone())),
            config,
            launcher,
            dialer,
            slots_changed: Notify::new(),
            tools: watch::Sender::new(None),
            tools_changed: Arc::default(),
            stderr: Arc::default(),
            parked: Parked::default(),
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

    pub(super) fn tools(&self) -> watch::Receiver<Option<Arc<[Tool]>>> {
        self.tools.subscribe()
    }

    pub(super) fn tool(&self, name: &str) -> Option<Tool> {
        self.tools.borrow().as_ref()?.iter().find(|tool| tool.name == name).cloned()
    }

    /// Lists the tools again, soon.
    pub(super) fn refresh_tools(&self) {
        self.tools_changed.notify_one();
    }

    pub(super) fn health(&self) -> Health {
        let slots = self.lock();
        Health {
            status: slots.status(),
            ready: slots.ready_count(),
            restarts: slots.restarts(),
            stderr_tail: self.stderr.text(),
        }
    }

    /// Waits for an endpoint. Cancel safe.
    pub(super) async fn lease(self: &Arc<Self>, context: &ContextId) -> Result<Lease, Unavailable> {
        let (grant, granted) = oneshot::channel();
        self.change(|slots| slots.wait(context.clone(), grant));
        granted.await.unwrap_or(Err(Unavailable::Stopped))
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
        let Actions { grants, starts } = {
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
    }

    /// Does what is due at some time, rather than after a change.
    async fn supervise(self: Arc<Self>) {
        loop {
            let now = Instant::now();
            self.apply(|_| {});
            let wake = self.lock().next_wake(now).unwrap_or(now + PARKED_INTERVAL).min(now + PARKED_INTERVAL);
            tokio::select! {
                () = tokio::time::sleep_until(wake) => {}
                () = self.slots_changed.notified() => {}
                () = self.stop.cancelled() => return,
            }
            self.parked.expire();
        }
    }

    /// Keeps the list of tools up to date.
    async fn keep_tools(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.tools_changed.notified() => {}
                () = self.stop.cancelled() => return,
            }
            let known = self.tools.borrow().is_some();
            if known {
                sleep(TOOLS_DEBOUNCE).await;
            }
            let Some(endpoint) = self.lock().any_ready() else { continue };
            let listed = tokio::select! {
                listed = endpoint.connection.tools() => listed,
                () = self.stop.cancelled() => return,
            };
            match listed {
                Ok(tools) => self.publish(tools),
                Err(error) => {
                    tracing::warn!(
                        server = self.config.name,
                        ?error,
                        "the tools of an MCP server cannot be listed"
                    );
                    if !known {
                        sleep(TOOLS_RETRY).await;
                        self.refresh_tools();
                    }
                }
            }
        }
    }

    fn publish(self: &Arc<Self>, tools: Vec<Tool>) {
        self.change(Slots::tools_are_known);
        let tools: Arc<[Tool]> = tools.into();
        self.tools.send_if_modified(|known| {
            let changed = known.as_ref() != Some(&tools);
            *known = Some(tools);
            changed
        });
    }

    /// One process or connection, from its start to its end.
    async fn run_slot(self: Arc<Self>, id: u64, retire: CancellationToken) {
        let started = tokio::select! {
            started = self.connect() => started,
            () = retire.cancelled() => return,
        };
        let (endpoint, mut process) = match started {
            Ok(started) => started,
            Err(error) => {
                tracing::warn!(server = self.config.name, ?error, "an MCP server did not start");
                return self.change(|slots| slots.failed(id, error, Instant::now(), random()));
            }
        };
        let exclusive = endpoint.connection.server_asks() && process.is_some();
        self.change(|slots| slots.ready(id, Arc::clone(&endpoint), exclusive, Instant::now()));
        self.refresh_tools();
        tokio::select! {
            () = endpoint.connection.closed() => {}
            () = exited(process.as_mut()) => {
                // Its last response may still be in the pipe.
                let _ = timeout(OUTPUT_TIMEOUT, endpoint.connection.closed()).await;
            }
            () = retire.cancelled() => {}
        }
        endpoint.connection.close();
        self.change(|slots| slots.ended(id, Instant::now(), random()));
        if let Some(process) = &mut process {
            process.stop(STOP_GRACE).await;
        }
        let _ = timeout(OUTPUT_TIMEOUT, endpoint.last_line.complete()).await;
        endpoint.ended.cancel();
    }

    async fn connect(&self) -> Result<(Arc<Endpoint>, Option<Process>), ConnectError> {
        let options = Options {
            elicitation: self.config.elicitation,
            tools_changed: Arc::clone(&self.tools_changed),
            tasks: self.tasks.clone(),
        };
        let last_line = Arc::<LastLine>::default();
        let (connection, process) = match &self.config.transport {
            Transport::Stdio(launch) => self.launch(launch, &options, &last_line).await?,
            Transport::Http { url, headers } => {
                (Connection::http(url, headers, self.dialer.clone(), &options).await?, None)
            }
        };
        Ok((Arc::new(Endpoint { connection, last_line, ended: CancellationToken::new() }), process))
    }

    async fn launch(
        &self,
        launch: &Launch,
        options: &Options,
        last_line: &Arc<LastLine>,
    ) -> Result<(Connection, Option<Process>), ConnectError> {
        let program = launch.argv.first().map(String::as_str).unwrap_or_default();
        let mut process = self
            .launcher
            .start(launch)
            .map_err(|error| ConnectError::Failed(format!("{program} cannot be started: {error}")))?;
        let pipes = (process.stdout.take(), process.stdin.take(), process.stderr.take());
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else {
            return Err(ConnectError::Failed(format!("{program} has no pipes")));
        };
        let (name, tail, last) = (self.config.name.clone(), Arc::clone(&self.stderr), Arc::clone(last_line));
        self.tasks.spawn(async move { stderr::read(&name, stderr, &tail, &last).await });
        match Connection::stdio(stdout, stdin, options).await {
            Ok(connection) => Ok((connection, Some(process))),
            Err(error) => {
                process.stop(STOP_GRACE).await;
                let _ = timeout(OUTPUT_TIMEOUT, last_line.complete()).await;
                Err(with_output(error, &last_line.text()))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots<Arc<Endpoint>, Lease>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoint {
    /// The last line that the process wrote, for a client; waits for its end.
    pub(super) async fn last_line(&self) -> String {
        let _ = timeout(STOP_GRACE, self.ended.cancelled()).await;
        self.last_line.for_client()
    }
}

impl Lease {
    fn new(server: &Arc<Server>, granted: Granted<Arc<Endpoint>>) -> Self {
        let Granted { slot, connection: endpoint } = granted;
        Self { server: Arc::clone(server), slot, endpoint, call_ended: true }
    }

    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// A call was sent: until it ends, the process does not become free.
    pub(super) fn call_begins(&mut self) {
        self.call_ended = false;
    }

    /// The server has answered the call.
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

/// Resolves when the process has ended; never without one.
async fn exited(process: Option<&mut Process>) {
    match process {
        Some(process) => {
            let _ = process.wait().await;
        }
        None => std::future::pending().await,
    }
}

fn with_output(error: ConnectError, line: &str) -> ConnectError {
    match error {
        ConnectError::Failed(text) if !line.is_empty() => {
            ConnectError::Failed(format!("{text}; its last output: {line}"))
        }
        error => error,
    }
}

/// A random number, from the seed of the standard library's hasher.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0)
}
