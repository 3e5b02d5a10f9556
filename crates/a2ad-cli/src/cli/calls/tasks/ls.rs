//! `a2ad tasks ls`: lists tasks, following the page tokens up to the limit.

use clap::Args;
use client::Client;
use protocol::{ListTasks, Reply, Task, TaskPage, TaskState};

use crate::cli::{
    calls::{
        outcome,
        send::print_reply,
        session::{Session, SessionFlags},
    },
    failure::{Failure, code},
    named_value::NamedValue,
    table::columns,
};

/// The largest page size the protocol allows.
const PAGE: usize = 100;

#[derive(Debug, Args)]
pub(crate) struct LsFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// Only tasks in this state, such as working or input-required.
    #[arg(long, value_name = "STATE", value_parser = NamedValue { names: &outcome::STATES, parse: outcome::parse_state })]
    status: Option<TaskState>,
    /// Only tasks of this context (conversation).
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// Print at most N tasks; 0 prints all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

pub(super) fn run(flags: LsFlags) -> Result<u8, Failure> {
    let LsFlags { session, status, context, limit } = flags;
    let filter = ListTasks {
        status,
        context_id: context.map(Into::into),
        history_length: Some(0),
        ..ListTasks::default()
    };
    let limit = if limit == 0 { usize::MAX } else { limit };
    Session::run(session, |session| async move {
        let client = session.client().await?;
        let page = walk(&session, &client, filter, limit).await?;
        let (shown, total) = (page.tasks.len(), page.total_size);
        if session.json() {
            print_reply(&session, &Reply::Tasks(page))?;
            return Ok(code::SUCCESS);
        }
        session.output.text(&columns(&page.tasks.iter().map(row).collect::<Vec<_>>()))?;
        if total > shown as u64 {
            session.output.message(&format!("{shown} of {total} tasks; --limit shows more"));
        }
        Ok(code::SUCCESS)
    })
}

/// Collects all pages up to the limit into one.
async fn walk(
    session: &Session,
    client: &Client,
    mut filter: ListTasks,
    limit: usize,
) -> Result<TaskPage, Failure> {
    let mut tasks: Vec<Task> = Vec::new();
    loop {
        filter.page_size = u32::try_from((limit - tasks.len()).min(PAGE)).ok();
        let page = client.list_tasks(filter.clone()).await?;
        session.record_activity();
        let TaskPage { tasks: more, next_page_token, page_size, total_size, with_artifacts } = page;
        let empty = more.is_empty();
        tasks.extend(more);
        tasks.truncate(limit);
        // An agent that repeats a page token must not cause an endless loop.
        let next = next_page_token.filter(|token| !empty && filter.page_token.as_ref() != Some(token));
        match next {
            Some(token) if tasks.len() < limit => filter.page_token = Some(token),
            next_page_token => {
                return Ok(TaskPage { tasks, next_page_token, page_size, total_size, with_artifacts });
            }
        }
    }
}

fn row(task: &Task) -> [String; 4] {
    let since = task.status.timestamp.map(|timestamp| timestamp.to_string()).unwrap_or_default();
    let state = outcome::state_name(task.status.state).to_owned();
    [task.id.to_string(), state, since, task.context_id.to_string()]
}
