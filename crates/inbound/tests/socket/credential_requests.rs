//! Agents ask for credentials in the middle of a task, and credentials in messages are never accepted.

use a2ad_inbound::{AgentSettings, AuthMethod, AuthMethods, Profile};
use engine::Outcome;
use protocol::{Json, Part, TaskState, model::Secret};

use crate::common::{
    Server, Setup, agents,
    generation::{Client, Generation, UserMessage},
    member, request,
};

/// The status of a task that waits for credentials in the form of a generation: its state, and the part with the schemes.
fn expected(generation: Generation, schemes: &str) -> [String; 2] {
    let (state, tag) = match generation {
        Generation::Draft => ("input-required", r#""type":"data","#),
        Generation::V03 => ("auth-required", r#""kind":"data","#),
        Generation::V1 => ("TASK_STATE_AUTH_REQUIRED", ""),
    };
    [format!(r#""status":{{"state":"{state}""#), format!(r#"{{{tag}"data":{{"schemes":[{schemes}]"#)]
}

fn own() -> Part {
    Part::data(Json::parse(r#"{"schemes":["Basic"],"credentials":"issued on request"}"#).unwrap())
}

async fn open() -> Server {
    let asks = |name, outcome: fn() -> Outcome| agents::of_turn(name, move |_| async move { outcome() });
    let agents = vec![
        asks("default", || Outcome::ask_for_credentials("who are you?")),
        asks("named", || Outcome::ask_for_credentials_of(&["OAuth2", "Basic"], "who are you?")),
        asks("own", || Outcome::ask_for_credentials([Part::text("who?"), own()])),
        asks("other-data", || Outcome::ask_for_credentials(Json::parse(r#"{"schemes":[]}"#).unwrap())),
    ];
    let mut setup = Setup { agents, ..Setup::default() };
    setup
        .options
        .agents
        .insert("default".into(), AgentSettings { profile: Profile::fold(), ..AgentSettings::default() });
    setup.open().await
}

#[tokio::test]
async fn schemes_are_in_the_status_in_every_generation() {
    let server = open().await;
    for (agent, schemes) in [
        ("approver", r#""Bearer""#),
        ("named", r#""OAuth2","Basic""#),
        ("own", r#""Basic""#),
        ("other-data", r#""Bearer""#),
    ] {
        let path = format!("/a2a/{agent}");
        for generation in Generation::ALL {
            let client = Client { server: &server, path: &path, generation };
            let case = format!("{agent} in {generation:?}");
            let sent = client.try_send(UserMessage::new("login")).await;
            for expected in expected(generation, schemes) {
                assert!(sent.body.contains(&expected), "{case}: no {expected} in {}", sent.body);
            }
            let own = sent.body.matches(r#""credentials":"issued on request""#).count();
            assert_eq!(own > 0, agent == "own", "{case}: {}", sent.body);
            // The same in a stream.
            let mut wire = client.stream(UserMessage::new("login")).await;
            let events = wire.events().await;
            let status = events.iter().find(|event| event.contains(r#""schemes":["#)).unwrap();
            assert!(status.contains(&expected(generation, schemes)[1]), "{case}: {status}");
        }
    }
}

/// The profile fold turns data into text, except for what the draft requires.
#[tokio::test]
async fn schemes_are_data_in_the_draft_in_every_profile() {
    let server = open().await;
    let client = Client { server: &server, path: "/a2a/default", generation: Generation::Draft };
    let sent = client.try_send(UserMessage::new("login")).await;
    for expected in expected(Generation::Draft, r#""Bearer""#) {
        assert!(sent.body.contains(&expected), "no {expected} in {}", sent.body);
    }
}

#[tokio::test]
async fn schemes_are_named_once() {
    let server = open().await;
    for agent in ["default", "named", "own"] {
        let path = format!("/a2a/{agent}");
        let client = Client { server: &server, path: &path, generation: Generation::V1 };
        let task = client.send(UserMessage::new("login")).await;
        assert_eq!(task.status.state, TaskState::AuthRequired);
        assert_eq!(task.status.message.unwrap().parts.len(), 2, "{agent}");
    }
}

const TOKEN: &str = "the-static-token";

/// A server whose agent `approver` has these methods, and that knows the static token.
async fn with_token(methods: AuthMethods) -> Server {
    let mut setup = Setup::default();
    setup.options.auth.bearer = Some(Secret::new(TOKEN));
    let settings = AgentSettings { auth: methods, ..AgentSettings::default() };
    setup.options.agents.insert("approver".into(), settings);
    setup.open().await
}

/// Messages that have the token everywhere but in the header.
fn messages_with_the_token(generation: Generation) -> Vec<String> {
    let plain = generation.send_params(UserMessage::new("login"));
    let with = |member: &str| plain.replacen('{', &format!("{{{member},"), 1);
    let in_message = |member: &str| plain.replacen(r#""message":{"#, &format!(r#""message":{{{member},"#), 1);
    let header = format!(r#"{{"Authorization":"Bearer {TOKEN}"}}"#);
    vec![
        plain.replace("login", &format!("login Authorization: Bearer {TOKEN}")),
        plain.replace("login", &format!("Bearer {TOKEN}")),
        with(&format!(r#""metadata":{header}"#)),
        with(&format!(r#""headers":{header}"#)),
        with(&format!(r#""authentication":{{"schemes":["Bearer"],"credentials":"{TOKEN}"}}"#)),
        with(&format!(r#""authorization":"Bearer {TOKEN}""#)),
        in_message(&format!(r#""metadata":{header}"#)),
        in_message(&format!(r#""authentication":{{"schemes":["Bearer"],"credentials":"{TOKEN}"}}"#)),
    ]
}

#[tokio::test]
async fn credential_in_a_message_does_not_open_an_agent() {
    let server = with_token(AuthMethods::NONE.with(AuthMethod::Bearer)).await;
    for generation in Generation::ALL {
        let method = generation.method(protocol::OperationKind::SendMessage);
        let version = generation.version();
        for params in messages_with_the_token(generation) {
            let body = request(method, &params);
            for path in ["/a2a/approver", "/a2a/approver?access_token=the-static-token"] {
                let head = format!("POST {path} HTTP/1.1\r\na2a-version: {version}");
                let refused = server.exchange(&head, &body).await;
                assert_eq!(refused.status, 401, "{generation:?} {params}");
                assert!(!refused.body.contains(TOKEN), "{}", refused.body);
            }
        }
        let cookie =
            format!("POST /a2a/approver HTTP/1.1\r\na2a-version: {version}\r\ncookie: token={TOKEN}");
        let body = request(method, &generation.send_params(UserMessage::new("login")));
        assert_eq!(server.exchange(&cookie, &body).await.status, 401);
        let head =
            format!("POST /a2a/approver HTTP/1.1\r\na2a-version: {version}\r\nauthorization: Bearer {TOKEN}");
        assert_eq!(server.exchange(&head, &body).await.status, 200, "the header is accepted");
    }
    let plain = format!(r#"{{"message":"login","metadata":{{"Authorization":"Bearer {TOKEN}"}}}}"#);
    assert_eq!(server.post("/a2a/approver", &plain).await.status, 401);
}

/// Where callers may be anonymous, a credential in a message does not identify them: their tasks are not those of the
/// caller with the token, also after an agent has asked for credentials.
#[tokio::test]
async fn credential_in_a_message_does_not_identify_its_caller() {
    let server = with_token(AuthMethods::ANONYMOUS.with(AuthMethod::Bearer)).await;
    let ask = async |token: Option<&str>, body: &str| {
        let header = token.map_or(String::new(), |token| format!("\r\nauthorization: Bearer {token}"));
        server.exchange(&format!("POST /a2a/approver HTTP/1.1\r\na2a-version: 1.0{header}"), body).await
    };
    for params in messages_with_the_token(Generation::V1) {
        let sent = ask(None, &request("SendMessage", &params)).await;
        let Some(task) = sent.body.contains(r#""id":"task_"#).then(|| member(&sent.body, "id")) else {
            panic!("{params}: {}", sent.body);
        };
        let answer =
            crate::common::send_params(&format!("Bearer {TOKEN}"), &format!(r#","taskId":"{task}""#));
        assert_eq!(ask(None, &request("SendMessage", &answer)).await.status, 200);
        let get = request("GetTask", &format!(r#"{{"id":"{task}"}}"#));
        assert!(ask(None, &get).await.body.contains(&task));
        assert!(ask(Some(TOKEN), &get).await.body.contains("TASK_NOT_FOUND"), "{params}");
    }
    let listed = ask(Some(TOKEN), &request("ListTasks", "{}")).await;
    assert!(listed.body.contains(r#""totalSize":0"#), "{}", listed.body);
}
