//! Every method of A2A 1.0, with its complete response.

use crate::common::{NOW, Server, mask, member, request, send_params};

/// A message in a response.
fn message(id: &str, role: &str, text: &str) -> String {
    format!(
        r#"{{"messageId":"{id}","contextId":"CTX","taskId":"TASK","role":"ROLE_{role}","parts":[{{"text":"{text}"}}]}}"#
    )
}

fn status(state: &str) -> String {
    format!(r#"{{"state":"TASK_STATE_{state}","timestamp":"{NOW}"}}"#)
}

/// The task that `echo` returns for `hi`; `artifacts` is whether they are included.
fn echoed(artifacts: bool) -> String {
    let artifacts = if artifacts {
        r#""artifacts":[{"artifactId":"echo-result","name":"echo-result","parts":[{"text":"hi"}]}],"#
    } else {
        ""
    };
    let (status, asked) = (status("COMPLETED"), message("m", "USER", "hi"));
    format!(r#"{{"id":"TASK","contextId":"CTX","status":{status},{artifacts}"history":[{asked}]}}"#)
}

fn result(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

#[tokio::test]
async fn task_is_sent_read_and_listed() {
    let server = Server::open().await;
    let sent = server.call("echo", "SendMessage", &send_params("hi", "")).await;
    assert_eq!((sent.status, sent.header("content-type")), (200, Some("application/json")));
    assert_eq!(mask(&sent.body), result(&format!(r#"{{"task":{}}}"#, echoed(true))));

    let id = member(&sent.body, "id");
    let got = server.call("echo", "GetTask", &format!(r#"{{"id":"{id}"}}"#)).await;
    assert_eq!(mask(&got.body), result(&echoed(true)));
    let bare = server.call("echo", "GetTask", &format!(r#"{{"id":"{id}","historyLength":0}}"#)).await;
    assert!(!bare.body.contains("history"));

    let listed = server.call("echo", "ListTasks", "{}").await;
    let page = |tasks: &str| {
        result(&format!(r#"{{"tasks":[{tasks}],"nextPageToken":"","pageSize":50,"totalSize":1}}"#))
    };
    assert_eq!(mask(&listed.body), page(&echoed(false)));
    let listed = server.call("echo", "ListTasks", r#"{"includeArtifacts":true}"#).await;
    assert_eq!(mask(&listed.body), page(&echoed(true)));
    let elsewhere = server.call("approver", "ListTasks", "{}").await;
    assert_eq!(
        elsewhere.body,
        result(r#"{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}"#),
        "another agent's tasks are not this one's"
    );
}

#[tokio::test]
async fn page_token_leads_to_the_next_page() {
    let server = Server::open().await;
    for _ in 0..3 {
        server.call("echo", "SendMessage", &send_params("hi", "")).await;
    }
    let first = server.call("echo", "ListTasks", r#"{"pageSize":2}"#).await.body;
    assert!(first.ends_with(r#","pageSize":2,"totalSize":3}}"#), "{first}");
    let token = member(&first, "nextPageToken");
    let params = format!(r#"{{"pageSize":2,"pageToken":"{token}"}}"#);
    let second = server.call("echo", "ListTasks", &params).await.body;
    assert!(second.ends_with(r#","nextPageToken":"","pageSize":2,"totalSize":3}}"#), "{second}");
    assert_eq!((first.matches("artifactId").count(), first.matches(r#"{"id":"#).count()), (0, 2));
    assert_eq!(second.matches(r#"{"id":"#).count(), 1);
}

#[tokio::test]
async fn input_is_provided_and_task_is_cancelled() {
    let server = Server::open().await;
    let asked = server.call("approver", "SendMessage", &send_params("jump", "")).await;
    let question = message("UUID", "AGENT", "May I proceed with: jump? Answer approve or deny.");
    let expected = format!(
        r#"{{"task":{{"id":"TASK","contextId":"CTX","status":{{"state":"TASK_STATE_INPUT_REQUIRED","message":{question},"timestamp":"{NOW}"}},"history":[{},{question}]}}}}"#,
        message("m", "USER", "jump"),
    );
    assert_eq!(mask(&asked.body), result(&expected));

    let id = member(&asked.body, "id");
    let response = server
        .call("approver", "SendMessage", &send_params("approve", &format!(r#","taskId":"{id}""#)))
        .await;
    assert!(
        response.body.contains("TASK_STATE_COMPLETED") && response.body.contains("Approved: jump"),
        "{}",
        response.body
    );
    assert_eq!(member(&response.body, "id"), id);

    let params = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hold"}]},"configuration":{"returnImmediately":true}}"#;
    let held = server.call("echo", "SendMessage", params).await;
    let task = |state: &str| {
        let (status, asked) = (status(state), message("m", "USER", "hold"));
        format!(r#"{{"id":"TASK","contextId":"CTX","status":{status},"history":[{asked}]}}"#)
    };
    assert_eq!(mask(&held.body), result(&format!(r#"{{"task":{}}}"#, task("WORKING"))));
    let id = member(&held.body, "id");
    let canceled = server.call("echo", "CancelTask", &format!(r#"{{"id":"{id}"}}"#)).await;
    assert_eq!(mask(&canceled.body), result(&task("CANCELED")));
}

#[tokio::test]
async fn parts_are_returned_unchanged() {
    let server = Server::open().await;
    let parts = r#"[{"text":"tab\t\u0001 \"ü\""},{"raw":"AAEC","filename":"a.bin","mediaType":"application/x"},{"url":"https://example.test/x"},{"data":{"n":9007199254740993,"x":1.0}}]"#;
    let params = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":{parts}}}}}"#);
    let sent = server.call("echo", "SendMessage", &params).await.body;
    let start = sent.find(r#""parts":"#).unwrap();
    assert!(sent[start + 8..].starts_with(parts), "{sent}");
}

#[tokio::test]
async fn request_ids_are_echoed_at_both_paths_of_the_agent() {
    let server = Server::open().await;
    for id in ["7", "\"seven\"", "null", "-1", "123456789012345678901234567890"] {
        let body = request("ListTasks", "{}").replace(r#""id":1"#, &format!(r#""id":{id}"#));
        for path in ["/", "/a2a/echo", "/?x=y"] {
            let answer = server.post(path, &body).await;
            assert!(
                answer.body.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)),
                "{}",
                answer.body
            );
        }
    }
}

#[tokio::test]
async fn repeated_message_is_replayed_and_marked() {
    let server = Server::open().await;
    let params = send_params("hi", "").replace(r#""m""#, r#""3f2b8c1e-7d4a-4b6f-9c0d-5e8a1b2c3d4e""#);
    let first = server.call("echo", "SendMessage", &params).await;
    let second = server.call("echo", "SendMessage", &params).await;
    assert_eq!(first.body, second.body);
    assert_eq!((first.header("a2ad-replayed"), second.header("a2ad-replayed")), (None, Some("true")));
}

#[tokio::test]
async fn unknown_tenant_is_rejected() {
    let server = Server::open().await;
    let send = |tenant: &str| {
        let message = send_params("hi", "");
        request("SendMessage", &format!(r#"{{"tenant":"{tenant}",{}"#, &message[1..]))
    };
    for tenant in ["", "default"] {
        let answer = server.post("/a2a/echo", &send(tenant)).await;
        assert!(answer.body.contains("TASK_STATE_COMPLETED"), "{tenant}: {}", answer.body);
    }
    let answer = server.post("/a2a/echo", &send("acme")).await;
    assert_eq!((answer.status, member(&answer.body, "reason").as_str()), (404, "AGENT_DISABLED"));
    assert!(answer.body.contains(r#"unknown tenant \"acme\""#), "{}", answer.body);
}

#[tokio::test]
async fn skill_request_is_answered_by_naming_a_skill() {
    let server = Server::open().await;
    let asked = server.call("demo", "SendMessage", &send_params("good morning", "")).await.body;
    assert!(asked.contains("TASK_STATE_INPUT_REQUIRED") && asked.contains("Which skill"), "{asked}");
    let answer = |text: &str, skill: &str| {
        let params = send_params(text, &format!(r#","taskId":"{}""#, member(&asked, "id")));
        params.replace("\"}}", &format!(r#""}},"metadata":{{"skillId":"{skill}"}}}}"#))
    };
    let chosen = server.call("demo", "SendMessage", &answer("how much is 1 USD?", "currency")).await.body;
    assert!(chosen.contains("TASK_STATE_INPUT_REQUIRED") && chosen.contains("Which currency"), "{chosen}");
    let other = server.call("demo", "SendMessage", &answer("CAD", "echo")).await.body;
    assert!(other.contains(r#""field":"metadata.skillId""#), "{other}");
    let done = server.call("demo", "SendMessage", &answer("CAD", "currency")).await.body;
    assert!(done.contains("TASK_STATE_COMPLETED"), "{done}");
}
