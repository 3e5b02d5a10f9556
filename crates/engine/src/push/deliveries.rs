//! Deliveries of push notifications as operators see them. Nothing here checks who asks, as in [`crate::OperatorTasks`].

use std::sync::Arc;

use protocol::{TaskId, Timestamp};

use super::{
    Deliverer, Resent,
    delivery::{letter_id, notification_id},
};
use crate::{
    access::scope::Scope,
    clock::Clock,
    error::{Error, Result},
    ids::Ids,
    store::{DeadLetter, ListedDelivery as Pending, Store, WebhookNo},
};

/// The deliveries of a store.
pub struct Deliveries {
    store: Arc<dyn Store>,
    /// `None` if this process sends no notifications.
    deliverer: Option<Arc<Deliverer>>,
    ids: Ids,
    clock: Clock,
}

/// What an operator's id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryId {
    /// A dead letter.
    Dead(i64),
    /// The pending delivery of a webhook.
    Pending(WebhookNo),
}

const DEAD: &str = "dead-";
const PENDING: &str = "pending-";

impl DeliveryId {
    /// The id in lists.
    pub fn text(self) -> String {
        match self {
            Self::Dead(no) => format!("{DEAD}{no}"),
            Self::Pending(webhook) => format!("{PENDING}{}", webhook.0),
        }
    }

    /// Reads an id of a list.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |prefix: &str| text.strip_prefix(prefix)?.parse::<i64>().ok();
        number(DEAD).map(Self::Dead).or_else(|| number(PENDING).map(|no| Self::Pending(WebhookNo(no))))
    }
}

/// A delivery that has not succeeded.
pub struct ListedDelivery {
    /// Names it for [`Deliveries::resend`].
    pub id: DeliveryId,
    /// The `webhook-id` of the notification; of a pending one it is that of the next event, which may be superseded.
    pub notification: String,
    /// The id of the task, of this server.
    pub task: TaskId,
    /// The id of the webhook.
    pub config: String,
    /// The owner of the task.
    pub scope: Scope,
    /// Host and port of the receiver.
    pub host: String,
    /// Attempts so far.
    pub attempts: u32,
    /// Why the last one failed.
    pub error: Option<String>,
    /// What becomes of it.
    pub state: ListedState,
}

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedState {
    /// It is attempted at this time.
    Pending(Timestamp),
    /// It was given up at this time.
    Dead(Timestamp),
}

impl Deliveries {
    pub(crate) fn new(store: Arc<dyn Store>, deliverer: Option<Arc<Deliverer>>, clock: Clock) -> Self {
        Self { ids: store.ids(), store, deliverer, clock }
    }

    /// Pending ones after `after`, oldest webhook first, at most `max`.
    pub async fn pending(&self, after: WebhookNo, max: usize) -> Result<Vec<ListedDelivery>> {
        let found = self.store.pending_deliveries(after, max).await?;
        Ok(found.into_iter().map(|pending| self.listed_pending(pending)).collect())
    }

    /// Dead letters before `before`, newest first, at most `max`.
    pub async fn dead(&self, before: i64, max: usize) -> Result<Vec<ListedDelivery>> {
        let found = self.store.dead_letters(before, max).await?;
        Ok(found.iter().map(|letter| self.listed_dead(letter)).collect())
    }

    /// Sends a dead letter once more and waits for the response; makes a pending delivery due now.
    pub async fn resend(&self, id: DeliveryId) -> Result<Resent> {
        let Some(deliverer) = &self.deliverer else {
            return Err(Error::Unavailable("this process sends no push notifications".into()));
        };
        Ok(match id {
            DeliveryId::Dead(no) => deliverer.resend(no).await?,
            DeliveryId::Pending(webhook) => {
                match self.store.retry_delivery(webhook, self.clock.now()).await? {
                    true => Resent::Scheduled,
                    false => Resent::Unknown,
                }
            }
        })
    }

    fn listed_pending(&self, pending: Pending) -> ListedDelivery {
        let Pending { webhook, task, tag, scope } = pending;
        let next = webhook.next_at.unwrap_or_else(|| Timestamp::from_millis(0));
        ListedDelivery {
            id: DeliveryId::Pending(webhook.no),
            notification: notification_id(&self.ids, task, tag, webhook.no, webhook.acked + 1),
            task: self.ids.task(task, tag),
            config: webhook.config.id.to_string(),
            host: host(&webhook.config.host),
            scope,
            attempts: webhook.attempts,
            error: webhook.error,
            state: ListedState::Pending(next),
        }
    }

    fn listed_dead(&self, dead: &DeadLetter) -> ListedDelivery {
        ListedDelivery {
            id: DeliveryId::Dead(dead.no),
            notification: letter_id(&self.ids, dead),
            task: self.ids.task(dead.task, dead.tag),
            config: dead.config.id.to_string(),
            scope: dead.scope.clone(),
            host: host(&dead.config.host),
            attempts: dead.letter.attempts,
            error: Some(dead.letter.error.clone()),
            state: ListedState::Dead(dead.died_at),
        }
    }
}

/// Host and port without the tenant.
fn host(stored: &str) -> String {
    stored.split_once('/').map_or(stored, |(_, host)| host).to_owned()
}
