//! The library from outside: agents of one's own, in an app of one's own, called through a socket.

#![allow(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

use std::{net::SocketAddr, time::Duration};

use a2ad::{
    AcceptedVersions, Agent, AgentExtension, AgentSkill, Artifact, ArtifactUpdate, BoxFuture, Card,
    CardShape, ClientError, ClientOptions, ErrorKind, Event, ExtendedCard, GetTask, ListTasks, Message,
    Operation, Outcome, Part, Profile, Reply, Role, Router, SendMessage, ServeError, Server, StatusUpdate,
    Turn, Update, Updates, agents::Echo, call_agent,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

#[path = "../examples/agent.rs"]
#[expect(dead_code, reason = "its main serves for ever")]
mod agent;
#[path = "../examples/mount.rs"]
#[expect(dead_code, reason = "its main serves for ever")]
mod mount;

/// How long anything may take before a test gives it up.
const PATIENCE: Duration = Duration::from_secs(30);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes far too long")
}

/// An app that is served the way axum shows, until this is dropped.
struct App {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl App {
    #[allow(clippy::disallowed_methods, reason = "the app is somebody else's, served the way axum shows")]
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

    /// Status and body of an answer.
    async fn ask(&self, head: &str, body: &str) -> (u16, String) {
        let exchange = async {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let head = format!(
                "{head} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                self.address,
                body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = within(exchange).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }
}

#[tokio::test]
async fn an_app_keeps_its_routes_and_its_agents_have_the_rest() {
    let server = Server::builder().agent("echo", Echo).build().unwrap();
    let app = App::serve(mount::app(&server)).await;
    assert_eq!(app.ask("GET /hello", "").await, (200, "hello from the app".into()));
    assert_eq!(within(call_agent(&app.url(""), "hello")).await.unwrap(), "hello");
    let (status, card) = app.ask("GET /.well-known/agent-card.json", "").await;
    assert!(status == 200 && card.contains(&format!(r#""url":"{}/""#, app.url(""))), "{card}");
    let draft = r#"{"id":1,"method":"tasks/send","params":{"id":"t","message":{"role":"user","parts":[{"type":"text","text":"old"}]}}}"#;
    let (status, task) = app.ask("POST /a2a", draft).await;
    assert!(status == 200 && task.contains(r#""state":"completed""#), "{task}");
    let (status, nothing) = app.ask("GET /elsewhere", "").await;
    assert!(status == 404 && nothing.contains("-32601"), "{nothing}");
}

#[tokio::test]
async fn an_agent_of_ones_own_answers_and_asks() {
    let card =
        Card::new("shout").name("Shout!").description("Says it louder").skill("shout", "Shouts a text");
    let server = Server::builder().agent("echo", Echo).agent(card, agent::Shout).default_agent("shout");
    let app = App::serve(server.build().unwrap().router()).await;
    assert_eq!(within(call_agent(&app.url(""), "hello")).await.unwrap(), "HELLO");
    assert_eq!(within(call_agent(&app.url("/a2a/echo"), "hello")).await.unwrap(), "hello");
    assert_eq!(within(call_agent(&app.url("/a2a/shout"), "")).await.unwrap(), "what shall I shout?");
    let (_, card) = app.ask("GET /a2a/shout/.well-known/agent-card.json", "").await;
    for said in [r#""name":"Shout!""#, r#""description":"Says it louder""#, r#""id":"shout""#] {
        assert!(card.contains(said), "{said} in {card}");
    }
}

#[tokio::test]
async fn an_artifact_without_a_name_has_that_of_the_skill_that_was_asked_for() {
    struct Clerk;
    impl Agent for Clerk {
        fn run(&self, _: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
            Box::pin(async move {
                let unnamed =
                    |text: &str| Artifact { name: None, ..Artifact::new("a", vec![Part::text(text)]) };
                out.say([Update::Artifact { artifact: unnamed("one"), append: false, last: false }]).await;
                out.say([Update::Artifact { artifact: unnamed("two"), append: true, last: true }]).await;
                out.artifact(Artifact::new("receipt", vec![Part::text("paid")])).await;
                Outcome::done()
            })
        }
    }
    let card = Card::new("clerk").skill("report", "Reports");
    let app = App::serve(Server::builder().agent(card, Clerk).build().unwrap().router()).await;
    let send = |skill: &str| {
        format!(
            r#"{{"id":1,"method":"tasks/send","params":{{{skill}"id":"t{}","message":{{"role":"user","parts":[{{"text":"x"}}]}}}}}}"#,
            skill.len()
        )
    };
    let (_, task) = app.ask("POST /", &send(r#""skill":"report","#)).await;
    assert!(
        task.contains(r#""artifacts":[{"name":"report-result","parts":[{"type":"text","text":"one"},"#),
        "{task}"
    );
    assert!(task.contains(r#"{"name":"receipt""#), "{task}");
    let (_, task) = app.ask("POST /", &send("")).await;
    assert!(task.contains(r#""artifacts":[{"parts":"#), "{task}");
}

#[tokio::test]
async fn cards_below_a_path_point_below_it() {
    let public = "https://example.com/agents";
    let server = Server::builder().agent("echo", Echo).public_url(public).build().unwrap();
    let app = App::serve(Router::new().nest("/agents", server.router())).await;
    let (status, card) = app.ask("GET /agents/a2a/echo/.well-known/agent-card.json", "").await;
    assert!(status == 200 && card.contains(&format!(r#""url":"{public}/a2a/echo""#)), "{card}");
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;
    assert_eq!(app.ask("POST /agents/a2a/echo", list).await.0, 200);
}

#[tokio::test]
async fn a_profile_is_the_style_of_its_agent_alone() {
    let server =
        Server::builder().agent("echo", Echo).agent("quick", Echo).profile("quick", Profile::pinkfish());
    let app = App::serve(server.build().unwrap().router()).await;
    let send = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"}]}}}"#;
    let (_, task) = app.ask("POST /a2a/echo", send).await;
    let (_, message) = app.ask("POST /a2a/quick", send).await;
    assert!(
        task.contains(r#""kind":"task""#) && message.contains(r#""result":{"kind":"message""#),
        "{message}"
    );
}

#[tokio::test]
async fn a_card_has_the_switches_of_its_agent() {
    let skill = |id: &str| AgentSkill {
        id: id.into(),
        name: id.into(),
        description: "For those who know".into(),
        tags: vec!["more".into()],
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    };
    let required =
        AgentExtension { uri: "urn:example:must".into(), description: None, required: true, params: None };
    let card = Card::new("strict")
        .skill("echo", "Says it again")
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
    let (_, card) = app.ask("GET /.well-known/agent-card.json", "").await;
    for said in [r#""streaming":false"#, r#""extendedAgentCard":true"#, r#""uri":"urn:example:must""#] {
        assert!(card.contains(said), "{said} in {card}");
    }
    assert!(!card.contains("secret") && !card.contains(r#""protocolVersion":"0.3.0""#), "{card}");
    let call = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    };
    let (_, extended) = app.ask("POST /?A2A-Version=1.0", &call("GetExtendedAgentCard", "{}")).await;
    assert!(extended.contains(r#""id":"secret""#), "{extended}");
    let (_, refused) = app.ask("POST /", &call("GetExtendedAgentCard", "{}")).await;
    assert!(refused.contains("VERSION_NOT_SUPPORTED"), "{refused}");
    let (_, refused) = app.ask("POST /", &call("tasks/send", "{}")).await;
    assert!(refused.contains("-32004"), "the draft is not spoken: {refused}");
    let send = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;
    let (_, refused) = app.ask("POST /?A2A-Version=1.0", &call("SendMessage", send)).await;
    assert!(refused.contains("EXTENSION_SUPPORT_REQUIRED"), "{refused}");
    let (_, refused) = app.ask("POST /?A2A-Version=1.0", &call("SendStreamingMessage", send)).await;
    assert!(refused.contains("UNSUPPORTED_OPERATION"), "{refused}");
}

#[tokio::test]
async fn a_drained_server_wants_no_more_work() {
    let server = Server::builder().agent("echo", Echo).build().unwrap();
    let app = App::serve(server.router()).await;
    assert_eq!(app.ask("GET /readyz", "").await.0, 200);
    within(server.drain(Duration::from_secs(1))).await;
    assert_eq!(app.ask("GET /readyz", "").await.0, 503);
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_with_its_reason() {
    let refused = |builder: a2ad::Builder| builder.build().err().unwrap().to_string();
    assert!(matches!(Server::builder().build(), Err(ServeError::NoAgent)));
    for (id, reason) in
        [("", "1 to 64"), ("a/b", "1 to 64"), ("<b>", "1 to 64"), ("rpc", "a path of its own")]
    {
        let text = refused(Server::builder().agent(id, Echo));
        assert!(text.contains(&format!("{id:?}")) && text.contains(reason), "{text}");
    }
    let twice = refused(Server::builder().agent("echo", Echo).agent("echo", Echo));
    assert_eq!(twice, r#"the agent "echo" is there twice"#);
    let unknown = refused(Server::builder().agent("echo", Echo).default_agent("ehco"));
    assert_eq!(unknown, r#"the agent "ehco" is not among the agents"#);
    let outside = Server::builder().agent("echo", Echo).serve(([0, 0, 0, 0], 0).into()).await;
    assert!(matches!(outside, Err(ServeError::NotLoopback(_))));
}

/// Set where a test is the process of another.
const BY_ITSELF: &str = "LIBRARY_SERVES_BY_ITSELF";

/// One that serves by itself says where it is and what to try, before anybody has to ask.
#[tokio::test]
async fn a_server_by_itself_says_where_it_is() {
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "serves_by_itself", "--ignored", "--nocapture"])
        .env(BY_ITSELF, "yes")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = within(async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("a2ad serves") {
                return line;
            }
        }
        panic!("it says nothing");
    })
    .await;
    for word in [r#""agents":"shout""#, r#""store":"#, r#""try_it":"curl "#] {
        assert!(said.contains(word), "{word} in {said}");
    }
    let (_, url) = said.split_once(r#""url":""#).unwrap();
    let url = url.split('"').next().unwrap();
    assert_eq!(within(call_agent(url, "hello")).await.unwrap(), "HELLO");
    child.kill().await.unwrap();
}

#[tokio::test]
#[ignore = "serves for ever; another test runs it in a process of its own"]
async fn serves_by_itself() {
    if std::env::var_os(BY_ITSELF).is_none() {
        return;
    }
    let _log = a2ad::logging::start();
    Server::builder().agent("shout", agent::Shout).serve(([127, 0, 0, 1], 0).into()).await.unwrap();
}

/// Whatever the library gives or takes can be written down by whoever uses it.
#[tokio::test]
async fn every_type_that_is_handed_out_has_a_name() {
    struct Listener;
    impl Agent for Listener {
        fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
            Box::pin(async move {
                let before: Result<Vec<Message>, a2ad::EngineError> = turn.conversation.messages().await;
                let (stop, until): (a2ad::CancellationToken, a2ad::Instant) = (turn.cancel, turn.deadline);
                let who: &a2ad::ScopeParts = turn.scope.parts();
                let heard = format!(
                    "{} before, for {}, {} {}",
                    before.map_or(0, |messages| messages.len()),
                    who.agent,
                    stop.is_cancelled(),
                    until > a2ad::Instant::now()
                );
                out.artifact(Artifact::new("heard", vec![Part::text(heard)])).await;
                Outcome::done()
            })
        }
    }
    let server = Server::builder().agent("listener", Listener).build().unwrap();
    let app = App::serve(server.router()).await;
    let options = ClientOptions { headers: a2ad::HeaderMap::new(), ..ClientOptions::default() };
    let found = within(a2ad::find_card(&app.url(""), &options)).await.unwrap();
    let interfaces: &[a2ad::AgentInterface] = &found.card.interfaces;
    let capabilities: &a2ad::AgentCapabilities = &found.card.capabilities;
    let schemes: &[(String, a2ad::SecurityScheme)] = &found.card.security_schemes;
    assert!(!interfaces.is_empty() && capabilities.streaming == Some(true) && schemes.is_empty());

    let client = found.client(options).unwrap();
    let message = Message::new("m", Role::User, vec![Part::text("hello")]);
    let send = Operation::SendStreamingMessage(SendMessage::new(message));
    let mut events: a2ad::EventStream = within(client.stream(send)).await.unwrap();
    let (mut statuses, mut artifacts): (Vec<StatusUpdate>, Vec<ArtifactUpdate>) = Default::default();
    while let Some((_, event)) = within(events.next()).await.unwrap() {
        match event {
            Event::Status(update) => statuses.push(update),
            Event::Artifact(update) => artifacts.push(update),
            _ => {}
        }
    }
    assert!(!statuses.is_empty() && artifacts.len() == 1);
    let text = a2ad::text::of_parts(&artifacts[0].artifact.parts);
    assert_eq!(text, "0 before, for listener, false true");

    let list = Operation::ListTasks(ListTasks::default());
    let Reply::Tasks(page) = within(client.call(list)).await.unwrap() else { panic!("no page") };
    let page: a2ad::TaskPage = page;
    assert_eq!(page.tasks.len(), 1);
    let nothing = GetTask { id: "none".into(), history_length: None, tenant: None };
    let refused: ClientError = within(client.call(Operation::GetTask(nothing))).await.err().unwrap();
    let ClientError::Protocol(error) = refused else { panic!("{refused}") };
    let error: a2ad::ProtocolError = error;
    assert_eq!(error.kind, ErrorKind::TaskNotFound);
}

#[test]
fn a_server_needs_a_runtime() {
    assert!(matches!(Server::builder().agent("echo", Echo).build(), Err(ServeError::NoRuntime)));
}
