//! Every path that accepts JSON-RPC, and its compatibility profile.

use a2ad_inbound::{AgentSettings, Profile};
use protocol::Role;

use crate::common::{
    Server, Setup,
    generation::{Client, Generation, TaskSummary, UserMessage},
    member, request,
};

/// The paths of the default agent, the profile of each, and the generation it assumes for shared method names; `None`
/// if that depends on the task.
const ENDPOINTS: [(&str, &str, Option<&str>); 21] = [
    ("/", "neutral", None),
    ("/?x=y", "neutral", None),
    ("/a2a", "neutral", None),
    ("/a2a/", "neutral", None),
    ("/a2a/echo", "neutral", None),
    ("/_a2a", "fold", Some("draft")),
    ("/_a2a/", "fold", Some("draft")),
    ("/_agent-native/a2a", "agent-native", Some("0.3")),
    ("/_agent-native/a2a/", "agent-native", Some("0.3")),
    ("/a2a/rpc", "agentos", Some("draft")),
    ("/a2a/rpc/", "agentos", Some("draft")),
    ("/tasks/send", "neutral", Some("draft")),
    ("/tasks/sendSubscribe", "neutral", Some("draft")),
    ("/tasks/get", "neutral", Some("draft")),
    ("/tasks/cancel", "neutral", Some("draft")),
    ("/a2a/tasks/send", "neutral", Some("draft")),
    ("/a2a/tasks/sendSubscribe", "neutral", Some("draft")),
    ("/a2a/tasks/get", "neutral", Some("draft")),
    ("/a2a/tasks/cancel", "neutral", Some("draft")),
    ("/a2a/echo?x", "neutral", None),
    ("/a2a/echo/", "neutral", None),
];

#[tokio::test]
async fn every_endpoint_serves_the_same_agent_in_every_generation() {
    let server = Server::open().await;
    let at_home = |generation| Client { server: &server, path: "/", generation };
    for (path, profile, _) in ENDPOINTS {
        for generation in Generation::ALL {
            let here = Client { path, ..at_home(generation) };
            let made = TaskSummary::of(&here.send(UserMessage::new("hi")).await);
            assert_eq!(made.artifacts, [(Some("echo-result".into()), "hi".into())], "{path} {generation:?}");
            // All paths share one store.
            let stored = TaskSummary::of(&at_home(generation).get(&made.id).await);
            // What a profile adds to a response is not stored.
            let asked = made.history.iter().filter(|(role, _)| *role == Role::User).cloned().collect();
            let made = TaskSummary { status_text: None, history: asked, ..made };
            assert_eq!(stored, made, "{path} {generation:?}");
            let sent = here.try_send(UserMessage::new("ho")).await;
            let label = format!("{};profile={profile}", generation.name());
            assert_eq!(sent.header("a2ad-dialect"), Some(label.as_str()), "{path}");
        }
    }
}

#[tokio::test]
async fn endpoint_profile_selects_the_generation_of_shared_names() {
    let server = Server::open().await;
    for creator in Generation::ALL {
        let client = Client { server: &server, path: "/", generation: creator };
        let id = client.send(UserMessage::new("hi")).await.id;
        let body = request("tasks/get", &format!(r#"{{"id":"{id}"}}"#));
        for (path, profile, meant) in ENDPOINTS {
            let origin = if creator == Generation::Draft { "draft" } else { "0.3" };
            let label = format!("{};profile={profile}", meant.unwrap_or(origin));
            let answer = server.post(path, &body).await;
            assert_eq!(answer.header("a2ad-dialect"), Some(label.as_str()), "{path} {creator:?}");
            assert_eq!(answer.body.contains(r#""kind":"task""#), label.starts_with("0.3"), "{}", answer.body);
            // A named version takes precedence.
            let head = format!("POST {path} HTTP/1.1\r\na2a-version: 0.3");
            let answer = server.exchange(&head, &body).await;
            assert!(answer.body.contains(r#""kind":"task""#), "{path}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn decoding_error_is_in_the_generation_of_the_profile() {
    let server = Server::open().await;
    let unknown = request("tasks/make", "{}");
    for (path, profile, meant) in ENDPOINTS {
        let dialect = meant.unwrap_or("draft");
        let label = format!("{dialect};profile={profile}");
        for body in ["{", "[]", unknown.as_str(), r#"{"jsonrpc":"2.0"}"#] {
            let answer = server.post(path, body).await;
            assert_eq!(answer.header("a2ad-dialect"), Some(label.as_str()), "{path}");
            assert!(answer.body.contains("\"error\":"), "{}", answer.body);
        }
        let answer = server.post(path, &unknown).await;
        assert_eq!(answer.body.contains(r#""data":null"#), dialect == "draft", "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn agents_profile_applies_at_its_own_path_and_at_the_root() {
    let mut setup = Setup::default();
    setup
        .options
        .agents
        .insert("echo".into(), AgentSettings { profile: Profile::agentos(), ..AgentSettings::default() });
    let server = setup.open().await;
    for (path, profile) in
        [("/a2a/echo", "agentos"), ("/", "agentos"), ("/a2a", "agentos"), ("/_a2a/", "fold")]
    {
        let client = Client { server: &server, path, generation: Generation::Draft };
        let answer = client.try_send(UserMessage::new("hi")).await;
        assert_eq!(
            answer.header("a2ad-dialect"),
            Some(format!("draft;profile={profile}").as_str()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn paths_of_the_package_python_a2a_are_served() {
    let server = Server::open().await;
    for base in ["", "/a2a"] {
        // The package's own form of a message, which is not the draft's.
        let message = r#"{"content":{"type":"text","text":"hi"},"role":"user","message_id":"m"}"#;
        let params = format!(r#"{{"id":"py-{}","message":{message}}}"#, base.len());
        let sent = server.post(&format!("{base}/tasks/send"), &request("tasks/send", &params)).await;
        assert_eq!((sent.status, member(&sent.body, "state")), (200, "completed".into()), "{}", sent.body);
        let part = r#""artifacts":[{"name":"echo-result","parts":[{"type":"text","text":"hi"}],"index":0}]"#;
        assert!(sent.body.contains(part), "{}", sent.body);
        let about = format!(r#"{{"id":"{}"}}"#, member(&sent.body, "id"));
        let got = server.post(&format!("{base}/tasks/get"), &request("tasks/get", &about)).await;
        assert!(got.body.contains(part), "{}", got.body);
        let canceled = server.post(&format!("{base}/tasks/cancel"), &request("tasks/cancel", &about)).await;
        assert!(canceled.body.contains(r#""code":-32002"#), "{}", canceled.body);
    }
}

#[tokio::test]
async fn paths_similar_to_an_endpoint_are_not_found() {
    let server = Server::open().await;
    let body = request("ListTasks", "{}");
    for path in ["/_a2a/echo", "/_agent-native", "/_agent-native/a2a/more", "/a2a/rpc/more", "/A2A"] {
        let answer = server.post(path, &body).await;
        assert_eq!((answer.status, answer.header("content-type")), (404, Some("application/json")), "{path}");
        assert!(answer.body.contains(r#""code":-32601"#), "{path}: {}", answer.body);
    }
    // A reserved path name is not an agent.
    let card = server.get("/a2a/rpc/.well-known/agent.json").await;
    assert_eq!(card.status, 404);
}
