//! Push notifications of a server: connects the engine, which decides what is delivered when, with the dialler of `outbound`.

use std::sync::Arc;

use engine::{
    Engine,
    push::{PushPolicy, PushSetup},
};
use outbound::{dial::Dialer, webhooks::sender::WebhookSender};

use crate::store_keys::StoreKeys;

/// How a server delivers push notifications.
#[derive(Clone, Debug, Default)]
pub struct PushOptions {
    /// When deliveries are attempted.
    pub policy: PushPolicy,
    /// The way to webhooks. Its policy decides which addresses clients may name; by default public ones over https.
    pub dialer: Dialer,
}

/// Lets clients register webhooks, and starts to deliver.
pub(crate) fn start(engine: &Engine, keys: &StoreKeys, options: PushOptions) {
    let sender = WebhookSender::new(options.dialer, keys.push.clone());
    let sealer = Arc::clone(&keys.sealer);
    engine.start_push(PushSetup { sender: Arc::new(sender), sealer, policy: options.policy });
}
