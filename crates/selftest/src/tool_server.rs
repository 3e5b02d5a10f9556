//! The MCP server of the checks about tools, which the program runs as a hidden command.
//!
//! It speaks MCP on standard input and output, one JSON message per line, in the revisions that begin with
//! `initialize`. The arguments of the command name its tools. Each returns its name and its arguments; `ADD_TOOL` and
//! `REMOVE_TOOL` change the list, which the server then reports. With the argument `trace`, a tool also returns the
//! `traceparent` that it got.

use std::{
    ffi::OsString,
    io::{self, BufRead as _, Write as _},
    process::ExitCode,
};

use serde_json::{Value, json};

/// The hidden command of the program `a2ad`. Its arguments are the names of the tools.
pub const COMMAND: &str = "selftest-tools";

/// The tool that adds the tool `name`.
pub(crate) const ADD_TOOL: &str = "add-tool";
/// The tool that removes the tool `name`.
pub(crate) const REMOVE_TOOL: &str = "remove-tool";

const METHOD_NOT_FOUND: i32 = -32601;

/// Serves until standard input ends.
pub fn run(tools: impl IntoIterator<Item = OsString>) -> ExitCode {
    let names = tools.into_iter().map(|name| name.to_string_lossy().into_owned());
    match serve(&mut ToolServer { tools: names.collect() }) {
        Ok(()) => ExitCode::SUCCESS,
        // The client has closed the pipe.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(server: &mut ToolServer) -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        for reply in server.handle(&message) {
            writeln!(output, "{reply}")?;
        }
        output.flush()?;
    }
    Ok(())
}

/// What a tool is described as.
pub(crate) fn description(tool: &str) -> String {
    format!("The tool {tool} of the selftest")
}

struct ToolServer {
    tools: Vec<String>,
}

impl ToolServer {
    /// The messages that answer a message; none for a notification.
    fn handle(&mut self, message: &Value) -> Vec<Value> {
        let (id, params) = (&message["id"], &message["params"]);
        if id.is_null() {
            return Vec::new();
        }
        let before = self.tools.len();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "a2ad-selftest", "version": env!("CARGO_PKG_VERSION")},
            }),
            "ping" => json!({}),
            "tools/list" => {
                json!({"tools": self.tools.iter().map(|tool| describe(tool)).collect::<Vec<_>>()})
            }
            "tools/call" => self.call(params),
            method => {
                let error =
                    json!({"code": METHOD_NOT_FOUND, "message": format!("there is no method {method}")});
                return vec![json!({"jsonrpc": "2.0", "id": id, "error": error})];
            }
        };
        let mut replies = vec![json!({"jsonrpc": "2.0", "id": id, "result": result})];
        if self.tools.len() != before {
            replies.push(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
        }
        replies
    }

    fn call(&mut self, params: &Value) -> Value {
        let (tool, arguments) = (params["name"].as_str().unwrap_or_default(), &params["arguments"]);
        if !self.tools.iter().any(|known| known == tool) {
            let content = json!([{"type": "text", "text": format!("there is no tool {tool}")}]);
            return json!({"content": content, "isError": true});
        }
        let name = arguments["name"].as_str().unwrap_or_default();
        match tool {
            ADD_TOOL => self.tools.push(name.to_owned()),
            REMOVE_TOOL => self.tools.retain(|known| known != name),
            _ => {}
        }
        let mut result = json!({"tool": tool, "arguments": arguments});
        if arguments["trace"] == true {
            result["traceparent"] = params["_meta"]["traceparent"].clone();
        }
        json!({"content": [{"type": "text", "text": result.to_string()}], "structuredContent": result})
    }
}

fn describe(tool: &str) -> Value {
    let schema = match tool {
        ADD_TOOL | REMOVE_TOOL => json!({
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        }),
        _ => json!({"type": "object"}),
    };
    json!({"name": tool, "description": description(tool), "inputSchema": schema})
}
