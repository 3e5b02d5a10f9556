//! Hosts that are addresses, in every spelling, against listeners on all addresses.

use std::net::IpAddr;

use a2ad_outbound::dial::{
    DialPolicy, Dialer,
    UrlSource::{Operator, Peer},
    address::is_public,
};
use url::Url;

use super::{
    listeners::{Listeners, get, kind},
    name_server::NameServer,
    namespace, spellings,
};

/// Addresses to which the system opens no connection: multicast, broadcast, link-local without an interface.
const NOT_CONNECTABLE: usize = 12;

#[test]
fn no_spelling_connects_to_a_forbidden_address() {
    namespace::run("addresses::no_spelling_connects_to_a_forbidden_address", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let dialer = dialer(&[]);
        let hosts: Vec<String> =
            spellings::not_public().into_iter().chain(spellings::local().map(str::to_owned)).collect();
        for host in &hosts {
            for text in
                [format!("http://{host}/"), format!("https://{host}/"), format!("http://{host}:9000/")]
            {
                assert!(dialer.check_url(&text).is_err(), "{text} can be registered");
                // As if it had been registered: in the form in which it would be stored.
                let error = get(&dialer, Url::parse(&text).unwrap().as_str(), Peer).await.unwrap_err();
                assert_eq!(kind(&error), "forbidden", "{text}");
            }
        }
        assert_eq!(listeners.addresses().await, [] as [IpAddr; 0]);

        // Without the guard nearly all of them have a listener.
        for host in spellings::not_public() {
            let url = Url::parse(&format!("http://{host}/")).unwrap();
            let _ = get(&dialer, url.as_str(), Operator).await;
        }
        let reached = listeners.addresses().await;
        let mut addresses: Vec<IpAddr> = spellings::not_public().iter().map(|host| address(host)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.retain(|address| !reached.contains(&address.to_canonical()));
        assert!(addresses.len() <= NOT_CONNECTABLE, "not reached: {addresses:?}");
        assert!(reached.iter().all(|address| !is_public(*address)), "{reached:?}");
    });
}

#[test]
fn public_addresses_are_connected_to() {
    namespace::run("addresses::public_addresses_are_connected_to", async || {
        let listeners = Listeners::start().await;
        let is_address = |host: &&str| Url::parse(&format!("http://{host}/")).unwrap().domain().is_none();
        let hosts: Vec<&str> = spellings::public().filter(is_address).collect();
        let dialer = dialer(&[]);
        for host in &hosts {
            get(&dialer, &format!("http://{host}/"), Peer)
                .await
                .unwrap_or_else(|error| panic!("{host}: {error:?}"));
        }
        let reached = listeners.addresses().await;
        let expected: Vec<IpAddr> = hosts.iter().map(|host| address(host).to_canonical()).collect();
        let missed: Vec<&IpAddr> = expected.iter().filter(|address| !reached.contains(address)).collect();
        assert!(
            missed.is_empty() && reached.iter().all(|address| is_public(*address)),
            "{missed:?} {reached:?}"
        );
    });
}

#[test]
fn allowed_network_and_nothing_else_is_connected_to() {
    namespace::run("addresses::allowed_network_and_nothing_else_is_connected_to", async || {
        let listeners = Listeners::start().await;
        let dialer = dialer(&["10.1.0.0/16"]);
        for url in ["http://10.1.2.3:9000/", "http://167838211/", "http://[::ffff:10.1.2.3]:22/"] {
            get(&dialer, url, Peer).await.unwrap();
        }
        let forbidden = [
            "http://10.2.0.1/",
            "http://8.8.8.8:9000/",
            "http://[64:ff9b::10.1.2.3]/",
            "http://[2002:a01:203::]/",
        ];
        for url in forbidden {
            assert_eq!(kind(&get(&dialer, url, Peer).await.unwrap_err()), "forbidden", "{url}");
        }
        let allowed: IpAddr = [10, 1, 2, 3].into();
        assert_eq!(listeners.addresses().await, [allowed; 3]);
    });
}

/// A server that listens on all addresses is reached by each of them.
#[test]
fn own_port_is_forbidden_on_every_address_of_this_machine() {
    namespace::run("addresses::own_port_is_forbidden_on_every_address_of_this_machine", async || {
        let listeners = Listeners::start().await;
        let everything: Vec<_> = ["0.0.0.0/0", "::/0"].map(|net| net.parse().unwrap()).into();
        for own in ["0.0.0.0:9000", "[::]:9000"] {
            let own_addresses = vec![own.parse().unwrap()];
            let policy = DialPolicy { allow: everything.clone(), allow_http: true, own_addresses };
            let dialer = Dialer::builder().policy(policy).build();
            for host in ["127.0.0.1", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "10.1.2.3", "0.0.0.0"] {
                let url = format!("http://{host}:9000/");
                assert_eq!(kind(&get(&dialer, &url, Peer).await.unwrap_err()), "forbidden", "{url}");
            }
        }
        assert_eq!(listeners.addresses().await, [] as [IpAddr; 0]);
    });
}

fn dialer(allow: &[&str]) -> Dialer {
    let allow = allow.iter().map(|net| net.parse().unwrap()).collect();
    Dialer::builder().policy(DialPolicy { allow, allow_http: true, own_addresses: Vec::new() }).build()
}

/// The address that a host stands for.
fn address(host: &str) -> IpAddr {
    let url = Url::parse(&format!("http://{host}/")).unwrap();
    url.host_str().unwrap().trim_matches(['[', ']']).parse().unwrap()
}
