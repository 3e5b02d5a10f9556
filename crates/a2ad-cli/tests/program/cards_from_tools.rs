//! Agents made of tools: their cards, and which skills can be called.

use std::path::Path;

use client::{Client, ClientOptions, find_card};
use protocol::{Message, Part, Role, SendMessage, Task, TaskState, model::AgentCard};
use testkit::process::Server;

use super::common::{self, ended, status_text, within};

async fn serve(folder: &Path, config: &str) -> Server {
    std::fs::write(folder.join("a2ad.toml"), config).unwrap();
    common::serve(folder).await
}

/// The configuration of an MCP server with these tools.
fn mcp(server: &str, tools: &[impl AsRef<str>]) -> String {
    let tools: Vec<&str> = tools.iter().map(AsRef::as_ref).collect();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tool_server.py");
    format!("[mcp.{server}]\ncommand = [\"python3\", \"-S\", {script:?}, \"{}\"]\n", tools.join("\", \""))
}

async fn card(server: &Server) -> AgentCard {
    within(find_card(&server.url(), &ClientOptions::default())).await.unwrap().card
}

fn ids(card: &AgentCard) -> Vec<&str> {
    card.skills.iter().map(|skill| skill.id.as_str()).collect()
}

/// The params of the extension with the schemas.
fn schemas(card: &AgentCard) -> &str {
    let [extension] = card.capabilities.extensions.as_slice() else { panic!("{card:?}") };
    assert_eq!(extension.uri, "urn:a2ad:ext:skill-schemas:1");
    extension.params.as_ref().unwrap().as_str()
}

fn client(server: &Server) -> Client {
    Client::connect(&server.url()).unwrap()
}

async fn send(client: &Client, skill: &str, return_immediately: bool) -> Task {
    let request = common::request("the sea sections=500 delay=20ms", return_immediately);
    common::send(client, SendMessage { skill: Some(skill.into()), ..request }).await
}

/// A tool that two entries of the agent's list select is one skill. One that two servers have is private under both
/// names if it is private.
#[tokio::test(flavor = "multi_thread")]
async fn tools_with_the_same_name_are_named_after_their_servers() {
    let folder = tempfile::tempdir().unwrap();
    let private = "mcp__user_5f2c9a_notes";
    let config = mcp("one", &["search", "only", private])
        + &mcp("two", &["search", "parrot", private])
        + "[skills.parrot]\nbuiltin = \"echo\"\n[agents.main]\n\
           skills = [\"parrot\", \"mcp:one/*\", \"mcp:one/search\", \"mcp:two/*\"]\n";
    let server = serve(folder.path(), &config).await;
    let card = card(&server).await;
    assert_eq!(ids(&card), ["parrot", "one__search", "only", "two__search", "two__parrot"]);
    assert!(card.description.ends_with("with 4 tool(s)"), "{}", card.description);
    let object = r#"{"input":{"type":"object"}}"#;
    let expected = ["one__search", "only", "two__parrot", "two__search"];
    let expected = expected.map(|skill| format!("{skill:?}:{object}")).join(",");
    assert_eq!(schemas(&card), format!("{{{expected}}}"));
    let task = send(&client(&server), "two__search", false).await;
    assert_eq!(task.artifacts[0].name.as_deref(), Some("two__search-result"), "{task:?}");
    assert!(format!("{task:?}").contains(r#""tool":"search""#), "{task:?}");
}

/// The second server makes both tools named `search` get other ids; neither is shown to everybody.
#[tokio::test(flavor = "multi_thread")]
async fn extended_skill_that_gets_another_id_is_not_on_the_public_card() {
    let folder = tempfile::tempdir().unwrap();
    let config = mcp("one", &["search", "only"])
        + &mcp("two", &["search"])
        + "[agents.main]\nskills = [\"mcp:one/*\", \"mcp:two/*\"]\nextended_card = \"protected\"\nextended_skills = [\"search\"]\n";
    let server = serve(folder.path(), &config).await;
    assert_eq!(ids(&card(&server).await), ["only"]);
    let message = Message::new("m", Role::User, vec![Part::text("x")]);
    for skill in ["search", "one__search", "two__search"] {
        let send = SendMessage { skill: Some(skill.into()), ..SendMessage::new(message.clone()) };
        let error = within(client(&server).send(send)).await.unwrap_err().to_string();
        assert!(error.contains("expected one of only"), "{error}");
    }
}

/// Such a name would be invisible, or look like another one, on cards and in terminals.
#[tokio::test(flavor = "multi_thread")]
async fn tools_with_names_that_cannot_be_shown_are_skipped_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let (longest, long) = ("x".repeat(128), "y".repeat(129));
    let hidden = ["", "line\\nbreak", "erase\\u202etixe", "\\u2066isolated"];
    let tools: Vec<&str> = ["plain", &longest, &long].into_iter().chain(hidden).collect();
    let server = serve(folder.path(), &mcp("odd", &tools)).await;
    assert_eq!(ids(&card(&server).await), ["plain", &longest]);
    let log = server.log();
    assert_eq!(log.matches("a tool of an MCP server is not used").count(), 5, "{log}");
    assert!(log.contains("its name is empty") && log.contains("more than 128 characters"), "{log}");
    assert!(!log.contains(['\u{202e}', '\u{2066}']), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn thousand_tools_are_skills_with_their_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let tools: Vec<String> = (0..1_000).map(|number| format!("tool-{number:03}")).collect();
    let server = serve(folder.path(), &mcp("many", &tools)).await;
    let card = card(&server).await;
    assert_eq!(ids(&card), tools);
    assert!(card.description.ends_with("with 1000 tool(s)"), "{}", card.description);
    assert_eq!(schemas(&card).matches("tool-").count(), 1_000);
    let task = send(&client(&server), "tool-999", false).await;
    assert_eq!(task.status.state, TaskState::Completed, "{task:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn task_of_a_skill_that_was_removed_fails() {
    let folder = tempfile::tempdir().unwrap();
    let skills = |names: &[&str]| -> String {
        names.iter().map(|name| format!("[skills.{name}]\nbuiltin = \"{name}\"\n")).collect()
    };
    let server = serve(folder.path(), &skills(&["echo", "currency", "slow-writer"])).await;
    let task = send(&client(&server), "slow-writer", true).await;
    server.kill().await.unwrap();
    let server = serve(folder.path(), &skills(&["echo", "currency"])).await;
    let ended = ended(&client(&server), &task.id).await;
    assert_eq!(ended.status.state, TaskState::Failed, "{ended:?}");
    assert_eq!(status_text(&ended), "the agent no longer has the skill slow-writer");
    let metadata = ended.status.message.unwrap().metadata.unwrap();
    assert_eq!(metadata.as_str(), r#"{"a2ad":{"reason":"skill_removed"}}"#);
}
