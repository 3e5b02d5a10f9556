//! Clients are notified that the catalog has changed.

use engine::Catalog;
use serde_json::json;

use super::Client;
use crate::common::{Server, with_timeout};

#[tokio::test]
async fn clients_hear_about_a_new_catalog() {
    let server = Server::open().await;
    let client = Client::with_session(&server, "/mcp", json!({})).await;
    let mut stream = client.send("GET", &[], b"").await;
    assert!(stream.status == 200 && stream.is_stream);
    let newest = Client::newest(&server, "/mcp");
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = newest.start(7, "subscriptions/listen", filter).await;
    let acknowledged = listening.next().await.unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let agents = outbound::agents::demo().into_iter().filter(|agent| agent.info().id != "approver");
    server.engine.catalog().swap(Catalog::new("currency", agents));
    for stream in [&mut stream, &mut listening] {
        let notice = with_timeout(stream.next()).await.unwrap();
        assert_eq!(notice["method"], "notifications/tools/list_changed");
    }
    assert_eq!(stream.next().await.unwrap()["method"], "notifications/resources/list_changed");
    let listed = newest.request("tools/list", json!({})).await;
    assert_eq!(listed["tools"][0]["name"], "currency");
}

/// The task goes on after the restart, so the end of the server is not a cancelled call.
#[tokio::test]
async fn shutdown_answers_a_call_and_keeps_its_task() {
    let server = Server::open().await;
    let client = Client::newest(&server, "/a2a/slow-writer/mcp");
    let params = json!({
        "name": "slow-writer",
        "arguments": {"message": "sea sections=3 delay=20s"},
        "_meta": {"progressToken": "p"},
    });
    let mut call = client.start(1, "tools/call", params).await;
    assert_eq!(call.next().await.unwrap()["method"], "notifications/progress");
    server.ready.set_not_ready();
    server.engine.drain(std::time::Duration::ZERO).await;
    server.ready.close();
    let result = call.response().await;
    assert!(super::text(&result["result"]).contains("shutting down"), "{result}");
    drop(call);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).to_string();
    let listed = server.post_v1("/a2a/slow-writer", &list).await.body;
    assert!(!listed.contains("CANCELED") && listed.contains("TASK_STATE_"), "{listed}");
}

#[tokio::test]
async fn streams_end_when_the_server_shuts_down() {
    let server = Server::open().await;
    let client = Client::with_session(&server, "/mcp", json!({})).await;
    let mut stream = client.send("GET", &[], b"").await;
    let mut call =
        client.start(1, "tools/call", json!({"name": "echo", "arguments": {"message": "hold"}})).await;
    server.ready.set_not_ready();
    server.engine.drain(std::time::Duration::ZERO).await;
    let result = call.response().await;
    assert!(result["result"]["isError"] == true, "{result}");
    assert!(super::text(&result["result"]).contains("shutting down"), "{result}");
    server.ready.close();
    assert_eq!(stream.next().await, None);
    assert_eq!(call.next().await, None);
}
