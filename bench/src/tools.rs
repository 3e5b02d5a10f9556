//! The three tools of the benchmark of backends, each of which returns its arguments: a tool of an MCP server, an HTTP
//! function and a command. They do as little as possible, so that a call costs what calling costs.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::exchange::read_message;

/// An MCP server on standard input and output, of the last revision with a handshake.
pub fn mcp() -> Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        // Notifications are not answered.
        let Some(id) = request.get("id") else { continue };
        let mut response = json!({"jsonrpc": "2.0", "id": id});
        match result(&request) {
            Some(result) => response["result"] = result,
            None => response["error"] = json!({"code": -32601, "message": "method not found"}),
        }
        writeln!(out, "{response}")?;
        out.flush()?;
    }
    Ok(())
}

fn result(request: &Value) -> Option<Value> {
    match request["method"].as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"}
        })),
        "ping" => Some(json!({})),
        "tools/list" => Some(json!({"tools": [{
            "name": "mcp", "description": "Returns its arguments", "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object"}
        }]})),
        "tools/call" => {
            let text = request["params"]["arguments"].to_string();
            Some(json!({"content": [{"type": "text", "text": text}]}))
        }
        _ => None,
    }
}

/// A command: standard input to standard output.
pub fn command() -> Result<()> {
    let mut arguments = Vec::new();
    io::stdin().lock().read_to_end(&mut arguments)?;
    io::stdout().write_all(&arguments)?;
    Ok(())
}

/// Serves an HTTP function on a free port, with a thread for each connection.
pub fn http() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // It ends with its connection.
            thread::spawn(move || answer(connection));
        }
    });
    Ok(address)
}

fn answer(mut connection: TcpStream) -> Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = io::BufReader::new(connection.try_clone()?);
    loop {
        let body = read_message(&mut reader)?;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all(&[head.as_bytes(), &body].concat())?;
    }
}
