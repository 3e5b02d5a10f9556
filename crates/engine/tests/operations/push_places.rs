//! One principal with slow receivers does not delay the notifications of others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use a2ad_engine::{
    Call, Scope, ScopeParts, Sealer,
    push::{AddressGate, PushPolicy, PushRequest, PushSender, PushSetup, SendResult},
};
use futures_util::future::{BoxFuture, FutureExt as _};
use protocol::{ConfigId, Operation, PushConfig, Violation, model::Secret};
use tokio::{sync::watch, time::sleep};

use crate::common::{Setup, TestServer, done, msg, reply, task, with_timeout};

/// Places in all, of slow receivers and of one address, and webhooks of a task.
const PLACES: usize = 256;
const SLOW_PLACES: usize = 64;
const PLACES_OF_ADDRESS: usize = 16;
const WEBHOOKS: usize = 10;

/// Receivers whose names begin with `slow` take this long, the others respond at once. Those with `same` in their names
/// have one address.
#[derive(Clone)]
struct Receivers(Arc<Inner>);

struct Inner {
    time: Duration,
    /// When the first request for each host arrived.
    arrived: Mutex<HashMap<String, Instant>>,
    slow: watch::Sender<SlowRequests>,
}

/// Requests to slow receivers.
#[derive(Clone, Copy, Default)]
struct SlowRequests {
    in_flight: usize,
    most: usize,
    ended: usize,
}

impl Receivers {
    async fn slow(&self, reached: impl Fn(&SlowRequests) -> bool) -> SlowRequests {
        let mut slow = self.0.slow.subscribe();
        *with_timeout(slow.wait_for(|slow| reached(slow))).await.unwrap()
    }

    /// Waits until a host has got its first request.
    async fn arrived(&self, host: &str) -> Instant {
        with_timeout(async {
            loop {
                let arrived = self.0.arrived.lock().unwrap().get(host).copied();
                match arrived {
                    Some(arrived) => return arrived,
                    None => sleep(Duration::from_millis(1)).await,
                }
            }
        })
        .await
    }
}

impl PushSender for Receivers {
    fn check(&self, _: &PushConfig) -> Result<(), Violation> {
        Ok(())
    }

    fn is_signing_key(&self, _: &Secret) -> bool {
        true
    }

    fn send(&self, request: PushRequest) -> BoxFuture<'static, SendResult> {
        let receivers = self.clone();
        async move {
            let host = request.url.split('/').nth(2).unwrap().to_owned();
            if host.contains("same") && !request.gate.admits(&["192.0.2.1:443".parse().unwrap()]) {
                return SendResult::NoPlace;
            }
            let is_slow = host.starts_with("slow");
            receivers.0.arrived.lock().unwrap().entry(host).or_insert_with(Instant::now);
            if is_slow {
                receivers.0.slow.send_modify(|slow| {
                    slow.in_flight += 1;
                    slow.most = slow.most.max(slow.in_flight);
                });
                sleep(receivers.0.time).await;
                receivers.0.slow.send_modify(|slow| {
                    (slow.in_flight, slow.ended) = (slow.in_flight - 1, slow.ended + 1);
                });
            }
            SendResult::Accepted
        }
        .boxed()
    }

    fn challenge(&self, _: String, _: Duration, _: AddressGate) -> BoxFuture<'static, SendResult> {
        std::future::ready(SendResult::Accepted).boxed()
    }
}

/// A server with these receivers.
fn open(time: Duration) -> (TestServer, Receivers) {
    let slow = watch::Sender::default();
    let receivers = Receivers(Arc::new(Inner { time, arrived: Mutex::default(), slow }));
    let server = Setup::plain().open();
    let sealer = Arc::new(Sealer::new([7; 32]));
    let setup = PushSetup { sender: Arc::new(receivers.clone()), sealer, policy: PushPolicy::default() };
    server.engine.start_push(setup);
    (server, receivers)
}

fn scope_of(principal: &str) -> Scope {
    Scope::new(ScopeParts { principal: principal.into(), ..crate::common::scope().parts().clone() })
}

/// Finished tasks with a webhook at each host, all of which are due.
async fn notify(server: &mut TestServer, principal: &str, hosts: &[String]) {
    for hosts in hosts.chunks(WEBHOOKS) {
        let sent = server.spawn_send_as(Call::new(scope_of(principal)), msg("go"));
        server.agent.turn().await.end(done());
        let id = task(reply(with_timeout(sent).await.unwrap().unwrap())).id;
        for host in hosts {
            let config = PushConfig {
                id: Some(ConfigId::from(host.as_str())),
                task_id: Some(id.clone()),
                ..PushConfig::new(format!("https://{host}/hook"))
            };
            server.call(scope_of(principal), Operation::CreatePushConfig(config)).await.unwrap();
        }
    }
}

/// How long the notification of another principal takes.
async fn delay_of_another(server: &mut TestServer, receivers: &Receivers, host: &str) -> Duration {
    let begun = Instant::now();
    notify(server, "key:victim", &[host.to_owned()]).await;
    receivers.arrived(host).await.duration_since(begun)
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}.example")).collect()
}

#[tokio::test]
async fn slow_receivers_of_one_principal_do_not_delay_those_of_another() {
    let (mut server, receivers) = open(Duration::from_secs(8));
    notify(&mut server, "key:attacker", &names("slow", 2 * PLACES)).await;
    // Alone, it may use all places.
    receivers.slow(|slow| slow.most == PLACES).await;
    for name in names("quick", 4) {
        let delay = delay_of_another(&mut server, &receivers, &name).await;
        println!("the notification of another principal took {delay:?}");
        assert!(delay < Duration::from_secs(5), "{delay:?}");
    }
    assert_eq!(receivers.slow(|slow| slow.ended > PLACES).await.most, PLACES, "no more than alone");
}

#[tokio::test]
async fn the_backlog_of_one_principal_leaves_three_quarters_of_the_places_to_others() {
    let (mut server, receivers) = open(Duration::from_millis(1_500));
    notify(&mut server, "key:attacker", &names("slow", 6 * PLACES)).await;
    let before = receivers.0.slow.borrow().ended;
    let hosts = names("quick", 40);
    notify(&mut server, "key:victim", &hosts).await;
    for host in &hosts {
        receivers.arrived(host).await;
    }
    let delivered = receivers.0.slow.borrow().ended - before;
    assert!(delivered < 2 * PLACES, "{delivered} notifications of the other one were delivered first");
}

#[tokio::test]
async fn receivers_slower_than_two_seconds_share_the_places_of_slow_ones() {
    let (mut server, receivers) = open(Duration::from_millis(2_500));
    let hosts = names("slow", SLOW_PLACES + 20);
    notify(&mut server, "key:a", &hosts).await;
    receivers.slow(|slow| slow.ended == hosts.len()).await;
    receivers.0.slow.send_modify(|slow| slow.most = 0);
    notify(&mut server, "key:a", &hosts).await;
    let slow = receivers.slow(|slow| slow.ended == 2 * hosts.len()).await;
    assert_eq!(slow.most, SLOW_PLACES);
}

#[tokio::test]
async fn names_of_one_address_share_the_places_of_a_host() {
    let (mut server, receivers) = open(Duration::from_millis(200));
    let hosts = names("slow-same", 3 * PLACES_OF_ADDRESS);
    notify(&mut server, "key:a", &hosts).await;
    let slow = receivers.slow(|slow| slow.ended == hosts.len()).await;
    assert_eq!(slow.most, PLACES_OF_ADDRESS, "all are delivered, some at a time");
}
