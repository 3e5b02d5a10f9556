//! What users' own tools get of a message: whole messages with files and the conversation, or arguments with all parts of
//! the message in them. Called over the wire.

#![cfg(all(feature = "mcp", feature = "openapi"))]
#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{path::Path, time::Duration};

use a2ad::{
    Client, Server,
    backend::{
        CommandTool, HttpConfig, Interface, Launcher, McpConfig, Protocol, Schema, Skill, command, http,
    },
    client::{ClientOptions, SendMessage, find_card, text},
    testing::TestServer,
};
use axum::{Router, http::HeaderMap, routing::post};
use protocol::{Content, Json, Message, Part, Role, Task, TaskState};
use tokio::{net::TcpListener, task::JoinSet};

/// The time limit of one operation.
const TIMEOUT: Duration = Duration::from_secs(30);

async fn with_timeout<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.expect("the operation timed out")
}

/// An HTTP function that returns what it gets, on `/echo` as JSON and on `/raw` as text with its media type.
struct Function {
    url: String,
    _serving: JoinSet<()>,
}

impl Function {
    #[allow(clippy::disallowed_methods, reason = "stands for a user's function")]
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let echo = |body: String| async move { ([("content-type", "application/json")], body) };
        let raw = |headers: HeaderMap, body: axum::body::Bytes| async move {
            let kind = headers["content-type"].to_str().unwrap().to_owned();
            format!("{kind}\n{}", String::from_utf8_lossy(&body))
        };
        let app = Router::new().route("/echo", post(echo)).route("/raw", post(raw));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, _serving: serving }
    }

    fn echo(&self) -> HttpConfig {
        http(format!("{}/echo", self.url))
    }
}

/// An MCP server with the tool `note`, which answers with the line of its call.
const MCP_SERVER: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"note","description":"Notes","inputSchema":{"type":"object","required":["message","n"],"properties":{"message":{"type":"object"},"n":{"type":"integer"}}}},{"name":"other","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*)
            id=$(printf '%s' "$line" | sed -n 's/^[^{]*{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
            text=$(printf '%s' "$line" | sed 's/\\/\\\\/g; s/"/\\"/g')
            result="{\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]}" ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Says what it gets, and what is in the first file. The first message makes it fail.
const PLAIN: &str = r#"
input=$(cat)
printf '%s\n%s\n' "$input" "$A2AD_CALL_FILES"
file=$(printf '%s' "$A2AD_CALL_FILES" | sed -n 's/.*"path":"\([^"]*\)".*/\1/p')
[ -z "$file" ] && { echo "not yet" >&2; exit 1; }
od -An -tx1 "$file"
printf '%s' "$file"
"#;

/// Asks once for each task, and then returns what it gets, with the answer.
const LINES: &str = r#"
input=$(cat)
if [ -n "$A2AD_CALL_ANSWER" ]; then
    printf '{"type":"result","data":{"input":%s,"answer":%s}}\n' "$input" "$(cat "$A2AD_CALL_ANSWER")"
else
    printf '{"type":"ask","text":"Sure?"}\n'
fi
"#;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn schema(text: &str) -> Schema {
    Schema::new(json(text)).unwrap()
}

fn data(text: &str) -> Part {
    Part::data(json(text))
}

fn file(bytes: &[u8], media_type: Option<&str>, name: Option<&str>) -> Part {
    Part {
        media_type: media_type.map(Into::into),
        filename: name.map(Into::into),
        ..Part::new(Content::Raw(bytes.into()))
    }
}

/// Sends a message to a skill; the error as text.
async fn send(client: &Client, skill: Option<&str>, message: Message) -> Result<Task, String> {
    let request = SendMessage { skill: skill.map(Into::into), ..SendMessage::new(message) };
    let sent = with_timeout(client.send(request)).await;
    sent.map(|reply| reply.into_task().unwrap()).map_err(|error| format!("{error:?}"))
}

fn message(id: &str, parts: Vec<Part>) -> Message {
    Message::new(id, Role::User, parts)
}

/// All that a task shows as its result, as text.
fn shown(task: &Task) -> String {
    let parts = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    let texts = parts.map(|part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(data) => data.as_str().to_owned(),
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().concat()
}

async fn wait_for_skills(url: &str, count: usize) -> Vec<a2ad::card::AgentSkill> {
    let listed = async {
        loop {
            let skills = find_card(url, &ClientOptions::default()).await.unwrap().card.skills;
            if skills.len() == count {
                return skills;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    with_timeout(listed).await
}

#[tokio::test]
async fn whole_messages_with_files_and_conversation_reach_functions_commands_and_tools() {
    let function = Function::start().await;
    let shell =
        |script: &str| CommandTool::new(Launcher::default(), ["sh", "-c", script].map(Into::into).into());
    let lines = CommandTool { protocol: Protocol::Jsonl, ..shell(LINES) };
    let interface = Interface { message_argument: Some("message".into()), ..Interface::message() };
    let notes =
        McpConfig { interface, tools: vec!["no*".into()], ..command(["sh", "-c", MCP_SERVER]).into() };
    let builder = Server::builder()
        .skill("function", Skill::from(function.echo()).message_input())
        .skill("plain", Skill::from(shell(PLAIN)).message_input())
        .skill("lines", Skill::from(lines).message_input())
        .mcp("notes", notes);
    let server = TestServer::start(builder).await.unwrap();
    let skills = wait_for_skills(server.url(), 4).await;
    for skill in &skills {
        assert_eq!(skill.input_modes, ["application/json", "text/plain", "*/*"], "{}", skill.id);
    }
    let client = server.client().await.unwrap();
    for skill in ["function", "plain", "lines", "note"] {
        let in_context = |id: &str, parts| Message {
            context_id: Some(format!("talk-{skill}").as_str().into()),
            ..message(&format!("{skill}-{id}"), parts)
        };
        let first =
            send(&client, Some(skill), in_context("1", vec![Part::text("first words")])).await.unwrap();
        let picture = file(b"\0\xff", Some("image/png"), Some("a b.png"));
        let parts = vec![Part::text("second words"), data(r#"{"n":1}"#), picture];
        let mut task = send(&client, Some(skill), in_context("2", parts)).await.unwrap();
        if skill == "lines" {
            assert_eq!(task.status.state, TaskState::InputRequired);
            let answer =
                Message { task_id: Some(task.id.clone()), ..in_context("3", vec![Part::text("yes")]) };
            task = send(&client, Some(skill), answer).await.unwrap();
        }
        assert_eq!(task.status.state, TaskState::Completed, "{skill}: {task:?}");
        let shown = shown(&task);
        // The MCP library sorts the members of arguments.
        let end = if skill == "note" { r#","message":{"# } else { r#","task":""# };
        let (start, rest) = shown.split_once(r#""history":["#).unwrap_or_else(|| panic!("{skill}: {shown}"));
        let (history, end) = rest.split_once(end).unwrap_or_else(|| panic!("{skill}: {shown}"));
        let message = format!("{start}{end}");
        for part in [
            r#""text":"second words""#,
            r#""raw":"AP8=""#,
            r#""filename":"a b.png""#,
            r#""mediaType":"image/png""#,
            r#""arguments":{"n":1}"#,
            &format!(r#""skill":"{skill}""#),
        ] {
            assert!(message.contains(part), "{skill}: {part}: {shown}");
        }
        assert!(shown.contains(&format!(r#""task":"{}""#, task.id)), "{skill}: {shown}");
        assert!(history.contains("first words") && !history.contains("second words"), "{skill}: {shown}");
        match skill {
            "plain" => {
                assert_eq!(first.status.state, TaskState::Failed);
                assert!(history.contains("ROLE_AGENT") && history.contains("not yet"), "{shown}");
                assert!(shown.contains(r#"[{"name":"a b.png","mediaType":"image/png","path":""#), "{shown}");
                assert!(shown.contains("00 ff"), "{shown}");
                let path = Path::new(shown.lines().last().unwrap());
                assert!(path.is_absolute() && !path.exists(), "{path:?}");
            }
            "lines" => {
                assert!(history.contains("Sure?"), "the question of the first task: {shown}");
                assert!(shown.contains(r#""answer":{"text":"yes""#), "{shown}");
            }
            _ => {
                assert_eq!(first.status.state, TaskState::Completed);
                let result = format!(r#""messageId":"{}-result""#, first.id);
                assert!(history.contains(&result) && history.contains("ROLE_AGENT"), "{shown}");
            }
        }
    }
    let clash =
        send(&client, Some("note"), message("c", vec![data(r#"{"message":{},"n":1}"#)])).await.unwrap();
    assert_eq!(clash.status.state, TaskState::Rejected);
    assert!(text::of_task(&clash).contains("arguments.message"), "{clash:?}");
    server.stop(Duration::from_secs(1)).await;
}

const INVALID_PARAMS: &str = "InvalidParams";
const NOT_SUPPORTED: &str = "ContentTypeNotSupported";

#[tokio::test]
async fn texts_and_files_fill_the_properties_that_take_them_or_are_refused_by_name() {
    let function = Function::start().await;
    let with = |text: &str| Skill::from(function.echo()).input_schema(schema(text));
    let picture = r#"{"type":"string","contentEncoding":"base64","contentMediaType":"image/png"}"#;
    let link = r#"{"type":"string","format":"uri"}"#;
    let builder = Server::builder()
        .skill("any", function.echo())
        .skill("note", with(&format!(
            r#"{{"type":"object","required":["query","id"],"properties":{{"query":{{"type":"string"}},"id":{{"type":"integer"}},
                "title":{{"type":"string"}},"picture":{picture},"link":{link},
                "more":{{"type":"array","items":{{"type":"string","format":"binary"}}}}}}}}"#
        )))
        .skill("options", with(r#"{"properties":{"a":{"type":"string"},"prompt":{"type":"string"},"n":{"type":"integer"}}}"#))
        .skill("number", with(r#"{"properties":{"n":{"type":"integer"}}}"#))
        .skill("scan", with(&format!(r#"{{"required":["picture"],"properties":{{"picture":{picture}}}}}"#)))
        .skill("images", Skill::from(function.echo()).message_input().input_modes(["image/*", "text/plain"]).output_modes(["text/csv"]));
    let server = TestServer::start(builder).await.unwrap();
    let skills = wait_for_skills(server.url(), 6).await;
    let modes = |id: &str| {
        let skill = skills.iter().find(|skill| skill.id == id).unwrap();
        (skill.input_modes.join(" "), skill.output_modes.join(" "))
    };
    let both = "application/json text/plain";
    assert_eq!(modes("any"), (both.into(), both.into()));
    assert_eq!(modes("number"), (both.into(), both.into()));
    assert_eq!(modes("scan"), ("application/json image/png".into(), both.into()));
    assert_eq!(modes("note"), ("application/json text/plain image/png */*".into(), both.into()));
    assert_eq!(modes("images"), ("image/* text/plain".into(), "text/csv".into()));
    let png = || file(b"ab", Some("image/png"), None);
    let url = || Part::new(Content::Url("https://x.example/a.pdf".into()));
    let text = Part::text;
    let client = server.client().await.unwrap();
    let fills = [
        ("any", vec![data(r#"{"a":1}"#), text("hi")], r#"{"a":1,"text":"hi"}"#),
        ("any", vec![data(r#"{"a":1}"#), data(r#"{"b":[2]}"#)], r#"{"a":1,"b":[2]}"#),
        ("any", vec![text("hi"), text("there")], r#"{"text":"hi there"}"#),
        ("note", vec![data(r#"{"id":1}"#), text("hi")], r#"{"id":1,"query":"hi"}"#),
        ("note", vec![data(r#"{"id":1,"query":"q"}"#), text(" \n")], r#"{"id":1,"query":"q"}"#),
        (
            "note",
            vec![text("hi"), png(), url(), data(r#"{"id":1}"#)],
            r#"{"id":1,"picture":"YWI=","link":"https://x.example/a.pdf","query":"hi"}"#,
        ),
        (
            "note",
            vec![data(r#"{"id":1,"query":"q"}"#), png(), png(), file(b"c", None, None)],
            r#"{"id":1,"query":"q","picture":"YWI=","more":["YWI=","Yw=="]}"#,
        ),
        (
            "note",
            vec![data(r#"{"id":1,"query":"q","link":"x"}"#), text("t")],
            r#"{"id":1,"query":"q","link":"x","title":"t"}"#,
        ),
        ("options", vec![text("go")], r#"{"prompt":"go"}"#),
        ("options", vec![text(r#"{"n": 2}"#)], r#"{"n":2}"#),
        ("options", vec![data(r#"{"prompt":"x","n":1}"#), text("go")], r#"{"prompt":"x","n":1,"a":"go"}"#),
        ("number", vec![text("what is it")], "{}"),
        ("number", vec![text("number"), data(r#"{"n":1}"#)], r#"{"n":1}"#),
        ("scan", vec![png()], r#"{"picture":"YWI="}"#),
    ];
    for (number, (skill, parts, expected)) in fills.into_iter().enumerate() {
        let task = send(&client, Some(skill), message(&format!("f-{number}"), parts)).await.unwrap();
        assert_eq!(
            (task.status.state, shown(&task).as_str()),
            (TaskState::Completed, expected),
            "{skill} {number}"
        );
    }
    let pdf = || file(b"ab", Some("application/pdf"), None);
    let refused = [
        ("any", vec![data(r#"{"text":"x"}"#), text("hi")], INVALID_PARAMS, "message.parts[1]"),
        ("any", vec![data(r#"{"a":1}"#), data(r#"{"a":2}"#)], INVALID_PARAMS, "message.parts[1]"),
        ("any", vec![data("[1]"), data("[2]")], INVALID_PARAMS, "message.parts[0]"),
        ("any", vec![text("hi"), file(b"ab", None, None)], NOT_SUPPORTED, "message.parts[1]"),
        ("any", vec![text("hi"), url()], NOT_SUPPORTED, "application/json, text/plain"),
        ("any", vec![text("hi"), png()], NOT_SUPPORTED, "image/png"),
        ("number", vec![text("hi"), data(r#"{"n":1}"#)], INVALID_PARAMS, "message.parts[0]"),
        ("note", vec![text("hi"), png()], INVALID_PARAMS, "id"),
        (
            "note",
            vec![data(r#"{"id":1,"query":"q","picture":"","more":[]}"#), pdf()],
            NOT_SUPPORTED,
            "message.parts[1]",
        ),
        ("scan", vec![pdf()], NOT_SUPPORTED, "image/png"),
        ("scan", vec![png(), file(b"x", None, None)], NOT_SUPPORTED, "message.parts[1]"),
        ("images", vec![pdf()], NOT_SUPPORTED, "image/*"),
    ];
    for (number, (skill, parts, kind, part)) in refused.into_iter().enumerate() {
        let error = send(&client, Some(skill), message(&format!("r-{number}"), parts)).await.unwrap_err();
        assert!(error.contains(kind) && error.contains(part), "{skill} {number}: {error}");
    }
    let asked = send(&client, Some("note"), message("a", vec![text("hi")])).await.unwrap();
    assert_eq!(
        asked.status.state,
        TaskState::InputRequired,
        "a text that cannot be all arguments is asked for them"
    );
    server.stop(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn files_are_sent_with_their_names_in_bodies_of_operations() {
    let function = Function::start().await;
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("shop.json");
    let url = &function.url;
    let text = format!(
        r##"{{"openapi":"3.0.0","info":{{"title":"t","version":"1"}},"servers":[{{"url":"{url}"}}],"paths":{{"/raw":{{
            "post":{{"operationId":"upload","requestBody":{{"required":true,"content":{{"multipart/form-data":{{"schema":
                {{"$ref":"#/components/schemas/Upload"}}}}}}}},"responses":{{"200":{{"description":"ok"}}}}}}}}}},
            "components":{{"schemas":{{"Upload":{{"type":"object","required":["logo"],"properties":
                {{"logo":{{"type":"string","format":"binary"}},"title":{{"type":"string"}}}}}}}}}}}}"##
    );
    std::fs::write(&document, text).unwrap();
    let server =
        TestServer::start(Server::builder().openapi("shop", document.to_str().unwrap())).await.unwrap();
    let client = server.client().await.unwrap();
    let logo = file(b"PNG!", Some("image/png"), Some("our logo.png"));
    let parts = vec![data(r#"{"body":{"title":"T"}}"#), logo];
    let task = send(&client, Some("upload"), message("m", parts)).await.unwrap();
    assert_eq!(task.status.state, TaskState::Completed, "{task:?}");
    let sent = shown(&task);
    assert!(sent.starts_with("multipart/form-data; boundary="), "{sent}");
    let expected = "name=\"logo\"; filename=\"our logo.png\"\r\ncontent-type: image/png\r\n\r\nPNG!\r\n";
    assert!(sent.contains(expected) && sent.contains("name=\"title\"\r\n\r\nT\r\n"), "{sent}");
    server.stop(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn answer_that_names_the_skill_is_asked_for_arguments_if_the_first_text_cannot_be_them() {
    let function = Function::start().await;
    let unit = r#"{"required":["unit"],"properties":{"unit":{"type":"string","enum":["km","mi"]}}}"#;
    let builder = Server::builder()
        .skill("distance", Skill::from(function.echo()).input_schema(schema(unit)))
        .skill("other", function.echo());
    let server = TestServer::start(builder).await.unwrap();
    let client = server.client().await.unwrap();
    let asked = send(&client, None, message("1", vec![Part::text("zzz qqq")])).await.unwrap();
    assert_eq!(asked.status.state, TaskState::InputRequired);
    let next = |id: &str, parts| Message { task_id: Some(asked.id.clone()), ..message(id, parts) };
    let named = send(&client, None, next("2", vec![Part::text("distance")])).await.unwrap();
    assert_eq!(named.status.state, TaskState::InputRequired, "{named:?}");
    assert!(text::of_task(&named).contains("distance needs unit"), "{named:?}");
    let done = send(&client, None, next("3", vec![data(r#"{"unit":"km"}"#)])).await.unwrap();
    assert_eq!((done.status.state, shown(&done).as_str()), (TaskState::Completed, r#"{"unit":"km"}"#));
    server.stop(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn tool_without_arguments_does_not_switch_the_choice_by_data_off() {
    let function = Function::start().await;
    let builder = Server::builder()
        .skill(
            "ping",
            Skill::from(function.echo()).input_schema(schema(r#"{"type":"object","properties":{}}"#)),
        )
        .skill(
            "pair",
            Skill::from(function.echo())
                .input_schema(schema(r#"{"required":["pair"],"properties":{"pair":{"type":"string"}}}"#)),
        );
    let server = TestServer::start(builder).await.unwrap();
    let client = server.client().await.unwrap();
    let task = send(&client, None, message("1", vec![data(r#"{"pair":"EUR"}"#)])).await.unwrap();
    assert_eq!((task.status.state, shown(&task).as_str()), (TaskState::Completed, r#"{"pair":"EUR"}"#));
    server.stop(Duration::from_secs(1)).await;
}
