//! Addresses that a server of the library refuses.

use a2ad::{
    Card, Server,
    agents::Echo,
    server::{AuthMethod, Listen, TlsFiles},
};

/// Why a server on these addresses does not start.
async fn refusal(card: Card, addresses: Vec<Listen>) -> String {
    Server::builder().agent(card, Echo).serve_on(addresses).await.unwrap_err().to_string()
}

#[tokio::test]
async fn addresses_that_cannot_be_served_are_refused_with_the_reason() {
    let echo = || Card::new("echo");
    assert!(refusal(echo(), Vec::new()).await.contains("no address for callers"));
    let only_operators = vec![Listen::new("127.0.0.1:0").for_operators()];
    assert!(refusal(echo(), only_operators).await.contains("no address for callers"));
    let exposed = vec![Listen::new("127.0.0.1:0"), Listen::new("0.0.0.0:0").for_operators()];
    let text = refusal(echo(), exposed).await;
    assert!(text.contains("listening on 0.0.0.0:0 for operators would send the admin token"), "{text}");
    let without_files = vec![Listen::new("127.0.0.1:0").tls(TlsFiles::new("absent.pem", "absent.key"))];
    let text = refusal(echo(), without_files).await;
    assert!(text.contains("TLS: the file absent.pem cannot be read"), "{text}");
    let certificates = vec![Listen::new("127.0.0.1:0")];
    let text = refusal(echo().auth([AuthMethod::Mtls]), certificates).await;
    assert!(text.contains("no address of Builder::serve_on verifies them"), "{text}");
}
