//! Push notifications of the draft: webhooks, what they receive, and how they know the sender.

use aws_lc_rs::{
    digest::{SHA256, digest},
    signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::{
    CheckError, CheckResult,
    fixture::Fixture,
    http::{Response, Server},
    json::{self, ValueChecks as _, quote},
    mismatch,
    test_client::{TestClient, ends_with_final, states, text, unique_id},
    webhook_receiver::{Received, UNCONFIRMED, WebhookReceiver},
};

const SET: &str = "tasks/pushNotification/set";
const GET: &str = "tasks/pushNotification/get";
/// A token that is long enough to be the key of signatures.
const TOKEN: &str = "acceptance-notification-token";
const AUTHENTICATION: &str = r#"{"schemes":["Bearer"],"credentials":"acceptance-credentials"}"#;
/// The longest time between the signature of a token and now, in seconds.
const TOLERANCE: i64 = 60;

/// A webhook with the token and an authentication.
fn webhook(url: &str, authentication: &str) -> String {
    format!(r#"{{"url":{},"token":"{TOKEN}","authentication":{authentication}}}"#, quote(url))
}

fn set_params(task: &str, webhook: &str) -> String {
    format!(r#"{{"id":{},"pushNotificationConfig":{webhook}}}"#, quote(task))
}

/// The member of `tasks/send` with a webhook.
fn inline_webhook(webhook: &str) -> String {
    format!(r#","pushNotification":{webhook}"#)
}

async fn get_webhook(client: &TestClient, task: &str) -> Result<Response, CheckError> {
    client.call(GET, &format!(r#"{{"id":{}}}"#, quote(task))).await
}

/// A long task whose caller polls it, streams it and is notified of its end.
pub(super) async fn three_ways(at: &Fixture) -> CheckResult {
    let (client, receiver) = (at.root("slow-writer"), WebhookReceiver::start().await?);
    let task = unique_id();
    let more = inline_webhook(&webhook(&receiver.url("/long"), AUTHENTICATION)) + r#","async":true"#;
    let begun = client.send(&task, &text("sections=8 delay=150ms"), &more).await?;
    begun.is("result.id", &task)?;
    client.poll_until_state(&task, "working").await?;
    let params = format!(r#"{{"id":{}}}"#, quote(&task));
    let events = client.stream("tasks/resubscribe", &params).await?.all().await?;
    ends_with_final(&events)?;
    if states(&events).last() != Some(&"completed") {
        return Err(mismatch("a stream that ends with completed", format!("{:?}", states(&events))));
    }
    let polled = client.poll_until_state(&task, "completed").await?;
    let pushed = receiver.wait_for_state("/long", "completed").await?;
    pushed.json.is("id", &task)?;
    pushed.json.is("artifacts", polled.at("result.artifacts")?)
}

/// The response has the webhook as it was sent.
pub(super) async fn set(at: &Fixture) -> CheckResult {
    let (client, receiver) = (at.root("echo"), WebhookReceiver::start().await?);
    let (task, _) = client.send_text("hello").await?;
    let webhook = webhook(&receiver.url("/set"), AUTHENTICATION);
    let set = client.call(SET, &set_params(&task, &webhook)).await?;
    set.is("result.id", &task)?;
    set.is_json("result.pushNotificationConfig", &webhook)
}

pub(super) async fn get(at: &Fixture) -> CheckResult {
    let (client, receiver) = (at.root("echo"), WebhookReceiver::start().await?);
    let (task, _) = client.send_text("hello").await?;
    let url = receiver.url("/get");
    client.call(SET, &set_params(&task, &webhook(&url, AUTHENTICATION))).await?.at("result")?;
    let got = get_webhook(&client, &task).await?;
    got.is("result.id", &task)?;
    got.is("result.pushNotificationConfig.url", &url)?;
    got.is_json("result.pushNotificationConfig.authentication.schemes", r#"["Bearer"]"#)?;
    let body = String::from_utf8_lossy(got.body()).into_owned();
    got.ensure(!body.contains(TOKEN) && !body.contains("acceptance-credentials"), "no secrets")?;
    get_webhook(&client, &unique_id()).await?.has_error_code(-32001)?;
    Ok(())
}

pub(super) async fn inline(at: &Fixture) -> CheckResult {
    let (client, receiver) = (at.root("echo"), WebhookReceiver::start().await?);
    let (task, url) = (unique_id(), receiver.url("/inline"));
    let more = inline_webhook(&webhook(&url, AUTHENTICATION));
    client.send(&task, &text("hello"), &more).await?.has_state("completed")?;
    get_webhook(&client, &task).await?.is("result.pushNotificationConfig.url", &url)?;
    receiver.wait_for_state("/inline", "completed").await?.json.is("id", &task)
}

/// A task that asks for input: both states are notified, with token, authentication and the id of the task.
pub(super) async fn status_changes(at: &Fixture) -> CheckResult {
    let (client, receiver) = (at.root("approver"), WebhookReceiver::start().await?);
    let task = unique_id();
    let more = inline_webhook(&webhook(&receiver.url("/changes"), AUTHENTICATION));
    client.send(&task, &text("delete the old backups"), &more).await?.has_state("input-required")?;
    let asked = receiver.wait_for_state("/changes", "input-required").await?;
    client.send(&task, &text("approve"), "").await?.has_state("completed")?;
    let done = receiver.wait_for_state("/changes", "completed").await?;
    for notification in [&asked, &done] {
        notification.json.is("id", &task)?;
        notification.has_header("content-type", "application/json")?;
        notification.has_header("x-a2a-notification-token", TOKEN)?;
        notification.has_header("authorization", "Bearer acceptance-credentials")?;
    }
    let is_new =
        !asked.header("webhook-id").is_empty() && asked.header("webhook-id") != done.header("webhook-id");
    done.json.ensure(is_new, "an id of its own for each notification")
}

/// The URL is asked for a token before the first notification, one that does not return it gets none, and
/// `schemes: ["jwt"]` gets tokens that are signed with a published key.
pub(super) async fn validated_and_signed(at: &Fixture) -> CheckResult {
    let (client, receiver) = (at.root("echo"), WebhookReceiver::start().await?);
    let silent = WebhookReceiver::start().await?;
    let signed = r#"{"schemes":["jwt"]}"#;
    for url in [silent.url(UNCONFIRMED), receiver.url("/signed")] {
        let more = inline_webhook(&webhook(&url, signed));
        client.send(&unique_id(), &text("hello"), &more).await?.has_state("completed")?;
    }
    let notification = receiver.wait_for_state("/signed", "completed").await?;
    let first = receiver.received("/signed").into_iter().next().map(|request| request.method);
    if first.as_deref() != Some("GET") {
        return Err(mismatch("a GET request that validates the URL first", format!("{first:?}")));
    }
    is_signed(&notification, &client.server).await?;
    let is_challenge = |request: &Received| request.method == "GET";
    silent.wait_for(UNCONFIRMED, "a GET request that validates the URL", is_challenge).await?;
    match silent.notifications(UNCONFIRMED).len() {
        0 => Ok(()),
        count => Err(mismatch("no notification to a URL that was not confirmed", count)),
    }
}

/// Verifies the token of a notification with the published keys.
async fn is_signed(notification: &Received, server: &Server) -> CheckResult {
    let bad = || mismatch("a signed token", notification.header("authorization"));
    let token = notification.header("authorization").strip_prefix("Bearer ").ok_or_else(bad)?;
    let (content, signature) = token.rsplit_once('.').ok_or_else(bad)?;
    let (header, claims) = content.split_once('.').ok_or_else(bad)?;
    let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| bad());
    let read = |text: &str| json::parse(&String::from_utf8_lossy(&decode(text)?));
    let (header, claims) = (read(header)?, read(claims)?);
    header.is("alg", "RS256")?;
    let keys = server.get("/.well-known/jwks.json", &[]).await?;
    let same_key = |key: &&serde_json::Value| key.is("kid", header.text("kid").unwrap_or_default()).is_ok();
    let key =
        keys.list("keys")?.iter().find(same_key).ok_or_else(|| mismatch("the key of the token", &keys))?;
    let key = RsaPublicKeyComponents { n: decode(key.text("n")?)?, e: decode(key.text("e")?)? };
    key.verify(&RSA_PKCS1_2048_8192_SHA256, content.as_bytes(), &decode(signature)?).map_err(|_| bad())?;
    let digest: String =
        digest(&SHA256, &notification.body).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    claims.is("request_body_sha256", digest)?;
    let signed_at = claims.at("iat")?.as_i64().unwrap_or_default();
    claims.ensure((signed_at - now()).abs() <= TOLERANCE, "the time of the notification")
}

/// Each of two services gets the notifications of its own task; neither is the client.
pub(super) async fn third_party(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let services = [WebhookReceiver::start().await?, WebhookReceiver::start().await?];
    let tasks = [unique_id(), unique_id()];
    for (service, task) in services.iter().zip(&tasks) {
        let more = inline_webhook(&webhook(&service.url("/events"), AUTHENTICATION));
        client.send(task, &text("hello"), &more).await?.has_state("completed")?;
    }
    for (service, task) in services.iter().zip(&tasks) {
        service.wait_for_state("/events", "completed").await?;
        for notification in service.notifications("/events") {
            notification.json.is("id", task)?;
        }
    }
    Ok(())
}

/// The schema allows additional members of `AuthenticationInfo`.
pub(super) async fn extra_members(at: &Fixture) -> CheckResult {
    let (client, receiver) = (at.root("echo"), WebhookReceiver::start().await?);
    let (task, _) = client.send_text("hello").await?;
    let authentication = r#"{"schemes":["Bearer"],"audience":"hooks","limits":{"per_hour":[1,2.50]}}"#;
    let webhook = webhook(&receiver.url("/extra"), authentication);
    let set = client.call(SET, &set_params(&task, &webhook)).await?;
    set.is_json("result.pushNotificationConfig.authentication", authentication)?;
    let got = get_webhook(&client, &task).await?;
    got.is_json("result.pushNotificationConfig.authentication", authentication)
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "tokens of the server under test have its real time")]
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
