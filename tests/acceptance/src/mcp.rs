//! Requests of MCP, in the revision that has no sessions.

use crate::{
    CheckError,
    http::{Response, Server},
};

const REVISION: &str = "2026-07-28";

/// Calls a method of MCP at `/mcp`. `name` is what a header has to repeat of the parameters: the tool or the resource.
/// `params` are the members of the parameters, each followed by a comma.
pub(crate) async fn request(
    server: &Server,
    method: &str,
    name: &str,
    params: &str,
) -> Result<Response, CheckError> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}"_meta":{{
        "io.modelcontextprotocol/protocolVersion":"{REVISION}",
        "io.modelcontextprotocol/clientInfo":{{"name":"acceptance","version":"1"}},
        "io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", REVISION),
        ("mcp-method", method),
    ];
    if !name.is_empty() {
        headers.push(("mcp-name", name));
    }
    let response = server.send_request("POST", "/mcp", &headers, &body).await?;
    response.has_status(200)?;
    Ok(response)
}
