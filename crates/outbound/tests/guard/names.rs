//! Hosts that are names: every answer counts, and each request asks again.

use std::{net::IpAddr, time::Instant};

use a2ad_outbound::dial::{DialPolicy, Dialer, UrlSource::Peer, address::is_public};
use tokio::time::Duration;

use super::{
    listeners::{Listeners, get, kind},
    name_server::{ALLOWED_NAMES, FORBIDDEN_NAMES, NameServer},
    namespace,
};

/// The limit for the resolution of a name, with some time for a busy machine.
const RESOLVED: Duration = Duration::from_secs(8);

#[test]
fn one_forbidden_answer_is_enough() {
    namespace::run("names::one_forbidden_answer_is_enough", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let dialer = dialer(&[]);
        for name in FORBIDDEN_NAMES {
            for url in [format!("http://{name}/"), format!("https://{name}:8443/")] {
                dialer.check_url(&url).unwrap();
                assert_eq!(kind(&get(&dialer, &url, Peer).await.unwrap_err()), "forbidden", "{url}");
            }
        }
        for name in ["absent.example", "loop.example"] {
            let url = format!("http://{name}/");
            assert_eq!(kind(&get(&dialer, &url, Peer).await.unwrap_err()), "unreachable", "{url}");
        }
        assert_eq!(listeners.addresses().await, [] as [IpAddr; 0]);

        for name in ALLOWED_NAMES {
            let url = format!("http://{name}/");
            get(&dialer, &url, Peer).await.unwrap_or_else(|error| panic!("{url}: {error:?}"));
        }
        let reached = listeners.addresses().await;
        assert!(reached.len() == ALLOWED_NAMES.len() && reached.into_iter().all(is_public));
    });
}

#[test]
fn name_that_flips_is_checked_for_each_request() {
    namespace::run("names::name_that_flips_is_checked_for_each_request", async || {
        let names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let dialer = dialer(&[]);
        let mut outcomes = Vec::new();
        for _ in 0..20 {
            outcomes
                .push(get(&dialer, "http://flip.example/", Peer).await.map_err(|error| kind(&error)).is_ok());
        }
        assert_eq!(outcomes, [true, false].repeat(10));
        // Asked once for each request, so what was checked is what is used.
        assert_eq!(names.queries("flip.example"), 20);
        let public: IpAddr = [93, 184, 215, 14].into();
        assert_eq!(listeners.addresses().await, [public], "the allowed requests share a connection");
    });
}

#[test]
fn request_goes_to_the_addresses_that_its_name_has_now() {
    namespace::run("names::request_goes_to_the_addresses_that_its_name_has_now", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let dialer = dialer(&[]);
        for _ in 0..6 {
            get(&dialer, "http://moving.example/", Peer).await.unwrap();
        }
        // One connection to each, used in turn.
        let both = [[93, 184, 215, 14], [93, 184, 215, 15]].map(IpAddr::from);
        assert_eq!(listeners.addresses().await, both);
        assert_eq!(listeners.seen().await.requests.len(), 6);
    });
}

#[test]
fn names_in_allowed_networks_have_no_port_and_name_rules() {
    namespace::run("names::names_in_allowed_networks_have_no_port_and_name_rules", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let dialer = dialer(&["10.1.0.0/16"]);
        get(&dialer, "http://allowed.example:9000/", Peer).await.unwrap();
        for url in [
            "http://half-allowed.example:9000/",
            "http://public.example:9000/",
            "http://localhost:9000/",
            "http://metadata.google.internal/",
        ] {
            assert_eq!(kind(&get(&dialer, url, Peer).await.unwrap_err()), "forbidden", "{url}");
        }
        let allowed: IpAddr = [10, 1, 2, 3].into();
        assert_eq!(listeners.addresses().await, [allowed]);
    });
}

#[test]
fn name_without_an_answer_fails_in_time() {
    namespace::run("names::name_without_an_answer_fails_in_time", async || {
        let _names = NameServer::start().await;
        let started = Instant::now();
        let error = get(&dialer(&[]), "http://silent.example/", Peer).await.unwrap_err();
        assert_eq!(kind(&error), "unreachable");
        assert!(started.elapsed() < RESOLVED, "{:?}", started.elapsed());
    });
}

fn dialer(allow: &[&str]) -> Dialer {
    let allow = allow.iter().map(|net| net.parse().unwrap()).collect();
    Dialer::builder().policy(DialPolicy { allow, allow_http: true, own_addresses: Vec::new() }).build()
}
