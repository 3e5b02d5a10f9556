//! What the reply to an operation gets beside what the engine returns. Nothing of it is stored.

use engine::{CallResponse, Profile};
use protocol::{
    Content, Dialect, Json, Operation, Reply, Task,
    dialect::{Style, legacy::carrier},
    json::{
        read::{Node, Path},
        write::Writer,
    },
};

/// What is added to the reply of one operation.
pub(crate) struct ReplyAdditions {
    dialect: Dialect,
    style: Style,
    /// How many messages of the history the client wants.
    history_length: Option<u32>,
    /// The fields of the request that have no effect, as a JSON list.
    ignored: Option<String>,
}

impl ReplyAdditions {
    /// What an operation at an endpoint with this profile gets; most get nothing.
    pub(crate) fn of(profile: &Profile, dialect: Dialect, operation: &Operation) -> Option<Self> {
        let ignored = ignored_fields(operation);
        if ignored.is_none() && !profile.style.answer_in_status {
            return None;
        }
        let history_length = match operation {
            Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => req.history_length,
            Operation::GetTask(req) => req.history_length,
            Operation::ListTasks(req) => req.history_length,
            _ => None,
        };
        Some(Self { dialect, style: profile.style, history_length, ignored })
    }

    pub(crate) fn add_to(&self, answer: &mut CallResponse) {
        match answer {
            CallResponse::Reply(Reply::SentTask(task) | Reply::Task(task)) => self.add_to_task(task),
            CallResponse::Reply(Reply::Tasks(page)) => {
                page.tasks.iter_mut().for_each(|task| self.add_to_task(task));
            }
            CallResponse::Reply(Reply::SentMessage(message)) => self.add_ignored(&mut message.metadata),
            // A reply that is still to come gets its additions then.
            CallResponse::Reply(_) | CallResponse::Pending(_) => {}
            // The stream adds the rest to each of its frames.
            CallResponse::Stream(stream) => {
                if let Some(task) = stream.task_mut() {
                    self.add_ignored(&mut task.metadata);
                }
            }
            CallResponse::Noted(_, answer) => self.add_to(answer),
        }
    }

    fn add_to_task(&self, task: &mut Task) {
        self.dialect.project(task, self.style);
        let shown = self.history_length.map_or(usize::MAX, |length| length as usize);
        task.history.drain(..task.history.len().saturating_sub(shown));
        self.add_ignored(&mut task.metadata);
    }

    fn add_ignored(&self, metadata: &mut Option<Json>) {
        if let Some(ignored) = &self.ignored {
            *metadata = carrier::with_field(metadata.take(), "ignored", ignored);
        }
    }
}

/// The fields of a message that ask for structured output, which is not supported: in the metadata of a text, the schema
/// of the reply.
fn ignored_fields(operation: &Operation) -> Option<String> {
    let (Operation::SendMessage(req) | Operation::SendStreamingMessage(req)) = operation else { return None };
    let asks = |metadata: &Json| {
        let object = Node::new(metadata.as_raw(), &Path::Root).object();
        object.is_ok_and(|object| object.present("schema").is_some_and(|raw| raw.get().starts_with('{')))
    };
    let mut fields = Vec::new();
    for (at, part) in req.message.parts.iter().enumerate() {
        if let (Content::Text(_), Some(metadata)) = (&part.content, &part.metadata)
            && asks(metadata)
        {
            fields.push(format!("message.parts[{at}].metadata.schema"));
        }
    }
    if fields.is_empty() {
        return None;
    }
    let mut writer = Writer::new();
    writer.array(&fields, |writer, field| writer.string(field));
    String::from_utf8(writer.finish()).ok()
}
