//! The background task that delivers notifications.
//!
//! It asks the store for webhooks that are due and starts an attempt for each: at most one per webhook, a few per host and
//! [`MAX_IN_FLIGHT`] in all, beside at most [`MAX_PROBES`] of hosts that fail. The store is asked host by host, in scans over all hosts that have something to be delivered. Hosts
//! that fail or are busy, or of which enough is known, are left out, so that their backlog neither delays other receivers nor is
//! read again and again. A stop waits shortly for attempts in flight; the others are made again after the next start.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt as _;
use protocol::Timestamp;
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Deliverer,
    delivery::{Attempt, HostState, earlier},
    hosts::{HostChange, Hosts, MAX_PER_HOST},
    policy::MAX_WAIT,
};
use crate::store::{DueWebhooksQuery, StoreError, WebhookNo};

/// Attempts in flight over all hosts, without probes.
const MAX_IN_FLIGHT: usize = 256;
/// Probes in flight: hosts that never respond must not take the places of others.
const MAX_PROBES: usize = 64;
/// Due webhooks read at a time, and of one host: more than are in flight, which are due too.
const BATCH: usize = 4 * MAX_IN_FLIGHT;
const BATCH_OF_HOST: usize = 16 * MAX_PER_HOST;
/// Due webhooks kept in memory.
const MAX_READY: usize = 8 * BATCH;
/// How long a stop waits for attempts in flight.
const STOP_WAIT: Duration = Duration::from_secs(2);
/// How long the worker waits at most until it looks again.
const MAX_SLEEP: Duration = Duration::from_secs(30);
/// How long it waits after the store could not be read or written.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// A query that took long is not repeated before this many times its duration have passed.
const QUERY_PAUSE: u32 = 4;
/// Nor is a scan that has found nothing before this time: every commit that makes a webhook due asks for one, also if its host
/// gets no requests.
const IDLE_PAUSE: Duration = Duration::from_millis(10);
/// How often hosts that get no requests are searched for what has waited too long.
const TOO_OLD_INTERVAL: Duration = Duration::from_secs(60);
/// How many dead letters are deleted at a time, and how often.
const DEAD_LETTER_BATCH: usize = 64;
const DEAD_LETTER_INTERVAL: Duration = Duration::from_secs(60);

pub(crate) struct Worker {
    deliverer: Arc<Deliverer>,
    signal: Arc<Notify>,
    hosts: Hosts,
    /// Due webhooks by host.
    ready: HashMap<String, VecDeque<WebhookNo>>,
    /// Those in `ready` and those in flight.
    known: HashSet<WebhookNo>,
    attempts: JoinSet<Done>,
    /// How many of them are probes.
    probes: usize,
    /// There may be due webhooks that are not known: another scan is wanted.
    more: bool,
    /// The scan in progress.
    scan: Option<HostScan>,
    /// When what has waited too long is searched for next, as elapsed time.
    too_old_at: Duration,
    /// No query before this time.
    not_before: Instant,
    /// When the next webhook becomes due.
    wake_at: Instant,
    /// When dead letters are deleted next.
    sweep_at: Instant,
}

/// Asks the store for what is due at each host.
struct HostScan {
    /// The hosts up to this one were asked.
    after_host: String,
    /// What has been due since before this time has waited too long; not searched for in every scan.
    too_old: Option<Timestamp>,
    /// Whether something was due that was not known.
    found: bool,
}

/// The end of an attempt.
struct Done {
    webhook: WebhookNo,
    host: String,
    attempt: Attempt,
    /// `None` if the attempt has panicked.
    result: Option<Result<HostState, StoreError>>,
}

impl Worker {
    pub(crate) fn new(deliverer: Arc<Deliverer>) -> Self {
        let now = Instant::now();
        Self {
            signal: deliverer.store.delivery_signal(),
            deliverer,
            hosts: Hosts::default(),
            ready: HashMap::new(),
            known: HashSet::new(),
            attempts: JoinSet::new(),
            probes: 0,
            more: true,
            scan: None,
            too_old_at: Duration::ZERO,
            not_before: now,
            wake_at: now,
            sweep_at: now,
        }
    }

    /// Runs until graceful shutdown starts.
    pub(crate) async fn run(mut self, draining: CancellationToken) {
        loop {
            self.sweep_dead_letters().await;
            if let Err(error) = self.find_work().await {
                tracing::debug!(%error, "cannot read the webhooks that are due");
                self.pause(RETRY_DELAY);
            }
            let (signal, next_wake) = (Arc::clone(&self.signal), self.next_wake());
            tokio::select! {
                biased;
                () = draining.cancelled() => break,
                Some(Ok(done)) = self.attempts.join_next() => {
                    self.finish(done).await;
                    while let Some(Ok(done)) = self.attempts.try_join_next() {
                        self.finish(done).await;
                    }
                }
                () = signal.notified() => self.more = true,
                () = sleep_until(next_wake) => self.more |= Instant::now() >= self.wake_at,
            }
        }
        let rest = async { while self.attempts.join_next().await.is_some() {} };
        let _ = timeout(STOP_WAIT, rest).await;
    }

    /// Starts probes, and reads what is due if there may be something new.
    async fn find_work(&mut self) -> Result<(), StoreError> {
        if Instant::now() < self.not_before {
            return Ok(());
        }
        for host in self.hosts.to_probe(self.deliverer.clock.elapsed()) {
            if self.probes >= MAX_PROBES {
                break;
            }
            self.probe(&host).await?;
        }
        if self.wants_query() && self.known.len() < MAX_READY {
            self.read_due().await?;
        }
        Ok(())
    }

    async fn probe(&mut self, host: &str) -> Result<(), StoreError> {
        match self.deliverer.store.first_pending(host.to_owned()).await? {
            Some(webhook) if self.known.insert(webhook) => {
                if self.hosts.begin(host, self.deliverer.clock.elapsed()) {
                    self.probes += 1;
                    self.spawn(webhook, host, Attempt::Probe);
                } else {
                    self.known.remove(&webhook);
                }
            }
            // It is in the queue of this host, or in flight.
            Some(_) => {
                let before = self.attempts.len();
                self.start_ready(host);
                if self.attempts.len() == before {
                    self.pause(IDLE_PAUSE);
                }
            }
            None => {
                self.drop_ready(host);
                self.hosts.forget(host);
                self.more = true;
            }
        }
        Ok(())
    }

    fn wants_query(&self) -> bool {
        self.more || self.scan.is_some()
    }

    fn begin_scan(&mut self, now: Timestamp) -> HostScan {
        (self.more, self.wake_at) = (false, Instant::now() + MAX_SLEEP);
        let elapsed = self.deliverer.clock.elapsed();
        let too_old = (elapsed >= self.too_old_at).then(|| earlier(now, MAX_WAIT));
        if too_old.is_some() {
            self.too_old_at = elapsed + TOO_OLD_INTERVAL;
        }
        HostScan { after_host: String::new(), too_old, found: false }
    }

    /// Reads what is due at the next hosts of a scan. After an error the next scan begins with the first host.
    async fn read_due(&mut self) -> Result<(), StoreError> {
        let (begun, now) = (Instant::now(), self.deliverer.clock.now());
        let scan = match self.scan.take() {
            Some(scan) => scan,
            None => self.begin_scan(now),
        };
        let Deliverer { store, clock, policy, .. } = &*self.deliverer;
        let query = DueWebhooksQuery {
            now,
            after_host: scan.after_host,
            without_hosts: self.hosts.refusing(clock.elapsed()).chain(self.ready.keys()).cloned().collect(),
            too_old: scan.too_old,
            max_ahead: policy.max_ahead(),
            max_per_host: BATCH_OF_HOST,
            max: BATCH,
        };
        let due = store.due_webhooks(query).await.inspect_err(|_| self.more = true)?;
        let ended = Instant::now();
        let ahead = due.next.map(|next| next.as_millis().saturating_sub(now.as_millis()));
        let ahead = ahead.and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis);
        self.wake_at = self.wake_at.min(ended + ahead.unwrap_or(MAX_SLEEP));
        let mut hosts = HashSet::new();
        for (webhook, host) in due.webhooks {
            if self.known.insert(webhook) {
                self.ready.entry(host.clone()).or_default().push_back(webhook);
                hosts.insert(host);
            }
        }
        let found = scan.found || !hosts.is_empty();
        // If all of them are known, their ends ask again.
        self.more |= due.more && !hosts.is_empty();
        self.scan = due.resume_after.map(|after_host| HostScan { after_host, found, ..scan });
        let pause = (ended - begun) * QUERY_PAUSE;
        let is_idle = self.scan.is_none() && !found;
        self.not_before = ended + if is_idle { pause.max(IDLE_PAUSE) } else { pause };
        for host in hosts {
            self.start_ready(&host);
        }
        Ok(())
    }

    fn has_place(&self) -> bool {
        self.attempts.len() - self.probes < MAX_IN_FLIGHT
    }

    /// Starts as many attempts for a host as the limits allow.
    fn start_ready(&mut self, host: &str) {
        while self.has_place()
            && self.ready.contains_key(host)
            && self.hosts.begin(host, self.deliverer.clock.elapsed())
        {
            match self.take_ready(host) {
                Some(webhook) => self.spawn(webhook, host, Attempt::Due),
                None => self.hosts.abandon(host),
            }
        }
    }

    /// Starts attempts for hosts that are picked at random, so that none waits until the backlog of another is delivered.
    fn start_any(&mut self) {
        while self.has_place() && !self.ready.is_empty() {
            let (elapsed, hosts) = (self.deliverer.clock.elapsed(), self.ready.len());
            let mut in_turn = self.ready.keys().cycle().skip(fastrand::usize(..hosts)).take(hosts);
            match in_turn.find(|host| self.hosts.accepts(host, elapsed)).cloned() {
                Some(host) => self.start_ready(&host),
                None => return,
            }
        }
    }

    /// The next due webhook of a host. A queue that is empty is removed: hosts with one are left out of scans.
    fn take_ready(&mut self, host: &str) -> Option<WebhookNo> {
        let queue = self.ready.get_mut(host)?;
        let webhook = queue.pop_front();
        if queue.is_empty() {
            self.ready.remove(host);
        }
        webhook
    }

    /// Forgets the due webhooks of a host; a later scan finds them again.
    fn drop_ready(&mut self, host: &str) {
        for webhook in self.ready.remove(host).into_iter().flatten() {
            self.known.remove(&webhook);
        }
    }

    fn spawn(&mut self, webhook: WebhookNo, host: &str, attempt: Attempt) {
        let (deliverer, host) = (Arc::clone(&self.deliverer), host.to_owned());
        self.attempts.spawn(async move {
            let result = AssertUnwindSafe(deliverer.attempt(webhook, attempt)).catch_unwind().await.ok();
            Done { webhook, host, attempt, result }
        });
    }

    async fn finish(&mut self, done: Done) {
        let Done { webhook, host, attempt, result } = done;
        let was_full = self.attempts.len() + 1 - self.probes >= MAX_IN_FLIGHT;
        if attempt == Attempt::Probe {
            self.probes -= 1;
        }
        // A panic is reported by the panic hook. The webhook stays known, so that the attempt is made again after the next
        // start and not before.
        if result.is_some() {
            self.known.remove(&webhook);
        }
        let state = result.unwrap_or(Ok(HostState::Unknown)).unwrap_or_else(|error| {
            tracing::debug!(%error, "a push notification waits for the store");
            self.pause(RETRY_DELAY);
            HostState::Unknown
        });
        self.end_request(&host, state).await;
        if was_full {
            self.start_any();
        } else {
            self.start_ready(&host);
        }
        // While the host was busy, its webhooks were left out of queries. If it still is, the next end asks again.
        let accepts = self.hosts.accepts(&host, self.deliverer.clock.elapsed());
        self.more |= accepts && !self.ready.contains_key(&host);
    }

    async fn end_request(&mut self, host: &str, state: HostState) {
        let Deliverer { store, clock, policy, .. } = &*self.deliverer;
        let responded = match state {
            HostState::Unknown => return self.hosts.abandon(host),
            HostState::Responds => true,
            HostState::Fails => false,
        };
        match self.hosts.end(host, responded, clock.elapsed(), policy.probe_interval) {
            HostChange::None => {}
            HostChange::Opened => {
                tracing::warn!(host, "the webhooks of this host fail; it is tried once in each interval");
                // They are read again when the host responds, and meanwhile take no place from others.
                self.drop_ready(host);
            }
            HostChange::Closed => {
                tracing::info!(host, "the webhooks of this host succeed again; its backlog is delivered");
                if let Err(error) = store.release_host(host.to_owned(), clock.now()).await {
                    tracing::warn!(%error, "the backlog of a host stays scheduled for later");
                }
            }
        }
    }

    fn pause(&mut self, time: Duration) {
        self.not_before = self.not_before.max(Instant::now() + time);
    }

    fn next_wake(&self) -> Instant {
        let elapsed = self.deliverer.clock.elapsed();
        let probe = self.hosts.next_probe().filter(|_| self.probes < MAX_PROBES);
        let probe = probe.map(|at| Instant::now() + at.saturating_sub(elapsed));
        let query = (self.known.len() < MAX_READY).then_some(match self.wants_query() {
            true => self.not_before,
            false => self.wake_at,
        });
        let work = query.into_iter().chain(probe).min().map(|at| at.max(self.not_before));
        work.map_or(self.sweep_at, |at| at.min(self.sweep_at))
    }

    /// Deletes dead letters that were kept long enough.
    async fn sweep_dead_letters(&mut self) {
        if Instant::now() < self.sweep_at {
            return;
        }
        let before = earlier(self.deliverer.clock.now(), self.deliverer.policy.dead_letters);
        let deleted = self.deliverer.store.expire_dead_letters(before, DEAD_LETTER_BATCH).await;
        let pause = match deleted {
            Ok(DEAD_LETTER_BATCH) => RETRY_DELAY,
            Ok(_) | Err(_) => DEAD_LETTER_INTERVAL,
        };
        self.sweep_at = Instant::now() + pause;
    }
}
