//! Webhooks and their deliveries as the store has them.
//!
//! The log of a task has no gaps, so a webhook needs no row for each notification: its row has the number of the last
//! entry that was handled and the time of the next attempt. Only notifications that were given up have rows of their own.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use protocol::{ConfigId, Dialect, TaskId, Timestamp, dialect::Style};

use super::TaskRow;
use crate::{
    access::scope::Scope,
    ids::{Tag, TaskNo},
    log::Seq,
    push::PushEvents,
};

/// Number of a webhook: its identity in the store, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WebhookNo(pub i64);

/// A webhook that a client registers. It replaces the one with the same id of the same task.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// Unique within the task.
    pub id: ConfigId,
    /// In which form notifications are sent.
    pub form: NotificationForm,
    /// Which events are sent.
    pub events: PushEvents,
    /// Receivers with the same text are treated as one host: tenant, host and port.
    pub host: String,
    /// URL and secrets, sealed.
    pub sealed: Bytes,
}

/// The wire form of a webhook's notifications: that of the call that registered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotificationForm {
    /// The version.
    pub dialect: Dialect,
    /// The encoding options of the endpoint's compatibility profile.
    pub style: Style,
}

/// The result of registering a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It is durable.
    Stored,
    /// The task has as many webhooks as it may have.
    TooMany,
    /// There is no such task any more.
    NoTask,
}

/// A webhook of a task.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Its identity.
    pub no: WebhookNo,
    /// What the client registered.
    pub config: NewWebhook,
    /// The last entry that was delivered, was not wanted, or was given up.
    pub acked: Seq,
    /// Entries after this one are not sent: the task was reopened, and the webhook belongs to the earlier turn.
    pub until: Option<Seq>,
    /// When the next attempt is due; `None` if there is nothing to deliver.
    pub next_at: Option<Timestamp>,
    /// Since when there has been something to deliver.
    pub due_since: Option<Timestamp>,
    /// Failed attempts of the notification that is to be delivered.
    pub attempts: u32,
    /// Why the last attempt failed; `None` after a success.
    pub error: Option<String>,
    /// How many notifications were delivered.
    pub delivered: u64,
    /// The receiver has asked for no more.
    pub disabled: bool,
    /// The receiver has confirmed its URL.
    pub confirmed: bool,
}

/// Whose places the deliveries of a webhook take: the principal that owns the task, within its tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WebhookOwner(Arc<str>);

impl WebhookOwner {
    /// The principal of a tenant.
    pub fn new(tenant: &str, principal: &str) -> Self {
        // With the length, no two pairs have the same text.
        Self(format!("{}/{tenant}/{principal}", tenant.len()).into())
    }
}

/// A webhook that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueWebhook {
    /// Its identity.
    pub no: WebhookNo,
    /// Its host.
    pub host: String,
    /// Its owner.
    pub owner: WebhookOwner,
}

/// Which webhooks are due.
#[derive(Clone, Debug, Default)]
pub struct DueWebhooks {
    /// Host by host; of each host, longest due first.
    pub webhooks: Vec<DueWebhook>,
    /// Whether there may be more of a host.
    pub more: bool,
    /// When the next one of the examined hosts becomes due.
    pub next: Option<Timestamp>,
    /// Hosts after this one were not examined; `None` if there are no others.
    pub resume_after: Option<String>,
}

/// A query for due webhooks.
#[derive(Clone, Debug)]
pub struct DueWebhooksQuery {
    /// Current time.
    pub now: Timestamp,
    /// Only hosts after this one, in the order of their names.
    pub after_host: String,
    /// Hosts that are left out.
    pub without_hosts: HashSet<String>,
    /// What has been due since before this time has waited too long, and is found although its host is left out.
    pub too_old: Option<Timestamp>,
    /// The longest time that an attempt is scheduled ahead; what is due later was scheduled by a wrong clock.
    pub max_ahead: Duration,
    /// Maximum number of results of one host.
    pub max_per_host: usize,
    /// With this number of results, no other host is examined.
    pub max: usize,
}

/// A webhook with its task.
#[derive(Clone, Debug)]
pub struct PendingDelivery {
    /// The webhook.
    pub webhook: Webhook,
    /// Its task, also one that is hidden.
    pub task: TaskRow,
    /// The owner of both.
    pub scope: Scope,
}

/// What became of a delivery; the store moves the webhook on.
#[derive(Clone, Debug)]
pub struct DeliveryResult {
    /// The webhook; ignored if it was deleted meanwhile.
    pub webhook: WebhookNo,
    /// Current time.
    pub now: Timestamp,
    /// What happened.
    pub outcome: DeliveryOutcome,
}

/// What became of a delivery.
#[derive(Clone, Debug)]
pub enum DeliveryOutcome {
    /// The receiver has accepted the notification about this entry.
    Delivered(Seq),
    /// There is nothing to deliver.
    Nothing {
        /// No entry up to this one is to be delivered.
        acked: Seq,
        /// The last entry of the task that was read: a later one may have to be delivered.
        last_seq: Seq,
    },
    /// The attempt failed.
    Failed {
        /// When the next one is due.
        retry_at: Timestamp,
        /// How many have failed.
        attempts: u32,
        /// Why.
        error: String,
    },
    /// The notification is given up.
    Dead {
        /// What is kept of it.
        letter: Box<NewDeadLetter>,
        /// Whether the receiver has asked for no more notifications.
        disable: bool,
    },
    /// The receiver has confirmed its URL; the notification is still to be delivered.
    Confirmed,
}

/// A notification that was given up.
#[derive(Clone, Debug)]
pub struct NewDeadLetter {
    /// The entry of the log.
    pub seq: Seq,
    /// Number of attempts.
    pub attempts: u32,
    /// Why the last one failed.
    pub error: String,
    /// The body that was sent.
    pub body: Bytes,
    /// Its media type.
    pub media_type: String,
}

/// A stored notification that was given up. It outlives its task.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// Its identity.
    pub no: i64,
    /// The task.
    pub task: TaskNo,
    /// The random part of the task's id.
    pub tag: Tag,
    /// The id of the task as its owner knows it.
    pub task_id: TaskId,
    /// The webhook.
    pub webhook: WebhookNo,
    /// What the client registered.
    pub config: NewWebhook,
    /// The owner of the task.
    pub scope: Scope,
    /// What was to be sent. Lists leave out the body.
    pub letter: NewDeadLetter,
    /// Size of the body, in bytes.
    pub size: u64,
    /// When it was given up.
    pub died_at: Timestamp,
}

/// A webhook with a notification to deliver, as operators see it.
#[derive(Clone, Debug)]
pub struct ListedDelivery {
    /// The webhook.
    pub webhook: Webhook,
    /// The task.
    pub task: TaskNo,
    /// The random part of the task's id.
    pub tag: Tag,
    /// The owner of the task.
    pub scope: Scope,
}
