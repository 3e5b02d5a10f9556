//! The startup message, the page in a browser, and one log line per call.

use std::{
    borrow::BorrowMut,
    io::Read as _,
    path::Path as Folder,
    process::Stdio,
    time::{Duration, Instant},
};

use protocol::{
    Json,
    json::read::{Node, Path},
};
use testkit::http1::{Connection, Response};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::{Child, ChildStderr, Command},
};

use super::common::{self, ANY_PORT, PROGRAM, configured, finish, shell, terminal, within};

fn a2ad(folder: &Folder, log: Option<&str>) -> Command {
    let mut command = common::a2ad(folder, &["--listen", ANY_PORT]);
    command.stdout(Stdio::null()).envs(log.map(|log| ("A2AD_LOG", log)));
    command
}

/// A running server and its log.
struct Program {
    child: Child,
    log: tokio::io::Lines<BufReader<ChildStderr>>,
    /// The first line of the log.
    first: Json,
    address: String,
}

impl Program {
    async fn start(mut command: impl BorrowMut<Command>) -> Self {
        let mut child = command.borrow_mut().spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = within(log.next_line()).await.unwrap().unwrap();
        let first = Json::parse(&line).unwrap();
        let address = text(&first, "url").unwrap().replace("http://", "");
        Self { child, log, first, address }
    }

    /// Status, head and body of a response.
    async fn ask(&self, head: &str, body: &str) -> (u16, String, String) {
        let answer = exchange(&self.address, head, body).await.unwrap();
        let head: String =
            answer.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        (answer.status, head.to_lowercase(), answer.text())
    }

    async fn post(&self, path: &str, body: &str) -> String {
        self.ask(&format!("POST {path} HTTP/1.1\r\ncontent-type: application/json"), body).await.2
    }

    /// The next log line about a call.
    async fn call_line(&mut self) -> Json {
        loop {
            let line = within(self.log.next_line()).await.unwrap().expect("the log continues");
            let line = Json::parse(&line).unwrap();
            if text(&line, "target").as_deref() == Some("a2ad::call") {
                return line;
            }
        }
    }

    /// Stops it; returns the rest of its log.
    async fn stop(mut self) -> Vec<String> {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
        let mut rest = Vec::new();
        while let Some(line) = within(self.log.next_line()).await.unwrap() {
            rest.push(line);
        }
        assert!(within(self.child.wait()).await.unwrap().success());
        rest
    }
}

/// Sends a request line with headers and a body on a new connection.
async fn exchange(address: &str, head: &str, body: &str) -> Result<Response, testkit::Error> {
    let mut connection = Connection::open(address.parse().unwrap()).await?;
    let head = format!(
        "{head}\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write(head.as_bytes()).await?;
    connection.response().await
}

/// A member of a log line.
fn text(line: &Json, name: &str) -> Option<String> {
    let object = Node::new(line.as_raw(), &Path::Root).object().unwrap();
    object.maybe(name, |node| Ok(node.string().map_or_else(|_| node.text().to_owned(), Into::into))).unwrap()
}

fn send(method: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}}}"#
    )
}

#[tokio::test]
async fn the_startup_log_line_describes_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(a2ad(folder.path(), None)).await;
    let field =
        |name: &str| text(&program.first, name).unwrap_or_else(|| panic!("{name}: {:?}", program.first));
    assert_eq!(field("message"), "a2ad serves");
    assert_eq!(field("agents"), "approver, currency, demo, echo, slow-writer");
    assert_eq!(field("default_agent"), "demo");
    assert_eq!(field("versions"), "1.0, 0.3, draft");
    assert!(field("store").ends_with("/a2ad.db") && field("store").starts_with('/'), "{}", field("store"));
    assert!(field("callers").starts_with("anonymous"));
    assert!(field("try_it").starts_with(&format!("curl -s http://{}/a2a/demo ", program.address)));
}

#[tokio::test]
async fn the_startup_log_line_omits_agents_that_are_not_served() {
    let config = "[server]\ndefault_agent = \"shut\"\n[skills.say]\nbuiltin = \"echo\"\n\
                  [agents.off]\nenabled = false\n[agents.shut]\nauth = [\"api-key\"]\n[agents.open]\n";
    let folder = configured(config);
    let start = async |more: &[(&str, &str)]| {
        let mut command = a2ad(folder.path(), None);
        command.envs(more.iter().copied());
        Program::start(command).await
    };
    let program = start(&[]).await;
    let field = |name: &str| text(&program.first, name);
    assert_eq!(field("agents").as_deref(), Some("open"));
    assert_eq!(field("closed_agents").as_deref(), Some("shut"));
    assert!(field("callers").unwrap().starts_with("anonymous"));
    // The example command calls an agent that accepts it.
    assert!(field("try_it").unwrap().contains("/a2a/open "), "{:?}", program.first);
    program.stop().await;
    let closed = start(&[("A2AD_AGENTS__OPEN__ENABLED", "false")]).await;
    assert_eq!(text(&closed.first, "agents").as_deref(), Some(""));
    assert!(
        text(&closed.first, "callers").unwrap().starts_with("those with a credential"),
        "{:?}",
        closed.first
    );
    let command = text(&closed.first, "try_it").unwrap();
    assert!(command.contains("/a2a/shut -H \"X-Api-Key: $API_KEY\" "), "{command}");
}

#[tokio::test]
async fn the_example_command_of_the_banner_works() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(a2ad(folder.path(), None)).await;
    let command = text(&program.first, "try_it").unwrap();
    // Parsed as a shell would, because curl may not be installed.
    let example = command.split(" -d '").nth(1).unwrap().trim_end_matches('\'').replace(r"'\''", "'");
    let head = "POST /a2a/demo HTTP/1.1\r\ncontent-type: text/plain";
    let (status, head, body) = program.ask(head, &example).await;
    assert!(status == 200 && head.contains("a2ad-state: completed") && !body.is_empty(), "{head}\n{body}");
}

/// Starts a server on a terminal and calls an agent; returns what the terminal has shown.
async fn shown_on_a_terminal(folder: &Folder) -> String {
    let (terminal, other_end) = terminal();
    let mut command = a2ad(folder, None);
    let mut child = command.stderr(other_end).spawn().unwrap();
    // The command holds the other end too; dropped, the terminal hangs up when the program ends.
    drop(command);
    let (mut shown, mut called) = (String::new(), false);
    while !shown.contains("duration_ms") {
        let mut terminal = terminal.try_clone().unwrap();
        let read = move || {
            let mut piece = [0; 4_096];
            // Reading a terminal without a writer returns an error.
            let count = terminal.read(&mut piece).unwrap_or_default();
            String::from_utf8_lossy(&piece[..count]).into_owned()
        };
        let piece = within(tokio::task::spawn_blocking(read)).await.unwrap();
        assert_ne!(piece, "", "it stopped after writing {shown}");
        shown += &piece;
        if !called && shown.contains(" -d '") {
            let address = shown.split("http://").nth(1).unwrap();
            let address = address[..address.find(char::is_whitespace).unwrap()].to_owned();
            let head = "POST /a2a/echo HTTP/1.1\r\ncontent-type: text/plain";
            assert!(exchange(&address, head, "hello").await.unwrap().text().ends_with("hello"));
            called = true;
        }
    }
    child.kill().await.unwrap();
    shown.replace('\r', "")
}

#[tokio::test]
async fn the_startup_message_on_a_terminal_is_text() {
    let folder = tempfile::tempdir().unwrap();
    let shown = shown_on_a_terminal(folder.path()).await;
    for expected_text in [
        "serves A2A 1.0, 0.3, draft at http://127.0.0.1:",
        "/a2a/demo, also at /: ",
        "/a2a/slow-writer: ",
        "  data     /",
        "  callers  anonymous; everybody who can reach this address is the same caller",
        "Try it:\n\n  curl -s http://127.0.0.1:",
    ] {
        assert!(shown.contains(expected_text), "{expected_text:?} is not in {shown}");
    }
    assert!(!shown.contains('{'), "no JSON on a terminal: {shown}");
}

/// A log would keep the token and a screen does not.
#[tokio::test]
async fn the_admin_token_is_shown_once_and_never_logged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a2ad.db.keys/admin");
    let shown = shown_on_a_terminal(folder.path()).await;
    let token = std::fs::read_to_string(&file).unwrap();
    let random = token.trim_end().strip_prefix("a2ad_admin_").unwrap();
    assert!(random.len() == 52 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{random}");
    let expected = format!("Admin token, shown only now and kept in {}:\n\n  {token}", file.display());
    assert!(shown.contains(&expected), "{shown}");
    let again = shown_on_a_terminal(folder.path()).await;
    assert!(!again.contains(random) && !again.contains("Admin token"), "{again}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), token);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a2ad.db.keys/admin");
    let mut command = a2ad(folder.path(), Some("trace"));
    let program = Program::start(command.env("RUST_LOG", "trace")).await;
    let token = std::fs::read_to_string(&file).unwrap().trim_end().to_owned();
    let head = format!("GET /console/api/keys HTTP/1.1\r\nauthorization: Bearer {token}");
    assert_eq!(program.ask(&head, "").await.0, 200);
    let first = format!("{:?}", program.first);
    let log = [first, program.stop().await.join("\n")].concat();
    assert!(log.contains("the admin token was made") && log.contains(file.to_str().unwrap()), "{log}");
    assert!(!log.contains(&token) && !log.contains(&token[11..]), "{log}");
}

/// Another user could have read it, so it is reported; a volume that is mounted again may be the cause.
#[tokio::test]
async fn permissions_of_others_for_the_admin_token_are_removed_and_reported() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    Program::start(a2ad(folder.path(), None)).await.stop().await;
    let file = folder.path().join("a2ad.db.keys/admin");
    let token = std::fs::read(&file).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let log = Program::start(a2ad(folder.path(), None)).await.stop().await.join("\n");
    assert!(log.contains("other users could read the admin token; their permissions were removed"), "{log}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read(&file).unwrap(), token);
    let log = Program::start(a2ad(folder.path(), None)).await.stop().await.join("\n");
    assert!(!log.contains("admin token"), "{log}");
    // A file without a token is not overwritten.
    std::fs::write(&file, "short\n").unwrap();
    let mut refused = a2ad(folder.path(), None);
    refused.stdout(Stdio::piped());
    finish(refused).await.ends(1, &["a2ad.db.keys/admin has no key", "remove the file"]);
}

#[tokio::test]
async fn the_first_response_comes_soon_after_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let program = Program::start(a2ad(folder.path(), None)).await;
    let answer = program.post("/a2a/echo", &send("SendMessage", "hello")).await;
    let taken = started.elapsed();
    assert!(answer.contains("TASK_STATE_COMPLETED"), "{answer}");
    // The target is 100 ms for a release build on an idle machine.
    assert!(taken < Duration::from_secs(2), "{taken:?}");
}

#[tokio::test]
async fn browsers_get_a_page_and_other_clients_get_json() {
    let config =
        "[skills.say]\nbuiltin = \"echo\"\nexamples = [\"it's <b>\"]\n[agents.main]\nname = \"<i>&\"\n";
    let folder = configured(config);
    let program = Program::start(a2ad(folder.path(), None)).await;

    let accept = "accept: text/html,application/xhtml+xml,*/*;q=0.8";
    let (status, head, page) = program.ask(&format!("GET / HTTP/1.1\r\n{accept}"), "").await;
    assert_eq!(status, 200);
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; style-src 'sha256-",
        "; script-src 'sha256-",
        "; connect-src 'self'; ",
        "x-content-type-options: nosniff",
        "vary: accept",
    ] {
        assert!(head.contains(header), "{header} is not in {head}");
    }
    for expected_text in
        ["&lt;i&gt;&amp;", "SendMessage", "message/send", "tasks/send", "text/plain", &program.address]
    {
        assert!(page.contains(expected_text), "{expected_text} is not in {page}");
    }
    assert_eq!((page.matches("<script").count(), page.matches("<script type=\"module\">").count()), (1, 1));
    for unexpected_text in ["<i>", "<b>", "src=", "@import", "url(", " onclick=", " onsubmit=", " style="] {
        assert!(!page.contains(unexpected_text), "{unexpected_text} is in {page}");
    }

    // Each command on the page works unchanged.
    let unescape = |text: &str| {
        let texts = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
        texts.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let commands =
        page.split("<pre><code>").skip(1).map(|rest| unescape(rest.split("</code>").next().unwrap()));
    let (client, commands): (Vec<String>, Vec<String>) =
        commands.partition(|command| command.starts_with("a2ad "));
    let mut seen = 0;
    for command in commands {
        let body = command.split(" -d '").nth(1).unwrap().strip_suffix('\'').unwrap().replace(r"'\''", "'");
        let kind = if command.contains("text/plain") { "text/plain" } else { "application/json" };
        let (_, path) = command.split_once(&program.address).unwrap();
        let path = path.split(' ').next().unwrap();
        let head = format!("POST {path} HTTP/1.1\r\ncontent-type: {kind}");
        let (status, _, answer) = program.ask(&head, &body).await;
        assert!(
            status == 200 && answer.contains("it's <b>") && !answer.contains("error"),
            "{command}: {answer}"
        );
        seen += 1;
    }
    assert_eq!(seen, 6);
    assert_eq!(client.len(), 1);
    let script = client[0].replacen("a2ad", "\"$0\"", 1);
    finish(shell("bash", folder.path(), &script)).await.prints(0, "it's <b>\n", "");

    for accept in ["accept: */*", "accept: application/json", "x: y"] {
        let (status, head, info) = program.ask(&format!("GET / HTTP/1.1\r\n{accept}"), "").await;
        assert!(status == 200 && head.contains("content-type: application/json"), "{head}");
        let info = Json::parse(&info).unwrap();
        assert_eq!(text(&info, "name").as_deref(), Some("a2ad"));
        assert_eq!(text(&info, "generations").as_deref(), Some(r#"["1.0","0.3","draft"]"#));
        let agents = text(&info, "agents").unwrap();
        assert!(agents.contains(r#""id":"main","name":"<i>&""#), "{agents}");
    }
    // A POST to the same path is a call, whatever it accepts.
    let head = "POST / HTTP/1.1\r\naccept: text/html";
    let (_, _, answer) = program.ask(head, &send("SendMessage", "hello")).await;
    assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":{"task""#), "{answer}");
}

#[tokio::test]
async fn the_page_of_the_demo_is_small_and_begins_with_the_default_agent() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(a2ad(folder.path(), None)).await;
    let (_, _, page) = program.ask("GET / HTTP/1.1\r\naccept: text/html", "").await;
    assert!(page.len() < 40 << 10, "{} bytes", page.len());
    let forms: Vec<&str> =
        page.split("<form data-path=\"a2a/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(forms, ["demo", "approver", "currency", "echo", "slow-writer"]);
}

#[tokio::test]
async fn each_call_is_logged_with_its_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(a2ad(folder.path(), Some("info"))).await;

    let answer = program.post("/a2a/echo", &send("SendMessage", "a-secret-text")).await;
    let line = program.call_line().await;
    let check = |line: &Json, expected: &[(&str, &str)]| {
        for (name, value) in expected {
            assert_eq!(text(line, name).as_deref(), Some(*value), "{name} of {line:?}");
        }
        assert_eq!(text(line, "request_id").unwrap().len(), 16, "{line:?}");
        assert!(!line.as_str().contains("a-secret"), "{line:?}");
    };
    check(
        &line,
        &[
            ("level", "INFO"),
            ("method", "SendMessage"),
            ("agent", "echo"),
            ("dialect", "1.0"),
            ("state", "completed"),
        ],
    );
    assert!(answer.contains(&text(&line, "task_id").unwrap()), "{line:?}");
    assert_eq!(text(&line, "trace_id").unwrap().len(), 32);
    assert!(text(&line, "duration_ms").unwrap().parse::<f64>().unwrap() < 60_000.0);
    assert_eq!(text(&line, "error"), None);

    // A stream is logged when it ends, with the final state; the events of HTTP+JSON have no envelope.
    let http = |parts: &str| {
        format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","{parts}":[{{"text":"hi"}}]}}}}"#)
    };
    for (path, body, dialect) in [
        ("", send("SendStreamingMessage", "more"), "1.0"),
        ("/message:stream", http("parts"), "1.0"),
        ("/v1/message:stream", http("content"), "0.3"),
    ] {
        let stream = program.post(&format!("/a2a/echo{path}"), &body).await;
        let line = program.call_line().await;
        check(&line, &[("method", "SendStreamingMessage"), ("dialect", dialect), ("state", "completed")]);
        assert!(stream.contains(&text(&line, "task_id").unwrap()), "{line:?}");
    }
    let draft = r#"{"id":1,"method":"tasks/sendSubscribe","params":{"id":"mine","message":{"role":"user","parts":[{"type":"text","text":"x"}]}}}"#;
    let get = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"nowhere"}}"#;
    // An unknown method name is the caller's text and is not logged.
    let unknown = r#"{"jsonrpc":"2.0","id":1,"method":"a-secret-method"}"#;
    let json = "content-type: application/json";
    let not_found = ("error", "TASK_NOT_FOUND");
    for (line, kind, body, expected) in [
        ("GET /a2a/echo/tasks/nothing", "x: y", "", &[("method", "GetTask"), not_found][..]),
        ("POST /_a2a", json, draft, &[("dialect", "draft"), ("task_id", "mine"), ("agent", "demo")]),
        ("POST /_agent-native/a2a", json, get, &[not_found, ("dialect", "0.3"), ("task_id", "nowhere")]),
        ("POST /", json, unknown, &[("method", "unknown"), ("error", "METHOD_NOT_FOUND")]),
        (
            "POST /a2a/echo",
            "content-type: text/plain",
            "hello",
            &[("dialect", "text"), ("state", "completed")],
        ),
    ] {
        program.ask(&format!("{line} HTTP/1.1\r\n{kind}"), body).await;
        check(&program.call_line().await, expected);
    }
    program.stop().await;
}

#[tokio::test]
async fn log_lines_are_escaped_for_any_name() {
    // Quotes, backslashes, C0 and C1 control characters, text that resembles further members, and non-ASCII text.
    let names = [
        r#"a"b\c\"d\\"#,
        "a\"\n\u{1b}[2J\r\t\u{7f}",
        "\u{85}\u{9b}2J\u{a0}\u{bf}£°",
        r#"x","level":"ERROR","y":"z"#,
        "\n{\"level\":\"ERROR\"}\n",
        r"\u0041\n",
        "né\u{301} 名前 💥 \u{2028}\u{202e}\u{feff}\u{ffff}",
    ];
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a\"b\\c\n\u{1b}[2J\u{9b}é");
    std::fs::create_dir(&folder).unwrap();
    let mut program = Program::start(a2ad(&folder, None)).await;
    let has_no_controls = |line: &Json| assert!(!line.as_str().contains(char::is_control), "{line:?}");
    has_no_controls(&program.first);
    let store = folder.join("a2ad.db");
    assert_eq!(text(&program.first, "store").as_deref(), store.to_str());
    assert!(store.exists());

    for name in names {
        // Every character of the id is written as an escape sequence.
        let id: String = name.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let body = format!(
            r#"{{"id":1,"method":"tasks/send","params":{{"id":"{id}","message":{{"role":"user","parts":[{{"type":"text","text":"x"}}]}}}}}}"#
        );
        let answer = program.post("/a2a/echo", &body).await;
        let line = program.call_line().await;
        has_no_controls(&line);
        assert_eq!(text(&line, "task_id").as_deref(), Some(name), "{line:?} of {answer}");
        assert_eq!(text(&line, "state").as_deref(), Some("completed"), "{line:?} of {answer}");
        assert_eq!(text(&line, "level").as_deref(), Some("INFO"), "{line:?}");
    }
    program.stop().await;
}

#[tokio::test]
async fn an_abandoned_call_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(a2ad(folder.path(), None)).await;
    let head = "POST /a2a/echo HTTP/1.1\r\ncontent-type: application/json";
    // Much longer than the start of the call takes, and much shorter than the task is held.
    let body = send("SendMessage", "hold");
    let left = exchange(&program.address, head, &body);
    assert!(tokio::time::timeout(Duration::from_secs(2), left).await.is_err());
    let line = program.call_line().await;
    assert_eq!(text(&line, "method").as_deref(), Some("SendMessage"), "{line:?}");
    assert_eq!(text(&line, "error").as_deref(), Some("CALLER_LEFT"), "{line:?}");
    assert_eq!(text(&line, "dialect").as_deref(), Some("1.0"), "{line:?}");
}

#[tokio::test]
async fn the_last_calls_are_logged_before_exit_unless_disabled() {
    for (log, expected) in [(None, 3), (Some("info,a2ad::call=off"), 0)] {
        let folder = tempfile::tempdir().unwrap();
        let program = Program::start(a2ad(folder.path(), log)).await;
        for _ in 0..3 {
            program.post("/a2a/echo", &send("SendMessage", "hello")).await;
        }
        let rest = program.stop().await;
        assert!(rest.iter().all(|line| Json::parse(line).is_ok()), "{rest:?}");
        assert!(rest.iter().any(|line| line.contains("stopped; no task is left")), "{rest:?}");
        assert_eq!(rest.iter().filter(|line| line.contains("a2ad::call")).count(), expected, "{rest:?}");
    }
}

#[tokio::test]
async fn calls_succeed_when_stderr_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let Program { log, address, child: _child, .. } = Program::start(a2ad(folder.path(), Some("info"))).await;
    drop(log);
    for _ in 0..3 {
        let head = "POST /a2a/echo HTTP/1.1\r\ncontent-type: application/json";
        let answer = exchange(&address, head, &send("SendMessage", "hello")).await.unwrap().text();
        assert!(answer.contains("TASK_STATE_COMPLETED"), "{answer}");
    }
}

#[tokio::test]
async fn settings_without_effect_are_reported_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value, expected_text) in [
        ("A2AD_LOG", "a2ad=loudly", &["A2AD_LOG", "\"loudly\" is not a log level", "off, error, warn"][..]),
        // Alone it would be parsed as a target, and nothing else would be logged.
        ("A2AD_LOG", "debgu", &["A2AD_LOG", "\"debgu\" is not a log level", "did you mean debug?"]),
        // A filter without warnings does not suppress these.
        ("A2AD_LOG", "error,a2ad=loudly", &["A2AD_LOG", "\"loudly\" is not a log level"]),
        ("A2AD_LISEN", "127.0.0.1:1", &["A2AD_LISEN is unknown", "did you mean A2AD_LISTEN?"]),
        ("A2AD_SERVER_LISTEN", "x", &["A2AD_SERVER_LISTEN is unknown", "did you mean A2AD_SERVER__LISTEN?"]),
    ] {
        let mut command = a2ad(folder.path(), None);
        let mut child = command.env(name, value).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = Json::parse(&within(log.next_line()).await.unwrap().unwrap()).unwrap();
        let message = text(&line, "message").unwrap();
        assert!(expected_text.iter().all(|part| message.contains(part)), "{expected_text:?}: {line:?}");
        assert_eq!(text(&line, "level").as_deref(), Some("WARN"), "{line:?}");
        // The server starts nevertheless; with `error` that is not logged.
        if !value.starts_with("error") {
            while !within(log.next_line()).await.unwrap().expect("it starts").contains("a2ad serves") {}
        }
        child.kill().await.unwrap();
    }
}

/// If stderr is not read for long, calls continue, lines are dropped, and their number is logged when lines can be
/// written again.
#[tokio::test]
async fn dropped_log_lines_are_counted() {
    const CALLS: usize = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(a2ad(folder.path(), None)).await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"nothing"}}"#;
    let request = format!(
        "POST /a2a/echo HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        program.address,
        body.len()
    );
    let (mut answers, mut requests) = TcpStream::connect(&program.address).await.unwrap().into_split();
    let asking = async {
        for _ in 0..CALLS {
            requests.write_all(request.as_bytes()).await.unwrap();
        }
    };
    let reading = async {
        let (mut count, mut piece, mut rest) = (0, vec![0; 64 * 1024], Vec::new());
        while count < CALLS {
            let read = answers.read(&mut piece).await.unwrap();
            assert_ne!(read, 0, "the connection ended after {count} answers");
            rest.extend_from_slice(&piece[..read]);
            count += rest.windows(8).filter(|bytes| *bytes == b"HTTP/1.1").count();
            rest.drain(..rest.len().saturating_sub(7));
        }
    };
    within(async { tokio::join!(asking, reading) }).await;
    let (mut lines, mut dropped) = (0, None);
    while dropped.is_none() {
        let line = within(program.log.next_line()).await.unwrap().expect("the number is logged");
        let line = Json::parse(&line).unwrap();
        lines += usize::from(text(&line, "target").as_deref() == Some("a2ad::call"));
        dropped = text(&line, "dropped_lines");
    }
    let dropped: usize = dropped.unwrap().parse().unwrap();
    // The report itself may have been dropped before.
    assert!(
        dropped > 0 && (CALLS..CALLS + 10).contains(&(lines + dropped)),
        "{lines} written, {dropped} dropped"
    );
    program.stop().await;
}

#[tokio::test]
async fn the_configuration_file_is_found_by_flag_variable_and_default_path() {
    let folder = tempfile::tempdir().unwrap();
    let agents = |name: &str| format!("[skills.echo]\nbuiltin = \"echo\"\n[agents.{name}]\n");
    let start = async |flags: &[&str], variable: &str| {
        let mut command = a2ad(folder.path(), None);
        let program = Program::start(std::mem::replace(
            command.args(flags).env("A2AD_CONFIG", variable),
            Command::new("true"),
        ))
        .await;
        let info = (text(&program.first, "agents").unwrap(), text(&program.first, "config"));
        program.stop().await;
        info
    };
    let path = |name: &str| Some(folder.path().join(name).to_str().unwrap().to_owned());
    let demo = start(&[], "").await;
    assert!(demo.0.contains("currency") && demo.1.is_none(), "{demo:?}");
    std::fs::write(folder.path().join("a2ad.toml"), agents("here")).unwrap();
    std::fs::write(folder.path().join("b.toml"), agents("by-variable")).unwrap();
    std::fs::write(folder.path().join("c.toml"), agents("by-flag")).unwrap();
    assert_eq!(start(&[], "").await, ("here".to_owned(), path("a2ad.toml")));
    assert_eq!(start(&[], "b.toml").await, ("by-variable".to_owned(), path("b.toml")));
    assert_eq!(start(&["--config", "c.toml"], "b.toml").await, ("by-flag".to_owned(), path("c.toml")));
    // A missing file is an error and does not start the demo.
    let mut command = a2ad(folder.path(), None);
    command.env("A2AD_CONFIG", "none.toml");
    finish(command).await.ends(2, &["none.toml (named by A2AD_CONFIG) cannot be read"]);
}

/// The crash demonstration in docs/protocols.md works as written, except for the port, and loses no event.
#[tokio::test]
async fn the_crash_demo_of_the_pages_works_as_pasted() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols.md");
    let page = std::fs::read_to_string(page).unwrap();
    let demo = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let demo: Vec<&str> = demo.filter(|block| block.contains("kill -9")).collect();
    assert_eq!(demo.len(), 1, "the page has one such block");
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("target/release");
    std::fs::create_dir_all(&programs).unwrap();
    std::os::unix::fs::symlink(PROGRAM, programs.join("a2ad")).unwrap();
    // Below the ports that the system gives to the servers of other tests: this one is free between the two servers.
    let first = 10_240 + (std::process::id() % 20_000) as u16;
    let port =
        (first..32_768).find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap();
    // The shell ends when both servers have ended.
    let script = format!("{}\nwait", demo[0].replace("4343", &port.to_string()));
    let mut shell = shell("bash", folder.path(), &script);
    let Ok(output) = tokio::time::timeout(Duration::from_secs(90), shell.output()).await else {
        panic!("the servers wrote: {:?}", std::fs::read_to_string(folder.path().join("crash.log")));
    };
    let output = output.unwrap();
    let (shown, errors) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let sections: Vec<String> = (1..=20).map(|number| format!("Section {number} of 20: ")).collect();
    let mut rest = shown.as_str();
    for section in &sections {
        assert_eq!(shown.matches(section.as_str()).count(), 1, "{section}: {shown}{errors}");
        rest = rest.split_once(section.as_str()).unwrap_or_else(|| panic!("{section} comes late: {shown}")).1;
    }
    // Some sections were written before the crash and some after.
    let first = shown.lines().find(|line| line.starts_with("data:")).unwrap();
    assert!(first.contains(&sections[0]) && !first.contains(&sections[19]), "{first}");
    assert!(shown.contains("TASK_STATE_COMPLETED"), "{shown}");
}

/// A failed disk ends the process with exit code 70 after the complete log is written.
#[tokio::test]
async fn the_log_is_complete_when_the_store_fails() {
    let folder = tempfile::tempdir().unwrap();
    // Files are limited to 4 MiB; a write beyond fails without a signal.
    let script = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" --listen 127.0.0.1:0";
    let mut command = shell("bash", folder.path(), script);
    command.stdout(Stdio::null());
    let mut program = Program::start(command).await;
    let body = send("SendMessage", &"x".repeat(100_000));
    let head = "POST /a2a/echo HTTP/1.1\r\ncontent-type: application/json";
    let mut completed = 0;
    // Each call grows the file; responses after the first failure are not counted.
    while let Ok(answer) = exchange(&program.address, head, &body).await {
        if !answer.text().contains("TASK_STATE_COMPLETED") {
            break;
        }
        completed += 1;
        assert!(completed < 1_000, "the file does not grow");
    }
    let mut lines = Vec::new();
    while let Some(line) = within(program.log.next_line()).await.unwrap() {
        lines.push(line);
    }
    assert_eq!(within(program.child.wait()).await.unwrap().code(), Some(70), "{lines:?}");
    let logged =
        lines.iter().filter(|line| line.contains("a2ad::call") && line.contains("completed")).count();
    assert!(completed > 0 && logged == completed, "{completed} calls, {logged} lines: {lines:?}");
    assert!(lines.last().unwrap().starts_with("a2ad: the store cannot write any more: "), "{lines:?}");
}
