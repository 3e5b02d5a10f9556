//! Every method of both services: its request, and the result of a valid request to an agent without webhooks and
//! without an extended card.

use super::case::{NO_PUSH, NOT_CANCELABLE, Reason, Service, TASK_NOT_FOUND, UNSUPPORTED};
use super::schema::{Field, Kind, content, may, need, rare};

pub(crate) struct Method {
    pub(crate) service: Service,
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    pub(crate) valid_outcome: ValidOutcome,
}

/// The result of a valid request.
#[derive(Clone, Copy)]
pub(crate) enum ValidOutcome {
    /// One message.
    Message,
    /// Several messages.
    Stream,
    Refused(Reason),
}

const fn v03(name: &'static str, fields: &'static [Field], valid_outcome: ValidOutcome) -> Method {
    Method { service: Service::V03, name, fields, valid_outcome }
}

const fn v1(name: &'static str, fields: &'static [Field], valid_outcome: ValidOutcome) -> Method {
    Method { service: Service::V1, name, fields, valid_outcome }
}

pub(crate) const METHODS: &[Method] = &[
    v03("SendMessage", V03_SEND, ValidOutcome::Message),
    v03("SendStreamingMessage", V03_SEND, ValidOutcome::Stream),
    v03("GetTask", &[V03_TASK, V03_HISTORY], ValidOutcome::Message),
    v03("CancelTask", &[V03_TASK], ValidOutcome::Refused(NOT_CANCELABLE)),
    v03("TaskSubscription", &[V03_TASK], ValidOutcome::Stream),
    v03("CreateTaskPushNotificationConfig", V03_PUSH_CREATE, ValidOutcome::Refused(NO_PUSH)),
    v03("GetTaskPushNotificationConfig", &[V03_PUSH_NAME], ValidOutcome::Refused(NO_PUSH)),
    v03("ListTaskPushNotificationConfig", V03_PUSH_LIST, ValidOutcome::Refused(NO_PUSH)),
    v03("DeleteTaskPushNotificationConfig", &[V03_PUSH_NAME], ValidOutcome::Refused(NO_PUSH)),
    v03("GetAgentCard", &[], ValidOutcome::Refused(UNSUPPORTED)),
    v1("SendMessage", V1_SEND, ValidOutcome::Message),
    v1("SendStreamingMessage", V1_SEND, ValidOutcome::Stream),
    v1("GetTask", &[TENANT, V1_TASK, may(3, "historyLength", Kind::Count(2))], ValidOutcome::Message),
    v1("ListTasks", V1_LIST, ValidOutcome::Message),
    v1(
        "CancelTask",
        &[TENANT, V1_TASK, may(3, "metadata", Kind::Object)],
        ValidOutcome::Refused(NOT_CANCELABLE),
    ),
    v1("SubscribeToTask", &[TENANT, V1_TASK], ValidOutcome::Refused(UNSUPPORTED)),
    v1("CreateTaskPushNotificationConfig", V1_PUSH_CREATE, ValidOutcome::Refused(NO_PUSH)),
    v1("GetTaskPushNotificationConfig", V1_PUSH_REF, ValidOutcome::Refused(NO_PUSH)),
    v1("ListTaskPushNotificationConfigs", V1_PUSH_LIST, ValidOutcome::Refused(NO_PUSH)),
    v1("GetExtendedAgentCard", &[TENANT], ValidOutcome::Refused(UNSUPPORTED)),
    v1("DeleteTaskPushNotificationConfig", V1_PUSH_REF, ValidOutcome::Refused(NO_PUSH)),
];

const ROLE: Field = need(4, "role", Kind::Enum { last: 2, zero: false });
const MESSAGE_ID: Field = need(1, "messageId", Kind::Name("$NEW"));
const CONTEXT: Field = may(2, "contextId", Kind::Name("$NEW"));
const OTHER_TASK: Field = rare(3, "taskId", Kind::Task(TASK_NOT_FOUND));
const MODES: Field = may(1, "acceptedOutputModes", Kind::Texts("text/plain"));

// 0.3.

const V03_TASK: Field = need(1, "name", Kind::TaskName(TASK_NOT_FOUND));
const V03_PARENT: Field = need(1, "parent", Kind::TaskName(NO_PUSH));
const V03_PUSH_NAME: Field = need(1, "name", Kind::ConfigName(NO_PUSH));
const V03_HISTORY: Field = may(2, "historyLength", Kind::Count(2));
const V03_METADATA: Field = may(4, "metadata", Kind::Object);
const V03_URI: &[Field] = &[
    content(1, "fileWithUri", Kind::Content("https://files.example/a.png")),
    may(3, "mimeType", Kind::Text("image/png")),
    may(4, "name", Kind::Text("a.png")),
];
const V03_BYTES: &[Field] = &[content(2, "fileWithBytes", Kind::Bytes)];
const V03_PARTS: &[&[Field]] = &[
    &[content(1, "text", Kind::Content("hi")), V03_METADATA],
    &[content(2, "file", Kind::Message(V03_URI))],
    &[content(2, "file", Kind::Message(V03_BYTES))],
    &[content(3, "data", Kind::Message(&[may(1, "data", Kind::Object)])), V03_METADATA],
];
const V03_MESSAGE: &[Field] = &[
    MESSAGE_ID,
    CONTEXT,
    OTHER_TASK,
    ROLE,
    need(5, "content", Kind::Parts(V03_PARTS)),
    may(6, "metadata", Kind::Object),
    may(7, "extensions", Kind::Texts("https://e.example/x")),
];
const V03_AUTHENTICATION: &[Field] =
    &[need(1, "schemes", Kind::Names("Bearer")), may(2, "credentials", Kind::Text("secret"))];
const V03_CONFIG: &[Field] = &[
    may(1, "id", Kind::Text("c-1")),
    need(2, "url", Kind::Url),
    may(3, "token", Kind::Text("secret")),
    may(4, "authentication", Kind::Message(V03_AUTHENTICATION)),
];
const V03_PUSH: Field =
    Field { always_refused: Some(NO_PUSH), ..rare(2, "pushNotification", Kind::Message(V03_CONFIG)) };
const V03_CONFIGURATION: &[Field] =
    &[MODES, V03_PUSH, may(3, "historyLength", Kind::Count(2)), may(4, "blocking", Kind::Flag)];
const V03_SEND: &[Field] = &[
    need(1, "message", Kind::Message(V03_MESSAGE)),
    may(2, "configuration", Kind::Message(V03_CONFIGURATION)),
    may(3, "metadata", Kind::RequestObject),
];
const V03_WRAPPED: &[Field] =
    &[rare(1, "name", Kind::OwnConfigName), need(2, "pushNotificationConfig", Kind::Message(V03_CONFIG))];
const V03_PUSH_CREATE: &[Field] =
    &[V03_PARENT, may(2, "configId", Kind::Text("c-1")), need(3, "config", Kind::Message(V03_WRAPPED))];
const V03_PUSH_LIST: &[Field] =
    &[V03_PARENT, may(2, "pageSize", Kind::Count(10)), rare(3, "pageToken", Kind::Text("x"))];

// 1.0.

const TENANT: Field = rare(1, "tenant", Kind::Tenant);
const V1_TASK: Field = need(2, "id", Kind::Task(TASK_NOT_FOUND));
const METADATA: Field = may(5, "metadata", Kind::Object);
const FILENAME: Field = may(6, "filename", Kind::Text("a.txt"));
const MEDIA_TYPE: Field = may(7, "mediaType", Kind::Text("text/plain"));
const V1_PARTS: &[&[Field]] = &[
    &[content(1, "text", Kind::Content("hi")), METADATA, FILENAME, MEDIA_TYPE],
    &[content(2, "raw", Kind::Bytes), MEDIA_TYPE],
    &[content(3, "url", Kind::Content("https://files.example/a.png"))],
    &[content(4, "data", Kind::Value), METADATA],
];
const V1_MESSAGE: &[Field] = &[
    MESSAGE_ID,
    CONTEXT,
    OTHER_TASK,
    ROLE,
    need(5, "parts", Kind::Parts(V1_PARTS)),
    may(6, "metadata", Kind::Object),
    may(7, "extensions", Kind::Texts("https://e.example/x")),
    may(8, "referenceTaskIds", Kind::Names("t-1")),
];
const V1_AUTHENTICATION: &[Field] =
    &[need(1, "scheme", Kind::NonEmpty("Bearer")), may(2, "credentials", Kind::Text("secret"))];
const V1_CONFIG: &[Field] = &[
    rare(1, "tenant", Kind::Text("default")),
    may(2, "id", Kind::Text("c-1")),
    rare(3, "taskId", Kind::Text("$TASK")),
    need(4, "url", Kind::Url),
    may(5, "token", Kind::Text("secret")),
    may(6, "authentication", Kind::Message(V1_AUTHENTICATION)),
];
const V1_PUSH: Field = Field {
    always_refused: Some(NO_PUSH),
    ..rare(2, "taskPushNotificationConfig", Kind::Message(V1_CONFIG))
};
const V1_CONFIGURATION: &[Field] =
    &[MODES, V1_PUSH, may(3, "historyLength", Kind::Count(2)), rare(4, "returnImmediately", Kind::Flag)];
const V1_SEND: &[Field] = &[
    TENANT,
    need(2, "message", Kind::Message(V1_MESSAGE)),
    may(3, "configuration", Kind::Message(V1_CONFIGURATION)),
    may(4, "metadata", Kind::RequestObject),
];
const V1_LIST: &[Field] = &[
    TENANT,
    may(2, "contextId", Kind::Name("c-1")),
    may(3, "status", Kind::Enum { last: 8, zero: true }),
    may(4, "pageSize", Kind::PageSize),
    rare(5, "pageToken", Kind::Token),
    may(6, "historyLength", Kind::Count(2)),
    may(7, "statusTimestampAfter", Kind::Time),
    may(8, "includeArtifacts", Kind::Flag),
];
const V1_PUSH_TASK: Field = need(2, "taskId", Kind::Task(NO_PUSH));
const V1_PUSH_ID: Field = need(3, "id", Kind::Name("c-1"));
const V1_PUSH_CREATE: &[Field] = &[
    TENANT,
    may(2, "id", Kind::Name("c-1")),
    need(3, "taskId", Kind::Task(NO_PUSH)),
    need(4, "url", Kind::Url),
    may(5, "token", Kind::Text("secret")),
    may(6, "authentication", Kind::Message(V1_AUTHENTICATION)),
];
const V1_PUSH_REF: &[Field] = &[TENANT, V1_PUSH_TASK, V1_PUSH_ID];
const V1_PUSH_LIST: &[Field] = &[
    need(1, "taskId", Kind::Task(NO_PUSH)),
    may(2, "pageSize", Kind::Count(10)),
    rare(3, "pageToken", Kind::Text("x")),
    rare(4, "tenant", Kind::Tenant),
];
