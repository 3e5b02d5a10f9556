//! The background task that delivers notifications.
//!
//! It asks the store for webhooks that are due and starts an attempt for each: at most one per webhook, a few per host
//! (`hosts.rs`) and per address (`addresses.rs`), and as many in all and per principal as there are places (`places.rs`).
//! The store is asked host by host, in scans over all hosts that have something to be delivered. Hosts
//! that fail or are busy, or of which enough is known, are left out, so that their backlog neither delays other receivers nor is
//! read again and again. A stop waits shortly for attempts in flight; the others are made again after the next start.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::SocketAddr,
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
    AddressGate, Deliverer,
    addresses::AddressPlaces,
    delivery::{Attempt, HostState, Observation, earlier},
    hosts::{HostChange, Hosts, MAX_PER_HOST},
    places::{Class, MAX_IN_FLIGHT, Places, SLOW_AFTER, Share},
    policy::MAX_WAIT,
};
use crate::store::{DueWebhook, DueWebhooksQuery, StoreError, WebhookNo, WebhookOwner};

/// Due webhooks read at a time, and of one host: more than are in flight, which are due too.
const BATCH: usize = 4 * MAX_IN_FLIGHT;
const BATCH_OF_HOST: usize = 16 * MAX_PER_HOST;
/// Due webhooks kept in memory. A query reads at most this part of what is left of them for one host, so that a few hosts
/// with a backlog do not take all.
const MAX_READY: usize = 8 * BATCH;
const PART_OF_HOST: usize = 32;
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
    places: Places,
    addresses: Arc<AddressPlaces>,
    /// Due webhooks by host.
    ready: HashMap<String, VecDeque<Ready>>,
    /// Those in `ready` and those in flight.
    known: HashSet<WebhookNo>,
    attempts: JoinSet<Done>,
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

/// A webhook that is due and has no attempt in flight.
struct Ready {
    webhook: WebhookNo,
    owner: WebhookOwner,
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
    owner: WebhookOwner,
    /// Those of the host, if it was resolved.
    addresses: Vec<SocketAddr>,
    /// `None` if the attempt has panicked.
    result: Option<Result<Observation, StoreError>>,
}

impl Worker {
    pub(crate) fn new(deliverer: Arc<Deliverer>) -> Self {
        let now = Instant::now();
        Self {
            signal: deliverer.store.delivery_signal(),
            deliverer,
            hosts: Hosts::default(),
            places: Places::default(),
            addresses: Arc::default(),
            ready: HashMap::new(),
            known: HashSet::new(),
            attempts: JoinSet::new(),
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
        let mut access_changes = self.deliverer.holds.changes();
        loop {
            self.sweep_dead_letters().await;
            self.take_late_places();
            if let Err(error) = self.find_work().await {
                tracing::debug!(%error, "cannot read the webhooks that are due");
                self.pause(RETRY_DELAY);
            }
            let (signal, next_wake) = (Arc::clone(&self.signal), self.next_wake());
            tokio::select! {
                biased;
                () = draining.cancelled() => break,
                // The sender lives as long as the deliverer.
                _ = access_changes.changed() => self.release_held().await,
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
        self.start_probes().await?;
        if self.wants_query() {
            self.make_room();
            self.read_due().await?;
        }
        Ok(())
    }

    async fn start_probes(&mut self) -> Result<(), StoreError> {
        if self.places.is_full(Class::Probe) {
            return Ok(());
        }
        let now = self.deliverer.clock.elapsed();
        let hosts = self.hosts.to_probe(now);
        for share in [Share::Quarter, Share::All] {
            for host in &hosts {
                let has_room = |owner| self.places.have_room(Class::Probe, owner, share);
                if self.hosts.accepts(host, now) && self.hosts.owner(host).is_some_and(has_room) {
                    self.probe(host).await?;
                }
            }
        }
        Ok(())
    }

    async fn probe(&mut self, host: &str) -> Result<(), StoreError> {
        match self.deliverer.store.first_pending(host.to_owned()).await? {
            Some(DueWebhook { no, owner, .. }) if self.known.insert(no) => {
                if self.hosts.begin(host, &owner, self.deliverer.clock.elapsed()) {
                    self.spawn(Ready { webhook: no, owner }, host, Class::Probe);
                } else {
                    self.known.remove(&no);
                }
            }
            // It is in the queue of this host, or in flight.
            Some(_) => {
                let before = self.attempts.len();
                self.start_ready(host, Share::All);
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
            max_per_host: (MAX_READY.saturating_sub(self.known.len()) / PART_OF_HOST).clamp(1, BATCH_OF_HOST),
            max: BATCH,
        };
        let due = store.due_webhooks(query).await.inspect_err(|_| self.more = true)?;
        let ended = Instant::now();
        let ahead = due.next.map(|next| next.as_millis().saturating_sub(now.as_millis()));
        let ahead = ahead.and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis);
        self.wake_at = self.wake_at.min(ended + ahead.unwrap_or(MAX_SLEEP));
        let before = self.known.len();
        for DueWebhook { no: webhook, host, owner } in due.webhooks {
            if self.known.insert(webhook) {
                self.ready.entry(host).or_default().push_back(Ready { webhook, owner });
            }
        }
        let has_new = self.known.len() > before;
        let found = scan.found || has_new;
        // If all of them are known, their ends ask again.
        self.more |= due.more && has_new;
        self.scan = due.resume_after.map(|after_host| HostScan { after_host, found, ..scan });
        let pause = (ended - begun) * QUERY_PAUSE;
        let is_idle = self.scan.is_none() && !found;
        self.not_before = ended + if is_idle { pause.max(IDLE_PAUSE) } else { pause };
        if has_new {
            self.start_any();
        }
        Ok(())
    }

    /// If as much is in memory as may be, forgets what is due of the principals with the most until a query has room; a
    /// later scan finds it again. So what is due of others is read, however many hosts one principal has.
    fn make_room(&mut self) {
        if self.known.len() < MAX_READY {
            return;
        }
        let mut counts: HashMap<&WebhookOwner, usize> = HashMap::new();
        for ready in self.ready.values().flatten() {
            *counts.entry(&ready.owner).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().map(|(owner, count)| (count, owner.clone())).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let (mut left, mut forgotten) = (self.known.len(), HashSet::new());
        for (count, owner) in counts {
            if left + BATCH <= MAX_READY {
                break;
            }
            left -= count;
            forgotten.insert(owner);
        }
        let known = &mut self.known;
        self.ready.retain(|_, queue| {
            queue.retain(|ready| !forgotten.contains(&ready.owner) || !known.remove(&ready.webhook));
            !queue.is_empty()
        });
        self.more = true;
    }

    /// Starts as many attempts for a host as the limits allow.
    fn start_ready(&mut self, host: &str, share: Share) {
        while let Some(ready) = self.take_startable(host, share) {
            let begun = self.hosts.begin(host, &ready.owner, self.deliverer.clock.elapsed());
            debug_assert!(begun, "a host accepts requests when a webhook was taken for it");
            self.spawn(ready, host, self.class(host));
        }
    }

    /// Starts attempts for hosts that are picked at random, so that none waits until the backlog of another is delivered:
    /// first of principals that have less than their share.
    fn start_any(&mut self) {
        for share in [Share::Quarter, Share::All] {
            while let Some(host) = self.find_startable(share) {
                self.start_ready(&host, share);
            }
        }
    }

    fn find_startable(&self, share: Share) -> Option<String> {
        let can_start = !self.places.is_full(Class::Prompt) || !self.places.is_full(Class::Slow);
        if !can_start || self.ready.is_empty() {
            return None;
        }
        let start = fastrand::usize(..self.ready.len());
        let mut in_turn = self.ready.keys().skip(start).chain(self.ready.keys().take(start));
        in_turn.find(|host| self.startable(host, share).is_some()).cloned()
    }

    /// The place in the queue of a host of the first webhook whose attempt may begin.
    fn startable(&self, host: &str, share: Share) -> Option<usize> {
        let queue = self.ready.get(host)?;
        let class = self.class(host);
        if self.places.is_full(class) || !self.hosts.accepts(host, self.deliverer.clock.elapsed()) {
            return None;
        }
        let mut refused = None;
        queue.iter().position(|Ready { owner, .. }| {
            let may_start = refused != Some(owner)
                && self.places.have_room(class, owner, share)
                && self.addresses.have_room(owner, self.hosts.addresses(host));
            refused = (!may_start).then_some(owner);
            may_start
        })
    }

    fn class(&self, host: &str) -> Class {
        if self.hosts.is_slow(host) { Class::Slow } else { Class::Prompt }
    }

    /// The next due webhook of a host whose attempt may begin. A queue that is empty is removed: hosts with one are left
    /// out of scans.
    fn take_startable(&mut self, host: &str, share: Share) -> Option<Ready> {
        let index = self.startable(host, share)?;
        let queue = self.ready.get_mut(host)?;
        let ready = queue.remove(index);
        if queue.is_empty() {
            self.ready.remove(host);
        }
        ready
    }

    /// Forgets the due webhooks of a host; a later scan finds them again.
    fn drop_ready(&mut self, host: &str) {
        for ready in self.ready.remove(host).into_iter().flatten() {
            self.known.remove(&ready.webhook);
        }
    }

    fn spawn(&mut self, ready: Ready, host: &str, class: Class) {
        let Ready { webhook, owner } = ready;
        self.places.begin(webhook, host, class, &owner, self.deliverer.clock.elapsed());
        // A probe is the only request to its host.
        let (attempt, gate) = match class {
            Class::Probe => (Attempt::Probe, AddressGate::default()),
            Class::Prompt | Class::Slow => {
                (Attempt::Due, AddressGate::new(Arc::clone(&self.addresses), owner.clone()))
            }
        };
        let (deliverer, host) = (Arc::clone(&self.deliverer), host.to_owned());
        self.attempts.spawn(async move {
            let attempted = deliverer.attempt(webhook, attempt, &gate);
            let result = AssertUnwindSafe(attempted).catch_unwind().await.ok();
            Done { webhook, host, owner, addresses: gate.leave(), result }
        });
    }

    /// Gives the places of attempts that have become late to others.
    fn take_late_places(&mut self) {
        let late = self.places.take_late(self.deliverer.clock.elapsed());
        for host in &late {
            self.hosts.note_time(host, SLOW_AFTER, false);
        }
        if !late.is_empty() {
            self.start_any();
        }
    }

    async fn finish(&mut self, done: Done) {
        let Done { webhook, host, owner, addresses, result } = done;
        let others_wait = self.places.end(webhook) | self.addresses.take_wanted(&owner, &addresses);
        // A panic is reported by the panic hook. The webhook stays known, so that the attempt is made again after the next
        // start and not before.
        if result.is_some() {
            self.known.remove(&webhook);
        }
        let observation = result.unwrap_or(Ok(Observation::NOTHING)).unwrap_or_else(|error| {
            tracing::debug!(%error, "a push notification waits for the store");
            self.pause(RETRY_DELAY);
            Observation::NOTHING
        });
        if !addresses.is_empty() {
            self.hosts.set_addresses(&host, addresses);
        }
        if observation.state == HostState::NoPlace {
            self.known.insert(webhook);
            self.ready.entry(host.clone()).or_default().push_front(Ready { webhook, owner });
        }
        self.end_request(&host, observation).await;
        if others_wait {
            self.start_any();
        } else {
            self.start_ready(&host, Share::All);
        }
        // While the host was busy, its webhooks were left out of queries. If it still is, the next end asks again.
        let accepts = self.hosts.accepts(&host, self.deliverer.clock.elapsed());
        self.more |= accepts && !self.ready.contains_key(&host);
    }

    async fn end_request(&mut self, host: &str, observation: Observation) {
        let Deliverer { store, clock, policy, .. } = &*self.deliverer;
        let responded = match observation.state {
            HostState::Unknown | HostState::NoPlace => return self.hosts.abandon(host),
            HostState::Responds => true,
            HostState::Fails => false,
        };
        self.hosts.note_time(host, observation.time, responded);
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

    async fn release_held(&mut self) {
        match self.deliverer.release_held().await {
            Ok(()) => self.more = true,
            Err(error) => {
                tracing::debug!(%error, "notifications that are not held any more wait for their next look")
            }
        }
    }

    fn pause(&mut self, time: Duration) {
        self.not_before = self.not_before.max(Instant::now() + time);
    }

    fn next_wake(&mut self) -> Instant {
        let (now, elapsed) = (Instant::now(), self.deliverer.clock.elapsed());
        let in_future = |at: Duration| now + at.saturating_sub(elapsed);
        let probe = self.hosts.next_probe().filter(|_| !self.places.is_full(Class::Probe)).map(in_future);
        let query = if self.wants_query() { self.not_before } else { self.wake_at };
        let work = probe.map_or(query, |at| at.min(query)).max(self.not_before);
        let late = self.places.next_late().map(in_future);
        work.min(self.sweep_at).min(late.unwrap_or(self.sweep_at))
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
