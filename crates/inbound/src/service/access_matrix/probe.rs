//! Requests of the matrix: each operation in each binding, and the ids that it may name.

use http::Method;
use protocol::{
    CancelTask, ContextId, Dialect, GetExtendedCard, GetTask, ListTasks, Message, Operation, OperationKind,
    Part, PushConfig, PushConfigQuery, PushConfigRef, Role, SendMessage, SubscribeToTask, TaskId,
    grpc::Service, json::write::Writer, model::Secret, rest,
};
use testkit::http2::framed;

use super::world::{SKILL, State, Target};

/// A field of a request that names something of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// A task id that the server has made.
    Task,
    /// A task id that its owner has chosen.
    NamedTask,
    Context,
    NamedContext,
    /// A task that a message refers to.
    Reference,
    /// `Idempotency-Key`.
    Key,
    /// A message id that is a UUID, and so a key.
    MessageId,
    PageToken,
    /// A task id beside `Last-Event-ID`.
    LastEvent,
    /// A task id that the server has made, beside the id of a webhook.
    PushTask,
    /// A task id that its owner has chosen, beside the id of a webhook.
    NamedPushTask,
    /// The id of a webhook, beside its task.
    PushConfig,
    /// The id of a webhook, beside a task of the asker.
    OwnTaskPushConfig,
    /// The token of a page of webhooks, beside a task of the asker.
    PushPageToken,
    /// A session of MCP.
    Session,
    /// A task id beside a signature.
    Signed,
    /// The id of an API key.
    ApiKey,
}

impl Field {
    /// Whether the owner's task needs a webhook.
    pub(super) fn is_of_webhook(self) -> bool {
        matches!(
            self,
            Self::PushTask
                | Self::NamedPushTask
                | Self::PushConfig
                | Self::OwnTaskPushConfig
                | Self::PushPageToken
        )
    }
}

/// The ids that an operation may name.
pub(super) fn fields(kind: OperationKind) -> &'static [Field] {
    match kind {
        OperationKind::SendMessage | OperationKind::SendStreamingMessage => &[
            Field::Task,
            Field::NamedTask,
            Field::Context,
            Field::NamedContext,
            Field::Reference,
            Field::Key,
            Field::MessageId,
            Field::PushTask,
            Field::NamedPushTask,
            Field::OwnTaskPushConfig,
        ],
        OperationKind::GetTask | OperationKind::CancelTask => &[Field::Task, Field::NamedTask],
        OperationKind::SubscribeToTask => &[Field::Task, Field::NamedTask, Field::LastEvent],
        OperationKind::ListTasks => &[Field::Context, Field::NamedContext, Field::PageToken],
        OperationKind::CreatePushConfig | OperationKind::GetPushConfig | OperationKind::DeletePushConfig => {
            &[Field::PushTask, Field::NamedPushTask, Field::PushConfig, Field::OwnTaskPushConfig]
        }
        OperationKind::ListPushConfigs => &[Field::PushTask, Field::NamedPushTask, Field::PushPageToken],
        OperationKind::GetExtendedCard => &[],
    }
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    pub(super) is_http2: bool,
}

/// How a request is written, and where it goes.
#[derive(Clone, Debug)]
pub(super) enum Wire {
    JsonRpc {
        path: String,
        dialect: Dialect,
    },
    Rest {
        prefix: String,
        dialect: Dialect,
    },
    /// To the agent in the metadata, or to the one that the tenant names.
    Grpc {
        service: Service,
        agent: Option<&'static str>,
    },
}

impl Wire {
    pub(super) fn dialect(&self) -> Dialect {
        match self {
            Self::JsonRpc { dialect, .. } | Self::Rest { dialect, .. } => *dialect,
            Self::Grpc { service, .. } => service.dialect(),
        }
    }

    /// Whether the binding has an operation.
    pub(super) fn has(&self, kind: OperationKind) -> bool {
        match self {
            Self::JsonRpc { dialect, .. } => dialect.method(kind).is_some(),
            Self::Rest { dialect, .. } => *dialect == Dialect::V1 || Service::V03.method(kind).is_some(),
            Self::Grpc { service, .. } => service.method(kind).is_some(),
        }
    }

    /// Whether the binding can name something in this field.
    pub(super) fn has_field(&self, field: Field) -> bool {
        match (field, self.dialect()) {
            // There a webhook has the id of its task.
            (Field::PushConfig | Field::OwnTaskPushConfig, Dialect::Draft) => false,
            // There the list of webhooks has one page.
            (Field::PushPageToken, Dialect::Draft | Dialect::V03) => false,
            _ => true,
        }
    }

    /// The request for an operation, which the binding must have.
    pub(super) fn probe(&self, operation: &Operation) -> Probe {
        let mut writer = Writer::new();
        match self {
            Self::JsonRpc { path, dialect } => {
                let method = dialect.method(operation.kind()).expect("the dialect has it");
                writer.object(|out| {
                    out.text("jsonrpc", "2.0");
                    out.key("id").int(1);
                    out.text("method", method);
                    dialect.encode_operation(out.key("params"), operation);
                });
                Probe::post(path, writer.finish()).with_header("a2a-version", dialect.version())
            }
            Self::Rest { prefix, dialect } => {
                let (method, path) = rest::target(*dialect, operation).expect("the dialect has it");
                if method == "POST" {
                    dialect.encode_request(&mut writer, operation);
                }
                let probe = Probe::post(&format!("{prefix}{path}"), writer.finish());
                Probe { method: method.parse().unwrap(), ..probe }
            }
            Self::Grpc { service, agent } => {
                let method = service.method(operation.kind()).expect("the service has it");
                let body = framed(&service.encode_operation(operation)).to_vec();
                let probe = Probe::post(&format!("/{}/{method}", service.name()), body);
                let probe =
                    probe.with_header("content-type", "application/grpc").with_header("te", "trailers");
                let probe = Probe { is_http2: true, ..probe };
                match agent {
                    Some(agent) => probe.with_header("a2a-agent", agent),
                    None => probe,
                }
            }
        }
    }
}

/// The operation that names an id in a field. `text` is the asker's own; `serial` makes its own ids unique.
pub(super) fn operation(
    kind: OperationKind,
    field: Field,
    id: &str,
    target: &Target,
    of: &Asker,
) -> Operation {
    let is = |one: Field| field == one;
    // A field that names no task needs one beside it.
    let task = TaskId::from(match field {
        Field::PushConfig => target.task.as_str(),
        Field::OwnTaskPushConfig | Field::PushPageToken => target.own_task.as_str(),
        _ => id,
    });
    let config = if is(Field::PushConfig) || is(Field::OwnTaskPushConfig) { id } else { &target.config };
    match kind {
        OperationKind::SendMessage => Operation::SendMessage(send(field, id, config, of)),
        OperationKind::SendStreamingMessage => Operation::SendStreamingMessage(send(field, id, config, of)),
        OperationKind::GetTask => Operation::GetTask(GetTask::from(task)),
        OperationKind::CancelTask => Operation::CancelTask(CancelTask::from(task)),
        OperationKind::SubscribeToTask => Operation::SubscribeToTask(SubscribeToTask::from(task)),
        OperationKind::ListTasks => Operation::ListTasks(ListTasks {
            context_id: (is(Field::Context) || is(Field::NamedContext))
                .then(|| ContextId::from(id.to_owned())),
            page_token: is(Field::PageToken).then(|| id.to_owned()),
            page_size: is(Field::PageToken).then_some(1),
            ..ListTasks::default()
        }),
        OperationKind::CreatePushConfig => {
            let config = webhook("asker.example", config, of.text);
            Operation::CreatePushConfig(PushConfig { task_id: Some(task), ..config })
        }
        OperationKind::GetPushConfig => Operation::GetPushConfig(PushConfigRef::from((task, config))),
        OperationKind::DeletePushConfig => Operation::DeletePushConfig(PushConfigRef::from((task, config))),
        OperationKind::ListPushConfigs => Operation::ListPushConfigs(PushConfigQuery {
            page_token: is(Field::PushPageToken).then(|| id.to_owned()),
            page_size: is(Field::PushPageToken).then_some(1),
            ..PushConfigQuery::from(task)
        }),
        OperationKind::GetExtendedCard => Operation::GetExtendedCard(GetExtendedCard::default()),
    }
}

/// Who sends a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) text: &'static str,
    pub(super) dialect: Dialect,
    pub(super) serial: u32,
}

/// A webhook with a text that belongs to one caller.
fn webhook(host: &str, id: &str, text: &str) -> PushConfig {
    PushConfig {
        id: Some(id.into()),
        token: Some(Secret::new(format!("token-{text}"))),
        ..PushConfig::new(format!("https://{host}/{text}"))
    }
}

fn send(field: Field, id: &str, config: &str, of: &Asker) -> SendMessage {
    let message_id = if field == Field::MessageId { id } else { "m" };
    let mut message = Message::new(message_id, Role::User, vec![Part::text(of.text)]);
    let mut push = None;
    match field {
        Field::Task | Field::NamedTask => message.task_id = Some(TaskId::from(id)),
        Field::Context | Field::NamedContext => message.context_id = Some(ContextId::from(id.to_owned())),
        Field::Reference => message.reference_task_ids = vec![TaskId::from(id)],
        Field::PushTask | Field::NamedPushTask => {
            message.task_id = Some(TaskId::from(id));
            push = Some(webhook("asker.example", config, of.text));
        }
        Field::OwnTaskPushConfig => push = Some(webhook("asker.example", config, of.text)),
        Field::Key
        | Field::MessageId
        | Field::PageToken
        | Field::LastEvent
        | Field::PushConfig
        | Field::PushPageToken
        | Field::Session
        | Field::ApiKey
        | Field::Signed => {}
    }
    // Clients of the draft choose the ids of their tasks.
    if of.dialect.rules().clients_choose_task_ids && message.task_id.is_none() {
        message.task_id = Some(TaskId::from(format!("own-{:06}", of.serial)));
    }
    SendMessage { push, ..SendMessage::new(message) }
}

/// An operation for another tenant than the default one. Over gRPC its name also selects the agent.
pub(super) fn with_tenant(mut operation: Operation, name: &str) -> Operation {
    let tenant = Some(name.to_owned());
    match &mut operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => req.tenant = tenant,
        Operation::GetTask(req) => req.tenant = tenant,
        Operation::ListTasks(req) => req.tenant = tenant,
        Operation::CancelTask(req) => req.tenant = tenant,
        Operation::SubscribeToTask(req) => req.tenant = tenant,
        Operation::CreatePushConfig(config) => config.tenant = tenant,
        Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => req.tenant = tenant,
        Operation::ListPushConfigs(req) => req.tenant = tenant,
        Operation::GetExtendedCard(req) => req.tenant = tenant,
    }
    operation
}

impl Probe {
    pub(super) fn post(target: &str, body: Vec<u8>) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { method: Method::POST, target: target.to_owned(), headers, body, is_http2: false }
    }

    pub(super) fn get_path(target: &str) -> Self {
        Self { method: Method::GET, headers: Vec::new(), ..Self::post(target, Vec::new()) }
    }

    /// With a header in place of any of the same name.
    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|header| header.0 != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    fn v1(agent: &str, operation: &Operation) -> Self {
        Wire::JsonRpc { path: format!("/a2a/{agent}"), dialect: Dialect::V1 }.probe(operation)
    }

    /// The owner's message; one to work for long is not waited for.
    pub(super) fn send(agent: &str, text: &str, message_id: &str, state: State) -> Self {
        let message = Message::new(message_id, Role::User, vec![Part::text(text)]);
        let return_immediately = state == State::Working;
        Self::v1(
            agent,
            &Operation::SendMessage(SendMessage { return_immediately, ..SendMessage::new(message) }),
        )
    }

    /// The owner's message, with ids of its own choice.
    pub(super) fn named_send(agent: &str, text: &str, serial: u32, state: State) -> Self {
        let message = Message {
            task_id: Some(TaskId::from(format!("job-{serial:06}"))),
            context_id: Some(ContextId::from(format!("chat-{serial:06}"))),
            ..Message::new("", Role::User, vec![Part::text(text)])
        };
        let return_immediately = state == State::Working;
        let send = SendMessage { return_immediately, ..SendMessage::new(message) };
        let wire = Wire::JsonRpc { path: format!("/a2a/{agent}"), dialect: Dialect::Draft };
        wire.probe(&Operation::SendMessage(send))
    }

    /// The owner's view of its task.
    pub(super) fn get(agent: &str, task: &str) -> Self {
        Self::v1(agent, &Operation::GetTask(GetTask::from(task)))
    }

    /// The owner's list, with a page of one task.
    pub(super) fn first_page(agent: &str) -> Self {
        Self::v1(agent, &Operation::ListTasks(ListTasks { page_size: Some(1), ..ListTasks::default() }))
    }

    /// The owner registers a webhook for its task.
    pub(super) fn register(agent: &str, task: &str, config: &str, text: &str) -> Self {
        let config = PushConfig { task_id: Some(task.into()), ..webhook("owner.example", config, text) };
        Self::v1(agent, &Operation::CreatePushConfig(config))
    }

    /// The owner's view of a webhook.
    pub(super) fn get_webhook(agent: &str, task: &str, config: &str) -> Self {
        Self::v1(agent, &Operation::GetPushConfig(PushConfigRef::from((task, config))))
    }

    /// The owner's view of the webhooks of its task, with pages of this size.
    pub(super) fn webhooks(agent: &str, task: &str, page_size: Option<u32>) -> Self {
        let query = PushConfigQuery { page_size, ..PushConfigQuery::from(task) };
        Self::v1(agent, &Operation::ListPushConfigs(query))
    }

    /// A message of MCP with this method and these parameters.
    pub(super) fn mcp(agent: &str, message: &str) -> Self {
        let probe = Self::post(&format!("/a2a/{agent}/mcp"), message.as_bytes().to_vec());
        probe.with_header("accept", "application/json, text/event-stream")
    }

    pub(super) fn mcp_initialize(agent: &str) -> Self {
        let client = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}"#;
        Self::mcp(agent, &format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{client}}}"#))
    }

    pub(super) fn mcp_initialized(agent: &str) -> Self {
        Self::mcp(agent, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
    }

    pub(super) fn mcp_call(agent: &str, text: &str) -> Self {
        let params = format!(r#"{{"name":"{SKILL}","arguments":{{"message":"say {text}"}}}}"#);
        Self::mcp(agent, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
    }

    /// A call of the newest revision of MCP, which has no sessions. `more` follows the other parameters.
    pub(super) fn mcp_newest(agent: &str, more: &str) -> Self {
        const NEWEST: &str = "2026-07-28";
        let meta = format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{NEWEST}","io.modelcontextprotocol/clientInfo":{{"name":"test","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}}}}}}"#
        );
        let params = format!(r#"{{"name":"{SKILL}",{more},{meta}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        Self::mcp(agent, &body)
            .with_header("mcp-protocol-version", NEWEST)
            .with_header("mcp-method", "tools/call")
            .with_header("mcp-name", SKILL)
    }
}
