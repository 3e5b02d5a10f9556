//! The list of a server's tools. Bounded, because a server decides how long it is.

use rmcp::{
    Peer, RoleClient,
    model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult},
};

use super::convert;
use crate::{
    backends::mcp::{Tool, messages::CallError},
    skill::name::{self, MAX_LENGTH},
};

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 1_000;
/// Maximum size of all names, descriptions and schemas, in bytes.
const MAX_SIZE: usize = 8 << 20;

/// Lists all tools. One that cannot be used, or has the name of an earlier one, is left out.
pub(super) async fn list(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, CallError> {
    let mut tools: Vec<Tool> = Vec::new();
    let mut size = 0;
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let response = peer.send_request(request).await.map_err(convert::call_error)?;
        let ServerResult::ListToolsResult(page) = response else {
            return Err(CallError::Invalid("it is not a list of tools".into()));
        };
        for listed in page.tools {
            let Some(tool) = usable(&listed, &tools) else { continue };
            size += tool.size();
            tools.push(tool);
            if tools.len() > MAX_TOOLS || size > MAX_SIZE {
                let limit = format!("{MAX_TOOLS} tools or {MAX_SIZE} bytes");
                return Err(CallError::Invalid(format!("its list of tools has more than {limit}")));
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(CallError::Invalid(format!("its list of tools has more than {MAX_PAGES} pages")))
}

fn usable(listed: &rmcp::model::Tool, before: &[Tool]) -> Option<Tool> {
    let problem = match (name::problem(&listed.name), convert::tool(listed)) {
        (Some(problem), _) => problem.to_owned(),
        (None, Ok(tool)) if before.iter().all(|other| other.name != tool.name) => return Some(tool),
        (None, Ok(_)) => "another tool has the same name".to_owned(),
        (None, Err(error)) => error.to_string(),
    };
    let name: String = listed.name.chars().take(MAX_LENGTH).collect();
    tracing::warn!(tool = %name.escape_debug(), problem, "a tool of an MCP server is not used");
    None
}

impl Tool {
    fn size(&self) -> usize {
        let schemas = [Some(&self.input_schema), self.output_schema.as_ref()];
        let schemas = schemas.into_iter().flatten().map(|schema| schema.as_str().len()).sum::<usize>();
        self.name.len() + self.description.len() + schemas
    }
}
