//! Push notifications: webhooks of tasks, and their reliable delivery.
//!
//! The outbox is a cursor over the log of each task, kept with the webhook ([`crate::store::Webhook`]): the commit that
//! appends an event makes the task's webhooks due, `worker.rs` delivers what is due, and each result is committed before
//! the next attempt. So a notification is delivered at least once, in the order of the log for each webhook, or becomes
//! a dead letter. Nothing here delays a task or a stream. The network is behind [`PushSender`].

mod addresses;
mod deliveries;
mod delivery;
mod events;
mod holds;
mod hosts;
mod places;
mod policy;
mod records;
mod sender;
mod worker;

use std::sync::Arc;

use crate::seal::Sealer;

pub use self::{
    addresses::AddressGate,
    deliveries::{Deliveries, DeliveryId, ListedDelivery, ListedState},
    events::PushEvents,
    holds::IsRevokedPrincipal,
    policy::PushPolicy,
    records::Resent,
    sender::{PushRequest, PushSender, SendResult},
};
pub(crate) use self::{
    delivery::Deliverer,
    holds::Holds,
    records::{Records, host_key, masked, random_key},
    worker::Worker,
};

/// What an engine needs to deliver notifications.
pub struct PushSetup {
    /// The network.
    pub sender: Arc<dyn PushSender>,
    /// Seals URLs and secrets in the store.
    pub sealer: Arc<Sealer>,
    /// When deliveries are attempted.
    pub policy: PushPolicy,
}

/// Maximum number of webhooks of a task.
pub const MAX_WEBHOOKS: usize = 10;
