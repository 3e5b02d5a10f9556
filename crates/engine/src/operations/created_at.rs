//! When a task was created, for clients of platforms whose tasks say so. Read from the first entry of its log.

use protocol::{Event, Reply, Task};

use crate::{
    access::scope::Scope,
    engine::{CallResponse, EngineInner},
    error::Result,
};

/// Adds the time to each task of a reply.
pub(crate) async fn add(engine: &EngineInner, scope: &Scope, response: &mut CallResponse) -> Result<()> {
    let mut response = response;
    while let CallResponse::Noted(_, inner) = response {
        response = inner;
    }
    let CallResponse::Reply(reply) = response else { return Ok(()) };
    let tasks = match reply {
        Reply::SentTask(task) | Reply::Task(task) => std::slice::from_mut(task),
        Reply::Tasks(page) => page.tasks.as_mut_slice(),
        Reply::SentMessage(_)
        | Reply::PushConfig(_)
        | Reply::PushConfigs(_)
        | Reply::Deleted
        | Reply::Card(_) => &mut [],
    };
    for task in tasks {
        add_to(engine, scope, task).await?;
    }
    Ok(())
}

/// A task that is purged meanwhile keeps none.
async fn add_to(engine: &EngineInner, scope: &Scope, task: &mut Task) -> Result<()> {
    let Some(row) = engine.store.row(scope, engine.lookup(&task.id)).await? else { return Ok(()) };
    let first = engine.store.entries(scope, row.no, 0, 1).await?;
    if let Some((_, entry)) = first.first()
        && let Event::Status(update) = entry.event()?
    {
        task.created_at = update.status.timestamp;
    }
    Ok(())
}
