//! JSON Schemas that are too complex to check a value: each loader refuses them before the first call.

use std::path::Path;

use client::{ClientOptions, find_card};
use serde_json::{Value, json};

use super::common::{run, serve, within};

/// An MCP server with the tools in the file `tools.json`.
const MCP_SERVER: &str = r#"
import json, sys

tools = json.load(open("tools.json"))
for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message.get("method")
    if method == "initialize":
        answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "listing", "version": "1"}}}
    elif method == "tools/list":
        answer = {"result": {"tools": tools}}
    else:
        answer = {"error": {"code": -32601, "message": "unknown method"}}
    if id is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": id, **answer}), flush=True)
"#;

/// Some kilobytes with references that double, so that 2^60 subschemas apply to one value. `prefix` is where the
/// definitions are.
fn definitions(prefix: &str) -> Value {
    let link = |number| {
        let next = json!({"$ref": format!("{prefix}d{}", number + 1)});
        (format!("d{number}"), json!({"anyOf": [next, next]}))
    };
    let last = ("d60".to_owned(), json!({"type": "object"}));
    (0..60).map(link).chain([last]).collect::<serde_json::Map<_, _>>().into()
}

fn doubling() -> Value {
    json!({"type": "object", "$ref": "#/$defs/d0", "$defs": definitions("#/$defs/")})
}

/// A chain of references on one value.
fn chained() -> Value {
    let link = |number| (format!("c{number}"), json!({"$ref": format!("#/$defs/c{}", number + 1)}));
    let last = ("c3000".to_owned(), json!({"type": "object"}));
    let links: serde_json::Map<_, _> = (0..3_000).map(link).chain([last]).collect();
    json!({"type": "object", "unevaluatedProperties": false, "$ref": "#/$defs/c0", "$defs": links})
}

/// The skills on the card of a server with this configuration, and its log.
async fn skills(folder: &Path, config: &str) -> (Vec<String>, String) {
    std::fs::write(folder.join("a2ad.toml"), config).unwrap();
    let server = serve(folder).await;
    let found = within(find_card(&server.url(), &ClientOptions::default())).await;
    (found.unwrap().card.skills.into_iter().map(|skill| skill.id).collect(), server.log())
}

#[tokio::test(flavor = "multi_thread")]
async fn schema_in_the_file_is_an_error_of_the_configuration() {
    for schema in [doubling(), chained()] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("in.json"), schema.to_string()).unwrap();
        let config = "[skills.a]\ncommand = { argv = [\"true\"] }\ninput_schema = \"in.json\"\n";
        std::fs::write(folder.path().join("a2ad.toml"), config).unwrap();
        let refused = run(folder.path(), &["serve"]).await;
        refused.ends(2, &["skills.a.input_schema: a JSON Schema that is too complex"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_of_an_mcp_server_is_skipped_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let tool = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let tools = json!([
        tool("plain", json!({"type": "object"})),
        tool("doubling", doubling()),
        tool("chained", chained()),
        {"name": "result", "inputSchema": {"type": "object"}, "outputSchema": doubling()},
    ]);
    std::fs::write(folder.path().join("tools.json"), tools.to_string()).unwrap();
    std::fs::write(folder.path().join("listing.py"), MCP_SERVER).unwrap();
    let config = "[mcp.listing]\ncommand = [\"python3\", \"-S\", \"listing.py\"]\n[agents.main]\nskills = [\"mcp:listing/*\"]\n";
    let (ids, log) = skills(folder.path(), config).await;
    assert_eq!(ids, ["plain"]);
    for tool in ["doubling", "chained", "result"] {
        let says = |line: &str| line.contains("the tool is not offered") && line.contains(tool);
        assert!(log.lines().any(|line| says(line) && line.contains("too complex")), "{tool}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operation_of_a_document_is_skipped_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let json_of = |schema: Value| json!({"content": {"application/json": {"schema": schema}}});
    let doubling = || json!({"$ref": "#/components/schemas/d0"});
    let ok = json!({"200": {"description": "ok"}});
    let mut result = json_of(doubling());
    result["description"] = "ok".into();
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:9"}],
        "components": {"schemas": definitions("#/components/schemas/")},
        "paths": {
            "/plain": {"get": {"operationId": "plain", "responses": ok}},
            "/in": {"post": {"operationId": "arguments", "requestBody": json_of(doubling()), "responses": ok}},
            "/out": {"get": {"operationId": "result", "responses": {"200": result}}},
        },
    });
    std::fs::write(folder.path().join("shop.json"), document.to_string()).unwrap();
    let config = "[openapi.shop]\nfile = \"shop.json\"\n[agents.main]\nskills = [\"openapi:shop/*\"]\n";
    let (ids, log) = skills(folder.path(), config).await;
    assert_eq!(ids, ["plain"]);
    for operation in ["POST /in", "GET /out"] {
        let says = |line: &str| line.contains(operation) && line.contains("too complex");
        assert!(log.lines().any(says), "{operation}: {log}");
    }
}
