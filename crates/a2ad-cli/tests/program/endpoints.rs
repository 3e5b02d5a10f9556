//! One skill at every endpoint: the same input gives the same result, and every call leaves the same trail, a task that
//! knows its origin and one line of the access log. Generated for all kinds of backends.
//!
//! The functions behind the HTTP backends are skills of a second server, called at its `/run` and found in its OpenAPI
//! document.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

use futures_util::future::BoxFuture;
use protocol::{
    Dialect, Json, Message, Operation, OperationKind, Part, Reply, Role, SendMessage, Task,
    dialect::{v1, v03},
    grpc::Service,
    json::{
        read::{Node, Path as JsonPath},
        write::Writer,
    },
    rest,
};
use serde_json::{Value, json};
use testkit::{http1, http2, process::Server};

use super::common;

/// A kind of endpoint.
struct Endpoint {
    name: &'static str,
    /// Binding and dialect of its calls in the access log.
    logged: [&'static str; 2],
    /// `metadata.a2ad.origin` of its tasks.
    origin: Option<&'static str>,
    /// Calls a skill of the default agent.
    call: for<'a> fn(&'a Server, skill: &'a str, arguments: &'a str) -> BoxFuture<'a, Outcome>,
}

const ENDPOINTS: &[Endpoint] = &[
    a2a("draft", ["JSON-RPC", "draft"], |at, skill, args| Box::pin(jsonrpc(at, Dialect::Draft, skill, args))),
    a2a("profile fold", ["JSON-RPC", "draft"], |at, skill, args| Box::pin(fold(at, skill, args))),
    a2a("0.3", ["JSON-RPC", "0.3"], |at, skill, args| Box::pin(jsonrpc(at, Dialect::V03, skill, args))),
    a2a("1.0", ["JSON-RPC", "1.0"], |at, skill, args| Box::pin(jsonrpc(at, Dialect::V1, skill, args))),
    a2a("REST 0.3", ["HTTP+JSON", "0.3"], |at, skill, args| {
        Box::pin(http(at, Dialect::V03Proto, skill, args))
    }),
    a2a("REST 1.0", ["HTTP+JSON", "1.0"], |at, skill, args| Box::pin(http(at, Dialect::V1, skill, args))),
    a2a("gRPC 0.3", ["gRPC", "0.3"], |at, skill, args| Box::pin(grpc(at, Service::V03, skill, args))),
    a2a("gRPC 1.0", ["gRPC", "1.0"], |at, skill, args| Box::pin(grpc(at, Service::V1, skill, args))),
    Endpoint {
        origin: Some("run"),
        ..a2a("/run", ["plain HTTP", "run"], |at, skill, args| Box::pin(run(at, "", skill, args)))
    },
    Endpoint {
        origin: Some("run"),
        ..a2a("/a2a/main/run", ["plain HTTP", "run"], |at, skill, args| {
            Box::pin(run(at, "/a2a/main", skill, args))
        })
    },
    Endpoint {
        origin: Some("mcp"),
        ..a2a("/mcp", ["MCP", "mcp"], |at, skill, args| Box::pin(mcp(at, "", skill, args)))
    },
    Endpoint {
        origin: Some("mcp"),
        ..a2a("/a2a/main/mcp", ["MCP", "mcp"], |at, skill, args| Box::pin(mcp(at, "/a2a/main", skill, args)))
    },
];

const fn a2a(
    name: &'static str,
    logged: [&'static str; 2],
    call: for<'a> fn(&'a Server, &'a str, &'a str) -> BoxFuture<'a, Outcome>,
) -> Endpoint {
    Endpoint { name, logged, origin: None, call }
}

/// What a call led to.
struct Outcome {
    task: String,
    state: String,
    /// The parts of the result, or of the status message of another state: content only, as 1.0 writes it.
    parts: Vec<Value>,
}

const ARGUMENTS: &str = r#"{"city":"Zürich","list":[1,2.5,null,"\"x\""],"deep":{"a":{"b":true}}}"#;

/// The skills of the server, one for each kind of backend and of result: id, configuration and arguments.
fn skills(upstream: &str) -> Vec<(&'static str, String, String)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tool_server.py");
    let jsonl = r#"read -r given; printf '{"type":"progress","text":"half"}\n{"type":"artifact","text":"first"}\n{"type":"artifact","data":%s}\n' "$given""#;
    let command = |skill: &str, argv: &str, more: &str| {
        format!("[skills.{skill}]\ncommand = {{ argv = {argv}{more} }}\n")
    };
    let schema = "input_schema = { type = \"object\", properties = { city = { type = \"integer\" } } }\n";
    let own = ARGUMENTS.to_owned();
    vec![
        (
            "tool",
            format!("[mcp.tools]\ncommand = [\"python3\", \"-S\", {script:?}, \"tool\"]\n"),
            own.clone(),
        ),
        (
            "function",
            format!("[skills.function]\nhttp = {{ url = \"{upstream}/run/mirror\" }}\n"),
            own.clone(),
        ),
        (
            "mirror",
            format!("[openapi.upstream]\nurl = \"{upstream}/openapi.json\"\n"),
            format!(r#"{{"body":{ARGUMENTS}}}"#),
        ),
        ("command", command("command", r#"["cat"]"#, ""), own.clone()),
        ("text", command("text", r#"["echo", "-n", "hello"]"#, ""), own.clone()),
        (
            "lines",
            command("lines", &format!(r#"["sh", "-c", {jsonl:?}]"#), ", protocol = \"jsonl\""),
            own.clone(),
        ),
        ("failing", command("failing", r#"["sh", "-c", "echo broken >&2; exit 3"]"#, ""), own.clone()),
        ("strict", command("strict", r#"["cat"]"#, "") + schema, own),
    ]
}

/// What every endpoint is to return for a skill.
fn expected(skill: &str) -> (&'static str, Vec<Value>) {
    let given: Value = serde_json::from_str(ARGUMENTS).unwrap();
    match skill {
        "tool" => ("completed", vec![json!({"data": {"tool": "tool", "arguments": given}})]),
        "text" => ("completed", vec![json!({"text": "hello"})]),
        "lines" => ("completed", vec![json!({"text": "first"}), json!({"data": given})]),
        "failing" => ("failed", vec![json!({"text": "the command ended with exit code 3: broken"})]),
        "strict" => {
            ("rejected", vec![json!({"text": "arguments.city: \"Zürich\" is not of type \"integer\""})])
        }
        _ => ("completed", vec![json!({"data": given})]),
    }
}

async fn serve(folder: &Path, config: &str) -> Server {
    std::fs::create_dir(folder).unwrap();
    std::fs::write(folder.join("a2ad.toml"), config).unwrap();
    common::serve(folder).await
}

#[tokio::test(flavor = "multi_thread")]
async fn same_input_gives_the_same_result_and_trail_at_every_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = serve(&folder.path().join("upstream"), "[skills.mirror]\nbuiltin = \"echo\"\n").await;
    let skills = skills(&upstream.url());
    let config: String = skills.iter().map(|(_, config, _)| config.as_str()).collect();
    let server = serve(&folder.path().join("server"), &config).await;
    for (skill, _, arguments) in &skills {
        // The profile refuses arguments that break the schema, and records nothing.
        let is_recorded = |endpoint: &&Endpoint| (*skill, endpoint.name) != ("strict", "profile fold");
        for endpoint in ENDPOINTS.iter().filter(is_recorded) {
            let Outcome { task, state, parts } = (endpoint.call)(&server, skill, arguments).await;
            let name = endpoint.name;
            assert_eq!((state.as_str(), parts), expected(skill), "{skill} at {name}");
            check_trail(&server, endpoint, &task, &state).await;
        }
    }
    let listed = get(&server, "/tasks?pageSize=1").await;
    assert_eq!(listed["totalSize"], skills.len() * ENDPOINTS.len() - 1, "{listed}");
}

/// Checks the task as a client of 1.0 sees it, and the line in the access log.
async fn check_trail(server: &Server, endpoint: &Endpoint, task: &str, state: &str) {
    let got = get(server, &format!("/tasks/{task}")).await;
    let name = endpoint.name;
    assert_eq!(got["metadata"]["a2ad"]["origin"].as_str(), endpoint.origin, "{name}: {got}");
    let id = format!(r#""task_id":"{task}""#);
    server.wait_for_log(&id).await.unwrap();
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains(&id) && !line.contains(r#""method":"GetTask""#));
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let [line] = lines.as_slice() else { panic!("{name}: {lines:?}") };
    let member = |member: &str| line[member].as_str().unwrap_or_default().to_owned();
    assert_eq!(member("target"), "a2ad::call", "{line}");
    assert_eq!(["binding", "dialect"].map(member), endpoint.logged, "{name}");
    assert_eq!([member("agent"), member("state")], ["main", state], "{name}");
}

async fn get(server: &Server, path: &str) -> Value {
    let response = request(server, "GET", path, &[], "").await;
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    serde_json::from_slice(&response.body).unwrap()
}

async fn request(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> http1::Response {
    let mut connection = http1::Connection::open(server.address).await.unwrap();
    connection.send(method, path, headers, body.as_bytes()).await.unwrap();
    connection.response().await.unwrap()
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// The operation that calls a skill, with a new message id. In the draft, clients choose the ids of tasks instead.
fn send(dialect: Dialect, skill: &str, arguments: &str) -> Operation {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let parts = vec![Part::data(Json::parse(arguments).unwrap())];
    let mut message = Message::new(format!("message-{number}"), Role::User, parts);
    if dialect == Dialect::Draft {
        message.task_id = Some(format!("draft-{number}").into());
    }
    let metadata = Json::parse(&format!(r#"{{"skillId":"{skill}"}}"#)).unwrap();
    Operation::SendMessage(SendMessage { metadata: Some(metadata), ..SendMessage::new(message) })
}

async fn jsonrpc(server: &Server, dialect: Dialect, skill: &str, arguments: &str) -> Outcome {
    let operation = send(dialect, skill, arguments);
    let method = dialect.method(OperationKind::SendMessage).unwrap();
    let params = encoded(|writer| dialect.encode_operation(writer, &operation));
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let response = request(server, "POST", "/", &[JSON], &body).await;
    Outcome::of_reply(dialect, &result_of(&response))
}

/// The draft as fold.run speaks it: bare arguments in, the result as a text with JSON out.
async fn fold(server: &Server, skill: &str, arguments: &str) -> Outcome {
    let params = format!(r#"{{"skill":"{skill}","message":{arguments}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{params}}}"#);
    let response = request(server, "POST", "/_a2a/", &[JSON], &body).await;
    let mut outcome = Outcome::of_reply(Dialect::Draft, &result_of(&response));
    for part in &mut outcome.parts {
        let data = part["text"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(data) = data {
            *part = json!({"data": data});
        }
    }
    outcome
}

async fn http(server: &Server, dialect: Dialect, skill: &str, arguments: &str) -> Outcome {
    let operation = send(dialect, skill, arguments);
    let (method, path) = rest::target(dialect, &operation).unwrap();
    let body = encoded(|writer| dialect.encode_request(writer, &operation));
    let response = request(server, method, &path, &[JSON], &body).await;
    assert_eq!(response.status, 200, "{}", response.text());
    Outcome::of_reply(dialect, &response.text())
}

async fn grpc(server: &Server, service: Service, skill: &str, arguments: &str) -> Outcome {
    let kind = OperationKind::SendMessage;
    let message = http2::framed(&service.encode_operation(&send(service.dialect(), skill, arguments)));
    let channel = http2::Channel::open(server.address).await.unwrap();
    let path = format!("/{}/{}", service.name(), service.method(kind).unwrap());
    let mut response = channel.request(channel.grpc(&path, &[], message).unwrap()).await.unwrap();
    let reply = response.message().await.unwrap();
    let reply = reply.unwrap_or_else(|| panic!("{:?}", response.grpc_status()));
    Outcome::of(service.decode_reply(kind, &reply).unwrap())
}

async fn run(server: &Server, base: &str, skill: &str, arguments: &str) -> Outcome {
    let response = request(server, "POST", &format!("{base}/run/{skill}"), &[JSON], arguments).await;
    let text = response.text();
    let header = |name: &str| response.headers.get(name).unwrap_or_default();
    let (task, state) = (header("a2ad-task").to_owned(), header("a2ad-state").to_owned());
    assert_eq!(header("location"), format!("/a2a/main/tasks/{task}"), "{text}");
    let status = match state.as_str() {
        "completed" => 200,
        "rejected" => 422,
        "failed" => 502,
        other => panic!("{other}: {text}"),
    };
    assert_eq!(response.status, status, "{text}");
    let parts = match header("content-type") {
        "application/json" => {
            let value: Value = serde_json::from_str(&text).unwrap();
            match value["parts"].as_array() {
                Some(parts) => parts.clone(),
                None => vec![json!({"data": value})],
            }
        }
        _ => vec![json!({"text": text})],
    };
    Outcome { task, state, parts }
}

/// A tool of MCP in its newest revision. Data is text there too.
async fn mcp(server: &Server, base: &str, skill: &str, arguments: &str) -> Outcome {
    const REVISION: &str = "2026-07-28";
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = format!(r#"{{"name":"{skill}","arguments":{arguments},"_meta":{meta}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let headers = [
        JSON,
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", REVISION),
        ("mcp-method", "tools/call"),
        ("mcp-name", skill),
    ];
    let response = request(server, "POST", &format!("{base}/mcp"), &headers, &body).await;
    let result: Value = serde_json::from_str(&result_of(&response)).unwrap();
    let task = result["_meta"]["a2ad/taskId"].as_str().unwrap().to_owned();
    let state = get(server, &format!("/tasks/{task}")).await["status"]["state"].clone();
    let state = state.as_str().unwrap().trim_start_matches("TASK_STATE_").to_lowercase();
    assert_eq!(result["isError"], state != "completed", "{result}");
    let part = |block: &Value| match serde_json::from_str::<Value>(block["text"].as_str().unwrap()) {
        Ok(data) => json!({"data": data}),
        Err(_) => json!({"text": block["text"]}),
    };
    let parts: Vec<Value> = result["content"].as_array().unwrap().iter().map(part).collect();
    let data = parts.iter().find_map(|part| part.get("data"));
    assert_eq!(result.get("structuredContent"), data, "{result}");
    Outcome { task, state, parts }
}

/// The result of a JSON-RPC response.
fn result_of(response: &http1::Response) -> String {
    let value: Value = serde_json::from_slice(&response.body).unwrap();
    assert!(value.get("error").is_none(), "{value}");
    value["result"].to_string()
}

fn encoded(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::new();
    write(&mut writer);
    String::from_utf8(writer.finish()).unwrap()
}

impl Outcome {
    fn of_reply(dialect: Dialect, text: &str) -> Self {
        let reply = Json::parse(text).unwrap();
        let node = Node::new(reply.as_raw(), &JsonPath::Root);
        Self::of(dialect.decode_reply(OperationKind::SendMessage, node).unwrap())
    }

    fn of(reply: Reply) -> Self {
        let (Reply::SentTask(task) | Reply::Task(task)) = reply else { panic!("{reply:?}") };
        let Task { id, status, artifacts, .. } = task;
        let said = status.message.iter().flat_map(|message| &message.parts);
        let produced = artifacts.iter().flat_map(|artifact| &artifact.parts);
        let parts =
            if artifacts.is_empty() { said.map(content).collect() } else { produced.map(content).collect() };
        Self { task: id.to_string(), state: v03::task::state_name(status.state).to_owned(), parts }
    }
}

/// A part without what not every generation can express.
fn content(part: &Part) -> Value {
    let bare = Part::new(part.content.clone());
    serde_json::from_str(&encoded(|writer| v1::message::encode_part(writer, &bare))).unwrap()
}
