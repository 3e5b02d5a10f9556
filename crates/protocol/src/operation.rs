//! What a client can ask for, and what it gets: one value per operation of A2A 3.1.

use crate::{
    AgentCard, ConfigId, ContextId, Json, Message, PushConfig, Task, TaskId, TaskState, Timestamp, Violation,
    json::read::{MAX_TEXT_BYTES, Node, Object, Path, Read},
};

/// A decoded request.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Say something and get the outcome.
    SendMessage(SendMessage),
    /// Say something and watch what becomes of it.
    SendStreamingMessage(SendMessage),
    /// Read one task.
    GetTask(GetTask),
    /// Read many tasks, page by page.
    ListTasks(ListTasks),
    /// End a task.
    CancelTask(CancelTask),
    /// Watch a task.
    SubscribeToTask(SubscribeToTask),
    /// Register a webhook.
    CreatePushConfig(PushConfig),
    /// Read one webhook.
    GetPushConfig(PushConfigRef),
    /// Read the webhooks of a task.
    ListPushConfigs(PushConfigQuery),
    /// Remove a webhook.
    DeletePushConfig(PushConfigRef),
    /// Read the card shown to known callers.
    GetExtendedCard(GetExtendedCard),
}

/// The operations by name, for tables that list them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// See [`Operation::SendMessage`].
    SendMessage,
    /// See [`Operation::SendStreamingMessage`].
    SendStreamingMessage,
    /// See [`Operation::GetTask`].
    GetTask,
    /// See [`Operation::ListTasks`].
    ListTasks,
    /// See [`Operation::CancelTask`].
    CancelTask,
    /// See [`Operation::SubscribeToTask`].
    SubscribeToTask,
    /// See [`Operation::CreatePushConfig`].
    CreatePushConfig,
    /// See [`Operation::GetPushConfig`].
    GetPushConfig,
    /// See [`Operation::ListPushConfigs`].
    ListPushConfigs,
    /// See [`Operation::DeletePushConfig`].
    DeletePushConfig,
    /// See [`Operation::GetExtendedCard`].
    GetExtendedCard,
}

/// How many bytes a client's name for something may have: it is kept, looked up and given back.
pub const MAX_ID_BYTES: usize = 1_024;

impl Operation {
    /// Whether every name in it is of a size that can be kept; `named` says how the dialect calls a field.
    pub fn check_names(&self, named: impl Fn(&'static str) -> &'static str) -> Result<(), Violation> {
        let check = |field: &'static str, name: Option<&str>| match name {
            Some(name) if name.len() > MAX_ID_BYTES => {
                Err(Violation::new(named(field), format_args!("expected at most {MAX_ID_BYTES} bytes")))
            }
            _ => Ok(()),
        };
        match self {
            Self::SendMessage(SendMessage { message, .. })
            | Self::SendStreamingMessage(SendMessage { message, .. }) => {
                check("message.messageId", Some(message.id.as_str()))?;
                check("message.contextId", message.context_id.as_ref().map(ContextId::as_str))?;
                check("message.taskId", message.task_id.as_ref().map(TaskId::as_str))?;
                let mut others = message.reference_task_ids.iter();
                others.try_for_each(|id| check("message.referenceTaskIds", Some(id.as_str())))
            }
            Self::GetTask(GetTask { id, .. })
            | Self::CancelTask(CancelTask { id, .. })
            | Self::SubscribeToTask(SubscribeToTask { id, .. }) => check("id", Some(id.as_str())),
            Self::ListTasks(req) => {
                check("contextId", req.context_id.as_ref().map(ContextId::as_str))?;
                check("pageToken", req.page_token.as_deref())
            }
            Self::CreatePushConfig(req) => {
                check("taskId", req.task_id.as_ref().map(TaskId::as_str))?;
                check("id", req.id.as_ref().map(ConfigId::as_str))
            }
            Self::GetPushConfig(req) | Self::DeletePushConfig(req) => {
                check("id", req.id.as_ref().map(ConfigId::as_str))?;
                check("taskId", Some(req.task_id.as_str()))
            }
            Self::ListPushConfigs(req) => check("taskId", Some(req.task_id.as_str())),
            Self::GetExtendedCard(_) => Ok(()),
        }
    }

    /// The tenant it names.
    pub fn tenant(&self) -> Option<&str> {
        let tenant = match self {
            Self::SendMessage(req) | Self::SendStreamingMessage(req) => &req.tenant,
            Self::GetTask(req) => &req.tenant,
            Self::ListTasks(req) => &req.tenant,
            Self::CancelTask(req) => &req.tenant,
            Self::SubscribeToTask(req) => &req.tenant,
            Self::CreatePushConfig(config) => &config.tenant,
            Self::GetPushConfig(req) | Self::DeletePushConfig(req) => &req.tenant,
            Self::ListPushConfigs(req) => &req.tenant,
            Self::GetExtendedCard(req) => &req.tenant,
        };
        tenant.as_deref()
    }

    /// Which operation this is.
    pub fn kind(&self) -> OperationKind {
        match self {
            Self::SendMessage(_) => OperationKind::SendMessage,
            Self::SendStreamingMessage(_) => OperationKind::SendStreamingMessage,
            Self::GetTask(_) => OperationKind::GetTask,
            Self::ListTasks(_) => OperationKind::ListTasks,
            Self::CancelTask(_) => OperationKind::CancelTask,
            Self::SubscribeToTask(_) => OperationKind::SubscribeToTask,
            Self::CreatePushConfig(_) => OperationKind::CreatePushConfig,
            Self::GetPushConfig(_) => OperationKind::GetPushConfig,
            Self::ListPushConfigs(_) => OperationKind::ListPushConfigs,
            Self::DeletePushConfig(_) => OperationKind::DeletePushConfig,
            Self::GetExtendedCard(_) => OperationKind::GetExtendedCard,
        }
    }
}

/// Reads what is said about a request. The skill that it asks for must be short enough to be looked up.
pub(crate) fn decode_metadata(object: &Object<'_, '_>) -> Read<Option<Json>> {
    object.maybe("metadata", |node| {
        if node.text().len() > MAX_TEXT_BYTES
            && let Ok(object) = node.object()
        {
            object.maybe("skillId", |skill| match skill.text().len() {
                ..=MAX_TEXT_BYTES => Ok(()),
                _ => Err(skill.expected(format_args!("at most {MAX_TEXT_BYTES} bytes"))),
            })?;
        }
        node.any_object()
    })
}

/// Parameters of both sends.
#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    /// What is said.
    pub message: Message,
    /// Media types the client can take; empty means any.
    pub accepted_output_modes: Vec<String>,
    /// How much history the answer carries; `None` is all of it.
    pub history_length: Option<u32>,
    /// Answer as soon as the message is recorded.
    pub return_immediately: bool,
    /// A webhook to register with the task.
    pub push: Option<PushConfig>,
    /// A JSON object about the request.
    pub metadata: Option<Json>,
    /// The skill the client asks for by id.
    pub skill: Option<String>,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

impl SendMessage {
    /// A message and nothing said about its answer.
    pub fn new(message: Message) -> Self {
        Self {
            message,
            accepted_output_modes: Vec::new(),
            history_length: None,
            return_immediately: false,
            push: None,
            metadata: None,
            skill: None,
            tenant: None,
        }
    }

    /// The metadata that names the skill too. Strict servers refuse members that the specification does not have, so a skill
    /// is asked for here.
    pub fn metadata_with_skill(&self) -> Option<Json> {
        let Some(skill) = &self.skill else { return self.metadata.clone() };
        let quoted = serde_json::to_string(skill).expect("a string can always be written to memory");
        let named = Json::parse(&format!(r#"{{"skillId":{quoted}}}"#)).expect("this is JSON");
        match &self.metadata {
            // Metadata that is full already goes as it is.
            Some(metadata) => Json::merge_objects(metadata, &named).or_else(|| self.metadata.clone()),
            None => Some(named),
        }
    }

    /// The skill the client asks for, wherever it says so: by itself or as `skillId` of the metadata.
    pub fn asked_skill(&self) -> Option<String> {
        let in_metadata = || {
            let metadata = self.metadata.as_ref()?;
            Node::new(metadata.as_raw(), &Path::Root).object().ok()?.text("skillId").ok()?
        };
        self.skill.clone().or_else(in_metadata)
    }
}

/// Parameters of get.
#[derive(Clone, Debug, PartialEq)]
pub struct GetTask {
    /// The task.
    pub id: TaskId,
    /// How much history the answer carries; `None` is all of it.
    pub history_length: Option<u32>,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// Parameters of list. Absent filters match everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListTasks {
    /// Only tasks of this conversation.
    pub context_id: Option<ContextId>,
    /// Only tasks in this state.
    pub status: Option<TaskState>,
    /// Tasks a page, 1 to 100.
    pub page_size: Option<u32>,
    /// Where the page before ended.
    pub page_token: Option<String>,
    /// How much history each task carries; `None` is all of it.
    pub history_length: Option<u32>,
    /// Only tasks whose status is not older than this.
    pub status_timestamp_after: Option<Timestamp>,
    /// Show artifacts too.
    pub include_artifacts: bool,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// Parameters of cancel.
#[derive(Clone, Debug, PartialEq)]
pub struct CancelTask {
    /// The task.
    pub id: TaskId,
    /// A JSON object about the request.
    pub metadata: Option<Json>,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// Parameters of subscribe.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscribeToTask {
    /// The task.
    pub id: TaskId,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// Names one webhook of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfigRef {
    /// The task.
    pub task_id: TaskId,
    /// The webhook; without a name it is the task's only or oldest one.
    pub id: Option<ConfigId>,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// Parameters of listing the webhooks of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfigQuery {
    /// The task.
    pub task_id: TaskId,
    /// Configs a page.
    pub page_size: Option<u32>,
    /// Where the page before ended.
    pub page_token: Option<String>,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// Parameters of the extended card.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetExtendedCard {
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// The answer to an operation that does not stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A send that became work.
    SentTask(Task),
    /// A send that was answered outright.
    SentMessage(Message),
    /// Get and cancel.
    Task(Task),
    /// List.
    Tasks(TaskPage),
    /// Create and get of a webhook.
    PushConfig(PushConfig),
    /// List of webhooks.
    PushConfigs(PushConfigPage),
    /// Delete of a webhook.
    Deleted,
    /// The extended card.
    Card(Box<AgentCard>),
}

/// One page of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPage {
    /// The tasks, newest status first.
    pub tasks: Vec<Task>,
    /// Where the next page begins; `None` on the last one.
    pub next_page_token: Option<String>,
    /// The page size in effect.
    pub page_size: u32,
    /// How many tasks the filter matches.
    pub total_size: u64,
    /// Whether each task shows its artifacts, even when it has none.
    pub with_artifacts: bool,
}

/// One page of webhooks.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfigPage {
    /// The webhooks.
    pub configs: Vec<PushConfig>,
    /// Where the next page begins.
    pub next_page_token: Option<String>,
}
