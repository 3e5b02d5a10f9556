//! The client commands of the program against its server.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::Stdio,
    time::Duration,
};

use client::Client;
use protocol::{
    Json, Message, Part, Role,
    json::read::{Node, Path as Field},
};
use rustix::pty;
use tempfile::TempDir;
use testkit::process;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};

/// The limit for any single wait.
const TIMEOUT: Duration = Duration::from_secs(60);
const DIALECTS: [&str; 3] = ["draft", "0.3", "1.0"];
/// Besides the demo's agents: one that fails on request, and one that accepts no call.
const CONFIG: &str = r#"
    [server]
    default_agent = "echo"
    [skills.echo]
    builtin = "echo"
    [skills.tck]
    builtin = "tck"
    [agents.echo]
    skills = ["echo"]
    [agents.tck]
    skills = ["tck"]
    [agents.locked]
    skills = ["echo"]
    auth = ["api-key"]
    [agents.bank]
    skills = ["echo"]
    profile = "pinkfish"
"#;

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.expect("timed out")
}

fn a2ad(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = process::command(env!("CARGO_BIN_EXE_a2ad"));
    command.current_dir(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server, and the directory of its store.
struct Server {
    folder: TempDir,
    process: process::Server,
    address: String,
}

/// The exit code and output of a client command.
struct CommandOutput {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Server {
    async fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("agents.toml"), CONFIG).unwrap();
        Self::start_at(folder, "127.0.0.1:0", arguments).await
    }

    async fn start_at(folder: TempDir, address: &str, arguments: &[&str]) -> Self {
        let mut command = a2ad(folder.path(), &["serve", "--listen", address]);
        command.args(arguments);
        Self::start_command(folder, command).await
    }

    async fn start_command(folder: TempDir, command: Command) -> Self {
        let process = process::Server::start_command(command).await.unwrap();
        Self { folder, address: process.address.to_string(), process }
    }

    /// Kills it with SIGKILL and restarts it at the same address.
    async fn kill_and_restart(self) -> Self {
        self.process.kill().await.unwrap();
        Self::start_at(self.folder, &self.address, &[]).await
    }

    fn client(&self, arguments: &[&str]) -> Command {
        let mut command = a2ad(self.folder.path(), arguments);
        command.env("A2AD_URL", format!("http://{}", self.address));
        command
    }

    async fn run(&self, arguments: &[&str]) -> CommandOutput {
        finish(self.client(arguments)).await
    }
}

async fn finish(mut command: Command) -> CommandOutput {
    let output = within(command.output()).await.unwrap();
    CommandOutput {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl CommandOutput {
    #[track_caller]
    fn check(&self, code: i32, stdout: &str, stderr: &str) {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, stdout, "{}", self.stderr);
        assert!(self.stderr.contains(stderr), "{stderr:?} is not in {:?}", self.stderr);
    }

    /// The id of the task that stderr names.
    fn task(&self) -> String {
        let text_after = self.stderr.split_once("task ").unwrap_or_else(|| panic!("{}", self.stderr)).1;
        text_after.split_whitespace().next().unwrap().to_owned()
    }
}

/// A member of a document, as text.
#[track_caller]
fn member(document: &Json, path: &str) -> String {
    path.split('.')
        .fold(document.clone(), |value, name| {
            let object = Node::new(value.as_raw(), &Field::Root).object().unwrap();
            let found = object.maybe(name, |node| node.any()).unwrap();
            found.unwrap_or_else(|| panic!("no {name} of {path} in {document:?}"))
        })
        .as_str()
        .trim_matches('"')
        .to_owned()
}

fn text(sections: usize) -> String {
    (1..=sections).map(|number| format!("Section {number} of {sections}: more about the sea.\n")).collect()
}

#[tokio::test]
async fn every_client_command_works_in_every_generation() {
    let server = Server::start(&[]).await;
    for dialect in DIALECTS {
        let run = async |arguments: &[&str]| server.run(&[arguments, &["--dialect", dialect]].concat()).await;
        let card = run(&["card", "echo"]).await;
        assert!(card.code == 0 && card.stdout.contains("name          Echo\n"), "{}", card.stdout);
        let skills = run(&["skills", "echo"]).await;
        assert!(skills.stdout.starts_with("echo: Gives back what it is given\n"), "{}", skills.stdout);

        let sent = run(&["send", "echo", "hello", "there"]).await;
        sent.check(0, "hello there\n", " completed\n");
        run(&["send", "echo", "hello", "--blocking"]).await.check(0, "hello\n", " completed\n");
        let streamed = run(&["stream", "slow-writer", "the sea sections=3 delay=1ms"]).await;
        streamed.check(0, &text(3), " completed: 3 sections written\n");

        let asked = run(&["send", "approver", "delete it"]).await;
        asked.check(4, "May I proceed with: delete it? Answer approve or deny.\n", " input-required; ");
        let approved = run(&["reply", "approver", &asked.task(), "approve"]).await;
        approved.check(0, "Approved: delete it\n", " completed: Done: delete it\n");
        assert_eq!(approved.task(), asked.task());
        let streamed = run(&["stream", "approver", "delete it"]).await;
        streamed.check(4, "May I proceed with: delete it? Answer approve or deny.\n", "");
        let denied = run(&["stream", "approver", "--task", &streamed.task(), "deny"]).await;
        denied.check(3, "", " rejected: Denied: delete it\n");

        let held = run(&["send", "echo", "hold on", "--async"]).await;
        assert_eq!((held.code, held.stdout.as_str()), (0, ""), "{}", held.stderr);
        let got = run(&["tasks", "get", "echo", &held.task()]).await;
        got.check(0, "", " working; follow it with: a2ad tasks watch echo ");
        run(&["tasks", "cancel", "echo", &held.task()]).await.check(0, "", " canceled\n");
        run(&["tasks", "cancel", "echo", &held.task()]).await.check(
            8,
            "",
            "a2ad: the agent answered with an error",
        );
        run(&["tasks", "get", "echo", &sent.task()]).await.check(0, "hello there\n", " completed\n");

        let listed = run(&["tasks", "ls", "echo", "--status", "canceled"]).await;
        match dialect {
            "1.0" => {
                assert!(listed.code == 0 && listed.stdout.starts_with(&held.task()), "{}", listed.stdout)
            }
            _ => listed.check(8, "", "has no ListTasks; it was added in A2A 1.0"),
        }
    }
}

#[tokio::test]
async fn json_output_is_one_1_0_document_per_response() {
    let server = Server::start(&[]).await;
    for dialect in DIALECTS {
        let run = async |arguments: &[&str]| {
            let run_output = server.run(&[arguments, &["--json", "--dialect", dialect]].concat()).await;
            assert_eq!(run_output.code, 0, "{}", run_output.stderr);
            run_output.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let card = run(&["card", "echo"]).await;
        assert!(card.len() == 1 && card[0].contains(r#""supportedInterfaces""#), "{card:?}");
        let skills = run(&["skills", "echo"]).await;
        assert!(skills.len() == 1 && skills[0].starts_with(r#"[{"id":"echo","#), "{skills:?}");
        let sent = run(&["send", "echo", "hi"]).await;
        assert!(sent.len() == 1 && sent[0].starts_with(r#"{"task":{"id":""#), "{sent:?}");
        assert!(
            sent[0].contains(r#""state":"TASK_STATE_COMPLETED""#) && sent[0].contains(r#"{"text":"hi"}"#)
        );
        // The requested history length holds also in generations that cannot request 0.
        assert!(!sent[0].contains("ROLE_USER"), "{sent:?}");
        let more = run(&["send", "echo", "hi", "--history", "1"]).await;
        assert_eq!(more[0].matches("ROLE_USER").count(), 1, "{more:?}");
        let id = sent[0].split('"').nth(5).unwrap();
        let got = run(&["tasks", "get", "echo", id]).await;
        assert!(got.len() == 1 && got[0].starts_with(&format!(r#"{{"id":"{id}""#)), "{got:?}");
        assert!(got[0].contains("ROLE_USER"), "{got:?}");
        let got = run(&["tasks", "get", "echo", id, "--history", "0"]).await;
        assert!(!got[0].contains("ROLE_USER"), "{got:?}");
        let events = run(&["stream", "slow-writer", "the sea sections=2 delay=1ms"]).await;
        let count = |what: &str| events.iter().filter(|event| event.contains(what)).count();
        assert_eq!((count(r#"{"artifactUpdate":"#), count("TASK_STATE_COMPLETED")), (2, 1), "{events:?}");
        assert_eq!(count("ROLE_USER"), 0, "{events:?}");
    }
    let listed = server.run(&["tasks", "ls", "echo", "--json", "--limit", "2"]).await;
    assert_eq!(listed.stdout.matches(r#""contextId""#).count(), 2, "{}", listed.stdout);
    assert!(listed.stdout.contains(r#""totalSize":6"#), "{}", listed.stdout);
}

#[tokio::test]
async fn exit_codes_reflect_the_outcome() {
    let server = Server::start(&["--config", "agents.toml"]).await;
    let run = async |arguments: &[&str]| server.run(arguments).await;
    run(&["send", "tck", "tck-message-response"]).await.check(0, "Direct message response\n", "");
    run(&["stream", "tck", "tck-message-response"]).await.check(0, "Direct message response\n", "");
    for subcommand in ["send", "stream"] {
        run(&[subcommand, "tck", "a2ad-fail"]).await.check(3, "", " failed: failed as asked\n");
        run(&[subcommand, "tck", "tck-reject-task"]).await.check(3, "", " rejected: rejected\n");
        run(&[subcommand, "tck", "tck-input-required"]).await.check(
            4,
            "Please say more\n",
            " input-required; ",
        );
        run(&[subcommand, "locked", "hi"]).await.check(
            5,
            "",
            "; the agent requires an API key in the header X-Api-Key (--api-key-env VAR)",
        );
        let refused = run(&[subcommand, "locked", "hi", "--header", "X-Api-Key: s3cret"]).await;
        refused.check(
            5,
            "",
            "; access was denied with --header; the agent requires an API key in the header X-Api-Key (--api-key-env VAR)\n",
        );
        assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
        let traced = run(&[subcommand, "locked", "hi", "--header", "X-Trace: 1"]).await;
        traced.check(
            5,
            "",
            "; access was denied with --header; the agent requires an API key in the header ",
        );
        run(&[subcommand, "nobody", "hi"]).await.check(
            6,
            "",
            "there is no agent nobody at http://127.0.0.1:",
        );
        for dialect in DIALECTS {
            let nobody = [subcommand, "nobody", "hi", "--dialect", dialect];
            run(&nobody).await.check(6, "", "there is no agent nobody at http://127.0.0.1:");
            // Where clients choose task ids, a mistyped id does not create a task.
            let mistyped = [subcommand, "echo", "hi", "--task", "task_none", "--dialect", dialect];
            run(&mistyped).await.check(6, "", "ask not found");
        }
        run(&[subcommand, "echo", "hold", "--timeout", "300ms"]).await.check(
            7,
            "",
            "is still running; follow it with: a2ad tasks watch",
        );
        run(&[subcommand, "h/a", "hi"]).await.check(2, "", "begin a URL with http://");
        run(&[subcommand, "echo"]).await.check(2, "", "the message is empty");
        let broken = run(&[subcommand, "echo", "hi", "--data", "{bad"]).await;
        broken.check(2, "", "--data is not JSON: key must be a string at line 1 column 2");
        run(&[subcommand, "echo", "hi", "-f", "none.txt"]).await.check(2, "", "none.txt cannot be sent");
        run(&[subcommand, "echo", "hi", "--bearer-env", "A2AD_NONE"]).await.check(
            2,
            "",
            "A2AD_NONE is not set",
        );
        run(&[subcommand, "echo", "hi", "--dialect", "0.9"]).await.check(2, "", "expected draft, 0.3 or 1.0");
        let nobody = ["echo", "hi", "--server", "http://127.0.0.1:1"];
        let start = "; start a server with: a2ad serve --listen 127.0.0.1:1\n";
        run(&[&[subcommand], &nobody[..]].concat()).await.check(1, "", start);
    }
    for dialect in DIALECTS {
        let reply = ["reply", "echo", "task_none", "hi", "--dialect", dialect];
        run(&reply).await.check(6, "", "ask not found");
    }
    run(&["tasks", "get", "echo", "task_none"]).await.check(6, "", "task not found");
    run(&["tasks", "ls", "echo", "--status", "odd"]).await.check(2, "", "expected one of submitted, working");
    let login = Server::start(&[]).await;
    let asked = login.run(&["send", "approver", "login", "please"]).await;
    asked.check(4, &asked.stdout, "auth-required; continue with credentials");
}

#[tokio::test]
async fn messages_have_text_from_stdin_data_and_files() {
    let server = Server::start(&[]).await;
    std::fs::write(server.folder.path().join("note.md"), "# hi").unwrap();
    for arguments in [&["send", "echo"][..], &["stream", "echo", "-"]] {
        let mut child = server.client(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all("one\ntwo é\n".as_bytes()).await.unwrap();
        let output = within(child.wait_with_output()).await.unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "one\ntwo é\n");
    }
    for dialect in DIALECTS {
        let data = ["send", "echo", "both", "--data", r#"{"a":9007199254740993}"#, "--data", "[1]"];
        let sent = server.run(&[&data[..], &["--dialect", dialect]].concat()).await;
        sent.check(0, "both\n{\"a\":9007199254740993}\n[1]\n", "completed");
        let file = server.run(&["send", "echo", "-f", "note.md", "--json", "--dialect", dialect]).await;
        for expected in [r#""raw":"IyBoaQ==""#, r#""filename":"note.md""#, r#""mediaType":"text/markdown""#] {
            assert!(file.stdout.contains(expected), "{}", file.stdout);
        }
        let file = server.run(&["send", "echo", "-f", "note.md", "--dialect", dialect]).await;
        file.check(0, "", "file note.md (text/markdown, 4 bytes): use --json to get its content");
    }
}

#[tokio::test]
async fn a_stream_survives_restarts_and_prints_everything_once() {
    const SECTIONS: usize = 40;
    let mut server = Server::start(&[]).await;
    for dialect in DIALECTS {
        for json in [false, true] {
            let message = format!("the sea sections={SECTIONS} delay=20ms");
            let mut command = server.client(&["stream", "slow-writer", &message, "--dialect", dialect]);
            let mut child = command.args(json.then_some("--json")).spawn().unwrap();
            let mut out = BufReader::new(child.stdout.take().unwrap());
            let mut stdout = String::new();
            for _ in 0..2 {
                // Killed a few lines after the last start.
                for _ in 0..6 {
                    within(out.read_line(&mut stdout)).await.unwrap();
                }
                server = server.kill_and_restart().await;
            }
            within(out.read_to_string(&mut stdout)).await.unwrap();
            let output = within(child.wait_with_output()).await.unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(0), "{dialect}: {stderr}");
            assert!(stderr.contains("connection lost; reconnecting"), "{stderr}");
            let sections: String = match json {
                false => stdout,
                true => stdout
                    .lines()
                    .filter_map(|event| event.split_once(r#""artifactUpdate""#)?.1.split_once(r#""text":""#))
                    .map(|(_, text)| text[..text.find('"').unwrap()].replace("\\n", "\n"))
                    .collect(),
            };
            assert_eq!(sections, text(SECTIONS), "{dialect}");
        }
    }
}

#[tokio::test]
async fn ctrl_c_reports_the_task_that_is_still_running() {
    let server = Server::start(&[]).await;
    for dialect in DIALECTS {
        let arguments = ["stream", "echo", "hold on", "--json", "--dialect", dialect];
        let mut child = server.client(&arguments).spawn().unwrap();
        let mut first = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        within(out.read_line(&mut first)).await.unwrap();
        let process = child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-INT", &process]).status().await.unwrap().success());
        let output = within(child.wait_with_output()).await.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{stderr}");
        let error = Json::parse(&stderr).unwrap();
        let id = member(&error, "error.message").split_whitespace().nth(1).unwrap().to_owned();
        let command = format!("a2ad tasks watch echo {id} --dialect {dialect}");
        assert_eq!(member(&error, "error.message"), format!("task {id} is still running"));
        assert_eq!(member(&error, "error.hint"), format!("follow it with: {command}"));
        assert_eq!(member(&error, "error.exitCode"), "130");
        let id = id.as_str();
        assert!(first.contains(id), "{first}");
        server.run(&["tasks", "get", "echo", id]).await.check(0, "", &format!("task {id} working"));
    }
}

/// What a command writes to a terminal.
async fn shown_on_a_terminal(mut command: Command) -> String {
    let terminal = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&terminal).unwrap();
    pty::unlockpt(&terminal).unwrap();
    let name = pty::ptsname(&terminal, Vec::new()).unwrap();
    let other_end = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = command.stdout(other_end.try_clone().unwrap()).stderr(other_end).spawn().unwrap();
    // The command holds the other end too; dropped, the terminal hangs up when the program ends.
    drop(command);
    let read = move || {
        let mut shown = Vec::new();
        // Reading a terminal without a writer returns an error.
        let _ = File::from(terminal).read_to_end(&mut shown);
        String::from_utf8(shown).unwrap()
    };
    let shown = within(tokio::task::spawn_blocking(read)).await.unwrap();
    assert!(within(child.wait()).await.unwrap().success(), "{shown}");
    shown.replace("\r\n", "\n")
}

#[tokio::test]
async fn a_terminal_gets_no_control_characters_of_an_agent() {
    let text = "a\u{202e}b\u{2066}c\u{200f}d\u{61c}e\u{1b}[2Jf\u{9b}g\rh";
    let server = Server::start(&[]).await;
    // Files and pipes get the text as it is.
    let piped = server.run(&["send", "echo", text]).await;
    piped.check(0, &format!("{text}\n"), "completed");
    let id = piped.task();
    for arguments in [&["send", "echo", text][..], &["stream", "echo", text], &["tasks", "get", "echo", &id]]
    {
        let shown = shown_on_a_terminal(server.client(arguments)).await;
        assert!(shown.contains("abcde[2Jfgh\n"), "{arguments:?}: {shown:?}");
        let is_control =
            |c: char| c != '\n' && c.is_control() || "\u{202e}\u{2066}\u{200f}\u{61c}".contains(c);
        assert!(!shown.contains(is_control), "{arguments:?}: {shown:?}");
        // The same for programs, which read escapes.
        let arguments = [arguments, &["--json"]].concat();
        let shown = shown_on_a_terminal(server.client(&arguments)).await;
        assert!(shown.contains(r"a\u202eb\u2066c\u200fd\u061ce"), "{arguments:?}: {shown:?}");
        assert!(!shown.contains(is_control), "{arguments:?}: {shown:?}");
        assert!(
            shown.lines().filter(|line| line.contains(r"a\u202eb")).all(|line| Json::parse(line).is_ok())
        );
    }
}

#[tokio::test]
async fn task_lists_follow_all_pages() {
    const TASKS: usize = 101;
    let server = Server::start(&[]).await;
    let client = Client::connect(&format!("http://{}/a2a/echo", server.address)).unwrap();
    for number in 0..TASKS {
        let mut message = Message::new(format!("m-{number}"), Role::User, vec![Part::text("hi")]);
        message.context_id = Some(if number % 2 == 0 { "even" } else { "odd" }.into());
        within(client.send(message)).await.unwrap();
    }
    let lines = async |arguments: &[&str]| {
        let run_output = server.run(&[&["tasks", "ls", "echo"], arguments].concat()).await;
        (run_output.stdout.lines().count(), run_output.stderr)
    };
    assert_eq!(lines(&["--limit", "0"]).await, (TASKS, String::new()));
    assert_eq!(lines(&[]).await, (100, "100 of 101 tasks; --limit shows more\n".to_owned()));
    assert_eq!(lines(&["--context", "even", "--limit", "0"]).await.0, 51);
    assert_eq!(lines(&["--status", "TASK_STATE_WORKING"]).await.0, 0);
}

#[tokio::test]
async fn credentials_are_not_sent_to_another_host() {
    let server = Server::start(&[]).await;
    let endpoint = format!("http://{}/a2a/echo", server.address);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let body = format!(
        r#"{{"name":"a","supportedInterfaces":[{{"url":"{endpoint}","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}]}}"#
    );
    let serving = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
    });
    server.run(&["send", &url, "hi"]).await.check(0, "hi\n", &format!("on another host: {endpoint}"));
    let mut command = server.client(&["send", &url, "hi", "--bearer-env", "TOKEN"]);
    command.env("TOKEN", "s3cret");
    let refused = finish(command).await;
    refused.check(
        2,
        "",
        "credentials are not sent there; if you trust that endpoint, call it directly with --dialect",
    );
    assert!(!refused.stderr.contains("s3cret"));
    serving.join().unwrap();
    let direct = ["send", &endpoint, "hi", "--dialect", "1.0", "--header", "X-Trace: 1"];
    server.run(&direct).await.check(0, "hi\n", "completed");
}

#[tokio::test]
async fn a_name_selects_an_agent_of_the_given_server() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agents.toml"), CONFIG).unwrap();
    let mut command = a2ad(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("A2AD_SERVER__PUBLIC_URL", "https://agents.invalid/x");
    let server = Server::start_command(folder, command).await;
    for dialect in DIALECTS {
        let run = async |arguments: &[&str]| {
            let mut command = server.client(&[arguments, &["--dialect", dialect]].concat());
            command.env("TOKEN", "s3cret");
            finish(command).await
        };
        // By name, the public address of the card is not used.
        run(&["send", "echo", "hi", "--bearer-env", "TOKEN"]).await.check(0, "hi\n", " completed\n");
        run(&["stream", "echo", "hi"]).await.check(0, "hi\n", " completed\n");
        // By URL, the card's address is used.
        let url = format!("http://{}/a2a/echo", server.address);
        let followed = run(&["send", &url, "hi", "--bearer-env", "TOKEN"]).await;
        followed.check(2, "", "https://agents.invalid/x/a2a/echo is on another host");
    }
    // The same if the public address differs only in its path.
    let Server { folder, process, address } = server;
    process.kill().await.unwrap();
    let mut command = a2ad(folder.path(), &["serve", "--listen", &address]);
    command.env("A2AD_SERVER__PUBLIC_URL", format!("http://{address}/x"));
    let server = Server::start_command(folder, command).await;
    server.run(&["send", "echo", "hi"]).await.check(0, "hi\n", " completed\n");
}

#[tokio::test]
async fn suggested_commands_can_be_pasted_into_a_shell() {
    let server = Server::start(&[]).await;
    let url = format!("http://{}/?a=b&c=$HOME", server.address);
    let home = format!("http://{}", server.address);
    let dialects = [("1.0", ""), ("0.3", " --dialect 0.3"), ("draft", " --dialect draft")];
    let named = ["approver", "--server", &home, "--header", "X-Trace: s3cret", "--bearer-env", "TOKEN"];
    let by_url = [url.as_str(), "--skill", "approver", "--api-key-env", "TOKEN"];
    for (dialect, dialect_flag) in dialects {
        for (agent, repeated) in [
            (
                &named[..],
                format!(" --server {home}{dialect_flag} --header 'X-Trace: VALUE' --bearer-env TOKEN"),
            ),
            (&by_url[..], format!("{dialect_flag} --api-key-env TOKEN")),
        ] {
            let forced: &[&str] = if dialect_flag.is_empty() { &[] } else { &["--dialect", dialect] };
            let shown = if agent[0] == url { format!("'{url}'") } else { agent[0].to_owned() };
            let mut send = a2ad(server.folder.path(), &["send"]);
            send.args(agent).args(forced).arg("delete it").env("TOKEN", "s3cret");
            let asked = finish(send).await;
            let command = format!("a2ad reply {shown} {} TEXT{repeated}\n", asked.task());
            asked.check(4, &asked.stdout, &format!("; answer with: {command}"));
            assert!(!asked.stderr.contains("s3cret"), "{}", asked.stderr);
            // A shell runs it unchanged.
            let script = command.replace("a2ad reply", "\"$A2AD\" reply").replace("TEXT", "approve");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).current_dir(server.folder.path()).kill_on_drop(true);
            shell.env("A2AD", env!("CARGO_BIN_EXE_a2ad")).env("TOKEN", "s3cret").env_remove("A2AD_URL");
            shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            finish(shell).await.check(0, "Approved: delete it\n", "completed");
        }
    }
}

#[tokio::test]
async fn task_ids_are_never_flags_of_suggested_commands() {
    let server = Server::start(&[]).await;
    let options = client::ClientOptions::default().with_dialect(protocol::Dialect::Draft);
    let url = format!("http://{}/a2a/approver", server.address);
    let client = Client::connect_with(&url, options).unwrap();
    for id in ["--bearer-env=MY_SECRET", "-f", "--"] {
        let mut message = Message::new(format!("m{id}"), Role::User, vec![Part::text("delete it")]);
        message.task_id = Some(id.into());
        within(client.send(message)).await.unwrap();
        let got = server.run(&["tasks", "get", "approver", "--dialect", "draft", "--", id]).await;
        let shown_id = if id.contains('=') { format!("'{id}'") } else { id.to_owned() };
        let command = format!("a2ad reply --dialect draft -- approver {shown_id} TEXT");
        got.check(4, &got.stdout, &format!("; answer with: {command}\n"));
        let script = command.replace("a2ad reply", "\"$A2AD\" reply").replace("TEXT", "approve");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(server.folder.path()).kill_on_drop(true);
        shell.env("A2AD", env!("CARGO_BIN_EXE_a2ad")).env("A2AD_URL", format!("http://{}", server.address));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(shell).await.check(0, "Approved: delete it\n", "completed");
    }
}

#[tokio::test]
async fn advice_is_given_only_where_it_helps() {
    let server = Server::start(&["--config", "agents.toml"]).await;
    let refused = server.run(&["tasks", "get", "bank", "t"]).await;
    assert!(refused.code != 0 && !refused.stderr.contains("--dialect"), "{}", refused.stderr);
    for subcommand in [&["card"][..], &["send"], &["tasks", "ls"], &["reply"]] {
        let help = server.run(&[subcommand, &["--help"]].concat()).await;
        assert!(
            help.stdout.contains("Exit codes:\n  0 ") && help.stdout.contains("\n  130  Ctrl-C"),
            "{}",
            help.stdout
        );
    }
}

#[tokio::test]
async fn cards_of_all_generations_are_printed_as_1_0_json() {
    let body = "{\n  \"name\": \"a\",\n  \"url\": \"http://h/\",\n  \"version\": \"1\",\n  \"capabilities\": {},\n  \
                \"skills\": [{\"id\": \"s\", \"name\": \"s\"}]\n}\n";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/.well-known/agent.json", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let card = finish(a2ad(folder.path(), &["card", &url, "--json"])).await;
    serving.join().unwrap();
    assert_eq!((card.code, card.stdout.lines().count()), (0, 1), "{}{}", card.stdout, card.stderr);
    assert!(card.stdout.contains(r#""supportedInterfaces":[{"url":"http://h/""#), "{}", card.stdout);
}
