//! Every operation of HTTP+JSON in both generations: its path, query and body, and the result of a valid request to
//! an agent without webhooks and without an extended card.
//!
//! `$TASK` stands for a task that has ended, `$CONFIG` for a webhook configuration.

use super::super::methods::{
    HISTORY_LENGTH, METADATA, MODES, NO_PUSH, REQUEST_METADATA, SKILL, SKILL_ID, TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND, TENANT, TOKEN, UNSUPPORTED, URL, V1_AUTHENTICATION, V1_ROLE, V1_SEND, V1_STATE,
    V03_CONFIG, ValidOutcome,
};
use super::super::params::{ForbiddenMembers, second_contents};
use super::super::schema::{Field, Kind, content, may, need, params, rare};

/// A generation that has this binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Generation {
    /// The JSON mapping of the protobuf file of 0.3.
    V03,
    V1,
}

pub(crate) struct Operation {
    pub(crate) generation: Generation,
    pub(crate) verb: &'static str,
    /// Below the base path of the generation.
    pub(crate) path: &'static str,
    /// The HTTP methods of the path, as in the header `Allow`.
    pub(crate) allow: &'static str,
    /// Query parameters.
    pub(crate) query: &'static [Field],
    pub(crate) body: Body,
    pub(crate) valid_outcome: ValidOutcome,
}

/// How the body is treated.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// Not read.
    None,
    /// Must be JSON if present; its content is ignored.
    Ignored,
    /// May be absent.
    Optional(&'static [Field]),
    /// Required, in one of these forms.
    Needed(&'static [&'static [Field]]),
}

impl Generation {
    /// The path segment between an agent's URL and the operation's path.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::V03 => "/v1",
            Self::V1 => "",
        }
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V03 => "v03",
            Self::V1 => "v1",
        }
    }

    /// Members that a part must not have next to its content.
    pub(crate) fn forbidden_members(self) -> ForbiddenMembers {
        match self {
            Self::V03 => second_contents_of_0_3,
            Self::V1 => second_contents,
        }
    }

    /// The media type that clients of this generation send.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::V03 => "application/json",
            Self::V1 => "application/a2a+json",
        }
    }
}

impl Operation {
    pub(crate) fn label(&self) -> String {
        format!("{} {} {}", self.generation.name(), self.verb, self.path)
    }

    /// The body of a valid request.
    pub(crate) fn good_body(&self) -> String {
        match self.body {
            Body::Needed(forms) => params(forms[0], None),
            Body::None | Body::Ignored | Body::Optional(_) => String::new(),
        }
    }

    pub(crate) fn is_push(&self) -> bool {
        self.path.contains(CONFIGS)
    }

    /// Name of the path's task id in errors.
    pub(crate) fn task_field(&self) -> &'static str {
        if self.is_push() && self.generation == Generation::V1 { "taskId" } else { "id" }
    }

    /// Name of the path's webhook id in errors.
    pub(crate) fn config_field(&self) -> &'static str {
        if self.generation == Generation::V1 { "id" } else { "pushNotificationConfigId" }
    }

    /// The error code for an unknown task.
    pub(crate) fn absent(&self) -> i64 {
        if self.is_push() { NO_PUSH } else { TASK_NOT_FOUND }
    }
}

pub(crate) const CONFIGS: &str = "pushNotificationConfigs";

const SEND: &str = "/message:send";
const STREAM: &str = "/message:stream";
const TASKS: &str = "/tasks";
const TASK: &str = "/tasks/$TASK";
const CANCEL: &str = "/tasks/$TASK:cancel";
const SUBSCRIBE: &str = "/tasks/$TASK:subscribe";
const CONFIGS_OF: &str = "/tasks/$TASK/pushNotificationConfigs";
const CONFIG: &str = "/tasks/$TASK/pushNotificationConfigs/$CONFIG";
/// Spelling of the older protobuf file.
const OLD_CONFIGS_OF: &str = "/task/$TASK/pushNotificationConfigs";

pub(crate) const OPERATIONS: &[Operation] = &[
    v1("POST", SEND, "POST", &[], Body::Needed(&[V1_SEND]), ValidOutcome::Result),
    v1("POST", STREAM, "POST", &[], Body::Needed(&[V1_SEND]), ValidOutcome::Events),
    v1("GET", TASKS, "GET, HEAD", V1_LIST, Body::None, ValidOutcome::Result),
    v1("GET", TASK, "GET, HEAD", V1_GET, Body::None, ValidOutcome::Result),
    v1("POST", CANCEL, "POST", &[], Body::Optional(V1_CANCEL), ValidOutcome::Refused(TASK_NOT_CANCELABLE)),
    v1("POST", SUBSCRIBE, SUBSCRIBERS, V1_ID, Body::Optional(V1_ID), ValidOutcome::Refused(UNSUPPORTED)),
    v1("GET", SUBSCRIBE, SUBSCRIBERS, V1_ID, Body::None, ValidOutcome::Refused(UNSUPPORTED)),
    v1(
        "POST",
        CONFIGS_OF,
        "POST, GET, HEAD",
        &[],
        Body::Needed(&[V1_CREATE]),
        ValidOutcome::Refused(NO_PUSH),
    ),
    v1("GET", CONFIGS_OF, "POST, GET, HEAD", V1_CONFIGS, Body::None, ValidOutcome::Refused(NO_PUSH)),
    v1("GET", CONFIG, "GET, HEAD, DELETE", V1_CONFIG_REF, Body::None, ValidOutcome::Refused(NO_PUSH)),
    v1("DELETE", CONFIG, "GET, HEAD, DELETE", V1_CONFIG_REF, Body::None, ValidOutcome::Refused(NO_PUSH)),
    v1("GET", "/extendedAgentCard", "GET, HEAD", &[TENANT], Body::None, ValidOutcome::Refused(UNSUPPORTED)),
    v03("POST", SEND, "POST", &[], Body::Needed(V03_SENDS), ValidOutcome::Result),
    v03("POST", STREAM, "POST", &[], Body::Needed(V03_SENDS), ValidOutcome::Events),
    v03("GET", TASKS, "GET, HEAD", LIST, Body::None, ValidOutcome::Result),
    v03("GET", TASK, "GET, HEAD", &[HISTORY_LENGTH], Body::None, ValidOutcome::Result),
    v03("POST", CANCEL, "POST", &[], Body::Ignored, ValidOutcome::Refused(TASK_NOT_CANCELABLE)),
    v03("POST", SUBSCRIBE, SUBSCRIBERS, &[], Body::Ignored, ValidOutcome::Events),
    v03("GET", SUBSCRIBE, SUBSCRIBERS, &[], Body::None, ValidOutcome::Events),
    v03("POST", CONFIGS_OF, "POST, GET, HEAD", &[], Body::Needed(V03_CREATE), ValidOutcome::Refused(NO_PUSH)),
    v03(
        "POST",
        OLD_CONFIGS_OF,
        "POST, GET, HEAD",
        &[],
        Body::Needed(V03_CREATE),
        ValidOutcome::Refused(NO_PUSH),
    ),
    v03("GET", CONFIGS_OF, "POST, GET, HEAD", CONFIGS_PAGE, Body::None, ValidOutcome::Refused(NO_PUSH)),
    v03("GET", CONFIG, "GET, HEAD, DELETE", &[], Body::None, ValidOutcome::Refused(NO_PUSH)),
    v03("DELETE", CONFIG, "GET, HEAD, DELETE", &[], Body::None, ValidOutcome::Refused(NO_PUSH)),
    v03("GET", "/card", "GET, HEAD", &[], Body::None, ValidOutcome::Refused(UNSUPPORTED)),
];

const SUBSCRIBERS: &str = "POST, GET, HEAD";

const fn v1(
    verb: &'static str,
    path: &'static str,
    allow: &'static str,
    query: &'static [Field],
    body: Body,
    valid_outcome: ValidOutcome,
) -> Operation {
    Operation { generation: Generation::V1, verb, path, allow, query, body, valid_outcome }
}

const fn v03(
    verb: &'static str,
    path: &'static str,
    allow: &'static str,
    query: &'static [Field],
    body: Body,
    valid_outcome: ValidOutcome,
) -> Operation {
    Operation { generation: Generation::V03, verb, path, allow, query, body, valid_outcome }
}

// Query parameters.

const CONTEXT: Field = may("contextId", Kind::Text, r#""c-1""#);
const STATUS: Field = may("status", Kind::Enum(V1_STATE), r#""TASK_STATE_WORKING""#);
const PAGE_SIZE: Field = may("pageSize", Kind::PageSize, "10");
const PAGE_TOKEN: Field = rare("pageToken", Kind::Token, "");
const AFTER: Field = may("statusTimestampAfter", Kind::Time { zone: true }, r#""2026-01-02T03:04:05Z""#);
const ARTIFACTS: Field = may("includeArtifacts", Kind::Flag, "true");
const LIST: &[Field] = &[CONTEXT, STATUS, PAGE_SIZE, PAGE_TOKEN, HISTORY_LENGTH, AFTER, ARTIFACTS];
const V1_LIST: &[Field] = &[CONTEXT, STATUS, PAGE_SIZE, PAGE_TOKEN, HISTORY_LENGTH, AFTER, ARTIFACTS, TENANT];
const ID: Field = rare("id", Kind::FromPath, r#""$TASK""#);
const TASK_ID: Field = rare("taskId", Kind::FromPath, r#""$TASK""#);
const CONFIG_ID: Field = rare("id", Kind::FromPath, r#""$CONFIG""#);
const V1_GET: &[Field] = &[ID, HISTORY_LENGTH, TENANT];
const V1_ID: &[Field] = &[ID, TENANT];
const ANY_PAGE_SIZE: Field = may("pageSize", Kind::Count, "10");
const ANY_PAGE_TOKEN: Field = may("pageToken", Kind::Text, r#""x""#);
const CONFIGS_PAGE: &[Field] = &[ANY_PAGE_SIZE, ANY_PAGE_TOKEN];
const V1_CONFIGS: &[Field] = &[TASK_ID, ANY_PAGE_SIZE, ANY_PAGE_TOKEN, TENANT];
const V1_CONFIG_REF: &[Field] = &[TASK_ID, CONFIG_ID, TENANT];

// Bodies.

const V1_CANCEL: &[Field] = &[METADATA, ID, TENANT];
const V1_CREATE: &[Field] =
    &[URL, may("id", Kind::Text, r#""c-1""#), TOKEN, V1_AUTHENTICATION, TASK_ID, TENANT];

const V03_BYTES: &[Field] = &[
    content("fileWithBytes", Kind::Base64, r#""YUdrPQ==""#),
    may("mimeType", Kind::Text, r#""image/png""#),
    may("name", Kind::Text, r#""a.png""#),
];
const V03_URI: &[Field] = &[content("fileWithUri", Kind::Text, r#""https://files.example/a.png""#)];
const V03_DATA: &[Field] = &[may("data", Kind::Data { any: true }, r#"{"k":1}"#)];
const V03_PARTS: &[&[Field]] = &[
    &[content("text", Kind::Text, r#""hi""#), METADATA],
    &[content("data", Kind::Object(V03_DATA), "")],
    &[content("file", Kind::Object(V03_BYTES), "")],
    &[content("file", Kind::Object(V03_URI), "")],
];
const V03_MESSAGE: &[Field] = &[
    need("messageId", Kind::NonEmpty, r#""m-1""#),
    need("role", Kind::Enum(V1_ROLE), r#""ROLE_USER""#),
    need("content", Kind::Parts(V03_PARTS), ""),
    may("contextId", Kind::Text, r#""$NEW""#),
    rare("taskId", Kind::Task { absent: TASK_NOT_FOUND, digits: false }, ""),
    may("extensions", Kind::Texts, r#"["https://e.example/x"]"#),
    METADATA,
];
const V03_CONFIGURATION: &[Field] = &[
    MODES,
    HISTORY_LENGTH,
    may("blocking", Kind::Flag, "true"),
    rare("pushNotification", Kind::Object(V03_CONFIG), ""),
    SKILL_ID,
];
const V03_SEND: &[Field] = &[
    need("message", Kind::Object(V03_MESSAGE), ""),
    may("configuration", Kind::Object(V03_CONFIGURATION), ""),
    SKILL,
    REQUEST_METADATA,
];
/// The message has another name in the releases before 0.3.0.
const V03_SENDS: &[&[Field]] = &[V03_SEND, &[rare("request", Kind::Object(V03_MESSAGE), "")]];
/// The three bodies that clients send: the configuration alone, and in either of two wrappers.
const V03_CREATE: &[&[Field]] = &[
    V03_CONFIG,
    &[rare("configId", Kind::Text, r#""c-1""#), WRAPPED],
    &[rare("config", Kind::Object(&[WRAPPED]), "")],
];
const WRAPPED: Field = rare("pushNotificationConfig", Kind::Object(V03_CONFIG), "");

fn second_contents_of_0_3(form: &[Field]) -> Vec<(&'static str, &'static str)> {
    let has = |name: &str| form.iter().any(|field| field.name == name);
    let all = [
        ("text", r#""text":"a""#),
        ("data", r#""data":{"data":{"k":1}}"#),
        ("file", r#""file":{"fileWithUri":"https://a.example"}"#),
    ];
    let mut forbidden_members: Vec<_> =
        all.into_iter().filter(|(name, _)| !has(name)).map(|(_, member)| (member, "")).collect();
    if has("file") {
        // Of two files the last one counts.
        forbidden_members.extend([
            (r#""file":{"fileWithBytes":"aGk=","fileWithUri":"https://a.example"}"#, ".file"),
            (r#""file":{"fileWithBytes":"","fileWithUri":""}"#, ".file"),
            (r#""file":{"bytes":"aGk=","fileWithBytes":"aGk="}"#, ".file"),
            (r#""file":{"uri":"https://a.example","fileWithUri":"https://a.example"}"#, ".file"),
            (r#""file":{"name":"a.png"}"#, ".file"),
            (r#""file":{"fileWithBytes":null,"fileWithUri":null}"#, ".file"),
            (r#""file":{}"#, ".file"),
            (r#""file":{"bytes":"%"}"#, ".file.bytes"),
            (r#""file":{"uri":[]}"#, ".file.uri"),
        ]);
    }
    forbidden_members
}
