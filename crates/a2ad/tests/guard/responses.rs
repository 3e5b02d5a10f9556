//! What an allowed receiver responds leads to no other address.

use std::net::IpAddr;

use super::{
    listeners::Listeners,
    name_server::NameServer,
    namespace,
    server::{ATTEMPTS, PushServer, allowing},
    webhooks::{register, task_count},
};

#[test]
fn redirects_to_forbidden_addresses_are_not_followed() {
    namespace::run("responses::redirects_to_forbidden_addresses_are_not_followed", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let server = PushServer::start(4242, allowing(&[])).await;
        let redirects = [
            ("/redirect/301", 301),
            ("/redirect", 302),
            ("/redirect/303", 303),
            ("/redirect/307", 307),
            ("/redirect/308", 308),
        ];
        let urls = redirects.map(|(path, _)| format!("http://public.example{path}"));
        let registered = register(server.address, &urls).await;
        let letters = server.dead_letters().await;
        for (webhook, (_, status)) in registered.iter().zip(redirects.iter().cycle()) {
            let reason = format!("the receiver responded with status {status}");
            webhook.check_dead(&letters, ATTEMPTS, &[&reason]);
        }
        let seen = listeners.seen().await;
        let public: IpAddr = [93, 184, 215, 14].into();
        assert!(seen.connections.iter().all(|address| address.ip() == public), "{:?}", seen.connections);
        for (path, _) in redirects {
            assert!(seen.requests.iter().any(|head| head.starts_with(&format!("POST {path} "))), "{path}");
        }
        server.check_tasks(task_count(urls.len(), urls.len())).await;
    });
}
