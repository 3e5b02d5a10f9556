//! Every JSON-RPC method of every generation, with the result of a valid request to an agent without webhooks and
//! without an extended card; and the members of the requests of all bindings.
//!
//! `$TASK` stands for a task that has ended, `$CONFIG` for a webhook configuration, `$NEW` for an unused name.

use super::AGENT;
use super::case::{Binding, Case, ValidOutcome};
use super::errors::{Dialect, ErrorRow, NO_PUSH, NO_TASK, NOT_CANCELABLE, UNSUPPORTED};
use super::schema::{EnumValues, Field, Kind, content, may, need, params, rare};

/// A method of JSON-RPC or gRPC.
pub(crate) struct Method {
    pub(crate) dialect: Dialect,
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    pub(crate) valid_outcome: ValidOutcome,
}

/// The id of every request, except those with an invalid id.
pub(crate) const ID: &str = r#""case-7""#;

impl Method {
    /// Whether the draft and 0.3 share the name.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.name, "tasks/get" | "tasks/cancel" | "tasks/resubscribe")
    }

    /// Whether a request may omit `"jsonrpc": "2.0"`.
    pub(crate) fn is_unversioned(&self) -> bool {
        self.dialect == Dialect::Draft || self.is_shared()
    }

    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.dialect.name(), self.name)
    }

    /// A request with these parameters.
    pub(crate) fn request(&self, params: &str) -> String {
        request(self.name, params)
    }

    /// A valid request.
    pub(crate) fn good(&self) -> Case {
        good(self.dialect, self.valid_outcome, self.request(&params(self.fields, None)))
    }
}

/// The request for a method of any name.
pub(crate) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{ID},"method":"{method}","params":{params}}}"#)
}

/// A valid request with this body.
pub(crate) fn good(dialect: Dialect, valid_outcome: ValidOutcome, body: impl Into<Vec<u8>>) -> Case {
    let headers = [("content-type", "application/json"), ("a2a-version", dialect.version())];
    Case::valid((Binding::JsonRpc, dialect), valid_outcome, format!("/a2a/{AGENT}"), &headers, body)
}

const fn draft(name: &'static str, fields: &'static [Field], valid_outcome: ValidOutcome) -> Method {
    Method { dialect: Dialect::Draft, name, fields, valid_outcome }
}

pub(crate) const fn v03(name: &'static str, fields: &'static [Field], outcome: ValidOutcome) -> Method {
    Method { dialect: Dialect::V03, ..draft(name, fields, outcome) }
}

pub(crate) const fn v1(name: &'static str, fields: &'static [Field], outcome: ValidOutcome) -> Method {
    Method { dialect: Dialect::V1, ..draft(name, fields, outcome) }
}

pub(crate) const METHODS: &[Method] = &[
    draft("tasks/send", DRAFT_SEND, ValidOutcome::Result),
    draft("tasks/sendSubscribe", DRAFT_SEND, ValidOutcome::Events),
    draft("tasks/get", &[DRAFT_TASK, HISTORY_LENGTH], ValidOutcome::Result),
    draft("tasks/cancel", &[DRAFT_TASK, METADATA], ValidOutcome::Refused(NOT_CANCELABLE)),
    draft("tasks/resubscribe", &[DRAFT_TASK], ValidOutcome::Events),
    draft("tasks/pushNotification/set", DRAFT_PUSH_SET, ValidOutcome::Refused(NO_PUSH)),
    draft("tasks/pushNotification/get", &[DRAFT_PUSH_TASK], ValidOutcome::Refused(NO_PUSH)),
    v03("message/send", V03_SEND, ValidOutcome::Result),
    v03("message/stream", V03_SEND, ValidOutcome::Events),
    v03("tasks/get", &[TASK, HISTORY_LENGTH], ValidOutcome::Result),
    v03("tasks/cancel", &[TASK, METADATA], ValidOutcome::Refused(NOT_CANCELABLE)),
    v03("tasks/resubscribe", &[TASK], ValidOutcome::Events),
    v03("tasks/list", V03_LIST, ValidOutcome::Result),
    v03("tasks/pushNotificationConfig/set", V03_PUSH_SET, ValidOutcome::Refused(NO_PUSH)),
    v03("tasks/pushNotificationConfig/get", V03_PUSH_GET, ValidOutcome::Refused(NO_PUSH)),
    v03("tasks/pushNotificationConfig/list", &[V03_PUSH_TASK], ValidOutcome::Refused(NO_PUSH)),
    v03("tasks/pushNotificationConfig/delete", V03_PUSH_DELETE, ValidOutcome::Refused(NO_PUSH)),
    v03("agent/getAuthenticatedExtendedCard", &[], ValidOutcome::Refused(UNSUPPORTED)),
    v1("SendMessage", V1_SEND, ValidOutcome::Result),
    v1("SendStreamingMessage", V1_SEND, ValidOutcome::Events),
    v1("GetTask", V1_GET, ValidOutcome::Result),
    v1("ListTasks", V1_LIST, ValidOutcome::Result),
    v1("CancelTask", V1_CANCEL, ValidOutcome::Refused(NOT_CANCELABLE)),
    v1("SubscribeToTask", V1_ID, ValidOutcome::Refused(UNSUPPORTED)),
    v1("CreateTaskPushNotificationConfig", V1_PUSH_CREATE, ValidOutcome::Refused(NO_PUSH)),
    v1("GetTaskPushNotificationConfig", V1_PUSH_REF, ValidOutcome::Refused(NO_PUSH)),
    v1("ListTaskPushNotificationConfigs", V1_PUSH_LIST, ValidOutcome::Refused(NO_PUSH)),
    v1("DeleteTaskPushNotificationConfig", V1_PUSH_REF, ValidOutcome::Refused(NO_PUSH)),
    v1("GetExtendedAgentCard", &[TENANT], ValidOutcome::Refused(UNSUPPORTED)),
];

const fn task(absent: &'static ErrorRow) -> Kind {
    Kind::Task { absent, digits: false }
}

/// A webhook in the configuration of a send: webhooks are off.
const fn push(name: &'static str, fields: &'static [Field]) -> Field {
    rare(name, Kind::Object(fields), "").at(2)
}

pub(crate) const METADATA: Field = may("metadata", Kind::Metadata, "");
pub(crate) const REQUEST_METADATA: Field = may("metadata", Kind::RequestMetadata, "");
pub(crate) const HISTORY_LENGTH: Field = may("historyLength", Kind::Count, "2");
pub(crate) const SKILL: Field = rare("skill", Kind::Skill, "echo");
pub(crate) const SKILL_ID: Field = rare("skillId", Kind::Skill, "echo");
pub(crate) const MODES: Field = may("acceptedOutputModes", Kind::Texts, "text/plain").at(1);
pub(crate) const URL: Field = need("url", Kind::Url, "https://hooks.example/a");
pub(crate) const TOKEN: Field = may("token", Kind::Text, "secret");
pub(crate) const CONFIG_ID: Field = may("id", Kind::Text, "c-1");
pub(crate) const PAGE_SIZE: Field = may("pageSize", Kind::Count, "10");
const CREDENTIALS: Field = may("credentials", Kind::Text, "secret").at(2);
const TASK: Field = need("id", task(NO_TASK), "$TASK").at(2);
const OTHER_TASK: Field = rare("taskId", task(NO_TASK), "$TASK").at(3);
const CONTEXT: Field = may("contextId", Kind::Name, "$NEW").at(2);
const MESSAGE_ID: Field = need("messageId", Kind::Name, "m-1").at(1);
const REFERENCES: Field = may("referenceTaskIds", Kind::Names, "t-1").at(8);
const EXTENSIONS: Field = may("extensions", Kind::Texts, "https://e.example/x").at(7);
const FILE_URI: Field = content("uri", Kind::Text, "https://files.example/a.png");
const MIME_TYPE: Field = may("mimeType", Kind::Text, "image/png").at(3);
const FILE_NAME: Field = may("name", Kind::Text, "a.png").at(4);

// The two generations before 1.0.

/// Values with one spelling each; these are wrong ones.
const fn exact(wrong: &'static [&'static str]) -> EnumValues {
    EnumValues { last: 0, accepted: &[], wrong }
}

#[rustfmt::skip]
const ROLE: &EnumValues = &exact(&[
    r#""User""#, r#""USER""#, r#""system""#, r#""assistant""#, r#""ROLE_USER""#, r#""user ""#,
    r#""us\u0435r""#, "9223372036854775808",
]);
#[rustfmt::skip]
const TAG: &EnumValues = &exact(&[
    r#""Text""#, r#""image""#, r#""text ""#, r#""message""#, r#""\u0000""#, "9223372036854775808",
]);
const MESSAGE_KIND: &EnumValues =
    &exact(&[r#""task""#, r#""Message""#, r#""message ""#, "9223372036854775808"]);

const TEXT: Field = need("text", Kind::Text, "hi");
const DATA: Field = need("data", Kind::Data, "");
const BYTES: &[Field] = &[content("bytes", Kind::Base64, "aGk="), MIME_TYPE, FILE_NAME];
const FILE_OF_BYTES: Field = need("file", Kind::Object(BYTES), "");
const FILE_OF_URI: Field = need("file", Kind::Object(&[FILE_URI]), "");
const AUTHENTICATION: &[Field] = &[need("schemes", Kind::Schemes, "Bearer").at(1), CREDENTIALS];

// The first public draft.

const DRAFT_PARTS: &[&[Field]] = &[
    &[may("type", Kind::Enum(TAG), "text"), TEXT, METADATA],
    &[may("type", Kind::Enum(TAG), "data"), DATA],
    &[may("type", Kind::Enum(TAG), "file"), FILE_OF_BYTES],
    &[may("type", Kind::Enum(TAG), "file"), FILE_OF_URI],
];
const DRAFT_MESSAGE: &[Field] = &[
    may("role", Kind::Enum(ROLE), "user"),
    need("parts", Kind::Parts(DRAFT_PARTS), ""),
    rare("messageId", Kind::Text, "m-1"),
    rare("conversationId", Kind::Text, "c-1"),
    METADATA,
];
const DRAFT_CONFIG: &[Field] = &[URL, TOKEN, may("authentication", Kind::Object(AUTHENTICATION), "")];
const DRAFT_SEND: &[Field] = &[
    need("id", Kind::OwnTask, "$NEW"),
    need("message", Kind::Object(DRAFT_MESSAGE), ""),
    may("sessionId", Kind::Text, "$NEW"),
    MODES,
    HISTORY_LENGTH,
    may("async", Kind::Flag, "false"),
    push("pushNotification", DRAFT_CONFIG),
    SKILL,
    REQUEST_METADATA,
];
const DRAFT_TASK: Field = need("id", Kind::Task { absent: NO_TASK, digits: true }, "$TASK");
const DRAFT_PUSH_TASK: Field = need("id", Kind::Task { absent: NO_PUSH, digits: true }, "$TASK");
const DRAFT_PUSH_SET: &[Field] =
    &[DRAFT_PUSH_TASK, need("pushNotificationConfig", Kind::Object(DRAFT_CONFIG), "")];

// 0.2 and 0.3 in JSON-RPC.

const V03_PARTS: &[&[Field]] = &[
    &[may("kind", Kind::Enum(TAG), "text"), TEXT, METADATA],
    &[may("kind", Kind::Enum(TAG), "data"), DATA],
    &[may("kind", Kind::Enum(TAG), "file"), FILE_OF_BYTES],
    &[may("kind", Kind::Enum(TAG), "file"), FILE_OF_URI],
];
const V03_MESSAGE: &[Field] = &[
    may("kind", Kind::Enum(MESSAGE_KIND), "message"),
    MESSAGE_ID,
    need("role", Kind::Enum(ROLE), "user"),
    need("parts", Kind::Parts(V03_PARTS), ""),
    CONTEXT,
    OTHER_TASK,
    REFERENCES,
    EXTENSIONS,
    METADATA,
];
pub(crate) const V03_CONFIG: &[Field] =
    &[URL.at(2), CONFIG_ID.at(1), TOKEN.at(3), may("authentication", Kind::Object(AUTHENTICATION), "").at(4)];
const BLOCKING: Field = may("blocking", Kind::Flag, "true").at(4);
const V03_CONFIGURATION: &[Field] =
    &[MODES, HISTORY_LENGTH, BLOCKING, push("pushNotificationConfig", V03_CONFIG), SKILL_ID];
const V03_SEND: &[Field] = &[
    need("message", Kind::Object(V03_MESSAGE), ""),
    may("configuration", Kind::Object(V03_CONFIGURATION), ""),
    rare("async", Kind::Flag, "false"),
    SKILL,
    REQUEST_METADATA,
];
const V03_PUSH_TASK: Field = need("id", task(NO_PUSH), "$TASK");
#[rustfmt::skip]
const V03_STATE: &EnumValues = &exact(&[
    r#""WORKING""#, r#""TASK_STATE_WORKING""#, r#""running""#, r#""working ""#, "2", "9223372036854775808",
]);
const V03_LIST: &[Field] = &[
    may("contextId", Kind::Name, "c-1"),
    may("status", Kind::Enum(V03_STATE), "working"),
    may("pageSize", Kind::PageSize, "10"),
    rare("pageToken", Kind::Token, ""),
    HISTORY_LENGTH,
    may("statusTimestampAfter", Kind::Time { zone: false }, "2026-01-02T03:04:05Z"),
    may("includeArtifacts", Kind::Flag, "true"),
];
const V03_PUSH_SET: &[Field] = &[PUSH_TASK, need("pushNotificationConfig", Kind::Object(V03_CONFIG), "")];
const V03_PUSH_GET: &[Field] = &[V03_PUSH_TASK, may("pushNotificationConfigId", Kind::Text, "c-1")];
const V03_PUSH_DELETE: &[Field] = &[V03_PUSH_TASK, need("pushNotificationConfigId", Kind::NonEmpty, "c-1")];

// 0.3 in protobuf: HTTP+JSON and gRPC.

const PROTO_PARTS: &[&[Field]] = &[
    &[content("text", Kind::Content, "hi").at(1), METADATA.at(4)],
    &[content("data", Kind::Object(&[may("data", Kind::Struct, "").at(1)]), "").at(3), METADATA.at(4)],
    &[content("file", Kind::Object(PROTO_BYTES), "").at(2)],
    &[content("file", Kind::Object(PROTO_URI), "").at(2)],
];
const PROTO_BYTES: &[Field] =
    &[content("fileWithBytes", Kind::Base64, "YUdrPQ==").at(2), MIME_TYPE, FILE_NAME];
const PROTO_URI: &[Field] = &[content("fileWithUri", Kind::Content, "https://files.example/a.png").at(1)];
pub(crate) const PROTO_MESSAGE: &[Field] = &[
    MESSAGE_ID,
    V1_ROLE,
    need("content", Kind::Parts(PROTO_PARTS), "").at(5),
    CONTEXT,
    OTHER_TASK,
    EXTENSIONS,
    METADATA.at(6),
];
const PROTO_CONFIGURATION: &[Field] =
    &[MODES, HISTORY_LENGTH.at(3), BLOCKING, push("pushNotification", V03_CONFIG), SKILL_ID];
pub(crate) const PROTO_SEND: &[Field] = &[
    need("message", Kind::Object(PROTO_MESSAGE), "").at(1),
    may("configuration", Kind::Object(PROTO_CONFIGURATION), "").at(2),
    SKILL,
    REQUEST_METADATA.at(3),
];

// 1.0.

#[rustfmt::skip]
const ROLES: &EnumValues = &EnumValues {
    last: 2,
    accepted: &["1"],
    wrong: &[
        r#""user""#, r#""ROLE_UNSPECIFIED""#, r#""role_user""#, r#""ROLE_SYSTEM""#, r#""ROLE_USER ""#, "3",
        "2147483647", "2147483648", "9223372036854775808",
    ],
};
#[rustfmt::skip]
const STATES: &EnumValues = &EnumValues {
    last: 8,
    accepted: &["0", "1"],
    wrong: &[
        r#""working""#, r#""TASK_STATE_""#, r#""task_state_working""#, r#""TASK_STATE_RUNNING""#, "9",
        "2147483647", "2147483648", "-2147483649", "9223372036854775808",
    ],
};
const V1_ROLE: Field = need("role", Kind::Enum(ROLES), "ROLE_USER").at(4);
pub(crate) const TENANT: Field = rare("tenant", Kind::Tenant, "default").at(1);
/// The tenant of a webhook configuration in a send, where it is ignored.
const CONFIG_TENANT: Field = rare("tenant", Kind::Text, "default").at(1);
const V1_MEDIA_TYPE: Field = may("mediaType", Kind::Text, "text/plain").at(7);
const V1_FILENAME: Field = may("filename", Kind::Text, "a.txt").at(6);
const V1_PARTS: &[&[Field]] = &[
    &[content("text", Kind::Content, "hi").at(1), V1_MEDIA_TYPE, V1_FILENAME, METADATA.at(5)],
    &[content("raw", Kind::Base64, "aGk=").at(2), V1_MEDIA_TYPE, V1_FILENAME],
    &[content("url", Kind::Content, "https://files.example/a.png").at(3), V1_MEDIA_TYPE],
    &[content("data", Kind::Value, "").at(4), METADATA.at(5)],
];
const V1_MESSAGE: &[Field] = &[
    MESSAGE_ID,
    V1_ROLE,
    need("parts", Kind::Parts(V1_PARTS), "").at(5),
    CONTEXT,
    OTHER_TASK,
    REFERENCES,
    EXTENSIONS,
    METADATA.at(6),
];
pub(crate) const V1_AUTHENTICATION: Field =
    may("authentication", Kind::Object(&[need("scheme", Kind::NonEmpty, "Bearer").at(1), CREDENTIALS]), "")
        .at(6);
const V1_CONFIG: &[Field] = &[
    URL.at(4),
    CONFIG_ID.at(2),
    rare("taskId", Kind::Text, "$TASK").at(3),
    TOKEN.at(5),
    V1_AUTHENTICATION,
    CONFIG_TENANT,
];
const V1_CONFIGURATION: &[Field] = &[
    MODES,
    HISTORY_LENGTH.at(3),
    may("returnImmediately", Kind::Flag, "false").at(4),
    push("taskPushNotificationConfig", V1_CONFIG),
    SKILL_ID,
];
pub(crate) const V1_SEND: &[Field] = &[
    need("message", Kind::Object(V1_MESSAGE), "").at(2),
    may("configuration", Kind::Object(V1_CONFIGURATION), "").at(3),
    SKILL,
    REQUEST_METADATA.at(4),
    TENANT,
];
const PUSH_TASK: Field = need("taskId", task(NO_PUSH), "$TASK").at(2);
pub(crate) const V1_GET: &[Field] = &[TASK, HISTORY_LENGTH.at(3), TENANT];
pub(crate) const V1_CANCEL: &[Field] = &[TASK, METADATA.at(3), TENANT];
pub(crate) const V1_ID: &[Field] = &[TASK, TENANT];
pub(crate) const V1_LIST: &[Field] = &[
    may("contextId", Kind::Name, "c-1").at(2),
    may("status", Kind::Enum(STATES), "TASK_STATE_WORKING").at(3),
    may("pageSize", Kind::PageSize, "10").at(4),
    rare("pageToken", Kind::Token, "").at(5),
    HISTORY_LENGTH.at(6),
    may("statusTimestampAfter", Kind::Time { zone: true }, "2026-01-02T03:04:05Z").at(7),
    may("includeArtifacts", Kind::Flag, "true").at(8),
    TENANT,
];
pub(crate) const V1_PUSH_CREATE: &[Field] =
    &[PUSH_TASK.at(3), may("id", Kind::Name, "c-1").at(2), URL.at(4), TOKEN.at(5), V1_AUTHENTICATION, TENANT];
pub(crate) const V1_PUSH_REF: &[Field] = &[PUSH_TASK, need("id", Kind::Name, "c-1").at(3), TENANT];
pub(crate) const V1_PUSH_LIST: &[Field] =
    &[PUSH_TASK.at(1), PAGE_SIZE.at(2), rare("pageToken", Kind::Text, "x").at(3), TENANT.at(4)];
