//! Lists tasks in pages, newest status first (A2A 3.1.4).

use protocol::{ListTasks, Reply, TaskPage};

use super::{show_place, trim_history};
use crate::{
    cursor::PageTokens,
    engine::{Call, EngineInner},
    error::{Error, Result},
    store::{ContextLookup, ListPosition, ListQuery, View},
    task::fold,
};

/// Default page size.
const PAGE_SIZE: u32 = 50;

pub(super) async fn list_tasks(engine: &EngineInner, call: Call, req: ListTasks) -> Result<Reply> {
    let tokens = PageTokens::new(engine.store.seal_key(), &call.scope, &req);
    let after = match &req.page_token {
        Some(token) => Some(tokens.open(token).ok_or_else(bad_token)?),
        None => None,
    };
    let size = req.page_size.unwrap_or(PAGE_SIZE);
    let context = req.context_id.as_ref();
    let query = ListQuery {
        context: context
            .map(|name| ContextLookup { ours: engine.ids.parse_context(name), name: name.clone() }),
        state: req.status,
        since: req.status_timestamp_after,
        after,
        size: size as usize,
        view: View { history: req.history_length, artifacts: req.include_artifacts, memory: None },
    };
    let page = engine.store.list(&call.scope, query).await?;
    call.charge_read(page.tasks.iter().map(|snapshot| snapshot.bytes).sum())?;
    let last = page.tasks.last().filter(|_| page.more);
    let next = last.map(|last| tokens.token(ListPosition { status_at: last.row.status_at, no: last.row.no }));
    let mut tasks = Vec::with_capacity(page.tasks.len());
    for snapshot in page.tasks {
        let no = snapshot.row.no;
        let mut task = fold::into_task(&engine.ids, snapshot)?;
        show_place(engine, no, &mut task);
        trim_history(&mut task, req.history_length);
        tasks.push(task);
    }
    Ok(Reply::Tasks(TaskPage {
        tasks,
        next_page_token: next,
        page_size: size,
        total_size: page.total,
        with_artifacts: req.include_artifacts,
    }))
}

fn bad_token() -> Error {
    Error::invalid("pageToken", "expected a nextPageToken of the same caller and the same filters")
}
