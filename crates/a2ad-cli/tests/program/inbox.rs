//! `a2ad inbox`: what it accepts, refuses, prints and returns.

use std::{fs, net::SocketAddr, path::Path};

use engine::Clock;
use outbound::webhooks::{
    signature::{SigningKey, seconds},
    token_signer::PushSigner,
};
use protocol::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use testkit::http1;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout},
};

use super::common::{ANY_PORT, a2ad, run, serve, stop, within};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TASK: &str = r#"{"task":{"id":"task-1","contextId":"c","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"two\nlines"}]}}}}"#;

fn now() -> Timestamp {
    Clock::system().now()
}

fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_millis(now().as_millis() - seconds * 1_000)
}

struct Inbox {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
    /// The first message on stderr.
    shown: String,
}

impl Inbox {
    async fn start(arguments: &[&str]) -> Self {
        let arguments = [&["inbox", "--listen", ANY_PORT], arguments].concat();
        let mut child = a2ad(Path::new("."), &arguments).env("INBOX_SECRET", SECRET).spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap()).lines();
        let shown = within(messages.next_line()).await.unwrap().unwrap();
        let address = shown.split_once("http://").unwrap().1.split_once('/').unwrap().0.parse().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, address, shown }
    }

    /// Posts a delivery; returns the status and the body of the response.
    async fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let response = http1::request(self.address, "POST", "/hook?of=me", headers, body.as_bytes()).await;
        let response = response.unwrap();
        (response.status, response.text())
    }

    /// Posts a delivery with a signature.
    async fn deliver(&self, id: &str, at: Timestamp, body: &str) -> u16 {
        let signature = SigningKey::from_token(SECRET).unwrap().sign(id, at, body.as_bytes());
        let timestamp = seconds(at).to_string();
        let headers =
            [("webhook-id", id), ("webhook-timestamp", &timestamp), ("webhook-signature", &signature)];
        self.post(&headers, body).await.0
    }

    async fn line(&mut self) -> String {
        within(self.lines.next_line()).await.unwrap().unwrap()
    }

    /// The next line without its time.
    async fn entry(&mut self) -> String {
        let line = self.line().await;
        let (time, rest) = line.split_once("  ").unwrap();
        assert!(Timestamp::parse(time).is_some(), "{line}");
        rest.to_owned()
    }

    async fn exit_code(mut self) -> Option<i32> {
        within(self.child.wait()).await.unwrap().code()
    }
}

#[tokio::test]
async fn signed_deliveries_are_verified_and_duplicates_are_found() {
    for arguments in [["--secret", SECRET], ["--secret-env", "INBOX_SECRET"]] {
        let mut inbox = Inbox::start(&[&arguments[..], &["--count", "3"]].concat()).await;
        assert!(inbox.shown.ends_with("are printed here; verified: signature"), "{}", inbox.shown);
        assert_eq!(inbox.deliver("id-1", now(), TASK).await, 204);
        assert_eq!(inbox.entry().await, "id-1  task-1  completed  verified (signature)  two lines");
        assert_eq!(inbox.deliver("id-1", ago(60), TASK).await, 204);
        assert_eq!(
            inbox.entry().await,
            "id-1  task-1  completed  verified (signature)  duplicate  two lines"
        );
        let old = r#"{"kind":"task","id":"task-2","contextId":"c","status":{"state":"working"}}"#;
        assert_eq!(inbox.deliver("id-2", now(), old).await, 204);
        assert_eq!(inbox.entry().await, "id-2  task-2  working  verified (signature)");
        assert_eq!(inbox.exit_code().await, Some(0));
    }
}

#[tokio::test]
async fn wrong_signatures_and_times_are_refused() {
    let mut inbox = Inbox::start(&["--secret", SECRET, "--count", "6"]).await;
    let timestamp = seconds(now()).to_string();
    let other = SigningKey::random().sign("id-1", now(), TASK.as_bytes());
    let signed = [("webhook-id", "id-1"), ("webhook-timestamp", &*timestamp), ("webhook-signature", &*other)];
    let (status, text) = inbox.post(&signed, TASK).await;
    assert_eq!((status, text.as_str()), (401, "no signature in webhook-signature matches\n"));
    let refused = "id-1  task-1  completed  refused: no signature in webhook-signature matches  two lines";
    assert_eq!(inbox.entry().await, refused);
    assert_eq!(inbox.deliver("id-1", ago(301), TASK).await, 401);
    assert!(inbox.entry().await.contains("refused: webhook-timestamp is more than 5 minutes ago"));
    assert_eq!(inbox.deliver("id-1", ago(-310), TASK).await, 401);
    assert!(inbox.entry().await.contains("refused: webhook-timestamp is more than 5 minutes in the future"));
    for missing in ["webhook-id", "webhook-signature"] {
        let given: Vec<_> = signed.into_iter().filter(|(name, _)| *name != missing).collect();
        assert_eq!(inbox.post(&given, TASK).await.0, 401);
        assert!(inbox.entry().await.contains(&format!("refused: the header {missing} is missing")));
    }
    // What was refused is not remembered as a delivery.
    assert_eq!(inbox.deliver("id-1", now(), TASK).await, 204);
    assert_eq!(inbox.entry().await, "id-1  task-1  completed  verified (signature)  two lines");
    assert_eq!(inbox.exit_code().await, Some(5));
}

#[tokio::test]
async fn bodies_that_are_no_notification_are_refused() {
    let mut inbox = Inbox::start(&["--count", "3"]).await;
    assert!(
        inbox.shown.ends_with("they are not verified: give --secret, --token or --jwks"),
        "{}",
        inbox.shown
    );
    let (status, text) = inbox.post(&[], "garbage").await;
    assert_eq!((status, text.as_str()), (400, "the body is not JSON: line 1, column 1\n"));
    assert_eq!(inbox.entry().await, "-  -  -  refused: the body is not JSON: line 1, column 1");
    let (status, text) = inbox.post(&[], r#"{"task":{"id":"t"}}"#).await;
    assert_eq!(status, 400);
    assert!(text.contains("task.status"), "{text}");
    inbox.line().await;
    let longer = "x".repeat((16 << 20) + 1);
    let mut connection = http1::Connection::open(inbox.address).await.unwrap();
    let head = format!("POST / HTTP/1.1\r\nHost: inbox\r\nContent-Length: {}\r\n\r\n", longer.len());
    let sent = connection
        .exchange_with(async |writer| {
            use tokio::io::AsyncWriteExt as _;
            writer.write_all(head.as_bytes()).await?;
            writer.write_all(longer.as_bytes()).await
        })
        .await;
    assert_eq!(sent.unwrap().status, 413);
    assert_eq!(inbox.post(&[], TASK).await.0, 204);
    assert_eq!(inbox.entry().await, "-  task-1  completed  not verified  two lines");
    assert_eq!(inbox.exit_code().await, Some(8));
}

#[tokio::test]
async fn challenge_is_answered_with_its_token() {
    let inbox = Inbox::start(&["--secret", SECRET]).await;
    let get = async |path: &str| http1::request(inbox.address, "GET", path, &[], &[]).await.unwrap();
    let answer = get("/hook?of=me&validationToken=a%20b%3Cc%3E").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "a b<c>"));
    assert_eq!(answer.headers.get("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(get(&format!("/?validationToken={}", "x".repeat(1_025))).await.status, 400);
    assert!(get("/").await.text().starts_with("a2ad inbox"));
    let put = http1::request(inbox.address, "PUT", "/", &[], TASK.as_bytes()).await.unwrap();
    assert_eq!((put.status, put.headers.get("allow")), (405, Some("GET, HEAD, POST")));
}

#[tokio::test]
async fn token_of_the_webhook_is_required_and_verifies_signatures() {
    let token = "a token of the client, long enough";
    let mut inbox = Inbox::start(&["--token", token, "--count", "4"]).await;
    let name = "X-A2A-Notification-Token";
    assert_eq!(inbox.post(&[], TASK).await.0, 401);
    assert!(inbox.entry().await.contains("refused: the header X-A2A-Notification-Token is missing"));
    assert_eq!(inbox.post(&[(name, "another")], TASK).await.0, 401);
    assert!(inbox.entry().await.contains("has another token"));
    assert_eq!(inbox.post(&[(name, token)], TASK).await.0, 204);
    assert_eq!(inbox.entry().await, "-  task-1  completed  verified (token)  two lines");
    let (at, key) = (now(), SigningKey::from_token(token).unwrap());
    let (timestamp, signature) = (seconds(at).to_string(), key.sign("id", at, TASK.as_bytes()));
    let headers = [
        ("webhook-id", "id"),
        ("webhook-timestamp", &*timestamp),
        ("webhook-signature", &*signature),
        (name, token),
    ];
    assert_eq!(inbox.post(&headers, TASK).await.0, 204);
    assert_eq!(inbox.entry().await, "id  task-1  completed  verified (signature, token)  two lines");
    assert_eq!(inbox.exit_code().await, Some(5));
}

#[tokio::test]
async fn tokens_of_a_server_are_verified_with_its_published_keys() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("a2ad.db.keys");
    let document = PushSigner::generate_pem();
    fs::create_dir(&keys).unwrap();
    fs::write(keys.join("push"), document.expose()).unwrap();
    let server = serve(folder.path()).await;
    let url = format!("{}/.well-known/jwks.json", server.url());
    let mut inbox = Inbox::start(&["--jwks", &url, "--count", "6"]).await;
    let signer = PushSigner::from_pem(document.expose()).unwrap();
    let good = signer.sign(TASK.as_bytes(), now());
    let stranger = PushSigner::from_pkcs8(&PushSigner::generate()).unwrap().sign(TASK.as_bytes(), now());
    let (signed, _) = good.rsplit_once('.').unwrap();
    let forged = format!("{signed}.{}", stranger.rsplit_once('.').unwrap().1);
    for (token, body, expected) in [
        (good.as_str(), TASK, "verified (jwt)"),
        (
            &good,
            &TASK.replace("two", "too"),
            "refused: request_body_sha256 of the token is not that of the body",
        ),
        (
            &signer.sign(TASK.as_bytes(), ago(301)),
            TASK,
            "refused: iat of the token is more than 5 minutes away",
        ),
        (&stranger, TASK, "refused: the key of the token is not one of the server's"),
        (&forged, TASK, "refused: the signature of the token is not valid"),
        ("e30.e30.e30", TASK, "refused: the token is not a JWT with RS256"),
    ] {
        let status = inbox.post(&[("authorization", &format!("Bearer {token}"))], body).await.0;
        assert_eq!(status, if expected.starts_with("verified") { 204 } else { 401 }, "{expected}");
        let entry = inbox.entry().await;
        assert!(entry.contains(expected), "{expected}: {entry}");
    }
    assert_eq!(inbox.exit_code().await, Some(5));
    // Without the server, the sender is asked to try again.
    stop(server).await;
    let mut inbox = Inbox::start(&["--jwks", &url, "--count", "1"]).await;
    assert_eq!(inbox.post(&[("authorization", &format!("Bearer {good}"))], TASK).await.0, 503);
    assert!(inbox.entry().await.contains("cannot be loaded: the server cannot be reached"));
    assert_eq!(inbox.exit_code().await, Some(1));
}

#[tokio::test]
async fn json_has_the_whole_delivery_and_the_status_can_be_chosen() {
    let mut inbox = Inbox::start(&["--secret", SECRET, "--status", "500", "--count", "2", "--json"]).await;
    assert!(inbox.shown.starts_with(r#"{"notice":"a2ad: webhooks to http://"#), "{}", inbox.shown);
    assert_eq!(inbox.deliver("id-1", now(), &format!("{TASK}\n").replace(':', ":\n ")).await, 500);
    let line: serde_json::Value = serde_json::from_str(&inbox.line().await).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&format!(
        r#"{{"time":{},"webhookId":"id-1","task":"task-1","state":"completed","event":"task","version":"1.0",
            "text":"two\nlines","verified":true,"checks":["signature"],"duplicate":false,"status":500,"body":{TASK}}}"#,
        line["time"]
    ))
    .unwrap();
    assert_eq!(line, expected);
    assert_eq!(inbox.post(&[("webhook-id", "id-2")], "garbage").await.0, 401);
    let line: serde_json::Value = serde_json::from_str(&inbox.line().await).unwrap();
    assert_eq!((line["verified"].as_bool(), line["status"].as_u64()), (Some(false), Some(401)));
    assert_eq!(line["bodyText"], "garbage");
    assert_eq!(line["problem"], "the header webhook-timestamp is missing");
    assert_eq!(inbox.exit_code().await, Some(5));
}

#[tokio::test]
async fn invalid_arguments_are_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (arguments, code, expected) in [
        (&["--secret", "short"][..], 2, "--secret: expected whsec_"),
        (&["--secret-env", "NOT_SET_ANYWHERE"], 2, "NOT_SET_ANYWHERE is not set"),
        (&["--token", ""], 2, "--token: expected the token"),
        (&["--jwks", "ftp://keys"], 2, "--jwks: expected an http or https URL"),
        (&["--status", "99"], 2, "--status"),
        (&["--count", "0"], 2, "--count"),
        (&["--listen", &address], 1, "choose another address with --listen"),
    ] {
        let ended = run(Path::new("."), &[&["inbox"], arguments].concat()).await;
        ended.ends(code, &[expected]);
        assert!(!ended.err.contains("short"), "{ended:?}");
    }
}

#[tokio::test]
async fn interrupt_ends_it() {
    let inbox = Inbox::start(&[]).await;
    let id = Pid::from_raw(inbox.child.id().unwrap().try_into().unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    assert_eq!(inbox.exit_code().await, Some(130));
}
