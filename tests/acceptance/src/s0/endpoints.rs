//! One skill over MCP, A2A and plain HTTP.

use crate::{
    CheckError, CheckResult,
    fixture::Fixture,
    json::{MemberOrder, ValueChecks as _, is_exactly},
    mcp, mismatch,
};

use super::arguments;

/// Numbers that a general JSON library would change.
const GIVEN: &str = r#"{"city":"San Francisco","n":1.50,"big":12345678901234567890,"deep":[{"a":null}]}"#;

/// What a call at one endpoint led to.
struct Called {
    /// The name of the endpoint in the task.
    origin: Option<&'static str>,
    task: String,
    result: String,
}

pub(super) async fn one_function(at: &Fixture) -> CheckResult {
    for called in call_everywhere(at).await? {
        is_exactly(&called.result, GIVEN, MemberOrder::Any)?;
    }
    Ok(())
}

/// The trail of each call is its task, which names the endpoint.
pub(super) async fn same_result_and_trail(at: &Fixture) -> CheckResult {
    let called = call_everywhere(at).await?;
    let root = at.root("args");
    for Called { origin, task, result } in &called {
        is_exactly(result, &called[0].result, MemberOrder::Any)?;
        let read = root.call("GetTask", &format!(r#"{{"id":"{task}"}}"#)).await?;
        read.is("result.status.state", "TASK_STATE_COMPLETED")?;
        is_exactly(read.json_text("result.artifacts.0.parts.0.data")?, GIVEN, MemberOrder::Any)?;
        match origin {
            Some(origin) => read.is("result.metadata.a2ad.origin", origin)?,
            None => read.lacks("result.metadata.a2ad.origin")?,
        }
    }
    Ok(())
}

async fn call_everywhere(at: &Fixture) -> Result<[Called; 3], CheckError> {
    let sent = at.fold("args").call("tasks/send", &arguments("args", GIVEN)).await?;
    let a2a = Called {
        origin: None,
        task: sent.text("result.id")?.to_owned(),
        result: sent.text("result.artifacts.0.parts.0.text")?.to_owned(),
    };
    let params = format!(r#""name":"args","arguments":{GIVEN},"#);
    let called = mcp::request(&at.server, "tools/call", "args", &params).await?;
    called.is("result.isError", false)?;
    let meta = called.at("result._meta")?.as_object();
    let task = meta.and_then(|meta| meta.get("a2ad/taskId")?.as_str());
    let task = task.ok_or_else(|| mismatch("a2ad/taskId in _meta", &*called))?.to_owned();
    let result = called.text("result.content.0.text")?.to_owned();
    let over_mcp = Called { origin: Some("mcp"), task, result };
    let ran = at.server.post("/run/args", GIVEN).await?;
    ran.has_status(200)?;
    let run = Called {
        origin: Some("run"),
        task: ran.header("a2ad-task").unwrap_or_default().to_owned(),
        result: String::from_utf8_lossy(ran.body()).into_owned(),
    };
    Ok([a2a, over_mcp, run])
}
