//! Lists tasks in pages, newest status first (A2A 3.1.4).

use protocol::{ListTasks, Reply, TaskPage};

use super::{show_place, trim_history};
use crate::{
    cursor::PageTokens,
    engine::{Call, CallResponse, EngineInner, ResponseNote},
    error::{Error, Result},
    store::{ContextLookup, ListQuery, View},
    task::fold,
};

/// Default page size.
const PAGE_SIZE: u32 = 50;

pub(super) async fn list_tasks(engine: &EngineInner, call: Call, req: ListTasks) -> Result<CallResponse> {
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
    let next = page.last.filter(|_| page.more).map(|last| tokens.token(last));
    let (mut tasks, mut unreadable) = (Vec::with_capacity(page.tasks.len()), page.unreadable);
    for snapshot in page.tasks {
        let no = snapshot.row.no;
        let mut task = match fold::into_task(&engine.ids, snapshot) {
            Ok(task) => task,
            Err(error) => {
                tracing::error!(task = no.0, what = %error, "a damaged task is left out of a list");
                unreadable += 1;
                continue;
            }
        };
        show_place(engine, no, &mut task);
        trim_history(&mut task, req.history_length);
        tasks.push(task);
    }
    let reply = CallResponse::Reply(Reply::Tasks(TaskPage {
        tasks,
        next_page_token: next,
        page_size: size,
        total_size: page.total,
        with_artifacts: req.include_artifacts,
    }));
    Ok(reply.with_note((unreadable > 0).then_some(ResponseNote::Unreadable(unreadable))))
}

fn bad_token() -> Error {
    Error::invalid("pageToken", "expected a nextPageToken of the same caller and the same filters")
}
