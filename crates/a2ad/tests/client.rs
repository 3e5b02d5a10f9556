//! The program as a client, against the program as a server.

#![allow(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::Stdio,
    time::Duration,
};

use client::Client;
use protocol::{
    Json, Message, Operation, Part, Role, SendMessage,
    json::read::{Node, Path as Field},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    task::JoinSet,
};

/// How long anything may take before a test gives it up.
const PATIENCE: Duration = Duration::from_secs(60);
const DIALECTS: [&str; 3] = ["draft", "0.3", "1.0"];
/// Agents beyond those of the demo: one that fails as asked, and one that nobody may call.
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
    tokio::time::timeout(PATIENCE, future).await.expect("it takes far too long")
}

fn a2ad(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_a2ad"));
    command.current_dir(folder).args(arguments).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["A2AD_CONFIG", "A2AD_LISTEN", "A2AD_STORE", "A2AD_LOG", "A2AD_URL"] {
        command.env_remove(name);
    }
    command
}

/// A server, and the folder it keeps its tasks in.
struct Server {
    folder: TempDir,
    child: Child,
    address: String,
    _reader: JoinSet<()>,
}

/// How a client's run went.
struct Ran {
    code: i32,
    given: String,
    said: String,
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
        Self::read(folder, command).await
    }

    /// Starts it and reads where it serves.
    async fn read(folder: TempDir, mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = within(lines.next_line()).await.unwrap().expect("it says where it serves");
            if let Some((_, rest)) = line.split_once(r#""url":"http://"#) {
                break rest[..rest.find('"').unwrap()].trim_end_matches('/').to_owned();
            }
        };
        let mut reader = JoinSet::new();
        reader.spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { folder, child, address, _reader: reader }
    }

    /// Kills it without warning and starts it again where it was.
    async fn kill_and_restart(mut self) -> Self {
        within(self.child.kill()).await.unwrap();
        Self::start_at(self.folder, &self.address, &[]).await
    }

    fn client(&self, arguments: &[&str]) -> Command {
        let mut command = a2ad(self.folder.path(), arguments);
        command.env("A2AD_URL", format!("http://{}", self.address));
        command
    }

    async fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.client(arguments)).await
    }
}

async fn finish(mut command: Command) -> Ran {
    let output = within(command.output()).await.unwrap();
    Ran {
        code: output.status.code().unwrap(),
        given: String::from_utf8(output.stdout).unwrap(),
        said: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    #[track_caller]
    fn check(&self, code: i32, given: &str, said: &str) {
        assert_eq!(self.code, code, "{}{}", self.given, self.said);
        assert_eq!(self.given, given, "{}", self.said);
        assert!(self.said.contains(said), "{said:?} is not in {:?}", self.said);
    }

    /// The task a line of talk speaks of.
    fn task(&self) -> String {
        let words = self.said.split_once("task ").unwrap_or_else(|| panic!("{}", self.said)).1;
        words.split_whitespace().next().unwrap().to_owned()
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
async fn every_verb_works_in_every_generation() {
    let server = Server::start(&[]).await;
    for dialect in DIALECTS {
        let run = async |arguments: &[&str]| server.run(&[arguments, &["--dialect", dialect]].concat()).await;
        let card = run(&["card", "echo"]).await;
        assert!(card.code == 0 && card.given.contains("name          Echo\n"), "{}", card.given);
        let skills = run(&["skills", "echo"]).await;
        assert!(skills.given.starts_with("echo: Gives back what it is given\n"), "{}", skills.given);

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
        assert_eq!((held.code, held.given.as_str()), (0, ""), "{}", held.said);
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
            "1.0" => assert!(listed.code == 0 && listed.given.starts_with(&held.task()), "{}", listed.given),
            _ => listed.check(8, "", "has no ListTasks; it came with A2A 1.0"),
        }
    }
}

#[tokio::test]
async fn json_is_one_document_an_answer_in_the_shape_of_1_0() {
    let server = Server::start(&[]).await;
    for dialect in DIALECTS {
        let run = async |arguments: &[&str]| {
            let ran = server.run(&[arguments, &["--json", "--dialect", dialect]].concat()).await;
            assert_eq!(ran.code, 0, "{}", ran.said);
            ran.given.lines().map(str::to_owned).collect::<Vec<_>>()
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
        // As much history as was asked for, also where the generation cannot ask for none.
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
    assert_eq!(listed.given.matches(r#""contextId""#).count(), 2, "{}", listed.given);
    assert!(listed.given.contains(r#""totalSize":6"#), "{}", listed.given);
}

#[tokio::test]
async fn an_exit_code_says_what_became_of_it() {
    let server = Server::start(&["--config", "agents.toml"]).await;
    let run = async |arguments: &[&str]| server.run(arguments).await;
    run(&["send", "tck", "tck-message-response"]).await.check(0, "Direct message response\n", "");
    run(&["stream", "tck", "tck-message-response"]).await.check(0, "Direct message response\n", "");
    for verb in ["send", "stream"] {
        run(&[verb, "tck", "a2ad-fail"]).await.check(3, "", " failed: failed as asked\n");
        run(&[verb, "tck", "tck-reject-task"]).await.check(3, "", " rejected: rejected\n");
        run(&[verb, "tck", "tck-input-required"]).await.check(4, "Please say more\n", " input-required; ");
        run(&[verb, "locked", "hi"]).await.check(5, "", "; give credentials with --bearer-env");
        let refused = run(&[verb, "locked", "hi", "--header", "X-Api-Key: s3cret"]).await;
        refused.check(5, "", "; what --header gave does not let you in\n");
        assert!(!refused.said.contains("s3cret"), "{}", refused.said);
        let traced = run(&[verb, "locked", "hi", "--header", "X-Trace: 1"]).await;
        traced.check(5, "", "; what --header gave does not let you in; give credentials with --bearer-env, ");
        run(&[verb, "nobody", "hi"]).await.check(6, "", "there is no agent nobody at http://127.0.0.1:");
        for dialect in DIALECTS {
            let nobody = [verb, "nobody", "hi", "--dialect", dialect];
            run(&nobody).await.check(6, "", "there is no agent nobody at http://127.0.0.1:");
            // Where clients name tasks, a task that is not there is not made by a slip.
            let mistyped = [verb, "echo", "hi", "--task", "task_none", "--dialect", dialect];
            run(&mistyped).await.check(6, "", "ask not found");
        }
        run(&[verb, "echo", "hold", "--timeout", "300ms"]).await.check(
            7,
            "",
            "goes on; follow it with: a2ad tasks watch",
        );
        run(&[verb, "h/a", "hi"]).await.check(2, "", "begin a URL with http://");
        run(&[verb, "echo"]).await.check(2, "", "there is nothing to say");
        let broken = run(&[verb, "echo", "hi", "--data", "{bad"]).await;
        broken.check(2, "", "--data is no JSON: key must be a string at line 1 column 2");
        run(&[verb, "echo", "hi", "-f", "none.txt"]).await.check(2, "", "none.txt cannot be sent");
        run(&[verb, "echo", "hi", "--bearer-env", "A2AD_NONE"]).await.check(2, "", "A2AD_NONE is not set");
        run(&[verb, "echo", "hi", "--dialect", "0.9"]).await.check(2, "", "expected draft, 0.3 or 1.0");
        let nobody = ["echo", "hi", "--server", "http://127.0.0.1:1"];
        let start = "; start a server with: a2ad serve --listen 127.0.0.1:1\n";
        run(&[&[verb], &nobody[..]].concat()).await.check(1, "", start);
    }
    for dialect in DIALECTS {
        let reply = ["reply", "echo", "task_none", "hi", "--dialect", dialect];
        run(&reply).await.check(6, "", "ask not found");
    }
    run(&["tasks", "get", "echo", "task_none"]).await.check(6, "", "task not found");
    run(&["tasks", "ls", "echo", "--status", "odd"]).await.check(2, "", "expected one of submitted, working");
    let login = Server::start(&[]).await;
    let asked = login.run(&["send", "approver", "login", "please"]).await;
    asked.check(4, &asked.given, "auth-required; go on with credentials");
}

#[tokio::test]
async fn words_come_from_stdin_and_with_data_and_files() {
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
            assert!(file.given.contains(expected), "{}", file.given);
        }
        let said = server.run(&["send", "echo", "-f", "note.md", "--dialect", dialect]).await;
        said.check(0, "", "file note.md (text/markdown, 4 bytes): --json has its content");
    }
}

#[tokio::test]
async fn a_stream_outlives_the_server_and_gives_everything_once() {
    const SECTIONS: usize = 40;
    let mut server = Server::start(&[]).await;
    for dialect in DIALECTS {
        for json in [false, true] {
            let words = format!("the sea sections={SECTIONS} delay=20ms");
            let mut command = server.client(&["stream", "slow-writer", &words, "--dialect", dialect]);
            let mut child = command.args(json.then_some("--json")).spawn().unwrap();
            let mut out = BufReader::new(child.stdout.take().unwrap());
            let mut given = String::new();
            for _ in 0..2 {
                // In the middle: a few lines after it was last started.
                for _ in 0..6 {
                    within(out.read_line(&mut given)).await.unwrap();
                }
                server = server.kill_and_restart().await;
            }
            within(out.read_to_string(&mut given)).await.unwrap();
            let output = within(child.wait_with_output()).await.unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(0), "{dialect}: {said}");
            assert!(said.contains("the connection is lost; coming back"), "{said}");
            let sections: String = match json {
                false => given,
                true => given
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
async fn whoever_leaves_is_told_which_task_goes_on() {
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
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{said}");
        let error = Json::parse(&said).unwrap();
        let id = member(&error, "error.message").split_whitespace().nth(2).unwrap().to_owned();
        let command = format!("a2ad tasks watch echo {id} --dialect {dialect}");
        assert_eq!(member(&error, "error.message"), format!("the task {id} goes on"));
        assert_eq!(member(&error, "error.hint"), format!("follow it with: {command}"));
        assert_eq!(member(&error, "error.exitCode"), "130");
        let id = id.as_str();
        assert!(first.contains(id), "{first}");
        server.run(&["tasks", "get", "echo", id]).await.check(0, "", &format!("task {id} working"));
    }
}

#[tokio::test]
async fn a_list_is_walked_page_by_page() {
    const TASKS: usize = 101;
    let server = Server::start(&[]).await;
    let client = Client::connect(&format!("http://{}/a2a/echo", server.address)).unwrap();
    for number in 0..TASKS {
        let mut message = Message::new(format!("m-{number}"), Role::User, vec![Part::text("hi")]);
        message.context_id = Some(if number % 2 == 0 { "even" } else { "odd" }.into());
        within(client.call(Operation::SendMessage(SendMessage::new(message)))).await.unwrap();
    }
    let lines = async |arguments: &[&str]| {
        let ran = server.run(&[&["tasks", "ls", "echo"], arguments].concat()).await;
        (ran.given.lines().count(), ran.said)
    };
    assert_eq!(lines(&["--limit", "0"]).await, (TASKS, String::new()));
    assert_eq!(lines(&[]).await, (100, "100 of 101 tasks; --limit shows more\n".to_owned()));
    assert_eq!(lines(&["--context", "even", "--limit", "0"]).await.0, 51);
    assert_eq!(lines(&["--status", "TASK_STATE_WORKING"]).await.0, 0);
}

#[tokio::test]
async fn another_host_is_named_and_gets_no_credentials() {
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
    refused.check(2, "", "credentials are not sent there; call that endpoint itself, with --dialect");
    assert!(!refused.said.contains("s3cret"));
    serving.join().unwrap();
    let direct = ["send", &endpoint, "hi", "--dialect", "1.0", "--header", "X-Trace: 1"];
    server.run(&direct).await.check(0, "hi\n", "completed");
}

#[tokio::test]
async fn a_name_means_an_agent_of_the_server_that_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agents.toml"), CONFIG).unwrap();
    let mut command = a2ad(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("A2AD_SERVER__PUBLIC_URL", "https://agents.invalid/x");
    let server = Server::read(folder, command).await;
    for dialect in DIALECTS {
        let run = async |arguments: &[&str]| {
            let mut command = server.client(&[arguments, &["--dialect", dialect]].concat());
            command.env("TOKEN", "s3cret");
            finish(command).await
        };
        // The card points to where others come in; whoever stands here does not have to go round that way.
        run(&["send", "echo", "hi", "--bearer-env", "TOKEN"]).await.check(0, "hi\n", " completed\n");
        run(&["stream", "echo", "hi"]).await.check(0, "hi\n", " completed\n");
        // A URL is somebody's card, and followed as ever.
        let url = format!("http://{}/a2a/echo", server.address);
        let followed = run(&["send", &url, "hi", "--bearer-env", "TOKEN"]).await;
        followed.check(2, "", "https://agents.invalid/x/a2a/echo is on another host");
    }
    // The same where the public address differs by its path alone.
    let Server { folder, mut child, address, .. } = server;
    within(child.kill()).await.unwrap();
    let mut command = a2ad(folder.path(), &["serve", "--listen", &address]);
    command.env("A2AD_SERVER__PUBLIC_URL", format!("http://{address}/x"));
    let server = Server::read(folder, command).await;
    server.run(&["send", "echo", "hi"]).await.check(0, "hi\n", " completed\n");
}

#[tokio::test]
async fn what_is_suggested_can_be_pasted() {
    let server = Server::start(&[]).await;
    let url = format!("http://{}/?a=b&c=$HOME", server.address);
    let home = format!("http://{}", server.address);
    let dialects = [("1.0", ""), ("0.3", " --dialect 0.3"), ("draft", " --dialect draft")];
    let named = ["approver", "--server", &home, "--header", "X-Trace: s3cret", "--bearer-env", "TOKEN"];
    let by_url = [url.as_str(), "--skill", "approver", "--api-key-env", "TOKEN"];
    for (dialect, spoken) in dialects {
        for (agent, repeated) in [
            (&named[..], format!(" --server {home}{spoken} --header 'X-Trace: VALUE' --bearer-env TOKEN")),
            (&by_url[..], format!("{spoken} --api-key-env TOKEN")),
        ] {
            let forced: &[&str] = if spoken.is_empty() { &[] } else { &["--dialect", dialect] };
            let shown = if agent[0] == url { format!("'{url}'") } else { agent[0].to_owned() };
            let mut send = a2ad(server.folder.path(), &["send"]);
            send.args(agent).args(forced).arg("delete it").env("TOKEN", "s3cret");
            let asked = finish(send).await;
            let command = format!("a2ad reply {shown} {} TEXT{repeated}\n", asked.task());
            asked.check(4, &asked.given, &format!("; answer with: {command}"));
            assert!(!asked.said.contains("s3cret"), "{}", asked.said);
            // A shell takes it as it stands.
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
async fn the_id_of_a_task_becomes_no_flag_of_what_is_suggested() {
    let server = Server::start(&[]).await;
    let options = client::Options { dialect: Some(protocol::Dialect::Draft), ..Default::default() };
    let url = format!("http://{}/a2a/approver", server.address);
    let client = Client::connect_with(&url, options).unwrap();
    for id in ["--bearer-env=MY_SECRET", "-f", "--"] {
        let mut message = Message::new(format!("m{id}"), Role::User, vec![Part::text("delete it")]);
        message.task_id = Some(id.into());
        within(client.call(Operation::SendMessage(SendMessage::new(message)))).await.unwrap();
        let got = server.run(&["tasks", "get", "approver", "--dialect", "draft", "--", id]).await;
        let word = if id.contains('=') { format!("'{id}'") } else { id.to_owned() };
        let command = format!("a2ad reply --dialect draft -- approver {word} TEXT");
        got.check(4, &got.given, &format!("; answer with: {command}\n"));
        let script = command.replace("a2ad reply", "\"$A2AD\" reply").replace("TEXT", "approve");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(server.folder.path()).kill_on_drop(true);
        shell.env("A2AD", env!("CARGO_BIN_EXE_a2ad")).env("A2AD_URL", format!("http://{}", server.address));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(shell).await.check(0, "Approved: delete it\n", "completed");
    }
}

#[tokio::test]
async fn advice_is_given_where_it_can_help() {
    let server = Server::start(&["--config", "agents.toml"]).await;
    let refused = server.run(&["tasks", "get", "bank", "t"]).await;
    assert!(refused.code != 0 && !refused.said.contains("--dialect"), "{}", refused.said);
    for verb in [&["card"][..], &["send"], &["tasks", "ls"], &["reply"]] {
        let help = server.run(&[verb, &["--help"]].concat()).await;
        assert!(
            help.given.contains("Exit codes:\n  0 ") && help.given.contains("\n  130  Ctrl-C"),
            "{}",
            help.given
        );
    }
}

#[tokio::test]
async fn a_card_of_any_generation_is_written_as_one_line_of_1_0() {
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
    assert_eq!((card.code, card.given.lines().count()), (0, 1), "{}{}", card.given, card.said);
    assert!(card.given.contains(r#""supportedInterfaces":[{"url":"http://h/""#), "{}", card.given);
}
