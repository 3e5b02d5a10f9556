//! Operators' commands: `a2ad agents ls|enable|disable` and `a2ad ops`, on a running server and on its store.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Instant,
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::{http1, process::Server};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpSocket,
};

use super::common::{
    a2ad, begin, client, configured, eventually, files, finish, run, serve, shell, stop, within,
};

const CONFIG: &str = r#"
[server]
default_agent = "echo"
[skills.say]
builtin = "echo"
[agents.echo]
skills = ["say"]
[agents.other]
skills = ["say"]
[agents.off]
skills = ["say"]
enabled = false
"#;

async fn card_status(server: &Server, agent: &str) -> u16 {
    let path = format!("/a2a/{agent}/.well-known/agent-card.json");
    http1::request(server.address, "GET", &path, &[], b"").await.unwrap().status
}

/// The id and the state in each line.
fn states(out: &str) -> Vec<(&str, &str)> {
    out.lines()
        .map(|line| {
            let mut columns = line.split_whitespace();
            (columns.next().unwrap(), columns.next().unwrap())
        })
        .collect()
}

const ON: &str = "on the running server";
const IN: &str = "which no server uses";

#[tokio::test]
async fn agents_are_switched_on_a_server_and_in_its_store() {
    let folder = configured(CONFIG);
    let server = serve(folder.path()).await;
    let ls = run(folder.path(), &["agents", "ls"]).await;
    assert_eq!(states(ls.succeeds(ON)), [("echo", "enabled"), ("off", "disabled"), ("other", "enabled")]);
    run(folder.path(), &["agents", "disable", "other"]).await.succeeds(ON);
    run(folder.path(), &["agents", "enable", "off"]).await.succeeds(ON);
    assert_eq!([card_status(&server, "other").await, card_status(&server, "off").await], [404, 200]);
    run(folder.path(), &["agents", "disable", "othr"]).await.fails(6, &["there is no agent"]);
    stop(server).await;

    let ls = run(folder.path(), &["agents", "ls"]).await;
    assert_eq!(states(ls.succeeds(IN)), [("echo", "enabled"), ("off", "enabled"), ("other", "disabled")]);
    run(folder.path(), &["agents", "disable", "echo"]).await.succeeds(IN);
    run(folder.path(), &["agents", "disable", "othr"]).await.fails(6, &["the configuration has no agent"]);
    let server = serve(folder.path()).await;
    for (agent, status) in [("echo", 404), ("other", 404), ("off", 200)] {
        assert_eq!(card_status(&server, agent).await, status, "{agent}");
    }
    let listed = run(folder.path(), &["agents", "ls", "--json"]).await.document();
    let echo = &listed["agents"][0];
    assert_eq!(
        (&echo["id"], &echo["enabled"], &echo["decidedBy"]),
        (&"echo".into(), &false.into(), &"operator".into())
    );
    run(folder.path(), &["agents", "enable", "echo"]).await.succeeds(ON);
    assert_eq!(card_status(&server, "echo").await, 200);
    // The command of clients is as it was.
    let url = format!("http://{}", server.address);
    let agents = run(folder.path(), &["agents", &url]).await;
    assert!(agents.succeeds("").contains("off") && !agents.out.contains("other"), "{agents:?}");
    stop(server).await;
}

/// Starts a task that works until it is cancelled; returns its id.
async fn hold(server: &Server) -> String {
    begin(&client(server, "echo"), "hold").await.id.to_string()
}

#[tokio::test]
async fn tasks_are_listed_shown_and_cancelled_on_a_server_and_in_its_store() {
    let folder = configured(CONFIG);
    let server = serve(folder.path()).await;
    let (one, two) = (hold(&server).await, hold(&server).await);
    let ids = |out: &str| {
        out.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let list = run(folder.path(), &["ops", "tasks"]).await;
    assert_eq!(ids(list.succeeds(ON)), [&*two, &one]);
    let task = run(folder.path(), &["ops", "task", &one, "--json"]).await;
    task.succeeds(ON);
    assert_eq!(task.document()["owner"], "anonymous");
    run(folder.path(), &["ops", "cancel", &one]).await.succeeds(ON);
    run(folder.path(), &["ops", "cancel", &one]).await.fails(8, &[]);
    run(folder.path(), &["ops", "task", "task_unknown"]).await.fails(6, &["a2ad ops tasks lists the ids"]);
    run(folder.path(), &["ops", "counts"]).await.succeeds("1 running");
    stop(server).await;

    let list = run(folder.path(), &["ops", "tasks", "--state", "canceled"]).await;
    assert_eq!(ids(list.succeeds(IN)), [&*one]);
    let counts = run(folder.path(), &["ops", "counts", "--json"]).await;
    assert_eq!(counts.document()["agents"][0]["tasks"]["canceled"], 1);
    run(folder.path(), &["ops", "cancel", &two]).await.succeeds(IN);
    let task = run(folder.path(), &["ops", "task", &two]).await.document();
    assert_eq!(
        (&task["state"], &task["task"]["status"]["state"]),
        (&"canceled".into(), &"TASK_STATE_CANCELED".into())
    );
    run(folder.path(), &["ops", "cancel", &two]).await.fails(8, &[]);
    let server = serve(folder.path()).await;
    let counts = run(folder.path(), &["ops", "counts", "--json"]).await.document();
    assert_eq!(
        (&counts["agents"][0]["tasks"]["canceled"], &counts["queued"], &counts["running"]),
        (&2.into(), &0.into(), &0.into())
    );
    stop(server).await;
}

#[tokio::test]
async fn commands_that_read_create_nothing() {
    let folder = configured(CONFIG);
    let reads: [&[&str]; 8] = [
        &["keys", "ls"],
        &["agents", "ls"],
        &["deliveries", "ls"],
        &["ops", "tasks"],
        &["ops", "task", "t"],
        &["ops", "counts"],
        &["ops", "backends"],
        &["ops", "cancel", "t"],
    ];
    for read in reads {
        run(folder.path(), read).await.fails(1, &["there is no store a2ad.db"]);
    }
    assert_eq!(files(folder.path()), ["a2ad.toml"]);
    // A change makes the store and its audit log: no key folder, and no lock that stays.
    run(folder.path(), &["agents", "disable", "other"]).await.succeeds(IN);
    let left = files(folder.path());
    assert_eq!(left, ["a2ad.db", "a2ad.db.audit.jsonl", "a2ad.toml"]);
    for read in &reads[..4] {
        run(folder.path(), read).await.succeeds(IN);
    }
    assert_eq!(files(folder.path()), left);
    let log = run(folder.path(), &["audit", "--json"]).await.document();
    let members: Vec<&String> = log.as_object().unwrap().keys().collect();
    assert_eq!(members, ["action", "agent", "outcome", "seq", "time", "who"], "{log}");
}

#[tokio::test]
async fn tasks_of_agents_that_are_not_configured_belong_to_operators_too() {
    let folder = configured(CONFIG);
    let server = serve(folder.path()).await;
    let (one, two) = (hold(&server).await, hold(&server).await);
    stop(server).await;
    // Only the store is named: any agent may have been meant, and the list has those that the store knows.
    let elsewhere = tempfile::tempdir().unwrap();
    let store = folder.path().join("a2ad.db");
    let of_store = async |arguments: &[&str]| {
        run(elsewhere.path(), &[arguments, &["--store", store.to_str().unwrap()]].concat()).await
    };
    of_store(&["ops", "cancel", &one]).await.succeeds(IN);
    assert_eq!(of_store(&["ops", "task", &one]).await.document()["state"], "canceled");
    let counts = of_store(&["ops", "counts", "--json"]).await.document();
    assert_eq!((&counts["queued"], counts.get("streams")), (&1.into(), None), "{counts}");
    of_store(&["agents", "disable", "ghost"]).await.succeeds(IN);
    of_store(&["agents", "disable", "g h"]).await.fails(2, &["expected the id of an agent"]);
    let ls = of_store(&["agents", "ls"]).await;
    assert_eq!(states(ls.succeeds(IN)), [("echo", "enabled"), ("ghost", "disabled")]);
    assert!(!of_store(&["keys", "new", "ghost"]).await.err.contains("does not accept"));
    assert_eq!(files(elsewhere.path()), [""; 0]);

    let config = CONFIG.replace("agents.echo", "agents.new").replace("\"echo\"\n[skills", "\"new\"\n[skills");
    fs::write(folder.path().join("a2ad.toml"), config).unwrap();
    let server = serve(folder.path()).await;
    let task = run(folder.path(), &["ops", "task", &two]).await;
    task.succeeds(ON);
    assert_eq!(task.document()["agent"], "echo");
    stop(server).await;
}

/// The actions in the audit log, and the log itself.
async fn actions(folder: &Path) -> Vec<String> {
    let log = run(folder, &["audit", "--json"]).await;
    let lines = log.succeeds("a2ad.db.audit.jsonl").lines();
    lines
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["action"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn changes_and_refusals_are_in_the_audit_log() {
    use std::os::unix::fs::PermissionsExt as _;
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    let folder = configured(CONFIG);
    run(folder.path(), &["audit"]).await.fails(1, &["there is no audit log"]);
    let server = serve(folder.path()).await;
    let mut follow = a2ad(folder.path(), &["audit", "-f"]).kill_on_drop(true).spawn().unwrap();
    let mut followed = BufReader::new(follow.stdout.take().unwrap()).lines();
    run(folder.path(), &["agents", "disable", "other"]).await.succeeds(ON);
    run(folder.path(), &["keys", "new", "echo"]).await.succeeds(ON);
    let headers = [("authorization", "Bearer canary-of-the-audit-log")];
    for _ in 0..3 {
        let refused =
            http1::request(server.address, "GET", "/console/api/keys", &headers, b"").await.unwrap();
        assert_eq!(refused.status, 401);
    }
    fs::write(folder.path().join("a2ad.toml"), format!("{CONFIG}\n[agents.new]\nskills = [\"say\"]\n"))
        .unwrap();
    let mut seen = Vec::new();
    while !seen.iter().any(|line: &String| line.contains("configuration.reload")) {
        let line = within(followed.next_line()).await.unwrap().unwrap();
        seen.push(line);
    }
    let of = |action: &str| {
        seen.iter().find(|line| line.contains(action)).unwrap_or_else(|| panic!("{action}: {seen:?}"))
    };
    assert!(of("agent.disable").contains("agent=other") && of("agent.disable").contains("127.0.0.1"));
    assert!(of("refused.credential").contains("reason=UNAUTHENTICATED"));
    of("server.start");
    stop(server).await;
    run(folder.path(), &["agents", "enable", "other"]).await.succeeds(IN);
    let actions = actions(folder.path()).await;
    assert_eq!(actions.first().unwrap(), "server.start");
    assert_eq!(&actions[actions.len() - 2..], ["server.stop", "agent.enable"]);
    let file = folder.path().join("a2ad.db.audit.jsonl");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&file).unwrap().contains("canary"));
    follow.start_kill().unwrap();
    follow.wait().await.unwrap();
}

/// Sends a request for operators without their token from another address of this machine.
async fn refused_from(source: Ipv4Addr, server: SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    let mut stream = socket.connect(server).await.unwrap();
    let head = format!("GET /console/api/keys HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[tokio::test]
async fn a_flood_of_refusals_removes_no_change_and_is_counted_by_network() {
    const SENDERS: u32 = 600;
    let folder = tempfile::tempdir().unwrap();
    // As small as they can be: 600 lines of refusals are three times as much.
    let config = format!("{CONFIG}\n[audit]\nmax_size = \"64KiB\"\nmax_files = 0\n");
    fs::write(folder.path().join("a2ad.toml"), config).unwrap();
    let server = serve(folder.path()).await;
    run(folder.path(), &["keys", "new", "echo"]).await.succeeds(ON);
    let begin = Instant::now();
    for sender in 0..SENDERS {
        refused_from(Ipv4Addr::from_bits(0x7f00_0100 + sender), server.address).await;
    }
    for _ in 0..50 {
        refused_from(Ipv4Addr::new(127, 9, 9, 9), server.address).await;
    }
    let seconds = begin.elapsed().as_secs() + 1;
    run(folder.path(), &["agents", "disable", "other"]).await.succeeds(ON);
    stop(server).await;

    let log = run(folder.path(), &["audit", "--json"]).await;
    let entries: Vec<Value> =
        log.succeeds("a2ad.db.audit.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ordered = |name: fn(&Value) -> String| entries.iter().map(name).is_sorted();
    assert!(ordered(|entry| format!("{:09}", entry["seq"].as_u64().unwrap())));
    assert!(ordered(|entry| entry["time"].as_str().unwrap().to_owned()), "{entries:#?}");
    let actions: Vec<&str> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    let is_refusal = |action: &str| action.starts_with("refus");
    let changes: Vec<&str> = actions.iter().copied().filter(|action| !is_refusal(action)).collect();
    assert_eq!(changes, ["server.start", "key.create", "agent.disable", "server.stop"]);

    let with_changes = fs::read_to_string(folder.path().join("a2ad.db.audit.jsonl")).unwrap();
    assert!(!with_changes.contains("refus"), "{with_changes}");
    let refusals: Vec<&Value> =
        entries.iter().filter(|entry| is_refusal(entry["action"].as_str().unwrap())).collect();
    // A second may begin before the first one and end after the last one.
    assert!(refusals.len() as u64 <= 20 * (seconds + 1), "{} lines in {seconds} s", refusals.len());
    let count = |entry: &Value| entry["count"].as_u64().unwrap_or(1);
    assert_eq!(refusals.iter().map(|entry| count(entry)).sum::<u64>(), u64::from(SENDERS) + 50);
    let dropped = refusals.iter().filter(|entry| entry["action"] == "refusals.dropped");
    let names_some = |entry: &&Value| {
        let networks = entry["networks"].as_array().unwrap();
        networks.len() <= 10 && networks[0]["network"].as_str().unwrap().starts_with("127.")
    };
    assert!(dropped.clone().count() > 0 && dropped.clone().all(names_some), "{refusals:#?}");
    let shown = run(folder.path(), &["audit"]).await.succeeds("a2ad.db.audit.jsonl").to_owned();
    assert!(shown.contains("  refusals.dropped  server  -  count="), "{shown}");
    assert!(shown.contains("  networks=127."), "{shown}");
}

#[tokio::test]
async fn the_audit_log_can_be_off_or_elsewhere() {
    let folder = configured(CONFIG);
    for (value, file) in [("off", None), ("changes.jsonl", Some("changes.jsonl"))] {
        let config = format!("{CONFIG}\n[audit]\nfile = \"{value}\"\n");
        fs::write(folder.path().join("a2ad.toml"), config).unwrap();
        let server = serve(folder.path()).await;
        run(folder.path(), &["agents", "disable", "other"]).await.succeeds(ON);
        stop(server).await;
        assert!(!folder.path().join("a2ad.db.audit.jsonl").exists());
        if let Some(file) = file {
            assert!(fs::read_to_string(folder.path().join(file)).unwrap().contains("agent.disable"));
        }
    }
}

/// A server with a backend of each kind: one that works, and one that does not.
fn with_backends() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tool_server.py");
    let tools = format!("[\"python3\", \"-S\", {script:?}, \"add\"]");
    let config = format!(
        r#"
[limits]
concurrent = 7
[mcp.tools]
command = {tools}
env = {{ SECRET = "hunter2" }}
[mcp.broken]
command = ["sh", "-c", "echo no such database >&2; exit 1"]
[skills.date]
command = {{ argv = ["date"] }}
[skills.fails]
command = {{ argv = ["sh", "-c", "echo out of paper >&2; exit 3"] }}
[skills.fx]
http = {{ url = "http://127.0.0.1:1/fx?key=hunter2", bearer_env = "FX_TOKEN" }}
attempts = 1
[openapi.pets]
file = "pets.json"
base_url = "http://127.0.0.1:1"
"#
    );
    fs::write(folder.path().join("a2ad.toml"), config).unwrap();
    let pets = r#"{"openapi":"3.1.0","info":{"title":"pets","version":"1"},"paths":{"/pets":{"get":
        {"operationId":"listPets","responses":{"200":{"description":"pets"}}}}}}"#;
    fs::write(folder.path().join("pets.json"), pets).unwrap();
    folder
}

async fn call_skill(server: &Server, skill: &str) {
    let path = format!("/run/{skill}");
    let headers = [("content-type", "application/json")];
    http1::request(server.address, "POST", &path, &headers, b"{}").await.unwrap();
}

#[tokio::test]
async fn backends_of_a_server_show_their_health() {
    let folder = with_backends();
    run(folder.path(), &["ops", "backends"]).await.fails(1, &["there is no store"]);
    let mut command = a2ad(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("FX_TOKEN", "hunter2");
    let server = Server::start_command(command).await.unwrap();
    for skill in ["date", "fails", "fx", "date"] {
        call_skill(&server, skill).await;
    }
    let shown = run(folder.path(), &["ops", "backends", "--json"]).await;
    shown.succeeds(ON);
    assert!(!shown.out.contains("hunter2"), "{shown:?}");
    let document = shown.document();
    let of = |name: &str| {
        let mut backends = document["backends"].as_array().unwrap().iter();
        backends.find(|backend| backend["name"] == name).unwrap_or_else(|| panic!("{name}: {document}"))
    };
    let numbers = |name: &str| {
        let backend = of(name);
        (
            backend["kind"].as_str().unwrap(),
            backend["state"].as_str().unwrap(),
            backend["calls"].clone(),
            backend["failures"].clone(),
        )
    };
    assert_eq!(numbers("date"), ("command", "ready", 2.into(), 0.into()));
    assert_eq!(numbers("fails"), ("command", "failing", 1.into(), 1.into()));
    assert_eq!(numbers("fx"), ("http", "failing", 1.into(), 1.into()));
    assert_eq!(numbers("pets"), ("openapi", "unused", 0.into(), 0.into()));
    assert_eq!((&of("pets")["tools"], &of("tools")["tools"]), (&1.into(), &1.into()));
    assert_eq!((numbers("tools").1, &of("tools")["processes"]), ("ready", &1.into()));
    assert!(matches!(numbers("broken").1, "backing-off" | "failed" | "starting"), "{document}");
    assert!(of("broken")["lastError"].as_str().unwrap().contains("no such database"), "{document}");
    assert!(of("fails")["lastErrorAt"].as_str().unwrap().starts_with("20"), "{document}");
    assert!(of("date").get("lastError").is_none() && of("date").get("processes").is_none());
    // A reload keeps what is known of backends that stay.
    let path = folder.path().join("a2ad.toml");
    let config = fs::read_to_string(&path).unwrap();
    fs::write(&path, config.replace("[mcp.broken]", "[mcp.renamed]")).unwrap();
    server.wait_for_log("the configuration was reloaded").await.unwrap();
    let lines = run(folder.path(), &["ops", "backends"]).await;
    let lines = lines.succeeds("6 backends on the running server");
    assert!(lines.contains("renamed") && !lines.contains("broken"), "{lines}");
    assert!(
        lines.lines().any(|line| line.starts_with("date") && line.ends_with("2 calls, 0 failed")),
        "{lines}"
    );
    stop(server).await;
    run(folder.path(), &["ops", "backends"]).await.fails(1, &["only a server has backends"]);
}

#[tokio::test]
async fn the_configuration_is_shown_with_its_sources_and_without_secrets() {
    let folder = with_backends();
    let setting = |document: &Value, key: &str| {
        let settings = document["settings"].as_array().unwrap();
        let found = settings.iter().find(|setting| setting["key"] == key);
        found.unwrap_or_else(|| panic!("{key}: {document}")).clone()
    };
    // Without a server and without a store: what the file gives.
    let shown = run(folder.path(), &["ops", "config", "--json"]).await;
    shown.succeeds("of the file a2ad.toml and the environment");
    let document = shown.document();
    assert_eq!(document["file"], "a2ad.toml");
    let concurrent = setting(&document, "limits.concurrent");
    assert_eq!(
        (&concurrent["value"], &concurrent["source"], &concurrent["line"]),
        (&7.into(), &"file".into(), &3.into())
    );
    assert_eq!(setting(&document, "limits.queued")["source"], "default");
    assert!(!folder.path().join("a2ad.db").exists());

    let mut command = a2ad(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("FX_TOKEN", "hunter2").env("A2AD_LIMITS__QUEUED", "99");
    let server = Server::start_command(command).await.unwrap();
    let shown = run(folder.path(), &["ops", "config", "--json"]).await;
    shown.succeeds("in use on the running server");
    assert!(!shown.out.contains("hunter2"), "{shown:?}");
    let document = shown.document();
    let queued = setting(&document, "limits.queued");
    assert_eq!(
        (&queued["value"], &queued["source"], &queued["name"]),
        (&99.into(), &"environment".into(), &"A2AD_LIMITS__QUEUED".into())
    );
    assert_eq!(setting(&document, "server.listen")["source"], "flag");
    let url = setting(&document, "skills.fx.http.url");
    assert_eq!((&url["value"], &url["masked"]), (&"http://127.0.0.1:1/fx?key=***".into(), &true.into()));
    assert_eq!(setting(&document, "skills.fx.http.bearer_env")["value"], "FX_TOKEN");
    assert_eq!(setting(&document, "mcp.tools.env")["value"]["SECRET"], "***");
    // What needs a start is shown as it is in use.
    let path = folder.path().join("a2ad.toml");
    let config = fs::read_to_string(&path)
        .unwrap()
        .replace("concurrent = 7", "concurrent = 8\nrate = { per_key = \"5/s\" }");
    fs::write(&path, config).unwrap();
    server.wait_for_log("the configuration was reloaded").await.unwrap();
    let lines = run(folder.path(), &["ops", "config"]).await;
    let line = |key: &str| {
        lines
            .out
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("limits.concurrent"), "limits.concurrent 7 line 3, 8 after the next start");
    assert_eq!(line("limits.rate.per_key"), "limits.rate.per_key \"5/s\" line 4");
    stop(server).await;
    let shown = run(folder.path(), &["ops", "config", "--json"]).await;
    assert_eq!(setting(&shown.document(), "limits.concurrent")["value"], 8);
    let store = folder.path().join("a2ad.db");
    fs::rename(folder.path().join("a2ad.toml"), folder.path().join("other.toml")).unwrap();
    let unknown = run(folder.path(), &["ops", "config", "--store", store.to_str().unwrap()]).await;
    unknown.fails(2, &["name it with --config"]);
}

/// The commands of docs/operators.md work as they are written, except for the port.
#[tokio::test]
async fn the_commands_of_the_documentation_work_as_pasted() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operators.md");
    let document = fs::read_to_string(document).unwrap();
    let blocks = document.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let folder = configured(CONFIG);
    let server = serve(folder.path()).await;
    let task = hold(&server).await;
    let mut commands = 0;
    for block in blocks {
        commands += block.matches("curl").count();
        // Each response is shown with its status; a shell would show only the documents.
        let block = block.replace("127.0.0.1:4242", &server.address.to_string());
        let block = block.replace("curl ", "curl -sS --fail-with-body -w '\\n%{http_code}\\n' ");
        let ended = finish(shell("bash", folder.path(), &format!("set -e\n{block}"))).await;
        let out = ended.succeeds("");
        assert_eq!(out.lines().filter(|line| *line == "200").count(), block.matches("curl").count(), "{out}");
        assert!(out.contains(r#""id":"echo""#) && out.contains(&task), "{out}");
    }
    assert!(commands >= 5, "{commands} commands");
    // What they have done: the agent is disabled.
    assert_eq!(card_status(&server, "echo").await, 404);
    run(folder.path(), &["ops", "cancel", &task]).await.succeeds(ON);
    stop(server).await;
}

#[tokio::test]
async fn client_commands_continue_the_trace_of_their_environment() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let folder = configured(CONFIG);
    let server = serve(folder.path()).await;
    let url = server.url();
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    for (number, arguments) in
        [&["send", "echo", "hi"][..], &["stream", "echo", "hi"], &["tasks", "ls", "echo"]].iter().enumerate()
    {
        let mut command = a2ad(folder.path(), arguments);
        command.env("A2AD_URL", &url).env("TRACEPARENT", &parent);
        assert!(command.output().await.unwrap().status.success(), "{arguments:?}");
        let calls = async || {
            server.log().lines().filter(|line| line.contains("a2ad::call") && line.contains(TRACE)).count()
        };
        eventually(async || calls().await > number).await;
    }
    // An invalid one is ignored.
    let mut command = a2ad(folder.path(), &["send", "echo", "hi"]);
    command.env("A2AD_URL", &url).env("TRACEPARENT", "00-x");
    assert!(command.output().await.unwrap().status.success());
    stop(server).await;
}
