//! The client commands of the program against its server.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Stdio,
};

use client::Client;
use protocol::{Json, Message, Part, Role};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};

use super::common::{
    ANY_PORT, DIALECTS, Running, a2ad, client, configured, finish, member, run, sections, shell, terminal,
    within,
};

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

#[tokio::test]
async fn every_client_command_works_in_every_generation() {
    let server = Running::start().await;
    for dialect in DIALECTS {
        let run = async |arguments: &[&str]| server.run(&[arguments, &["--dialect", dialect]].concat()).await;
        let card = run(&["card", "echo"]).await;
        assert!(card.code == 0 && card.out.contains("name          Echo\n"), "{}", card.out);
        let skills = run(&["skills", "echo"]).await;
        assert!(skills.out.starts_with("echo: Gives back what it is given\n"), "{}", skills.out);

        let sent = run(&["send", "echo", "hello", "there"]).await;
        sent.prints(0, "hello there\n", " completed\n");
        run(&["send", "echo", "hello", "--blocking"]).await.prints(0, "hello\n", " completed\n");
        let streamed = run(&["stream", "slow-writer", "the sea sections=3 delay=1ms"]).await;
        streamed.prints(0, &sections(3).concat(), " completed: 3 sections written\n");

        let asked = run(&["send", "approver", "delete it"]).await;
        asked.prints(4, "May I proceed with: delete it? Answer approve or deny.\n", " input-required; ");
        let approved = run(&["reply", "approver", &asked.task(), "approve"]).await;
        approved.prints(0, "Approved: delete it\n", " completed: Done: delete it\n");
        assert_eq!(approved.task(), asked.task());
        let streamed = run(&["stream", "approver", "delete it"]).await;
        streamed.prints(4, "May I proceed with: delete it? Answer approve or deny.\n", "");
        let denied = run(&["stream", "approver", "--task", &streamed.task(), "deny"]).await;
        denied.prints(3, "", " rejected: Denied: delete it\n");

        let held = run(&["send", "echo", "hold on", "--async"]).await;
        held.prints(0, "", &format!("; follow it with: a2ad tasks watch echo {}", held.task()));
        let got = run(&["tasks", "get", "echo", &held.task()]).await;
        got.prints(0, "", " working; follow it with: a2ad tasks watch echo ");
        run(&["tasks", "cancel", "echo", &held.task()]).await.prints(0, "", " canceled\n");
        run(&["tasks", "cancel", "echo", &held.task()]).await.prints(
            8,
            "",
            "a2ad: the agent answered with an error",
        );
        run(&["tasks", "get", "echo", &sent.task()]).await.prints(0, "hello there\n", " completed\n");

        let listed = run(&["tasks", "ls", "echo", "--status", "canceled"]).await;
        match dialect {
            "1.0" => {
                assert!(listed.code == 0 && listed.out.starts_with(&held.task()), "{}", listed.out)
            }
            _ => listed.prints(8, "", "has no ListTasks; it was added in A2A 1.0"),
        }
    }
}

#[tokio::test]
async fn json_output_is_one_1_0_document_per_response() {
    let server = Running::start().await;
    for dialect in DIALECTS {
        let run = async |arguments: &[&str]| {
            let run_output = server.run(&[arguments, &["--json", "--dialect", dialect]].concat()).await;
            assert_eq!(run_output.code, 0, "{}", run_output.err);
            run_output.out.lines().map(str::to_owned).collect::<Vec<_>>()
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
    assert_eq!(listed.out.matches(r#""contextId""#).count(), 2, "{}", listed.out);
    assert!(listed.out.contains(r#""totalSize":6"#), "{}", listed.out);
}

#[tokio::test]
async fn exit_codes_reflect_the_outcome() {
    let server = Running::configured(CONFIG).await;
    let run = async |arguments: &[&str]| server.run(arguments).await;
    run(&["send", "tck", "tck-message-response"]).await.prints(0, "Direct message response\n", "");
    run(&["stream", "tck", "tck-message-response"]).await.prints(0, "Direct message response\n", "");
    for subcommand in ["send", "stream"] {
        for (text, code, out, message) in [
            ("a2ad-fail", 3, "", " failed: failed as asked\n"),
            ("tck-reject-task", 3, "", " rejected: rejected\n"),
            ("tck-input-required", 4, "Please say more\n", " input-required; "),
        ] {
            let ended = run(&[subcommand, "tck", text]).await;
            ended.prints(code, out, message);
            for more in [&[][..], &["--json"]] {
                run(&[&["tasks", "get", "tck", &ended.task()], more].concat()).await.ends(code, &[]);
            }
        }
        run(&[subcommand, "locked", "hi"]).await.prints(
            5,
            "",
            "; the agent requires an API key in the header X-Api-Key (--api-key-env VAR)",
        );
        let refused = run(&[subcommand, "locked", "hi", "--header", "X-Api-Key: s3cret"]).await;
        refused.prints(
            5,
            "",
            "; access was denied with --header; the agent requires an API key in the header X-Api-Key (--api-key-env VAR)\n",
        );
        assert!(!refused.err.contains("s3cret"), "{}", refused.err);
        let traced = run(&[subcommand, "locked", "hi", "--header", "X-Trace: 1"]).await;
        traced.prints(
            5,
            "",
            "; access was denied with --header; the agent requires an API key in the header ",
        );
        run(&[subcommand, "nobody", "hi"]).await.prints(
            6,
            "",
            "there is no agent nobody at http://127.0.0.1:",
        );
        for dialect in DIALECTS {
            let nobody = [subcommand, "nobody", "hi", "--dialect", dialect];
            run(&nobody).await.prints(6, "", "there is no agent nobody at http://127.0.0.1:");
            // Where clients choose task ids, a mistyped id does not create a task.
            let mistyped = [subcommand, "echo", "hi", "--task", "task_none", "--dialect", dialect];
            run(&mistyped).await.prints(6, "", "ask not found");
        }
        run(&[subcommand, "echo", "hold", "--timeout", "300ms"]).await.prints(
            7,
            "",
            "is still running; follow it with: a2ad tasks watch",
        );
        run(&[subcommand, "h/a", "hi"]).await.prints(2, "", "begin a URL with http://");
        run(&[subcommand, "echo"]).await.prints(2, "", "the message is empty");
        let broken = run(&[subcommand, "echo", "hi", "--data", "{bad"]).await;
        broken.prints(2, "", "--data is not JSON: key must be a string at line 1 column 2");
        run(&[subcommand, "echo", "hi", "-f", "none.txt"]).await.prints(2, "", "none.txt cannot be sent");
        run(&[subcommand, "echo", "hi", "--bearer-env", "A2AD_NONE"]).await.prints(
            2,
            "",
            "A2AD_NONE is not set",
        );
        run(&[subcommand, "echo", "hi", "--dialect", "0.9"]).await.prints(
            2,
            "",
            "expected draft, 0.3 or 1.0",
        );
        let nobody = ["echo", "hi", "--server", "http://127.0.0.1:1"];
        let start = "; start a server with: a2ad serve --listen 127.0.0.1:1\n";
        run(&[&[subcommand], &nobody[..]].concat()).await.prints(1, "", start);
    }
    let done = run(&["send", "tck", "tck-complete-task"]).await;
    done.prints(0, "Hello from TCK\n", " completed\n");
    run(&["tasks", "get", "tck", &done.task(), "--json"]).await.ends(0, &[]);
    for dialect in DIALECTS {
        let reply = ["reply", "echo", "task_none", "hi", "--dialect", dialect];
        run(&reply).await.prints(6, "", "ask not found");
    }
    run(&["tasks", "get", "echo", "task_none"]).await.prints(6, "", "task not found");
    run(&["tasks", "ls", "echo", "--status", "odd"]).await.prints(
        2,
        "",
        "expected one of submitted, working",
    );
    let login = Running::start().await;
    let asked = login.run(&["send", "approver", "login", "please"]).await;
    asked.prints(4, &asked.out, "auth-required; continue with credentials");
}

#[tokio::test]
async fn messages_have_text_from_stdin_data_and_files() {
    let server = Running::start().await;
    std::fs::write(server.path().join("note.md"), "# hi").unwrap();
    for arguments in [&["send", "echo"][..], &["stream", "echo", "-"]] {
        let mut child = server.client(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all("one\ntwo é\n".as_bytes()).await.unwrap();
        let output = within(child.wait_with_output()).await.unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "one\ntwo é\n");
    }
    for dialect in DIALECTS {
        let data = ["send", "echo", "both", "--data", r#"{"a":9007199254740993}"#, "--data", "[1]"];
        let sent = server.run(&[&data[..], &["--dialect", dialect]].concat()).await;
        sent.prints(0, "both\n{\"a\":9007199254740993}\n[1]\n", "completed");
        let file = server.run(&["send", "echo", "-f", "note.md", "--json", "--dialect", dialect]).await;
        for expected in [r#""raw":"IyBoaQ==""#, r#""filename":"note.md""#, r#""mediaType":"text/markdown""#] {
            assert!(file.out.contains(expected), "{}", file.out);
        }
        let file = server.run(&["send", "echo", "-f", "note.md", "--dialect", dialect]).await;
        file.prints(0, "", "file note.md (text/markdown, 4 bytes): use --json to get its content");
    }
}

#[tokio::test]
async fn a_stream_survives_restarts_and_prints_everything_once() {
    const SECTIONS: usize = 40;
    let mut server = Running::start().await;
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
            let written: String = match json {
                false => stdout,
                true => stdout
                    .lines()
                    .filter_map(|event| event.split_once(r#""artifactUpdate""#)?.1.split_once(r#""text":""#))
                    .map(|(_, text)| text[..text.find('"').unwrap()].replace("\\n", "\n"))
                    .collect(),
            };
            assert_eq!(written, sections(SECTIONS).concat(), "{dialect}");
        }
    }
}

#[tokio::test]
async fn ctrl_c_reports_the_task_that_is_still_running() {
    let server = Running::start().await;
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
        server.run(&["tasks", "get", "echo", id]).await.prints(0, "", &format!("task {id} working"));
    }
}

/// What a command writes to a terminal.
async fn shown_on_a_terminal(mut command: Command) -> String {
    let (mut terminal, other_end) = terminal();
    let mut child = command.stdout(other_end.try_clone().unwrap()).stderr(other_end).spawn().unwrap();
    // The command holds the other end too; dropped, the terminal hangs up when the program ends.
    drop(command);
    let read = move || {
        let mut shown = Vec::new();
        // Reading a terminal without a writer returns an error.
        let _ = terminal.read_to_end(&mut shown);
        String::from_utf8(shown).unwrap()
    };
    let shown = within(tokio::task::spawn_blocking(read)).await.unwrap();
    assert!(within(child.wait()).await.unwrap().success(), "{shown}");
    shown.replace("\r\n", "\n")
}

#[tokio::test]
async fn a_terminal_gets_no_control_characters_of_an_agent() {
    let text = "a\u{202e}b\u{2066}c\u{200f}d\u{61c}e\u{1b}[2Jf\u{9b}g\rh";
    let server = Running::start().await;
    // Files and pipes get the text as it is.
    let piped = server.run(&["send", "echo", text]).await;
    piped.prints(0, &format!("{text}\n"), "completed");
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
    let server = Running::start().await;
    let client = client(&server.server, "echo");
    for number in 0..TASKS {
        let mut message = Message::new(format!("m-{number}"), Role::User, vec![Part::text("hi")]);
        message.context_id = Some(if number % 2 == 0 { "even" } else { "odd" }.into());
        within(client.send(message)).await.unwrap();
    }
    let lines = async |arguments: &[&str]| {
        let run_output = server.run(&[&["tasks", "ls", "echo"], arguments].concat()).await;
        (run_output.out.lines().count(), run_output.err)
    };
    assert_eq!(lines(&["--limit", "0"]).await, (TASKS, String::new()));
    assert_eq!(lines(&[]).await, (100, "100 of 101 tasks; --limit shows more\n".to_owned()));
    assert_eq!(lines(&["--context", "even", "--limit", "0"]).await.0, 51);
    assert_eq!(lines(&["--status", "TASK_STATE_WORKING"]).await.0, 0);
}

#[tokio::test]
async fn credentials_are_not_sent_to_another_host() {
    let server = Running::start().await;
    let endpoint = format!("http://{}/a2a/echo", server.address());
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
    server.run(&["send", &url, "hi"]).await.prints(0, "hi\n", &format!("on another host: {endpoint}"));
    let mut command = server.client(&["send", &url, "hi", "--bearer-env", "TOKEN"]);
    command.env("TOKEN", "s3cret");
    let refused = finish(command).await;
    refused.prints(
        2,
        "",
        "credentials are not sent there; if you trust that endpoint, call it directly with --dialect",
    );
    assert!(!refused.err.contains("s3cret"));
    serving.join().unwrap();
    let direct = ["send", &endpoint, "hi", "--dialect", "1.0", "--header", "X-Trace: 1"];
    server.run(&direct).await.prints(0, "hi\n", "completed");
}

#[tokio::test]
async fn a_name_selects_an_agent_of_the_given_server() {
    let variables = [("A2AD_SERVER__PUBLIC_URL", "https://agents.invalid/x")];
    let server = Running::start_with(configured(""), ANY_PORT, &variables).await;
    for dialect in DIALECTS {
        let run = async |arguments: &[&str]| {
            let mut command = server.client(&[arguments, &["--dialect", dialect]].concat());
            command.env("TOKEN", "s3cret");
            finish(command).await
        };
        // By name, the public address of the card is not used.
        run(&["send", "echo", "hi", "--bearer-env", "TOKEN"]).await.prints(0, "hi\n", " completed\n");
        run(&["stream", "echo", "hi"]).await.prints(0, "hi\n", " completed\n");
        // By URL, the card's address is used.
        let url = format!("http://{}/a2a/echo", server.address());
        let followed = run(&["send", &url, "hi", "--bearer-env", "TOKEN"]).await;
        followed.prints(2, "", "https://agents.invalid/x/a2a/echo is on another host");
    }
    // The same if the public address differs only in its path.
    let (address, public) = (server.address(), format!("{}/x", server.url()));
    server.server.kill().await.unwrap();
    let server = Running::start_with(server.folder, &address, &[("A2AD_SERVER__PUBLIC_URL", &public)]).await;
    server.run(&["send", "echo", "hi"]).await.prints(0, "hi\n", " completed\n");
}

#[tokio::test]
async fn suggested_commands_can_be_pasted_into_a_shell() {
    let server = Running::start().await;
    let url = format!("http://{}/?a=b&c=$HOME", server.address());
    let home = format!("http://{}", server.address());
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
            let mut send = a2ad(server.path(), &["send"]);
            send.args(agent).args(forced).arg("delete it").env("TOKEN", "s3cret");
            let asked = finish(send).await;
            let command = format!("a2ad reply {shown} {} TEXT{repeated}\n", asked.task());
            asked.prints(4, &asked.out, &format!("; answer with: {command}"));
            assert!(!asked.err.contains("s3cret"), "{}", asked.err);
            // A shell runs it unchanged.
            let script = command.replace("a2ad reply", "\"$0\" reply").replace("TEXT", "approve");
            let mut shell = shell("sh", server.path(), &script);
            shell.env("TOKEN", "s3cret");
            finish(shell).await.prints(0, "Approved: delete it\n", "completed");
        }
    }
}

#[tokio::test]
async fn task_ids_are_never_flags_of_suggested_commands() {
    let server = Running::start().await;
    let options = client::ClientOptions::default().with_dialect(protocol::Dialect::Draft);
    let url = format!("http://{}/a2a/approver", server.address());
    let client = Client::connect_with(&url, options).unwrap();
    for id in ["--bearer-env=MY_SECRET", "-f", "--"] {
        let mut message = Message::new(format!("m{id}"), Role::User, vec![Part::text("delete it")]);
        message.task_id = Some(id.into());
        within(client.send(message)).await.unwrap();
        let got = server.run(&["tasks", "get", "approver", "--dialect", "draft", "--", id]).await;
        let shown_id = if id.contains('=') { format!("'{id}'") } else { id.to_owned() };
        let command = format!("a2ad reply --dialect draft -- approver {shown_id} TEXT");
        got.prints(4, &got.out, &format!("; answer with: {command}\n"));
        let script = command.replace("a2ad reply", "\"$0\" reply").replace("TEXT", "approve");
        let mut shell = shell("sh", server.path(), &script);
        shell.env("A2AD_URL", server.url());
        finish(shell).await.prints(0, "Approved: delete it\n", "completed");
    }
}

#[tokio::test]
async fn advice_is_given_only_where_it_helps() {
    let server = Running::configured(CONFIG).await;
    let refused = server.run(&["tasks", "get", "bank", "t"]).await;
    assert!(refused.code != 0 && !refused.err.contains("--dialect"), "{}", refused.err);
    for subcommand in [&["card"][..], &["send"], &["tasks", "ls"], &["reply"]] {
        let help = server.run(&[subcommand, &["--help"]].concat()).await;
        assert!(
            help.out.contains("Exit codes:\n  0 ") && help.out.contains("\n  130  Ctrl-C"),
            "{}",
            help.out
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
    let card = run(folder.path(), &["card", &url, "--json"]).await;
    serving.join().unwrap();
    assert_eq!((card.code, card.out.lines().count()), (0, 1), "{}{}", card.out, card.err);
    assert!(card.out.contains(r#""supportedInterfaces":[{"url":"http://h/""#), "{}", card.out);
}
