//! Sessions, streams and calls end when their caller may not have them any more.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Client, Exchange, text};
use crate::{
    common::{Server, member, request},
    revocation::{LIMIT, disable, key, open, token},
};

/// A client of `echo` with this header.
fn client<'a>(server: &'a Server, header: &str) -> Client<'a> {
    let credential = header.split_once(": ").unwrap().1.to_owned();
    Client { credential, ..Client::newest(server, "/mcp") }
}

/// A call that waits until its task is cancelled. The first notice shows that it has begun.
async fn hold(client: &Client<'_>) -> Exchange {
    let params = json!({
        "name": "echo", "arguments": {"message": "hold"}, "_meta": {"progressToken": "p"},
    });
    let mut call = client.start(5, "tools/call", params).await;
    assert_eq!(call.next().await.unwrap()["method"], "notifications/progress");
    call
}

async fn listen(client: &Client<'_>) -> Exchange {
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = client.start(7, "subscriptions/listen", filter).await;
    assert_eq!(listening.next().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    listening
}

#[tokio::test]
async fn revoked_key_ends_sessions_streams_and_calls() {
    let server = open().await;
    let (id, credential) = key(&server, "alice").await;
    let (_, second) = key(&server, "alice").await;
    let mut session = client(&server, &credential).begin_session().await;
    let mut notices = session.send("GET", &[], b"").await;
    let mut call = hold(&session).await;
    let newest = client(&server, &credential);
    let (mut listening, mut single) = (listen(&newest).await, hold(&newest).await);
    let others = client(&server, &second).begin_session().await;
    let mut other = others.send("GET", &[], b"").await;

    assert!(server.engine.revoke_api_key(&id).await.unwrap());
    timeout(LIMIT, async {
        assert_eq!(notices.next().await, None);
        for call in [&mut call, &mut single] {
            let result = call.response().await["result"].clone();
            assert!(text(&result).contains("unknown or revoked"), "{result}");
            assert_eq!(result["isError"], true);
        }
        let error = listening.response().await;
        assert_eq!(error["id"], 7);
        assert!(error["error"]["message"].as_str().unwrap().contains("unknown or revoked"), "{error}");
        assert_eq!(listening.next().await, None);
        // The session does not exist any more, also for another key of its caller.
        session.credential = second.split_once(": ").unwrap().1.to_owned();
        while session.start(1, "tools/list", json!({})).await.status != 404 {}
    })
    .await
    .expect("everything ends within a second");
    others.request("tools/list", json!({})).await;
    let ended = timeout(Duration::from_millis(100), other.next()).await;
    assert!(ended.is_err(), "the stream of another key goes on");
}

#[tokio::test]
async fn session_lives_on_with_the_key_that_was_used_last() {
    let server = open().await;
    let (id, first) = key(&server, "alice").await;
    let (_, second) = key(&server, "alice").await;
    let mut session = client(&server, &first).begin_session().await;
    session.credential = second.split_once(": ").unwrap().1.to_owned();
    session.request("tools/list", json!({})).await;
    assert!(server.engine.revoke_api_key(&id).await.unwrap());
    tokio::time::sleep(Duration::from_millis(700)).await;
    session.request("tools/list", json!({})).await;
}

#[tokio::test]
async fn expired_token_ends_streams_and_leaves_calls_and_time_to_resume() {
    let server = open().await;
    let fresh = token(600);
    let mut session = client(&server, &token(1)).begin_session().await;
    let mut notices = session.send("GET", &[], b"").await;
    let newest = client(&server, &token(1));
    let (mut listening, mut call) = (listen(&newest).await, hold(&session).await);
    server.engine.clock().advance(Duration::from_secs(1));
    assert_eq!(session.start(1, "tools/list", json!({})).await.status, 401);
    timeout(LIMIT, async {
        for stream in [&mut notices, &mut listening] {
            let rest = String::from_utf8(stream.connection.body().await.unwrap()).unwrap();
            assert!(rest.ends_with("retry: 1000\n"), "{rest}");
        }
    })
    .await
    .expect("streams end within a second");
    session.credential = fresh.split_once(": ").unwrap().1.to_owned();
    assert_eq!(session.send("GET", &[], b"").await.status, 200);
    let head = format!("POST / HTTP/1.1\r\na2a-version: 1.0\r\n{fresh}");
    let task = member(&server.exchange(&head, &request("ListTasks", "{}")).await.body, "id");
    let cancel = request("CancelTask", &json!({"id": task}).to_string());
    assert_eq!(server.exchange(&head, &cancel).await.status, 200);
    let answer: Value = call.response().await;
    assert!(text(&answer["result"]).contains("canceled"), "{answer}");
}

#[tokio::test]
async fn disabled_agent_ends_a_call_that_waits_for_an_answer() {
    let server = Server::open().await;
    let client = Client::with_session(&server, "/a2a/approver/mcp", json!({"elicitation": {}})).await;
    let call = json!({"name": "approver", "arguments": {"message": "jump"}});
    let mut open = client.start(3, "tools/call", call).await;
    assert_eq!(open.next().await.unwrap()["method"], "elicitation/create");
    disable(&server, "approver").await;
    let answer = timeout(LIMIT, open.response()).await.expect("the call ends within a second");
    assert!(text(&answer["result"]).contains("or it is disabled"), "{answer}");
}
