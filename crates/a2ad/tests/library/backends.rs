//! Skills with backends through the public API: a real HTTP function and a real MCP server behind agents of a builder.

use std::time::Duration;

use a2ad::{
    Builder, Card, Client, Outcome, Result, Server, Turn,
    agent::IntoOutcome as _,
    agent_fn,
    agents::Echo,
    backend::{McpConfig, Skill, command, http, skills},
    client::{ClientOptions, SendMessage, find_card, text},
    model::{Json, Part, Task, TaskState},
    testing::TestServer,
};
use axum::{Router, routing::post};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};

use super::with_timeout;

/// An MCP server with the tool `shout`, in the revision that begins with `initialize`.
const MCP_SERVER: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"shout","description":"Shouts","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*) result='{"content":[{"type":"text","text":"HELLO"}]}' ;;
        *) [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id"; continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// An HTTP function that returns its arguments.
struct Function {
    url: String,
    _serving: JoinSet<()>,
}

impl Function {
    #[allow(clippy::disallowed_methods, reason = "stands for a user's function")]
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/fx", listener.local_addr().unwrap());
        let app = Router::new()
            .route("/fx", post(|body: String| async move { ([("content-type", "application/json")], body) }));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, _serving: serving }
    }
}

async fn start(builder: Builder) -> TestServer {
    TestServer::start(builder).await.unwrap()
}

/// Calls a skill with arguments.
async fn call(client: &Client, skill: &str, arguments: &str) -> Task {
    let part = Part::data(Json::parse(arguments).unwrap());
    let message = a2ad::Message::new("m-1", a2ad::model::Role::User, vec![part]);
    let request = SendMessage { skill: Some(skill.into()), ..SendMessage::new(message) };
    with_timeout(client.send(request)).await.unwrap().into_task().unwrap()
}

/// Waits until the card of an agent shows these skills.
async fn wait_for_skills(url: &str, expected: &[&str]) {
    let shown = async {
        loop {
            let card = find_card(url, &ClientOptions::default()).await.unwrap().card;
            let mut ids: Vec<&str> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
            ids.sort_unstable();
            if ids == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    with_timeout(shown).await;
}

#[tokio::test]
async fn function_and_tool_without_an_agent_are_skills_of_main() {
    let function = Function::start().await;
    let fx = Skill::from(http(&function.url)).description("Converts an amount");
    let server =
        start(Server::builder().skill("fx", fx).mcp("voice", command(["sh", "-c", MCP_SERVER]))).await;
    let client = server.client().await.unwrap();
    wait_for_skills(&server.agent_url("main"), &["fx", "shout"]).await;
    let shouted = call(&client, "shout", "{}").await;
    assert_eq!((shouted.status.state, text::of_task(&shouted).as_str()), (TaskState::Completed, "HELLO"));
    let converted = call(&client, "fx", r#"{"amount":3}"#).await;
    assert_eq!(converted.status.state, TaskState::Completed);
    assert_eq!(converted.artifacts[0].parts, [Part::data(Json::parse(r#"{"amount":3}"#).unwrap())]);
    server.stop(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn calls_wait_for_a_server_that_starts() {
    let slow = format!("sleep 1\n{MCP_SERVER}");
    let server = start(Server::builder().mcp("voice", command(["sh", "-c", &slow]))).await;
    let client = server.client().await.unwrap();
    wait_for_skills(&server.agent_url("main"), &[]).await;
    let unnamed = a2ad::Message::new("m-2", a2ad::model::Role::User, vec![Part::text("{}")]);
    let unnamed = client.send(SendMessage::new(unnamed));
    let (named, unnamed) = tokio::join!(call(&client, "shout", "{}"), with_timeout(unnamed));
    for shouted in [named, unnamed.unwrap().into_task().unwrap()] {
        assert_eq!((shouted.status.state, text::of_task(&shouted).as_str()), (TaskState::Completed, "HELLO"));
    }
    server.stop(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn agents_have_the_skills_that_they_list() {
    let voice = McpConfig { timeout: Duration::from_secs(5), ..command(["sh", "-c", MCP_SERVER]).into() };
    let server = start(
        Server::builder()
            .agent("echo", Echo)
            .skill("hello", command(["printf", "hi"]))
            .skill("bye", command(["printf", "bye"]))
            .mcp("voice", voice)
            .agent(Card::new("all").name("All"), skills(["*"]))
            .agent("polite", skills(["hello", "mcp:voice/shout"])),
    )
    .await;
    wait_for_skills(&server.agent_url("all"), &["bye", "hello", "shout"]).await;
    wait_for_skills(&server.agent_url("polite"), &["hello", "shout"]).await;
    assert_eq!(server.call("first agent").await.unwrap(), "first agent");
    let polite = Client::discover(&server.agent_url("polite")).await.unwrap();
    assert_eq!(text::of_task(&call(&polite, "hello", "{}").await), "hi");
}

/// Calls a function and a tool inside its own task.
async fn both(turn: Turn) -> Result<Outcome> {
    let fx = turn.call("fx", &json!({"amount": 3})).await?;
    let shout = turn.call("shout", &json!({})).await?;
    if !shout.is_done() {
        return shout.into_outcome();
    }
    let amount = fx.data().map_or("none", Json::as_str);
    Ok(Outcome::artifact("both", format!("{} {amount}", shout.text())))
}

#[tokio::test]
async fn rust_agent_calls_a_function_and_a_tool_that_its_card_does_not_show() {
    let function = Function::start().await;
    let server = start(
        Server::builder()
            .skill("fx", http(&function.url))
            .mcp("voice", command(["sh", "-c", MCP_SERVER]))
            .agent("both", agent_fn(both)),
    )
    .await;
    // The tool becomes known while the task is tried again.
    assert_eq!(with_timeout(server.call("go")).await.unwrap(), r#"HELLO {"amount":3}"#);
    wait_for_skills(&server.agent_url("both"), &["both"]).await;
    server.stop(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn operations_of_a_document_in_a_file_are_skills() {
    let function = Function::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.json");
    let base = function.url.trim_end_matches("/fx");
    let document = format!(
        r#"{{"openapi":"3.0.0","info":{{"title":"t","version":"1"}},"servers":[{{"url":"{base}"}}],
            "paths":{{"/fx":{{"post":{{"operationId":"convert","responses":{{"200":{{"description":"ok"}}}}}}}}}}}}"#
    );
    std::fs::write(&file, document).unwrap();
    let server = start(Server::builder().openapi("shop", file.to_str().unwrap())).await;
    wait_for_skills(&server.agent_url("main"), &["convert"]).await;
    let converted = call(&server.client().await.unwrap(), "convert", "{}").await;
    assert_eq!(converted.status.state, TaskState::Completed, "{converted:?}");
}

#[tokio::test]
async fn invalid_backends_and_lists_are_errors() {
    let hello = || Server::builder().skill("hello", command(["printf", "hi"]));
    for (builder, expected) in [
        (hello().skill("hello", command(["cat"])), "Builder::skill: hello: is used twice"),
        (hello().skill("a:b", command(["cat"])), "Builder::skill: a:b: must be 1 to 64 letters, digits"),
        (Server::builder().skill("fx", http("ftp://x")), "Builder::skill: fx: "),
        (
            Server::builder().openapi("shop", "/no/such.yaml"),
            "Builder::openapi: shop: the file /no/such.yaml cannot be read: ",
        ),
        (hello().agent("a", skills(["helo"])), "Builder::agent: a: there is no skill \"helo\""),
        (hello().agent("a", skills(["mcp:x/*"])), "Builder::agent: a: \"mcp:x/*\": there is no \"x\""),
        (
            hello().agent("a", skills(["mcp:x"])),
            "Builder::agent: a: \"mcp:x\": expected mcp:NAME/ITEM or mcp:NAME/*",
        ),
        (hello().agent(Card::new("a").skill("b", "c"), skills(["hello"])), "Builder::agent: a: "),
    ] {
        let error = builder.build().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with(expected), "{error:?}: {expected:?}");
    }
}
