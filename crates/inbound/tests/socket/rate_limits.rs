//! Rate limits: which calls count, by whom, and how a refusal looks in every binding and dialect.

use std::time::{Duration, Instant};

use a2ad_inbound::{AgentSettings, Profile, RateLimits};
use engine::{AuthMethod, AuthMethods, DEFAULT_TENANT, NewApiKey};
use protocol::{ErrorKind, Operation, grpc::Service};

use crate::common::{Answer, Server, Setup, channel::Channel, member, request, send_params};

const SEND: &str = "POST /a2a/echo HTTP/1.1\r\na2a-version: 1.0";

fn limits(per_key: &str, per_agent: &str) -> RateLimits {
    RateLimits { per_key: per_key.parse().ok(), per_tenant: None, per_agent: per_agent.parse().ok() }
}

/// A server whose agents identify callers by the header `test-caller`.
async fn open(rate_limits: RateLimits) -> Server {
    Setup::with(|options| options.rate_limits = rate_limits).open_with_callers().await
}

/// Sends a message as a caller.
async fn send(server: &Server, head: &str, caller: &str) -> Answer {
    let body = request("SendMessage", &send_params("hi", ""));
    server.exchange(&format!("{head}\r\ntest-caller: {caller}"), &body).await
}

#[tokio::test]
async fn a_caller_over_its_rate_is_refused_and_others_are_served() {
    let server = open(limits("3/min", "")).await;
    for _ in 0..3 {
        assert_eq!(send(&server, SEND, "alice").await.status, 200);
    }
    let refused = send(&server, SEND, "alice").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("20")), "{refused:?}");
    assert!(
        refused.body.contains(r#""code":-32000"#) && refused.body.contains("RATE_LIMITED"),
        "{refused:?}"
    );
    assert!(refused.body.contains(r#""limit":"3/min""#), "{refused:?}");
    assert!(refused.body.contains("you may call 3/min; call again in 20 s"), "{refused:?}");
    // The rate of a principal is that of all its agents and paths.
    assert_eq!(send(&server, "POST /a2a/demo HTTP/1.1\r\na2a-version: 1.0", "alice").await.status, 429);
    for _ in 0..3 {
        assert_eq!(send(&server, SEND, "bob").await.status, 200);
    }
    // What has no caller is not counted.
    for path in ["/.well-known/agent-card.json", "/.well-known/agents.json", "/healthz", "/readyz"] {
        let answer = server.exchange(&format!("GET {path} HTTP/1.1\r\ntest-caller: alice"), "").await;
        assert_eq!(answer.status, 200, "{path}");
    }
    server.engine.clock().advance(Duration::from_secs(20));
    assert_eq!(send(&server, SEND, "alice").await.status, 200);
    assert_eq!(send(&server, SEND, "alice").await.status, 429);
}

#[tokio::test]
async fn a_caller_that_goes_on_calling_waits_for_its_refusals() {
    let server = open(limits("1/h", "")).await;
    assert_eq!(send(&server, SEND, "alice").await.status, 200);
    for _ in 0..20 {
        assert_eq!(send(&server, SEND, "alice").await.status, 429);
    }
    let started = Instant::now();
    let refused = send(&server, SEND, "alice").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("3600")), "{refused:?}");
    assert!(started.elapsed() >= Duration::from_millis(200), "{:?}", started.elapsed());
    assert_eq!(send(&server, SEND, "bob").await.status, 200);
}

#[tokio::test]
async fn refusals_have_the_form_of_the_binding_and_dialect() {
    let setup = Setup::with(|options| {
        options.rate_limits = limits("1/h", "");
        let settings = AgentSettings { profile: Profile::pinkfish(), ..AgentSettings::default() };
        options.agents = [("approver".to_owned(), settings)].into();
    });
    let server = setup.open_with_callers().await;
    assert_eq!(send(&server, SEND, "alice").await.status, 200);
    let rpc = request("message/send", "{}");
    for (number, (head, body, expected)) in (0_u8..).zip([
        ("POST /a2a/echo HTTP/1.1", rpc.as_str(), r#""code":-32012,"message":"Rate limit exceeded""#),
        ("POST /a2a/echo HTTP/1.1\r\na2a-version: 0.3", &rpc, r#""code":-32012"#),
        ("POST /_a2a/ HTTP/1.1", &rpc, r#""code":-32012"#),
        ("POST /a2a/approver HTTP/1.1", &rpc, r#""code":-32012"#),
        ("POST /a2a/echo/message:send HTTP/1.1", "{}", r#""status":"RESOURCE_EXHAUSTED""#),
        ("POST /v1/message:send HTTP/1.1", "{}", "Rate limit exceeded"),
        ("GET /tasks HTTP/1.1", "", r#""reason":"RATE_LIMITED""#),
        ("POST /a2a/echo HTTP/1.1\r\ncontent-type: text/plain", "hi", "RATE_LIMITED"),
        ("POST /run/echo HTTP/1.1\r\ncontent-type: text/plain", "hi", "RATE_LIMITED"),
    ]) {
        let refused = server.exchange(&format!("{head}\r\ntest-caller: alice"), body).await;
        assert_eq!(
            (refused.status, refused.header("retry-after")),
            // The profile of this agent.
            (if head.starts_with("POST /a2a/approver") { 200 } else { 429 }, Some("3600")),
            "{head} {refused:?}"
        );
        assert!(refused.body.contains(expected), "{head} {refused:?}");
        let other = server.exchange(&format!("{head}\r\ntest-caller: {number}"), body).await;
        assert_ne!(other.status, 429, "another caller: {head}");
    }
    if cfg!(feature = "mcp") {
        let head = "POST /mcp HTTP/1.1\r\ntest-caller: alice\r\ncontent-type: application/json";
        let refused = server.exchange(head, &request("tools/list", "{}")).await;
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("3600")), "{refused:?}");
    }
}

/// The body of a refused request is not waited for.
#[tokio::test]
async fn calls_are_refused_before_their_body_is_read() {
    let server = open(limits("1/h", "")).await;
    assert_eq!(send(&server, SEND, "alice").await.status, 200);
    let mut wire = server.connect().await;
    let head = format!("{SEND}\r\nhost: x\r\ntest-caller: alice\r\ncontent-length: 1000\r\n\r\n");
    wire.write(head.as_bytes()).await;
    assert_eq!(wire.head().await.status, 429);
}

#[tokio::test]
async fn open_streams_are_not_cut() {
    let server = open(limits("2/h", "")).await;
    let hold = request("SendStreamingMessage", &send_params("hold", ""));
    let (mut stream, _) = server.open_stream(&format!("{SEND}\r\ntest-caller: alice"), &hold).await;
    let first = stream.event().await.unwrap();
    let task = member(&first, "id");
    let cancel = request("CancelTask", &format!(r#"{{"id":"{task}"}}"#));
    let canceled = server.exchange(&format!("{SEND}\r\ntest-caller: alice"), &cancel).await;
    assert_eq!(canceled.status, 200, "{canceled:?}");
    assert_eq!(send(&server, SEND, "alice").await.status, 429);
    assert!(stream.events().await.concat().contains("TASK_STATE_CANCELED"));
}

#[tokio::test]
async fn an_agent_over_its_rate_leaves_the_others_alone() {
    let server = open(limits("", "2/h")).await;
    for caller in ["alice", "bob"] {
        assert_eq!(send(&server, SEND, caller).await.status, 200);
    }
    let refused = send(&server, SEND, "carol").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1800")));
    assert!(refused.body.contains("this agent"), "{refused:?}");
    assert_eq!(send(&server, "POST /a2a/demo HTTP/1.1\r\na2a-version: 1.0", "carol").await.status, 200);
    if cfg!(feature = "mcp") {
        // A request that calls no agent is none of its calls.
        let head = "POST /a2a/echo/mcp HTTP/1.1\r\naccept: application/json, text/event-stream\r\n\
                    content-type: application/json";
        let params =
            r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
        assert_eq!(server.exchange(head, &request("initialize", params)).await.status, 200);
    }
}

#[tokio::test]
async fn grpc_names_its_agent_in_the_message_and_says_when_to_retry() {
    let keyed = AgentSettings {
        auth: AuthMethods::NONE.with(AuthMethod::ApiKey).with(AuthMethod::Anonymous),
        ..AgentSettings::default()
    };
    let server = Setup::with(|options| {
        options.rate_limits = limits("3/h", "2/h");
        options.agents = [("echo".to_owned(), keyed)].into();
    })
    .open()
    .await;
    let new = NewApiKey { tenant: DEFAULT_TENANT, agent: "echo", owner: Some("alice"), prefix: "a2ad_" };
    let key = server.engine.create_api_key(&new, 20).await.unwrap().1.expose().to_owned();
    let channel = Channel::open(&server).await;
    let list = |agent: &str| {
        Operation::ListTasks(protocol::ListTasks {
            tenant: Some(format!("default/{agent}")),
            ..Default::default()
        })
    };
    let metadata = [("x-api-key", key.as_str())];
    for _ in 0..2 {
        assert_eq!(channel.call(Service::V1, &list("echo"), &metadata).await.status.code, 0);
    }
    let agent = channel.call(Service::V1, &list("echo"), &metadata).await.status;
    assert_eq!((agent.code, agent.error.unwrap().kind), (8, ErrorKind::RateLimited));
    assert!(agent.message.contains("this agent"), "{}", agent.message);
    let caller = channel.call(Service::V1, &list("echo"), &metadata).await.status;
    assert!(caller.code == 8 && caller.message.contains("you may call 3/h"), "{caller:?}");
    let details = caller.trailers["grpc-status-details-bin"].to_str().unwrap().to_owned();
    use base64::Engine as _;
    let details = base64::engine::general_purpose::STANDARD_NO_PAD.decode(details).unwrap();
    let details = String::from_utf8_lossy(&details);
    assert!(details.contains("google.rpc.RetryInfo") && details.contains("retryAfter"), "{details}");
}

/// The tests' listener is on loopback.
#[tokio::test]
async fn anonymous_callers_on_loopback_are_not_limited_and_those_behind_a_proxy_are_by_address() {
    let server = Setup::with(|options| {
        options.rate_limits = limits("1/h", "");
        options.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .open()
    .await;
    let body = request("SendMessage", &send_params("hi", ""));
    for _ in 0..5 {
        assert_eq!(server.exchange(SEND, &body).await.status, 200);
    }
    let from = async |client: &str| {
        server.exchange(&format!("{SEND}\r\nx-forwarded-for: {client}"), &body).await.status
    };
    assert_eq!(from("192.0.2.1").await, 200);
    assert_eq!(from("192.0.2.1").await, 429);
    assert_eq!(from("6.6.6.6, 192.0.2.1").await, 429, "a client cannot choose its address");
    assert_eq!(from("192.0.2.2").await, 200);
    // Clients that the proxy does not name share one limit.
    assert_eq!(from("unknown").await, 200);
    assert_eq!(from("unknown").await, 429);
    assert_eq!(from("2001:db8::1").await, 200);
    assert_eq!(from("2001:db8::2").await, 429, "the same network");
}

#[tokio::test]
async fn wrong_credentials_are_limited_by_address_and_valid_ones_are_not() {
    let keyed =
        AgentSettings { auth: AuthMethods::NONE.with(AuthMethod::ApiKey), ..AgentSettings::default() };
    let server = Setup::with(|options| {
        options.rate_limits = limits("3/h", "");
        options.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
        options.agents = [("echo".to_owned(), keyed)].into();
    })
    .open()
    .await;
    let new = NewApiKey { tenant: DEFAULT_TENANT, agent: "echo", owner: Some("alice"), prefix: "a2ad_" };
    let key = server.engine.create_api_key(&new, 20).await.unwrap().1.expose().to_owned();
    let body = request("message/send", "{}");
    let with = async |client: &str, credential: &str| {
        let head = format!("POST /a2a/echo HTTP/1.1\r\nx-forwarded-for: {client}\r\nx-api-key: {credential}");
        server.exchange(&head, &body).await
    };
    for _ in 0..3 {
        assert_eq!(with("192.0.2.1", "a2ad_wrong").await.status, 401);
    }
    let refused = with("192.0.2.1", "a2ad_other").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1200")), "{refused:?}");
    assert!(refused.body.contains(r#""code":-32012"#), "{refused:?}");
    assert_eq!(with("192.0.2.2", "a2ad_wrong").await.status, 401, "another address");
    assert_eq!(with("192.0.2.1", &key).await.status, 200, "a valid key at the same address");
    // On loopback, neither callers without a credential nor wrong ones are limited.
    for _ in 0..5 {
        let head = "POST /a2a/echo HTTP/1.1\r\nx-api-key: a2ad_wrong";
        assert_eq!(server.exchange(head, &body).await.status, 401);
    }
    server.engine.clock().advance(Duration::from_secs(1_200));
    assert_eq!(with("192.0.2.1", "a2ad_wrong").await.status, 401);
}
