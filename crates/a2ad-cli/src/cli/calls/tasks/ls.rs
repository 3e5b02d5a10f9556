//! `a2ad tasks ls`: lists tasks, following the page tokens up to the limit.

use clap::Args;
use client::{Client, text};
use engine::Clock;
use protocol::{ListTasks, Reply, Task, TaskPage, TaskState, Timestamp};

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
    #[arg(long, alias = "status", value_name = "STATE", value_parser = NamedValue { names: &outcome::STATES, parse: outcome::parse_state })]
    state: Option<TaskState>,
    /// Only tasks of this context (conversation).
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// Print at most N tasks; 0 prints all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

pub(super) fn run(flags: LsFlags) -> Result<u8, Failure> {
    let LsFlags { session, state, context, limit } = flags;
    let filter = ListTasks {
        status: state,
        context_id: context.map(Into::into),
        history_length: Some(0),
        ..ListTasks::default()
    };
    let limit = if limit == 0 { usize::MAX } else { limit };
    Session::run(session, |session| async move {
        // The last message is a column for people.
        let filter = ListTasks { history_length: Some(u32::from(!session.json())), ..filter };
        let client = session.client().await?;
        let page = walk(&session, &client, filter, limit).await?;
        let (shown, total) = (page.tasks.len(), page.total_size);
        if session.json() {
            print_reply(&session, &Reply::Tasks(page))?;
            return Ok(code::SUCCESS);
        }
        let now = Clock::system().now();
        let rows: Vec<_> = page.tasks.iter().map(|task| row(task, now)).collect();
        // Programs that read the lines get tasks only.
        let header = (session.output.is_for_people() && !rows.is_empty()).then(|| HEADER.map(str::to_owned));
        session.output.text(&columns(&header.into_iter().chain(rows).collect::<Vec<_>>()))?;
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

const HEADER: [&str; 5] = ["TASK", "STATE", "AGE", "CONTEXT", "LAST MESSAGE"];
/// The most characters of a message.
const WORDS: usize = 40;

fn row(task: &Task, now: Timestamp) -> [String; 5] {
    let age = task.status.timestamp.map(|since| age(now.as_millis() - since.as_millis())).unwrap_or_default();
    let state = outcome::state_name(task.status.state).to_owned();
    let words = task.history.last().map(|message| words(&text::of_message(message))).unwrap_or_default();
    [task.id.to_string(), state, age, task.context_id.to_string(), words]
}

/// How long ago the state was reached, in its largest unit.
fn age(millis: i64) -> String {
    let seconds = millis.max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The first words of a text in one line.
fn words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
