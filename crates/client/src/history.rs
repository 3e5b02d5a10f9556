//! No more history than was asked for. 0.3 cannot ask for none, and agents may not heed what they are asked.

use protocol::{Event, Operation, Reply, Task};

/// How many messages an operation asks for; `None` is all there are.
pub(crate) fn asked(operation: &Operation) -> Option<u32> {
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => req.history_length,
        Operation::GetTask(req) => req.history_length,
        Operation::ListTasks(req) => req.history_length,
        _ => None,
    }
}

/// An answer with the latest messages, as many as were asked for.
pub(crate) fn of_reply(mut reply: Reply, asked: Option<u32>) -> Reply {
    match &mut reply {
        Reply::SentTask(task) | Reply::Task(task) => cut(task, asked),
        Reply::Tasks(page) => page.tasks.iter_mut().for_each(|task| cut(task, asked)),
        _ => {}
    }
    reply
}

/// The same for an event.
pub(crate) fn of_event(mut event: Event, asked: Option<u32>) -> Event {
    if let Event::Task(task) = &mut event {
        cut(task, asked);
    }
    event
}

fn cut(task: &mut Task, asked: Option<u32>) {
    let Some(asked) = asked.and_then(|asked| usize::try_from(asked).ok()) else { return };
    task.history.drain(..task.history.len().saturating_sub(asked));
}
