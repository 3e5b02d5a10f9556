//! Cards that try to lead a client with a credential to another origin, or that are not cards at all (T-S3).

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use a2ad_client::{Client, ClientOptions};
use http::HeaderValue;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};

use crate::result;

const TOKEN: &str = "token-of-the-caller";
const TASK: &str = r#"{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"}}"#;

/// What has to happen with a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// No call is made.
    Refused,
    /// The call is made to the origin of the card.
    Own,
}

use Expected::{Own, Refused};

/// A server that records what it gets. It answers GET with a prepared response and POST with a task.
struct Recorder {
    address: SocketAddr,
    received: Arc<Mutex<String>>,
    _serving: JoinSet<()>,
}

impl Recorder {
    async fn start(response: impl FnOnce(SocketAddr) -> String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (response, received) = (response(address), Arc::new(Mutex::new(String::new())));
        let mut serving = JoinSet::new();
        let record = Arc::clone(&received);
        serving.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = vec![0; 64 << 10];
                let length = stream.read(&mut bytes).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&bytes[..length]).into_owned();
                let answer = match request.starts_with("POST") {
                    true => ok(&result(TASK)),
                    false => response.clone(),
                };
                record.lock().unwrap().push_str(&request);
                // The client may not wait for all of it.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { address, received, _serving: serving }
    }

    fn received(&self) -> String {
        self.received.lock().unwrap().clone()
    }
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn card(url: &str) -> String {
    let escaped = url.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
    ok(&format!(
        r#"{{"name":"a","supportedInterfaces":[{{"url":"{escaped}","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}]}}"#
    ))
}

/// The URLs of a card's only interface. `{own}` and `{other}` are host and port of the card's and another server,
/// `{port}` and `{other_port}` their ports.
const URLS: [(&str, Expected); 46] = [
    ("http://{own}/rpc", Own),
    ("/rpc", Own),
    ("rpc", Refused),
    ("?x=1", Refused),
    ("HTTP://{own}/rpc", Own),
    ("http://{own}/../../rpc", Own),
    // The authority ends before the first `/`, `?`, `#` or `\`.
    ("http://{own}#@{other}/", Own),
    ("http://{own}?@{other}/", Own),
    ("http://{own}/@{other}/", Own),
    ("http://{own}\\@{other}/", Own),
    ("http://{other}/rpc", Refused),
    ("//{other}/rpc", Refused),
    ("\\\\{other}/rpc", Refused),
    ("/\\{other}/rpc", Refused),
    ("\\/{other}/rpc", Refused),
    ("http:\\\\{other}/rpc", Refused),
    ("http:///{other}/rpc", Refused),
    ("http:/\\{other}/rpc", Refused),
    ("http://{own}@{other}/rpc", Refused),
    ("http://x:y@{other}/rpc", Refused),
    ("http://{own}%40{other}/rpc", Refused),
    ("http://127.0.0.1:{other_port}/", Refused),
    ("http://127.0.0.1:0{other_port}/", Refused),
    ("http://127.1:{other_port}/", Refused),
    ("http://2130706433:{other_port}/", Refused),
    ("http://0x7f000001:{other_port}/", Refused),
    ("http://0177.0.0.1:{other_port}/", Refused),
    ("http://１２７.0.0.1:{other_port}/", Refused),
    ("http://127。0。0。1:{other_port}/", Refused),
    ("http://[::ffff:127.0.0.1]:{other_port}/", Refused),
    ("http://[::ffff:127.0.0.1]:{port}/", Refused),
    ("http://localhost:{other_port}/", Refused),
    ("http://localhost:{port}/", Refused),
    ("http://127.0.0.1.nip.invalid:{port}/", Refused),
    ("http://127.0.0.1/", Refused),
    ("https://{own}/rpc", Refused),
    (" http://{other}/rpc ", Refused),
    ("h\nttp://{other}/rpc", Refused),
    ("http://\t{other}/rpc", Refused),
    ("ws://{own}/rpc", Refused),
    ("ftp://{own}/rpc", Refused),
    ("file:///etc/passwd", Refused),
    ("data:application/json,{}", Refused),
    ("javascript:alert(1)", Refused),
    ("http://", Refused),
    ("http://[", Refused),
];

/// Calls the agent of a card with a credential. Returns whether a call was made.
async fn call(agent: &Recorder) -> bool {
    let mut options = ClientOptions::default();
    options.headers.insert("authorization", HeaderValue::from_static(TOKEN));
    options.max_response_bytes = 1 << 20;
    let found = a2ad_client::find_card(&format!("http://{}", agent.address), &options).await;
    let client: Option<Client> = found.ok().and_then(|found| found.client(options).ok());
    match client {
        Some(client) => client.get_task("t-1").await.is_ok(),
        None => false,
    }
}

async fn check(what: &str, response: impl FnOnce(&str, SocketAddr) -> String, expected: Expected) {
    let other = Recorder::start(|_| ok("{}")).await;
    let other_host = other.address.to_string();
    let agent = Recorder::start(|own| response(&other_host, own)).await;
    let called = call(&agent).await;
    assert_eq!(other.received(), "", "{what:?}: the other server was called");
    let reached = agent.received().contains("POST ");
    assert_eq!((called, reached), (expected == Own, expected == Own), "{what:?}");
}

#[tokio::test]
async fn card_cannot_lead_a_credential_to_another_origin() {
    for (url, expected) in URLS {
        let response = |other: &str, own: SocketAddr| {
            let other_port = other.rsplit_once(':').unwrap().1;
            let url = url
                .replace("{own}", &own.to_string())
                .replace("{other}", other)
                .replace("{port}", &own.port().to_string())
                .replace("{other_port}", other_port);
            card(&url)
        };
        check(url, response, expected).await;
    }
}

#[tokio::test]
async fn card_with_several_addresses_does_not_lead_a_credential_elsewhere() {
    let rpc = |url: &str| format!(r#"{{"url":"{url}","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}"#);
    // A name that occurs twice: the last value counts, for the check and for the call.
    let twice = |first: &str, last: &str| {
        ok(&format!(
            r#"{{"name":"a","supportedInterfaces":[{{"url":"{first}","url":"{last}","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}]}}"#
        ))
    };
    check("url twice, other last", |other, own| twice(&http(own), &format!("http://{other}")), Refused).await;
    check("url twice, own last", |other, own| twice(&format!("http://{other}"), &http(own)), Own).await;
    let interfaces = |list: String| ok(&format!(r#"{{"name":"a","supportedInterfaces":[{list}]}}"#));
    check(
        "first interface elsewhere",
        |other, own| interfaces([rpc(&format!("http://{other}")), rpc(&http(own))].join(",")),
        Refused,
    )
    .await;
    check(
        "second interface elsewhere",
        |other, own| interfaces([rpc(&http(own)), rpc(&format!("http://{other}"))].join(",")),
        Own,
    )
    .await;
    // Cards of 0.3, whose `url` and `additionalInterfaces` can differ.
    let old = |url: &str, other: &str| {
        ok(&format!(
            r#"{{"name":"a","protocolVersion":"0.3.0","url":"{url}","preferredTransport":"GRPC","additionalInterfaces":[{{"transport":"JSONRPC","url":"{other}"}}]}}"#
        ))
    };
    check(
        "additional interface elsewhere",
        |other, own| old(&http(own), &format!("http://{other}")),
        Refused,
    )
    .await;
}

fn http(address: SocketAddr) -> String {
    format!("http://{address}")
}

#[tokio::test]
async fn redirected_card_is_not_followed() {
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let response = |other: &str, _| {
            format!(
                "HTTP/1.1 {status}\r\nlocation: http://{other}/card\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        };
        check(status, response, Refused).await;
    }
}

#[tokio::test]
async fn document_that_is_not_a_card_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let large = format!(r#"{{"name":"{}"}}"#, "x".repeat(2 << 20));
    let documents = [
        "",
        "null",
        "[]",
        "\"card\"",
        "<html></html>",
        "{",
        r#"{"name":"a"}"#,
        r#"{"name":1,"supportedInterfaces":[]}"#,
        r#"{"name":"a","supportedInterfaces":{}}"#,
        r#"{"name":"a","supportedInterfaces":[null]}"#,
        r#"{"name":"a","supportedInterfaces":[{"url":7,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#,
        &deep,
        &large,
    ];
    for document in documents {
        let what: String = document.chars().take(60).collect();
        check(&what, |_, _| ok(document), Refused).await;
    }
}
