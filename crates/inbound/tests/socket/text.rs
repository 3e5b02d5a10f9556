//! The plain text binding.

mod json_messages;

use a2ad_inbound::{AgentSettings, AuthMethods, Profile};

use crate::common::{
    Answer, Server, Setup, agents,
    generation::{Client, Generation},
    mask, member,
};

async fn send_text(server: &Server, agent: &str, text: &str) -> Answer {
    server.exchange(&format!("POST /a2a/{agent} HTTP/1.1\r\ncontent-type: text/plain"), text).await
}

async fn open() -> Server {
    let agents = vec![agents::fails(), agents::chats(), agents::panics()];
    let mut setup = Setup { agents, ..Setup::default() };
    let settings = |enabled, auth| AgentSettings { enabled, auth, ..AgentSettings::default() };
    setup.options.agents.insert("currency".into(), settings(false, AuthMethods::ANONYMOUS));
    setup.options.agents.insert("demo".into(), settings(true, AuthMethods::NONE));
    setup.options.max_body_bytes = 1_000;
    setup.open().await
}

#[tokio::test]
async fn text_response_is_the_result_of_the_task() {
    let server = open().await;
    for (agent, text, state, answer) in [
        ("echo", "two\nlines, \"quoted\" ü", "completed", "two\nlines, \"quoted\" ü"),
        ("echo", "", "completed", ""),
        (
            "slow-writer",
            "sea sections=2 delay=1ms",
            "completed",
            "Section 1 of 2: more about sea.\n\nSection 2 of 2: more about sea.\n",
        ),
        ("approver", "jump", "input-required", "May I proceed with: jump? Answer approve or deny."),
        ("fails", "hi", "failed", "out of paper"),
    ] {
        let response = send_text(&server, agent, text).await;
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, Some("text/plain; charset=utf-8")),
            "{agent}"
        );
        assert_eq!((response.header("a2ad-state"), response.body.as_str()), (Some(state), answer), "{agent}");
        // The task can be read over the other bindings.
        let path = format!("/a2a/{agent}");
        let id = response.header("a2ad-task").unwrap();
        let got = Client { server: &server, path: &path, generation: Generation::V1 }.get(id).await;
        assert_eq!(got.history[0].text(), text, "{agent}");
    }
    // A task that requires authorization returns its text, and its data as JSON.
    let login = send_text(&server, "approver", "login").await;
    assert_eq!(login.header("a2ad-state"), Some("auth-required"));
    assert!(login.body.ends_with("\n{\"schemes\":[\"Bearer\"]}"), "{}", login.body);
    // A bare message has no task.
    let chatted = send_text(&server, "chats", "hi").await;
    assert_eq!((chatted.header("a2ad-task"), chatted.body.as_str()), (None, "reply to hi"));
}

#[tokio::test]
async fn content_type_may_have_parameters() {
    let server = open().await;
    for kind in ["text/plain; charset=utf-8", "Text/Plain", "text/plain;x=y"] {
        let head = format!("POST /a2a/echo HTTP/1.1\r\ncontent-type: {kind}");
        assert_eq!(server.exchange(&head, "hi").await.body, "hi", "{kind}");
    }
    // Only an agent's own path accepts text.
    for path in ["/", "/a2a", "/_a2a/", "/a2a/rpc"] {
        let head = format!("POST {path} HTTP/1.1\r\ncontent-type: text/plain");
        assert_eq!(server.exchange(&head, "hi").await.status, 415, "{path}");
    }
    let head = "POST /a2a/echo HTTP/1.1\r\ncontent-type: text/html";
    assert_eq!(server.exchange(head, "hi").await.status, 415);
}

#[tokio::test]
async fn errors_are_json_with_their_http_status() {
    let server = open().await;
    let long = "x".repeat(1_001);
    for (agent, text, status, code, reason) in [
        ("nobody", "hi", 404, -32000, "AGENT_DISABLED"),
        ("currency", "hi", 404, -32000, "AGENT_DISABLED"),
        ("demo", "hi", 401, -32000, "UNAUTHENTICATED"),
        ("echo", long.as_str(), 413, -32600, "BODY_TOO_LARGE"),
    ] {
        let answer = send_text(&server, agent, text).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (status, Some("application/json")),
            "{agent}"
        );
        assert!(answer.body.starts_with(&format!(r#"{{"error":{{"code":{code},"#)), "{}", answer.body);
        assert!(answer.body.contains(&format!(r#""reason":"{reason}""#)), "{}", answer.body);
        assert_eq!((answer.header("a2ad-task"), answer.header("a2ad-state")), (None, None), "{agent}");
    }
    let mut wire = server.connect().await;
    let head = "POST /a2a/echo HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n";
    wire.write(&[head.as_bytes(), &[0xff, 0xfe]].concat()).await;
    let answer = wire.answer().await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("PARSE_ERROR") && answer.body.contains("not UTF-8"), "{}", answer.body);
}

#[tokio::test]
async fn idempotency_key_deduplicates_texts() {
    let server = open().await;
    let head = "POST /a2a/echo HTTP/1.1\r\ncontent-type: text/plain\r\nidempotency-key: once";
    let first = server.exchange(head, "hi").await;
    let second = server.exchange(head, "hi").await;
    assert_eq!((first.header("a2ad-replayed"), second.header("a2ad-replayed")), (None, Some("true")));
    assert_eq!(first.header("a2ad-task"), second.header("a2ad-task"));
    let other = server.exchange(head, "ho").await;
    assert_eq!(other.status, 409, "{}", mask(&other.body));
    assert_eq!(member(&other.body, "reason"), "MESSAGE_ID_REUSED");
}

#[tokio::test]
async fn profile_does_not_change_a_text() {
    let mut setup = Setup::default();
    setup
        .options
        .agents
        .insert("echo".into(), AgentSettings { profile: Profile::pinkfish(), ..AgentSettings::default() });
    let server = setup.open().await;
    let response = send_text(&server, "echo", "hi").await;
    assert_eq!(
        (response.status, response.header("a2ad-state"), response.body.as_str()),
        (200, Some("completed"), "hi")
    );
}
