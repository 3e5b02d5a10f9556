//! Agents as resources of MCP.

use crate::{
    CheckResult,
    fixture::Fixture,
    json::{self, ValueChecks as _, quote},
    mcp::request,
    mismatch,
};

pub(super) async fn resources(at: &Fixture) -> CheckResult {
    let server = at.callable_server()?;
    let listed = request(server, "resources/list", "", "").await?;
    let resources = listed.list("result.resources")?;
    listed.ensure(!resources.is_empty(), "a resource for each agent")?;
    for resource in resources {
        let (uri, name) = (resource.non_empty("uri")?, resource.non_empty("name")?);
        if uri != format!("a2a://agents/{name}/card") {
            return Err(mismatch(format!("a2a://agents/{name}/card"), uri));
        }
        let params = format!(r#""uri":{},"#, quote(uri));
        let read = request(server, "resources/read", uri, &params).await?;
        read.is("result.contents.0.mimeType", "application/json")?;
        let card = json::parse(read.text("result.contents.0.text")?)?;
        card.is("name", resource.text("title")?)?;
        card.non_empty("supportedInterfaces.0.url")?;
    }
    Ok(())
}
