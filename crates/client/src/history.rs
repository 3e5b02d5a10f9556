//! Truncates the history to the requested length. 0.3 cannot request an empty history, and some agents ignore
//! the requested length.

use protocol::{Event, Operation, Reply, Task};

/// The history length an operation requests; `None` means all.
pub(crate) fn requested(operation: &Operation) -> Option<u32> {
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => req.history_length,
        Operation::GetTask(req) => req.history_length,
        Operation::ListTasks(req) => req.history_length,
        _ => None,
    }
}

/// Keeps only the latest messages, as many as were requested.
pub(crate) fn of_reply(mut reply: Reply, requested: Option<u32>) -> Reply {
    match &mut reply {
        Reply::SentTask(task) | Reply::Task(task) => cut(task, requested),
        Reply::Tasks(page) => page.tasks.iter_mut().for_each(|task| cut(task, requested)),
        _ => {}
    }
    reply
}

/// Like [`of_reply`] for an event.
pub(crate) fn of_event(mut event: Event, requested: Option<u32>) -> Event {
    if let Event::Task(task) = &mut event {
        cut(task, requested);
    }
    event
}

fn cut(task: &mut Task, requested: Option<u32>) {
    let Some(requested) = requested.and_then(|requested| usize::try_from(requested).ok()) else { return };
    task.history.drain(..task.history.len().saturating_sub(requested));
}
