//! Tools of an MCP server on standard input and output, in the revisions that begin with `initialize`: another mode of
//! this program.
//!
//! Its arguments name the tools. [`super::TOOLS`] work as [`steps`] says, and ask by elicitation. Every other tool returns
//! its name and its arguments; [`ADD_TOOL`] and [`REMOVE_TOOL`] change the list, which the server then reports. With the
//! argument `trace`, a tool also returns the `traceparent` that it got.

use std::{
    collections::HashMap,
    ffi::OsString,
    io::{self, BufRead as _, Write as _},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError, mpsc},
};

use serde_json::{Value, json};

use super::{Step, TOOLS, steps, takes_anything};
use crate::json::{ValueChecks as _, text_at};

/// The first argument of this program in that mode. The further ones are the names of the tools.
pub(crate) const COMMAND: &str = "tool-server";

/// The tool that adds the tool `name`.
pub(crate) const ADD_TOOL: &str = "add-tool";
/// The tool that removes the tool `name`.
pub(crate) const REMOVE_TOOL: &str = "remove-tool";

const METHOD_NOT_FOUND: i32 = -32601;

/// What a tool is described as.
pub(crate) fn description(tool: &str) -> String {
    format!("The tool {tool} of the checks")
}

#[derive(Clone)]
struct ToolServer {
    tools: Arc<Mutex<Vec<String>>>,
    /// Where the answer to each open question goes.
    questions: Arc<Mutex<HashMap<String, mpsc::Sender<Value>>>>,
}

/// Serves until standard input ends.
pub(crate) fn run(tools: impl Iterator<Item = OsString>) -> ExitCode {
    let names = tools.map(|name| name.to_string_lossy().into_owned()).collect();
    let server = ToolServer { tools: Arc::new(Mutex::new(names)), questions: Arc::default() };
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let key = message["id"].to_string();
        if message.get("method").is_none() {
            let asked = locked(&server.questions).remove(&key);
            if let Some(asked) = asked {
                let _ = asked.send(message["result"].clone());
            }
        } else if message["method"] == "tools/call" {
            let server = server.clone();
            // Calls that hold end with the process.
            std::thread::spawn(move || server.call(&message, &line));
        } else if !message["id"].is_null() {
            server.answer(&message);
        }
    }
    ExitCode::SUCCESS
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn send(message: &str) {
    let mut output = io::stdout().lock();
    // The client may have closed the pipe.
    let _ = writeln!(output, "{message}").and_then(|()| output.flush());
}

fn reply(id: &Value, result: &str) {
    send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
}

impl ToolServer {
    /// Answers a request that is no call.
    fn answer(&self, message: &Value) {
        let id = &message["id"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "a2ad-acceptance", "version": env!("CARGO_PKG_VERSION")},
            }),
            "ping" => json!({}),
            "tools/list" => {
                let tools: Vec<Value> = locked(&self.tools).iter().map(|tool| describe(tool)).collect();
                json!({ "tools": tools })
            }
            method => {
                let error =
                    json!({"code": METHOD_NOT_FOUND, "message": format!("there is no method {method}")});
                return send(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
            }
        };
        reply(id, &result.to_string());
    }

    /// Does a call. `line` is the text of the request.
    fn call(&self, message: &Value, line: &str) {
        let (id, params) = (&message["id"], &message["params"]);
        let tool = params["name"].as_str().unwrap_or_default();
        let is_known = locked(&self.tools).iter().any(|known| known == tool);
        if !is_known {
            return reply(id, &content(&format!("there is no tool {tool}"), None, true));
        }
        if TOOLS.contains(&tool) {
            return self.work(id, tool, params, text_at(line, "params.arguments").unwrap_or("{}"));
        }
        let arguments = &params["arguments"];
        let mut result = json!({"tool": tool, "arguments": arguments});
        if arguments["trace"] == true {
            result["traceparent"] = params["_meta"]["traceparent"].clone();
        }
        let result = result.to_string();
        reply(id, &content(&result, Some(&result), false));
        let name = arguments["name"].as_str().unwrap_or_default();
        match tool {
            ADD_TOOL => locked(&self.tools).push(name.to_owned()),
            REMOVE_TOOL => locked(&self.tools).retain(|known| known != name),
            _ => return,
        }
        send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    }

    fn work(&self, id: &Value, tool: &str, params: &Value, arguments: &str) {
        let mut all = steps(tool, arguments, None);
        if let [Step::Ask(question)] = &all[..] {
            let answer = self.ask(id, question);
            let text = answer.text("content.answer");
            if !answer.is("action", "accept").is_ok_and(|()| text.is_ok()) {
                return reply(id, &content("the question was not answered", None, true));
            }
            all = steps(tool, arguments, text.ok());
        }
        let mut written = String::new();
        for step in all {
            match step {
                Step::Wait(time) => super::pause(time),
                Step::Text(text) => {
                    written += &text;
                    progress(&params["_meta"]["progressToken"], written.len(), &text);
                }
                Step::Data(data) => return reply(id, &content(&data, Some(&data), false)),
                Step::Ask(text) | Step::Fail(text) => return reply(id, &content(&text, None, true)),
                Step::Crash => crash(),
                Step::Hold => loop {
                    std::thread::park();
                },
            }
        }
        reply(id, &content(&written, None, false));
    }

    /// Asks the client of a call, and waits for its answer.
    fn ask(&self, id: &Value, question: &str) -> Value {
        let (sender, answer) = mpsc::channel();
        let key = json!(format!("question-{id}"));
        locked(&self.questions).insert(key.to_string(), sender);
        let schema =
            json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]});
        let params = json!({"message": question, "requestedSchema": schema});
        let request = json!({"jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": params});
        send(&request.to_string());
        answer.recv().unwrap_or_default()
    }
}

/// Ends this process in the middle of a call.
#[expect(clippy::disallowed_methods, reason = "this is what the check is about")]
fn crash() -> ! {
    std::process::exit(1)
}

/// Reports what was written so far, if the client wants to know.
fn progress(token: &Value, written: usize, text: &str) {
    if !token.is_null() {
        let params = json!({"progressToken": token, "progress": written, "message": text});
        let message = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        send(&message.to_string());
    }
}

/// The result of a call: a text, and the same as a JSON text if it is structured.
fn content(text: &str, structured: Option<&str>, is_error: bool) -> String {
    let structured = structured.map_or(String::new(), |json| format!(r#","structuredContent":{json}"#));
    let text = crate::json::quote(text);
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":{is_error}{structured}}}"#)
}

fn describe(tool: &str) -> Value {
    let required = match tool {
        ADD_TOOL | REMOVE_TOOL => Some("name"),
        tool if TOOLS.contains(&tool) && !takes_anything(tool) => Some("text"),
        _ => None,
    };
    let schema = required.map_or(
        json!({"type": "object"}),
        |name| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}),
    );
    let annotations = json!({"readOnlyHint": TOOLS.contains(&tool)});
    json!({"name": tool, "description": description(tool), "inputSchema": schema, "annotations": annotations})
}
