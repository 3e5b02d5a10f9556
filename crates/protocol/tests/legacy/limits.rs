//! What an older dialect preserves of a value: the expectations these tests check.
//!
//! 1.0 preserves everything. Absent and empty metadata mean the same in every dialect, so both are `None`
//! here.

use a2ad_protocol::{
    Artifact, CancelTask, Content, Dialect, Event, GetExtendedCard, GetTask, Json, ListTasks, Message,
    Operation, Part, PushConfig, PushConfigQuery, PushConfigRef, Reply, SendMessage, SubscribeToTask, Task,
    TaskPage,
    model::{ArtifactUpdate, StatusUpdate},
};

use crate::values;

pub(crate) fn operation(dialect: Dialect, operation: Operation) -> Operation {
    match values::with_skill(operation) {
        Operation::SendMessage(req) => Operation::SendMessage(send(dialect, req)),
        Operation::SendStreamingMessage(req) => Operation::SendStreamingMessage(send(dialect, req)),
        Operation::GetTask(req) => Operation::GetTask(GetTask {
            history_length: history_length(dialect, req.history_length),
            tenant: tenant(dialect, req.tenant),
            ..req
        }),
        Operation::ListTasks(req) => Operation::ListTasks(ListTasks {
            history_length: history_length(dialect, req.history_length),
            tenant: tenant(dialect, req.tenant),
            ..req
        }),
        Operation::CancelTask(req) => {
            Operation::CancelTask(CancelTask { tenant: tenant(dialect, req.tenant), ..req })
        }
        Operation::SubscribeToTask(req) => {
            Operation::SubscribeToTask(SubscribeToTask { tenant: tenant(dialect, req.tenant), ..req })
        }
        Operation::CreatePushConfig(config) => Operation::CreatePushConfig(push(dialect, config)),
        Operation::GetPushConfig(req) => Operation::GetPushConfig(PushConfigRef {
            id: req.id.filter(|_| dialect != Dialect::Draft),
            tenant: tenant(dialect, req.tenant),
            ..req
        }),
        Operation::DeletePushConfig(req) => {
            Operation::DeletePushConfig(PushConfigRef { tenant: tenant(dialect, req.tenant), ..req })
        }
        Operation::ListPushConfigs(req) => Operation::ListPushConfigs(PushConfigQuery {
            page_size: req.page_size.filter(|_| dialect == Dialect::V1),
            page_token: req.page_token.filter(|_| dialect == Dialect::V1),
            tenant: tenant(dialect, req.tenant),
            ..req
        }),
        Operation::GetExtendedCard(req) => {
            Operation::GetExtendedCard(GetExtendedCard { tenant: tenant(dialect, req.tenant) })
        }
    }
}

pub(crate) fn event(dialect: Dialect, event: Event) -> Event {
    match event {
        Event::Task(value) => Event::Task(task(dialect, value)),
        Event::Message(value) => Event::Message(message(dialect, value)),
        Event::Status(update) => Event::Status(StatusUpdate {
            context_id: if dialect == Dialect::Draft { "".into() } else { update.context_id },
            status: status(dialect, update.status),
            metadata: normalised(update.metadata),
            ..update
        }),
        Event::Artifact(update) => Event::Artifact(ArtifactUpdate {
            context_id: if dialect == Dialect::Draft { "".into() } else { update.context_id },
            artifact: artifact(dialect, 0, update.artifact),
            metadata: normalised(update.metadata),
            ..update
        }),
    }
}

pub(crate) fn reply(dialect: Dialect, reply: Reply) -> Reply {
    match reply {
        Reply::SentTask(value) => Reply::SentTask(task(dialect, value)),
        Reply::SentMessage(value) => Reply::SentMessage(message(dialect, value)),
        Reply::Task(value) => Reply::Task(task(dialect, value)),
        Reply::Tasks(page) => Reply::Tasks(TaskPage {
            tasks: page.tasks.into_iter().map(|value| task(dialect, value)).collect(),
            ..page
        }),
        Reply::PushConfig(config) => Reply::PushConfig(push(dialect, config)),
        Reply::PushConfigs(mut page) => {
            page.configs = page.configs.into_iter().map(|config| push(dialect, config)).collect();
            page.next_page_token = page.next_page_token.filter(|_| dialect == Dialect::V1);
            Reply::PushConfigs(page)
        }
        other @ (Reply::Deleted | Reply::Card(_)) => other,
    }
}

pub(crate) fn task(dialect: Dialect, task: Task) -> Task {
    Task {
        status: status(dialect, task.status),
        artifacts: (0..).zip(task.artifacts).map(|(at, value)| artifact(dialect, at, value)).collect(),
        history: task.history.into_iter().map(|item| message(dialect, item)).collect(),
        metadata: normalised(task.metadata),
        created_at: None,
        ..task
    }
}

/// A message in a task or an update. In the draft the enclosing object has the ids, not the message.
pub(crate) fn message(dialect: Dialect, message: Message) -> Message {
    let draft = dialect == Dialect::Draft;
    Message {
        context_id: message.context_id.filter(|_| !draft),
        task_id: message.task_id.filter(|_| !draft),
        parts: message.parts.into_iter().map(part).collect(),
        metadata: normalised(message.metadata),
        ..message
    }
}

fn send(dialect: Dialect, req: SendMessage) -> SendMessage {
    let place = (req.message.context_id.clone(), req.message.task_id.clone());
    let config = req.push.map(|config| PushConfig {
        id: if dialect == Dialect::Draft { place.1.as_ref().map(|id| id.as_str().into()) } else { config.id },
        task_id: config.task_id.filter(|_| dialect == Dialect::V1),
        tenant: tenant(dialect, config.tenant),
        ..config
    });
    SendMessage {
        message: Message { context_id: place.0, task_id: place.1, ..message(dialect, req.message) },
        history_length: history_length(dialect, req.history_length),
        push: config,
        tenant: tenant(dialect, req.tenant),
        ..req
    }
}

fn tenant(dialect: Dialect, tenant: Option<String>) -> Option<String> {
    tenant.filter(|_| dialect == Dialect::V1)
}

/// The draft can express any number and uses the largest for "all"; 0.3 cannot express "none".
fn history_length(dialect: Dialect, length: Option<u32>) -> Option<u32> {
    match dialect {
        Dialect::Draft => length.filter(|length| *length != i32::MAX.unsigned_abs()),
        Dialect::V03 => length.map(|length| length.max(1)),
        Dialect::V03Proto | Dialect::V1 => length,
    }
}

/// In the draft the id of a task's config is the task id.
fn push(dialect: Dialect, config: PushConfig) -> PushConfig {
    let task = config.task_id.clone();
    let id = if dialect == Dialect::Draft { task.map(|task| task.as_str().into()) } else { config.id };
    PushConfig { id, tenant: tenant(dialect, config.tenant), ..config }
}

fn status(dialect: Dialect, status: a2ad_protocol::TaskStatus) -> a2ad_protocol::TaskStatus {
    a2ad_protocol::TaskStatus { message: status.message.map(|item| message(dialect, item)), ..status }
}

/// The draft identifies an artifact by its index.
pub(crate) fn artifact(dialect: Dialect, at: usize, artifact: Artifact) -> Artifact {
    Artifact {
        id: if dialect == Dialect::Draft { format!("index-{at}").into() } else { artifact.id },
        parts: artifact.parts.into_iter().map(part).collect(),
        metadata: normalised(artifact.metadata),
        ..artifact
    }
}

fn part(part: Part) -> Part {
    let usual = match part.content {
        Content::Text(_) => Some("text/plain"),
        Content::Data(_) => Some("application/json"),
        Content::Raw(_) | Content::Url(_) => None,
    };
    Part {
        media_type: part.media_type.filter(|media_type| Some(media_type.as_str()) != usual),
        metadata: normalised(part.metadata),
        ..part
    }
}

fn normalised(metadata: Option<Json>) -> Option<Json> {
    metadata.filter(|metadata| metadata.as_str() != "{}")
}
