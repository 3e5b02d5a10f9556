//! The server process: start, calls, kill, restart, shutdown.

use std::{net::SocketAddr, time::Duration};

use client::{Client, EventStream};
use protocol::{Event, Message, Part, Role, SendMessage, Task, TaskId, TaskState};
use testkit::{
    http1::{self, Connection, Response},
    process::{Server, Signal},
};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, process::Command};

use super::common::{
    ANY_PORT as ANY, Ended, TIMEOUT, a2ad, client, configured, files, request, run, sections, send as sent,
    shell, texts, within,
};

/// A running server.
struct Program {
    server: Server,
    url: String,
}

impl Program {
    async fn start(command: Command) -> Self {
        let server = Server::start_command(command).await.unwrap();
        Self { url: server.url(), server }
    }

    fn client(&self, agent: &str) -> Client {
        client(&self.server, agent)
    }

    async fn connect(&self) -> Connection {
        Connection::open(self.server.address).await.unwrap()
    }

    /// Sends a request on a new connection.
    async fn exchange(&self, method: &str, path: &str, body: &str) -> Response {
        exchange(self.server.address, method, path, body).await
    }

    /// Kills it with SIGKILL.
    async fn kill(self) {
        self.server.kill().await.unwrap();
    }

    /// Sends it a signal; returns its exit code and its stdout.
    async fn signal(mut self, signal: Signal) -> (Option<i32>, String) {
        self.server.signal(signal).unwrap();
        (self.exit_code().await, self.server.stdout())
    }

    /// Waits until it ends.
    async fn exit_code(&mut self) -> Option<i32> {
        self.server.wait(TIMEOUT).await.unwrap().expect("timed out").code()
    }
}

/// Checks that the program does not start, and that stderr is one line with these texts.
fn stops(ended: &Ended, code: i32, texts: &[&str]) {
    ended.fails(code, texts);
    let stderr = &ended.err;
    assert!(
        stderr.starts_with("a2ad: ") && stderr.ends_with('\n') && stderr.lines().count() == 1,
        "{stderr:?}"
    );
}

async fn get(client: &Client, id: &TaskId) -> Task {
    within(client.get_task(id)).await.unwrap()
}

async fn subscribe(client: &Client, id: &TaskId) -> Result<EventStream, client::Error> {
    within(client.subscribe(id)).await
}

/// Waits for a task to end and returns it.
async fn finished(client: &Client, id: &TaskId) -> Task {
    // Rejected if the task has ended already.
    if let Ok(mut stream) = subscribe(client, id).await {
        while within(stream.next()).await.transpose().unwrap().is_some() {}
    }
    get(client, id).await
}

#[tokio::test]
async fn flags_and_environment_set_the_address_and_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let by_flags = a2ad(folder.path(), &["serve", "--listen", ANY, "--store", "flags.db"]);
    let mut by_environment = a2ad(folder.path(), &[]);
    by_environment.env("A2AD_LISTEN", "[::1]:0").env("A2AD_STORE", "environment.db");
    let mut flags_win = a2ad(folder.path(), &["--listen", ANY, "--store", "winner.db"]);
    flags_win.env("A2AD_LISTEN", "no address").env("A2AD_STORE", "loser.db");
    let by_default = a2ad(folder.path(), &["--listen", ANY]);
    for (command, host, store) in [
        (by_flags, "http://127.0.0.1:", "flags.db"),
        (by_environment, "http://[::1]:", "environment.db"),
        (flags_win, "http://127.0.0.1:", "winner.db"),
        (by_default, "http://127.0.0.1:", "a2ad.db"),
    ] {
        let program = Program::start(command).await;
        assert!(program.url.starts_with(host), "{}", program.url);
        let client = within(Client::discover(&program.url)).await.unwrap();
        let echoed = sent(&client, request("hello", false)).await;
        assert_eq!(echoed.status.state, TaskState::Completed);
        assert!(folder.path().join(store).exists());
        assert_eq!(program.signal(Signal::TERM).await, (Some(0), String::new()));
    }
    assert!(!folder.path().join("loser.db").exists());
}

#[tokio::test]
async fn a_killed_run_resumes_without_missing_or_repeated_output() {
    const SECTIONS: usize = 60;
    let folder = tempfile::tempdir().unwrap();
    let serve = || a2ad(folder.path(), &["--listen", ANY, "--store", "a2ad.db"]);
    let mut program = Program::start(serve()).await;
    let mut client = program.client("slow-writer");
    let text = format!("the sea sections={SECTIONS} delay=20ms");
    let id = sent(&client, request(&text, true)).await.id;
    for _ in 0..2 {
        // Killed some sections after the last start and before the final one.
        let mut stream = subscribe(&client, &id).await.unwrap();
        let mut seen = 0;
        while seen < 10 {
            let event = within(stream.next()).await.expect("the stream continues").unwrap();
            seen += usize::from(matches!(event, Event::Artifact(_)));
        }
        program.kill().await;
        program = Program::start(serve()).await;
        client = program.client("slow-writer");
        let left = get(&client, &id).await;
        assert!(texts(&left).len() < SECTIONS, "it was killed too late to prove anything");
    }
    let written = finished(&client, &id).await;
    assert_eq!(written.status.state, TaskState::Completed);
    assert_eq!(texts(&written), sections(SECTIONS));
    assert_eq!(written.artifacts.len(), 1);
}

#[tokio::test]
async fn a_killed_run_resumes_after_a_message_with_the_agent_role() {
    let folder = tempfile::tempdir().unwrap();
    let serve = || a2ad(folder.path(), &["--listen", ANY, "--store", "a2ad.db"]);
    let program = Program::start(serve()).await;
    let client = program.client("slow-writer");
    let text = "the sea sections=40 delay=20ms";
    let id = sent(&client, request(text, true)).await.id;
    let note = Message {
        task_id: Some(id.clone()),
        ..Message::new("note", Role::Agent, vec![Part::text("a note in the agent's own name")])
    };
    let note = SendMessage { return_immediately: true, ..SendMessage::new(note) };
    assert_eq!(sent(&client, note).await.status.state, TaskState::Working);
    program.kill().await;
    let program = Program::start(serve()).await;
    let written = finished(&program.client("slow-writer"), &id).await;
    assert_eq!(written.status.state, TaskState::Completed);
    assert_eq!(texts(&written), sections(40));
}

#[tokio::test]
async fn a_signal_shuts_the_server_down_gracefully() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let serve = || a2ad(folder.path(), &["--listen", ANY, "--store", "a2ad.db"]);
        let program = Program::start(serve()).await;
        let client = program.client("slow-writer");
        let text = "the sea sections=20 delay=20ms";
        let id = sent(&client, request(text, true)).await.id;
        let mut stream = subscribe(&client, &id).await.unwrap();
        within(stream.next()).await.unwrap().unwrap();
        let approver = program.client("approver");
        let asked = sent(&approver, request("a bicycle for 300 EUR", false)).await;
        let mut idle = subscribe(&approver, &asked.id).await.unwrap();
        within(idle.next()).await.unwrap().unwrap();
        // The run finishes and its stream ends with it; the other stream ends with a retry hint; the exit code is
        // 0.
        let stopping = program.signal(signal);
        let watching = async {
            let mut last = None;
            while let Some(event) = within(stream.next()).await.transpose().unwrap() {
                last = Some(event);
            }
            while within(idle.next()).await.transpose().unwrap().is_some() {}
            (last, stream.retry(), idle.retry())
        };
        let (stopped, (last, retry, idle_retry)) = tokio::join!(stopping, watching);
        assert_eq!(stopped, (Some(0), String::new()), "{signal:?}");
        let Some(Event::Status(update)) = last else { panic!("{last:?}") };
        assert_eq!(update.status.state, TaskState::Completed);
        assert_eq!((retry, idle_retry), (None, Some(Duration::from_secs(1))));

        let program = Program::start(serve()).await;
        let written = get(&program.client("slow-writer"), &id).await;
        assert_eq!(written.status.state, TaskState::Completed);
        assert_eq!(texts(&written), sections(20));
        program.signal(signal).await;
    }
}

#[tokio::test]
async fn a_second_signal_forces_the_exit_and_loses_no_task() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let serve = || a2ad(folder.path(), &["--listen", ANY, "--store", "a2ad.db"]);
        let mut program = Program::start(serve()).await;
        let id = sent(&program.client("echo"), request("hold on", true)).await.id;
        program.server.signal(signal).unwrap();
        let draining = "shutting down: no new work is accepted; running tasks have up to 20 s to finish and 5 s more to stop; a second signal";
        program.server.wait_for_log(draining).await.unwrap();
        // A signal within the debounce time is ignored, so it is repeated until the server stops.
        let at_once = "stopping at once: interrupted tasks continue at the next start";
        let pause = Duration::from_millis(100);
        within(async {
            while tokio::time::timeout(pause, program.server.wait_for_log(at_once)).await.is_err() {
                program.server.signal(signal).unwrap();
            }
        })
        .await;
        // The held task would have used the whole grace period.
        assert_eq!(program.exit_code().await, Some(0), "{signal:?}");

        let program = Program::start(serve()).await;
        let client = program.client("echo");
        assert_eq!(get(&client, &id).await.status.state, TaskState::Working);
        assert_eq!(within(client.cancel(id)).await.unwrap().status.state, TaskState::Canceled);
        program.kill().await;
    }
}

#[tokio::test]
async fn signals_in_quick_succession_count_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(a2ad(folder.path(), &["--listen", ANY, "--store", "a2ad.db"])).await;
    let text = "the sea sections=20 delay=50ms";
    let client = program.client("slow-writer");
    let id = sent(&client, request(text, true)).await.id;
    let mut stream = subscribe(&client, &id).await.unwrap();
    within(stream.next()).await.unwrap().unwrap();
    // As when a process group receives Ctrl-C and a wrapper forwards it.
    for signal in [Signal::INT, Signal::TERM, Signal::INT] {
        program.server.signal(signal).unwrap();
    }
    let mut last = None;
    while let Some(event) = within(stream.next()).await.transpose().unwrap() {
        last = Some(event);
    }
    let Some(Event::Status(update)) = last else { panic!("{last:?}") };
    assert_eq!(update.status.state, TaskState::Completed);
    assert_eq!(program.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_blocking_send_returns_after_the_wait_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = a2ad(folder.path(), &["--listen", ANY]);
    command.env("A2AD_LIMITS__WAIT", "50ms");
    let program = Program::start(command).await;
    let client = program.client("slow-writer");
    let waited = sent(&client, request("the sea sections=6 delay=100ms", false)).await;
    assert_eq!(waited.status.state, TaskState::Working, "{waited:?}");
    let written = finished(&client, &waited.id).await;
    assert_eq!(written.status.state, TaskState::Completed);
    assert_eq!(texts(&written), sections(6));
}

#[tokio::test]
async fn limits_of_the_configuration_file_are_enforced() {
    let folder = configured("[limits]\nmax_task = \"10KiB\"\n[store]\nretention = { max_tasks = 1 }\n");
    let program = Program::start(a2ad(folder.path(), &["--config", "a2ad.toml", "--listen", ANY])).await;
    let echo = program.client("echo");
    let refusal = async |send: SendMessage| {
        let answer = within(echo.send(send)).await;
        let Err(client::Error::Protocol(error)) = answer else { panic!("{answer:?}") };
        error
    };
    let large = refusal(request(&"x".repeat(20_000), false)).await;
    assert_eq!(large.violations[0].field, "message.parts", "{large:?}");
    assert!(large.violations[0].problem.contains("10240 bytes"), "{large:?}");
    let doubled = sent(&echo, request(&"x".repeat(6_000), false)).await;
    assert_eq!((doubled.status.state, doubled.artifacts.len()), (TaskState::Failed, 0));
    // At the limit of open tasks, a repeated message is still deduplicated.
    let mut first = request("hold on", true);
    first.message.id = uuid::Uuid::new_v4().to_string().into();
    let held = sent(&echo, first.clone()).await;
    let full = refusal(request("hello", false)).await;
    assert_eq!(full.kind, protocol::ErrorKind::RateLimited);
    assert_eq!(sent(&echo, first).await.id, held.id);
    program.kill().await;
}

#[tokio::test]
async fn a_request_over_the_configured_memory_limit_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = a2ad(folder.path(), &["--listen", ANY]);
    command.env("A2AD_LIMITS__MAX_BODY", "1MiB").env("A2AD_LIMITS__MEMORY", "4MiB");
    let program = Program::start(command).await;
    // The memory for a body is reserved when its length is announced.
    let mut announced = program.connect().await;
    let length = [("expect", "100-continue"), ("content-length", "1000000")];
    announced.send("POST", "/a2a/echo", &length, b"").await.unwrap();
    assert_eq!(announced.head().await.unwrap().status, 100);
    let large = HI.replace("hi", &"x".repeat(500_000));
    let refused = program.exchange("POST", "/a2a/echo", &large).await;
    assert_eq!((refused.status, refused.headers.get("retry-after")), (503, Some("1")), "{refused:?}");
    let small = program.exchange("POST", "/a2a/echo", HI).await.text();
    assert!(small.contains("TASK_STATE_COMPLETED"), "{small}");
    // It is free again when the client has left.
    drop(announced);
    within(async {
        while !program.exchange("POST", "/a2a/echo", &large).await.text().contains("COMPLETED") {}
    })
    .await;
}

#[tokio::test]
async fn a_quiet_stream_sends_a_comment_at_the_configured_interval() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = a2ad(folder.path(), &["--listen", ANY]);
    command.env("A2AD_SERVER__KEEP_ALIVE", "200ms");
    let program = Program::start(command).await;
    let body = HI.replace("SendMessage", "SendStreamingMessage").replace("hi", "hold on");
    let mut stream = program.connect().await;
    stream.send("POST", "/a2a/echo", &[], body.as_bytes()).await.unwrap();
    stream.head().await.unwrap();
    // Each in a chunk of its own. Unless it is configured, the first one comes after 15 s.
    let comments = async {
        let mut count = 0;
        while count < 3 {
            let chunk = stream.bytes().await.unwrap().expect("the stream continues");
            count += usize::from(chunk == ":\n");
        }
    };
    tokio::time::timeout(Duration::from_secs(10), comments).await.expect("three comments in ten seconds");
}

/// What the process has used of the processor, in hundredths of a second.
#[cfg(target_os = "linux")]
fn processor_time(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // Behind the name of the program, which may be anything in parentheses, user and system time are the 12th and 13th.
    let fields = stat.rsplit_once(") ").unwrap().1;
    fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn waiting_for_the_rest_of_a_preface_takes_no_processor_time() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(a2ad(folder.path(), &["--listen", ANY])).await;
    let process = program.server.id().unwrap();
    let mut waiting = Vec::new();
    for preface in [&b"P"[..], b"PRI * HTTP/2.0\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r"] {
        let mut stream = within(TcpStream::connect(program.server.address)).await.unwrap();
        within(stream.write_all(preface)).await.unwrap();
        waiting.push(stream);
    }
    program.exchange("GET", "/healthz", "").await;
    let before = processor_time(process);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let used = processor_time(process) - before;
    // They are still open: the server waits for five seconds.
    for stream in &waiting {
        let error = stream.try_read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
    assert!(used < 20, "{used} hundredths of a second in two seconds");
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let start = async |path: &str, texts: &[&str]| {
        stops(&run(folder.path(), &["--listen", ANY, "--store", path]).await, 1, &[&[path], texts].concat());
    };
    start("missing/tasks.db", &["cannot be opened", "No such file"]).await;
    std::fs::create_dir(folder.path().join("folder.db")).unwrap();
    start("folder.db", &["cannot be opened"]).await;
    std::fs::write(folder.path().join("letter.db"), "Dear Sir or Madam,\n".repeat(1_000)).unwrap();
    start("letter.db", &["cannot be opened", "not a database"]).await;
    let newer = rusqlite::Connection::open(folder.path().join("newer.db")).unwrap();
    newer.pragma_update(None, "user_version", 999).unwrap();
    drop(newer);
    start("newer.db", &["schema 999", "newer a2ad"]).await;
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let start = async |path: &str| run(folder.path(), &["--config", path, "--listen", ANY]).await;
    stops(&start("missing.toml").await, 2, &["missing.toml", "cannot be read", "No such file"]);
    std::fs::create_dir(folder.path().join("folder.toml")).unwrap();
    stops(&start("folder.toml").await, 2, &["folder.toml", "cannot be read"]);
    let wrong = "# ours\n[server]\nlissten = \"127.0.0.1:1\"\n";
    std::fs::write(folder.path().join("wrong.toml"), wrong).unwrap();
    let expected = "wrong.toml:3: server.lissten: unknown key; did you mean listen?\n";
    start("wrong.toml").await.prints(2, "", expected);
}

#[tokio::test]
async fn an_invalid_or_public_address_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    for open in ["0.0.0.0:0", "[::]:0", "192.0.2.1:4242"] {
        let texts = [open, "would accept calls from anyone", "127.0.0.1:"];
        stops(&run(folder.path(), &["--listen", open]).await, 2, &texts);
    }
    for wrong in ["here", "127.0.0.1", "localhost:x", "127.0.0.1:99999"] {
        let texts = [wrong, "is not an address with a port", "127.0.0.1:4242"];
        stops(&run(folder.path(), &["--listen", wrong]).await, 2, &texts);
    }
    assert!(files(folder.path()).is_empty());
    // Invalid arguments have their own exit code.
    run(folder.path(), &["--lissten", "x"]).await.fails(2, &["--lissten"]);
}

/// Sends a request on a new connection.
async fn exchange(address: SocketAddr, method: &str, path: &str, body: &str) -> Response {
    let headers = [("connection", "close")];
    http1::request(address, method, path, &headers, body.as_bytes()).await.unwrap()
}

/// Waits until `/readyz` fails.
async fn until_not_ready(address: SocketAddr) {
    within(async { while exchange(address, "GET", "/readyz", "").await.status != 503 {} }).await;
}

const HI: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}}"#;

/// Calls a method of an agent on a new connection.
async fn call_anew(address: SocketAddr, agent: &str, method: &str, params: &str) -> Response {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    exchange(address, "POST", &format!("/a2a/{agent}"), &body).await
}

#[tokio::test]
async fn new_connections_are_served_until_the_last_run_has_ended() {
    const SECTIONS: usize = 60;
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(a2ad(folder.path(), &["--listen", ANY])).await;
    let (address, client) = (program.server.address, program.client("slow-writer"));
    let id = sent(&client, request(&format!("the sea sections={SECTIONS} delay=50ms"), true)).await.id;
    let params = format!(r#"{{"id":"{id}"}}"#);
    let held = sent(&program.client("echo"), request("hold on", true)).await.id;
    // A connection that is kept alive from before.
    let mut kept = program.connect().await;
    kept.get("/readyz").await.unwrap();
    let draining = async {
        until_not_ready(address).await;
        within(async { while exchange(address, "POST", "/a2a/echo", HI).await.status == 200 {} }).await;
        let read = call_anew(address, "slow-writer", "GetTask", &params).await.text();
        assert!(read.contains("TASK_STATE_WORKING"), "{read}");
        let listed = call_anew(address, "slow-writer", "ListTasks", "{}").await.text();
        assert!(listed.contains(id.as_str()) && listed.contains(r#""totalSize":1"#), "{listed}");
        let refused = exchange(address, "POST", "/a2a/echo", HI).await;
        assert_eq!((refused.status, refused.headers.get("retry-after")), (503, Some("1")), "{refused:?}");
        assert!(refused.text().contains("shutting down"), "{refused:?}");
        // The shutdown does not wait for a task that is cancelled.
        let canceled =
            call_anew(address, "echo", "CancelTask", &format!(r#"{{"id":"{held}"}}"#)).await.text();
        assert!(canceled.contains("TASK_STATE_CANCELED"), "{canceled}");
        assert_eq!(exchange(address, "GET", "/readyz", "").await.status, 503);
        assert_eq!(exchange(address, "GET", "/healthz", "").await.status, 200);
        assert_eq!(kept.get("/readyz").await.unwrap().status, 503);
        // A new stream shows the run to its end.
        let late = Client::connect(&format!("http://{address}/a2a/slow-writer")).unwrap();
        let mut stream = subscribe(&late, &id).await.unwrap();
        let (mut sections, mut last) = (0, None);
        while let Some(event) = within(stream.next()).await.transpose().unwrap() {
            sections += usize::from(matches!(event, Event::Artifact(_)));
            last = Some(event);
        }
        assert!(sections > 0, "the run had ended before");
        let Some(Event::Status(update)) = last else { panic!("{last:?}") };
        assert_eq!(update.status.state, TaskState::Completed);
        // Then connections are closed, also the one without a request.
        assert_eq!(within(kept.closed()).await.unwrap(), b"");
        tokio::time::Instant::now()
    };
    let (stopped, ended) = tokio::join!(program.signal(Signal::TERM), draining);
    assert_eq!(stopped.0, Some(0));
    assert!(ended.elapsed() < Duration::from_secs(3), "it stopped {:?} after its last run", ended.elapsed());
}

#[tokio::test]
async fn the_log_shows_whether_the_agent_of_a_canceled_task_has_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(a2ad(folder.path(), &["--listen", ANY])).await;
    // The first agent waits for its cancellation, the second one sleeps longer than its grace period.
    for (agent, text, confirmed) in
        [("echo", "hold on", true), ("slow-writer", "the sea delay=30000ms", false)]
    {
        let client = program.client(agent);
        let id = sent(&client, request(text, true)).await.id;
        within(client.cancel(&id)).await.unwrap();
        let fields = format!(r#""task":"{id}","reason":"canceled","stopConfirmed":{confirmed}"#);
        program.server.wait_for_log(&fields).await.unwrap();
    }
    program.kill().await;
}

#[tokio::test]
async fn during_the_drain_delay_the_server_is_not_ready_but_serves() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = a2ad(folder.path(), &["--listen", ANY]);
    command.env("A2AD_SERVER__DRAIN_DELAY", "2s");
    let program = Program::start(command).await;
    let address = program.server.address;
    let delayed = async {
        let asked = tokio::time::Instant::now();
        until_not_ready(address).await;
        let answer = exchange(address, "POST", "/a2a/echo", HI).await.text();
        assert!(answer.contains("TASK_STATE_COMPLETED"), "{answer}");
        asked
    };
    let (stopped, asked) = tokio::join!(program.signal(Signal::TERM), delayed);
    assert_eq!(stopped.0, Some(0));
    assert!(asked.elapsed() >= Duration::from_millis(1_900), "it stopped after {:?}", asked.elapsed());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn at_the_descriptor_limit_new_connections_are_refused_and_open_ones_served() {
    let folder = tempfile::tempdir().unwrap();
    let limited =
        shell("sh", folder.path(), "ulimit -Sn 100; ulimit -Hn 200; exec \"$0\" --listen 127.0.0.1:0");
    let program = Program::start(limited).await;
    program.exchange("GET", "/healthz", "").await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", program.server.id().unwrap())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers, ["200", "200"], "the soft limit is raised to the hard one");
    let mut served = Vec::new();
    let mut refused = 0;
    while refused < 20 {
        let mut connection = program.connect().await;
        match health(&mut connection).await {
            true => served.push(connection),
            false => refused += 1,
        }
        assert!(served.len() < 200, "every descriptor went to a connection");
    }
    assert!(served.len() > 50, "{}", served.len());
    for connection in &mut served {
        assert!(health(connection).await, "open connections are still served");
    }
    // A closed connection frees its slot, and descriptors for the store are reserved.
    drop(served.pop());
    let mut connection = within(async {
        loop {
            let mut connection = program.connect().await;
            if health(&mut connection).await {
                return connection;
            }
        }
    })
    .await;
    let answer = connection.exchange("POST", "/a2a/echo", &[], HI.as_bytes()).await.unwrap().text();
    assert!(answer.contains("TASK_STATE_COMPLETED"), "{answer}");
}

/// Whether a request on this connection is answered.
async fn health(connection: &mut Connection) -> bool {
    match connection.get("/healthz").await {
        Ok(answer) => answer.text().ends_with("\"ok\"}"),
        Err(testkit::Error::Cut(_)) => false,
        Err(error) => panic!("{error}"),
    }
}
