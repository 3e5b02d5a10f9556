//! Plain messages as JSON objects: `{"message", "chatId", "metadata"}`.

use a2ad_inbound::{AgentSettings, AuthMethods, Profile};
use engine::{Outcome, Turn};

use crate::common::{
    Answer, Server, Setup, agents,
    generation::{Client, Generation},
    member,
};

const PROFILES: [fn() -> Profile; 5] =
    [Profile::neutral, Profile::fold, Profile::pinkfish, Profile::agent_native, Profile::agentos];

async fn post(server: &Server, agent: &str, more: &str, body: &str) -> Answer {
    let head = format!("POST /a2a/{agent} HTTP/1.1\r\ncontent-type: application/json{more}");
    server.exchange(&head, body).await
}

/// A server whose agents have this profile.
async fn open(profile: fn() -> Profile) -> Server {
    let remembers = agents::of_turn("remembers", async |turn: Turn| {
        let earlier = turn.conversation.messages().await.unwrap_or_default();
        let texts: Vec<String> = earlier.iter().map(protocol::Message::text).collect();
        let metadata = turn.message.metadata.as_ref().map(|json| json.as_str().to_owned());
        Outcome::artifact("a", format!("{} after {texts:?} with {metadata:?}", turn.text()))
    });
    let mut setup = Setup { agents: vec![remembers, agents::chats(), agents::fails()], ..Setup::default() };
    for agent in ["echo", "approver", "remembers", "chats", "fails"] {
        let settings = AgentSettings { profile: profile(), ..AgentSettings::default() };
        setup.options.agents.insert(agent.into(), settings);
    }
    setup.open().await
}

#[tokio::test]
async fn answer_is_a_text_with_its_task_state_and_context_in_every_profile() {
    for profile in PROFILES {
        let (name, server) = (profile().name, open(profile).await);
        let answer = post(&server, "echo", "", r#"{"message":"two\nlines, \"quoted\" ü"}"#).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/plain; charset=utf-8")),
            "{name}"
        );
        assert_eq!(answer.body, "two\nlines, \"quoted\" ü", "{name}");
        assert_eq!(answer.header("a2ad-state"), Some("completed"), "{name}");
        assert!(answer.header("a2ad-task").unwrap().starts_with("task_"), "{name}");
        assert!(answer.header("a2ad-context").unwrap().starts_with("ctx_"), "{name}");
        // So does a text.
        let text = server.exchange("POST /a2a/echo HTTP/1.1\r\ncontent-type: text/plain", "hi").await;
        assert!(text.header("a2ad-context").unwrap().starts_with("ctx_"), "{name}");
        // A failed task is an answer too, whatever the profile makes of it elsewhere.
        let failed = post(&server, "fails", "", r#"{"message":"hi"}"#).await;
        assert_eq!((failed.status, failed.header("a2ad-state")), (200, Some("failed")), "{name}");
        assert_eq!(failed.body, "out of paper", "{name}");
        // A bare message has no task.
        let chatted = post(&server, "chats", "", r#"{"message":"hi"}"#).await;
        assert_eq!((chatted.header("a2ad-task"), chatted.body.as_str()), (None, "reply to hi"), "{name}");
        assert!(chatted.header("a2ad-context").unwrap().starts_with("ctx_"), "{name}");
    }
}

#[tokio::test]
async fn chat_id_continues_the_conversation_in_every_profile() {
    for profile in PROFILES {
        let (name, server) = (profile().name, open(profile).await);
        let first = post(&server, "remembers", "", r#"{"message":"one"}"#).await;
        assert_eq!(first.body, "one after [] with None", "{name}");
        let chat = first.header("a2ad-context").unwrap();
        let body = format!(r#"{{"message":"two","chatId":"{chat}","metadata":{{"lang":"en"}}}}"#);
        let second = post(&server, "remembers", "", &body).await;
        let expected = r#"two after ["one"] with Some("{\"lang\":\"en\"}")"#;
        assert_eq!((second.status, second.body.as_str()), (200, expected), "{name}");
        assert_eq!(second.header("a2ad-context"), Some(chat), "{name}");
        assert_ne!(second.header("a2ad-task"), first.header("a2ad-task"), "{name}");
        // The other bindings see the same conversation.
        if !profile().send_only {
            let client = Client { server: &server, path: "/a2a/remembers", generation: Generation::V1 };
            let task = client.get(second.header("a2ad-task").unwrap()).await;
            assert_eq!(task.context_id.as_str(), chat, "{name}");
        }
    }
}

#[tokio::test]
async fn chat_id_answers_the_task_that_waits_in_every_profile() {
    for profile in PROFILES {
        let (name, server) = (profile().name, open(profile).await);
        let asked = post(&server, "approver", "", r#"{"message":"jump"}"#).await;
        assert_eq!(asked.header("a2ad-state"), Some("input-required"), "{name}");
        let chat = asked.header("a2ad-context").unwrap();
        let answer =
            post(&server, "approver", "", &format!(r#"{{"message":"approve","chatId":"{chat}"}}"#)).await;
        assert_eq!(
            (answer.header("a2ad-state"), answer.body.as_str()),
            (Some("completed"), "Approved: jump"),
            "{name}"
        );
        assert_eq!(answer.header("a2ad-task"), asked.header("a2ad-task"), "{name}");
        // The next message finds nothing that waits, and starts a new task.
        let next = post(&server, "approver", "", &format!(r#"{{"message":"run","chatId":"{chat}"}}"#)).await;
        assert_eq!(next.header("a2ad-state"), Some("input-required"), "{name}");
        assert_ne!(next.header("a2ad-task"), asked.header("a2ad-task"), "{name}");
        assert_eq!(next.header("a2ad-context"), Some(chat), "{name}");
    }
}

#[tokio::test]
async fn unknown_chat_id_is_created_or_refused_as_the_profile_requires() {
    for profile in PROFILES {
        let (name, server) = (profile().name, open(profile).await);
        let answer = post(&server, "echo", "", r#"{"message":"hi","chatId":"my chat"}"#).await;
        if profile().task_policy.known_contexts_only {
            assert_eq!(answer.status, 400, "{name}");
            assert!(answer.body.contains(r#""field":"chatId""#), "{name}: {}", answer.body);
            assert!(!answer.body.contains("contextId"), "{name}: {}", answer.body);
        } else {
            assert_eq!((answer.status, answer.header("a2ad-context")), (200, Some("my chat")), "{name}");
        }
    }
}

#[tokio::test]
async fn result_is_json_for_clients_that_prefer_it() {
    let server = open(Profile::neutral).await;
    for (accept, is_json) in [
        ("application/json", true),
        ("Application/JSON; charset=utf-8", true),
        ("text/plain;q=0.5, application/json", true),
        ("application/json, */*", true),
        ("application/json, text/plain, */*", false),
        ("text/plain, application/json;q=0.9", false),
        ("text/event-stream", false),
        ("*/*", false),
    ] {
        let body = r#"{"message":"say \"hi\""}"#;
        let answer = post(&server, "echo", &format!("\r\naccept: {accept}"), body).await;
        let header = |name| answer.header(name).unwrap();
        let expected = if is_json {
            let (task, chat) = (header("a2ad-task"), header("a2ad-context"));
            format!(r#"{{"message":"say \"hi\"","chatId":"{chat}","taskId":"{task}","state":"completed"}}"#)
        } else {
            r#"say "hi""#.to_owned()
        };
        assert_eq!(answer.body, expected, "{accept}");
        assert_eq!(header("content-type") == "application/json", is_json, "{accept}");
    }
    let head = "POST /a2a/echo HTTP/1.1\r\ncontent-type: text/plain\r\naccept: application/json";
    assert_eq!(member(&server.exchange(head, "hi").await.body, "message"), "hi");
    // A bare message has neither task nor state.
    let chatted = post(&server, "chats", "\r\naccept: application/json", r#"{"message":"hi"}"#).await;
    let chat = chatted.header("a2ad-context").unwrap();
    assert_eq!(chatted.body, format!(r#"{{"message":"reply to hi","chatId":"{chat}"}}"#));
}

#[tokio::test]
async fn invalid_message_is_refused_with_the_name_of_its_member() {
    for profile in PROFILES {
        let (name, server) = (profile().name, open(profile).await);
        let long = format!(r#"{{"message":"hi","chatId":"{}"}}"#, "x".repeat(1_025));
        for (body, problem) in [
            (r#"{"message":5}"#, "message: expected a string"),
            (r#"{"message":["hi"]}"#, "message: expected a string"),
            (r#"{"message":"hi","stream":true}"#, "stream: this member is not known"),
            (r#"{"message":"hi","chatid":"x"}"#, "chatid: this member is not known"),
            (r#"{"message":"hi","id":1}"#, "id: this member is not known"),
            (r#"{"message":"hi","chatId":5}"#, "chatId: expected a string"),
            (r#"{"message":"hi","metadata":[]}"#, "metadata: expected an object"),
            (r#"{"message":"hi","message":"ho"}"#, "message: expected once"),
            (r#"{"message":"hi","metadata":{"skillId":"none"}}"#, "metadata.skillId: expected one of"),
            (long.as_str(), "chatId: expected at most 1024 bytes"),
        ] {
            let refused = post(&server, "echo", "", body).await;
            assert_eq!(
                (refused.status, refused.header("content-type")),
                (400, Some("application/json")),
                "{name} {body}"
            );
            assert!(
                refused.body.starts_with(r#"{"error":{"code":-32602,"#),
                "{name} {body}: {}",
                refused.body
            );
            assert!(refused.body.contains(problem), "{name} {body}: {}", refused.body);
        }
    }
}

#[tokio::test]
async fn skill_is_requested_in_the_metadata() {
    let server = open(Profile::neutral).await;
    let body = r#"{"message":"10 USD in INR","metadata":{"skillId":"echo"}}"#;
    assert_eq!(post(&server, "demo", "", body).await.body, "10 USD in INR");
}

/// What is JSON-RPC stays JSON-RPC, also if it is not valid.
#[tokio::test]
async fn other_bodies_are_json_rpc() {
    let server = open(Profile::neutral).await;
    for body in [
        r#"{"jsonrpc":"2.0","message":"hi"}"#,
        r#"{"method":"x","message":"hi"}"#,
        r#"{"message":{"text":"hi"}}"#,
        r#"{"chatId":"x"}"#,
        r#"["message"]"#,
        r#"{"message":"hi""#,
        r#""message""#,
    ] {
        let refused = post(&server, "echo", "", body).await;
        assert_eq!(refused.status, 200, "{body}: {}", refused.body);
        assert!(
            refused.body.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":"#),
            "{body}: {}",
            refused.body
        );
        assert_eq!(refused.header("a2ad-task"), None);
    }
    // Other paths have no plain text.
    for path in ["/", "/a2a", "/_a2a/", "/_agent-native/a2a", "/a2a/rpc", "/tasks/send"] {
        let refused = server.post(path, r#"{"message":"hi"}"#).await;
        assert!(refused.body.starts_with(r#"{"jsonrpc":"2.0","#), "{path}: {}", refused.body);
    }
}

#[tokio::test]
async fn conversations_belong_to_their_callers() {
    let mut setup = Setup::default();
    let strict = AgentSettings { profile: Profile::pinkfish(), ..AgentSettings::default() };
    setup.options.agents.insert("approver".into(), strict);
    let server = setup.open_with_callers().await;
    let as_caller = async |caller: &str, body: &str| {
        post(&server, "approver", &format!("\r\ntest-caller: {caller}"), body).await
    };
    let asked = as_caller("alice", r#"{"message":"jump"}"#).await;
    let chat = asked.header("a2ad-context").unwrap();
    let answer = |chat: &str| format!(r#"{{"message":"approve","chatId":"{chat}"}}"#);
    let foreign = as_caller("bob", &answer(chat)).await;
    let absent = as_caller("bob", &answer("ctx_00000000000000000000000000000")).await;
    assert_eq!((foreign.status, &foreign.body), (400, &absent.body));
    assert_eq!(as_caller("alice", &answer(chat)).await.body, "Approved: jump");
}

#[tokio::test]
async fn idempotency_key_deduplicates_messages() {
    let server = open(Profile::neutral).await;
    let key = "\r\nidempotency-key: once";
    let first = post(&server, "echo", key, r#"{"message":"hi"}"#).await;
    let second = post(&server, "echo", key, r#"{"message":"hi"}"#).await;
    assert_eq!((first.header("a2ad-replayed"), second.header("a2ad-replayed")), (None, Some("true")));
    assert_eq!(first.header("a2ad-context"), second.header("a2ad-context"));
    assert_eq!(post(&server, "echo", key, r#"{"message":"ho"}"#).await.status, 409);
}

/// An agent that requires a credential is refused before the body is read, in the form of JSON-RPC if the body may be that
/// too, and with the status of its profile; a disabled agent is refused in the form of the text binding.
#[tokio::test]
async fn closed_and_disabled_agents_are_refused() {
    let mut setup = Setup::default();
    let settings = |enabled, auth| AgentSettings { enabled, auth, ..AgentSettings::default() };
    setup.options.agents.insert("demo".into(), settings(true, AuthMethods::NONE));
    let strict = AgentSettings { profile: Profile::pinkfish(), ..settings(true, AuthMethods::NONE) };
    setup.options.agents.insert("echo".into(), strict);
    setup.options.agents.insert("currency".into(), settings(false, AuthMethods::ANONYMOUS));
    let server = setup.open().await;
    assert_eq!(post(&server, "demo", "", r#"{"message":"hi"}"#).await.status, 401);
    assert_eq!(post(&server, "echo", "", r#"{"message":"hi"}"#).await.status, 403);
    for (agent, status) in [("demo", 401), ("echo", 403)] {
        let refused =
            server.exchange(&format!("POST /a2a/{agent} HTTP/1.1\r\ncontent-type: text/plain"), "hi").await;
        assert_eq!(refused.status, status);
        assert!(refused.body.starts_with(r#"{"error":{"code":-32000,"#), "{}", refused.body);
        assert_eq!(refused.header("www-authenticate").is_some(), status == 401);
    }
    for agent in ["currency", "nobody"] {
        let refused = post(&server, agent, "", r#"{"message":"hi"}"#).await;
        assert_eq!(refused.status, 404);
        assert!(refused.body.starts_with(r#"{"error":{"code":-32000,"#), "{}", refused.body);
    }
}
