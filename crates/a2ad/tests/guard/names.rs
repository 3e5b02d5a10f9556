//! URLs whose host is a name: accepted when they are registered, and checked for each notification.

use std::net::{IpAddr, SocketAddr};

use serde_json::json;

use super::{
    listeners::{Listeners, Seen},
    name_server::{ALLOWED_NAMES, FORBIDDEN_NAMES, NameServer},
    namespace,
    server::{PushServer, allowing, call_all},
    spellings,
    webhooks::{Registration, Way, check_dead, register, register_by, start_tasks, task_count},
};

const NOT_PUBLIC: &str = "the URL of the webhook is not allowed: its address is not public";
const TOO_MANY: &str = "the URL of the webhook is not allowed: its name has too many addresses";
const LOCAL_NAME: &str = "the URL of the webhook is not allowed: its host is a local name";
const PORT: &str = "the URL of the webhook is not allowed: its port is not allowed";

const PUBLIC_V6: &[&str] = &["2606:2800:21f::1", "64:ff9b::5db8:d70e"];

#[test]
fn one_forbidden_answer_is_enough() {
    namespace::run("names::one_forbidden_answer_is_enough", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let server = PushServer::start(4242, allowing(&[])).await;
        let both_forms = |name: &&str| [format!("http://{name}/hook"), format!("https://{name}:8443/hook")];
        let urls: Vec<String> = FORBIDDEN_NAMES.iter().flat_map(both_forms).collect();
        let forbidden = register(server.address, &urls).await;
        let controls: Vec<String> = ALLOWED_NAMES.iter().map(|name| format!("http://{name}/hook")).collect();
        let allowed = register(server.address, &controls).await;

        let letters = server.dead_letters().await;
        for webhook in &forbidden {
            webhook.check_dead(&letters, 1, &[NOT_PUBLIC, TOO_MANY]);
        }
        for webhook in &allowed {
            webhook.check_accepted();
            assert!(letters.iter().all(|letter| letter.config != webhook.config), "{webhook:?}");
        }
        for letter in &letters {
            let resent = server.resend(letter).await;
            let reason = resent["error"].as_str();
            assert!(
                resent["result"] == "failed"
                    && reason.is_some_and(|reason| [NOT_PUBLIC, TOO_MANY].contains(&reason)),
                "{letter:?}: {resent}"
            );
        }
        let seen = listeners.seen().await;
        check_public(&seen);
        for name in ALLOWED_NAMES {
            assert!(count(&seen, "POST /hook ", name) >= 2, "{name}: {:?}", seen.requests);
        }
        let tasks = task_count(urls.len(), urls.len()) + task_count(controls.len(), controls.len());
        server.check_tasks(tasks).await;
    });
}

/// Receivers that are registered in the draft have to confirm their URL before anything else is sent to it.
#[test]
fn receivers_at_forbidden_addresses_are_not_asked_to_confirm() {
    namespace::run("names::receivers_at_forbidden_addresses_are_not_asked_to_confirm", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let server = PushServer::start(4242, allowing(&[])).await;
        let names = [FORBIDDEN_NAMES, &["public.example"]].concat();
        let tasks = start_tasks(server.address, names.len()).await;
        let set = |(task, name): (&String, &&str)| {
            let config = json!({"url": format!("http://{name}/hook")});
            ("tasks/pushNotification/set", json!({"id": task, "pushNotificationConfig": config}))
        };
        let calls: Vec<_> = tasks.iter().zip(&names).map(set).collect();
        for response in call_all(server.address, &calls).await {
            assert!(response.get("result").is_some(), "{response}");
        }
        let letters = server.dead_letters().await;
        // A webhook has the id of its task.
        for task in &tasks[..FORBIDDEN_NAMES.len()] {
            check_dead(&letters, task, 1, &[NOT_PUBLIC, TOO_MANY]);
        }
        let seen = listeners.seen().await;
        check_public(&seen);
        assert!(count(&seen, "GET /hook?validationToken=", "public.example") > 0, "{:?}", seen.requests);
        server.check_tasks(tasks.len()).await;
    });
}

#[test]
fn name_that_flips_is_checked_for_each_notification() {
    namespace::run("names::name_that_flips_is_checked_for_each_notification", async || {
        let names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let server = PushServer::start(4242, allowing(&[])).await;
        let urls = vec!["http://flip.example/hook".to_owned(); 20];
        let registered = register(server.address, &urls).await;
        registered.iter().for_each(Registration::check_accepted);
        let letters = server.dead_letters().await;
        for letter in &letters {
            assert!(letter.attempts == 1 && letter.error == NOT_PUBLIC, "{letter:?}");
        }
        let seen = listeners.seen().await;
        check_public(&seen);
        // Every answer was used for one notification, and every second one is forbidden.
        let (queries, delivered) =
            (names.queries("flip.example"), count(&seen, "POST /hook ", "flip.example"));
        assert!(queries >= registered.len() && delivered == queries.div_ceil(2), "{queries} {delivered}");
        assert_eq!(letters.len(), queries / 2);
        server.check_tasks(task_count(urls.len(), urls.len())).await;
    });
}

/// The first attempt is answered with 503 by a public address; the name has another address when it is repeated.
#[test]
fn name_that_flips_is_checked_again_for_a_retry() {
    namespace::run("names::name_that_flips_is_checked_again_for_a_retry", async || {
        let names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let server = PushServer::start(4242, allowing(&[])).await;
        let url = ["http://rebinding.example/unavailable".to_owned()];
        // One after the other, so that each attempt has the next answer.
        for way in [Way::Operation, Way::Message] {
            let registered = register_by(way, server.address, &url).await;
            registered[0].check_dead(&server.dead_letters().await, 2, &[NOT_PUBLIC]);
        }
        let (seen, letters) = (listeners.seen().await, server.dead_letters().await);
        check_public(&seen);
        assert_eq!(count(&seen, "POST /unavailable ", "rebinding.example"), letters.len());
        assert_eq!(names.queries("rebinding.example"), 2 * letters.len());
        server.check_tasks(task_count(1, 1)).await;
    });
}

/// With a network in `outbound.allow`, ports and local names too are judged by the address of the name. Other addresses
/// are refused when they are registered, as before.
#[test]
fn only_the_allowed_network_is_delivered_to() {
    namespace::run("names::only_the_allowed_network_is_delivered_to", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let server = PushServer::start(4242, allowing(&["10.1.0.0/16"])).await;
        let forbidden = [
            "http://localhost:9000/",
            "http://a.localhost/",
            "http://metadata.google.internal/",
            "http://printer.local:22/",
            "http://private.example/",
            "http://half-allowed.example/",
            "http://half-allowed.example:9000/",
            "http://public.example:9000/",
        ]
        .map(str::to_owned);
        let allowed =
            ["http://allowed.example:9000/", "http://10.1.2.3:22/", "http://[::ffff:10.1.2.3]:6379/"]
                .map(str::to_owned);
        let rejected = register(server.address, &forbidden).await;
        let accepted = register(server.address, &allowed).await;
        accepted.iter().for_each(Registration::check_accepted);
        let letters = server.dead_letters().await;
        for webhook in &rejected {
            webhook.check_dead(&letters, 1, &[NOT_PUBLIC, LOCAL_NAME, PORT]);
        }
        let spelled: Vec<String> =
            spellings::not_public().into_iter().map(|host| format!("https://{host}/")).collect();
        for webhook in register(server.address, &spelled).await {
            webhook.check_refused("its address is not public");
        }
        let allowed_address: IpAddr = [10, 1, 2, 3].into();
        let connections = listeners.seen().await.connections;
        assert!(connections.iter().all(|address| address.ip() == allowed_address), "{connections:?}");
        for port in [9000, 22, 6379] {
            assert!(connections.iter().any(|address| address.port() == port), "{port}: {connections:?}");
        }
        let tasks = task_count(forbidden.len(), forbidden.len()) + task_count(allowed.len(), allowed.len());
        let tasks = tasks + task_count(spelled.len(), 0);
        server.check_tasks(tasks).await;
    });
}

/// Compares with the public addresses of the name server, and not with the rules under test.
fn check_public(seen: &Seen) {
    let is_public = |address: &SocketAddr| match address.ip() {
        IpAddr::V4(address) => address.octets().starts_with(&[93, 184]),
        IpAddr::V6(address) => PUBLIC_V6.contains(&address.to_string().as_str()),
    };
    assert!(seen.connections.iter().all(is_public), "{:?}", seen.connections);
}

/// The number of requests that begin like this and name this host.
fn count(seen: &Seen, beginning: &str, host: &str) -> usize {
    let line = format!("host: {host}");
    let names_host = |head: &str| head.lines().any(|each| each.eq_ignore_ascii_case(&line));
    seen.requests.iter().filter(|head| head.starts_with(beginning) && names_host(head)).count()
}
