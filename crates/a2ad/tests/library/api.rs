//! The public API of the library: custom agents, served or mounted into another app, and called through a socket.

use std::{net::SocketAddr, time::Duration};

use a2ad::{
    Agent, Artifact, Card, Message, Outcome, Part, Result, ServeError, Server, Turn,
    agent::Update,
    agent_fn,
    agents::Echo,
    call_agent,
    card::{AgentExtension, AgentSkill},
    client::{ClientOptions, Error as ClientError, GetTask, ListTasks, SendMessage, SendReply},
    model::{ArtifactUpdate, ErrorKind, Event, Role, StatusUpdate},
    profile::Profile,
    server::{AcceptedVersions, Caller, CardShape, ExtendedCard, Router, RunSettings},
    testing::TestServer,
};
use testkit::http1;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpListener,
    task::JoinSet,
};

use super::with_timeout;

#[path = "../../examples/mount.rs"]
#[expect(dead_code, reason = "main serves until the process ends")]
mod mount;

/// The agent of the documentation.
async fn shout(turn: Turn) -> Result<Outcome> {
    let text = turn.text();
    if text.is_empty() {
        return Ok(Outcome::ask("What shall I shout?"));
    }
    turn.progress("shouting").await?;
    Ok(Outcome::artifact("shout", text.to_uppercase()))
}

/// An app that is served with `axum::serve` until this value is dropped.
struct App {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl App {
    #[allow(clippy::disallowed_methods, reason = "stands for a user's app, which is served with axum::serve")]
    async fn serve(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, _serving: serving }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sends a request and returns the status and body of the response.
    async fn request(&self, head: &str, body: &str) -> (u16, String) {
        let (method, path) = head.split_once(' ').unwrap();
        let response = http1::request(self.address, method, path, &[], body.as_bytes()).await.unwrap();
        (response.status, response.text())
    }
}

/// An app that identifies its callers by a header.
fn app_with_callers(server: &Server) -> Router {
    let identify = async |mut req: axum::extract::Request, next: axum::middleware::Next| {
        let user = req.headers().get("x-user").and_then(|user| user.to_str().ok()).map(str::to_owned);
        if let Some(user) = user {
            req.extensions_mut().insert(Caller::new(user));
        }
        next.run(req).await
    };
    server.router().layer(axum::middleware::from_fn(identify))
}

#[tokio::test]
async fn an_app_identifies_the_callers_of_its_agents() {
    let card = Card::new("echo").anonymous(false);
    let server = Server::builder().agent(card, Echo).build().unwrap();
    let app = App::serve(app_with_callers(&server)).await;
    let call = async |user: Option<&str>, method: &str, path: &str, body: &str| {
        let headers: Vec<(&str, &str)> = user.map(|user| ("x-user", user)).into_iter().collect();
        let response = http1::request(app.address, method, path, &headers, body.as_bytes()).await.unwrap();
        (response.status, response.text())
    };
    let send = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}"#;
    let (status, body) = call(None, "POST", "/a2a/echo/message:send", send).await;
    assert_eq!(status, 401, "{body}");
    let (status, body) = call(Some("anonymous"), "POST", "/a2a/echo/message:send", send).await;
    assert_eq!(status, 401, "{body}");
    let (status, body) = call(Some("alice"), "POST", "/a2a/echo/message:send", send).await;
    assert_eq!(status, 200, "{body}");
    for (user, total) in [("alice", 1), ("bob", 0)] {
        let (status, body) = call(Some(user), "GET", "/a2a/echo/tasks", "").await;
        assert_eq!(status, 200, "{body}");
        assert!(body.contains(&format!(r#""totalSize":{total}"#)), "{user}: {body}");
    }
}

#[tokio::test]
async fn a_mounted_server_leaves_the_routes_of_the_app_intact() {
    let server = Server::builder().agent("echo", Echo).build().unwrap();
    let app = App::serve(mount::app(&server)).await;
    assert_eq!(app.request("GET /hello", "").await, (200, "hello from the app".into()));
    assert_eq!(with_timeout(call_agent(&app.url(""), "hello")).await.unwrap(), "hello");
    let (status, card) = app.request("GET /.well-known/agent-card.json", "").await;
    assert!(status == 200 && card.contains(&format!(r#""url":"{}/""#, app.url(""))), "{card}");
    let draft = r#"{"id":1,"method":"tasks/send","params":{"id":"t","message":{"role":"user","parts":[{"type":"text","text":"old"}]}}}"#;
    let (status, task) = app.request("POST /a2a", draft).await;
    assert!(status == 200 && task.contains(r#""state":"completed""#), "{task}");
    let (status, not_found) = app.request("GET /elsewhere", "").await;
    assert!(status == 404 && not_found.contains("-32601"), "{not_found}");
}

#[tokio::test]
async fn a_custom_agent_responds_and_requests_input() {
    let card = Card::new("shout")
        .name("Shout!")
        .description("Returns text in upper case")
        .skill("shout", "Converts a text to upper case");
    let server = Server::builder().agent("echo", Echo).agent(card, agent_fn(shout)).default_agent("shout");
    let app = App::serve(server.build().unwrap().router()).await;
    assert_eq!(with_timeout(call_agent(&app.url(""), "hello")).await.unwrap(), "HELLO");
    assert_eq!(with_timeout(call_agent(&app.url("/a2a/echo"), "hello")).await.unwrap(), "hello");
    assert_eq!(with_timeout(call_agent(&app.url("/a2a/shout"), "")).await.unwrap(), "What shall I shout?");
    let (_, card) = app.request("GET /a2a/shout/.well-known/agent-card.json", "").await;
    for text in [r#""name":"Shout!""#, r#""description":"Returns text in upper case""#, r#""id":"shout""#] {
        assert!(card.contains(text), "{text} in {card}");
    }
}

#[tokio::test]
async fn an_unnamed_artifact_is_named_after_the_requested_skill() {
    async fn clerk(turn: Turn) -> Result<Outcome> {
        let unnamed = |text: &str| Artifact { name: None, ..Artifact::new("a", vec![Part::text(text)]) };
        for (text, last) in [("one", false), ("two", true)] {
            let update = Update::Artifact { artifact: unnamed(text), append: last, last };
            turn.record().update(update).await?;
        }
        turn.artifact(Artifact::new("receipt", vec![Part::text("paid")])).await?;
        Ok(Outcome::done())
    }
    let card = Card::new("clerk").skill("report", "Reports");
    let app = App::serve(Server::builder().agent(card, agent_fn(clerk)).build().unwrap().router()).await;
    let send = |skill: &str| {
        format!(
            r#"{{"id":1,"method":"tasks/send","params":{{{skill}"id":"t{}","message":{{"role":"user","parts":[{{"text":"x"}}]}}}}}}"#,
            skill.len()
        )
    };
    let (_, task) = app.request("POST /", &send(r#""skill":"report","#)).await;
    assert!(
        task.contains(r#""artifacts":[{"name":"report-result","parts":[{"type":"text","text":"one"},"#),
        "{task}"
    );
    assert!(task.contains(r#"{"name":"receipt""#), "{task}");
    let (_, task) = app.request("POST /", &send("")).await;
    assert!(task.contains(r#""artifacts":[{"parts":"#), "{task}");
}

#[tokio::test]
async fn cards_of_a_nested_server_have_nested_urls() {
    let public = "https://example.com/agents";
    // The test calls the address, which is not the host of the URL.
    let server = Server::builder().agent("echo", Echo).public_url(public).allowed_host("127.0.0.1");
    let app = App::serve(Router::new().nest("/agents", server.build().unwrap().router())).await;
    let (status, card) = app.request("GET /agents/a2a/echo/.well-known/agent-card.json", "").await;
    assert!(status == 200 && card.contains(&format!(r#""url":"{public}/a2a/echo""#)), "{card}");
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;
    assert_eq!(app.request("POST /agents/a2a/echo", list).await.0, 200);
}

#[tokio::test]
async fn a_mounted_server_checks_configured_hosts_and_origins() {
    let server =
        Server::builder().agent("echo", Echo).allowed_host("app.test").cors_origin("https://page.test");
    let app = App::serve(server.build().unwrap().router()).await;
    for (host, origin, status) in [
        ("app.test", None, 200),
        ("app.test:99", Some("https://page.test"), 200),
        ("app.test", Some("https://other.test"), 403),
        ("127.0.0.1", None, 403),
    ] {
        let origin = origin.map(|origin| ("origin", origin));
        let headers: Vec<_> = [("host", host)].into_iter().chain(origin).collect();
        let response = http1::request(app.address, "GET", "/tasks", &headers, b"").await.unwrap();
        assert_eq!(response.status, status, "{headers:?}: {}", response.text());
    }
}

#[tokio::test]
async fn a_profile_applies_to_its_agent_only() {
    let server =
        Server::builder().agent("echo", Echo).agent("quick", Echo).profile("quick", Profile::pinkfish());
    let app = App::serve(server.build().unwrap().router()).await;
    let send = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"}]}}}"#;
    let (_, task) = app.request("POST /a2a/echo", send).await;
    let (_, message) = app.request("POST /a2a/quick", send).await;
    assert!(
        task.contains(r#""kind":"task""#) && message.contains(r#""result":{"kind":"message""#),
        "{message}"
    );
}

fn skill(id: &str) -> AgentSkill {
    AgentSkill {
        id: id.into(),
        name: id.into(),
        description: "For those who know".into(),
        tags: vec!["more".into()],
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    }
}

/// For other callers they do not exist: neither can they be called, nor does an error name them.
#[tokio::test]
async fn extended_skills_are_for_callers_who_can_get_the_extended_card() {
    let send = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]},
        "metadata":{"skillId":"secret"}}"#;
    for (shown, anonymous) in [(ExtendedCard::Protected, 400), (ExtendedCard::Open, 200)] {
        let card = Card::new("echo").skill("echo", "Returns its input").extended_skill(skill("secret"));
        let server = Server::builder().agent(card.extended_card(shown), Echo).build().unwrap();
        let app = App::serve(app_with_callers(&server)).await;
        for (user, expected) in [(None, anonymous), (Some(("x-user", "alice")), 200)] {
            let headers: Vec<_> = user.into_iter().collect();
            let body = send.as_bytes();
            let path = "/a2a/echo/message:send";
            let response = http1::request(app.address, "POST", path, &headers, body).await.unwrap();
            let text = response.text();
            assert_eq!(response.status, expected, "{user:?}: {text}");
            assert!(expected == 200 || !text.contains("secret"), "{text}");
        }
    }
}

#[tokio::test]
async fn card_settings_are_shown_and_enforced() {
    let required =
        AgentExtension { uri: "urn:example:must".into(), description: None, required: true, params: None };
    let card = Card::new("strict")
        .skill("echo", "Returns its input")
        .extended_skill(skill("secret"))
        .extended_card(ExtendedCard::Open)
        .extension(required)
        .streaming(false)
        .output_modes(["text/plain"]);
    let accepted_versions =
        AcceptedVersions { draft: false, lenient_version: false, ..AcceptedVersions::default() };
    let server =
        Server::builder().agent(card, Echo).accepted_versions(accepted_versions).card_shape(CardShape::V1);
    let app = App::serve(server.build().unwrap().router()).await;
    let (_, card) = app.request("GET /.well-known/agent-card.json", "").await;
    for text in [r#""streaming":false"#, r#""extendedAgentCard":true"#, r#""uri":"urn:example:must""#] {
        assert!(card.contains(text), "{text} in {card}");
    }
    assert!(!card.contains("secret") && !card.contains(r#""protocolVersion":"0.3.0""#), "{card}");
    let call = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    };
    let (_, extended) = app.request("POST /?A2A-Version=1.0", &call("GetExtendedAgentCard", "{}")).await;
    assert!(extended.contains(r#""id":"secret""#), "{extended}");
    let (_, refused) = app.request("POST /", &call("GetExtendedAgentCard", "{}")).await;
    assert!(refused.contains("VERSION_NOT_SUPPORTED"), "{refused}");
    let (_, refused) = app.request("POST /", &call("tasks/send", "{}")).await;
    assert!(refused.contains("-32004"), "the draft is not accepted: {refused}");
    let send = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;
    let (_, refused) = app.request("POST /?A2A-Version=1.0", &call("SendMessage", send)).await;
    assert!(refused.contains("EXTENSION_SUPPORT_REQUIRED"), "{refused}");
    let (_, refused) = app.request("POST /?A2A-Version=1.0", &call("SendStreamingMessage", send)).await;
    assert!(refused.contains("UNSUPPORTED_OPERATION"), "{refused}");
}

#[tokio::test]
async fn a_drained_server_is_not_ready() {
    let server = Server::builder().agent("echo", Echo).build().unwrap();
    let app = App::serve(server.router()).await;
    assert_eq!(app.request("GET /readyz", "").await.0, 200);
    with_timeout(server.drain(Duration::from_secs(1))).await;
    assert_eq!(app.request("GET /readyz", "").await.0, 503);
}

#[tokio::test]
async fn execution_settings_of_an_agent_and_of_a_skill_apply() {
    async fn busy(turn: Turn) -> Result<Outcome> {
        Ok(Outcome::retry(format!("attempt {} failed", turn.attempt)))
    }
    let attempts = |count| RunSettings { attempts: Some(count), ..RunSettings::default() };
    let card = Card::new("busy")
        .skill("once", "Fails at once")
        .skill("twice", "Fails after two attempts")
        .run_settings(attempts(2))
        .skill_settings("once", attempts(1));
    let server = TestServer::start(Server::builder().agent(card, agent_fn(busy))).await.unwrap();
    let client = server.client().await.unwrap();
    for (skill, expected) in [("once", "attempt 1 failed"), ("twice", "attempt 2 failed")] {
        let message = Message::new("m", Role::User, vec![Part::text("hello")]);
        let send = SendMessage { skill: Some(skill.into()), ..SendMessage::new(message) };
        let SendReply::Task(task) = with_timeout(client.send(send)).await.unwrap() else { panic!("{skill}") };
        assert_eq!(task.status.message.unwrap().text(), expected);
    }
}

#[tokio::test]
async fn an_invalid_configuration_is_rejected_with_its_reason() {
    let refused = |builder: a2ad::Builder| builder.build().err().unwrap().to_string();
    assert!(matches!(Server::builder().build(), Err(ServeError::NoAgent)));
    let echo = || Server::builder().agent("echo", Echo);
    for (builder, text) in [
        (echo().public_url("example.com"), "Builder::public_url: \"example.com\" is not a URL such as"),
        (echo().allowed_host("*.test"), "Builder::allowed_host: \"*.test\" is not a host with or without"),
        (echo().cors_origin("page.test"), "Builder::cors_origin: \"page.test\" is not an origin such as"),
    ] {
        let error = refused(builder);
        assert!(error.starts_with(text), "{error}");
    }
    let settings = |attempts| RunSettings { attempts: Some(attempts), ..RunSettings::default() };
    let card = || Card::new("echo").skill("repeat", "Repeats a text");
    let zero = RunSettings { deadline: Some(Duration::ZERO), ..RunSettings::default() };
    for (card, text) in [
        (
            card().run_settings(zero),
            "Card::run_settings of the agent \"echo\": deadline must be more than zero",
        ),
        (
            card().skill_settings("repeat", settings(0)),
            "Card::skill_settings of the agent \"echo\": attempts of the skill \"repeat\" must be at least 1",
        ),
        (
            card().skill_settings("repat", settings(1)),
            "Card::skill_settings of the agent \"echo\": skill \"repat\" is not on the card",
        ),
    ] {
        assert_eq!(refused(Server::builder().agent(card, Echo)), text);
    }
    for (id, reason) in [("", "1 to 64"), ("a/b", "1 to 64"), ("<b>", "1 to 64"), ("rpc", "is reserved")] {
        let text = refused(Server::builder().agent(id, Echo));
        assert!(text.contains(&format!("{id:?}")) && text.contains(reason), "{text}");
    }
    let twice = refused(Server::builder().agent("echo", Echo).agent("echo", Echo));
    assert_eq!(twice, r#"agent id "echo" is used twice"#);
    let unknown = refused(Server::builder().agent("echo", Echo).default_agent("ehco"));
    assert_eq!(unknown, r#"agent id "ehco" is not registered"#);
    let nowhere = Server::builder().agent("echo", Echo).serve("nowhere").await.unwrap_err();
    assert!(nowhere.to_string().contains("such as 127.0.0.1:4242"), "{nowhere}");
}

/// Set in the child process of a test.
const SERVE_IN_CHILD: &str = "LIBRARY_TEST_SERVE";

/// Set in the child process of a test whose server has a store with a path.
const STORE_OF_CHILD: &str = "LIBRARY_TEST_STORE";

/// A process that serves the agent of the example.
fn serving_child(mode: &str) -> tokio::process::Child {
    serving_child_with(mode, None)
}

/// The same, with a store at this path.
fn serving_child_with(mode: &str, store: Option<&std::path::Path>) -> tokio::process::Child {
    tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "api::serve_until_killed", "--ignored", "--nocapture"])
        .env(SERVE_IN_CHILD, mode)
        .envs(store.map(|store| (STORE_OF_CHILD, store)))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// `serve` logs the server's URL, its agents, its store and an example command at start.
#[tokio::test]
async fn serve_logs_its_url_at_start() {
    let mut child = serving_child("log");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let text = with_timeout(async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("a2ad serves") {
                return line;
            }
        }
        panic!("the server logged no URL");
    })
    .await;
    for member in [r#"agents="shout""#, "store=", r#"try_it="curl "#] {
        assert!(text.contains(member), "{member} in {text}");
    }
    let (_, url) = text.split_once(r#"url=""#).unwrap();
    let url = url.split('"').next().unwrap();
    assert_eq!(with_timeout(call_agent(url, "hello")).await.unwrap(), "HELLO");
    child.kill().await.unwrap();
}

/// Without a log, the address is written to stderr.
#[tokio::test]
async fn serve_writes_its_url_to_stderr_without_a_log() {
    let mut child = serving_child("no log");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = loop {
        let line = with_timeout(lines.next_line()).await.unwrap().expect("the server wrote no URL");
        if line.contains("http://127.0.0.1:") {
            break line;
        }
    };
    let url = &line[line.find("http://").unwrap()..];
    let url = url.split_whitespace().next().unwrap();
    assert_eq!(with_timeout(call_agent(url, "hello")).await.unwrap(), "HELLO");
    child.kill().await.unwrap();
}

/// A server with a store of its own path serves its operators; the token is beside the store and not in the log.
#[tokio::test]
async fn serve_keeps_an_admin_token_beside_the_store() {
    for mode in ["log", "no log"] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = serving_child_with(mode, Some(&folder.path().join("shout.db")));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let file = folder.path().join("shout.db.keys/admin");
        let mut shown = String::new();
        while !shown.contains(file.to_str().unwrap()) {
            shown += &with_timeout(lines.next_line()).await.unwrap().expect("the server names the file");
            shown += "\n";
        }
        let token = std::fs::read_to_string(&file).unwrap();
        assert!(token.starts_with("a2ad_admin_") && !shown.contains(token.trim_end()), "{shown}");
        let address = shown.split_once("http://").unwrap().1.split(['"', ' ', '\n']).next().unwrap();
        let credential = format!("Bearer {}", token.trim_end());
        let list = |credential: String| async move {
            let headers = [("authorization", &*credential)];
            http1::request(address.parse().unwrap(), "GET", "/console/api/keys", &headers, b"").await.unwrap()
        };
        assert_eq!(list(credential.clone()).await.text(), r#"{"keys":[]}"#);
        assert_eq!(list(credential + "x").await.status, 401);
        child.kill().await.unwrap();
    }
}

#[tokio::test]
async fn an_app_makes_lists_and_revokes_api_keys() {
    use a2ad::server::{ApiKey, ApiKeyError};
    let folder = tempfile::tempdir().unwrap();
    let builder = || Server::builder().agent("echo", Echo).store(folder.path().join("a.db"));
    let server = builder().build().unwrap();
    let keys = server.api_keys();
    let (alices, text): (ApiKey, a2ad::model::Secret) = keys.create("echo", Some("alice")).await.unwrap();
    assert!(text.expose().starts_with(&format!("a2ad_{}_", alices.id)), "{}", alices.masked());
    let (own, _) = keys.create("echo", None).await.unwrap();
    assert_eq!((own.owner.as_str(), own.scope().as_str()), (own.id.as_str(), "a2a-agent:echo"));
    assert!(matches!(keys.create("nobody", None).await, Err(ApiKeyError::UnknownAgent(_))));
    assert!(matches!(keys.create("echo", Some("")).await, Err(ApiKeyError::Owner)));
    assert!(keys.revoke(&alices.id).await.unwrap() && !keys.revoke(&alices.id).await.unwrap());
    for _ in 0..19 {
        keys.create("echo", None).await.unwrap();
    }
    assert!(matches!(keys.create("echo", None).await, Err(ApiKeyError::TooMany(20))));
    // The app decides who may do this: the server has no API for operators, and no token for one.
    let app = App::serve(server.router()).await;
    assert_eq!(app.request("GET /console/api/keys", "").await.0, 404);
    assert!(!folder.path().join("a.db.keys/admin").exists());
    assert!(folder.path().join("a.db.keys/seal").exists());
    drop((app, keys, server));

    let server = with_timeout(async {
        loop {
            match builder().build() {
                Ok(server) => return server,
                // The last connection still has the store.
                Err(ServeError::Open(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await;
    let listed = server.api_keys().list().await.unwrap();
    assert_eq!((listed.len(), listed[20].id == alices.id), (21, true));
    assert!(listed[20].revoked_at.is_some() && listed[19].revoked_at.is_none());
}

#[tokio::test]
async fn a_card_of_a_bare_id_has_a_description_and_a_skill() {
    let server = Server::builder().agent("shout", agent_fn(shout)).build().unwrap();
    let app = App::serve(server.router()).await;
    let found = a2ad::client::find_card(&app.url(""), &ClientOptions::default()).await.unwrap();
    let skills: Vec<&str> = found.card.skills.iter().map(|skill| skill.id.as_str()).collect();
    assert_eq!((found.card.description.as_str(), skills.as_slice()), ("The agent shout", &["shout"][..]));
}

#[tokio::test]
#[ignore = "serves until it is killed; another test runs it in a child process"]
async fn serve_until_killed() {
    let Ok(mode) = std::env::var(SERVE_IN_CHILD) else { return };
    if mode != "no log" {
        tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    }
    let builder = Server::builder().agent("shout", agent_fn(shout));
    let builder = match std::env::var_os(STORE_OF_CHILD) {
        Some(path) => builder.store(path),
        None => builder,
    };
    builder.serve("127.0.0.1:0").await.unwrap();
}

/// Every type in the signatures of the library is exported, so that users can name it.
#[tokio::test]
async fn every_public_type_is_exported() {
    struct Inspector;
    impl Agent for Inspector {
        async fn run(&self, turn: Turn) -> Result<Outcome> {
            let before: Result<Vec<Message>, a2ad::agent::ConversationError> =
                turn.conversation.messages().await;
            let (cancel, deadline): (&a2ad::agent::CancellationToken, a2ad::agent::Instant) =
                (&turn.cancel, turn.deadline);
            let scope: &a2ad::agent::ScopeParts = turn.scope.parts();
            let summary = format!(
                "{} before, for {}, {} {}",
                before.map_or(0, |messages| messages.len()),
                scope.agent,
                cancel.is_cancelled(),
                deadline > a2ad::agent::Instant::now()
            );
            Ok(Outcome::artifact("summary", summary))
        }
    }
    let server = Server::builder().agent("inspector", Inspector).build().unwrap();
    let app = App::serve(server.router()).await;
    let options = ClientOptions::default().with_headers(a2ad::client::HeaderMap::new());
    let found = with_timeout(a2ad::client::find_card(&app.url(""), &options)).await.unwrap();
    let interfaces: &[a2ad::card::AgentInterface] = &found.card.interfaces;
    let capabilities: &a2ad::card::AgentCapabilities = &found.card.capabilities;
    let schemes: &[(String, a2ad::card::SecurityScheme)] = &found.card.security_schemes;
    assert!(!interfaces.is_empty() && capabilities.streaming == Some(true) && schemes.is_empty());

    let client = found.client(options).unwrap();
    let message = Message::new("m", Role::User, vec![Part::text("hello")]);
    let mut events: a2ad::client::EventStream = with_timeout(client.stream(message)).await.unwrap();
    let (mut statuses, mut artifacts): (Vec<StatusUpdate>, Vec<ArtifactUpdate>) = Default::default();
    while let Some(event) = with_timeout(events.next()).await {
        match event.unwrap() {
            Event::Status(update) => statuses.push(update),
            Event::Artifact(update) => artifacts.push(update),
            _ => {}
        }
    }
    assert!(!statuses.is_empty() && artifacts.len() == 1);
    let text = a2ad::client::text::of_parts(&artifacts[0].artifact.parts);
    assert_eq!(text, "0 before, for inspector, false true");

    let page: a2ad::client::TaskPage = with_timeout(client.list_tasks(ListTasks::default())).await.unwrap();
    assert_eq!(page.tasks.len(), 1);
    let unknown_task = GetTask { id: "none".into(), history_length: None, tenant: None };
    let refused: ClientError = with_timeout(client.get_task(unknown_task)).await.err().unwrap();
    let ClientError::Protocol(error) = refused else { panic!("{refused}") };
    let error: a2ad::model::Error = error;
    assert_eq!(error.kind, ErrorKind::TaskNotFound);
    let reply: SendReply = with_timeout(client.send("hello")).await.unwrap();
    assert_eq!(reply.text(), "0 before, for inspector, false true");
}

#[test]
fn a_server_needs_a_runtime() {
    assert!(matches!(Server::builder().agent("echo", Echo).build(), Err(ServeError::NoRuntime)));
}

#[tokio::test]
async fn test_server_can_be_restarted_on_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let builder = || Server::builder().agent("shout", agent_fn(shout)).store(folder.path().join("a.db"));
    let first = TestServer::start(builder()).await.unwrap();
    let client = first.client().await.unwrap();
    let asked = with_timeout(client.send("")).await.unwrap().into_task().unwrap();
    with_timeout(first.stop(Duration::from_secs(5))).await;

    let second = TestServer::start(builder()).await.unwrap();
    let client = second.client().await.unwrap();
    let answer = SendMessage::from("hello").to_task(&asked.id);
    let done = with_timeout(client.send(answer)).await.unwrap();
    assert_eq!(done.text(), "HELLO");
    assert_eq!(with_timeout(second.call("again")).await.unwrap(), "AGAIN");
}
