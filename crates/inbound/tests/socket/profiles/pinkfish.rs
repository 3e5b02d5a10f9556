//! Pinkfish: one synchronous method that replies with messages; contexts instead of tasks.

use a2ad_inbound::{AgentSettings, AuthMethods, Profile};
use protocol::model::{ApiKeyLocation, SecurityScheme};

use super::{call, error, result, server_with, server_with_profile};
use crate::common::{Setup, mask, member, request};

/// The parameters of a send; `more` follows the parts.
fn send_params(text: &str, more: &str) -> String {
    format!(
        r#"{{"message":{{"kind":"message","messageId":"m","role":"user","parts":[{{"kind":"text","text":"{text}"}}]{more}}}}}"#
    )
}

fn in_context(text: &str, context: &str) -> String {
    send_params(text, &format!(r#","contextId":"{context}""#))
}

const NOT_FOUND: &str = r#"{"code":-32601,"message":"Method not found"}"#;

#[tokio::test]
async fn completed_send_returns_a_message_and_interrupted_send_its_task() {
    let server = server_with_profile(&Profile::pinkfish()).await;
    let answer = call(&server, "echo", "message/send", &send_params("hi", "")).await;
    assert_eq!((answer.status, answer.header("a2ad-dialect")), (200, Some("0.3;profile=pinkfish")));
    let message = r#"{"kind":"message","messageId":"UUID","contextId":"CTX","role":"agent","parts":[{"kind":"text","text":"hi"}]}"#;
    assert_eq!(mask(result(&answer)), message);
    let again = call(&server, "echo", "message/send", &send_params("hi", "")).await;
    assert_ne!(member(&answer.body, "messageId"), member(&again.body, "messageId"));
    assert_ne!(member(&answer.body, "contextId"), member(&again.body, "contextId"));

    for (text, state) in [("jump", "input-required"), ("login to it", "auth-required")] {
        let paused = call(&server, "approver", "message/send", &send_params(text, "")).await;
        assert!(result(&paused).starts_with(r#"{"kind":"task","id":"task_"#), "{}", paused.body);
        assert_eq!(member(&paused.body, "state"), state);
    }
    let chatted = call(&server, "chats", "message/send", &send_params("hi", "")).await;
    assert!(result(&chatted).starts_with(r#"{"kind":"message","#), "{}", chatted.body);
    assert!(chatted.body.contains("reply to hi"), "{}", chatted.body);
}

/// The draft has no bare messages: its clients get the task, with the id they chose.
#[tokio::test]
async fn draft_client_gets_its_task() {
    let server = server_with_profile(&Profile::pinkfish()).await;
    let params = r#"{"id":"mine","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}"#;
    for agent in ["echo", "chats"] {
        let answer = call(&server, agent, "tasks/send", params).await;
        let task = mask(result(&answer)).replace("\"mine\"", "\"TASK\"");
        assert!(
            task.starts_with(r#"{"id":"TASK","sessionId":"CTX","status":{"state":"completed","#),
            "{task}"
        );
        assert!(task.contains(r#""timestamp":"#), "{task}");
    }
}

#[tokio::test]
async fn send_always_waits_for_the_result() {
    let server = server_with_profile(&Profile::pinkfish()).await;
    for more in [r#""configuration":{"blocking":false}"#, r#""async":true"#] {
        let params = send_params("hi", "").replacen('{', &format!("{{{more},"), 1);
        let answer =
            call(&server, "slow-writer", "message/send", &params.replace("hi", "sections=1 delay=1ms")).await;
        assert!(result(&answer).starts_with(r#"{"kind":"message","#), "{}", answer.body);
    }
}

#[tokio::test]
async fn only_sends_are_supported() {
    let server = server_with_profile(&Profile::pinkfish()).await;
    let methods = [
        "message/stream",
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/list",
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "tasks/pushNotificationConfig/delete",
        "agent/getAuthenticatedExtendedCard",
        "tasks/make",
    ];
    let push = r#"{"taskId":"x","pushNotificationConfigId":"y","pushNotificationConfig":{"url":"http://x/"},"id":"x","#;
    for method in methods {
        let params = send_params("hi", "").replacen('{', push, 1);
        let answer = call(&server, "echo", method, &params).await;
        assert_eq!((answer.status, error(&answer)), (200, NOT_FOUND), "{method}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{method}");
    }
    for method in ["ListTasks", "GetTask", "SendStreamingMessage"] {
        let params =
            send_params("hi", "").replacen('{', r#"{"id":"x","#, 1).replace("\"user\"", "\"ROLE_USER\"");
        let answer = call(&server, "echo", method, &params).await;
        assert!(error(&answer).starts_with(r#"{"code":-32601,"#), "{method}: {}", answer.body);
    }
}

#[tokio::test]
async fn unsupported_methods_are_not_found_whatever_their_parameters() {
    let server = server_with_profile(&Profile::pinkfish()).await;
    for method in ["message/stream", "tasks/get", "tasks/pushNotificationConfig/set"] {
        let answer = call(&server, "echo", method, "{}").await;
        assert_eq!(error(&answer), NOT_FOUND, "{method}");
    }
}

#[tokio::test]
async fn context_id_resumes_the_task_that_waits_for_input() {
    let server = server_with_profile(&Profile::pinkfish()).await;
    let asked = call(&server, "approver", "message/send", &send_params("jump", "")).await;
    let context = member(&asked.body, "contextId");
    let done = call(&server, "approver", "message/send", &in_context("approve", &context)).await;
    assert!(result(&done).starts_with(r#"{"kind":"message","#), "{}", done.body);
    assert!(done.body.contains("Approved: jump"), "{}", done.body);
    assert_eq!(member(&done.body, "contextId"), context);
    // No task waits for input any more: the next message creates a new task in the same context.
    let next = call(&server, "approver", "message/send", &in_context("run", &context)).await;
    assert_eq!(member(&next.body, "state"), "input-required", "{}", next.body);
    assert!(next.body.contains("May I proceed with: run?"), "{}", next.body);
    assert_eq!(member(&next.body, "contextId"), context);
}

#[tokio::test]
async fn context_id_does_not_resume_a_task_in_other_profiles() {
    let server = server_with_profile(&Profile::neutral()).await;
    let asked = call(&server, "approver", "message/send", &send_params("jump", "")).await;
    let context = member(&asked.body, "contextId");
    let next = call(&server, "approver", "message/send", &in_context("approve", &context)).await;
    assert!(next.body.contains("May I proceed with: approve?"), "{}", next.body);
    assert_ne!(member(&next.body[30..], "id"), member(&asked.body[30..], "id"));
}

#[tokio::test]
async fn unknown_and_foreign_contexts_are_rejected_alike() {
    let server = server_with_profile(&Profile::pinkfish()).await;
    let foreign = call(&server, "approver", "message/send", &send_params("jump", "")).await;
    let foreign = member(&foreign.body, "contextId");
    let mut answers = Vec::new();
    for context in [foreign.as_str(), "unknown-context", "ctx_", &foreign.replace("ctx_", "ctx_0")[..33]] {
        let answer = call(&server, "echo", "message/send", &in_context("hi", context)).await;
        assert_eq!(answer.status, 200);
        answers.push(answer.body);
    }
    let problem = r#"{"field":"message.contextId","message":"expected a context of this agent, or none"}"#;
    let error =
        format!(r#"{{"code":-32602,"message":"Invalid parameters","data":{{"errors":[{problem}]}}}}"#);
    let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
    assert!(answers.iter().all(|answer| *answer == expected), "{answers:?}");
    // In other profiles an unknown context is created.
    let neutral = server_with_profile(&Profile::neutral()).await;
    let begun = call(&neutral, "echo", "message/send", &in_context("hi", "unknown-context")).await;
    assert_eq!(member(&begun.body, "contextId"), "unknown-context");
}

#[tokio::test]
async fn failed_or_rejected_task_is_an_internal_error() {
    let server = server_with_profile(&Profile::pinkfish()).await;
    let expected = r#"{"code":-32603,"message":"Internal error"}"#;
    for agent in ["fails", "panics"] {
        let failed = call(&server, agent, "message/send", &send_params("hi", "")).await;
        assert_eq!((failed.status, error(&failed)), (200, expected), "{agent}");
    }
    let asked = call(&server, "approver", "message/send", &send_params("jump", "")).await;
    let context = member(&asked.body, "contextId");
    let denied = call(&server, "approver", "message/send", &in_context("deny", &context)).await;
    assert_eq!((denied.status, error(&denied)), (200, expected));
    // In other profiles the reply is the task.
    let neutral = server_with_profile(&Profile::neutral()).await;
    let failed = call(&neutral, "fails", "message/send", &send_params("hi", "")).await;
    assert_eq!(member(&failed.body, "state"), "failed");
}

#[tokio::test]
async fn protocol_errors_are_200_missing_credentials_403_and_unknown_agents_404() {
    let server = server_with_profile(&Profile::pinkfish()).await;
    let cases = [
        ("{", -32700),
        (r#"{"jsonrpc":"1.0","id":1,"method":"message/send"}"#, -32600),
        (r#"{"id":1,"method":"message/send"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"message/make"}"#, -32601),
    ];
    for (body, code) in cases {
        let answer = server.post("/a2a/echo", body).await;
        assert_eq!((answer.status, answer.header("a2ad-dialect")), (200, Some("0.3;profile=pinkfish")));
        assert!(error(&answer).starts_with(&format!(r#"{{"code":{code},"#)), "{}", answer.body);
    }
    let empty = send_params("hi", "").replace(r#"{"kind":"text","text":"hi"}"#, "");
    let empty = call(&server, "echo", "message/send", &empty).await;
    assert!(error(&empty).starts_with(r#"{"code":-32602,"#), "{}", empty.body);

    let key = SecurityScheme::ApiKey {
        description: None,
        location: ApiKeyLocation::Header,
        name: "X-Api-Key".into(),
    };
    let closed = server_with(&Profile::pinkfish(), |settings| AgentSettings {
        auth: AuthMethods::NONE,
        security: vec![("ApiKey".into(), key.clone())],
        ..settings
    })
    .await;
    let refused = call(&closed, "echo", "message/send", &send_params("hi", "")).await;
    assert_eq!(refused.status, 403);
    assert_eq!(error(&refused), r#"{"code":-32010,"message":"Authentication required"}"#);

    let disabled =
        server_with(&Profile::pinkfish(), |settings| AgentSettings { enabled: false, ..settings }).await;
    let refused = call(&disabled, "echo", "message/send", &send_params("hi", "")).await;
    assert_eq!(refused.status, 404);
    assert_eq!(error(&refused), r#"{"code":-32011,"message":"Agent is not enabled"}"#);
    assert_eq!(disabled.get("/a2a/echo/.well-known/agent-card.json").await.status, 404);
    // An unknown agent has no profile.
    let nobody = call(&server, "nobody", "message/send", &send_params("hi", "")).await;
    assert_eq!((nobody.status, error(&nobody)), (404, r#"{"code":-32011,"message":"Agent is not enabled"}"#));
}

#[tokio::test]
async fn card_lists_the_endpoint_and_the_api_key() {
    let key = SecurityScheme::ApiKey {
        description: None,
        location: ApiKeyLocation::Header,
        name: "X-Api-Key".into(),
    };
    let mut setup = Setup::with(|options| options.default_agent = "demo".into());
    let settings = AgentSettings {
        profile: Profile::pinkfish(),
        auth: AuthMethods::NONE,
        security: vec![("ApiKey".into(), key)],
        ..AgentSettings::default()
    };
    setup.options.agents.insert("echo".into(), settings);
    let server = setup.open().await;
    let head = "GET /a2a/echo/.well-known/agent-card.json HTTP/1.1\r\na2a-version: 0.3";
    let card = server.exchange(head, "").await;
    assert_eq!(card.status, 200, "a card is public");
    assert_eq!(card.header("cache-control"), Some("private, max-age=60"));
    for member in [
        r#""protocolVersion":"0.3.0""#,
        r#""url":"http://example.test/a2a/echo""#,
        r#""preferredTransport":"JSONRPC""#,
        r#""capabilities":{"streaming":false,"pushNotifications":false,"#,
        r#""securitySchemes":{"ApiKey":{"type":"apiKey","in":"header","name":"X-Api-Key"}}"#,
        r#""security":[{"ApiKey":[]}]"#,
    ] {
        assert!(card.body.contains(member), "{member} in {}", card.body);
    }
    let called = server.post("/a2a/echo", &request("message/send", &send_params("hi", ""))).await;
    assert_eq!(called.status, 403);
}
