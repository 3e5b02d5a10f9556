//! URLs whose host is an address: refused when they are registered.

use std::net::{IpAddr, SocketAddr};

use a2ad::testing::TestServer;
use outbound::dial::Dialer;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{
    listeners::Listeners,
    name_server::NameServer,
    namespace,
    server::{PushServer, allowing, builder, call_all},
    spellings,
    webhooks::{Registration, Way, register, register_by, task_count},
};

const NOT_PUBLIC: &str = "its address is not public";
const LOCAL_NAME: &str = "its host is a local name";
const PORT: &str = "its port is not allowed";

/// Addresses that a client must not choose, some of them in forms that contain another address.
const FORBIDDEN: &[&str] = &[
    "169.254.169.254",
    "127.0.0.1",
    "10.0.0.1",
    "192.168.1.1",
    "::1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "2002:7f00:1::1",
    "fd00::1",
];
/// Addresses to which the system opens no connection: multicast, broadcast, link-local without an interface.
const NOT_CONNECTABLE: usize = 12;

/// Needs no namespace.
#[tokio::test]
async fn forbidden_urls_are_refused() {
    let server = TestServer::start(builder(allowing(&[]))).await.unwrap();
    let address = server.url().strip_prefix("http://").unwrap().parse().unwrap();
    refuse_all(address, |host| [format!("https://{host}/hook")]).await;
}

#[test]
fn no_spelling_connects_to_a_forbidden_address() {
    namespace::run("addresses::no_spelling_connects_to_a_forbidden_address", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let server = PushServer::start(4242, allowing(&[])).await;
        let requests = refuse_all(server.address, |host| {
            [
                format!("http://{host}/hook"),
                format!("https://{host}:8443/?a=b"),
                format!("http://{host}:9000/"),
            ]
        })
        .await;
        let controls = ["http://93.184.215.14/control", "http://public.example/control"].map(str::to_owned);
        let registered = register(server.address, &controls).await;
        registered.iter().for_each(Registration::check_accepted);
        assert_eq!(server.dead_letters().await.len(), 0);
        let tasks = task_count(requests / 2, 0) + task_count(controls.len(), controls.len());
        server.check_tasks(tasks).await;

        let seen = listeners.seen().await;
        let public: IpAddr = [93, 184, 215, 14].into();
        assert!(seen.connections.iter().all(|address| address.ip() == public), "{:?}", seen.connections);
        for host in ["93.184.215.14", "public.example"] {
            let of_host = format!("\r\nhost: {host}");
            let arrived = seen.requests.iter().filter(|head| head.to_lowercase().contains(&of_host));
            // At least one for each way; a task that runs has several states.
            assert!(arrived.clone().count() >= 2, "{:?}", seen.requests);
            assert!(arrived.clone().all(|head| head.starts_with("POST /control ")), "{:?}", seen.requests);
        }

        // The listeners count what the guard does not prevent.
        for address in FORBIDDEN {
            let address: IpAddr = address.parse().unwrap();
            TcpStream::connect((address, 80)).await.unwrap();
            assert!(listeners.addresses().await.contains(&address.to_canonical()), "{address}");
        }
    });
}

/// The same spellings do lead to the listeners if the operator allows all addresses.
#[test]
fn spellings_are_delivered_to_if_everything_is_allowed() {
    namespace::run("addresses::spellings_are_delivered_to_if_everything_is_allowed", async || {
        let listeners = Listeners::start().await;
        let everything = allowing(&["0.0.0.0/0", "::/0"]);
        let server = PushServer::start(4242, everything.clone()).await;
        let urls: Vec<String> =
            spellings::not_public().into_iter().map(|host| format!("http://{host}/hook")).collect();
        let dialer = Dialer::builder().policy(everything).build();
        let mut wanted: Vec<IpAddr> = Vec::new();
        for registration in register_by(Way::Operation, server.address, &urls).await {
            match dialer.check_url(&registration.url) {
                Ok(url) => {
                    registration.check_accepted();
                    wanted.push(url.host_str().unwrap().trim_matches(['[', ']']).parse().unwrap());
                }
                // The unspecified address, which nobody can allow.
                Err(_) => registration.check_refused(NOT_PUBLIC),
            }
        }
        server.dead_letters().await;
        let reached = listeners.addresses().await;
        assert!(wanted.len() >= 400, "{}", wanted.len());
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|address| !reached.contains(&address.to_canonical()));
        assert!(wanted.len() <= NOT_CONNECTABLE, "not reached: {wanted:?}");
    });
}

/// Registers URLs with every host that is forbidden, all of which must be refused and leave nothing behind. Returns the
/// number of requests.
async fn refuse_all<const N: usize>(address: SocketAddr, urls: impl Fn(&str) -> [String; N]) -> usize {
    let not_public = spellings::not_public();
    assert!(not_public.len() >= 400, "{}", not_public.len());
    let hosts = not_public.iter().map(|host| (host.as_str(), NOT_PUBLIC));
    let cases: Vec<(String, &str)> = hosts
        .chain(spellings::local().map(|host| (host, LOCAL_NAME)))
        .flat_map(|(host, reason)| urls(host).map(|url| (url, reason)))
        .collect();
    let urls: Vec<String> = cases.iter().map(|(url, _)| url.clone()).collect();
    let registrations = register(address, &urls).await;
    for (registration, (url, reason)) in registrations.iter().zip(cases.iter().cycle()) {
        let has_port = url.ends_with(":9000/") && *reason == NOT_PUBLIC;
        registration.check_refused(if has_port { PORT } else { reason });
    }
    check_no_webhooks(address).await;
    registrations.len()
}

async fn check_no_webhooks(address: SocketAddr) {
    let mut caller = testkit::rpc::Caller::new(address);
    let mut tasks = Vec::new();
    caller.list("echo", json!({}), |task| tasks.push(task)).await.unwrap();
    let call = |task: &Value| ("ListTaskPushNotificationConfigs", json!({"taskId": task["id"]}));
    let calls: Vec<_> = tasks.iter().map(call).collect();
    for response in call_all(address, &calls).await {
        let configs = response["result"].get("configs").and_then(Value::as_array);
        assert!(response["error"].is_null() && configs.is_none_or(Vec::is_empty), "{response}");
    }
}
