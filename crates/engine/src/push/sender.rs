//! What the engine needs of the network to deliver notifications. `outbound` implements it.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use protocol::{
    Dialect, PushConfig, Timestamp, Violation,
    model::{PushAuth, Secret},
};

use super::AddressGate;

/// Sends notifications to webhooks.
pub trait PushSender: Send + Sync + 'static {
    /// Checks a webhook when it is registered: the syntax of its URL, its host if that is an address, and whether headers
    /// can have its token and credentials.
    ///
    /// # Errors
    ///
    /// The field that prevents notifications, for the client.
    fn check(&self, config: &PushConfig) -> Result<(), Violation>;

    /// Whether a client's token can be the key that signs its notifications.
    fn is_signing_key(&self, token: &Secret) -> bool;

    /// Sends one notification and waits for the response, up to the timeout of the request.
    fn send(&self, request: PushRequest) -> BoxFuture<'static, SendResult>;

    /// Asks the receiver to confirm its URL: it has to return a random token.
    fn challenge(&self, url: String, timeout: Duration, gate: AddressGate) -> BoxFuture<'static, SendResult>;
}

/// A notification to send.
#[derive(Clone, Debug)]
pub struct PushRequest {
    /// The webhook.
    pub url: String,
    /// The version in which it was registered.
    pub dialect: Dialect,
    /// The same for every attempt.
    pub id: String,
    /// Current time.
    pub now: Timestamp,
    /// The same bytes for every attempt.
    pub body: Bytes,
    /// Media type of the body.
    pub media_type: String,
    /// The client's token, sent as it is.
    pub token: Option<Secret>,
    /// How the server authenticates.
    pub authentication: Option<PushAuth>,
    /// The text of the key that signs the notification.
    pub signing_key: Secret,
    /// How long the receiver may take.
    pub timeout: Duration,
    /// Asked when the addresses of the host are known, before anything is sent.
    pub gate: AddressGate,
}

/// How sending ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendResult {
    /// A status of 2xx.
    Accepted,
    /// Any other status.
    Rejected {
        /// The status.
        status: u16,
        /// The wait that the receiver asks for.
        retry_after: Option<Duration>,
    },
    /// There was no response. The text names no address.
    Failed(String),
    /// Nothing was sent, for a reason that has nothing to do with the receiver.
    NotSent(String),
    /// As many requests as may go to this address are in progress; nothing was sent.
    NoPlace,
    /// The address is not allowed; nothing was sent.
    Forbidden(String),
}
