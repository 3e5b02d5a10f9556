//! Every JSON-RPC method of every generation: its parameters, and the result of a valid request to an agent without
//! webhooks and without an extended card.
//!
//! `$TASK` stands for a task that has ended, `$NEW` for an unused name.

use super::schema::{EnumValues, Field, Kind, content, may, need, rare};

/// A generation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Draft,
    V03,
    V1,
}

pub(crate) struct Method {
    pub(crate) dialect: Dialect,
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    pub(crate) valid_outcome: ValidOutcome,
    /// Whether a request may omit `"jsonrpc": "2.0"`.
    pub(crate) unversioned: bool,
}

/// The result of a valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValidOutcome {
    Result,
    Events,
    Refused(i64),
}

pub(crate) const TASK_NOT_FOUND: i64 = -32001;
pub(crate) const TASK_NOT_CANCELABLE: i64 = -32002;
pub(crate) const NO_PUSH: i64 = -32003;
pub(crate) const UNSUPPORTED: i64 = -32004;

impl Dialect {
    /// The value of `A2A-Version`.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Draft => "0.1",
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::V03 => "v03",
            Self::V1 => "v1",
        }
    }
}

const fn draft(name: &'static str, fields: &'static [Field], valid_outcome: ValidOutcome) -> Method {
    Method { dialect: Dialect::Draft, name, fields, valid_outcome, unversioned: true }
}

const fn v03(name: &'static str, fields: &'static [Field], valid_outcome: ValidOutcome) -> Method {
    Method { dialect: Dialect::V03, name, fields, valid_outcome, unversioned: false }
}

/// A method name that the draft and 0.3 share.
const fn shared(name: &'static str, fields: &'static [Field], valid_outcome: ValidOutcome) -> Method {
    Method { dialect: Dialect::V03, name, fields, valid_outcome, unversioned: true }
}

const fn v1(name: &'static str, fields: &'static [Field], valid_outcome: ValidOutcome) -> Method {
    Method { dialect: Dialect::V1, name, fields, valid_outcome, unversioned: false }
}

pub(crate) const METHODS: &[Method] = &[
    draft("tasks/send", DRAFT_SEND, ValidOutcome::Result),
    draft("tasks/sendSubscribe", DRAFT_SEND, ValidOutcome::Events),
    draft("tasks/get", DRAFT_GET, ValidOutcome::Result),
    draft("tasks/cancel", DRAFT_CANCEL, ValidOutcome::Refused(TASK_NOT_CANCELABLE)),
    draft("tasks/resubscribe", DRAFT_ID, ValidOutcome::Events),
    draft("tasks/pushNotification/set", DRAFT_PUSH_SET, ValidOutcome::Refused(NO_PUSH)),
    draft("tasks/pushNotification/get", DRAFT_PUSH_GET, ValidOutcome::Refused(NO_PUSH)),
    v03("message/send", V03_SEND, ValidOutcome::Result),
    v03("message/stream", V03_SEND, ValidOutcome::Events),
    shared("tasks/get", V03_GET, ValidOutcome::Result),
    shared("tasks/cancel", V03_CANCEL, ValidOutcome::Refused(TASK_NOT_CANCELABLE)),
    shared("tasks/resubscribe", V03_ID, ValidOutcome::Events),
    v03("tasks/list", V03_LIST, ValidOutcome::Result),
    v03("tasks/pushNotificationConfig/set", V03_PUSH_SET, ValidOutcome::Refused(NO_PUSH)),
    v03("tasks/pushNotificationConfig/get", V03_PUSH_GET, ValidOutcome::Refused(NO_PUSH)),
    v03("tasks/pushNotificationConfig/list", V03_PUSH_LIST, ValidOutcome::Refused(NO_PUSH)),
    v03("tasks/pushNotificationConfig/delete", V03_PUSH_DELETE, ValidOutcome::Refused(NO_PUSH)),
    v03("agent/getAuthenticatedExtendedCard", &[], ValidOutcome::Refused(UNSUPPORTED)),
    v1("SendMessage", V1_SEND, ValidOutcome::Result),
    v1("SendStreamingMessage", V1_SEND, ValidOutcome::Events),
    v1("GetTask", V1_GET, ValidOutcome::Result),
    v1("ListTasks", V1_LIST, ValidOutcome::Result),
    v1("CancelTask", V1_CANCEL, ValidOutcome::Refused(TASK_NOT_CANCELABLE)),
    v1("SubscribeToTask", V1_ID, ValidOutcome::Refused(UNSUPPORTED)),
    v1("CreateTaskPushNotificationConfig", V1_PUSH_CREATE, ValidOutcome::Refused(NO_PUSH)),
    v1("GetTaskPushNotificationConfig", V1_PUSH_REF, ValidOutcome::Refused(NO_PUSH)),
    v1("ListTaskPushNotificationConfigs", V1_PUSH_LIST, ValidOutcome::Refused(NO_PUSH)),
    v1("DeleteTaskPushNotificationConfig", V1_PUSH_REF, ValidOutcome::Refused(NO_PUSH)),
    v1("GetExtendedAgentCard", &[TENANT], ValidOutcome::Refused(UNSUPPORTED)),
];

pub(crate) const METADATA: Field = may("metadata", Kind::Metadata, r#"{"k":1}"#);
pub(crate) const REQUEST_METADATA: Field = may("metadata", Kind::RequestMetadata, r#"{"k":1}"#);
pub(crate) const HISTORY_LENGTH: Field = may("historyLength", Kind::Count, "2");
pub(crate) const SKILL: Field = rare("skill", Kind::Skill, r#""echo""#);
pub(crate) const SKILL_ID: Field = rare("skillId", Kind::Skill, r#""echo""#);
pub(crate) const MODES: Field = may("acceptedOutputModes", Kind::Texts, r#"["text/plain"]"#);
pub(crate) const URL: Field = need("url", Kind::Url, r#""https://hooks.example/a""#);
pub(crate) const TOKEN: Field = may("token", Kind::Text, r#""secret""#);
const CREDENTIALS: Field = may("credentials", Kind::Text, r#""secret""#);

// The two generations before 1.0.

const ROLE: &EnumValues = &EnumValues {
    accepted: &[],
    wrong: &[
        r#""User""#,
        r#""USER""#,
        r#""system""#,
        r#""assistant""#,
        r#""ROLE_USER""#,
        r#""user ""#,
        r#""us\u0435r""#,
        "9223372036854775808",
    ],
};
const TAG: &EnumValues = &EnumValues {
    accepted: &[],
    wrong: &[r#""Text""#, r#""image""#, r#""text ""#, r#""message""#, r#""\u0000""#, "9223372036854775808"],
};
const MESSAGE_KIND: &EnumValues = &EnumValues {
    accepted: &[],
    wrong: &[r#""task""#, r#""Message""#, r#""message ""#, "9223372036854775808"],
};

const LEGACY_BYTES: &[Field] = &[
    content("bytes", Kind::Base64, r#""aGk=""#),
    may("mimeType", Kind::Text, r#""image/png""#),
    may("name", Kind::Text, r#""a.png""#),
];
const LEGACY_URI: &[Field] = &[content("uri", Kind::Text, r#""https://files.example/a.png""#)];
const TEXT: Field = need("text", Kind::Text, r#""hi""#);
const DATA: Field = need("data", Kind::Data { any: false }, r#"{"k":1}"#);
const FILE_BYTES: Field = need("file", Kind::Object(LEGACY_BYTES), "");
const FILE_URI: Field = need("file", Kind::Object(LEGACY_URI), "");
const AUTHENTICATION: Field =
    may("authentication", Kind::Object(&[need("schemes", Kind::Schemes, r#"["Bearer"]"#), CREDENTIALS]), "");

// The first public draft.

const DRAFT_PARTS: &[&[Field]] = &[
    &[may("type", Kind::Enum(TAG), r#""text""#), TEXT, METADATA],
    &[may("type", Kind::Enum(TAG), r#""data""#), DATA],
    &[may("type", Kind::Enum(TAG), r#""file""#), FILE_BYTES],
    &[may("type", Kind::Enum(TAG), r#""file""#), FILE_URI],
];
const DRAFT_MESSAGE: &[Field] = &[
    may("role", Kind::Enum(ROLE), r#""user""#),
    need("parts", Kind::Parts(DRAFT_PARTS), ""),
    rare("messageId", Kind::Text, r#""m-1""#),
    rare("conversationId", Kind::Text, r#""c-1""#),
    METADATA,
];
const DRAFT_CONFIG: &[Field] = &[URL, TOKEN, AUTHENTICATION];
const DRAFT_SEND: &[Field] = &[
    need("id", Kind::OwnTask, r#""$NEW""#),
    need("message", Kind::Object(DRAFT_MESSAGE), ""),
    may("sessionId", Kind::Text, r#""$NEW""#),
    MODES,
    HISTORY_LENGTH,
    may("async", Kind::Flag, "false"),
    rare("pushNotification", Kind::Object(DRAFT_CONFIG), ""),
    SKILL,
    REQUEST_METADATA,
];
const DRAFT_TASK: Field = need("id", Kind::Task { absent: TASK_NOT_FOUND, digits: true }, r#""$TASK""#);
const DRAFT_PUSH_TASK: Field = need("id", Kind::Task { absent: NO_PUSH, digits: true }, r#""$TASK""#);
const DRAFT_GET: &[Field] = &[DRAFT_TASK, HISTORY_LENGTH];
const DRAFT_CANCEL: &[Field] = &[DRAFT_TASK, METADATA];
const DRAFT_ID: &[Field] = &[DRAFT_TASK];
const DRAFT_PUSH_SET: &[Field] =
    &[DRAFT_PUSH_TASK, need("pushNotificationConfig", Kind::Object(DRAFT_CONFIG), "")];
const DRAFT_PUSH_GET: &[Field] = &[DRAFT_PUSH_TASK];

// 0.2 and 0.3.

const V03_PARTS: &[&[Field]] = &[
    &[may("kind", Kind::Enum(TAG), r#""text""#), TEXT, METADATA],
    &[may("kind", Kind::Enum(TAG), r#""data""#), DATA],
    &[may("kind", Kind::Enum(TAG), r#""file""#), FILE_BYTES],
    &[may("kind", Kind::Enum(TAG), r#""file""#), FILE_URI],
];
const V03_MESSAGE: &[Field] = &[
    may("kind", Kind::Enum(MESSAGE_KIND), r#""message""#),
    need("messageId", Kind::NonEmpty, r#""m-1""#),
    need("role", Kind::Enum(ROLE), r#""user""#),
    need("parts", Kind::Parts(V03_PARTS), ""),
    may("contextId", Kind::Text, r#""$NEW""#),
    rare("taskId", Kind::Task { absent: TASK_NOT_FOUND, digits: false }, ""),
    may("referenceTaskIds", Kind::Names, r#"["t-1"]"#),
    may("extensions", Kind::Texts, r#"["https://e.example/x"]"#),
    METADATA,
];
pub(crate) const V03_CONFIG: &[Field] = &[URL, may("id", Kind::Text, r#""c-1""#), TOKEN, AUTHENTICATION];
const V03_CONFIGURATION: &[Field] = &[
    MODES,
    HISTORY_LENGTH,
    may("blocking", Kind::Flag, "true"),
    rare("pushNotificationConfig", Kind::Object(V03_CONFIG), ""),
    SKILL_ID,
];
const V03_SEND: &[Field] = &[
    need("message", Kind::Object(V03_MESSAGE), ""),
    may("configuration", Kind::Object(V03_CONFIGURATION), ""),
    rare("async", Kind::Flag, "false"),
    SKILL,
    REQUEST_METADATA,
];
const V03_TASK: Field = need("id", Kind::Task { absent: TASK_NOT_FOUND, digits: false }, r#""$TASK""#);
const V03_PUSH_TASK: Field = need("id", Kind::Task { absent: NO_PUSH, digits: false }, r#""$TASK""#);
const V03_GET: &[Field] = &[V03_TASK, HISTORY_LENGTH];
const V03_CANCEL: &[Field] = &[V03_TASK, METADATA];
const V03_ID: &[Field] = &[V03_TASK];
const V03_STATE: &EnumValues = &EnumValues {
    accepted: &[],
    wrong: &[
        r#""WORKING""#,
        r#""TASK_STATE_WORKING""#,
        r#""running""#,
        r#""working ""#,
        "2",
        "9223372036854775808",
    ],
};
const V03_LIST: &[Field] = &[
    may("contextId", Kind::Text, r#""c-1""#),
    may("status", Kind::Enum(V03_STATE), r#""working""#),
    may("pageSize", Kind::PageSize, "10"),
    rare("pageToken", Kind::Token, ""),
    HISTORY_LENGTH,
    may("statusTimestampAfter", Kind::Time { zone: false }, r#""2026-01-02T03:04:05Z""#),
    may("includeArtifacts", Kind::Flag, "true"),
];
const V03_PUSH_SET: &[Field] = &[
    need("taskId", Kind::Task { absent: NO_PUSH, digits: false }, r#""$TASK""#),
    need("pushNotificationConfig", Kind::Object(V03_CONFIG), ""),
];
const V03_PUSH_GET: &[Field] = &[V03_PUSH_TASK, may("pushNotificationConfigId", Kind::Text, r#""c-1""#)];
const V03_PUSH_LIST: &[Field] = &[V03_PUSH_TASK];
const V03_PUSH_DELETE: &[Field] =
    &[V03_PUSH_TASK, need("pushNotificationConfigId", Kind::NonEmpty, r#""c-1""#)];

// 1.0.

pub(crate) const V1_ROLE: &EnumValues = &EnumValues {
    accepted: &["1"],
    wrong: &[
        r#""user""#,
        r#""ROLE_UNSPECIFIED""#,
        r#""role_user""#,
        r#""ROLE_SYSTEM""#,
        r#""ROLE_USER ""#,
        "3",
        "2147483647",
        "2147483648",
        "9223372036854775808",
    ],
};
pub(crate) const V1_STATE: &EnumValues = &EnumValues {
    accepted: &["0", "1"],
    wrong: &[
        r#""working""#,
        r#""TASK_STATE_""#,
        r#""task_state_working""#,
        r#""TASK_STATE_RUNNING""#,
        "9",
        "2147483647",
        "2147483648",
        "-2147483649",
        "9223372036854775808",
    ],
};
pub(crate) const TENANT: Field = rare("tenant", Kind::Tenant, r#""default""#);
/// The tenant of a webhook configuration in a send, where it is ignored.
const CONFIG_TENANT: Field = rare("tenant", Kind::Text, r#""default""#);
const MEDIA_TYPE: Field = may("mediaType", Kind::Text, r#""text/plain""#);
const FILENAME: Field = may("filename", Kind::Text, r#""a.txt""#);
const V1_PARTS: &[&[Field]] = &[
    &[content("text", Kind::Text, r#""hi""#), MEDIA_TYPE, FILENAME, METADATA],
    &[content("raw", Kind::Base64, r#""aGk=""#), MEDIA_TYPE, FILENAME],
    &[content("url", Kind::Text, r#""https://files.example/a.png""#), MEDIA_TYPE],
    &[content("data", Kind::Data { any: true }, r#"{"k":1}"#)],
];
const V1_MESSAGE: &[Field] = &[
    need("messageId", Kind::NonEmpty, r#""m-1""#),
    need("role", Kind::Enum(V1_ROLE), r#""ROLE_USER""#),
    need("parts", Kind::Parts(V1_PARTS), ""),
    may("contextId", Kind::Text, r#""$NEW""#),
    rare("taskId", Kind::Task { absent: TASK_NOT_FOUND, digits: false }, ""),
    may("referenceTaskIds", Kind::Names, r#"["t-1"]"#),
    may("extensions", Kind::Texts, r#"["https://e.example/x"]"#),
    METADATA,
];
pub(crate) const V1_AUTHENTICATION: Field =
    may("authentication", Kind::Object(&[need("scheme", Kind::NonEmpty, r#""Bearer""#), CREDENTIALS]), "");
const V1_CONFIG: &[Field] = &[
    URL,
    may("id", Kind::Text, r#""c-1""#),
    rare("taskId", Kind::Text, r#""$TASK""#),
    TOKEN,
    V1_AUTHENTICATION,
    CONFIG_TENANT,
];
const V1_CONFIGURATION: &[Field] = &[
    MODES,
    HISTORY_LENGTH,
    may("returnImmediately", Kind::Flag, "false"),
    rare("taskPushNotificationConfig", Kind::Object(V1_CONFIG), ""),
    SKILL_ID,
];
pub(crate) const V1_SEND: &[Field] = &[
    need("message", Kind::Object(V1_MESSAGE), ""),
    may("configuration", Kind::Object(V1_CONFIGURATION), ""),
    SKILL,
    REQUEST_METADATA,
    TENANT,
];
const V1_TASK: Field = need("id", Kind::Task { absent: TASK_NOT_FOUND, digits: false }, r#""$TASK""#);
const V1_PUSH_TASK: Field = need("taskId", Kind::Task { absent: NO_PUSH, digits: false }, r#""$TASK""#);
const V1_GET: &[Field] = &[V1_TASK, HISTORY_LENGTH, TENANT];
const V1_CANCEL: &[Field] = &[V1_TASK, METADATA, TENANT];
const V1_ID: &[Field] = &[V1_TASK, TENANT];
const V1_LIST: &[Field] = &[
    may("contextId", Kind::Text, r#""c-1""#),
    may("status", Kind::Enum(V1_STATE), r#""TASK_STATE_WORKING""#),
    may("pageSize", Kind::PageSize, "10"),
    rare("pageToken", Kind::Token, ""),
    HISTORY_LENGTH,
    may("statusTimestampAfter", Kind::Time { zone: true }, r#""2026-01-02T03:04:05Z""#),
    may("includeArtifacts", Kind::Flag, "true"),
    TENANT,
];
const V1_PUSH_CREATE: &[Field] =
    &[V1_PUSH_TASK, may("id", Kind::Text, r#""c-1""#), URL, TOKEN, V1_AUTHENTICATION, TENANT];
const V1_PUSH_REF: &[Field] = &[V1_PUSH_TASK, need("id", Kind::NonEmpty, r#""c-1""#), TENANT];
const V1_PUSH_LIST: &[Field] =
    &[V1_PUSH_TASK, may("pageSize", Kind::Count, "10"), rare("pageToken", Kind::Text, r#""x""#), TENANT];
