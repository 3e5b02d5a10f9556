//! Every path that takes JSON-RPC, and the house style it has.

use a2ad_inbound::{AgentSettings, Profile};

use crate::common::{
    Server, Setup, member, request,
    tongue::{Client, Facts, Tongue, Words},
};

/// The paths of the default agent, the house of each, and what it takes the names that generations share for; where
/// it says nothing, the task tells.
const MOUNTS: [(&str, &str, Option<&str>); 19] = [
    ("/", "neutral", None),
    ("/?x=y", "neutral", None),
    ("/a2a", "neutral", None),
    ("/a2a/", "neutral", None),
    ("/a2a/echo", "neutral", None),
    ("/_a2a", "fold", Some("draft")),
    ("/_a2a/", "fold", Some("draft")),
    ("/_agent-native/a2a", "agent-native", Some("v03")),
    ("/_agent-native/a2a/", "agent-native", Some("v03")),
    ("/a2a/rpc", "agentos", Some("draft")),
    ("/tasks/send", "neutral", Some("draft")),
    ("/tasks/sendSubscribe", "neutral", Some("draft")),
    ("/tasks/get", "neutral", Some("draft")),
    ("/tasks/cancel", "neutral", Some("draft")),
    ("/a2a/tasks/send", "neutral", Some("draft")),
    ("/a2a/tasks/sendSubscribe", "neutral", Some("draft")),
    ("/a2a/tasks/get", "neutral", Some("draft")),
    ("/a2a/tasks/cancel", "neutral", Some("draft")),
    ("/a2a/echo?x", "neutral", None),
];

#[tokio::test]
async fn every_mount_leads_to_the_same_agent_and_speaks_every_generation() {
    let server = Server::open().await;
    let at_home = |tongue| Client { server: &server, path: "/", tongue };
    for (path, house, _) in MOUNTS {
        for tongue in Tongue::ALL {
            let here = Client { path, ..at_home(tongue) };
            let made = Facts::of(&here.send(Words::new("hi")).await);
            assert_eq!(made.artifacts, [(Some("echo-result".into()), "hi".into())], "{path} {tongue:?}");
            // It is the same store behind all of them.
            assert_eq!(Facts::of(&at_home(tongue).get(&made.id).await), made, "{path} {tongue:?}");
            let sent = here.say(Words::new("ho")).await;
            let label = format!("{};profile={house}", tongue.name());
            assert_eq!(sent.header("a2ad-dialect"), Some(label.as_str()), "{path}");
        }
    }
}

#[tokio::test]
async fn a_mount_may_say_what_shared_names_mean() {
    let server = Server::open().await;
    for maker in Tongue::ALL {
        let client = Client { server: &server, path: "/", tongue: maker };
        let id = client.send(Words::new("hi")).await.id;
        let body = request("tasks/get", &format!(r#"{{"id":"{id}"}}"#));
        for (path, house, meant) in MOUNTS {
            let origin = if maker == Tongue::Draft { "draft" } else { "v03" };
            let label = format!("{};profile={house}", meant.unwrap_or(origin));
            let answer = server.post(path, &body).await;
            assert_eq!(answer.header("a2ad-dialect"), Some(label.as_str()), "{path} {maker:?}");
            assert_eq!(answer.body.contains(r#""kind":"task""#), label.starts_with("v03"), "{}", answer.body);
            // The version that is named counts more.
            let head = format!("POST {path} HTTP/1.1\r\na2a-version: 0.3");
            let answer = server.exchange(&head, &body).await;
            assert!(answer.body.contains(r#""kind":"task""#), "{path}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_told_as_the_house_speaks() {
    let server = Server::open().await;
    let unknown = request("tasks/make", "{}");
    for (path, house, meant) in MOUNTS {
        let dialect = meant.unwrap_or("draft");
        let label = format!("{dialect};profile={house}");
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
async fn an_agent_has_its_own_house_at_its_own_path_alone() {
    let mut setup = Setup::default();
    setup
        .doors
        .agents
        .insert("echo".into(), AgentSettings { profile: Profile::agentos(), ..AgentSettings::default() });
    let server = setup.open().await;
    for (path, house) in [("/a2a/echo", "agentos"), ("/", "neutral"), ("/_a2a/", "fold")] {
        let client = Client { server: &server, path, tongue: Tongue::Draft };
        let answer = client.say(Words::new("hi")).await;
        assert_eq!(answer.header("a2ad-dialect"), Some(format!("draft;profile={house}").as_str()), "{path}");
    }
}

#[tokio::test]
async fn the_package_python_a2a_finds_its_paths() {
    let server = Server::open().await;
    for base in ["", "/a2a"] {
        // Its own form of a message, which is not the draft's.
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
async fn paths_near_a_mount_are_none() {
    let server = Server::open().await;
    let body = request("ListTasks", "{}");
    for path in ["/_a2a/echo", "/_agent-native", "/_agent-native/a2a/more", "/a2a/rpc/more", "/A2A"] {
        let answer = server.post(path, &body).await;
        assert_eq!((answer.status, answer.header("content-type")), (404, Some("application/json")), "{path}");
        assert!(answer.body.contains(r#""code":-32601"#), "{path}: {}", answer.body);
    }
    // A name that is a mount's is no agent's.
    let card = server.get("/a2a/rpc/.well-known/agent.json").await;
    assert_eq!(card.status, 404);
}

#[tokio::test]
async fn every_mount_is_there_with_and_without_a_slash_at_its_end() {
    let server = Server::open().await;
    for path in ["/a2a", "/_a2a", "/_agent-native/a2a", "/a2a/rpc", "/a2a/echo"] {
        for path in [path.to_owned(), format!("{path}/")] {
            let answer = server.post(&path, &request("ListTasks", "{}")).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        }
    }
}
