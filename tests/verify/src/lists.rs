//! Reads a task list page by page.
//!
//! Deliberately not here: what the tasks should be.

use serde_json::Value;

use super::rpc::{Caller, Failure};

const PAGE_SIZE: u64 = 100;
const HISTORY: u64 = 10;

/// Reads all pages of one list and returns the total given by the last page.
pub(crate) async fn walk(
    caller: &mut Caller,
    agent: &str,
    filter: Value,
    mut each: impl FnMut(Value),
) -> Result<u64, Failure> {
    let mut params = filter;
    params["pageSize"] = PAGE_SIZE.into();
    params["historyLength"] = HISTORY.into();
    loop {
        let mut page = caller.call(agent, "ListTasks", params.clone()).await?;
        let unusable = |page: &Value| Failure::Unusable(format!("invalid page: {page}"));
        let total = page["totalSize"].as_u64().ok_or_else(|| unusable(&page))?;
        let token = page["nextPageToken"].as_str().ok_or_else(|| unusable(&page))?.to_owned();
        let Value::Array(tasks) = page["tasks"].take() else { return Err(unusable(&page)) };
        // An empty page with a next page token would make this loop endless.
        if tasks.is_empty() && !token.is_empty() {
            return Err(unusable(&page));
        }
        tasks.into_iter().for_each(&mut each);
        if token.is_empty() {
            return Ok(total);
        }
        params["pageToken"] = token.into();
    }
}
