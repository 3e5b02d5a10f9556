//! MCP over streamable HTTP: sessions of clients before 2026-07-28, and single requests of newer ones.

#![allow(clippy::disallowed_types, reason = "the messages of MCP are compared as trees")]

mod calls;
mod changes;
mod questions;
mod revocation;
mod sessions;
mod tools;

use serde_json::{Value, json};
use testkit::http1::{Connection, Headers};

use crate::common::{Server, with_timeout};

/// The newest revision, which has no sessions.
const NEWEST: &str = "2026-07-28";
const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

/// A client at one path of a server.
struct Client<'a> {
    server: &'a Server,
    path: &'a str,
    session: Option<String>,
    capabilities: Value,
    /// The value of `Authorization`; empty without one.
    credential: String,
}

/// A response that may be a stream, as far as its messages have been read.
struct Exchange {
    connection: Connection,
    status: u16,
    headers: Headers,
    is_stream: bool,
}

impl Exchange {
    /// The next message; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        if !self.is_stream {
            let body = with_timeout(self.connection.body()).await.unwrap();
            return serde_json::from_slice(&body).ok();
        }
        loop {
            let event = with_timeout(self.connection.event()).await.unwrap()?;
            if !event.data.is_empty() {
                return Some(serde_json::from_str(&event.data).unwrap());
            }
        }
    }

    /// The response, skipping what is sent before it.
    async fn response(&mut self) -> Value {
        loop {
            let message = self.next().await.expect("there is a response");
            if message.get("method").is_none() {
                return message;
            }
        }
    }
}

impl<'a> Client<'a> {
    /// A client of the newest revision.
    fn newest(server: &'a Server, path: &'a str) -> Self {
        Self { server, path, session: None, capabilities: json!({}), credential: String::new() }
    }

    /// A client with a session.
    async fn with_session(server: &'a Server, path: &'a str, capabilities: Value) -> Self {
        Self { capabilities, ..Self::newest(server, path) }.begin_session().await
    }

    async fn begin_session(self) -> Self {
        let mut client = self;
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": client.capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let mut opened = client.post(&[], &body).await;
        assert_eq!(opened.status, 200);
        client.session = opened.headers.get("mcp-session-id").map(str::to_owned);
        assert_eq!(opened.response().await["result"]["serverInfo"]["name"], "a2ad");
        client.notify("notifications/initialized", json!({})).await;
        client
    }

    async fn notify(&self, method: &str, params: Value) {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        assert_eq!(self.post(&[], &body).await.status, 202, "{method}");
    }

    /// Sends a request and reads the head of the response.
    async fn start(&self, id: u32, method: &str, mut params: Value) -> Exchange {
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let mut headers = Vec::new();
        if self.session.is_none() {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(NEWEST);
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            headers.extend([("mcp-protocol-version", NEWEST), ("mcp-method", method)]);
            if !name.is_empty() {
                headers.push(("mcp-name", name.as_str()));
            }
        }
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.post(&headers, &body).await
    }

    /// Sends a request and returns its result.
    async fn request(&self, method: &str, params: Value) -> Value {
        let response = self.start(1, method, params).await.response().await;
        assert!(response["error"].is_null(), "{response}");
        response["result"].clone()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    async fn post(&self, headers: &[(&str, &str)], body: &Value) -> Exchange {
        self.send("POST", headers, body.to_string().as_bytes()).await
    }

    async fn send(&self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> Exchange {
        let mut connection = Connection::open(self.server.address).await.unwrap();
        let mut all = vec![ACCEPT, ("content-type", "application/json")];
        all.extend_from_slice(headers);
        if !self.credential.is_empty() {
            all.push(("authorization", &self.credential));
        }
        all.extend(self.session.as_deref().map(|session| ("mcp-session-id", session)));
        connection.send(method, self.path, &all, body).await.unwrap();
        let head = with_timeout(connection.head()).await.unwrap();
        let is_stream = head.is_event_stream();
        Exchange { connection, status: head.status, headers: head.headers, is_stream }
    }
}

/// The text of a result.
fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The task of a result.
fn task(result: &Value) -> String {
    result["_meta"]["a2ad/taskId"].as_str().unwrap_or_else(|| panic!("no task in {result}")).to_owned()
}
