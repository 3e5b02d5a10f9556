//! Metrics and traces.

use crate::{
    CheckError, CheckResult,
    fixture::Fixture,
    http::{Response, Server},
    json::{ValueChecks as _, parse},
    mismatch,
    test_client::TestClient,
};

const TOOL: &str = "weather-lookup";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// `/metrics` counts a call of a tool, and the tool gets the trace of the call with another parent.
pub(super) async fn measured_and_traced(at: &Fixture) -> CheckResult {
    let server = at.tools_server().await?;
    let before = count(server).await?;
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let called = call(server, &parent).await?;
    let result = parse(called.text("result.artifacts.0.parts.0.text")?)?;
    let received = result.text("traceparent")?;
    let is_same_trace = received.starts_with(&format!("00-{TRACE}-")) && received != parent;
    result.ensure(is_same_trace, "a traceparent of the same trace")?;
    let after = count(server).await?;
    if after > before { Ok(()) } else { Err(mismatch("one more call of an MCP tool", after)) }
}

async fn call(server: &Server, traceparent: &str) -> Result<Response, CheckError> {
    let client = TestClient::new(server, "/_a2a/", TOOL).with_header("traceparent", traceparent);
    let params = format!(r#"{{"skill":"{TOOL}","message":{{"trace":true}}}}"#);
    client.call("tasks/send", &params).await
}

/// How many calls of MCP tools were successful.
async fn count(server: &Server) -> Result<u64, CheckError> {
    const SAMPLE: &str = r#"a2ad_backend_calls_total{kind="mcp",outcome="done"} "#;
    let response = server.get("/metrics", &[]).await?;
    response.has_status(200)?;
    let text = String::from_utf8_lossy(response.body()).into_owned();
    let value = text.lines().find_map(|line| line.strip_prefix(SAMPLE));
    value.and_then(|value| value.parse().ok()).ok_or_else(|| mismatch(SAMPLE, text))
}
