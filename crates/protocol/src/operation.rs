//! The operations of A2A 3.1 as values: decoded requests and their replies.

use crate::{
    AgentCard, ConfigId, ContextId, Json, Message, Part, PushConfig, Role, Task, TaskId, TaskState,
    Timestamp, Violation,
    json::read::{MAX_TEXT_BYTES, Node, Object, Path, Read},
};

/// A decoded request.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Send a message and wait for the result.
    SendMessage(SendMessage),
    /// Send a message and stream the task's events.
    SendStreamingMessage(SendMessage),
    /// Read one task.
    GetTask(GetTask),
    /// Read tasks page by page.
    ListTasks(ListTasks),
    /// Cancel a task.
    CancelTask(CancelTask),
    /// Stream the events of an existing task.
    SubscribeToTask(SubscribeToTask),
    /// Register a webhook.
    CreatePushConfig(PushConfig),
    /// Read one webhook.
    GetPushConfig(PushConfigRef),
    /// List the webhooks of a task.
    ListPushConfigs(PushConfigQuery),
    /// Remove a webhook.
    DeletePushConfig(PushConfigRef),
    /// Read the card shown to authenticated callers.
    GetExtendedCard(GetExtendedCard),
}

/// The operations without their parameters, for tables.
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

/// Maximum length in bytes of an id chosen by a client: ids are stored, indexed and echoed.
pub const MAX_ID_BYTES: usize = 1_024;

impl Operation {
    /// Checks the length of every client-chosen id; `named` maps a 1.0 field name to the dialect's field
    /// name.
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

    /// The tenant named in the request.
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

/// Reads the metadata of a request. A `skillId` in it is limited in length because it is used as a lookup
/// key.
pub fn decode_metadata(object: &Object<'_, '_>) -> Read<Option<Json>> {
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

/// Parameters of both send operations.
#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    /// The client's message.
    pub message: Message,
    /// Media types the client accepts; empty means any.
    pub accepted_output_modes: Vec<String>,
    /// Maximum number of history messages in the response; `None` means all.
    pub history_length: Option<u32>,
    /// Respond as soon as the message is stored instead of waiting for the result.
    pub return_immediately: bool,
    /// A webhook to register for the task.
    pub push: Option<PushConfig>,
    /// A JSON object about the request.
    pub metadata: Option<Json>,
    /// The id of the skill the client selects.
    pub skill: Option<String>,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

impl SendMessage {
    /// A send request with this message and no options.
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

    /// Sends the message to a task instead of starting a new one.
    #[must_use]
    pub fn to_task(mut self, id: impl Into<TaskId>) -> Self {
        self.message.task_id = Some(id.into());
        self
    }

    /// The metadata including the selected skill as `skillId`. Strict servers reject members that the
    /// specification does not define, so the skill is carried here.
    pub fn metadata_with_skill(&self) -> Option<Json> {
        let Some(skill) = &self.skill else { return self.metadata.clone() };
        let quoted = serde_json::to_string(skill).expect("a string can always be written to memory");
        let named = Json::parse(&format!(r#"{{"skillId":{quoted}}}"#)).expect("this is JSON");
        match &self.metadata {
            // Merging can exceed the size limit; the metadata is then sent without the skill.
            Some(metadata) => Json::merge_objects(metadata, &named).or_else(|| self.metadata.clone()),
            None => Some(named),
        }
    }

    /// The skill the client selects: the explicit field, else `skillId` of the metadata.
    pub fn requested_skill(&self) -> Option<String> {
        let in_metadata = || {
            let metadata = self.metadata.as_ref()?;
            Node::new(metadata.as_raw(), &Path::Root).object().ok()?.text("skillId").ok()?
        };
        self.skill.clone().or_else(in_metadata)
    }
}

/// A send request with no options.
impl From<Message> for SendMessage {
    fn from(message: Message) -> Self {
        Self::new(message)
    }
}

/// A text message of the user. Its id is empty: the client that sends it assigns one.
impl From<String> for SendMessage {
    fn from(text: String) -> Self {
        Self::new(Message::new("", Role::User, vec![Part::text(text)]))
    }
}

/// A text message of the user. Its id is empty: the client that sends it assigns one.
impl From<&str> for SendMessage {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// A text message of the user. Its id is empty: the client that sends it assigns one.
impl From<&String> for SendMessage {
    fn from(text: &String) -> Self {
        Self::from(text.clone())
    }
}

/// Parameters of the get operation.
#[derive(Clone, Debug, PartialEq)]
pub struct GetTask {
    /// The task to read.
    pub id: TaskId,
    /// Maximum number of history messages in the response; `None` means all.
    pub history_length: Option<u32>,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// Reads this task with its whole history.
impl<T: Into<TaskId>> From<T> for GetTask {
    fn from(id: T) -> Self {
        Self { id: id.into(), history_length: None, tenant: None }
    }
}

/// Parameters of the list operation. An absent filter matches everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListTasks {
    /// Only tasks of this context.
    pub context_id: Option<ContextId>,
    /// Only tasks in this state.
    pub status: Option<TaskState>,
    /// Tasks per page, 1 to 100.
    pub page_size: Option<u32>,
    /// Pagination cursor: the `next_page_token` of the previous page.
    pub page_token: Option<String>,
    /// Maximum number of history messages per task; `None` means all.
    pub history_length: Option<u32>,
    /// Only tasks whose status timestamp is this or later.
    pub status_timestamp_after: Option<Timestamp>,
    /// Include artifacts in the response.
    pub include_artifacts: bool,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// Parameters of the cancel operation.
#[derive(Clone, Debug, PartialEq)]
pub struct CancelTask {
    /// The task to cancel.
    pub id: TaskId,
    /// A JSON object about the request.
    pub metadata: Option<Json>,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// Cancels this task.
impl<T: Into<TaskId>> From<T> for CancelTask {
    fn from(id: T) -> Self {
        Self { id: id.into(), metadata: None, tenant: None }
    }
}

/// Parameters of the subscribe operation.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscribeToTask {
    /// The task to follow.
    pub id: TaskId,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// Follows this task.
impl<T: Into<TaskId>> From<T> for SubscribeToTask {
    fn from(id: T) -> Self {
        Self { id: id.into(), tenant: None }
    }
}

/// Identifies one webhook of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfigRef {
    /// The task the webhook belongs to.
    pub task_id: TaskId,
    /// The webhook; `None` means the task's only or oldest one.
    pub id: Option<ConfigId>,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// The webhook with this id of this task.
impl<T: Into<TaskId>, C: Into<ConfigId>> From<(T, C)> for PushConfigRef {
    fn from((task_id, id): (T, C)) -> Self {
        Self { task_id: task_id.into(), id: Some(id.into()), tenant: None }
    }
}

/// Parameters of listing a task's webhooks.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfigQuery {
    /// The task whose webhooks are listed.
    pub task_id: TaskId,
    /// Configs per page.
    pub page_size: Option<u32>,
    /// Pagination cursor: the `next_page_token` of the previous page.
    pub page_token: Option<String>,
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// The first page of the webhooks of this task.
impl<T: Into<TaskId>> From<T> for PushConfigQuery {
    fn from(id: T) -> Self {
        Self { task_id: id.into(), page_size: None, page_token: None, tenant: None }
    }
}

/// Parameters of the extended card operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetExtendedCard {
    /// The tenant named in the body.
    pub tenant: Option<String>,
}

/// The result of an operation that does not stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Result of a send: a task.
    SentTask(Task),
    /// Result of a send: a direct message without a task.
    SentMessage(Message),
    /// Result of get and cancel.
    Task(Task),
    /// Result of list.
    Tasks(TaskPage),
    /// Result of creating or reading a webhook.
    PushConfig(PushConfig),
    /// Result of listing webhooks.
    PushConfigs(PushConfigPage),
    /// Result of deleting a webhook.
    Deleted,
    /// Result of reading the extended card.
    Card(Box<AgentCard>),
}

/// One page of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPage {
    /// Ordered by status timestamp, newest first.
    pub tasks: Vec<Task>,
    /// Pagination cursor of the next page; `None` on the last page.
    pub next_page_token: Option<String>,
    /// The page size used.
    pub page_size: u32,
    /// Number of tasks that match the filter, over all pages.
    pub total_size: u64,
    /// Whether each task includes its artifacts member, even an empty one.
    pub with_artifacts: bool,
}

/// One page of webhooks.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfigPage {
    /// The webhooks of this page.
    pub configs: Vec<PushConfig>,
    /// Pagination cursor of the next page; `None` on the last page.
    pub next_page_token: Option<String>,
}
