//! A page of tasks. Only 1.0 defines one; where other dialects list tasks, the members are the same.

use crate::{
    Task, TaskPage,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

/// Writes a page whose tasks are written by `each`.
pub(crate) fn encode(writer: &mut Writer, page: &TaskPage, each: impl Fn(&mut Writer, &Task)) {
    writer.object(|writer| {
        writer.key("tasks").array(&page.tasks, each);
        writer.text("nextPageToken", page.next_page_token.as_deref().unwrap_or_default());
        writer.key("pageSize").int(i64::from(page.page_size));
        writer.key("totalSize").int(i64::try_from(page.total_size).unwrap_or(i64::MAX));
    });
}

/// Reads a page whose tasks are read by `each`.
pub(crate) fn decode(node: Node<'_, '_>, each: fn(Node<'_, '_>) -> Read<Task>) -> Read<TaskPage> {
    let object = node.object()?;
    let tasks = object.list("tasks", each)?;
    Ok(TaskPage {
        // The reply does not state whether artifacts were requested; any that are present are kept.
        with_artifacts: tasks.iter().any(|task| !task.artifacts.is_empty()),
        tasks,
        next_page_token: object.text("nextPageToken")?,
        page_size: object.count("pageSize")?.unwrap_or_default(),
        total_size: object.long_count("totalSize")?.unwrap_or_default(),
    })
}
