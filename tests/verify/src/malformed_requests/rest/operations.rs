//! Every operation of HTTP+JSON in both generations: its path, query and body, and the result of a valid request to
//! an agent without webhooks and without an extended card.
//!
//! `$TASK` stands for a task that has ended, `$CONFIG` for a webhook configuration.

use super::super::AGENT;
use super::super::case::{Binding, Case, ValidOutcome};
use super::super::errors::Dialect::{self, V1, V03};
use super::super::errors::{ErrorRow, NO_PUSH, NO_TASK, NOT_CANCELABLE, UNSUPPORTED};
use super::super::methods::{
    CONFIG_ID, HISTORY_LENGTH, METADATA, PAGE_SIZE, PROTO_MESSAGE, PROTO_SEND, TENANT, TOKEN, URL,
    V1_AUTHENTICATION, V1_LIST, V1_SEND, V03_CONFIG,
};
use super::super::params::{ForbiddenMembers, second_contents};
use super::super::schema::{Field, Kind, may, params, rare};

pub(crate) struct Operation {
    /// 0.3, in the JSON mapping of its protobuf file, or 1.0.
    pub(crate) dialect: Dialect,
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

impl Operation {
    pub(crate) fn label(&self) -> String {
        format!("{} {} {}", self.dialect.name(), self.verb, self.path)
    }

    /// A valid request.
    pub(crate) fn good(&self) -> Case {
        let body = match self.body {
            Body::Needed(forms) => params(forms[0], None),
            Body::None | Body::Ignored | Body::Optional(_) => String::new(),
        };
        // The media type that clients of this generation send.
        let media_type = if self.is_v1() { "application/a2a+json" } else { "application/json" };
        let headers = [("a2a-version", self.dialect.version()), ("content-type", media_type)];
        let of = (Binding::HttpJson, self.dialect);
        Case::valid(of, self.valid_outcome, self.address(self.path), &headers, body).with_verb(self.verb)
    }

    pub(crate) fn refused(&self, name: impl Into<String>, error: &'static ErrorRow) -> Case {
        self.good().refused(name, error)
    }

    /// The request target of a path below the agent's URL.
    pub(crate) fn address(&self, path: &str) -> String {
        self.address_of(AGENT, path)
    }

    /// The request target of a path below the URL of this agent.
    pub(crate) fn address_of(&self, agent: &str, path: &str) -> String {
        format!("/a2a/{agent}{}{path}", if self.is_v1() { "" } else { "/v1" })
    }

    pub(crate) fn is_v1(&self) -> bool {
        self.dialect == Dialect::V1
    }

    /// Members that a part must not have next to its content.
    pub(crate) fn forbidden_members(&self) -> ForbiddenMembers {
        if self.is_v1() { second_contents } else { second_contents_of_0_3 }
    }

    pub(crate) fn is_push(&self) -> bool {
        self.path.contains(CONFIGS)
    }

    /// Name of the path's task id in errors.
    pub(crate) fn task_field(&self) -> &'static str {
        if self.is_push() && self.is_v1() { "taskId" } else { "id" }
    }

    /// Name of the path's webhook id in errors.
    pub(crate) fn config_field(&self) -> &'static str {
        if self.is_v1() { "id" } else { "pushNotificationConfigId" }
    }

    /// The error for an unknown task.
    pub(crate) fn absent(&self) -> &'static ErrorRow {
        if self.is_push() { NO_PUSH } else { NO_TASK }
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

/// The HTTP methods of a path, as in the header `Allow`.
const GET: &str = "GET, HEAD";
const BOTH: &str = "POST, GET, HEAD";
const DELETE: &str = "GET, HEAD, DELETE";

const PUSH_REFUSED: ValidOutcome = ValidOutcome::Refused(NO_PUSH);
const CANCEL_REFUSED: ValidOutcome = ValidOutcome::Refused(NOT_CANCELABLE);
const REFUSED: ValidOutcome = ValidOutcome::Refused(UNSUPPORTED);

pub(crate) const OPERATIONS: &[Operation] = &[
    of(V1, "POST", SEND, "POST", &[], Body::Needed(&[V1_SEND]), ValidOutcome::Result),
    of(V1, "POST", STREAM, "POST", &[], Body::Needed(&[V1_SEND]), ValidOutcome::Events),
    of(V1, "GET", TASKS, GET, V1_LIST, Body::None, ValidOutcome::Result),
    of(V1, "GET", TASK, GET, V1_GET, Body::None, ValidOutcome::Result),
    of(V1, "POST", CANCEL, "POST", &[], Body::Optional(V1_CANCEL), CANCEL_REFUSED),
    of(V1, "POST", SUBSCRIBE, BOTH, V1_ID, Body::Optional(V1_ID), REFUSED),
    of(V1, "GET", SUBSCRIBE, BOTH, V1_ID, Body::None, REFUSED),
    of(V1, "POST", CONFIGS_OF, BOTH, &[], Body::Needed(&[V1_CREATE]), PUSH_REFUSED),
    of(V1, "GET", CONFIGS_OF, BOTH, V1_CONFIGS, Body::None, PUSH_REFUSED),
    of(V1, "GET", CONFIG, DELETE, V1_CONFIG_REF, Body::None, PUSH_REFUSED),
    of(V1, "DELETE", CONFIG, DELETE, V1_CONFIG_REF, Body::None, PUSH_REFUSED),
    of(V1, "GET", "/extendedAgentCard", GET, &[TENANT], Body::None, REFUSED),
    of(V03, "POST", SEND, "POST", &[], Body::Needed(V03_SENDS), ValidOutcome::Result),
    of(V03, "POST", STREAM, "POST", &[], Body::Needed(V03_SENDS), ValidOutcome::Events),
    of(V03, "GET", TASKS, GET, LIST, Body::None, ValidOutcome::Result),
    of(V03, "GET", TASK, GET, &[HISTORY_LENGTH], Body::None, ValidOutcome::Result),
    of(V03, "POST", CANCEL, "POST", &[], Body::Ignored, CANCEL_REFUSED),
    of(V03, "POST", SUBSCRIBE, BOTH, &[], Body::Ignored, ValidOutcome::Events),
    of(V03, "GET", SUBSCRIBE, BOTH, &[], Body::None, ValidOutcome::Events),
    of(V03, "POST", CONFIGS_OF, BOTH, &[], Body::Needed(V03_CREATE), PUSH_REFUSED),
    of(V03, "POST", OLD_CONFIGS_OF, BOTH, &[], Body::Needed(V03_CREATE), PUSH_REFUSED),
    of(V03, "GET", CONFIGS_OF, BOTH, CONFIGS_PAGE, Body::None, PUSH_REFUSED),
    of(V03, "GET", CONFIG, DELETE, &[], Body::None, PUSH_REFUSED),
    of(V03, "DELETE", CONFIG, DELETE, &[], Body::None, PUSH_REFUSED),
    of(V03, "GET", "/card", GET, &[], Body::None, REFUSED),
];

const fn of(
    dialect: Dialect,
    verb: &'static str,
    path: &'static str,
    allow: &'static str,
    query: &'static [Field],
    body: Body,
    valid_outcome: ValidOutcome,
) -> Operation {
    Operation { dialect, verb, path, allow, query, body, valid_outcome }
}

// Query parameters. The list of 0.3 has no tenant.

const LIST: &[Field] = V1_LIST.split_at(V1_LIST.len() - 1).0;
const ID: Field = rare("id", Kind::FromPath, "$TASK");
const TASK_ID: Field = rare("taskId", Kind::FromPath, "$TASK");
const V1_GET: &[Field] = &[ID, HISTORY_LENGTH, TENANT];
const V1_ID: &[Field] = &[ID, TENANT];
const PAGE_TOKEN: Field = may("pageToken", Kind::Text, "x");
const CONFIGS_PAGE: &[Field] = &[PAGE_SIZE, PAGE_TOKEN];
const V1_CONFIGS: &[Field] = &[TASK_ID, PAGE_SIZE, PAGE_TOKEN, TENANT];
const V1_CONFIG_REF: &[Field] = &[TASK_ID, rare("id", Kind::FromPath, "$CONFIG"), TENANT];

// Bodies.

const V1_CANCEL: &[Field] = &[METADATA, ID, TENANT];
const V1_CREATE: &[Field] = &[URL, CONFIG_ID, TOKEN, V1_AUTHENTICATION, TASK_ID, TENANT];
/// The message has another name in the releases before 0.3.0.
const V03_SENDS: &[&[Field]] = &[PROTO_SEND, &[rare("request", Kind::Object(PROTO_MESSAGE), "")]];
/// The three bodies that clients send: the configuration alone, and in either of two wrappers.
const V03_CREATE: &[&[Field]] = &[
    V03_CONFIG,
    &[rare("configId", Kind::Text, "c-1"), WRAPPED],
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
