//! `a2ad tasks ls`: lists tasks, page after page.

use clap::Args;
use client::Client;
use protocol::{ListTasks, Operation, Reply, Task, TaskPage, TaskState};

use crate::cli::{
    named::Named,
    outcome,
    send::print_reply,
    session::{Session, SessionFlags},
    stop::{Stop, code},
};

/// The largest page there is.
const PAGE: usize = 100;

#[derive(Debug, Args)]
pub(in crate::cli) struct LsFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// Only tasks in this state, such as working or input-required.
    #[arg(long, value_name = "STATE", value_parser = Named { names: &outcome::STATES, parse: outcome::parse_state })]
    status: Option<TaskState>,
    /// Only tasks of this conversation.
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// At most so many; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

pub(super) fn run(flags: LsFlags) -> Result<u8, Stop> {
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
            return Ok(code::DONE);
        }
        for task in &page.tasks {
            session.screen.text(&line(task))?;
        }
        if total > shown as u64 {
            session.screen.say(&format!("{shown} of {total} tasks; --limit shows more"));
        }
        Ok(code::DONE)
    })
}

/// All pages up to the limit, as one.
async fn walk(
    session: &Session,
    client: &Client,
    mut filter: ListTasks,
    limit: usize,
) -> Result<TaskPage, Stop> {
    let mut tasks: Vec<Task> = Vec::new();
    loop {
        filter.page_size = u32::try_from((limit - tasks.len()).min(PAGE)).ok();
        let reply = client.call(Operation::ListTasks(filter.clone())).await?;
        let Reply::Tasks(page) = reply else {
            return Err(Stop::new(code::PROTOCOL, "the agent answered with something else than tasks"));
        };
        session.alive();
        let TaskPage { tasks: more, next_page_token, page_size, total_size, with_artifacts } = page;
        let empty = more.is_empty();
        tasks.extend(more);
        tasks.truncate(limit);
        // An agent that gives the same page for ever is not asked for ever.
        let next = next_page_token.filter(|token| !empty && filter.page_token.as_ref() != Some(token));
        match next {
            Some(token) if tasks.len() < limit => filter.page_token = Some(token),
            next_page_token => {
                return Ok(TaskPage { tasks, next_page_token, page_size, total_size, with_artifacts });
            }
        }
    }
}

fn line(task: &Task) -> String {
    let since = task.status.timestamp.map(|timestamp| timestamp.to_string()).unwrap_or_default();
    format!("{}  {:<14}  {since:<24}  {}\n", task.id, outcome::word(task.status.state), task.context_id)
}
