//! `a2ad ops tasks`: lists tasks of all owners, following the page tokens up to the limit.

use clap::Args;
use protocol::{
    TaskState, Timestamp,
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
};

use super::documents::{self, Filter};
use crate::cli::{
    failure::{Failure, code},
    named_value::NamedValue,
    operate::{Access, MissingStore, OperateFlags, columns, counted, read_document, read_time},
    outcome,
    output::Output,
    runtime,
};

/// The largest page.
const PAGE: usize = 100;
/// How many pages are read at most: a filter that matches few tasks has pages that are almost empty.
const MAX_PAGES: usize = 1_000;

#[derive(Debug, Args)]
pub(in crate::cli) struct TasksFlags {
    /// Only tasks of this agent.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only tasks in this state, such as working or input-required.
    #[arg(long, value_name = "STATE", value_parser = NamedValue { names: &outcome::STATES, parse: outcome::parse_state })]
    state: Option<TaskState>,
    /// Only tasks of this principal, such as key:alice or anonymous.
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// Only tasks whose state is of this time or later, such as 2026-01-02T03:04:05Z.
    #[arg(long, value_name = "TIME", value_parser = read_time)]
    since: Option<Timestamp>,
    /// Print at most N tasks; 0 prints all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    operate: OperateFlags,
}

pub(super) fn run(flags: &TasksFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = Access::open(&flags.operate, MissingStore::Refuse, &output)?;
    let TasksFlags { agent, state, owner, since, .. } = flags;
    let filter = Filter { agent: agent.as_deref(), owner: owner.as_deref(), state: *state, since: *since };
    let limit = if flags.limit == 0 { usize::MAX } else { flags.limit };
    let Listed { rows, documents, has_more } = runtime()?.block_on(walk(&access, &filter, limit))?;
    let more = if has_more { "; there are more: --limit shows them" } else { "" };
    output.message(&format!("a2ad: {} {}{more}", counted(rows.len(), "task", "tasks"), access.place()));
    if flags.operate.json {
        let mut writer = Writer::new();
        writer.object(|out| {
            out.key("tasks").array(&documents, |out, document| out.raw(document));
            out.key("complete").boolean(!has_more);
        });
        output.document(&writer.finish())?;
    } else {
        output.text(&columns(&rows))?;
    }
    Ok(code::SUCCESS)
}

#[derive(Default)]
struct Listed {
    rows: Vec<[String; 6]>,
    /// The same as JSON.
    documents: Vec<String>,
    has_more: bool,
}

async fn walk(access: &Access, filter: &Filter<'_>, limit: usize) -> Result<Listed, Failure> {
    let mut listed = Listed::default();
    let mut token: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let size = PAGE.min(limit - listed.rows.len());
        let document = documents::list(access, filter, size, token.as_deref()).await?;
        token = read_document(&document, |object| {
            for (row, document) in object.list("tasks", |node| Ok((row(&node.object()?)?, text(&node))))? {
                listed.rows.push(row);
                listed.documents.push(document);
            }
            object.text("nextPageToken")
        })?;
        listed.has_more = token.is_some();
        if token.is_none() || listed.rows.len() >= limit {
            break;
        }
    }
    Ok(listed)
}

fn text(node: &Node<'_, '_>) -> String {
    node.text().to_owned()
}

fn row(object: &Object<'_, '_>) -> Read<[String; 6]> {
    let owner = object.need_text("owner")?;
    let attempts = object.need("attempts", "a number", |node| node.int32())?;
    Ok([
        object.need_text("id")?,
        object.need_text("state")?,
        object.need_text("agent")?,
        object.text("endUser")?.map_or(owner.clone(), |user| format!("{owner} for {user}")),
        object.need_text("statusAt")?,
        counted(usize::try_from(attempts).unwrap_or(0), "attempt", "attempts"),
    ])
}
