//! Push notifications of a server: connects the engine, which decides what is delivered when, with the dialler of `outbound`.

use std::sync::Arc;

use engine::{
    Engine,
    push::{PushPolicy, PushSetup},
};
use outbound::{dial::Dialer, webhooks::sender::WebhookSender};

use crate::{listeners::ListenAddress, store_keys::StoreKeys};

/// How a server delivers push notifications.
#[derive(Clone, Debug, Default)]
pub struct PushOptions {
    /// When deliveries are attempted.
    pub policy: PushPolicy,
    /// The way to webhooks. Its policy decides which addresses clients may name; by default public ones over https. The
    /// server adds the addresses it listens on to that policy, so each server needs a dialler of its own.
    pub dialer: Dialer,
}

/// Lets clients register webhooks, and starts to deliver. The addresses are those on which the server listens, with the
/// ports that were selected: from now on peers may not choose them.
pub(crate) fn start(engine: &Engine, keys: &StoreKeys, options: PushOptions, addresses: &[ListenAddress]) {
    let PushOptions { policy, dialer } = options;
    let own = addresses.iter().map(|listener| listener.address);
    dialer.update_policy(|dial_policy| dial_policy.own_addresses.extend(own));
    let sender = WebhookSender::new(dialer, keys.push.clone());
    let sealer = Arc::clone(&keys.sealer);
    engine.start_push(PushSetup { sender: Arc::new(sender), sealer, policy });
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, TcpListener};

    use outbound::dial::DialPolicy;
    use testkit::rpc::{Caller, Failure, message};

    use super::*;
    use crate::{Card, Server, agents::Echo, server::Listen};

    #[tokio::test]
    async fn server_of_the_library_refuses_webhooks_to_itself() {
        // Two ports that are free.
        let free = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let [first, second] = free.map(|listener| listener.local_addr().unwrap());
        let allow = vec!["127.0.0.0/8".parse().unwrap()];
        let policy = DialPolicy { allow, allow_http: true, own_addresses: Vec::new() };
        let dialer = Dialer::builder().policy(policy).build();
        let server = Server::builder()
            .agent(Card::new("echo").anonymous(true).push_notifications(true), Echo)
            .push(PushOptions { dialer, ..PushOptions::default() })
            .serve_on([Listen::new(first.to_string()), Listen::new(format!("0.0.0.0:{}", second.port()))]);
        let calls = async {
            assert!(refusal(first, first).await.contains("its address is that of this server"));
            let local = SocketAddr::new(Ipv4Addr::new(127, 1, 2, 3).into(), second.port());
            assert!(refusal(first, local).await.contains("its address is that of this server"));
            let other = SocketAddr::new(Ipv4Addr::new(127, 1, 2, 3).into(), first.port());
            assert_eq!(refusal(first, other).await, "");
        };
        tokio::select! {
            ended = server => panic!("{:?}", ended.err()),
            () = calls => {}
        }
    }

    /// Why a server refuses a webhook to an address; empty if it does not. Waits until it listens.
    async fn refusal(server: SocketAddr, webhook: SocketAddr) -> String {
        let mut params = message("m", "hello", false);
        params["configuration"]["taskPushNotificationConfig"]["url"] = format!("http://{webhook}/").into();
        loop {
            match Caller::new(server).call("echo", "SendMessage", params.clone()).await {
                Ok(_) => return String::new(),
                Err(Failure::Error { message, .. }) => return message,
                Err(Failure::Cut(_)) => tokio::task::yield_now().await,
                Err(Failure::Unusable(text)) => panic!("{text}"),
            }
        }
    }
}
