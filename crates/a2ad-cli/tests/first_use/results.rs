//! Results and questions of users' tools, as the client commands show them.

use std::fs;

use super::{Done, run, serve};

/// A command that asks for a name, and an MCP server.
const CONFIG: &str = r#"
[skills.greet]
description = "Greets by name"
command = { argv = ["python3", "greet.py"], protocol = "jsonl" }
[mcp.calc]
command = ["python3", "calc.py"]
"#;

const GREET: &str = r#"
import json, os
answer = os.environ.get("A2AD_CALL_ANSWER")
if answer is None:
    print(json.dumps({"type": "ask", "text": "Which name?"}))
else:
    with open(answer) as file:
        print(json.dumps({"type": "result", "text": "Hello, " + json.load(file)["text"]}))
"#;

/// An MCP server with a result that is the same as text and as data, and one that is a file.
const CALC: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}}
    elif method == "tools/list":
        tools = [("add", "Adds"), ("draw", "Draws")]
        result = {"tools": [{"name": n, "description": d, "inputSchema": {"type": "object"}} for n, d in tools]}
    elif method == "tools/call" and message["params"]["name"] == "draw":
        result = {"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}
    elif method == "tools/call":
        value = {"sum": 3}
        result = {"content": [{"type": "text", "text": json.dumps(value, indent=2)}], "structuredContent": value}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a2ad.toml", CONFIG), ("greet.py", GREET), ("calc.py", CALC)] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn succeeds(done: &Done, out: &str) {
    assert_eq!((done.code, done.out.as_str()), (0, out), "{done:?}");
}

#[tokio::test]
async fn a_question_of_a_skill_that_is_tried_can_be_answered() {
    let folder = folder();
    let asked = run(folder.path(), &["try", "greet"]).await;
    assert_eq!((asked.code, asked.out.as_str()), (4, "Which name?\n"), "{asked:?}");
    assert!(asked.err.contains("--answer TEXT"), "{asked:?}");
    // The server of the trial is gone.
    assert!(!asked.err.contains("http://") && !asked.err.contains("a2ad reply"), "{asked:?}");
    succeeds(&run(folder.path(), &["try", "greet", "--answer", "Ada"]).await, "Hello, Ada\n");
}

#[tokio::test]
async fn a_result_that_is_the_same_as_text_and_data_is_printed_once() {
    succeeds(&run(folder().path(), &["try", "add"]).await, "{\"sum\":3}\n");
}

#[tokio::test]
async fn files_of_a_result_are_written_into_a_folder() {
    let folder = folder();
    let server = serve(folder.path(), CONFIG).await;
    let url = format!("http://{}/a2a/main", server.address);
    for name in ["file.png", "file-2.png"] {
        let done = run(folder.path(), &["send", &url, "--skill", "draw", "--data", "{}", "-o", "got"]).await;
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(fs::read_to_string(folder.path().join("got").join(name)).unwrap(), "hello");
    }
    let listed = run(folder.path(), &["tasks", "ls", &url, "--state", "completed"]).await;
    assert_eq!(listed.out.lines().count(), 2, "{listed:?}");
    assert!(
        listed.out.lines().all(|line| line.contains(" completed  ") && line.contains("s  ")),
        "{listed:?}"
    );
}
