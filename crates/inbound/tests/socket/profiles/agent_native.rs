//! agent-native: 0.3, with parts that also have the draft's type tag.

use a2ad_inbound::{AgentSettings, AuthMethods, Profile};

use super::{call, error, result, server_with, server_with_profile};
use crate::common::{NOW, Server, Setup, mask, member, request};

const PATH: &str = "/_agent-native/a2a";

/// Its clients use the draft's type tag and send no message id.
fn send_params(text: &str, more: &str) -> String {
    format!(r#"{{"message":{{"role":"user","parts":[{{"type":"text","text":"{text}"}}]}}{more}}}"#)
}

#[tokio::test]
async fn parts_have_both_type_tags() {
    let server = Server::open().await;
    let sent = server.post(PATH, &request("message/send", &send_params("hi", ""))).await;
    assert_eq!(sent.header("a2ad-dialect"), Some("0.3;profile=agent-native"));
    let part = r#"{"kind":"text","type":"text","text":"hi"}"#;
    let answer = format!(
        r#"{{"kind":"message","messageId":"TASK-answer","contextId":"CTX","taskId":"TASK","role":"agent","parts":[{part}]}}"#
    );
    let expected = format!(
        r#"{{"kind":"task","id":"TASK","contextId":"CTX","status":{{"state":"completed","message":{answer},"timestamp":"{NOW}"}},"artifacts":[{{"artifactId":"echo-result","name":"echo-result","parts":[{part}]}}],"history":[{{"kind":"message","messageId":"UUID","contextId":"CTX","taskId":"TASK","role":"user","parts":[{part}]}},{answer}]}}"#
    );
    assert_eq!(mask(result(&sent)), expected);
    let parts = r#"[{"type":"data","data":{"a":1}},{"type":"file","file":{"name":"a","mimeType":"image/png","bytes":"AAEC"}}]"#;
    let params = format!(r#"{{"message":{{"role":"user","parts":{parts}}}}}"#);
    let sent = server.post(PATH, &request("message/send", &params)).await;
    let both = parts.replace(r#"{"type":"data""#, r#"{"kind":"data","type":"data""#);
    let both = both.replace(r#"{"type":"file""#, r#"{"kind":"file","type":"file""#);
    assert!(sent.body.contains(&both), "{}", sent.body);

    let body = request("message/stream", &send_params("hi", ""));
    let (mut wire, _) = server.open_stream(&format!("POST {PATH} HTTP/1.1"), &body).await;
    let events = wire.events().await;
    assert!(events[0].contains(r#""kind":"task""#) && events[0].contains(part), "{}", events[0]);
    assert!(events[2].contains(part), "{}", events[2]);
}

#[tokio::test]
async fn message_id_is_required_where_the_profile_does_not_make_it_optional() {
    let server = Server::open().await;
    for path in ["/", "/a2a", "/_a2a/"] {
        let answer = server.post(path, &request("message/send", &send_params("hi", ""))).await;
        assert!(error(&answer).starts_with(r#"{"code":-32602,"#), "{path}: {}", answer.body);
        assert!(error(&answer).contains("messageId"), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn top_level_async_flag_is_honoured() {
    let server = Server::open().await;
    let sent = server.post(PATH, &request("message/send", &send_params("hold", r#","async":true"#))).await;
    assert_eq!(member(&sent.body, "state"), "working", "{}", sent.body);
    let about = format!(r#"{{"id":"{}"}}"#, member(&sent.body[30..], "id"));
    let got = server.post(PATH, &request("tasks/get", &about)).await;
    assert!(result(&got).starts_with(r#"{"kind":"task","#), "{}", got.body);
    let canceled = server.post(PATH, &request("tasks/cancel", &about)).await;
    assert_eq!(member(&canceled.body, "state"), "canceled");
    // Metadata of the same name has no effect.
    let more = r#","metadata":{"async":true}"#;
    let sent = server.post(PATH, &request("message/send", &send_params("hi", more))).await;
    assert_eq!(member(&sent.body, "state"), "completed");
    // The context id may be beside the message.
    let sent =
        server.post(PATH, &request("message/send", &send_params("hi", r#","contextId":"talk""#))).await;
    assert_eq!(member(&sent.body, "contextId"), "talk");
}

#[tokio::test]
async fn streaming_methods_are_not_found_if_disabled() {
    for (profile, code) in
        [(Profile::agent_native(), -32601), (Profile::pinkfish(), -32601), (Profile::neutral(), -32004)]
    {
        let server = server_with(&profile, |settings| AgentSettings { streaming: false, ..settings }).await;
        let params = send_params("hi", "").replace(r#""role""#, r#""messageId":"m","role""#);
        for (method, params) in [("message/stream", params.as_str()), ("tasks/resubscribe", r#"{"id":"x"}"#)]
        {
            let head = "POST /a2a/echo HTTP/1.1\r\na2a-version: 0.3";
            let answer = server.exchange(head, &request(method, params)).await;
            assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
            let expected = format!(r#"{{"code":{code},"#);
            assert!(error(&answer).starts_with(&expected), "{} {method}: {}", profile.name, answer.body);
        }
        let card = server.get("/a2a/echo/.well-known/agent-card.json").await;
        assert!(card.body.contains(r#""streaming":false"#), "{}", card.body);
        if profile.name == "neutral" {
            let v1 =
                send_params("hi", "").replace(r#""role":"user""#, r#""messageId":"m","role":"ROLE_USER""#);
            let v1 = v1.replace(r#""type":"text","#, "");
            let answer = call(&server, "echo", "SendStreamingMessage", &v1).await;
            assert!(answer.body.contains("UNSUPPORTED_OPERATION"), "{}", answer.body);
            let draft = send_params("hi", r#","id":"x""#);
            let answer = call(&server, "echo", "tasks/sendSubscribe", &draft).await;
            let expected = r#"{"code":-32004,"message":"This operation is not supported","data":null}"#;
            assert_eq!(error(&answer), expected);
        }
    }
}

#[tokio::test]
async fn missing_credential_has_the_legacy_code() {
    let server = server_with(&Profile::agent_native(), |settings| AgentSettings {
        auth: AuthMethods::NONE,
        ..settings
    })
    .await;
    let refused = call(&server, "echo", "message/send", &send_params("hi", "")).await;
    assert_eq!(refused.status, 401);
    assert!(refused.header("www-authenticate").is_some());
    assert_eq!(error(&refused), r#"{"code":-32001,"message":"Authentication required"}"#);
    // The same at the profile's own path if the default agent requires a credential.
    let mut setup = Setup::default();
    setup
        .options
        .agents
        .insert("echo".into(), AgentSettings { auth: AuthMethods::NONE, ..AgentSettings::default() });
    let server = setup.open().await;
    for (path, code) in [(PATH, -32001), ("/", -32010), ("/_a2a/", -32010), ("/a2a/rpc", -32010)] {
        let refused = server.post(path, &request("message/send", &send_params("hi", ""))).await;
        let expected = format!(r#"{{"code":{code},"message":"Authentication required""#);
        assert_eq!(refused.status, 401, "{path}");
        assert!(error(&refused).starts_with(&expected), "{path}: {}", refused.body);
    }
}

#[tokio::test]
async fn card_has_the_form_of_the_profile() {
    let server = server_with_profile(&Profile::agent_native()).await;
    let card =
        server.exchange("GET /.well-known/agent-card.json HTTP/1.1\r\na2a-version: 0.3", "").await.body;
    for member in [
        r#""url":"http://example.test","#,
        r#""protocolVersion":"0.3","#,
        r#""capabilities":{"streaming":true,"pushNotifications":false,"stateTransitionHistory":true}"#,
    ] {
        assert!(card.contains(member), "{member} in {card}");
    }
    let other = server.get("/a2a/approver/.well-known/agent-card.json").await.body;
    assert_eq!(member(&other, "url"), "http://example.test/a2a/approver");
}
