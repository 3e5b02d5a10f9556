//! AgentOS: the draft, with the spelling `cancelled` and the whole history.

use a2ad_inbound::Profile;
use protocol::Timestamp;

use super::{call, result, server_with_profile};
use crate::common::{NOW, Server, mask, member, request};

const PATH: &str = "/a2a/rpc";

fn send_params(id: &str, text: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","message":{{"role":"user","parts":[{{"type":"text","text":"{text}"}}]}}{more}}}"#
    )
}

#[tokio::test]
async fn task_includes_its_whole_history() {
    let server = Server::open().await;
    let params = send_params("mine", "hi", r#","sessionId":"talk","metadata":{"from":"here"}"#);
    let sent = server.post(PATH, &request("tasks/send", &params)).await;
    assert_eq!(sent.header("a2ad-dialect"), Some("draft;profile=agentos"));
    let part = r#"{"type":"text","text":"hi"}"#;
    let asked = format!(r#"{{"role":"user","parts":[{part}],"metadata":{{"a2ad":{{"messageId":"UUID"}}}}}}"#);
    let answer = format!(r#"{{"role":"agent","parts":[{part}]}}"#);
    let created = Timestamp::parse(NOW).unwrap().as_millis();
    let expected = format!(
        r#"{{"id":"mine","sessionId":"talk","status":{{"state":"completed","message":{answer},"timestamp":"{NOW}"}},"artifacts":[{{"name":"echo-result","parts":[{part}],"index":0}}],"history":[{asked},{answer}],"createdAt":{created},"metadata":{{"from":"here"}}}}"#
    );
    assert_eq!(mask(result(&sent)), expected);
    let got = server.post(PATH, &request("tasks/get", r#"{"id":"mine"}"#)).await;
    assert_eq!(result(&got), result(&sent));
    // A shorter history can be requested; other profiles send none unless requested.
    let history = async |path: &str, more: &str| {
        let params = format!(r#"{{"id":"mine"{more}}}"#);
        server.post(path, &request("tasks/get", &params)).await.body.matches(r#""role""#).count()
    };
    server.post(PATH, &request("tasks/send", &send_params("mine", "ho", ""))).await;
    // The answer is in the status too.
    assert_eq!(history(PATH, "").await, 3 + 1);
    assert_eq!(history(PATH, r#","historyLength":1"#).await, 1 + 1);
    assert_eq!(history("/", "").await, 0);
    assert_eq!(history("/", r#","historyLength":1"#).await, 1);
    assert_eq!(history("/_a2a/", "").await, 0);
}

#[tokio::test]
async fn canceled_state_is_spelled_cancelled() {
    let server = Server::open().await;
    for (path, spelling) in [(PATH, "cancelled"), ("/", "canceled"), ("/_a2a/", "canceled")] {
        let id = format!("of {path}");
        let sent =
            server.post(path, &request("tasks/send", &send_params(&id, "hold", r#","async":true"#))).await;
        assert_eq!(member(&sent.body, "state"), "working");
        let mut wire = server.connect().await;
        let about = format!(r#"{{"id":"{id}"}}"#);
        wire.send(&format!("POST {path} HTTP/1.1"), &request("tasks/resubscribe", &about)).await;
        assert_eq!(wire.head().await.status, 200);
        wire.event().await.unwrap();
        let canceled = server.post(path, &request("tasks/cancel", &about)).await;
        assert_eq!(member(&canceled.body, "state"), spelling, "{path}");
        assert_eq!(member(&wire.event().await.unwrap(), "state"), spelling, "{path}");
        let got = server.post(path, &request("tasks/get", &about)).await;
        assert_eq!(member(&got.body, "state"), spelling, "{path}");
    }
    // Requests of 1.0 get the spelling of 1.0.
    let got = server.post(PATH, &request("GetTask", &format!(r#"{{"id":"of {PATH}"}}"#))).await;
    assert_eq!(member(&got.body, "state"), "TASK_STATE_CANCELED", "{}", got.body);
}

#[tokio::test]
async fn card_lists_tools_and_short_modes() {
    let server = server_with_profile(&Profile::agentos()).await;
    let card = server.get("/a2a/approver/.well-known/agent.json").await.body;
    for member in [
        r#""url":"http://example.test/a2a/approver","#,
        r#""capabilities":{"tools":["approver","approver-auth"],"streaming":true,"#,
        r#""authentication":{"schemes":[]}"#,
        r#""defaultInputModes":["text"],"defaultOutputModes":["text"]"#,
    ] {
        assert!(card.contains(member), "{member} in {card}");
    }
    let newer = server.get("/a2a/approver/.well-known/agent-card.json").await.body;
    assert!(!newer.contains("\"tools\""), "{newer}");
    let pure = server
        .exchange("GET /a2a/approver/.well-known/agent-card.json HTTP/1.1\r\na2a-version: 1.0", "")
        .await;
    assert!(pure.body.contains(r#""defaultInputModes":["text/plain"]"#), "{}", pure.body);
    // The card's declarations hold.
    let asked = call(&server, "approver", "tasks/send", &send_params("x", "jump", "")).await;
    assert_eq!(member(&asked.body, "state"), "input-required");
}
