//! Receives notifications in place of the network.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use engine::push::{AddressGate, PushRequest, PushSender, SendResult};
use futures_util::future::{self, BoxFuture, FutureExt as _};
use protocol::{PushConfig, Violation, model::Secret};

use super::principals::Principal;

/// Accepts every notification, and checks that none has the text of another caller than the one that registered the
/// webhook.
#[derive(Clone, Default)]
pub(super) struct Receiver(Arc<Mutex<Received>>);

#[derive(Default)]
struct Received {
    count: usize,
    leaks: Vec<String>,
}

impl Receiver {
    /// How many notifications have arrived, and those of them that went to the wrong webhook.
    pub(super) fn received(&self) -> (usize, Vec<String>) {
        let received = self.0.lock().unwrap();
        (received.count, received.leaks.clone())
    }
}

impl PushSender for Receiver {
    fn check(&self, _: &PushConfig) -> Result<(), Violation> {
        Ok(())
    }

    // The server makes no keys: each one would make a response different.
    fn is_signing_key(&self, _: &Secret) -> bool {
        true
    }

    fn send(&self, request: PushRequest) -> BoxFuture<'static, SendResult> {
        let body = String::from_utf8_lossy(&request.body);
        let foreign = |principal: &Principal| {
            body.contains(principal.marker()) && !request.url.ends_with(principal.marker())
        };
        let mut received = self.0.lock().unwrap();
        received.count += 1;
        if Principal::ALL.iter().any(foreign) {
            received.leaks.push(format!("{} is notified of {body}", request.url));
        }
        future::ready(SendResult::Accepted).boxed()
    }

    fn challenge(&self, _: String, _: Duration, _: AddressGate) -> BoxFuture<'static, SendResult> {
        future::ready(SendResult::Accepted).boxed()
    }
}
