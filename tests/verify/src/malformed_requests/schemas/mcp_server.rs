//! An MCP server on standard input and output whose tools stand in a file. Its tools are never called.

use std::fs;
use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// The name under which this program is the server.
pub(crate) const COMMAND: &str = "listing_mcp_server";

/// Serves until standard input ends.
pub(crate) fn serve(args: &[String]) -> Result<()> {
    let file = args.first().context("name the file with the tools")?;
    let tools: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    for line in io::stdin().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if message["id"].is_null() {
            continue;
        }
        let (member, answer) = match message["method"].as_str() {
            Some("initialize") => {
                let capabilities = json!({"tools": {}});
                let info = json!({"name": "listing", "version": "1"});
                let version = "2025-11-25";
                let answer =
                    json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info});
                ("result", answer)
            }
            Some("tools/list") => ("result", json!({"tools": tools})),
            _ => ("error", json!({"code": -32601, "message": "unknown method"})),
        };
        writeln!(io::stdout(), "{}", json!({"jsonrpc": "2.0", "id": message["id"], member: answer}))?;
    }
    Ok(())
}
