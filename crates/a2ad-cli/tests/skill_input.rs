//! What skills, MCP servers and documents of the file take and offer: `input`, `message_argument`, modes, `tools`.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{path::Path, time::Duration};

use client::{Client, ClientOptions, find_card};
use protocol::{Content, Message, Part, Role, SendMessage, TaskState};
use testkit::process::{self, Server};

const TIMEOUT: Duration = Duration::from_secs(30);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.expect("timed out")
}

/// What `check` says about a file with this text.
fn problems(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), text).unwrap();
    let mut command = process::command(env!("CARGO_BIN_EXE_a2ad")).into_std();
    let output = command.current_dir(folder.path()).args(["check", "a.toml"]).output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

async fn serve(folder: &Path, config: &str) -> Server {
    std::fs::write(folder.join("a2ad.toml"), config).unwrap();
    let mut command = process::command(env!("CARGO_BIN_EXE_a2ad"));
    command.current_dir(folder).args(["--config", "a2ad.toml", "--listen", "127.0.0.1:0"]);
    Server::start_command(command).await.unwrap()
}

#[test]
fn keys_that_do_not_fit_are_reported_with_what_to_do() {
    for (text, expected) in [
        (
            "[skills.a]\nbuiltin = \"echo\"\ninput = \"message\"\n",
            "skills.a.input: a built-in agent always gets the message",
        ),
        ("[skills.a]\ncommand = { argv = [\"cat\"] }\ninput = \"files\"\n", "skills.a.input: "),
        (
            "[skills.a]\ncommand = { argv = [\"cat\"] }\nmessage_argument = \"m\"\n",
            "skills.a.message_argument: only tools",
        ),
        (
            "[skills.a]\ncommand = { argv = [\"cat\"] }\ninput_modes = [\"image\"]\n",
            "\"image\" is not a media type; write text/plain",
        ),
        (
            "[skills.a]\nhttp = { url = \"http://127.0.0.1:9/\", method = \"GET\" }\ninput = \"message\"\n",
            "skills.a.http.method: GET has no body for the message; use POST",
        ),
        ("[mcp.m]\ncommand = [\"cat\"]\ninput = \"message\"\n", "mcp.m.input: expected message_argument too"),
        (
            "[mcp.m]\ncommand = [\"cat\"]\n[skills.a]\nmcp = { server = \"m\", tool = \"t\" }\ninput = \"message\"\n",
            "skills.a.input: expected message_argument too",
        ),
    ] {
        let problems = problems(text);
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
    let valid = "[limits.history]\nmessages = 5\nsize = \"1KiB\"\n[mcp.m]\ncommand = [\"cat\"]\ninput = \"message\"\nmessage_argument = \"x\"\n\
                 tools = [\"a*\"]\n[skills.a]\nmcp = { server = \"m\", tool = \"t\" }\ninput = \"arguments\"\n";
    assert_eq!(problems(valid), "");
}

/// Only the named tools of a server are skills, and a command of the file gets the whole message.
#[tokio::test(flavor = "multi_thread")]
async fn tools_are_chosen_by_pattern_and_a_command_gets_the_message() {
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tool_server.py");
    let config = format!(
        "[mcp.files]\ncommand = [\"python3\", \"-S\", {script:?}, \"read_file\", \"write_file\", \"read_folder\", \"list\"]\n\
         tools = [\"read_*\", \"list\"]\noutput_modes = [\"text/markdown\"]\n\
         [skills.chat]\ncommand = {{ argv = [\"cat\"] }}\ninput = \"message\"\ninput_modes = [\"text/plain\", \"image/*\"]\n"
    );
    let server = serve(folder.path(), &config).await;
    let card = within(find_card(&server.url(), &ClientOptions::default())).await.unwrap().card;
    let skills: Vec<String> =
        card.skills.iter().map(|skill| format!("{} {}", skill.id, skill.output_modes.join(","))).collect();
    let tools = ["read_file", "read_folder", "list"].map(|tool| format!("{tool} text/markdown"));
    assert_eq!(skills, [&["chat application/json,text/plain".to_owned()], tools.as_slice()].concat());
    let client = Client::connect(&server.url()).unwrap();
    let picture = Part { media_type: Some("image/png".into()), ..Part::new(Content::Raw(vec![1, 2])) };
    let send = |part: Part| {
        let message = Message::new("m", Role::User, vec![Part::text("what is it"), part]);
        client.send(SendMessage { skill: Some("chat".into()), ..SendMessage::new(message) })
    };
    let task = within(send(picture.clone())).await.unwrap().into_task().unwrap();
    assert_eq!(task.status.state, TaskState::Completed, "{task:?}");
    let Content::Data(got) = &task.artifacts[0].parts[0].content else { panic!("{task:?}") };
    assert!(got.as_str().starts_with(r#"{"message":{"messageId":"m""#), "{got:?}");
    assert!(
        got.as_str().contains(r#""raw":"AQI=""#) && got.as_str().contains(r#""arguments":null,"history":[]"#),
        "{got:?}"
    );
    let pdf = Part { media_type: Some("application/pdf".into()), ..picture };
    let refused = format!("{:?}", within(send(pdf)).await.unwrap_err());
    assert!(
        refused.contains("message.parts[1]: this agent accepts image/*, text/plain, not application/pdf"),
        "{refused}"
    );
}
