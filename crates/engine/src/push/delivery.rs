//! One delivery: finds what a webhook is to be notified about, sends it, and records what became of it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future;
use protocol::{PushConfig, Task, Timestamp, model::Secret};

use super::{
    AddressGate, Holds, PushPolicy, PushRequest, PushSender, Records, Resent, SendResult,
    events::{Choice, Chosen},
    holds::HOLD_INTERVAL,
    policy::MAX_WAIT,
    records::Opened,
};
use crate::{
    clock::Clock,
    ids::{Ids, Tag, TaskNo},
    log::{Entry, Kind, Seq},
    memory::MemoryBudget,
    metrics::{PushMetrics, PushOutcome},
    store::{
        DeadLetter, DeliveryOutcome, DeliveryResult, LogReader, Lookup, NewDeadLetter, NewWebhook,
        PendingDelivery, Snapshot, Store, StoreError, View, Visibility, WebhookNo,
    },
    task::{PublicIds, fold},
};

/// Delivers notifications of the webhooks of a store.
pub(crate) struct Deliverer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sender: Arc<dyn PushSender>,
    pub(crate) records: Records,
    pub(crate) policy: PushPolicy,
    pub(crate) clock: Clock,
    pub(crate) memory: MemoryBudget,
    pub(crate) metrics: PushMetrics,
    pub(crate) holds: Holds,
}

/// Why an attempt is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It is due.
    Due,
    /// It tests whether the host responds again, also before its time.
    Probe,
}

/// What an attempt shows about the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostState {
    /// It has responded.
    Responds,
    /// It has not responded, or asks for fewer requests.
    Fails,
    /// Nothing was sent.
    Unknown,
    /// Nothing was sent, because enough requests go to its address. The attempt is to be made again.
    NoPlace,
}

/// What an attempt shows about the host, and how long the host took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) state: HostState,
    pub(super) time: Duration,
}

impl Observation {
    pub(super) const NOTHING: Self = Self { state: HostState::Unknown, time: Duration::ZERO };
}

/// The result of a request, and how long it took.
struct Response {
    result: SendResult,
    time: Duration,
}

/// The error text of a webhook whose record cannot be opened.
const SEALED_ELSEWHERE: &str = "its record cannot be opened: the key file <store>.keys/seal was replaced";

impl Deliverer {
    /// Makes one attempt for a webhook and records the result. An error means that nothing was recorded, and that it is
    /// to be made again.
    pub(super) async fn attempt(
        &self,
        webhook: WebhookNo,
        attempt: Attempt,
        gate: &AddressGate,
    ) -> Result<Observation, StoreError> {
        match self.try_attempt(webhook, attempt, gate).await {
            Err(StoreError::Broken(error)) => {
                tracing::error!(error, "a push notification cannot be read from the store");
                let retry_at = later(self.clock.now(), MAX_WAIT / 24);
                let error = "the task cannot be read from the store".to_owned();
                self.record(webhook, DeliveryOutcome::Failed { retry_at, attempts: 1, error }).await?;
                Ok(Observation::NOTHING)
            }
            result => result,
        }
    }

    async fn try_attempt(
        &self,
        webhook: WebhookNo,
        attempt: Attempt,
        gate: &AddressGate,
    ) -> Result<Observation, StoreError> {
        self.holds.remove(webhook);
        let Some(pending) = self.store.pending_delivery(webhook).await? else {
            return Ok(Observation::NOTHING);
        };
        if pending.webhook.disabled || pending.webhook.next_at.is_none() {
            return Ok(Observation::NOTHING);
        }
        let (chosen, seen) = self.choose(&pending).await?;
        let Some(chosen) = chosen else {
            let outcome = DeliveryOutcome::Nothing { acked: seen, last_seq: pending.task.last_seq };
            self.record(webhook, outcome).await?;
            return Ok(Observation::NOTHING);
        };
        let Some(opened) = self.records.open(pending.task.no, &pending.webhook.config) else {
            self.give_up(&pending, chosen, SEALED_ELSEWHERE.into(), false).await?;
            return Ok(Observation::NOTHING);
        };
        if self.has_waited_too_long(&pending) {
            let last = pending.webhook.error.clone();
            let error = last.unwrap_or_else(|| "the host was not reachable for a day".into());
            self.give_up(&pending, chosen, error, false).await?;
            return Ok(Observation::NOTHING);
        }
        if let Some(reason) = self.holds.reason(&pending.scope).await? {
            self.hold(&pending, reason).await?;
            return Ok(Observation::NOTHING);
        }
        let Response { result, time } = match self.confirm(&pending, &opened.config, gate).await? {
            Some(unconfirmed) => unconfirmed,
            None => self.send(&pending, chosen, &opened, gate).await?,
        };
        let state = self.settle(&pending, chosen, attempt, result).await?;
        Ok(Observation { state, time })
    }

    /// Asks the receiver to confirm its URL, where that is wanted and has not been done. Returns the response if it has not.
    async fn confirm(
        &self,
        pending: &PendingDelivery,
        config: &PushConfig,
        gate: &AddressGate,
    ) -> Result<Option<Response>, StoreError> {
        let webhook = &pending.webhook;
        let wanted = self.policy.challenge && webhook.config.form.dialect.confirms_webhooks();
        if !wanted || webhook.confirmed {
            return Ok(None);
        }
        let challenge = self.sender.challenge(config.url.clone(), self.policy.timeout, gate.clone());
        let response = self.timed(challenge).await;
        if response.result != SendResult::Accepted {
            return Ok(Some(response));
        }
        self.record(webhook.no, DeliveryOutcome::Confirmed).await?;
        Ok(None)
    }

    /// The notification that a webhook is due for, and up to which entry there is no other.
    async fn choose(&self, pending: &PendingDelivery) -> Result<(Option<Chosen>, Seq), StoreError> {
        let PendingDelivery { webhook, task, scope } = pending;
        let end = webhook.until.map_or(task.last_seq, |until| until.min(task.last_seq));
        // A hidden task has no events for clients; an undecided one may become visible with its next entry.
        if task.visibility != Visibility::Visible {
            return Ok((None, if task.visibility == Visibility::Hidden { end } else { webhook.acked }));
        }
        let before = match webhook.acked {
            0 => None,
            acked => self.store.last_status(scope, task.no, acked).await?,
        };
        let before = before.and_then(|entry| match entry.kind() {
            Kind::Status(state) => Some(state),
            Kind::Artifact | Kind::Message => None,
        });
        let mut choice = Choice::new(webhook.config.events, before);
        let mut cursor = webhook.acked;
        while cursor < end && !choice.is_final() {
            let slice = self.store.entries(scope, task.no, cursor, usize::MAX).await?;
            if slice.is_empty() {
                return Err(StoreError::Purged);
            }
            for (seq, entry) in slice.into_iter().take_while(|(seq, _)| *seq <= end) {
                choice.add(seq, entry.kind());
                cursor = seq;
            }
            cursor = cursor.max(webhook.acked + 1);
        }
        Ok((choice.chosen(), end))
    }

    async fn send(
        &self,
        pending: &PendingDelivery,
        chosen: Chosen,
        opened: &Opened,
        gate: &AddressGate,
    ) -> Result<Response, StoreError> {
        // The log, the task and the body are in memory at the same time.
        let memory = self.memory.begin();
        if let Err(error) = memory.cover_task(pending.task.size) {
            return Err(StoreError::TooLarge(error));
        }
        let body = self.body(pending, chosen).await?;
        let id = notification_id(
            &self.store.ids(),
            pending.task.no,
            pending.task.tag,
            pending.webhook.no,
            chosen.seq,
        );
        let request = self.request(opened, &pending.webhook.config, id, body, gate.clone());
        let response = self.timed(self.sender.send(request)).await;
        drop(memory);
        Ok(response)
    }

    async fn timed(&self, request: impl Future<Output = SendResult>) -> Response {
        let begun = self.clock.elapsed();
        let result = request.await;
        Response { result, time: self.clock.elapsed().saturating_sub(begun) }
    }

    fn request(
        &self,
        opened: &Opened,
        webhook: &NewWebhook,
        id: String,
        body: Bytes,
        gate: AddressGate,
    ) -> PushRequest {
        let Opened { config, signing_key } = opened;
        PushRequest {
            url: config.url.clone(),
            dialect: webhook.form.dialect,
            id,
            now: self.clock.now(),
            body,
            media_type: webhook.form.dialect.notification_media_type().to_owned(),
            token: config.token.clone(),
            authentication: config.authentication.clone(),
            signing_key: Secret::new(signing_key.expose()),
            timeout: self.policy.timeout,
            gate,
        }
    }

    /// The body of a notification: the same bytes whenever it is built.
    async fn body(&self, pending: &PendingDelivery, chosen: Chosen) -> Result<Bytes, StoreError> {
        let form = pending.webhook.config.form;
        if chosen.is_event && form.dialect.notifies_with_events() {
            let entry = self.entry(pending, chosen.seq).await?;
            return Ok(entry.v1().clone());
        }
        let task = self.task_as_of(pending, chosen.seq).await?;
        Ok(form.dialect.encode_notification(task, form.style).into())
    }

    async fn entry(&self, pending: &PendingDelivery, seq: Seq) -> Result<Arc<Entry>, StoreError> {
        let found = self.store.entries(&pending.scope, pending.task.no, seq - 1, 1).await?;
        found.into_iter().next().map(|(_, entry)| entry).ok_or(StoreError::Purged)
    }

    /// The task after this entry.
    async fn task_as_of(&self, pending: &PendingDelivery, seq: Seq) -> Result<Task, StoreError> {
        let PendingDelivery { task: row, scope, .. } = pending;
        let ids = self.store.ids();
        if seq == row.last_seq {
            let ours = (row.no, row.tag);
            let lookup = Lookup { ours: Some(ours), name: ids.task(row.no, row.tag) };
            let snapshot = self.store.read(scope, lookup, View::default()).await?;
            // It may have changed since its row was read.
            if let Some(snapshot) = snapshot.filter(|snapshot: &Snapshot| snapshot.row.last_seq == seq) {
                return Ok(fold::into_task(&ids, snapshot)?);
            }
        }
        let mut task = fold::begin(&PublicIds::of(&ids, row));
        let mut log = LogReader::new(&*self.store, scope, row, seq).waiting();
        while let Some(slice) = log.next().await? {
            for (_, entry) in &slice {
                fold::apply(&mut task, entry)?;
            }
        }
        Ok(task)
    }

    /// Records the result of an attempt.
    async fn settle(
        &self,
        pending: &PendingDelivery,
        chosen: Chosen,
        attempt: Attempt,
        result: SendResult,
    ) -> Result<HostState, StoreError> {
        let webhook = &pending.webhook;
        let (error, retry_after, state) = match result {
            SendResult::Accepted => {
                self.metrics.count(PushOutcome::Delivered);
                self.record(webhook.no, DeliveryOutcome::Delivered(chosen.seq)).await?;
                return Ok(HostState::Responds);
            }
            SendResult::Forbidden(reason) => {
                let text = format!("the URL of the webhook is not allowed: {reason}");
                self.give_up(pending, chosen, text, false).await?;
                return Ok(HostState::Unknown);
            }
            SendResult::Rejected { status: GONE, .. } => {
                self.give_up(pending, chosen, "the receiver responded 410 Gone".into(), true).await?;
                return Ok(HostState::Responds);
            }
            SendResult::Rejected { status, retry_after } => {
                let state =
                    if status == TOO_MANY || status >= 500 { HostState::Fails } else { HostState::Responds };
                (format!("the receiver responded with status {status}"), retry_after, state)
            }
            SendResult::Failed(reason) => (reason, None, HostState::Fails),
            SendResult::NotSent(reason) => (reason, None, HostState::Unknown),
            SendResult::NoPlace => return Ok(HostState::NoPlace),
        };
        self.metrics.count(PushOutcome::Failed);
        let now = self.clock.now();
        // A probe before its time is no attempt of this notification. It is scheduled anew all the same, so that the next
        // probe takes another one.
        let is_early = attempt == Attempt::Probe && webhook.next_at.is_some_and(|next| next > now);
        let attempts = webhook.attempts.saturating_add(u32::from(!is_early));
        match self.policy.wait(attempts.max(1), retry_after, fastrand::f64()) {
            Some(wait) => {
                let outcome = DeliveryOutcome::Failed { retry_at: later(now, wait), attempts, error };
                self.record(webhook.no, outcome).await?;
            }
            None => self.give_up(pending, chosen, error, false).await?,
        }
        Ok(state)
    }

    /// Puts a notification off; it has as many attempts as before.
    async fn hold(&self, pending: &PendingDelivery, reason: &str) -> Result<(), StoreError> {
        let webhook = &pending.webhook;
        let outcome = DeliveryOutcome::Failed {
            retry_at: later(self.clock.now(), HOLD_INTERVAL),
            attempts: webhook.attempts,
            error: reason.to_owned(),
        };
        self.record(webhook.no, outcome).await?;
        self.holds.add(webhook.no, pending.scope.clone());
        // A change while it was recorded has not found it.
        match self.holds.reason(&pending.scope).await? {
            None => self.release_held().await,
            Some(_) => Ok(()),
        }
    }

    /// Makes the notifications due that are not held any more.
    pub(super) async fn release_held(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let released = self.holds.take_released().await?;
        let due = released.into_iter().map(|webhook| self.store.retry_delivery(webhook, now));
        future::try_join_all(due).await.map(drop)
    }

    fn has_waited_too_long(&self, pending: &PendingDelivery) -> bool {
        let too_old = earlier(self.clock.now(), MAX_WAIT);
        pending.webhook.due_since.is_some_and(|since| since < too_old)
    }

    /// Keeps the notification as a dead letter; the next one is due.
    async fn give_up(
        &self,
        pending: &PendingDelivery,
        chosen: Chosen,
        error: String,
        disable: bool,
    ) -> Result<(), StoreError> {
        self.metrics.count(PushOutcome::Dead);
        let letter = NewDeadLetter {
            seq: chosen.seq,
            attempts: pending.webhook.attempts.saturating_add(1),
            error,
            body: self.body(pending, chosen).await?,
            media_type: pending.webhook.config.form.dialect.notification_media_type().to_owned(),
        };
        let outcome = DeliveryOutcome::Dead { letter: Box::new(letter), disable };
        self.record(pending.webhook.no, outcome).await
    }

    async fn record(&self, webhook: WebhookNo, outcome: DeliveryOutcome) -> Result<(), StoreError> {
        let now = self.clock.now();
        self.store.record_delivery(DeliveryResult { webhook, now, outcome }).await.map(drop)
    }

    /// Sends a dead letter once more, with the bytes and the id it had, and deletes it if the receiver accepts it.
    pub(crate) async fn resend(&self, no: i64) -> Result<Resent, StoreError> {
        let Some(dead) = self.store.dead_letter(no).await? else { return Ok(Resent::Unknown) };
        let Some(opened) = self.records.open(dead.task, &dead.config) else {
            return Ok(Resent::Failed(SEALED_ELSEWHERE.into()));
        };
        if let Some(reason) = self.holds.reason(&dead.scope).await? {
            return Ok(Resent::Failed(reason.to_owned()));
        }
        let id = letter_id(&self.store.ids(), &dead);
        // An operator's request takes no place.
        let gate = AddressGate::default();
        let mut request = self.request(&opened, &dead.config, id, dead.letter.body.clone(), gate);
        request.media_type = dead.letter.media_type.clone();
        let failed = match self.sender.send(request).await {
            SendResult::Accepted => {
                self.metrics.count(PushOutcome::Delivered);
                self.store.delete_dead_letter(no).await?;
                return Ok(Resent::Delivered);
            }
            SendResult::Rejected { status, .. } => format!("the receiver responded with status {status}"),
            SendResult::Failed(reason) | SendResult::NotSent(reason) => reason,
            SendResult::Forbidden(reason) => format!("the URL of the webhook is not allowed: {reason}"),
            SendResult::NoPlace => "too many requests go to the address of the receiver".into(),
        };
        self.metrics.count(PushOutcome::Failed);
        Ok(Resent::Failed(failed))
    }
}

const GONE: u16 = 410;
const TOO_MANY: u16 = 429;

/// The id of a notification, the same for every attempt. Made of the server's own id of the task, because ids that
/// clients choose may contain characters that a header cannot have.
pub(crate) fn notification_id(ids: &Ids, task: TaskNo, tag: Tag, webhook: WebhookNo, seq: Seq) -> String {
    format!("{}-{}-{seq}", ids.task(task, tag), webhook.0)
}

/// The id of the notification that a dead letter is.
pub(crate) fn letter_id(ids: &Ids, dead: &DeadLetter) -> String {
    notification_id(ids, dead.task, dead.tag, dead.webhook, dead.letter.seq)
}

pub(super) fn later(time: Timestamp, by: Duration) -> Timestamp {
    let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(time.as_millis().saturating_add(millis))
}

pub(super) fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(time.as_millis().saturating_sub(millis))
}
