use crate::common::{Server, mask, member, said};
#[tokio::test]
async fn show() {
    let server = Server::open().await;
    let mut out = String::new();
    let p = |a: crate::common::Answer, o: &mut String| {
        o.push_str(&format!("{} {:?}\n{}\n\n", a.status, a.head, mask(&a.body)));
    };
    p(server.call("echo", "SendMessage", &said("hi", "")).await, &mut out);
    let a = server.call("echo", "SendMessage", &said("hi", "")).await;
    let id = member(&a.body, "id");
    p(server.call("echo", "GetTask", &format!(r#"{{"id":"{id}"}}"#)).await, &mut out);
    p(server.call("echo", "ListTasks", "{}").await, &mut out);
    p(
        server.call("echo", "ListTasks", r#"{"includeArtifacts":true,"historyLength":0,"pageSize":1}"#).await,
        &mut out,
    );
    p(server.call("echo", "CancelTask", &format!(r#"{{"id":"{id}"}}"#)).await, &mut out);
    p(server.call("echo", "SubscribeToTask", &format!(r#"{{"id":"{id}"}}"#)).await, &mut out);
    p(server.call("echo", "GetTask", r#"{"id":"x"}"#).await, &mut out);
    for m in [
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
    ] {
        p(server.call("echo", m, r#"{"taskId":"x","id":"y","url":"http://localhost/"}"#).await, &mut out);
    }
    p(server.call("echo", "GetExtendedAgentCard", "{}").await, &mut out);
    p(server.call("echo", "tasks/get", "{}").await, &mut out);
    p(server.call("nobody", "GetTask", r#"{"id":"x"}"#).await, &mut out);
    p(server.call("echo", "GetTask", "{}").await, &mut out);
    p(server.call("echo", "GetTask", "[]").await, &mut out);
    p(
        server
            .call(
                "echo",
                "SendMessage",
                r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"%"}]}}"#,
            )
            .await,
        &mut out,
    );
    p(
        server.call("echo", "SendMessage", r#"{"message":{"messageId":"m","role":"user","parts":[]}}"#).await,
        &mut out,
    );
    for b in [
        "{",
        "[]",
        "5",
        r#"{"id":7,"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":"a"}"#,
        r#"{"jsonrpc":"1.0","id":"a","method":"GetTask"}"#,
    ] {
        p(server.post("/", b).await, &mut out);
    }
    p(server.exchange("POST / HTTP/1.1\r\ncontent-type: text/plain", "hello").await, &mut out);
    p(
        server
            .exchange(
                "POST / HTTP/1.1\r\ncontent-type: application/json\r\na2a-version: 0.3",
                &crate::common::request("GetTask", "{}"),
            )
            .await,
        &mut out,
    );
    p(server.get("/nowhere").await, &mut out);
    p(server.get("/").await, &mut out);
    p(server.exchange("DELETE /a2a/echo HTTP/1.1", "").await, &mut out);
    p(server.exchange("POST /healthz HTTP/1.1", "").await, &mut out);
    p(
        server
            .exchange(
                "POST /a2a/%ff HTTP/1.1\r\ncontent-type: application/json",
                &crate::common::request("GetTask", "{}"),
            )
            .await,
        &mut out,
    );
    p(server.get("/a2a/%ff/.well-known/agent-card.json").await, &mut out);
    p(server.get("/a2a/nobody/.well-known/agent-card.json").await, &mut out);
    p(server.get("/.well-known/agent-card.json").await, &mut out);
    p(server.get("/healthz").await, &mut out);
    p(server.get("/readyz").await, &mut out);
    let card = server.get("/.well-known/agent-card.json").await;
    let etag = card.header("etag").unwrap().to_owned();
    p(
        server
            .exchange(&format!("GET /.well-known/agent-card.json HTTP/1.1\r\nif-none-match: {etag}"), "")
            .await,
        &mut out,
    );
    p(
        server
            .exchange(
                &format!("GET /.well-known/agent-card.json HTTP/1.1\r\nif-none-match: W/{etag}, \"x\""),
                "",
            )
            .await,
        &mut out,
    );
    let mut w = server.stream("echo", "SendStreamingMessage", &said("hi", "")).await;
    for e in w.events().await {
        out.push_str(&format!("{:?}\n", mask(&e)));
    }
    let a = server.call("echo", "SendMessage", &r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hold"}]},"configuration":{"returnImmediately":true}}"#).await;
    let id = member(&a.body, "id");
    p(a, &mut out);
    let mut w = server.stream("echo", "SubscribeToTask", &format!(r#"{{"id":"{id}"}}"#)).await;
    p(server.call("echo", "CancelTask", &format!(r#"{{"id":"{id}"}}"#)).await, &mut out);
    for e in w.events().await {
        out.push_str(&format!("{:?}\n", mask(&e)));
    }
    p(server.call("approver", "SendMessage", &said("jump", "")).await, &mut out);
    std::fs::write("/tmp/scratch.out", out).unwrap();
}
