//! Agents as resources of MCP.

use crate::{
    CheckError, CheckResult,
    fixture::Fixture,
    http::Response,
    json::{self, ValueChecks as _, quote},
    mismatch,
};

/// The revision of MCP that has no sessions.
const REVISION: &str = "2026-07-28";

pub(super) async fn resources(at: &Fixture) -> CheckResult {
    let listed = request(at, "resources/list", "", "").await?;
    let resources = listed.list("result.resources")?;
    listed.ensure(!resources.is_empty(), "a resource for each agent")?;
    for resource in resources {
        let (uri, name) = (resource.non_empty("uri")?, resource.non_empty("name")?);
        if uri != format!("a2a://agents/{name}/card") {
            return Err(mismatch(format!("a2a://agents/{name}/card"), uri));
        }
        let read = request(at, "resources/read", uri, &format!(r#""uri":{},"#, quote(uri))).await?;
        read.is("result.contents.0.mimeType", "application/json")?;
        let card = json::parse(read.text("result.contents.0.text")?)?;
        card.is("name", resource.text("title")?)?;
        card.non_empty("supportedInterfaces.0.url")?;
    }
    Ok(())
}

/// Calls a method of MCP; `name` is what a header has to repeat of the parameters.
async fn request(at: &Fixture, method: &str, name: &str, params: &str) -> Result<Response, CheckError> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}"_meta":{{
        "io.modelcontextprotocol/protocolVersion":"{REVISION}",
        "io.modelcontextprotocol/clientInfo":{{"name":"selftest","version":"1"}},
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
    let response = at.server.send_request("POST", "/mcp", &headers, &body).await?;
    response.has_status(200)?;
    Ok(response)
}
