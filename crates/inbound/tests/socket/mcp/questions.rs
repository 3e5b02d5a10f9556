//! Questions of agents, as each kind of client can be asked.

use std::time::Duration;

use serde_json::json;

use super::{Client, task, text};
use crate::common::{
    Server, Setup, agents,
    generation::{Client as A2aClient, Generation},
    hold_time,
};

const PATH: &str = "/a2a/approver/mcp";

#[tokio::test]
async fn client_with_a_session_is_asked_while_its_call_is_open() {
    let server = Server::open().await;
    let client = Client::with_session(&server, PATH, json!({"elicitation": {}})).await;
    let call = json!({"name": "approver", "arguments": {"message": "jump"}});
    for (result, expected, is_error) in [
        (json!({"action": "accept", "content": {"answer": "approve"}}), "Approved: jump", false),
        (json!({"action": "accept", "content": {"answer": "deny"}}), "Denied: jump", true),
        (json!({"action": "decline"}), "not answered", true),
    ] {
        let mut open = client.start(3, "tools/call", call.clone()).await;
        let question = open.next().await.unwrap();
        assert_eq!(question["method"], "elicitation/create");
        assert!(question["params"]["message"].as_str().unwrap().contains("May I proceed with: jump"));
        assert_eq!(question["params"]["requestedSchema"]["required"], json!(["answer"]));
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(client.post(&[], &answer).await.status, 202);
        let ended = open.response().await["result"].clone();
        assert!(text(&ended).contains(expected), "{ended}");
        assert_eq!(ended["isError"], is_error);
    }
}

#[tokio::test]
async fn newest_client_sends_its_call_again_with_the_answer() {
    let server = Server::open().await;
    let mut client = Client::newest(&server, PATH);
    client.capabilities = json!({"elicitation": {"form": {}}});
    let mut params = json!({"name": "approver", "arguments": {"message": "jump"}});
    let asked = client.request("tools/call", params.clone()).await;
    assert_eq!(asked["resultType"], "input_required");
    let question = &asked["inputRequests"]["answer"];
    assert_eq!(question["method"], "elicitation/create");
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({"answer": {"action": "accept", "content": {"answer": "approve"}}});
    let ended = client.request("tools/call", params.clone()).await;
    assert!(text(&ended).contains("Approved: jump"), "{ended}");
    assert!(asked["requestState"].as_str().unwrap().ends_with(&task(&ended)));
    // The task has ended: the same answer is refused, and a state of somebody else's names no task.
    assert_eq!(client.request("tools/call", params.clone()).await["isError"], true);
    params["requestState"] = json!("text:task_00000000000000000000000000000");
    assert_eq!(client.request("tools/call", params.clone()).await["isError"], true);
    for state in ["", "text", "other:task_1"] {
        params["requestState"] = json!(state);
        let refused = client.start(1, "tools/call", params.clone()).await.response().await;
        assert_eq!(refused["error"]["code"], -32602, "{state}");
    }
}

/// A form of the agent's own is what the client is asked for.
#[tokio::test]
async fn schema_of_a_question_is_the_schema_of_the_form() {
    let server = Setup { agents: vec![agents::asks_for_a_form()], ..Setup::default() }.open().await;
    let mut client = Client::newest(&server, "/a2a/form/mcp");
    client.capabilities = json!({"elicitation": {"form": {}}});
    let mut params = json!({"name": "form", "arguments": {"message": "hi"}});
    let asked = client.request("tools/call", params.clone()).await;
    let form = &asked["inputRequests"]["answer"]["params"];
    assert_eq!((&form["message"], &form["requestedSchema"]["required"]), (&json!("Who?"), &json!(["name"])));
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({"answer": {"action": "accept", "content": {"name": "Ada", "age": 36}}});
    let ended = client.request("tools/call", params.clone()).await;
    assert_eq!(ended["structuredContent"], json!({"name": "Ada", "age": 36}));
}

#[tokio::test]
async fn client_that_cannot_be_asked_reads_the_question() {
    let server = Server::open().await;
    for client in [Client::newest(&server, PATH), Client::with_session(&server, PATH, json!({})).await] {
        let asked = client.call("approver", json!({"message": "jump"})).await;
        assert_eq!(asked["isError"], true);
        let id = task(&asked);
        assert!(text(&asked).contains("May I proceed with: jump") && text(&asked).contains(&id), "{asked}");
        // The task waits, and is answered over A2A.
        let a2a = A2aClient { server: &server, path: "/a2a/approver", generation: Generation::V1 };
        assert_eq!(a2a.get(&id).await.status.state, protocol::TaskState::InputRequired);
        // Credentials are never asked for in a form.
        let asked = client.call("approver-auth", json!({"message": "jump"})).await;
        assert!(asked["isError"] == true && text(&asked).contains("Please authenticate"), "{asked}");
        assert!(text(&asked).contains("never in the arguments"), "{asked}");
    }
}

/// The call ends, and the task waits for an answer over A2A.
#[tokio::test(start_paused = true)]
async fn question_has_a_time_limit() {
    let _time = hold_time();
    let server = Server::open().await;
    let client = Client::with_session(&server, PATH, json!({"elicitation": {}})).await;
    let mut notices = client.send("GET", &[], b"").await;
    let call = json!({"name": "approver", "arguments": {"message": "jump"}});
    let mut open = client.start(3, "tools/call", call).await;
    let question = open.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let (mut result, mut seconds) = (None, 0);
    while result.is_none() {
        tokio::select! {
            biased;
            message = open.connection.event() => {
                let event = message.unwrap().expect("there is a result");
                result = serde_json::from_str::<serde_json::Value>(&event.data).ok();
            }
            () = tokio::time::advance(Duration::from_secs(10)) => seconds += 10,
        }
        assert!(seconds < 700, "the call is still open");
    }
    assert!(seconds >= 590, "it has ended after {seconds} s");
    let withdrawn = notices.next().await.unwrap();
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let result = &result.unwrap()["result"];
    assert_eq!(result["isError"], true);
    let id = task(result);
    assert!(text(result).contains("600 s") && text(result).contains(&id), "{result}");
    let a2a = A2aClient { server: &server, path: "/a2a/approver", generation: Generation::V1 };
    assert_eq!(a2a.get(&id).await.status.state, protocol::TaskState::InputRequired);
}

/// The task waits for an answer after the restart.
#[tokio::test]
async fn shutdown_ends_a_call_that_waits_for_an_answer() {
    let server = Server::open().await;
    let client = Client::with_session(&server, PATH, json!({"elicitation": {}})).await;
    let call = json!({"name": "approver", "arguments": {"message": "jump"}});
    let mut open = client.start(3, "tools/call", call).await;
    assert_eq!(open.next().await.unwrap()["method"], "elicitation/create");
    server.ready.set_not_ready();
    server.engine.drain(Duration::ZERO).await;
    server.ready.close();
    let result = open.response().await["result"].clone();
    assert!(result["isError"] == true && text(&result).contains("shutting down"), "{result}");
    let a2a = A2aClient { server: &server, path: "/a2a/approver", generation: Generation::V1 };
    let shown = text(&result);
    let id = shown.split_once("task ").and_then(|(_, rest)| rest.split_whitespace().next()).unwrap();
    assert_eq!(a2a.get(id).await.status.state, protocol::TaskState::InputRequired);
}

#[tokio::test]
async fn waiting_call_reserves_little_memory() {
    let server = Server::open().await;
    let client = Client::with_session(&server, PATH, json!({"elicitation": {}})).await;
    // The approver repeats the message in its question.
    let large = "x".repeat(100 << 10);
    let call = json!({"name": "approver", "arguments": {"message": large}});
    let mut open = client.start(3, "tools/call", call).await;
    let question = open.next().await.unwrap();
    let used = server.engine.memory().used();
    assert!((1..150 << 10).contains(&used), "{used} bytes are reserved");
    let answer = json!({"action": "accept", "content": {"answer": "approve"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
    assert_eq!(client.post(&[], &answer).await.status, 202);
    assert_eq!(open.response().await["result"]["isError"], false);
    drop(open);
    server.released().await;
}
