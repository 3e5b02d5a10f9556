//! Changes of the configuration while the server runs: what a saved file, SIGHUP and the skills folder change, and what they
//! leave as it is.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    http1,
    json::{artifact_text, reason, state, status_text, task_id},
    process::{Server, Signal},
    rpc::{Caller, Failure, message},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};

use super::common::{ANY_PORT, TIMEOUT, a2ad, configured, eventually, run, serve, within};

const BUILTINS: &str = "[skills.echo]\nbuiltin = \"echo\"\n[skills.currency]\nbuiltin = \"currency\"\n";
/// Every path and version of the card of the default agent `main`.
const CARDS: [(&str, &str); 6] = [
    ("/.well-known/agent-card.json", ""),
    ("/.well-known/agent-card.json", "1.0"),
    ("/.well-known/agent-card.json", "0.3"),
    ("/.well-known/agent.json", ""),
    ("/a2a/main/.well-known/agent-card.json", "1.0"),
    ("/a2a/main/.well-known/agent.json", ""),
];

/// A server in a folder of its own.
struct Running {
    folder: TempDir,
    server: Server,
}

/// A card: its ETag and the ids of its skills.
type Card = (String, Vec<String>);

impl Running {
    async fn start(config: &str) -> Self {
        let folder = configured(config);
        fs::create_dir(folder.path().join("skills")).unwrap();
        Self::start_in(folder).await
    }

    async fn start_in(folder: TempDir) -> Self {
        let server = serve(folder.path()).await;
        Self { folder, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces a file at once, as most editors do.
    fn replace(&self, name: &str, text: &str) {
        replace(&self.path(name), text);
    }

    /// Puts an executable into the skills folder.
    fn add_script(&self, name: &str, text: &str) {
        let path = self.path("skills/.new");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(path, self.path("skills").join(name)).unwrap();
    }

    async fn card(&self, path: &str, version: &str) -> Card {
        let header = [("A2A-Version", version)];
        let headers = if version.is_empty() { &[][..] } else { &header[..] };
        let response = http1::request(self.server.address, "GET", path, headers, &[]).await.unwrap();
        let etag = response.headers.get("etag").unwrap().to_owned();
        let card = response.json().unwrap();
        let ids = card["skills"].as_array().unwrap().iter().map(|skill| skill["id"].as_str().unwrap());
        (etag, ids.map(str::to_owned).collect())
    }

    /// The skills that plain HTTP offers, ordered.
    async fn functions(&self) -> Vec<String> {
        let response = http1::request(self.server.address, "GET", "/openapi.json", &[], &[]).await.unwrap();
        let document = response.json().unwrap();
        let paths = document["paths"].as_object().unwrap().keys();
        let mut ids: Vec<String> =
            paths.filter_map(|path| path.strip_prefix("/run/")).map(str::to_owned).collect();
        ids.sort();
        ids
    }

    /// Waits until every card shows these skills, and plain HTTP offers them.
    async fn shows(&self, skills: &[&str]) {
        let mut ordered = skills.to_vec();
        ordered.sort_unstable();
        let shown = async {
            for (path, version) in CARDS {
                while self.card(path, version).await.1 != skills {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            while self.functions().await != ordered {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(TIMEOUT, shown).await.is_err() {
            panic!("the cards do not show {skills:?}\n{}", self.server.log_tail());
        }
    }

    fn reloads(&self) -> usize {
        self.server.log().matches("the configuration was reloaded").count()
    }

    /// Asks for a reload and waits until it is done.
    async fn hang_up(&self) {
        let before = self.reloads();
        self.server.signal(Signal::HUP).unwrap();
        self.wait(|| self.reloads() > before).await;
    }

    async fn wait(&self, happened: impl Fn() -> bool) {
        let happened = eventually(async || happened());
        assert!(tokio::time::timeout(TIMEOUT / 2, happened).await.is_ok(), "{}", self.server.log_tail());
    }

    /// Sends a message to a skill; returns the task.
    async fn send(&self, skill: &str, text: &str, wait: bool) -> Value {
        let mut params = message("m", text, !wait);
        params["metadata"]["skillId"] = skill.into();
        Caller::new(self.server.address).call("main", "SendMessage", params).await.unwrap()["task"].take()
    }

    /// Waits until a task has ended.
    async fn ended(&self, task: &Value) -> Value {
        let id = task_id(task).unwrap();
        let mut caller = Caller::new(self.server.address);
        within(async {
            loop {
                let task = caller.get("main", &id).await.unwrap().unwrap();
                if testkit::json::is_terminal(state(&task)) {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }
}

fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

/// An MCP server that adds a line with its process id to a file when it starts.
fn mcp(name: &str, tools: &[&str], pids: &Path) -> String {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tool_server.py");
    let script = format!("echo $$ >> {}; exec python3 -S {server} {}", pids.display(), tools.join(" "));
    format!("[mcp.{name}]\ncommand = [\"sh\", \"-c\", {script:?}]\n")
}

fn pids(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn is_running(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn saved_file_and_sighup_change_the_skills_on_every_card() {
    let running = Running::start(BUILTINS).await;
    running.shows(&["echo", "currency"]).await;
    let etag = running.card(CARDS[0].0, "").await.0;
    running.replace("a2ad.toml", &format!("{BUILTINS}[skills.parrot]\nbuiltin = \"echo\"\n"));
    running.shows(&["echo", "currency", "parrot"]).await;
    assert_eq!(artifact_text(&running.send("parrot", "hello", true).await), "hello");
    assert_ne!(running.card(CARDS[0].0, "").await.0, etag);
    // Written in place, with another text and the same meaning.
    fs::write(running.path("a2ad.toml"), format!("# before\n{BUILTINS}")).unwrap();
    running.shows(&["echo", "currency"]).await;
    assert_eq!(running.card(CARDS[0].0, "").await.0, etag);
    // The log says it after the cards show it.
    running.wait(|| running.reloads() == 2).await;
    running.hang_up().await;
    assert_eq!((running.card(CARDS[0].0, "").await.0, running.reloads()), (etag, 3));
}

/// A mounted ConfigMap is a link to a link to a folder; an update replaces the second link.
#[tokio::test(flavor = "multi_thread")]
async fn link_that_leads_to_another_file_is_a_change() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("one", BUILTINS), ("two", "[skills.echo]\nbuiltin = \"echo\"\n")] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("a2ad.toml"), text).unwrap();
    }
    symlink("one", folder.path().join("..data")).unwrap();
    symlink("..data/a2ad.toml", folder.path().join("a2ad.toml")).unwrap();
    let running = Running::start_in(folder).await;
    running.shows(&["echo", "currency"]).await;
    symlink("two", running.path("..new")).unwrap();
    fs::rename(running.path("..new"), running.path("..data")).unwrap();
    running.shows(&["echo"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_file_changes_nothing_and_is_reported_with_its_line() {
    let running = Running::start(BUILTINS).await;
    let card = running.card(CARDS[0].0, "").await;
    for (text, problem) in [
        ("[skills.echo]\nbuiltin = \"echo\"\nbuiltn = 1\n", "a2ad.toml:3: skills.echo.builtn: unknown key"),
        ("[skills.echo\n", "a2ad.toml:1: invalid TOML"),
        (
            "[skills.echo]\nbuiltin = \"echo\"\n[agents.a]\nskills = [\"other\"]\n",
            "a2ad.toml:4: agents.a.skills",
        ),
        ("[openapi.x]\nurl = \"http://127.0.0.1:1/\"\n", "openapi.x.url: the document cannot be fetched"),
    ] {
        running.replace("a2ad.toml", text);
        running.wait(|| running.server.log().contains(problem)).await;
        assert_eq!(running.card(CARDS[0].0, "").await, card);
    }
    fs::remove_file(running.path("a2ad.toml")).unwrap();
    running
        .wait(|| running.server.log().contains("a2ad.toml (found in the current directory) cannot be read"))
        .await;
    assert_eq!(artifact_text(&running.send("echo", "still here", true).await), "still here");
    assert_eq!(running.reloads(), 0);
    running.replace("a2ad.toml", "[skills.echo]\nbuiltin = \"echo\"\n[limits]\nconcurrent = 3\n");
    running.shows(&["echo"]).await;
    running.server.wait_for_log("\"key\":\"limits.concurrent\"").await.unwrap();
    assert_eq!(running.server.log().matches("takes effect at the next start").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn run_ends_with_its_configuration_and_queued_task_of_a_removed_skill_fails() {
    let skills = "[skills.slow-writer]\nbuiltin = \"slow-writer\"\n";
    let running = Running::start(&format!("[limits]\nconcurrent = 1\n{BUILTINS}{skills}")).await;
    let first = running.send("slow-writer", "the sea sections=40 delay=20ms", false).await;
    let queued = running.send("currency", "10 USD in INR", false).await;
    let kept = running.send("echo", "hello", false).await;
    // Only one skill is left, which is a simpler kind of agent.
    running.replace("a2ad.toml", "[limits]\nconcurrent = 1\n[skills.echo]\nbuiltin = \"echo\"\n");
    running.shows(&["echo"]).await;
    assert_eq!(state(&running.ended(&first).await), "TASK_STATE_COMPLETED");
    let failed = running.ended(&queued).await;
    assert_eq!((state(&failed), reason(&failed["status"])), ("TASK_STATE_FAILED", Some("skill_removed")));
    assert!(status_text(&failed).contains("currency"), "{failed}");
    assert_eq!(artifact_text(&running.ended(&kept).await), "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_changed_mcp_servers_are_started_and_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let [kept, changed, removed] = ["kept", "changed", "removed"].map(|name| folder.path().join(name));
    let config = |other: &str| format!("{}{}", mcp("kept", &["a"], &kept), other);
    let both = config(&(mcp("changed", &["b"], &changed) + &mcp("removed", &["c"], &removed)));
    fs::write(folder.path().join("a2ad.toml"), both).unwrap();
    let running = Running::start_in(folder).await;
    running.shows(&["b", "a", "c"]).await;
    let (old, gone) = (pids(&changed), pids(&removed));
    running.replace("a2ad.toml", &config(&mcp("changed", &["b", "d"], &changed)));
    running.shows(&["b", "d", "a"]).await;
    running.wait(|| !is_running(&old[0]) && !is_running(&gone[0])).await;
    running.hang_up().await;
    running.hang_up().await;
    assert_eq!(state(&running.send("a", "{}", true).await), "TASK_STATE_COMPLETED");
    assert_eq!((pids(&kept).len(), pids(&changed).len(), pids(&removed).len()), (1, 2, 1));
    assert!(is_running(&pids(&kept)[0]) && is_running(&pids(&changed)[1]));
    // A server that is added is a change too; nothing else stops meanwhile.
    running.replace("a2ad.toml", &config(&mcp("removed", &["c"], &removed)));
    running.shows(&["a", "c"]).await;
    assert_eq!(pids(&kept).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_skills_folder_are_skills_while_they_exist() {
    let running = Running::start("[server]\nskills_dir = \"skills\"\n").await;
    running.shows(&[]).await;
    running.add_script("greet.sh", "#!/bin/sh\necho hello from $(basename $(pwd))\n");
    running.shows(&["greet"]).await;
    assert_eq!(artifact_text(&running.send("greet", "x", true).await).trim(), "hello from skills");
    running.replace("skills/parrot.toml", "builtin = \"echo\"\ndescription = \"Repeats\"\n");
    running.shows(&["greet", "parrot"]).await;
    let document = r#"{"openapi": "3.1.0", "info": {"title": "t", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:1"}], "paths": {"/x": {"get": {"operationId": "find", "responses": {}}}}}"#;
    running.replace("skills/shop.json", document);
    running.shows(&["greet", "parrot", "find"]).await;
    running.replace("skills/more.toml", &mcp("tools", &["a"], &running.path("pids")));
    running.shows(&["greet", "parrot", "a", "find"]).await;
    // A description of the script beside it, which also makes it speak in lines of JSON.
    running.add_script(
        "count.sh",
        "#!/bin/sh\necho '{\"type\":\"progress\",\"text\":\"half\"}'\necho '{\"type\":\"result\",\"text\":\"done\"}'\n",
    );
    running.replace("skills/count.toml", "command = { protocol = \"jsonl\" }\ndescription = \"Counts\"\n");
    running.shows(&["count", "greet", "parrot", "a", "find"]).await;
    assert_eq!(artifact_text(&running.send("count", "x", true).await), "done");
    for file in ["count.sh", "count.toml", "greet.sh", "shop.json", "more.toml"] {
        fs::remove_file(running.path("skills").join(file)).unwrap();
    }
    running.shows(&["parrot"]).await;
    running.wait(|| !is_running(&pids(&running.path("pids"))[0])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_file_of_the_skills_folder_is_reported_and_leaves_the_others_alone() {
    let config = "[server]\nskills_dir = \"skills\"\n[skills.echo]\nbuiltin = \"echo\"\n[agents.main]\nskills = [\"echo\", \"*\"]\n";
    let running = Running::start(config).await;
    let writable = running.path("skills/writable.toml");
    fs::write(&writable, "builtin = \"echo\"\n").unwrap();
    fs::set_permissions(&writable, fs::Permissions::from_mode(0o666)).unwrap();
    for (name, text) in [
        ("broken.toml", "builtin = \"echo\"\nx = 1\n"),
        ("echo.toml", "builtin = \"currency\"\n"),
        ("agents.toml", "[agents.x]\n"),
        ("shop.yaml", "openapi: 3.1.0\n"),
        (".hidden.toml", "builtin = \"echo\"\n"),
        ("old.toml~", "builtin = \"echo\"\n"),
        ("README.md", "no skill"),
    ] {
        fs::write(running.path("skills").join(name), text).unwrap();
    }
    running.replace("skills/valid.toml", "builtin = \"echo\"\n");
    running.shows(&["echo", "valid"]).await;
    let problems = [
        "skills/broken.toml:2: skills.broken.x: unknown key",
        "skills/echo.toml:1: skills.echo: this name is used already",
        "skills/agents.toml:1: agents: only skills, mcp, openapi",
        "skills/shop.yaml:1: openapi.shop.file: ",
        "skills/writable.toml:1: everybody can write to it",
    ];
    for problem in problems {
        running.server.wait_for_log(problem).await.unwrap();
    }
    let log = running.server.log();
    assert!(!log.contains("hidden") && !log.contains("old.toml") && !log.contains("README"), "{log}");
    // The folder is also read while the configuration file is not valid.
    running.replace("a2ad.toml", "[server\n");
    running.server.wait_for_log("a2ad.toml:1: invalid TOML").await.unwrap();
    fs::remove_file(running.path("skills/valid.toml")).unwrap();
    running.shows(&["echo"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn folder_that_everybody_can_write_to_is_refused() {
    let folder = configured("[server]\nskills_dir = \"skills\"\n");
    fs::create_dir(folder.path().join("skills")).unwrap();
    fs::set_permissions(folder.path().join("skills"), fs::Permissions::from_mode(0o777)).unwrap();
    let refused = run(folder.path(), &["--listen", ANY_PORT]).await;
    refused.ends(2, &["a2ad.toml:2: server.skills_dir: everybody can write to skills"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_while_an_mcp_server_starts() {
    let folder = configured("[mcp.slow]\ncommand = [\"sleep\", \"60\"]\n");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let command = a2ad(folder.path(), &["--listen", &free.to_string()]);
    let _server = Server::spawn_command(command, folder.path().join("log")).unwrap();
    let status = async |path: &str, address: SocketAddr| loop {
        if let Ok(response) = http1::request(address, "GET", path, &[], &[]).await {
            return (response.status, response.headers.get("retry-after").map(str::to_owned));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let health = within(status("/healthz", free)).await;
    assert_eq!(health, (200, None));
    assert_eq!(status("/readyz", free).await, (503, Some("1".into())));
    assert_eq!(status("/.well-known/agent-card.json", free).await.0, 503);
}

/// An agent with one built-in skill is the built-in agent itself, one with several is a router; both save the same form.
#[tokio::test]
async fn waiting_task_goes_on_when_its_agent_has_more_or_fewer_skills() {
    let (one, two) = ("[skills.approver]\nbuiltin = \"approver\"\n", "[skills.echo]\nbuiltin = \"echo\"\n");
    let running = Running::start(one).await;
    for config in [format!("{one}{two}"), one.to_owned()] {
        let asked = running.send("approver", "jump", true).await;
        assert_eq!(state(&asked), "TASK_STATE_INPUT_REQUIRED", "{asked}");
        let before = running.card(CARDS[1].0, CARDS[1].1).await;
        running.replace("a2ad.toml", &config);
        while running.card(CARDS[1].0, CARDS[1].1).await == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut params = message("answer", "approve", false);
        params["message"]["taskId"] = asked["id"].clone();
        let answered = Caller::new(running.server.address).call("main", "SendMessage", params).await.unwrap();
        assert_eq!(artifact_text(&answered["task"]), "Approved: jump", "{answered}");
    }
}

/// The headers of every request of an MCP client.
const MCP: [(&str, &str); 2] =
    [("accept", "application/json, text/event-stream"), ("content-type", "application/json")];

/// A stream of events of an MCP client, after the head of the response.
async fn mcp_stream(
    server: &Server,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (http1::Connection, http1::Head) {
    let mut connection = http1::Connection::open(server.address).await.unwrap();
    let headers: Vec<_> = MCP.iter().chain(headers).copied().collect();
    connection.send(method, "/mcp", &headers, body.as_bytes()).await.unwrap();
    let head = connection.head().await.unwrap();
    assert!(matches!(head.status, 200 | 202), "{}", head.status);
    (connection, head)
}

/// The next message of a stream.
async fn next_message(stream: &mut http1::Connection) -> Value {
    loop {
        let event = within(stream.event()).await.unwrap().unwrap();
        if let Ok(message) = serde_json::from_str(&event.data) {
            return message;
        }
    }
}

#[tokio::test]
async fn mcp_clients_are_notified_of_a_saved_file() {
    let running = Running::start(BUILTINS).await;
    let server = &running.server;
    // A client with a session.
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",
        "capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    let (_, head) = mcp_stream(server, "POST", &[], initialize).await;
    let session = [("mcp-session-id", head.headers.get("mcp-session-id").unwrap())];
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    mcp_stream(server, "POST", &session, initialized).await;
    let (mut stream, _) = mcp_stream(server, "GET", &session, "").await;
    // One of the newest revision.
    let listen = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{
        "notifications":{"toolsListChanged":true},"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},
        "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let newest = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];
    let (mut subscription, _) = mcp_stream(server, "POST", &newest, listen).await;
    assert_eq!(next_message(&mut subscription).await["method"], "notifications/subscriptions/acknowledged");
    running.replace("a2ad.toml", &format!("{BUILTINS}[skills.added]\nbuiltin = \"echo\"\n"));
    for stream in [&mut stream, &mut subscription] {
        assert_eq!(next_message(stream).await["method"], "notifications/tools/list_changed");
    }
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let (mut listed, _) = mcp_stream(server, "POST", &session, list).await;
    let listed = next_message(&mut listed).await.to_string();
    assert!(listed.contains(r#""name":"added""#), "{listed}");
}

/// Behind a proxy, callers are counted by their address, also on loopback.
#[tokio::test(flavor = "multi_thread")]
async fn saved_file_changes_the_rate_limits() {
    let config = |rate: &str| {
        format!(
            "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n[limits.rate]\nper_key = \"{rate}\"\n{BUILTINS}"
        )
    };
    let running = Running::start(&config("2/h")).await;
    let call = async |client: &str| {
        let headers = [("content-type", "application/json"), ("x-forwarded-for", client)];
        let body = br#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}"#;
        let response =
            http1::request(running.server.address, "POST", "/a2a/main", &headers, body).await.unwrap();
        (response.status, response.headers.get("retry-after").map(str::to_owned))
    };
    let change = async |rate: &str| {
        let before = running.reloads();
        running.replace("a2ad.toml", &config(rate));
        running.wait(|| running.reloads() > before).await;
    };
    for status in [200, 200, 429] {
        assert_eq!(call("192.0.2.1").await.0, status);
    }
    assert_eq!(call("192.0.2.2").await.0, 200);
    change("4/h").await;
    // Who has used up the old rate has used up the new one; who has used half of it has the other half.
    let (status, retry_after) = call("192.0.2.1").await;
    assert_eq!(status, 429);
    assert!(retry_after.unwrap().parse::<u32>().unwrap() <= 900);
    for status in [200, 200, 429] {
        assert_eq!(call("192.0.2.2").await.0, status);
    }
    // The same rate again changes nothing, and an empty one is no limit.
    running.hang_up().await;
    assert_eq!(call("192.0.2.1").await.0, 429);
    change("").await;
    for _ in 0..10 {
        assert_eq!(call("192.0.2.1").await.0, 200);
    }
    assert!(!running.server.log().contains("next start"), "{}", running.server.log_tail());
}

/// A receiver of webhooks that keeps its connections open.
struct Receiver {
    url: String,
    /// The bodies that have arrived.
    bodies: mpsc::UnboundedReceiver<String>,
    _serving: JoinSet<()>,
}

impl Receiver {
    async fn start() -> Self {
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (sender, bodies) = mpsc::unbounded_channel();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(receive(stream, sender.clone()));
            }
        });
        Self { url, bodies, _serving: serving }
    }

    /// Waits for a notification that contains this text.
    async fn wait_for(&mut self, text: &str) {
        let arrived = async { while !self.bodies.recv().await.unwrap().contains(text) {} };
        within(arrived).await;
    }
}

/// Accepts the notifications of one connection until it is closed.
async fn receive(stream: TcpStream, bodies: mpsc::UnboundedSender<String>) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let _ = bodies.send(String::from_utf8(body).unwrap());
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_changes_which_webhooks_may_be_called() {
    const SKILL: &str = "[skills.approver]\nbuiltin = \"approver\"\n";
    let allowed = format!("{SKILL}[outbound]\nallow = [\"127.0.0.0/8\"]\nallow_http = true\n");
    let running = Running::start(SKILL).await;
    let mut receiver = Receiver::start().await;
    let ask = async |id: &str, url: &str| {
        let mut params = message(id, "jump", false);
        params["configuration"]["taskPushNotificationConfig"] = json!({"url": url});
        Caller::new(running.server.address).call("main", "SendMessage", params).await
    };
    let refusal = async |url: &str| match ask("refused", url).await {
        Err(Failure::Error { message, .. }) => message,
        other => panic!("not refused: {:?}", other.err()),
    };
    assert!(refusal(&receiver.url).await.contains("its scheme must be https"));

    let before = running.reloads();
    running.replace("a2ad.toml", &allowed);
    running.wait(|| running.reloads() > before).await;
    let asked = ask("first", &receiver.url).await.unwrap()["task"].take();
    receiver.wait_for("TASK_STATE_INPUT_REQUIRED").await;

    // The connection to the receiver is still open.
    running.replace("a2ad.toml", SKILL);
    running.hang_up().await;
    let mut params = message("answer", "approve", false);
    params["message"]["taskId"] = asked["id"].clone();
    Caller::new(running.server.address).call("main", "SendMessage", params).await.unwrap();
    let refused = "the URL of the webhook is not allowed: its scheme must be https";
    eventually(async || {
        run(running.folder.path(), &["deliveries", "ls", "--json"]).await.out.contains(refused)
    })
    .await;
    assert!(receiver.bodies.is_empty(), "{:?}", receiver.bodies.recv().await);
    assert!(refusal(&receiver.url).await.contains("its scheme must be https"));
    assert!(!running.server.log().contains("next start"), "{}", running.server.log_tail());

    // A network without http.
    running.replace("a2ad.toml", &allowed.replace("allow_http = true", ""));
    running.hang_up().await;
    assert!(refusal(&receiver.url).await.contains("its scheme must be https"));
    ask("second", &receiver.url.replace("http:", "https:")).await.unwrap();
}
