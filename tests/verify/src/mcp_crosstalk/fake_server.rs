//! An MCP server on standard input and output that confuses its calls: it sends every result and notice under other ids
//! too, as if it had counted wrong or answered a call a second time.
//!
//! Deliberately not here: the id of a call that is still open, which a client cannot tell from the right one. Ids are
//! random, so a server can only use one on purpose.

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::random::Random;

/// The name under which this program is the server.
pub(crate) const COMMAND: &str = "confused_mcp_server";

/// Longer than the timeout of a call.
const LATE: Duration = Duration::from_millis(2_500);
/// Ids that are kept to be used again.
const KEPT: usize = 64;

/// Serves until standard input ends.
pub(crate) fn serve(args: &[String]) -> Result<()> {
    let seed = args.first().and_then(|seed| seed.parse().ok()).unwrap_or_default();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(seed))
}

async fn run(seed: u64) -> Result<()> {
    let (input, mut lines) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if input.send(line).is_err() {
                return;
            }
        }
    });
    let (output, mut messages) = mpsc::unbounded_channel::<String>();
    let mut server = Server {
        output,
        tasks: JoinSet::new(),
        random: Random::new(seed),
        ids: Vec::new(),
        asking: Vec::new(),
    };
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => server.receive(&serde_json::from_str(&line)?),
                None => return Ok(()),
            },
            Some(message) = messages.recv() => writeln!(io::stdout().lock(), "{message}")?,
        }
    }
}

struct Server {
    output: UnboundedSender<String>,
    tasks: JoinSet<()>,
    random: Random,
    /// Of the last calls that were answered.
    ids: Vec<Value>,
    /// The calls that ask: their ids and texts.
    asking: Vec<(Value, String)>,
}

impl Server {
    fn receive(&mut self, message: &Value) {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "confused", "version": "1"},
            }})),
            Some("tools/list") => self.send(&result(id, &json!({"tools": [tool("echo"), tool("ask")]}))),
            Some("tools/call") if message["params"]["name"] == "ask" => self.ask(message),
            Some("tools/call") => self.echo(message),
            Some("notifications/cancelled") => self.cancelled(&message["params"]["requestId"]),
            Some(_) if !id.is_null() => self.send(&json!({"jsonrpc": "2.0", "id": id,
                "error": {"code": -32601, "message": "unknown method"}})),
            Some(_) => {}
            None => self.answered(message),
        }
    }

    /// Answers a call, at some time and some number of times, and other calls with the same.
    fn echo(&mut self, call: &Value) {
        let (id, text) = (&call["id"], argument(call));
        let (answer, report) = (content(&format!("echo {text}")), format!("working on {text}"));
        let token = &call["params"]["_meta"]["progressToken"];
        self.send(&progress(token, &report));
        for other in self.other_ids(id) {
            self.send(&progress(&other, &report));
            self.send(&result(&other, &answer));
        }
        let line = result(id, &answer);
        let delay = match self.random.within(0..=9) {
            _ if text.contains("late") => LATE,
            0..=4 => Duration::ZERO,
            _ => Duration::from_millis(self.random.within(0..=30)),
        };
        self.send_after(delay, &line);
        if self.random.within(0..=3) == 0 {
            let again = Duration::from_millis(self.random.within(0..=60));
            self.send_after(delay + again, &line);
        }
        if delay.is_zero() {
            self.ids.push(id.clone());
            if self.ids.len() > KEPT {
                self.ids.remove(0);
            }
        }
    }

    /// Asks the client, or waits for the cancellation before it asks.
    fn ask(&mut self, call: &Value) {
        let (id, text) = (call["id"].clone(), argument(call));
        if !text.contains("canceled") {
            self.question(&text);
        }
        self.asking.push((id, text));
    }

    fn cancelled(&mut self, id: &Value) {
        if let Some(at) = self.asking.iter().position(|(asking, _)| asking == id) {
            let (_, text) = self.asking.remove(at);
            self.question(&text);
        }
    }

    fn question(&mut self, text: &str) {
        self.send(&json!({"jsonrpc": "2.0", "id": text, "method": "elicitation/create", "params": {
            "message": format!("question {text}"),
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}},
                "required": ["name"]},
        }}));
    }

    /// The client has answered a question, whose id is the text of its call.
    fn answered(&mut self, message: &Value) {
        let found = self.asking.iter().position(|(_, text)| message["id"] == text.as_str());
        if let Some(at) = found {
            let (id, _) = self.asking.remove(at);
            let name = message["result"]["content"]["name"].as_str().unwrap_or_default();
            self.send(&result(&id, &content(&format!("answered {name}"))));
        }
    }

    /// Ids that could be those of other calls: neighbours, small numbers, earlier ids, other types.
    fn other_ids(&mut self, id: &Value) -> Vec<Value> {
        let number = id.as_i64().unwrap_or_default();
        let earlier = self.random.within(0..=KEPT as u64) as usize;
        let mut others = vec![
            json!(number + 1),
            json!(number - 1),
            json!(-number),
            json!(self.random.within(0..=1_000)),
            json!((number + 1).to_string()),
            json!("x"),
            Value::Null,
        ];
        others.extend(self.ids.get(earlier).filter(|_| self.random.within(0..=1) == 0).cloned());
        others.retain(|other| other != id);
        others
    }

    fn send(&self, message: &Value) {
        // Fails only when the other end is closed.
        let _ = self.output.send(message.to_string());
    }

    fn send_after(&mut self, delay: Duration, message: &Value) {
        if delay.is_zero() {
            return self.send(message);
        }
        let (output, line) = (self.output.clone(), message.to_string());
        self.tasks.spawn(async move {
            sleep(delay).await;
            let _ = output.send(line);
        });
        while self.tasks.try_join_next().is_some() {}
    }
}

fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "annotations": {"readOnlyHint": true},
    })
}

fn argument(call: &Value) -> String {
    call["params"]["arguments"]["text"].as_str().unwrap_or_default().to_owned()
}

fn content(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn progress(token: &Value, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": token, "progress": 1, "message": text}})
}
