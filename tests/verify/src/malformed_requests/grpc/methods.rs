//! Every method of both services: its request, and the result of a valid request to an agent without webhooks and
//! without an extended card. The messages that other bindings have too are described in `../methods.rs`.

use super::super::AGENT;
use super::super::case::{Binding, Case, ValidOutcome};
use super::super::errors::{Dialect, NO_PUSH, NO_TASK, NOT_CANCELABLE, UNSUPPORTED};
use super::super::methods::{
    HISTORY_LENGTH, Method, PAGE_SIZE, PROTO_SEND, TENANT, V1_CANCEL, V1_GET, V1_ID, V1_LIST, V1_PUSH_CREATE,
    V1_PUSH_LIST, V1_PUSH_REF, V1_SEND, V03_CONFIG, v1, v03,
};
use super::super::schema::{Field, Kind, may, need, rare};
use super::schema::message;
use super::wire::framed;

pub(crate) fn service(dialect: Dialect) -> &'static str {
    if dialect == Dialect::V1 { "lf.a2a.v1.A2AService" } else { "a2a.v1.A2AService" }
}

/// A valid request.
pub(crate) fn good(method: &Method, task: &str) -> Case {
    let headers = [
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("a2a-version", method.dialect.version()),
        ("a2a-agent", AGENT),
    ];
    let path = format!("/{}/{}", service(method.dialect), method.name);
    let body = framed(&message(method.fields, task));
    Case::valid((Binding::Grpc, method.dialect), method.valid_outcome, path, &headers, body)
}

pub(crate) const METHODS: &[Method] = &[
    v03("SendMessage", PROTO_SEND, ValidOutcome::Result),
    v03("SendStreamingMessage", PROTO_SEND, ValidOutcome::Events),
    v03("GetTask", &[V03_TASK, HISTORY_LENGTH.at(2)], ValidOutcome::Result),
    v03("CancelTask", &[V03_TASK], ValidOutcome::Refused(NOT_CANCELABLE)),
    v03("TaskSubscription", &[V03_TASK], ValidOutcome::Events),
    v03("CreateTaskPushNotificationConfig", V03_PUSH_CREATE, ValidOutcome::Refused(NO_PUSH)),
    v03("GetTaskPushNotificationConfig", &[V03_PUSH_NAME], ValidOutcome::Refused(NO_PUSH)),
    v03("ListTaskPushNotificationConfig", V03_PUSH_LIST, ValidOutcome::Refused(NO_PUSH)),
    v03("DeleteTaskPushNotificationConfig", &[V03_PUSH_NAME], ValidOutcome::Refused(NO_PUSH)),
    v03("GetAgentCard", &[], ValidOutcome::Refused(UNSUPPORTED)),
    v1("SendMessage", V1_SEND, ValidOutcome::Result),
    v1("SendStreamingMessage", V1_SEND, ValidOutcome::Events),
    v1("GetTask", V1_GET, ValidOutcome::Result),
    v1("ListTasks", V1_LIST, ValidOutcome::Result),
    v1("CancelTask", V1_CANCEL, ValidOutcome::Refused(NOT_CANCELABLE)),
    v1("SubscribeToTask", V1_ID, ValidOutcome::Refused(UNSUPPORTED)),
    v1("CreateTaskPushNotificationConfig", V1_PUSH_CREATE, ValidOutcome::Refused(NO_PUSH)),
    v1("GetTaskPushNotificationConfig", V1_PUSH_REF, ValidOutcome::Refused(NO_PUSH)),
    v1("ListTaskPushNotificationConfigs", V1_PUSH_LIST, ValidOutcome::Refused(NO_PUSH)),
    v1("GetExtendedAgentCard", &[TENANT], ValidOutcome::Refused(UNSUPPORTED)),
    v1("DeleteTaskPushNotificationConfig", V1_PUSH_REF, ValidOutcome::Refused(NO_PUSH)),
];

const CONFIG_NAME: &str = "tasks/$TASK/pushNotificationConfigs/c-1";
const V03_TASK: Field = need("name", Kind::TaskName(NO_TASK), "tasks/$TASK").at(1);
const V03_PARENT: Field = need("parent", Kind::TaskName(NO_PUSH), "tasks/$TASK").at(1);
const V03_PUSH_NAME: Field = need("name", Kind::ConfigName(NO_PUSH), CONFIG_NAME).at(1);
const V03_WRAPPED: &[Field] = &[
    rare("name", Kind::OwnConfigName, CONFIG_NAME).at(1),
    need("pushNotificationConfig", Kind::Object(V03_CONFIG), "").at(2),
];
const V03_PUSH_CREATE: &[Field] = &[
    V03_PARENT,
    may("configId", Kind::Text, "c-1").at(2),
    need("config", Kind::Object(V03_WRAPPED), "").at(3),
];
const V03_PUSH_LIST: &[Field] = &[V03_PARENT, PAGE_SIZE.at(2), rare("pageToken", Kind::Text, "x").at(3)];
