//! Blocking sends to a command of a user that takes longer than clients wait for a byte.

use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{
    http1::{self, Connection, Response},
    process::Server,
};

use super::{TIMEOUT, run, serve, within};

const CONFIG: &str = r#"
[server]
keep_alive = "200ms"
default_agent = "main"
[skills.slow]
description = "Takes a second"
command = { argv = ["sh", "-c", "sleep 1; echo done"] }
[skills.endless]
description = "Reports that it works, and does not end"
command = { argv = ["sh", "-c", """echo '{"type": "progress", "text": "busy"}'; sleep 60"""], protocol = "jsonl" }
[skills.quick]
description = "Takes no time"
command = { argv = ["echo", "done"] }
[agents.main]
[agents.silent]
keep_alive = false
[agents.closed]
auth = ["api-key"]
"#;

/// A JSON-RPC call, or a request of HTTP+JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    Rpc,
    Rest,
}

impl Binding {
    /// Sends a message to a skill; the response is still to be read.
    async fn send(self, server: &Server, agent: &str, skill: &str, headers: &[(&str, &str)]) -> Connection {
        let params = format!(
            r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"go"}}]}},"skill":"{skill}"}}"#
        );
        let (path, body) = match self {
            Self::Rpc => (
                format!("/a2a/{agent}"),
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{params}}}"#),
            ),
            Self::Rest => (format!("/a2a/{agent}/message:send"), params),
        };
        let headers = [&[("a2a-version", "1.0")], headers].concat();
        let mut connection = Connection::open(server.address).await.unwrap().with_limit(TIMEOUT);
        connection.send_json(&path, &headers, body.as_bytes()).await.unwrap();
        connection
    }

    /// The state of the task in a body.
    fn state(self, body: &[u8]) -> String {
        let document: Value = serde_json::from_slice(body).unwrap();
        let result = if self == Self::Rpc { &document["result"] } else { &document };
        result["task"]["status"]["state"].as_str().unwrap_or_else(|| panic!("{document}")).to_owned()
    }
}

fn spaces(body: &[u8]) -> usize {
    body.iter().take_while(|byte| **byte == b' ').count()
}

const BOTH: [Binding; 2] = [Binding::Rpc, Binding::Rest];

#[tokio::test]
async fn a_response_that_takes_long_begins_with_a_space_in_each_interval() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), CONFIG).await;
    for binding in BOTH {
        let started = Instant::now();
        let mut connection = binding.send(&server, "main", "slow", &[]).await;
        let head = connection.head().await.unwrap();
        assert!(started.elapsed() < Duration::from_millis(900), "{binding:?}: {:?}", started.elapsed());
        assert_eq!((head.status, head.headers.get("transfer-encoding")), (200, Some("chunked")), "{head:?}");
        assert!(head.headers.get("content-type").unwrap().contains("json"), "{head:?}");
        assert!(head.headers.get("a2ad-dialect").is_some(), "{head:?}");
        let mut body = connection.bytes().await.unwrap().unwrap().to_vec();
        assert_eq!(body, b" ");
        body.extend(connection.body().await.unwrap());
        assert!((3..=6).contains(&spaces(&body)), "{binding:?}: {}", String::from_utf8_lossy(&body));
        assert_eq!(binding.state(&body), "TASK_STATE_COMPLETED");
        // The connection goes on.
        let next = connection.get("/healthz").await.unwrap();
        assert_eq!(next.status, 200);
    }
}

#[tokio::test]
async fn a_response_has_its_length_if_it_is_quick_or_spaces_are_off_or_no_json() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), CONFIG).await;
    let check = |response: &Response| {
        let length = response.headers.get("content-length").map(|length| length.parse::<usize>().unwrap());
        assert_eq!(length, Some(response.body.len()), "{response:?}");
        assert_eq!(spaces(&response.body), 0);
    };
    for binding in BOTH {
        for (agent, skill) in [("main", "quick"), ("silent", "slow")] {
            let response = binding.send(&server, agent, skill, &[]).await.response().await.unwrap();
            check(&response);
            assert_eq!(binding.state(&response.body), "TASK_STATE_COMPLETED");
        }
    }
    let run = http1::request(server.address, "POST", "/a2a/main/run/slow", &[], b"").await.unwrap();
    check(&run);
    assert_eq!(run.status, 200, "{}", run.text());
}

#[tokio::test]
async fn a_repeated_message_says_so_before_its_reply_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), CONFIG).await;
    for binding in BOTH {
        let key = format!("{binding:?}");
        let headers = [("idempotency-key", key.as_str())];
        let mut first = binding.send(&server, "main", "slow", &headers).await;
        assert_eq!(first.head().await.unwrap().headers.get("a2ad-replayed"), None);
        let mut second = binding.send(&server, "main", "slow", &headers).await;
        let head = second.head().await.unwrap();
        assert_eq!(head.headers.get("a2ad-replayed"), Some("true"), "{head:?}");
        let (first, second) = (first.body().await.unwrap(), second.body().await.unwrap());
        assert_eq!(first.trim_ascii_start(), second.trim_ascii_start());
    }
}

#[tokio::test]
async fn a_late_shutdown_is_an_error_over_json_rpc_and_the_unfinished_task_over_http_json() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), CONFIG).await;
    let mut rpc = Binding::Rpc.send(&server, "main", "endless", &[]).await;
    let mut rest = Binding::Rest.send(&server, "main", "endless", &[]).await;
    for connection in [&mut rpc, &mut rest] {
        assert_eq!(connection.head().await.unwrap().status, 200);
    }
    let stopped = tokio::spawn(server.terminate(TIMEOUT));
    let body: Value = serde_json::from_slice(&rpc.body().await.unwrap()).unwrap();
    assert_eq!(body["id"], 7);
    assert!(body["error"]["message"].as_str().unwrap().contains("shutting down"), "{body}");
    assert_eq!(Binding::Rest.state(&rest.body().await.unwrap()), "TASK_STATE_WORKING");
    assert!(within(stopped).await.unwrap().unwrap().success());
}

#[tokio::test]
async fn a_late_refusal_is_an_error_over_json_rpc_and_an_incomplete_body_over_http_json() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), CONFIG).await;
    let key = run(folder.path(), &["keys", "new", "closed"]).await;
    let key = key.out.trim();
    let headers = [("x-api-key", key)];
    let mut rpc = Binding::Rpc.send(&server, "closed", "endless", &headers).await;
    let mut rest = Binding::Rest.send(&server, "closed", "endless", &headers).await;
    for connection in [&mut rpc, &mut rest] {
        assert_eq!(connection.head().await.unwrap().status, 200);
    }
    let id = key.strip_prefix("a2ad_").unwrap().split_once('_').unwrap().0;
    let revoked = run(folder.path(), &["keys", "revoke", id]).await;
    assert_eq!(revoked.code, 0, "{revoked:?}");
    let body: Value = serde_json::from_slice(&rpc.body().await.unwrap()).unwrap();
    assert!(body["error"]["code"].is_i64(), "{body}");
    let cut = rest.body().await;
    assert!(matches!(cut, Err(http1::Error::Cut(_))), "{cut:?}");
}
