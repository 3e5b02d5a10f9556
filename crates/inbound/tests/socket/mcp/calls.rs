//! Calls of tools: results, failures, progress and cancellation.

use std::time::Duration;

use protocol::Part;
use serde_json::{Value, json};
use testkit::http1;

use super::{Client, task, text};
use crate::common::{
    Server, Setup, agents,
    generation::{Client as A2aClient, Generation},
    with_timeout,
};

/// The state of a task, once it is this one.
async fn wait_for_state(server: &Server, agent: &str, id: &str, state: &str) {
    let get = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": id}}).to_string();
    with_timeout(async {
        loop {
            let answer = server.post_v1(&format!("/a2a/{agent}"), &get).await;
            if answer.body.contains(&format!("TASK_STATE_{state}")) {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn result_of_a_task_is_the_result_of_a_call() {
    let agents = vec![agents::fails(), agents::chats(), agents::panics()];
    let server = Setup { agents, ..Setup::default() }.open().await;
    for with_session in [false, true] {
        let client = async |path| match with_session {
            true => Client::with_session(&server, path, json!({})).await,
            false => Client::newest(&server, path),
        };
        let result = client("/mcp").await.call("echo", json!({"message": "two\nlines ü"})).await;
        assert_eq!((text(&result).as_str(), &result["isError"]), ("two\nlines ü", &json!(false)));
        // The task can be read over A2A, and its metadata has its origin.
        let a2a = A2aClient { server: &server, path: "/a2a/echo", generation: Generation::V1 };
        let read = a2a.get(&task(&result)).await;
        assert_eq!(read.history[0].parts, [Part::text("two\nlines ü")]);
        let metadata = read.metadata.unwrap();
        assert!(metadata.as_str().contains(r#""origin":"mcp""#), "{metadata:?}");
        // Data is structured content, and as text it has every digit.
        let data = r#"{"n":9007199254740993.5,"of":{"a":[1,2]}}"#;
        let body = json!({"name": "echo", "arguments": serde_json::from_str::<Value>(data).unwrap()});
        let result = client("/mcp").await.request("tools/call", body).await;
        assert_eq!(result["structuredContent"]["of"], json!({"a": [1, 2]}));
        let result = client("/a2a/fails/mcp").await.call("fails", json!({"message": "x"})).await;
        assert_eq!((text(&result).as_str(), &result["isError"]), ("out of paper", &json!(true)));
        let result = client("/a2a/chats/mcp").await.call("chats", json!({"message": "x"})).await;
        assert_eq!((text(&result).as_str(), &result["isError"]), ("reply to x", &json!(false)));
        let result = client("/a2a/panics/mcp").await.call("panics", json!({"message": "x"})).await;
        assert_eq!(result["isError"], true, "{result}");
    }
}

#[tokio::test]
async fn files_are_content_of_results() {
    let server = Setup { agents: vec![agents::skilled(&["forms"])], ..Setup::default() }.open().await;
    for client in [
        Client::newest(&server, "/a2a/skilled/mcp"),
        Client::with_session(&server, "/a2a/skilled/mcp", json!({})).await,
    ] {
        let content =
            async |form: &str| client.call("forms", json!({"message": form})).await["content"].clone();
        // The bytes 0, a and line feed.
        let image = json!([{"type": "image", "data": "AGEK", "mimeType": "image/x-test"}]);
        assert_eq!(content("file").await, image);
        let document = content("document").await;
        assert_eq!(document[0]["type"], "resource");
        let resource = &document[0]["resource"];
        assert_eq!(
            (&resource["blob"], &resource["mimeType"]),
            (&json!("AGEK"), &json!("application/octet-stream"))
        );
        assert!(resource["uri"].as_str().unwrap().ends_with("/a.bin"), "{resource}");
        let link = content("url").await;
        assert_eq!(
            (&link[0]["type"], &link[0]["uri"]),
            (&json!("resource_link"), &json!("http://example.test/x"))
        );
    }
}

/// Tools have no files among their arguments, so clients send them as base64.
#[tokio::test]
async fn file_in_the_arguments_arrives_whole() {
    let server = Server::open().await;
    let file = "AGEK+/==".repeat(128 << 10);
    for client in [Client::newest(&server, "/mcp"), Client::with_session(&server, "/mcp", json!({})).await] {
        let result = client.call("echo", json!({"name": "a.bin", "content": file})).await;
        assert!(result["structuredContent"] == json!({"name": "a.bin", "content": file}));
    }
    server.released().await;
}

/// The library's tree of numbers would lose digits.
#[tokio::test]
async fn numbers_arrive_as_they_were_sent() {
    let server = Server::open().await;
    let client = Client::with_session(&server, "/mcp", json!({})).await;
    let arguments = r#"{"large":123456789012345678901234567890,"exact":1.10,"huge":1e400}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
    );
    let body = body.replace(r#","huge":1e400"#, "");
    let response = client.send("POST", &[], body.as_bytes()).await.response().await;
    assert_eq!(text(&response["result"]), arguments.replace(r#","huge":1e400"#, ""));
}

#[tokio::test]
async fn progress_is_sent_to_clients_that_ask_for_it() {
    let server = Server::open().await;
    let arguments = json!({"message": "sea sections=3 delay=1ms"});
    for client in [
        Client::newest(&server, "/a2a/slow-writer/mcp"),
        Client::with_session(&server, "/a2a/slow-writer/mcp", json!({})).await,
    ] {
        let mut params = json!({"name": "slow-writer", "arguments": arguments});
        assert_eq!(progress_of(&client, params.clone()).await, Vec::<Value>::new());
        params["_meta"] = json!({"progressToken": "p1"});
        let notices = progress_of(&client, params).await;
        assert!(!notices.is_empty());
        for (index, notice) in notices.iter().enumerate() {
            assert_eq!(
                (&notice["progressToken"], &notice["progress"]),
                (&json!("p1"), &json!(index as f64 + 1.0))
            );
        }
    }
}

async fn progress_of(client: &Client<'_>, params: Value) -> Vec<Value> {
    let mut call = client.start(5, "tools/call", params).await;
    let mut notices = Vec::new();
    loop {
        let message = call.next().await.unwrap();
        if message["method"] != "notifications/progress" {
            assert!(text(&message["result"]).contains("Section 3 of 3"), "{message}");
            return notices;
        }
        notices.push(message["params"].clone());
    }
}

/// The id of the only task of an agent, once there is one.
async fn only_task(server: &Server, agent: &str) -> String {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).to_string();
    with_timeout(async {
        loop {
            let answer = server.post_v1(&format!("/a2a/{agent}"), &list).await;
            let answer: Value = serde_json::from_str(&answer.body).unwrap();
            if let Some(id) = answer["result"]["tasks"][0]["id"].as_str() {
                return id.to_owned();
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test]
async fn cancelled_call_cancels_its_task() {
    let server = Server::open().await;
    let client = Client::with_session(&server, "/mcp", json!({})).await;
    let hold = json!({"name": "echo", "arguments": {"message": "hold"}});
    let open = client.start(9, "tools/call", hold).await;
    let id = only_task(&server, "echo").await;
    client.notify("notifications/cancelled", json!({"requestId": 9, "reason": "no longer needed"})).await;
    wait_for_state(&server, "echo", &id, "CANCELED").await;
    drop(open);
    // The session goes on.
    assert_eq!(text(&client.call("echo", json!({"message": "hi"})).await), "hi");
}

#[tokio::test]
async fn newest_client_cancels_by_disconnecting() {
    let server = Server::open().await;
    let client = Client::newest(&server, "/mcp");
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "echo", "arguments": {"message": "hold"}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": super::NEWEST,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let headers = [
        super::ACCEPT,
        ("content-type", "application/json"),
        ("mcp-protocol-version", super::NEWEST),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let mut connection = http1::Connection::open(client.server.address).await.unwrap();
    connection.send("POST", "/mcp", &headers, body.to_string().as_bytes()).await.unwrap();
    let id = only_task(&server, "echo").await;
    drop(connection);
    wait_for_state(&server, "echo", &id, "CANCELED").await;
}

/// `limits.wait` is about sends of A2A, whose clients can poll.
#[tokio::test]
async fn call_lasts_as_long_as_its_task() {
    let mut setup = Setup::with(|options| options.keep_alive = Duration::from_millis(20));
    setup.limits.wait = Some(Duration::from_millis(50));
    let server = setup.open().await;
    for client in [
        Client::newest(&server, "/a2a/slow-writer/mcp"),
        Client::with_session(&server, "/a2a/slow-writer/mcp", json!({})).await,
    ] {
        let result = client.call("slow-writer", json!({"message": "sea sections=3 delay=100ms"})).await;
        assert!(text(&result).contains("Section 3 of 3"), "{result}");
    }
}

#[tokio::test]
async fn bad_requests_get_clear_errors() {
    let server = Setup::with(|options| options.max_body_bytes = 1_000).open().await;
    let client = Client::with_session(&server, "/mcp", json!({})).await;
    let call =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
    for (body, status, code, id, shown) in [
        ("{".to_owned(), 400, -32700, json!(null), "not JSON"),
        ("[]".to_owned(), 400, -32600, json!(null), "batches"),
        ("5".to_owned(), 400, -32600, json!(null), "an object"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_owned(), 400, -32600, json!(1), "jsonrpc"),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#.to_owned(), 400, -32600, json!(1), "method"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(), 400, -32600, json!(null), "id"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(), 400, -32600, json!(null), "id"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#.to_owned(), 400, -32600, json!(2), "id"),
        (call(r#"{"name":"a","name":"b"}"#), 400, -32600, json!(7), "name"),
        (r#"{"jsonrpc":"2.0"}"#.to_owned(), 400, -32600, json!(null), "method"),
        (r#"{"id":"a","method":"ping"}"#.to_owned(), 400, -32600, json!("a"), "jsonrpc"),
        // The library reads ids of 64 bits only.
        (
            r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#.to_owned(),
            400,
            -32600,
            json!(1e20),
            "MCP",
        ),
        (call("[]"), 400, -32600, json!(7), "params"),
        (call("{}"), 200, -32602, json!(7), "name"),
        (call(r#"{"name":"echo","arguments":[1]}"#), 200, -32602, json!(7), "arguments"),
    ] {
        let mut answer = client.send("POST", &[], body.as_bytes()).await;
        assert_eq!(answer.status, status, "{body}");
        assert_eq!(answer.headers.get("content-type"), Some("application/json"), "{body}");
        let error = answer.response().await;
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), &id), "{body}: {error}");
        assert!(error["error"].to_string().contains(shown), "{body}: {error}");
    }
    // A tree of many small values takes far more memory than their text.
    let wide = Setup::default().open().await;
    let many =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":[{}0]}}}}"#, "0,".repeat(20_000));
    let mut answer = Client::newest(&wide, "/mcp").send("POST", &[], many.as_bytes()).await;
    assert_eq!(answer.status, 400);
    assert!(answer.response().await["error"]["message"].as_str().unwrap().contains("10000 nodes"));
    wide.released().await;
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#, "x".repeat(2_000));
    let mut answer = client.send("POST", &[], large.as_bytes()).await;
    assert_eq!(answer.status, 413);
    assert!(answer.response().await["error"]["message"].as_str().unwrap().contains("1000 bytes"));
    let deep = format!("{}1{}", r#"{"a":"#.repeat(31), "}".repeat(31));
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{deep}}}}}"#
    );
    let result = client.send("POST", &[], body.as_bytes()).await.response().await["result"].clone();
    assert!(text(&result).contains("params.arguments") && result["isError"] == true, "{result}");
    let answer = client.send("PUT", &[], b"").await;
    assert_eq!((answer.status, answer.headers.get("allow")), (405, Some("GET, POST, DELETE")));
}

/// The library's own answers are plain texts.
#[tokio::test]
async fn unsuitable_headers_get_clear_errors() {
    let server = Server::open().await;
    let ping = br#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#;
    const JSON: (&str, &str) = ("content-type", "application/json");
    let (accept, version) = (super::ACCEPT, ("mcp-protocol-version", "1999-01-01"));
    for (method, headers, status, shown) in [
        ("POST", vec![accept], 415, "Content-Type is missing"),
        ("POST", vec![accept, ("content-type", "text/plain")], 415, "\\\"text/plain\\\""),
        ("POST", vec![accept, ("content-type", "application/jsonl")], 415, "application/json"),
        ("POST", vec![JSON, ("accept", "application/json")], 406, "text/event-stream"),
        ("POST", vec![JSON, ("accept", "text/event-stream")], 406, "Accept"),
        ("POST", vec![JSON, ("accept", "*/*, text/event-stream;q=0")], 406, "Accept"),
        ("POST", vec![JSON, ("accept", "text/html")], 406, "Accept"),
        ("GET", vec![("accept", "application/json")], 406, "text/event-stream"),
        ("POST", vec![JSON, accept], 400, "Session ID"),
        ("POST", vec![JSON, accept, version], 400, "1999-01-01"),
        ("GET", vec![accept], 400, "Session ID"),
        ("POST", vec![JSON, accept, ("mcp-session-id", "none")], 404, "initialize"),
        ("GET", vec![accept, ("mcp-session-id", "none")], 404, "initialize"),
    ] {
        let body: &[u8] = if method == "POST" { ping } else { b"" };
        let answer = http1::request(server.address, method, "/mcp", &headers, body).await.unwrap();
        let error = answer.json().unwrap();
        assert_eq!(
            (answer.status, &error["jsonrpc"]),
            (status, &json!("2.0")),
            "{method} {headers:?} {error}"
        );
        assert!(error["error"].to_string().contains(shown), "{method} {headers:?}: {error}");
    }
    // HTTP compares media types without case, and a client that accepts everything accepts both.
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    for accept in [Some("*/*"), Some("application/*, text/*;q=0.5"), None] {
        let mut connection = http1::Connection::open(server.address).await.unwrap();
        let headers = [("content-type", "Application/JSON; charset=utf-8")];
        let headers = [&headers[..], &accept.map_or(vec![], |accept| vec![("accept", accept)])].concat();
        connection.send("POST", "/mcp", &headers, initialize.to_string().as_bytes()).await.unwrap();
        assert_eq!(with_timeout(connection.head()).await.unwrap().status, 200, "{accept:?}");
    }
}
