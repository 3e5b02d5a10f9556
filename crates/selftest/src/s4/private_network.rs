//! The guard of outgoing requests: clients choose the URLs of webhooks, and must not reach the private network with them.

use crate::{
    CheckResult,
    fixture::Fixture,
    json::quote,
    mismatch,
    test_client::{TestClient, text, unique_id},
    webhook_receiver::{REDIRECT, REDIRECTED, WebhookReceiver},
};

/// Addresses that a server must not call for a client, in several spellings.
const PRIVATE: [&str; 14] = [
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0.0.0.0/",
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://192.168.0.1/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[::1]/",
    "https://[fd00::1]/",
    "https://[fe80::1]/",
    "https://[::ffff:127.0.0.1]/",
];

/// Addresses are refused when a webhook is registered, names when they resolve to such an address, and redirects are not
/// followed.
pub(super) async fn never_fetched(at: &Fixture) -> CheckResult {
    let guarded = at.guarded_server().await?;
    let client = TestClient::new(&guarded.server, "/", "echo");
    let webhook = |url: &str| format!(r#","pushNotification":{{"url":{}}}"#, quote(url));
    for url in PRIVATE {
        let refused = client.send(&unique_id(), &text("hello"), &webhook(url)).await?;
        if refused.has_error_code(-32602).is_err() {
            return Err(mismatch(format!("error -32602 for {url}"), refused));
        }
    }
    let inside = WebhookReceiver::start().await?;
    let port = inside.host().rsplit_once(':').map_or("", |(_, port)| port);
    for url in [format!("https://localhost:{port}/"), format!("http://localhost:{port}/")] {
        // Whether the name is accepted is up to the server; it must not be called.
        client.send(&unique_id(), &text("hello"), &webhook(&url)).await?;
    }

    let client = at.notifying("echo")?;
    let receiver = WebhookReceiver::start().await?;
    client
        .send(&unique_id(), &text("hello"), &webhook(&receiver.url(REDIRECT)))
        .await?
        .has_state("completed")?;
    receiver.wait_for_state(REDIRECT, "completed").await?;
    // Time for what must not come: the second attempt at the webhook that redirects comes after the first one's result.
    let second = receiver.wait_for(REDIRECT, "a second attempt", {
        let seen = std::cell::Cell::new(0);
        move |request| {
            seen.set(seen.get() + usize::from(request.method == "POST"));
            seen.get() > 1
        }
    });
    second.await?;
    match (receiver.received(REDIRECTED).len(), inside.count()) {
        (0, 0) => Ok(()),
        (followed, called) => Err(mismatch(
            "no request to private addresses",
            format!("{followed} after a redirect and {called} by name"),
        )),
    }
}
